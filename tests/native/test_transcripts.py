"""A session that ended anywhere is loaded again: every word of the person is there, no instruction that was not sent."""

from __future__ import annotations

import asyncio
import pathlib
from typing import TYPE_CHECKING, Any

import pytest

from stopwarden.core.errors import StoreUnwritableError
from stopwarden.core.instruction import MARKER
from stopwarden.models.port import Call, Image, Result, Text
from stopwarden.models.script import Reply, Tool
from stopwarden.session.journal import AGAIN, restored
from stopwarden.store.transcripts import Conversation, MemoryTranscripts, TranscriptLine, open_transcripts
from tests.support.native import ARM, Native, run, told_to

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.store.transcripts import Transcripts


@pytest.fixture(params=["memory", "sqlite"])
def transcripts(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Transcripts:
    """Both keep the same promises."""
    if request.param == "memory":
        return MemoryTranscripts()
    return open_transcripts({"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")})


def test_what_is_written_is_read_back_in_order_and_forgotten_whole(transcripts: Transcripts) -> None:
    transcripts.save(Conversation(id="a", cwd="/x", created_at=1, updated_at=2))
    transcripts.save(Conversation(id="b", cwd="/y", created_at=1, updated_at=3, parent="a"))
    transcripts.save(Conversation(id="a", cwd="/x", created_at=9, updated_at=4, title="later"))
    lines = [TranscriptLine(session="a", at=n, kind="told", body=f'{{"n":{n}}}') for n in range(3)]
    transcripts.write(lines[:2])
    transcripts.write(lines[2:])
    transcripts.write([TranscriptLine(session="b", at=9, kind="told")])
    assert [(one.id, one.created_at) for one in transcripts.conversations()] == [("a", 1), ("b", 1)]
    assert [one.id for one in transcripts.conversations("/y")] == ["b"]
    assert [(line.number, line.at) for line in transcripts.lines("a", after=1)] == [(2, 1), (3, 2)]
    assert transcripts.forget("a")
    assert not transcripts.forget("a")
    assert transcripts.lines("a") == []
    assert len(transcripts.lines("b")) == 1


def test_a_loaded_session_tells_the_model_what_it_was_told_before(transcripts: Transcripts) -> None:
    """The very same messages, and then the new prompt; the list of before arms nothing."""

    async def first() -> list[Any]:
        native = Native([ARM, "I stop.", "Again.", "And again."], transcripts=transcripts)
        await native.say("Do two things.")
        await native.session.close()
        return list(native.model.seen[-1].body["messages"])

    async def second() -> list[Any]:
        native = Native(["Hello again."], transcripts=transcripts)
        assert await native.say("Where were we?") == "done"
        assert not native.kinds("AttemptCounted")
        return list(native.model.seen[-1].body["messages"])

    before, after = run(first()), run(second())
    assert after[: len(before)] == before
    assert [part["text"] for part in after[-1]["content"]] == ["Where were we?"]
    assert after[-2]["content"][0]["text"] == "And again."


def ended_at(transcripts: MemoryTranscripts, number: int) -> Sequence[TranscriptLine]:
    return transcripts.lines("s")[:number]


def test_a_crash_after_any_line_loses_no_word_and_repeats_no_instruction() -> None:
    """The transcript is cut after each line in turn and loaded again."""
    transcripts = MemoryTranscripts()
    shell = Reply(text="I look.", tools=(Tool("shell", {"command": "echo fo'u'nd"}),))

    async def story() -> None:
        native = Native([shell, ARM, "I stop.", "Again.", "And again."], transcripts=transcripts)
        await native.say("Do two things.")

    run(story())
    lines = transcripts.lines("s")
    unsent = False
    for cut in range(1, len(lines) + 1):
        again = restored(lines[:cut])
        spoken = told(again.conversation)
        assert spoken.count("Do two things.") == 1, cut
        ours = spoken.count(MARKER)
        sent = sum(line.kind == "AttemptCounted" for line in lines[:cut])
        assert ours <= sent, f"an instruction that was not counted is in history after line {cut}"
        results = any(line.kind == "results" for line in lines[:cut])
        assert ("found" in spoken) == results, cut
        unsent = unsent or AGAIN in spoken
    assert unsent, "no cut lay between the intent to send and the answer"


def told(conversation: Any) -> str:
    request = conversation.request("", ())
    return "\n".join(str(part) for message in request.messages for part in message.parts)


def test_every_call_gets_a_result_though_the_program_ended_first() -> None:
    """A provider takes no call without one; the model is told that it is lost."""
    transcripts = MemoryTranscripts()

    async def story() -> None:
        native = Native([Reply(tools=(Tool("shell", {"command": "true"}),)), "Done."], transcripts=transcripts)
        await native.say("Run it.")

    run(story())
    lines = transcripts.lines("s")
    cut = next(line.number for line in lines if line.entry.startswith("reply-"))
    messages = restored(lines[:cut]).conversation.request("", ()).messages
    call, result = messages[-2].parts[-1], messages[-1].parts[0]
    assert isinstance(call, Call)
    assert isinstance(result, Result)
    assert result.call == call.id
    assert result.failed
    assert "lost" in result.text


def test_pictures_and_odd_words_survive() -> None:
    transcripts = MemoryTranscripts()
    odd = 'quotes " and \u2028 lines \x7f'

    async def story() -> None:
        native = Native(["I see."], transcripts=transcripts)
        await native.prompts.say(Text(text=odd), Image(data=b"\x00\xff", media_type="image/png"))

    run(story())
    parts = restored(transcripts.lines("s")).conversation.request("", ()).messages[0].parts
    assert parts == (Text(text=odd), Image(data=b"\x00\xff", media_type="image/png"))


class FullDisk(MemoryTranscripts):
    """Takes nothing while it is full."""

    full = False

    def write(self, lines: Sequence[TranscriptLine]) -> None:
        if self.full:
            raise StoreUnwritableError("The disk is full", kept="Nothing was written", do="Make room")
        super().write(lines)


def test_a_full_disk_refuses_the_prompt_with_its_reason_and_the_session_goes_on_later() -> None:
    """Nothing is sent that is not on disk; what happened meanwhile is written once there is room."""
    disk = FullDisk()

    async def story() -> None:
        native = Native(["Hello.", "Hello again."], transcripts=disk)
        assert await native.say("One.") == "done"
        disk.full = True
        with pytest.raises(StoreUnwritableError, match="disk is full"):
            await native.say("Two.")
        assert len(native.model.seen) == 1
        disk.full = False
        assert await native.say("Three.") == "done"
        assert "Three." in told_to(native.model.seen[-1])

    run(story())


def test_a_disk_that_fills_in_a_turn_stops_the_next_request() -> None:
    disk = FullDisk()

    async def story() -> None:
        slow = Reply(text="I wait.", tools=(Tool("shell", {"command": "sleep 0.3; echo late"}),))
        native = Native([slow, "Never sent.", "Here again."], transcripts=disk)
        running = asyncio.ensure_future(native.say("Do two things."))
        await native.until("call")
        disk.full = True
        assert await running == "error"
        assert len(native.model.seen) == 1
        disk.full = False
        assert await native.say("Go on.") == "done"
        kept = told(restored(disk.lines("s")).conversation)
        assert "Do two things." in kept
        assert "late" in kept

    run(story())
