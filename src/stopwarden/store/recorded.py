"""Recorded stops as lines of a file: what `stopwarden export` and `replay` write, and `replay` reads again.

One line is one stop with its verdict, whole by itself: one JSON object in ASCII,

    {"stopwarden": "stop", "v": 1, "id": 41, "at": 1796072400, "session": "7e15…", "period": "p1", "nonce": "…",
     "kind": "block", "rule": "away.owed_changed", "body": {…}, "texts": {"<digest>": "…"}}

`body` is the journal's record as `store.journal` wrote it; a body that is no JSON object is a
string, as it stands in the database. `texts` holds every text that the body names by digest, so no
database is needed to judge the line again. Lines know nothing of each other: files may be joined,
cut and filtered with any tool. An object whose `stopwarden` is another word is a line of another
kind (an export has several) and is passed over; whatever else is not such a line is an error that
names its number. What a body says is understood by `journal.decode`, not here.
"""

from __future__ import annotations

from stopwarden.core.errors import StopwardenError, StoreCorruptError, StoreNewerError
from stopwarden.core.record import Record
from stopwarden.store.port import VerdictRow
from stopwarden.wire import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any, BinaryIO

    from stopwarden.core.bounds import Policy
    from stopwarden.core.events import SessionState, Stop, Verdict, World
    from stopwarden.store.port import Store

FORMAT = 1
KIND = "stop"
LINE_MAX = 64 * 1024 * 1024  # bytes; a stop judged with 50,000 long titles takes a sixth of it
ROWS_MAX = 1_000_000  # entries of one table; a body of a few bytes could else ask for all memory
AT_MAX = 2**33  # the year 2242
_LARGEST = 2**63 - 1
_WORDS = ("session", "period", "nonce", "kind", "rule")


class RecordedStop(Record):
    """One line read: the verdict's row, and the texts that its body names."""

    line: int  # 1-based, in the file it was read from
    row: VerdictRow
    texts: Mapping[str, str]

    def snapshot(self, digest: str) -> str:
        """The text with this digest. Raises KeyError where the line does not hold it."""
        return self.texts[digest]

    def decoded(self) -> tuple[Stop, SessionState, World, Policy, Verdict]:
        """The five values of the verdict. Raises StoreCorruptError where the body cannot be read."""
        from stopwarden.store import journal

        return journal.decode(self.row.body, self.snapshot)


class UnreadLine(Record):
    """A line that is no recorded stop, and what is wrong with it."""

    line: int
    error: StopwardenError


def write_stops(store: Store, rows: Iterable[VerdictRow]) -> Iterator[str]:
    """A line without its line feed for each verdict, in the order given.

    A text that the store no longer holds is left out, so that reading the line says what is
    missing. Raises the Store…Error classes.
    """
    for row in rows:
        yield line_of(row, store.snapshot)


def line_of(row: VerdictRow, snapshot: Callable[[str], str]) -> str:
    """One verdict as a line; `snapshot` gives a kept text by its digest, "" where it is gone."""
    try:
        body = loads(row.body)
    except ValueError:
        body = None
    named = dict.fromkeys(_digests(body))
    texts = {digest: text for digest in named if (text := snapshot(digest))}
    written = body if isinstance(body, dict) else row.body
    return dumps(
        {
            "stopwarden": KIND,
            "v": FORMAT,
            "id": row.id,
            "at": row.at,
            **{word: getattr(row, word) for word in _WORDS},
            "body": written,
            "texts": texts,
        }
    )


def read_stops(
    lines: Iterable[str | bytes], unread: Callable[[UnreadLine], None] | None = None
) -> Iterator[RecordedStop]:
    """The stops that these lines hold. Empty lines and lines of other kinds are passed over.

    A line that cannot be read is handed to `unread`, and the others are read all the same. Without
    `unread` it raises: StoreCorruptError for a torn or foreign line, StoreNewerError for a newer format.
    """
    for number, line in enumerate(lines, 1):
        try:
            stop = _stop(number, line)
        except StopwardenError as error:
            if unread is None:
                raise
            unread(UnreadLine(line=number, error=error))
            continue
        if stop is not None:
            yield stop


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one longer than `LINE_MAX` only the beginning, so that it is told and not kept."""
    while line := file.readline(LINE_MAX + 1):
        if len(line) > LINE_MAX and not line.endswith(b"\n"):
            while (rest := file.readline(LINE_MAX)) and not rest.endswith(b"\n"):
                continue
        yield line


def _stop(number: int, line: str | bytes) -> RecordedStop | None:
    if len(line) > LINE_MAX:
        raise _foreign(number, f"it is longer than {LINE_MAX // 1024 // 1024} MiB")
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    if not text.strip("\ufeff \t\r\n\0"):
        return None
    try:
        told = loads(text)
    except ValueError as wrong:
        ends_early = text.lstrip("\ufeff \t").startswith("{") and not text.rstrip().endswith("}")
        raise _foreign(number, "it ends early, the file was cut off there" if ends_early else str(wrong)) from None
    if not isinstance(told, dict) or not isinstance(told.get("stopwarden"), str):
        raise _foreign(number, "it is JSON of another program")
    if told["stopwarden"] != KIND:
        return None
    version = told.get("v", 0)
    if not _is_number(version) or version < 1:
        raise _foreign(number, "it does not say its format")
    if version > FORMAT:
        raise StoreNewerError(
            f"Line {number} has format {version}; this Stopwarden reads {FORMAT}",
            kept="The file was left as it is",
            do="Use the Stopwarden that wrote it, or a newer one",
        )
    return RecordedStop(line=number, row=_row(number, told), texts=_texts(number, told))


def _row(number: int, told: dict[str, Any]) -> VerdictRow:
    for name in ("id", "at"):
        if not _is_number(told.get(name)):
            raise _foreign(number, f"its {name} is no number")
    if not 0 <= told["at"] <= AT_MAX:
        raise _foreign(number, "it is of no time of this age")
    for word in _WORDS:
        if not isinstance(told.get(word), str):
            raise _foreign(number, f"its {word} is no text")
    body = told.get("body")
    if isinstance(body, dict):
        _check_tables(number, body)
        body = dumps(body)
    elif not isinstance(body, str):
        raise _foreign(number, "it holds no body")
    return VerdictRow(id=told["id"], at=told["at"], body=body, **{word: told[word] for word in _WORDS})


def _texts(number: int, told: dict[str, Any]) -> dict[str, str]:
    texts = told.get("texts")
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise _foreign(number, "its texts are no texts")
    return texts


def _check_tables(number: int, value: Any) -> None:
    """No table claims more rows than any list of work can have."""
    if isinstance(value, dict):
        rows = value.get("rows", 0)
        if not _is_number(rows) or not 0 <= rows <= ROWS_MAX:
            raise _foreign(number, "one of its tables has an impossible length")
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_tables(number, part)


def _digests(value: Any) -> Iterator[str]:
    """Every digest that a body names, in the order it names them."""
    if isinstance(value, dict):
        for name in ("lines", "snapshot"):
            if isinstance(value.get(name), str):
                yield value[name]
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _digests(part)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value <= _LARGEST


def _foreign(number: int, why: str) -> StoreCorruptError:
    return StoreCorruptError(
        f"Line {number} is no recorded stop: {why}",
        kept="The file was left as it is",
        do="Write it again with `stopwarden replay --write FILE`",
    )
