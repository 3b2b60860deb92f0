"""Real providers' wires against a scripted server: the send boundary, refusals and breaks, in each format."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from stopwarden.core.errors import ModelBrokenError, ModelRefusedError, SettingError
from stopwarden.models.choice import choose
from stopwarden.models.port import Call, Ended, Image, Message, Request, Result, Text, ToolSpec, Words
from stopwarden.sim.scripted_model import Reply, ScriptedModel, Tool

if TYPE_CHECKING:
    from stopwarden.models.port import Model, ModelEvent

NAMES = ("anthropic:m", "openai:m", "responses:m", "google:m")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
ASKED = Request(
    system="Be brief.",
    messages=(
        Message(role="user", parts=(Text(text="Look at this."), Image(data=b"\x89PNG", media_type="image/png"))),
        Message(role="assistant", parts=(Text(text="I look."), Call(id="c1", name="t", arguments='{"a":1}'))),
        Message(role="user", parts=(Result(call="c1", name="t", text="it was a cat"),)),
    ),
    tools=(ToolSpec(name="t", description="Does it.", schema=SCHEMA),),
)


def env(model: ScriptedModel) -> dict[str, str]:
    """Every provider's base address is the scripted server."""
    return {
        "ANTHROPIC_API_KEY": "dummy",
        "OPENAI_API_KEY": "dummy",
        "GOOGLE_API_KEY": "dummy",
        "ANTHROPIC_BASE_URL": model.url,
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "GOOGLE_BASE_URL": model.url,
    }


async def answered(model: Model, into: list[ModelEvent] | None = None) -> list[ModelEvent]:
    """The events of one request; the connections are closed whatever comes of it."""
    events = into if into is not None else []
    try:
        async for event in model.stream(ASKED):
            events.append(event)
    finally:
        await model.close()
    return events


def ask(name: str, reply: Reply) -> tuple[list[ModelEvent], Any]:
    """The events of one request, and what the server was sent."""

    async def all_of(model: ScriptedModel) -> list[ModelEvent]:
        return await answered(choose(name, env(model)))

    with ScriptedModel(lambda _: reply) as model:
        events = asyncio.run(all_of(model))
        return events, model.requests[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_begins_is_said_and_ends_with_its_calls_and_usage(name: str) -> None:
    """Words as they come, then the whole message; what was sent holds every part of the conversation."""
    events, sent = ask(name, Reply(text="It is a cat.", tools=(Tool("t", {"a": 2}),), input_tokens=90, output_tokens=8))
    assert [type(event).__name__ for event in events] == ["Began", "Words", "Ended"]
    assert events[1] == Words(text="It is a cat.")
    ended = events[-1]
    assert isinstance(ended, Ended)
    words, call = ended.message.parts
    assert isinstance(call, Call)
    assert (words, call.name, json.loads(call.arguments)) == (Text(text="It is a cat."), "t", {"a": 2})
    assert (ended.usage.input, ended.usage.output, ended.why) == (90, 8, "stop")
    for said in ("Be brief.", "Look at this.", "iVBORw==", "I look.", "it was a cat", "Does it."):
        assert said in sent.raw, said


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("reply", "why", "after"),
    [
        (Reply(status=429, text="slow down", headers={"retry-after": "7"}), "rate_limit", 7.0),
        (Reply(status=529, text="busy", error_type="overloaded_error"), "overloaded", None),
        (Reply(status=400, text="prompt is too long: 300000 tokens"), "too_long", None),
        (Reply(status=401, text="bad key", error_type="authentication_error"), "access", None),
        (Reply(status=500, text="broken", error_type="api_error"), "error", None),
        (Reply(text="never sent", breaks=0), "network", None),
    ],
)
def test_an_error_before_the_first_event_is_a_refusal(name: str, reply: Reply, why: str, after: float | None) -> None:
    """Asked once, told once: the SDKs below repeat nothing behind our back."""
    with ScriptedModel(lambda _: reply) as model:
        events: list[ModelEvent] = []
        with pytest.raises(ModelRefusedError) as refused:
            asyncio.run(answered(choose(name, env(model)), events))
        assert not events
        assert (refused.value.why, refused.value.retry_after) == (why, after)
        assert len(model.requests) == 1


@pytest.mark.parametrize("name", ["anthropic:m", "openai:m", "responses:m"])
def test_an_error_in_mid_stream_is_a_break(name: str) -> None:
    """After the first event a connection that ends early leaves what was sent in the conversation."""
    with ScriptedModel(lambda _: Reply(text="half of it", breaks=2)) as model:
        began: list[ModelEvent] = []
        with pytest.raises(ModelBrokenError):
            asyncio.run(answered(choose(name, env(model)), began))
        assert began


async def count(model: Model) -> int:
    try:
        return await model.count_tokens(ASKED)
    finally:
        await model.close()


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_counted_or_estimated_never_too_low(name: str) -> None:
    with ScriptedModel(lambda _: "ok") as model:
        counted = asyncio.run(count(choose(name, env(model))))
    assert counted >= 60


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("claude", {}, "There is no model"),
        ("anthropic:", {"ANTHROPIC_API_KEY": "k"}, "There is no model"),
        ("openai:m", {}, "needs a key"),
        ("openai:m@many", {"OPENAI_API_KEY": "k"}, "no number of tokens"),
    ],
)
def test_a_name_that_names_no_model_is_refused(name: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        choose(name, given)


def test_without_a_key_the_offline_model_says_so() -> None:
    """And with one, its provider is taken; a local server needs none."""
    assert choose("", {}).name == "offline"
    assert choose("", {"GOOGLE_API_KEY": "k"}).name.startswith("google:")
    assert choose("openai:qwen3@32768", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}).window == 32_768
