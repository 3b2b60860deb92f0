"""Edits of a Markdown task list that leave every other byte as it was. Pure, text to text.

The person, the agent and our commands edit one and the same file, in which each has a style of
their own. So an edit changes the line of its item and nothing else: not the line endings, not the
indentation, not a byte elsewhere. (`work.files` sees to it that nobody's edit is lost.)
May not live here: files, finding the item that a person means.
"""

from __future__ import annotations

import io

from stopwarden.core.errors import ListError
from stopwarden.work import promises
from stopwarden.work.checklist import parse, read, struck, suffix_at
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stopwarden.core.events import ItemState, WaitsOn
    from stopwarden.work.checklist import Reading

_MARKS: dict[str, str] = {"open": " ", "waiting": " ", "doing": "/", "done": "x", "dropped": "-"}


def mark(text: str, line: int, state: ItemState, waits_on: WaitsOn | None = None, why: str = "") -> str:
    """The text with the item of that line (1-based) in another state.

    Raises ListError if the line holds no item, or the state is none that a list can show.
    """
    reading = read(text)
    if line not in reading.lines or state not in _MARKS:
        raise ListError(f"Line {line} holds no item to mark {state}", kept="The list is as it was")
    lines = _lines(text)
    index = reading.lines.index(line)
    last = reading.last_lines.get(index, line)
    if last > line:
        _without_suffix_below(lines, line, last)
    body, ending = _split(lines[line - 1])
    start = body.index("[")
    before, said = body[:start], body[body.index("]", start) + 1 :]
    gap = said[: len(said) - len(said.lstrip(" \t"))]
    said, tail = _said_and_tail(said[len(gap) :])
    suffix = suffix_at(said)
    if suffix > 0:
        said = said[:suffix].rstrip()
    if struck(said) and state != "dropped":
        said = said[2:-2]
    if state == "waiting":
        said = f"{said} (waits for {waits_on or 'person'}{_because(why)})"
    lines[line - 1] = f"{before}[{_MARKS[state]}]{gap or ' '}{said}{tail}{ending}"
    return "".join(lines)


def append_item(text: str, title: str) -> tuple[str, int]:
    """The text with one more open item, and its line.

    It comes after the last unfinished item of the outermost level, else at the end, in the list's own style.
    Raises ListError if the title has no words, or no place can be found where it would be an item.
    """
    title = _harmless(title)
    if not title:
        raise ListError("There is no title to add", kept="The list is as it was", do="Name the work in a few words")
    reading = read(text)
    lines = _lines(text)
    ending = next((ending for line in lines if (ending := _split(line)[1])), "\n")
    places = [_after_last_item(reading, lines)] if reading.titles else []
    for at, marker in [*places, (len(lines), "- "), (0, "- ")]:
        before, after = "".join(lines[:at]), "".join(lines[at:])
        if not at and after.startswith("\ufeff"):
            before, after = "\ufeff", after[1:]
        if at and not before.endswith(("\n", "\r")):
            before += ending
        if not reading.titles and before.strip() and not before.endswith(("\n\n", "\r\r", "\n\r\n")):
            before += ending
        line = len(_lines(before)) + 1 if at else 1
        changed = f"{before}{marker}[ ] {title}{ending}{after}"
        found = parse(changed)
        others = [entry.title for entry in found if entry.line != line]
        if others == reading.titles and len(found) > len(others):
            return changed, line
    raise ListError("No place for another item was found", kept="The list is as it was", do="Add it by hand")


def append_timed(text: str, line: str) -> tuple[str, int]:
    """The text with one more timed look or promise (see `work.promises.line_of`), and its line.

    It comes after the last one there is, else at the end. Raises ListError if no place can be found
    where it would be one and every item stays as it is.
    """
    lines = _lines(text)
    ending = next((ending for one in lines if (ending := _split(one)[1])), "\n")
    known = promises.bullets(text)
    items = parse(text)
    for at in dict.fromkeys([*known[-1:], len(lines), 0]):
        before, after = "".join(lines[:at]), "".join(lines[at:])
        if not at and after.startswith("\ufeff"):
            before, after = "\ufeff", after[1:]
        if at and not before.endswith(("\n", "\r")):
            before += ending
        if at and not known and lines[at - 1].strip():
            before += ending
        number = len(_lines(before)) + 1 if at else 1
        changed = f"{before}{line}{ending}{after}"
        found = parse(changed)
        as_before = [entry.replace(line=0) for entry in found] == [entry.replace(line=0) for entry in items]
        if as_before and number in promises.bullets(changed):
            return changed, number
    raise ListError("No place for a timed line was found", kept="The list is as it was", do="Write it by hand")


def mark_handled(text: str, line: int) -> str:
    """The text with the timed look or promise of that line (1-based) as looked at or kept. Raises ListError."""
    if line not in promises.bullets(text):
        raise ListError(f"Line {line} holds no timed look or promise", kept="The list is as it was")
    lines = _lines(text)
    one = lines[line - 1]
    start = len(one) - len(one.lstrip(" \t>-*+\ufeff"))
    word = one[start:].split(None, 1)[0].partition(":")[0]
    kind = promises.WORDS[word.lower()][0]
    lines[line - 1] = f"{one[:start]}{promises.HANDLED[kind]}{one[start + len(word) :]}"
    return "".join(lines)


def _lines(text: str) -> list[str]:
    """The lines with their endings, as Markdown counts them."""
    return io.StringIO(text, newline="").readlines()


def _split(line: str) -> tuple[str, str]:
    body = line.rstrip("\r\n")
    return body, line[len(body) :]


def _said_and_tail(said: str) -> tuple[str, str]:
    """An item's text, and the blanks and comments that follow it."""
    end = len(said.rstrip())
    while said[:end].endswith("-->") and (opened := said.rfind("<!--", 0, end)) >= 0:
        end = len(said[:opened].rstrip())
    return said[:end], said[end:]


def _without_suffix_below(lines: list[str], first: int, last: int) -> None:
    """Takes away a `(waits for …)` that ends an item's paragraph below its first line."""
    body, ending = _split("".join(lines[first - 1 : last]))
    start = suffix_at(body.replace("\r", " ").replace("\n", " "))
    if start < 0 or not body[body.index("]") + 1 : start].strip():
        return
    kept = _lines(body[:start].rstrip() + ending)
    lines[first - 1 : last] = kept + [""] * (last - first + 1 - len(kept))


def _because(why: str) -> str:
    why = one_line(why).replace("<!--", "<! --").replace("-->", "-- >")
    depth = 0
    for char in why:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth < 0:
            break
    if depth or "(wait" in why.lower():
        why = why.replace("(", "[").replace(")", "]")
    return f": {why}" if why else ""


def _harmless(title: str) -> str:
    """A title that a list gives back as it is: not struck through, with no comment in it."""
    title = one_line(title).replace("<!--", "<! --")
    while struck(title):
        title = title[2:-2].strip()
    return one_line(title)


def _after_last_item(reading: Reading, lines: list[str]) -> tuple[int, str]:
    """After how many lines, and with what before the box, another item follows the last unfinished one."""
    top = [at for at, parent in enumerate(reading.parents) if parent < 0]
    unfinished = [at for at in top if reading.states[at] in ("open", "doing")]
    anchor = (unfinished or top)[-1]
    line = lines[reading.lines[anchor] - 1].removeprefix("\ufeff")
    marker = line[: line.index("[")]
    indent = _indent(marker)
    end = reading.last_lines.get(anchor, reading.lines[anchor])
    for at in range(end, len(lines)):  # what is indented further belongs to it, also after a blank line
        if lines[at].strip():
            if _indent(lines[at]) <= indent:
                break
            end = at + 1
    return end, _next_marker(marker, reading, lines, top, top.index(anchor))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _next_marker(marker: str, reading: Reading, lines: list[str], top: list[int], place: int) -> str:
    """The same marker, or the next number; where all have one number, that number again."""
    digits = "".join(char for char in marker if char.isdigit())
    earlier = lines[reading.lines[top[place - 1]] - 1] if place else ""
    if not digits or earlier.startswith(marker):
        return marker
    return marker.replace(digits, str(int(digits) + 1), 1)
