"""What a line of a told history says, in plain words: what each machine heard, and what it asked for then.

One row a kind of event or effect; `{field}` stands for that field's value, and what a field holds of ids is
listed by its ids. A kind without a row is told by its name and fields. May not live here: the order of lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopwarden.core.record import Record

WORDS: Mapping[str, str] = {
    # to the session
    "PromptOffered": "prompt {prompt} is here",
    "WriterAdmitted": "the writer for the prompt is admitted: {granted}",
    "PromptWithdrawn": "whoever sent {prompt} went away",
    "PromptQueuedSeen": "a prompt waits in the queue",
    "QueueReleased": "nobody waits any more for whom {owner} gave way",
    "ModeChanged": "plan mode is on: {plan}",
    "TodoWritten": "turn {turn} writes a list, items open: {todos}",
    "BackgroundChanged": "background work is now {tasks}",
    "ResultArrived": "background work tells {result}",
    "FireArrived": "the schedule fires {fire}",
    "SwitchSet": "the guard is switched {switch}",
    "Rewound": "history is taken back",
    "Cancelled": "the person cancels",
    "Disposed": "the session is put away",
    "GateTaken": "somebody closes the session",
    "GateReleased": "the session is open again",
    "Tick": "the clock says {now} ms",
    "DrainAnswered": "drain {id} brings {parts}; a prompt is queued: {hint}; reliable: {reliable}",
    "ClaimAnswered": "claim {id} is answered: granted {claimed}, a prompt is queued {queued}",
    "HookAnswered": "the Stop hooks answer: block {block}",
    "ModelChosen": "the model is {model}",
    "CompressionDone": "there is room",
    "CompressionFailed": "no room could be made",
    "TokensChecked": "it fits: {fits}",
    "ProviderAccepted": "the provider begins stream {id}",
    "ProviderRefused": "the provider refuses stream {id}",
    "StreamEnded": "stream {id} ends with {reply}, tools to call: {calls}",
    "StreamBroken": "stream {id} breaks",
    "ToolsDone": "the tools are done: {parts}; stopped by: {stop}",
    "MessageSending": "message {send} goes to agent {agent}",
    "MessageSettled": "message {send} was delivered: {succeeded}",
    "Spawned": "the chain has made agent {agent}",
    "GapsShown": "the person was shown {ids}: {done}",
    "PersonLooks": "the person looks",
    # from the session
    "AdmitWriter": "asks for the writer for {prompt}",
    "Refuse": "refuses {prompt}: {why}",
    "Abort": "cuts {of} short: {why}",
    "Drain": "asks what was said meanwhile (drain {id}, for {owner})",
    "Claim": "claims the next place in order (claim {id}, for {owner}; only to know: {probe})",
    "RunHooks": "asks the Stop hooks",
    "ChooseModel": "asks for a model that sees {parts}",
    "Compress": "asks for room",
    "CheckTokens": "asks whether {parts} fit",
    "Send": "SENDS {parts} as {entry}, attempt of the guard: {attempt}",
    "RunTools": "runs {calls}",
    "WriteHistory": "writes history, {act} {entry}: {parts}",
    "HoldWords": "keeps the words {parts}",
    "Tell": "tells people: {kind}",
    "BeginTurn": "begins turn {turn} ({kind})",
    "EndTurn": "ENDS turn {turn} as {kind} ({rule}, {why})",
    "Pass": "passes on: {what}",
    "GuardChanged": "the guard is {state}, was {was} ({cause})",
    "PriorityChanged": "first comes the prompt that {owner} gave way to",
    "AttemptCounted": "attempt {attempt} of {cap} is counted",
    "ClaimSettled": "claim {id} comes to {outcome} {why}",
    "ReleaseAnswered": "the release of {owner} was waited for: {released}",
    "Keep": "kept in the store: {item}",
    "Settle": "{ids} {how}",
    "LeftOut": "left out: {ids}",
    "OpenGap": "a gap entry for {gap}",
    "ShowGaps": "the person is to be shown {gaps}",
    "MarkTold": "told to the {to}: {ids}",
    # to the owner's queue
    "Admit": "{client} sends prompt {prompt}, as a retry or continue: {asks}",
    "RemovePrompt": "{client} takes {prompt} out",
    "CancelRunning": "{client} cancels what runs",
    "ListPending": "{client} asks what waits",
    "PostMessage": "{client} says {message}",
    "RemoveMessage": "{client} takes {message} back",
    "ClientJoined": "{client} comes",
    "ClientLeft": "{client} goes",
    "AskClaim": "claim {request} of {prompt}",
    "AskDrain": "drain {request} of {prompt}",
    "ChildCame": "agent process {child} comes",
    "ChildGone": "agent process {child} is gone",
    "PromptSettled": "the turn of run {effect} is over: {outcome}",
    "CancelForwarded": "the agent has taken cancel {effect}",
    "MessagesResolved": "attachments are read; not readable: {failed}",
    "TimerFired": "timer {effect} runs out",
    # from the owner's queue
    "RunPrompt": "gives {prompt} to the agent (run {id}), with {carried}",
    "ForwardCancel": "tells the agent to cancel {target} (cancel {id})",
    "SendRelease": "tells {owner} that nobody waits any more",
    "CutStopHook": "tells {owner} that a prompt waits",
    "ResolveMessages": "reads the attachments of {messages}",
    "AnswerAdmission": "{prompt} is taken: {status}",
    "AnswerClaim": "claim {request}: granted {claimed}, a prompt is queued {has_queued_prompt} ({rule})",
    "AnswerDrain": "drain {request}: {messages}, a prompt is queued {has_queued_prompt} ({rule})",
    "AnswerDone": "done: {rule}",
    "AnswerMessage": "the message is taken: {accepted}",
    "Emit": "shows clients {told}, {prompt}",
}


def plain(record: Record) -> str:
    """One event or effect in words."""
    kind = type(record).__name__
    fields = record.as_dict()
    try:
        return WORDS[kind].format_map({name: _value(value) for name, value in fields.items()}).rstrip()
    except KeyError:  # no row, or one for another kind of this name
        said = {name: value for name, value in fields.items() if value not in (None, "", (), False)}
        return " ".join([kind, *(f"{name}={_value(value)}" for name, value in said.items())])


def _value(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(_value, value)) or "nothing"
    fields = getattr(type(value), "fields", None)
    if fields is None:
        return str(value) or "-"
    if hasattr(value, "unfinished") and "items" in fields:
        return str(value.unfinished)
    for name in ("id", "message", "prompt"):
        if name in fields and type(value).__name__ not in WORDS:
            return str(getattr(value, name))
    return plain(value)  # type: ignore[arg-type]
