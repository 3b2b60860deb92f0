"""The night as a page for a browser: everything is on it, nothing that was written by others is markup."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import re
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopwarden.core.bounds import DAY, HOUR
from stopwarden.report import html
from stopwarden.report.lanes import KINDS, SHAPES
from stopwarden.report.page import Page, page
from tests.conftest import LONDON, at
from tests.support.many_nights import busy_night, together, week
from tests.support.terminal import Terminal
from tests.support.written_night import Night, ordinary_night

VOID = {"meta", "br", "link", "img", "hr", "input"}
CSS = (pathlib.Path(html.__file__).parent / "page.css").read_text(encoding="utf-8")


class Parsed(HTMLParser):
    """A page taken apart: tags in order with their attributes, and the text outside of the style sheet."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style, self.problems = "", []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        assert not self._open, f"left open: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1:] == [tag], f"</{tag}> closes nothing"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)

    @property
    def said(self) -> str:
        """All text in one line."""
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for one, attributes in self.tags if one == tag]


def parsed(night: Night) -> Parsed:
    return Parsed(html.render(night.account(), LONDON))


def told(night: Night) -> Page:
    return page(night.account(), LONDON)


# --- what is on it --------------------------------------------------------------------------------


def test_the_page_of_an_ordinary_night_tells_all_that_the_terminal_tells() -> None:
    """What to do first, what was done and what not, the time with its causes, the refusals, the cost."""
    text = parsed(ordinary_night()).said
    for said in (
        "5 of 6 done",
        "Mon 23:05 – Tue 07:30 times of Europe/London Over",
        "for you 1",
        "worked 4 h 29",
        "waited 3 h 00",
        "lost 0 h 55 usage limit",
        "Drop column legacy_id? asked 02:11",
        "Chosen meanwhile: keep it (can be undone)",
        "stopwarden answer 1 TEXT",
        "docs handed back to you 06:33 after 3 wakes without progress",
        "lexer 23:40 verified",
        "readme 04:10 ticked, not verified",
        "03:02-03:57 lost 55 min: usage limit",
        "04:12-04:50 waiting 38 min, next look 04:50",
        "02:20 rm -rf build",
        "1 session · 6 turns · 5 wakes · 5 blocks · 3.1 M tokens",
    ):
        assert said in text


def test_every_session_every_item_and_every_question_is_on_the_page() -> None:
    """Long lists are folded, never cut."""
    night = busy_night(40, 120, checkouts=True)
    account = night.account()
    text = parsed(night).said
    assert all(one.name in text for one in account.sessions)
    assert all(story.title in text for story in account.tonight)
    for parked in account.questions:
        assert f"{parked.text} asked" in text
        assert f"stopwarden answer {parked.id} TEXT" in text


def test_each_end_an_item_can_come_to_is_told_with_its_story() -> None:
    """Done, begun, set aside for the person, waiting for others, taken off, handed back, not begun."""
    night = Night()
    night.list("a", "b", "c", "d", "e", "f", "g")
    night.line("23:06", "prompt", "person")
    night.line("23:10", "item_doing", "a", "i1")
    night.tick("23:40", "i1", verified=True)
    night.line("23:50", "item_doing", "b", "i2")
    night.line("00:10", "item_parked", "which database?", "i3")
    night.line("00:20", "item_removed", "d", "i4")
    night.line("00:30", "item_handed_back", "e", "i5")
    states = {"i2": "doing", "i4": "removed", "i5": "handed_back"}
    for one, state in states.items():
        night.items[one] = night.items[one].replace(state=state)
    night.items["i3"] = night.items["i3"].replace(state="waiting", waits_on="person", why="which database?")
    night.items["i6"] = night.items["i6"].replace(state="waiting", waits_on="external", why="the build")
    night.stop("00:40")
    text = parsed(night).said
    for said in (
        "a 23:40 verified begun 23:10 · done 23:40",
        "b begun 23:50, not finished",
        "c set aside for you by the agent 00:10: which database?",
        "d taken off the list by the agent 00:20",
        "e handed back to you 00:30",
        "f waits for something external: the build",
        "g not begun",
    ):
        assert said in text
    assert text.index("c set aside for you") < text.index("The time working")


def test_a_night_with_nothing_wrong_says_so() -> None:
    """The person may have breakfast first."""
    night = Night()
    night.list("lexer")
    night.line("23:06", "prompt", "person")
    night.tick("23:40", "i1")
    night.stop("23:41", "done")
    night.end("23:41", "done")
    assert "Nothing waits for you, and nothing went wrong" in parsed(night).said
    assert "Over, 7 h 49 min early: the list was done" in parsed(night).said


def test_a_night_that_lost_hours_is_not_said_to_have_gone_well() -> None:
    """Nothing waits for the person, and yet a wake did not come for two hours."""
    night = Night()
    night.line("23:06", "prompt", "person")
    night.stop("23:40", "waiting", look="00:20")
    night.wake("02:20")
    night.stop("07:29", "waiting", look="07:50")
    night.end()
    assert "Nothing waits for you The time" in parsed(night).said


def test_a_night_of_which_nothing_was_heard_says_what_to_do() -> None:
    """No verdict, no line, no list."""
    night = Night()
    night.end()
    text = parsed(night).said
    assert "Nothing was heard of any session" in text
    assert "stopwarden doctor" in text


def test_troubles_stand_on_the_page_with_what_to_do() -> None:
    """A fault of ours, a database set aside, a session that was not covered."""
    night = ordinary_night()
    night.line("23:05", "not_covered", "docs: hook never seen", session="")
    night.line("02:45", "fault", "the disk is full", session="")
    text = parsed(night).said
    assert "02:45 Stopwarden itself failed: the disk is full. Run: stopwarden doctor" in text
    assert "Not covered when you left: docs: hook never seen." in text


def test_a_running_night_is_said_to_run() -> None:
    """With its planned end."""
    night = ordinary_night()
    night.period = night.period.replace(ended_at=None, ended_why="")
    text = Parsed(html.render(night.account("04:12"), LONDON)).said
    assert "Mon 23:05 – now (04:12)" in text
    assert "Still running, until Tue 07:30" in text


# --- lanes ----------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 15), st.integers(0, 10_000))
def test_the_bars_of_every_lane_fill_the_night_without_gap_or_overlap(sessions: int, seed: int) -> None:
    """From the left edge to the right one, whatever happened."""
    for chart in told(busy_night(sessions, seed=seed)).charts:
        for lane in chart.lanes:
            edge = 0.0
            for bar in lane.bars:
                assert abs(float(bar.x) - edge) < 0.02
                edge = float(bar.x) + float(bar.width)
            assert abs(edge - 100) < 0.02
            assert all(0 <= float(mark.x) <= 100 for mark in lane.marks)


def test_a_lane_marks_wakes_blocks_bounds_errors_questions_and_missed_looks() -> None:
    """Each with its own shape, where it happened, in words as well."""
    night = ordinary_night()
    night.period = night.period.replace(ended_at=None)
    night.stop("07:26", bound="blocks_without_tools")
    (chart,) = told(night).charts
    (lane,) = chart.lanes
    marks = {(mark.shape, mark.tip.split("  ")[0].partition(" ")[0]) for mark in lane.marks}
    assert {
        ("block", "23:40"),
        ("look", "04:50"),
        ("error", "03:02"),
        ("question", "02:11"),
        ("bound", "07:26"),
    } <= marks
    missed = Night()
    missed.line("23:06", "prompt", "person")
    missed.stop("23:10", "waiting", look="23:40")
    missed.end()
    (lane,) = told(missed).charts[0].lanes
    assert [(mark.shape, mark.tip) for mark in lane.marks] == [("missed", "23:40  the look did not come")]
    assert [bar.kind for bar in lane.bars] == ["stopped", "working", "waiting", "lost"][-len(lane.bars) :]
    assert any("the look of 23:40 did not come" in line for line in lane.told)


def test_every_mark_and_every_bar_says_what_it_is() -> None:
    """A title each, so that neither colour nor shape must be known by heart; and each lane in words below it."""
    markup = html.render(busy_night(5).account(), LONDON)
    drawn = re.findall(
        r'<rect class="\w+" x="[^>]*%"[^>]*?(/?)>(<title>)?',
        markup.partition('class="legend"')[2].partition("</ul>")[2],
    )
    assert drawn
    assert all(title and not alone for alone, title in drawn)
    assert len(re.findall(r"<use class=\"\w+\" href=\"#m-\w+\" x=", markup)) == len(
        re.findall(r'y="\d+"><title>[^<]+</title></use>', markup)
    )
    assert all(attributes["aria-label"] for attributes in Parsed(markup).all("svg") if attributes.get("role") == "img")


def test_no_kind_of_time_is_told_by_its_colour_alone() -> None:
    """Each kind differs by pattern, outline or height; each shape of mark is drawn once and is in the legend."""
    looks = {kind: tuple(re.findall(rf"\.{kind}[^{{}}]*\{{([^}}]*)\}}", CSS)) for kind in KINDS}
    assert "url(#hatch)" in str(looks["lost"])
    assert "url(#dots)" in str(looks["stopped"])
    assert "dasharray" in str(looks["unknown"])
    text = parsed(busy_night(10))
    defined = {attributes.get("id") for _, attributes in text.tags}
    assert {f"m-{shape}" for shape in SHAPES} <= defined
    used = {attributes["class"] for attributes in text.all("use") if attributes["class"] != "grid"}
    assert all(SHAPES[str(shape)] in text.said for shape in used)


def test_sessions_that_need_a_look_come_first() -> None:
    """First those that need the person, then those that lost time, the most first."""
    (chart,) = told(busy_night(40, 200)).charts
    order = ["needs" if lane.needs else "lost" if "lost" in lane.spent else "fine" for lane in chart.lanes]
    first_fine = order.index("fine")
    assert order[: order.count("needs")] == ["needs"] * order.count("needs")
    assert order.count("needs") > 0
    assert chart.attention >= first_fine > 0
    lost = [
        int(re.search(r"lost (\d+) h (\d+)", lane.spent)[0].replace("lost", "").replace("h", "").replace(" ", ""))
        for lane in chart.lanes[order.count("needs") : first_fine]
    ]  # type: ignore[index]
    assert lost == sorted(lost, reverse=True)


def test_what_needs_the_person_leads_to_the_lane_it_is_about() -> None:
    """Each question and each session that stands still links to its own lane in the newest night."""
    whole = told(busy_night(40, 200))
    lanes = {lane.anchor: lane for lane in whole.charts[-1].lanes}
    assert len(lanes) == 40
    assert all(any(one.text in line for line in lanes[one.anchor].needs) for one in whole.questions)
    assert all(one.text in lanes[one.anchor].needs for one in whole.first)


def test_stretches_too_narrow_to_see_are_drawn_together_and_say_so() -> None:
    """A bar a second would be no picture; marks that would stand on each other are one with their number."""
    night = Night(until="")
    night.period = night.period.replace(until=night.at("23:05") + 7 * DAY)
    night.line("23:06", "prompt", "person")
    for number in range(300):
        night.stop(
            night.at("23:10") + 20 * number,
            "waiting" if number % 2 else "block",
            look=night.at("07:00") if number % 2 else None,
        )
    account = night.account(night.period.until or 0)
    charts = page(account, LONDON).charts
    lane = charts[0].lanes[0]
    assert len(lane.bars) < 150
    assert any("short stretches, mostly" in bar.tip for bar in lane.bars)
    assert any(re.search(r"\d+ times: a stop was blocked", mark.tip) for mark in lane.marks)


def test_the_axis_names_local_hours_and_the_day_at_midnight() -> None:
    """Whole hours of the reader's zone, where they are."""
    (chart,) = told(ordinary_night()).charts
    assert [tick.label for tick in chart.ticks] == ["Tue", *(f"{hour:02}:00" for hour in range(1, 8))]
    assert float(chart.ticks[0].x) == pytest.approx(100 * 55 / 505, abs=0.01)


def test_the_axis_of_an_autumn_night_shows_the_repeated_hour_twice() -> None:
    """Real time has an equal width; the second reading is marked."""
    night = Night("2026-10-24", "23:00", "07:00")
    night.line("23:10", "prompt", "person")
    night.end()
    (chart,) = told(night).charts
    assert [tick.label for tick in chart.ticks][1:5] == ["Sun", "01:00 (1st)", "01:00 (2nd)", "02:00"]
    assert "The clocks went back" in parsed(night).said


# --- many sessions, many items, many nights -------------------------------------------------------


def test_two_hundred_sessions_are_one_page_of_less_than_two_megabytes() -> None:
    """Every one has its lane."""
    markup = html.render(busy_night(200, 400).account(), LONDON)
    assert len(markup.encode()) < 2_000_000
    assert markup.count('<details class="session"') == 200


def test_five_thousand_items_are_folded_and_all_there() -> None:
    """Nothing is opened that would push the rest off the screen."""
    night = busy_night(2, 5_000)
    markup = html.render(night.account(), LONDON)
    assert len(markup.encode()) < 2_000_000
    work = markup.partition('id="work"')[2].partition("</section>")[0]
    assert work.count("<li class=") == 5_000
    assert re.findall(r"<details( open)?>", work)[0] == ""


def test_a_week_has_a_line_and_a_chart_for_each_night_the_last_one_open() -> None:
    """One lane a session in each night it lived in; the newest night first."""
    account = together(week())
    whole = page(account, LONDON)
    assert len(whole.nights) == 8
    assert len(whole.charts) == 7
    assert sum(len(chart.lanes) for chart in whole.charts) == len(account.sessions)
    markup = html.render(account, LONDON)
    assert re.findall(r'<details class="chart"( open)?>', markup) == [" open", *[""] * 6]
    assert markup.index("Mon 23:05 – Tue 07:30</h3>") < markup.index("Wed 23:05 – Thu 07:30</h3>")


def test_one_period_of_a_week_is_charted_from_noon_to_noon() -> None:
    """An axis of seven days would show nothing."""
    night = Night(until="")
    night.period = night.period.replace(until=night.at("23:05") + 7 * DAY)
    night.line("23:06", "prompt", "person")
    for number in range(1, 7 * 24):
        night.stop(night.at("23:05") + HOUR * number)
    charts = page(night.account(night.period.until or 0), LONDON).charts
    assert charts[1].title == "Tue 1 Dec 12:00 – Wed 12:00"
    assert len(charts) == 8


# --- others' texts --------------------------------------------------------------------------------

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}{% raw %}", "</style></title>"]
HOSTILE += ["' onload='x", "<!--", "]]>", "&lt;b&gt;", "javascript:alert(1)", "\x1b[31m\x00\u202e", "</details></main>"]


def night_of(text: str) -> Night:
    """A night in which everything that others write is this text."""
    night = Night()
    night.row(night.session, title=f"x{text}", root=f"/x{text}")
    night.list(f"x{text}", "b", f"y{text}")
    night.line("23:06", "prompt", "person")
    night.line("23:10", "item_doing", f"x{text}", "i1")
    night.tick("23:40", "i1")
    night.line("00:10", "item_parked", f"x{text}", "i2")
    night.items["i2"] = night.items["i2"].replace(state="waiting", waits_on="person", why=f"x{text}")
    night.ask("01:00", f"x{text}", options=(f"x{text}",), chosen=f"x{text}")
    night.ask("01:01", f"x{text}", kind="permission")
    night.line("01:10", "fault", f"x{text}", session="")
    night.line("01:20", "not_covered", f"x{text}", session="")
    night.stop("01:30")
    night.line("01:40", "error", f"x{text}")
    night.wake("02:00")
    night.stop("02:10", bound=f"x{text}", unread=(f"x{text}",))
    night.period = night.period.replace(root=f"/x{text}", lists=(f"/l/x{text}",))
    night.end(why=f"x{text}")
    return night


def shape_of(text: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(tag, tuple(attributes)) for tag, attributes in parsed(night_of(text)).tags]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40), st.text("<>\"'&/={}%-! ascript", max_size=40)))
def test_no_text_of_others_ever_becomes_markup(text: str) -> None:
    """Whatever titles, questions, errors and paths hold, the page has the same tags with the same attributes."""
    assert shape_of(text) == shape_of("plain")


def test_hostile_text_is_shown_as_it_is() -> None:
    """Escaped, not taken out: the person sees what the agent wrote."""
    for text in HOSTILE[:4]:
        page_text = parsed(night_of(text)).said
        assert f"x{text}".replace('"', "'") in page_text
    assert "49" not in re.findall(r"x(\d+)", parsed(night_of("{{ 7 * 7 }}")).said)


# --- self-contained, safe, for everybody ----------------------------------------------------------


def test_the_page_needs_nothing_from_outside_and_may_load_nothing() -> None:
    """No address, no script, no style but its own, which the policy in it allows by digest."""
    markup = html.render(busy_night(20, checkouts=True).account(), LONDON)
    page_ = Parsed(markup)
    assert "://" not in markup
    assert "@import" not in markup
    assert set(re.findall(r"url\(([^)]*)\)", markup)) == {"#hatch", "#dots"}
    for tag, attributes in page_.tags:
        assert tag not in ("script", "iframe", "object", "embed", "link", "img", "form", "base")
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset")}
        assert str(attributes.get("href", "#")).startswith("#")
    (policy,) = [one["content"] for one in page_.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(page_.style.encode()).digest()).decode()
    assert str(policy).startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_the_page_is_the_same_each_time() -> None:
    """Nothing in it depends on when or where it is made but the account itself."""
    assert html.render(busy_night(30).account(), LONDON) == html.render(busy_night(30).account(), LONDON)


@pytest.mark.parametrize("night", [ordinary_night(), busy_night(30, 100, checkouts=True)])
def test_the_page_can_be_read_by_ear_and_used_by_keyboard(night: Night) -> None:
    """Landmarks, one first heading, no level left out, every section named, every link leads somewhere."""
    page_ = parsed(night)
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(page_.all(landmark)) == 1 or landmark == "title"
    ids = [attributes["id"] for _, attributes in page_.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert all(attributes["aria-labelledby"] in ids for attributes in page_.all("section"))
    assert {str(attributes["href"])[1:] for _, attributes in page_.tags if "href" in attributes} <= set(ids)
    levels = [int(tag[1]) for tag, _ in page_.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in zip(levels, levels[1:], strict=False))
    assert page_.all("html")[0]["lang"] == "en"


def colours(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", css))


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        digits = colour[1:] if len(colour) == 7 else "".join(c * 2 for c in colour[1:])
        parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((light(one), light(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


SCHEMES = {
    "light": colours(CSS.partition("@media")[0]),
    "dark": colours(CSS.partition("prefers-color-scheme: dark")[2].partition("}\n}")[0]),
    "print": colours(CSS.partition("@media print")[2]),
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_and_every_drawing_has_enough_contrast(scheme: str) -> None:
    """4.5 to 1 for text, 3 to 1 for what is drawn, on paper, by day and by night."""
    values = SCHEMES[scheme]
    for text, grounds in {
        "ink": ("bg", "card", "you-bg", "code"),
        "soft": ("bg", "card", "you-bg"),
        "you": ("you-bg", "card"),
    }.items():
        for ground in grounds:
            assert contrast(values[text], values[ground]) >= 4.5, (text, ground)
    for drawn in ("working", "waiting", "lost", "stopped", "finished"):
        assert contrast(values[drawn], values["card"]) >= 3, drawn


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def terminal(tmp_path: pathlib.Path) -> Terminal:
    (tmp_path / "here").mkdir()
    terminal = Terminal(tmp_path)
    terminal.context.cwd = str(tmp_path / "here")
    terminal.keep(ordinary_night())
    return terminal


def test_the_page_is_written_where_it_is_asked_for(terminal: Terminal) -> None:
    """The path is said; only the person may read it; what is left beside it is nothing."""
    there = pathlib.Path(terminal.context.cwd)
    assert terminal.run("report", "--html", "night.html") == (0, f"The report is in {there}/night.html\n", "")
    assert "5 of 6 done" in Parsed((there / "night.html").read_text(encoding="utf-8")).said
    assert (there / "night.html").stat().st_mode & 0o777 == 0o600
    assert os.listdir(there) == ["night.html"]


def test_the_page_from_the_store_is_that_of_the_account(terminal: Terminal) -> None:
    """To standard output with a dash."""
    code, out, _ = terminal.run("report", "--html", "-")
    assert code == 0
    assert out == html.render(ordinary_night().account(), LONDON)


def test_an_older_report_is_replaced_and_nothing_else(terminal: Terminal) -> None:
    """A mistyped name must not cost anybody a list; a link is followed."""
    there = pathlib.Path(terminal.context.cwd)
    assert terminal.run("report", "--html", "a.html")[0] == 0
    (there / "b.html").symlink_to("a.html")
    (there / "a.html").write_text(html.MARK + " 0.0.1", encoding="utf-8")
    assert terminal.run("report", "--html", "b.html")[0] == 0
    assert (there / "b.html").is_symlink()
    assert "5 of 6 done" in (there / "a.html").read_text(encoding="utf-8")
    (there / "TODO.md").write_text("- [ ] a\n", encoding="utf-8")
    code, out, err = terminal.run("report", "--html", "TODO.md")
    assert (code, out) == (2, "")
    assert "is there already and is no report. It was left as it is." in err
    assert (there / "TODO.md").read_text(encoding="utf-8") == "- [ ] a\n"


@pytest.mark.parametrize("named, said", [
    (".", "is a folder"), ("gone/x.html", "No such file"), ("", "is no name of a file"), ("a\0b", "is no name of a file"),
    ("x" * 300, "too long"), ("file/x.html", "Not a directory"), ("fifo", "is no ordinary file"),
])  # fmt: skip
def test_a_path_where_no_file_can_be_is_refused_with_what_would_be_right(
    terminal: Terminal, named: str, said: str
) -> None:
    """Exit code 2, nothing written, and it does not hang."""
    there = pathlib.Path(terminal.context.cwd)
    (there / "file").write_text("x", encoding="utf-8")
    os.mkfifo(there / "fifo")
    before = sorted(os.listdir(there))
    code, out, err = terminal.run("report", f"--html={named}")
    assert (code, out) == (2, "")
    assert said in err
    assert sorted(os.listdir(there)) == before


def test_a_page_of_nothing_is_not_written(tmp_path: pathlib.Path) -> None:
    """Nothing is recorded: exit code 1, and no empty page that would be taken for a quiet night."""
    terminal = Terminal(tmp_path)
    assert terminal.run("report", "--html", f"{tmp_path}/x.html")[0] == 1
    assert not (tmp_path / "x.html").exists()


def test_page_and_json_can_be_had_together_but_not_on_one_stream(terminal: Terminal) -> None:
    """The page in a file, the account on standard output."""
    code, out, _ = terminal.run("report", "--html", "x.html", "--json")
    assert code == 0
    assert json.loads(out)["counts"]["done"] == 5
    assert terminal.run("report", "--html", "-", "--json")[0] == 2


def test_the_page_of_a_week_is_had_from_the_command(tmp_path: pathlib.Path) -> None:
    """--week and --html together; the nights of the last seven days, each once."""
    terminal = Terminal(tmp_path, "2026-11-17 08:00")
    for night in week():
        terminal.keep(night)
    terminal.now = at("2026-11-17 08:00")
    assert terminal.run("report", "--week", "--html", f"{tmp_path}/week.html")[0] == 0
    markup = (tmp_path / "week.html").read_text(encoding="utf-8")
    assert markup.count('<details class="chart"') == 7
