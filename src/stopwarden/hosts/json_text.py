"""Edits inside a JSON text that leave every other character where it was.

A person's settings file is theirs: its key order, indentation, line ends, a compact array in the
middle of an indented file, a number written `1.0e3`. Reading it into a dict and writing it out
again would change all that, so an edit here is an insertion into the text or a removal from it. New
parts follow the style around them.

Pure: text in, text out. May not live here: files, what the settings mean.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stopwarden.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

BLANK = " \t\r\n"
PLAIN_INDENT = "  "


@dataclass(frozen=True)
class Part:
    """A value and where it stands in the text. `key` and `key_start` are those of an object's member."""

    value: Any
    start: int
    end: int
    parts: tuple[Part, ...] = ()  # of an object or an array
    key: str = ""
    key_start: int = -1

    @property
    def begins(self) -> int:
        """Where it begins as a part of its container: at its key, if it has one."""
        return self.key_start if self.key_start >= 0 else self.start

    def member(self, key: str) -> Part | None:
        """The member of an object with this key; of several the last, which is the one that counts."""
        return next((part for part in reversed(self.parts) if part.key_start >= 0 and part.key == key), None)

    def at(self, path: Sequence[str | int]) -> Part | None:
        """The part at a path of keys and indexes."""
        part: Part | None = self
        for step in path:
            if part is None:
                return None
            if isinstance(step, str):
                part = part.member(step)
            else:
                part = part.parts[step] if isinstance(part.value, list) and step < len(part.parts) else None
        return part


def parse(text: str) -> Part:
    """The whole text as a part. Raises HostError (naming line and column) for what is no JSON."""
    try:
        root, end = _Reader(text).value(_skip(text, 1 if text.startswith("\ufeff") else 0))
        if _skip(text, end) != len(text):
            raise json.JSONDecodeError("more after the end", text, _skip(text, end))
    except json.JSONDecodeError as wrong:
        raise HostError(f"not JSON at line {wrong.lineno}, column {wrong.colno} ({wrong.msg})") from None
    except RecursionError:
        raise HostError("nested too deeply") from None
    return root


def insert(text: str, path: Sequence[str | int], value: Any, *, key: str | None = None, one_line: bool = False) -> str:
    """The text with a value added at the end of the container at `path`: under `key`, or to an array.

    The value is laid out as the container is, or in one line.
    Raises HostError where there is no such container or the key is already there.
    """
    container = parse(text).at(path)
    if container is None or not isinstance(container.value, dict if key is not None else list):
        raise HostError(f"{_shown(path)} is no {'object' if key is not None else 'list'}")
    if key is not None and container.member(key) is not None:
        raise HostError(f"{_shown([*path, key])} is there already")
    style = _Style.of(text, container)
    added = style.rendered(value, key, one_line=one_line)
    if not container.parts:
        inside = f"{style.newline}{style.inner}{added}{style.newline}{style.outer}" if style.lines else added
        return text[: container.start + 1] + inside + text[container.end - 1 :]
    last = container.parts[-1].end
    between = f",{style.newline}{style.inner}" if style.lines else style.comma
    return text[:last] + between + added + text[last:]


def remove(text: str, path: Sequence[str | int]) -> str:
    """The text without the part at `path` and the comma that went with it. Raises HostError if it is not there."""
    root = parse(text)
    container, part = root.at(path[:-1]), root.at(path)
    if container is None or part is None:
        raise HostError(f"{_shown(path)} is not there")
    place = container.parts.index(part)
    if len(container.parts) == 1:
        start, end = container.start + 1, container.end - 1
    elif place + 1 < len(container.parts):
        start, end = part.begins, container.parts[place + 1].begins
    else:
        start, end = container.parts[place - 1].end, part.end
    return text[:start] + text[end:]


@dataclass(frozen=True)
class _Style:
    """How a container is laid out: on lines of its own with these indents, or in one line."""

    lines: bool
    newline: str
    unit: str
    outer: str  # the indent of the container's closing bracket
    comma: str
    colon: str

    @property
    def inner(self) -> str:
        return self.outer + self.unit

    @classmethod
    def of(cls, text: str, container: Part) -> _Style:
        newline = "\r\n" if "\r\n" in text else "\n"
        root = parse(text)
        unit = PLAIN_INDENT
        indented = bool(root.parts) and "\n" in text[root.start : root.parts[0].begins]
        if indented:
            unit = _indent(text, root.parts[0].begins)[len(_indent(text, root.end - 1)) :]
        loose = root.parts == () or text[root.parts[0].begins : root.end].find(": ") >= 0 or indented
        if container.parts:
            lines = "\n" in text[container.start : container.parts[0].begins]
            inner = _indent(text, container.parts[0].begins) if lines else ""
            outer = (
                inner[: len(inner) - len(unit)]
                if lines and inner.endswith(unit)
                else _line_indent(text, container.start)
            )
            unit = inner[len(outer) :] if lines else unit
        else:
            lines = indented or not root.parts
            outer = _line_indent(text, container.start)
        return cls(lines, newline, unit, outer, ", " if loose else ",", ": " if loose else ":")

    def rendered(self, value: Any, key: str | None, *, one_line: bool) -> str:
        lines = self.lines and not one_line
        separators = (",", self.colon) if lines else (self.comma, self.colon)
        text = json.dumps(value, ensure_ascii=False, indent=self.unit if lines else None, separators=separators)
        if lines:
            text = text.replace("\n", self.newline + self.inner)
        return text if key is None else json.dumps(key, ensure_ascii=False) + self.colon + text


class _Reader:
    """A JSON reader that keeps positions; strings, numbers and words are left to the standard library."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = json.JSONDecoder(parse_constant=self._no_constant)

    def _no_constant(self, name: str) -> Any:
        raise json.JSONDecodeError(f"{name} is no JSON value", self.text, self.text.find(name))

    def value(self, start: int, key: str = "", key_start: int = -1) -> tuple[Part, int]:
        opener = self.text[start : start + 1]
        if opener in ("{", "["):
            return self._container(start, key, key_start, "}" if opener == "{" else "]")
        value, end = self.plain.raw_decode(self.text, start)
        return Part(value, start, end, key=key, key_start=key_start), end

    def _container(self, start: int, key: str, key_start: int, closer: str) -> tuple[Part, int]:
        text, parts = self.text, list[Part]()
        at = _skip(text, start + 1)
        while text[at : at + 1] != closer or parts:
            part, at = self._member(at) if closer == "}" else self.value(at)
            parts.append(part)
            at = _skip(text, at)
            if text[at : at + 1] == closer:
                break
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError(f"expecting ',' or '{closer}'", text, at)
            at = _skip(text, at + 1)
        value = {part.key: part.value for part in parts} if closer == "}" else [part.value for part in parts]
        return Part(value, start, at + 1, tuple(parts), key, key_start), at + 1

    def _member(self, at: int) -> tuple[Part, int]:
        if self.text[at : at + 1] != '"':
            raise json.JSONDecodeError("expecting a name in double quotes", self.text, at)
        key, end = self.plain.raw_decode(self.text, at)
        colon = _skip(self.text, end)
        if self.text[colon : colon + 1] != ":":
            raise json.JSONDecodeError("expecting ':'", self.text, colon)
        return self.value(_skip(self.text, colon + 1), key, at)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in BLANK:
        at += 1
    return at


def _indent(text: str, at: int) -> str:
    """The blanks between the start of the line and this place; what stands before them is not counted."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[len(line.rstrip(" \t")) :] if line.strip() else line


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _shown(path: Sequence[str | int]) -> str:
    return ".".join(str(step) for step in path) or "the whole file"
