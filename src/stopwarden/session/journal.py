"""A session's transcript: which effects become lines, and how lines become a conversation again.

Each step of the machine that says something durable writes its lines in one transaction before any of
its effects is carried out. So the intent to send is on disk before the send, and a crash at any point
leaves one of few cases, each with its row in `restored`:

    a prompt was offered, and no turn of it began      its words go with the next request
    an entry was staged, and not known to be sent      its words go again, marked; the guard's are dropped, and
                                                       results and fires still wait, so they are delivered anew
    results, fires and gap entries waited              they wait again (`session.waiting`)
    a reply asked for tools, and their results are not there   the calls are told as cut short
    anything else                                      as it was

Words are written once, at their first use. The guard's own events and instructions are lines like any
other, but a restored conversation has an instruction only inside an entry that was committed.
May not live here: the store, what the machine decides.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from stopwarden.core import turn_events as ev
from stopwarden.core.backlog_events import Keep
from stopwarden.core.gaps import Gap
from stopwarden.core.record import Record
from stopwarden.core.turn_state import CARRIED
from stopwarden.models.port import Call, Image, Result, Text, Thought
from stopwarden.session.conversation import Conversation, Entry
from stopwarden.store.transcripts import TranscriptLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stopwarden.models.port import Said

AGAIN = "[Perhaps sent to you before: the program ended while this was on its way.]"


class Restored(Record):
    """What a transcript says of a session that is loaded again."""

    conversation: Conversation
    owed: tuple[str, ...] = ()  # prompts whose words no request has carried yet
    numbered: int = 0  # entries and replies are numbered beyond this


class Journal:
    """Turns what happens in one session into lines."""

    def __init__(self, session: str, write: Callable[[Sequence[TranscriptLine]], None]) -> None:
        self._session, self._write = session, write
        self._written: set[str] = set()

    def known(self, names: Iterable[str]) -> None:
        """Words that are in the transcript already."""
        self._written.update(names)

    def step(self, at: int, turn: str, chain: int, facts: Iterable[Record], conversation: Conversation) -> None:
        """Write what a step says. `at` is milliseconds. Raises the Store…Error classes; then nothing was written."""
        lines: list[TranscriptLine] = []
        new: set[str] = set()
        for fact in facts:
            make = LINES.get(type(fact))
            if make is None:
                continue
            kind, entry, attempt, body, parts = make(fact)
            if kind == "said" and not parts:
                continue
            words = {
                part.id: [_as_json(said) for said in conversation.words(part)]
                for part in parts
                if not part.text and part.kind != "gap" and part.id not in self._written and part.id not in new
            }
            new.update(words)
            body["parts"] = [_part(part) for part in parts]
            if words:
                body["words"] = words
            lines.append(
                TranscriptLine(
                    session=self._session,
                    at=at,
                    kind=kind,
                    entry=entry,
                    turn=turn,
                    chain=chain,
                    attempt=attempt,
                    body=json.dumps(body, ensure_ascii=False, separators=(",", ":")),
                )
            )
        if lines:
            self._write(lines)
            self._written |= new


Made = tuple[str, str, int, dict[str, Any], tuple[ev.Part, ...]]


def _offered(fact: ev.PromptOffered) -> Made:
    prompt = fact.prompt
    return "prompt", prompt.id, 0, {"kind": prompt.kind, "owner": prompt.owner}, prompt.parts


def _refused(fact: ev.Refuse) -> Made:
    return "refused", fact.prompt, 0, {"why": fact.why}, ()


def _drained(fact: ev.DrainAnswered) -> Made:
    return "said", "", 0, {}, fact.parts


def _results(fact: ev.ToolsDone) -> Made:
    return "results", "", 0, {"stop": fact.stop}, fact.parts


def _sent(fact: ev.Send) -> Made:
    return "sent", fact.entry, fact.attempt, {"label": fact.label, "model": fact.model}, ()


def _held(fact: ev.HoldWords) -> Made:
    return "said", "", 0, {}, fact.parts


def _history(fact: ev.WriteHistory) -> Made:
    kinds = {"append": "appended", "stage": "staged", "commit": "committed", "roll_back": "rolled_back"}
    return kinds[fact.act], fact.entry, 0, {}, fact.parts


def _begun(fact: ev.BeginTurn) -> Made:
    return "turn_begun", fact.turn, 0, {"kind": fact.kind}, ()


def _ended(fact: ev.EndTurn) -> Made:
    return "turn_ended", fact.turn, 0, {"kind": fact.kind, "rule": fact.rule, "why": fact.why}, ()


def _told(fact: ev.Tell) -> Made:
    return fact.kind, "", 0, dict(fact.detail), ()


def _passed(fact: ev.Pass) -> Made:
    detail = {name: _plain(value) for name, value in fact.what.as_dict().items()}
    parts = (ev.Part(kind="result", id=fact.what.item.id),) if isinstance(fact.what, Keep) else ()
    return type(fact.what).__name__, "", int(detail.get("attempt") or 0), detail, parts


LINES: Mapping[type[Record], Callable[[Any], Made]] = {
    ev.PromptOffered: _offered,
    ev.Refuse: _refused,
    ev.DrainAnswered: _drained,
    ev.ToolsDone: _results,
    ev.Send: _sent,
    ev.HoldWords: _held,
    ev.WriteHistory: _history,
    ev.BeginTurn: _begun,
    ev.EndTurn: _ended,
    ev.Tell: _told,
    ev.Pass: _passed,
}


# ---- back again


def restored(lines: Iterable[TranscriptLine]) -> Restored:
    """The conversation that these lines tell of, as the model saw it. Lines of an unknown kind are passed over."""
    words: dict[str, tuple[Said, ...]] = {}
    entries: dict[str, Entry] = {}
    owed: dict[str, tuple[ev.Part, ...]] = {}
    gaps: list[Gap] = []
    said: dict[str, ev.Part] = {}  # words of the person that are in no entry yet
    for line in lines:
        body = json.loads(line.body)
        for name, told in body.get("words", {}).items():
            words[name] = tuple(_from_json(one) for one in told)
        parts = tuple(ev.Part(**part) for part in body.get("parts", ()))
        match line.kind:
            case "prompt":
                said.update((part.id, part) for part in parts)
                owed[line.entry] = parts
            case "refused":
                for part in owed.pop(line.entry, ()):
                    said.pop(part.id, None)
            case "said" | "results":
                said.update((part.id, part) for part in parts)
            case "staged":
                entries[line.entry] = Entry(id=line.entry, parts=parts, staged=True)
            case "committed" if line.entry in entries:
                entries[line.entry].staged = False
            case "rolled_back":
                entries.pop(line.entry, None)
            case "appended":
                entries[line.entry] = Entry(id=line.entry, parts=parts)
        if line.kind == "OpenGap":
            gaps.append(Gap(**body["gap"]))
    for entry in [one for one in entries.values() if one.staged]:
        again = tuple(part for part in entry.parts if part.kind not in ("guard", *CARRIED))
        del entries[entry.id]
        if again:
            mark = ev.Part(kind="mark", id=f"{entry.id}-again", text=AGAIN)
            entries[entry.id] = Entry(id=entry.id, parts=(mark, *again))
    told = {part.id for entry in entries.values() for part in entry.parts}
    names = max((int(end) for one in entries if (end := one.rpartition("-")[2]).isdecimal()), default=0)
    late = tuple(part for name, part in said.items() if name not in told)
    if late:
        entries[f"owed-{names + 1}"] = Entry(id=f"owed-{names + 1}", parts=late)
    carried = {part.id for part in late}
    conversation = Conversation(entries.values(), words.items())
    for gap in gaps:
        conversation.put_gap(gap)
    return Restored(
        conversation=conversation,
        owed=tuple(name for name, parts in owed.items() if any(part.id in carried for part in parts)),
        numbered=names + 1,
    )


# ---- words as JSON


def _part(part: ev.Part) -> dict[str, Any]:
    given: dict[str, Any] = {"kind": part.kind, "id": part.id}
    if part.text:
        given["text"] = part.text
    if part.image:
        given["image"] = True
    return given


def _as_json(said: Said) -> dict[str, Any]:
    given = said.as_dict()
    if isinstance(said, Image):
        given["data"] = base64.b64encode(said.data).decode()
    return {"is": type(said).__name__, **given}


KINDS: Mapping[str, type[Said]] = {"Text": Text, "Image": Image, "Thought": Thought, "Call": Call, "Result": Result}


def _from_json(told: dict[str, Any]) -> Said:
    kind = KINDS[told.pop("is")]
    if kind is Image:
        told["data"] = base64.b64decode(told["data"])
    return kind(**told)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return {name: _plain(part) for name, part in value.as_dict().items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [_plain(part) for part in value]
    return value
