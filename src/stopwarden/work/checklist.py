"""Reads any Markdown task list: which items there are, how each stands, what it waits on. Pure.

Theory of operation. One pass over the lines, without `re`, because the hook reads the list at
every stop and a list may have ten thousand items. An item is a list marker (`-`, `*`, `+`, `1.`,
`1)`) and a box, at any indentation, inside block quotes too. The box says how it stands: `[ ]`
open, `[x]` done, `[/]` `[~]` `[>]` doing, `[-]` dropped, `[?]` waiting on a person. An unticked
item whose text ends in `(waits for person: why)`, `external` or `session`, waits.

Where Markdown is vague or a writer careless, the reading is chosen that loses no work: `-[ ] a`
and `- [] a` are items; an unknown mark in a box is open; a code fence or an HTML comment that is
never closed hides nothing; one that stands in an item ends with that item. Not items: what is in
fences, comments, `<pre>`; a box without text; `- [1] …`, `- [a] …`, `- [x](link)`.

Of a nested list every box is an item of its own. A parent stays owed until it is ticked itself,
but it stands after its children where work is named, so the first open leaf comes first. A dropped
parent drops what is still open below it; a parent of which all that is left waits, waits too.

May not live here: identity of items across edits (`work.identity`), files, edits.
"""

from __future__ import annotations

from stopwarden.core.bounds import TITLE_MAX
from stopwarden.core.record import Record
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stopwarden.core.events import ItemState, WaitsOn

    Note = tuple[WaitsOn | None, str, str]  # whom an item waits on, why, and its id: what few items have

BOXES: dict[str, ItemState] = {
    "": "open",
    "x": "done", "X": "done", "✓": "done", "✔": "done",
    "/": "doing", "~": "doing", ">": "doing",
    "-": "dropped",
    "?": "waiting",
}  # fmt: skip
WHOM: dict[str, WaitsOn] = {"person": "person", "external": "external", "session": "session"}
_PLAIN_ITEMS: dict[str, ItemState] = {
    f"{marker} [{mark or ' '}] ": state for mark, state in BOXES.items() if mark != "?" for marker in "-*+"
}
_SUFFIXES = ("(waits ", "(Waits ", "(waiting ", "(Waiting ")
_DIGITS = frozenset("0123456789")
_NESTING = 2  # a list marker at least so many columns further in than another stands below it
_RAW_HTML = (("<!--", "-->"), ("<pre", "</pre>"), ("<script", "</script>"), ("<style", "</style>"))
_FENCE_MAX = 64  # longer fences count as this long
_DEPTH_MAX = 50
_SPECIAL_ENDS = frozenset(").>")  # a text that ends so may hold more than a title
_WORDING_MAX = 4_000
_CHUNK = 64  # lines that are tried together
_TIDY = bytes([10, *range(32, 127)])


class Entry(Record):
    """One item as it stands in the text. Entries are in the order of their lines."""

    title: str
    state: ItemState = "open"
    waits_on: WaitsOn | None = None
    why: str = ""
    line: int = 0  # 1-based
    parent: int = -1  # index of the item it stands below, -1: none
    heading: str = ""  # the nearest heading above
    id: str = ""  # from an id comment, `<!-- sw:ID -->`


class Reading(Record):
    """A text read, as a column a field: ten thousand items need not become entries to be tracked."""

    titles: list[str]
    states: list[ItemState]
    lines: list[int]
    parents: list[int]
    headings: list[str]
    waits: list[WaitsOn | None]
    whys: list[str]
    ids: list[str]
    last_lines: Mapping[int, int]  # by index of an item whose paragraph goes on: its last line
    bullets: int = 0  # list items without a box


def parse(text: str) -> tuple[Entry, ...]:
    """The items of a Markdown text, in the order of their lines. Never raises."""
    reading = read(text)
    columns: dict[str, Sequence[object]] = {
        "title": reading.titles,
        "state": reading.states,
        "waits_on": reading.waits,
        "why": reading.whys,
        "line": reading.lines,
        "parent": reading.parents,
        "heading": reading.headings,
        "id": reading.ids,
    }
    return tuple(Entry.many(len(reading.titles), columns))


def read(text: str) -> Reading:
    """The items, and what an edit needs besides. Never raises."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    closers = Closers(lines)
    plain_item = _PLAIN_ITEMS.get
    tidy = _is_tidy(text)
    comments = "<!--" in text
    titles: list[str] = []
    states: list[ItemState] = []
    places: list[int] = []
    parents: list[int] = []
    headings: list[str] = []
    notes: dict[int, Note] = {}  # by index
    wrapped: dict[int, list[str]] = {}  # by index: the lines with which an item's paragraph goes on
    last_lines: dict[int, int] = {}
    bullets = 0
    lists: list[tuple[int, int]] = []  # open list items, outermost first: column, index of the item or of its parent
    heading, text_before = "", ""
    wraps = False  # a line of text now would go on with the last item's paragraph
    blank = True
    quoted = 0  # depth of block quotes
    hidden = ""  # what ends the fence, comment or raw HTML we are in
    owner = -1  # column of the list item that it stands in

    for start in range(0, len(lines), _CHUNK):
        chunk = lines[start : start + _CHUNK]
        if not quoted and not hidden and (plain := _plain_items(chunk, tidy)):
            lists[:] = [(0, len(titles) + len(chunk) - 1)]
            titles += [line[6:] for line in chunk]
            states += plain
            places += range(start + 1, start + len(chunk) + 1)
            parents += [-1] * len(chunk)
            headings += [heading] * len(chunk)
            wraps, blank = True, False
            continue
        for number, line in enumerate(chunk, start + 1):
            state = plain_item(line[:6])
            if state is not None and not quoted:
                column, body = 0, line
            else:
                body = line.lstrip(" \t")
                if not body:
                    blank, wraps = True, False
                    continue
                column = len(line) - len(body)
                if column and "\t" in line[:column]:
                    column = len(line[:column].expandtabs(4))
                if quoted or body[0] == ">":
                    depth, column, body = _unquoted(line)
                    if depth != quoted:
                        hidden = hidden if depth > quoted else ""
                        quoted, wraps = depth, False
                        lists.clear()
                    if not body:
                        blank, wraps = True, False
                        continue
                state = plain_item(body[:6])
            if hidden:
                if column > owner or (state is None and _box(body[_marker(body) :].lstrip(" \t")) is None):
                    if closes(body, hidden):
                        hidden = ""
                    continue
                hidden = ""  # the item that it stood in has ended
            if state is not None:
                said = body[6:].strip()
            elif marker := _marker(body):
                rest = body[marker:].lstrip(" \t")
                if rest and _marker(rest):
                    column, rest = _innermost(column, body)
                state, said = _box(rest, tight=body[marker : marker + 1] == "[") or (None, rest)
            else:
                said = ""
            if said or state is not None:
                if column < _NESTING:
                    lists.clear()
                    parent = -1
                else:
                    while lists and column < lists[-1][0] + _NESTING:
                        lists.pop()
                    parent = lists[-1][1] if lists else -1
                blank = False
                if state is None or not said:
                    wraps = False
                    bullets += state is None
                    lists.append((column, parent))
                    hidden = closers.opened_by(said, number)
                    owner = column
                    continue
                wraps = True
                index = len(titles)
                lists.append((column, index))
                if (
                    said[-1] in _SPECIAL_ENDS
                    or "  " in said
                    or len(said) > TITLE_MAX
                    or state == "waiting"
                    or said[0] == "~"
                    or (comments and "<!--" in said)
                    or not (tidy or said.isprintable())
                ):
                    said, state, notes[index] = _wording(said, state)
                titles.append(said)
                states.append(state)
                places.append(number)
                parents.append(parent)
                headings.append(heading)
                continue
            level = len(body) - len(body.lstrip("#"))
            if 0 < level <= 6 and body[level : level + 1] in ("", " ", "\t"):
                heading = one_line(body[level:].strip().rstrip("#"))
                lists.clear()
                wraps, text_before = False, ""
            elif body[0] in "-=*_" and not body.strip(body[0] + " \t"):
                if body[0] in "-=" and text_before and not blank:
                    heading = one_line(text_before)
                wraps, text_before = False, ""
            elif body[0] in "`~<" and (hidden := closers.opened_by(body, number)):
                owner = max((at for at, _ in lists if at < column), default=-1)
                wraps, text_before = False, ""
            elif wraps:
                wrapped.setdefault(len(titles) - 1, []).append(body.strip())
                last_lines[len(titles) - 1] = number
            else:
                if blank and lists and column <= lists[0][0]:
                    lists.clear()
                text_before = body
            blank = False

    for index, more in wrapped.items():
        if states[index] in ("open", "doing", "waiting") and (found := _waiting(" ".join([titles[index], *more]))):
            titles[index] = found[0][: len(titles[index])] or titles[index]
            states[index], notes[index] = "waiting", (found[1], found[2], notes[index][2] if index in notes else "")
    if max(parents, default=-1) >= 0:
        _pass_states(parents, states, notes)
    waits, whys, ids = _columns(notes, states)
    return Reading(
        titles=titles,
        states=states,
        lines=places,
        parents=parents,
        headings=headings,
        waits=waits,
        whys=whys,
        ids=ids,
        last_lines=last_lines,
        bullets=bullets,
    )


def leaves_first(parents: Sequence[int]) -> list[int]:
    """Indices of items in the order in which work is named: each parent after what stands below it."""
    order: list[int] = []
    above: list[int] = []
    for index, parent in enumerate(parents):
        while above and above[-1] != parent:
            order.append(above.pop())
        above.append(index)
    return order + above[::-1]


def _is_tidy(text: str) -> bool:
    """Whether a text has no control or unseen character but ends of lines."""
    if text.isascii():  # five times as quick as asking what is printable
        return not text.encode().translate(None, _TIDY)
    return text.replace("\n", "").isprintable()


def _plain_items(chunk: list[str], tidy: bool) -> list[ItemState] | None:
    """The states of lines that are all outermost items with nothing but a title, None if one may be anything else."""
    states = [_PLAIN_ITEMS.get(line[:6]) for line in chunk]
    if not tidy or None in states or max(map(len, chunk)) > TITLE_MAX:
        return None
    whole = "\n".join(chunk)
    if "<" in whole or "(" in whole or "~" in whole or "  " in whole or " \n" in whole or whole[-1] == " ":
        return None
    return states  # type: ignore[return-value]


def _marker(body: str) -> int:
    """The length of the list marker that a line begins with, 0: none."""
    first = body[:1]
    if first in ("-", "*", "+"):
        return 1 if body[1:2] in ("", " ", "\t", "[") else 0
    if first in _DIGITS:
        end = 1
        while end < 9 and body[end : end + 1] in _DIGITS:
            end += 1
        if body[end : end + 1] in (".", ")") and body[end + 1 : end + 2] in ("", " ", "\t", "["):
            return end + 1
    return 0


def _innermost(column: int, body: str) -> tuple[int, str]:
    """Column and content of the innermost of several lists that begin on one line (`1. - [ ] a`)."""
    for _ in range(_DEPTH_MAX):
        marker = _marker(body)
        rest = body[marker:].lstrip(" \t")
        if not marker or not _marker(rest):
            return column, rest
        column, body = column + len(body) - len(rest), rest
    return column, body


def _unquoted(line: str) -> tuple[int, int, str]:
    """Depth of the block quotes a line stands in, and column and content inside them."""
    depth = 0
    for depth in range(_DEPTH_MAX):  # noqa: B007 - the depth reached is the answer
        inner = line.lstrip(" \t")
        if inner[:1] != ">":
            break
        line = inner[2:] if inner[1:2] == " " else inner[1:]
    body = line.lstrip(" \t")
    return depth, len(line[: len(line) - len(body)].expandtabs(4)), body


def _box(rest: str, *, tight: bool = False) -> tuple[ItemState, str] | None:
    """State and text of what follows a list marker, or None if it begins with no box.

    A blank may be missing on one side of the box, not on both: `tight` says that it is missing before.
    """
    if rest[:1] != "[":
        return None
    end = rest.find("]", 1, 6)
    if end < 0:
        return None
    mark, after = rest[1:end].strip().rstrip("\ufe0f"), rest[end + 1 :]
    state = BOXES.get(mark)
    if state is None:
        if len(mark) > 1 or mark.isalnum():
            return None
        state = "open"
    if after[:1] not in ("", " ", "\t") and (tight or mark or after[0] in "([:"):
        return None
    return state, after.strip()


def _wording(said: str, state: ItemState) -> tuple[str, ItemState, Note]:
    """Title, state, and what is noted besides, of an item's text."""
    said = said[:_WORDING_MAX]
    on: WaitsOn | None = None
    known = why = ""
    if "<!--" in said:
        said, known = _without_comments(said)
    if state not in ("done", "dropped"):
        found = _waiting(said)
        if found:
            said, on, why, state = found[0] or said, found[1], found[2], "waiting"
        elif state == "waiting":
            on = "person"
        elif struck(said):
            said, state = said[2:-2].strip(), "dropped"
    return one_line(said) or "(no words)", state, (on, why, known)


def struck(said: str) -> bool:
    """Whether the whole text is struck through (`~~like this~~`)."""
    return len(said) > 4 and said.startswith("~~") and said.endswith("~~") and "~~" not in said[2:-2]


def _without_comments(said: str) -> tuple[str, str]:
    """A text without its HTML comments, and the id that one of them gives (`<!-- sw:ID -->`)."""
    kept: list[str] = []
    known = ""
    while True:
        before, _, rest = said.partition("<!--")
        comment, closed, after = rest.partition("-->")
        if not closed:
            return "".join([*kept, said]).strip(), known
        kept.append(before)
        said = after
        name = comment.strip()
        if name.startswith("sw:") and is_id(name[3:]) and not known:
            known = name[3:]


def is_id(text: str) -> bool:
    """Whether a text may serve as an item's id: short, typable, one word."""
    return 0 < len(text) <= 32 and text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def suffix_at(said: str) -> int:
    """Where `(waits for …)` begins at the end of a text, -1: nowhere."""
    end = len(said.rstrip(" \t."))
    if said[end - 1 : end] != ")":
        return -1
    start = max(said.rfind(opening, 0, end) for opening in _SUFFIXES)
    if start < 0:
        return -1
    words = said[start + 1 : end - 1].split(":", 1)[0].split()
    if len(words) != 3 or words[1] not in ("for", "on") or words[2].lower() not in WHOM:
        return -1
    if said.count("(", start, end) > 1 or said.count(")", start, end) > 1:
        open_ones = 0
        for at in range(start, end - 1):
            open_ones += {"(": 1, ")": -1}.get(said[at], 0)
            if not open_ones:  # it closes before the end: it is no suffix
                return -1
    return start


def _waiting(said: str) -> tuple[str, WaitsOn, str] | None:
    """What a text says before `(waits for WHOM: WHY)` at its end, whom, and why; None if it does not end so."""
    start = suffix_at(said)
    if start < 0:
        return None
    words, _, why = said[start + 1 : len(said.rstrip(" \t.")) - 1].partition(":")
    return said[:start].rstrip(), WHOM[words.split()[2].lower()], one_line(why)


def _pass_states(parents: list[int], states: list[ItemState], notes: dict[int, Note]) -> None:
    """What a dropped parent says for those below it, and what those below say for a parent."""
    for index, parent in enumerate(parents):
        if parent >= 0 and states[parent] == "dropped" and states[index] != "done":
            states[index] = "dropped"
    left: dict[int, int] = {}  # by parent: how many directly below it are neither done nor dropped
    waiting: dict[int, list[int]] = {}  # by parent: which of those wait
    for index in range(len(parents) - 1, -1, -1):
        if states[index] in ("open", "doing") and index in left and left[index] == len(waiting.get(index, ())):
            on, why, _ = notes[waiting[index][-1]]
            states[index], notes[index] = "waiting", (on, why, notes[index][2] if index in notes else "")
        if parents[index] >= 0 and states[index] not in ("done", "dropped"):
            left[parents[index]] = left.get(parents[index], 0) + 1
            if states[index] == "waiting":
                waiting.setdefault(parents[index], []).append(index)


def _columns(notes: dict[int, Note], states: list[ItemState]) -> tuple[list[WaitsOn | None], list[str], list[str]]:
    """Whom each item waits on, why, and its id."""
    count = len(states)
    waits: list[WaitsOn | None] = [None] * count
    whys, ids = [""] * count, [""] * count
    seen: set[str] = set()
    for index in sorted(notes):
        on, why, known = notes[index]
        if states[index] == "waiting":
            waits[index], whys[index] = on, why
        if known and known not in seen:  # a copied line is another item
            ids[index] = known
            seen.add(known)
    return waits, whys, ids


def closes(body: str, hidden: str) -> bool:
    if hidden[0] in "`~":
        return body.startswith(hidden) and not body.strip().strip(hidden[0])
    return hidden in body.lower()


class Closers:
    """Where fences, comments and raw HTML end: asked before anything is taken as hidden."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._last_fences: dict[str, list[int]] = {}
        self._last_tags: dict[str, int] = {}

    def opened_by(self, body: str, number: int) -> str:
        """What ends the block that line `number` opens, "": it opens none, or none that ever ends."""
        char = body[:1]
        if char in ("`", "~"):
            length = len(body) - len(body.lstrip(char))
            if length < 3 or (char == "`" and "`" in body[length:]):
                return ""
            last = self._last_fence(char)[min(length, _FENCE_MAX)]
            return char * length if last > number else ""
        if char == "<":
            start = body[:8].lower()
            for opening, end in _RAW_HTML:
                if start.startswith(opening) and end not in body[len(opening) :].lower():
                    return end if self._last_tag(end) > number else ""
        return ""

    def _last_fence(self, char: str) -> list[int]:
        """For each length, the number of the last line that closes a fence of that length."""
        last = self._last_fences.get(char)
        if last is None:
            last = [0] * (_FENCE_MAX + 1)
            for number, line in enumerate(self._lines, 1):
                if char in line:
                    bare = line.strip(" \t>")
                    if bare and not bare.strip(char):
                        last[min(len(bare), _FENCE_MAX)] = number
            for length in range(_FENCE_MAX - 1, -1, -1):
                last[length] = max(last[length], last[length + 1])
            self._last_fences[char] = last
        return last

    def _last_tag(self, end: str) -> int:
        if end not in self._last_tags:
            found = (number for number in range(len(self._lines), 0, -1) if end in self._lines[number - 1].lower())
            self._last_tags[end] = next(found, 0)
        return self._last_tags[end]
