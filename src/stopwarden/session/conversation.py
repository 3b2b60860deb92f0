"""What a session's model has been told: entries in order, each committed, or staged for one send.

The turn machine names content by ids; here the ids have words. An entry is staged before a send,
committed when the provider has answered, or taken back by its id, so nothing that was not sent is ever
in a later request: the guard's instruction lives in staged entries alone and becomes history only with
its stream. A request is made from the entries each time; whatever a provider would refuse (a call
without a result, a result without its call) is put right there, in the request, never in the entries.

May not live here: the store, the model, any decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwarden.models.port import Call, Message, Request, Result, Text
from stopwarden.session.waiting import gap_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stopwarden.core.gaps import Gap
    from stopwarden.core.turn_events import Part
    from stopwarden.models.port import Said, ToolSpec

LOST = (
    "The result of this call was lost: the session ended before it was there. Look at what it did before you repeat it."
)


@dataclass
class Entry:
    """One entry. `role` is who speaks to whom: replies are the assistant's, all else the user's side."""

    id: str
    parts: tuple[Part, ...]
    staged: bool = False

    @property
    def is_reply(self) -> bool:
        return any(part.kind == "reply" for part in self.parts)


class Conversation:
    """The entries of one session and the words behind the names of their parts."""

    def __init__(self, entries: Iterable[Entry] = (), words: Iterable[tuple[str, tuple[Said, ...]]] = ()) -> None:
        self._entries: dict[str, Entry] = {entry.id: entry for entry in entries}
        self._words: dict[str, tuple[Said, ...]] = dict(words)
        self._gaps: dict[str, tuple[Said, ...]] = {}

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries, oldest first."""
        return tuple(self._entries.values())

    @property
    def names(self) -> Sequence[str]:
        """The names of all parts whose words are known."""
        return tuple(self._words)

    def put(self, name: str, *said: Said) -> None:
        """The words of a part. A name keeps its first words: told twice, it is the same thing."""
        self._words.setdefault(name, said)

    def put_gap(self, gap: Gap) -> None:
        """The words that name a result which was left out; the result's own words have its id."""
        self._gaps.setdefault(gap.id, (gap_words(gap),))

    def words(self, part: Part) -> tuple[Said, ...]:
        """What a part says. Our own words are in the part; a part nobody put says nothing."""
        if part.kind == "gap":
            return self._gaps.get(part.id, ())
        return (Text(text=part.text),) if part.text else self._words.get(part.id, ())

    def stage(self, entry: str, parts: tuple[Part, ...]) -> None:
        """An entry that is about to be sent."""
        self._entries[entry] = Entry(id=entry, parts=parts, staged=True)

    def commit(self, entry: str) -> None:
        """The provider has answered: the entry stays."""
        self._entries[entry].staged = False

    def roll_back(self, entry: str) -> None:
        """The entry was not sent."""
        self._entries.pop(entry, None)

    def append(self, entry: str, parts: tuple[Part, ...]) -> None:
        """An entry that was not, or need not be, sent: a reply, or words that are kept for the next request."""
        self._entries[entry] = Entry(id=entry, parts=parts)

    def replace_before(self, entry: str, parts: tuple[Part, ...], *, name: str) -> None:
        """Compression: all entries before `entry` become one. Raises KeyError for an entry that is not there."""
        names = list(self._entries)
        gone = set(names[: names.index(entry)])
        kept = {one: self._entries[one] for one in names if one not in gone}
        self._entries = {name: Entry(id=name, parts=parts), **kept}

    def request(self, system: str, tools: Sequence[ToolSpec], *, sending: str = "") -> Request:
        """All committed entries and the staged one that is being sent, as a provider takes them."""
        spoken: list[Message] = []
        for entry in self._entries.values():
            if entry.staged and entry.id != sending:
                continue
            said = tuple(word for part in entry.parts for word in self.words(part))
            if said:
                spoken.append(Message(role="assistant" if entry.is_reply else "user", parts=said))
        return Request(system=system, messages=tuple(_put_right(_joined(spoken))), tools=tuple(tools))


def _joined(spoken: Iterable[Message]) -> list[Message]:
    """Providers want the two sides in turns: what one side says in a row is one message."""
    joined: list[Message] = []
    for message in spoken:
        if joined and joined[-1].role == message.role:
            joined[-1] = joined[-1].replace(parts=joined[-1].parts + message.parts)
        else:
            joined.append(message)
    return joined


def _put_right(messages: Sequence[Message]) -> list[Message]:
    """Every call gets exactly one result, right after it; results that belong to no call are told as words."""
    right: list[Message] = []
    owed: tuple[Call, ...] = ()
    for message in messages:
        if message.role == "assistant":
            if owed:
                right.append(Message(role="user", parts=tuple(_lost(call) for call in owed)))
            owed = tuple(part for part in message.parts if isinstance(part, Call))
            right.append(message)
            continue
        given = {part.call: part for part in reversed(message.parts) if isinstance(part, Result)}
        results = tuple(given.get(call.id) or _lost(call) for call in owed)
        names = {call.id for call in owed}
        rest = tuple(
            Text(text=f"Result of {part.name}: {part.text}") if isinstance(part, Result) else part
            for part in message.parts
            if not (isinstance(part, Result) and part.call in names)
        )
        right.append(message.replace(parts=results + rest))
        owed = ()
    if owed:
        right.append(Message(role="user", parts=tuple(_lost(call) for call in owed)))
    return right


def _lost(call: Call) -> Result:
    return Result(call=call.id, name=call.name, text=LOST, failed=True)
