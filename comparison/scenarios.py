"""The scenarios: the reference's own list of runs, each as a script for both sides.

The letters are the reference's. `told` is what the person does, `why` the reason of a difference with the
decision that made it; whether there is one is computed from what both sides did.
"""

from __future__ import annotations

from comparison.script import (
    AGENT,
    ARM,
    FINISH,
    HOOK,
    IDLE,
    LOOK,
    MESSAGE,
    REFUSED,
    SAY,
    SHELL,
    SHELLS,
    Ask,
    Cancel,
    Ends,
    Expect,
    Manners,
    Move,
    Plan,
    Release,
    Remove,
    Restart,
    Scenario,
    Speak,
    Step,
)

SEND_BOUNDARY = (
    "Decided: an attempt counts when the provider has begun to answer (send boundary). A refused send costs no "
    "attempt, is not announced, and leaves no instruction in history."
)
OWNERS = "Decided: a client that speaks to the agent itself gets owners and the first-in-first-out queue as well."

TURN = (
    Scenario(
        "A",
        "asks for work; the model writes a list with 2 open items and stops, again and again",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
    ),
    Scenario(
        "B",
        "sends the next prompt while the model's last words stream",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(2, Ask("P2")),),
    ),
    Scenario(
        "C",
        "the same, and takes that prompt out again before the model has ended",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        (Step(2, Ask("P2")), Step(2, Remove("P2"))),
    ),
    Scenario(
        "D",
        "says something while the guard's first attempt streams",
        (ARM,),
        Expect(attempts=(1, 1, 2), ends=("exhausted",), calls=6),
        (Step(3, Speak("S1")),),
    ),
    Scenario(
        "Z",
        "sends the next prompt while the guard's first attempt streams",
        (ARM,),
        Expect(attempts=(1,), ends=("yielded", "done"), calls=4),
        (Step(3, Ask("P2")),),
    ),
    Scenario(
        "E",
        "the provider refuses the guard's first attempt; retries",
        (ARM, SAY, REFUSED),
        Expect(attempts=(1, 2), ends=("error", "exhausted"), calls=6),
        (Step(IDLE, Ask("P2", "retry")),),
        why=SEND_BOUNDARY,
    ),
    Scenario(
        "E2",
        "the same, but goes on with another prompt",
        (ARM, SAY, REFUSED),
        Expect(attempts=(), ends=("error", "done"), calls=4),
        (Step(IDLE, Ask("P2")),),
        why=SEND_BOUNDARY,
    ),
    Scenario(
        "C1",
        "the provider refuses the call after the list was written; lets the turn be continued",
        (ARM, REFUSED),
        Expect(attempts=(1, 2), ends=("error", "exhausted"), calls=5),
        (Step(IDLE, Ask("P2", "continue")),),
    ),
    Scenario(
        "K",
        "the model calls a tool in both attempts",
        (ARM, SAY, LOOK, LOOK),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
    ),
    Scenario(
        "L",
        "the model finishes the list in the first attempt",
        (ARM, SAY, FINISH),
        Expect(attempts=(1, 2), ends=("done",), calls=4),
    ),
    Scenario(
        "F",
        "cancels in the first attempt, then asks for something else",
        (ARM,),
        Expect(attempts=(1,), ends=("cancelled", "done"), calls=4),
        (Step(3, Cancel()), Step(IDLE, Ask("P2"))),
    ),
    Scenario(
        "T",
        "the bridge says that a prompt waits, then, twice, that it is gone; another prompt follows",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(IDLE, Release("P1")), Step(IDLE, Release("P1")), Step(IDLE, Ask("P2"))),
        bridge=Manners(claim="queued"),
    ),
    Scenario(
        "R2",
        "the provider refuses the call after the list was written; the program is started again; retries",
        (ARM, REFUSED),
        Expect(attempts=(), ends=("error", "done"), calls=3),
        (Step(IDLE, Restart()), Step(IDLE, Ask("P2", "retry"))),
    ),
    Scenario(
        "G",
        "enters plan mode while the model's last words stream",
        (ARM,),
        Expect(attempts=(), ends=("plan_mode",), calls=2),
        (Step(2, Plan()),),
    ),
)

HOOKS = (
    Scenario(
        "I1",
        "has a Stop hook, which blocks once",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        hooks=("HOOK1",),
    ),
    Scenario(
        "I2",
        "has a Stop hook, which blocks three times",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=5),
        hooks=("HOOK1", "HOOK2", "HOOK3"),
    ),
    Scenario(
        "I3",
        "sends the next prompt while a slow Stop hook runs, which then blocks",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(HOOK, Ask("P2")),),
        hooks=("HOOK1",),
        why="Decided: a queued prompt cuts a slow Stop hook short.",
    ),
)

BACKGROUND = (
    Scenario(
        "J",
        "the model starts a shell in the background and stops; the shell ends later",
        (ARM, SHELL),
        Expect(attempts=(1, 2), ends=("deferred", "exhausted"), calls=6),
        (Step(IDLE, Ends("shell")),),
    ),
    Scenario(
        "J2",
        "the same, but asks for something else while the shell runs",
        (ARM, SHELL),
        Expect(attempts=(), ends=("deferred", "done", "done"), calls=5),
        (Step(IDLE, Ask("P2")), Step(IDLE, Ends("shell"))),
    ),
    Scenario(
        "AG1",
        "the model starts an agent in the background and stops; the agent ends later",
        (ARM, AGENT),
        Expect(attempts=(1, 2), ends=("deferred", "exhausted"), calls=6),
        (Step(IDLE, Ends("agent")),),
    ),
    Scenario(
        "AG2",
        "an agent of the prompt before still runs when the model stops",
        (AGENT, SAY, ARM),
        Expect(attempts=(1, 2), ends=("done", "exhausted", "exhausted"), calls=7),
        (Step(IDLE, Ask("P2")), Step(IDLE, Ends("agent"))),
    ),
    Scenario(
        "AG3",
        "the same, but the model has sent that agent a message",
        (AGENT, SAY, ARM, MESSAGE),
        Expect(attempts=(1, 2), ends=("done", "deferred", "exhausted"), calls=8),
        (Step(IDLE, Ask("P2")), Step(IDLE, Ends("agent"))),
    ),
)

WAITING = (
    Scenario(
        "P",
        "while the agent waits for a shell; it ends, and a prompt comes in the first attempt of its turn",
        (ARM, SHELL),
        Expect(attempts=(1,), ends=("deferred", "cancelled", "done"), calls=6),
        (Step(IDLE, Ends("shell")), Step(5, Ask("P2"))),
    ),
    Scenario(
        "X",
        "cancels while the agent waits for a shell; the shell ends; then a prompt",
        (ARM, SHELL),
        Expect(attempts=(), ends=("deferred", "done", "done"), calls=5),
        (Step(IDLE, Cancel()), Step(IDLE, Ends("shell")), Step(IDLE, Ask("P2"))),
        patience=5.0,
    ),
    Scenario(
        "O",
        "25 shells end while the turn that started them streams",
        (SHELLS,),
        Expect(attempts=(), ends=("done", "done"), calls=3),
        (Step(2, Ends("shell")),),
        why="Decided: results are delivered together, and what found no room is named in a notice.",
    ),
    Scenario(
        "CD1",
        "moves the session to another directory while the agent waits for a shell; the shell ends",
        (ARM, SHELL),
        Expect(attempts=(), ends=("deferred", "suspended"), calls=4),
        (Step(IDLE, Move("elsewhere")), Step(IDLE, Ends("shell"))),
    ),
    Scenario(
        "CD2",
        "the same, but to where it stands",
        (ARM, SHELL),
        Expect(attempts=(1, 2), ends=("deferred", "exhausted"), calls=6),
        (Step(IDLE, Move()), Step(IDLE, Ends("shell"))),
    ),
)

DIRECT = (
    Scenario(
        "N1",
        "works with an editor that speaks to the agent itself and grants every claim",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        bridge=Manners(direct=True),
    ),
    Scenario(
        "N2",
        "the editor knows no drain",
        (ARM, LOOK),
        Expect(attempts=(), ends=("suspended",), calls=3),
        bridge=Manners(direct=True, drain="unknown"),
    ),
    Scenario(
        "N3",
        "the editor knows no claim",
        (ARM,),
        Expect(attempts=(), ends=("suspended",), calls=2),
        bridge=Manners(direct=True, claim="unknown"),
    ),
    Scenario(
        "N4",
        "the editor does not answer claims",
        (ARM,),
        Expect(attempts=(), ends=("suspended",), calls=2),
        bridge=Manners(direct=True, claim="silent"),
    ),
    Scenario(
        "N5",
        "the editor's drain does not say whether a prompt waits",
        (ARM,),
        Expect(attempts=(), ends=("suspended",), calls=2),
        bridge=Manners(direct=True, drain="no_hint"),
    ),
    Scenario(
        "N6",
        "the editor says that a prompt waits, and none does",
        (ARM,),
        Expect(attempts=(), ends=("yielded",), calls=2),
        bridge=Manners(direct=True, claim="queued"),
    ),
    Scenario(
        "N7",
        "the editor's drain brings something that is no message",
        (ARM,),
        Expect(attempts=(), ends=("suspended",), calls=2),
        bridge=Manners(direct=True, drain="malformed"),
    ),
    Scenario(
        "N8",
        "sends a second prompt through the editor while the first one runs",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(2, Ask("P2")),),
        bridge=Manners(direct=True),
        why=OWNERS,
    ),
    Scenario(
        "N9",
        "the editor names an owner of its own making",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        bridge=Manners(direct=True, forged=True),
    ),
    Scenario(
        "N10",
        "the editor tells a release that nobody waits for, and one without an owner",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        (Step(2, Release("P0")), Step(2, Release(""))),
        bridge=Manners(direct=True),
        why="The pure machine answers that it released nothing; a call without an owner is refused by the connection.",
    ),
    Scenario(
        "N11",
        "says something; the editor hands it over too late; then the turn ends, and a prompt follows",
        (LOOK,),
        Expect(attempts=(), ends=("done", "done"), calls=3),
        (Step(IDLE, Ask("P2")),),
        bridge=Manners(direct=True, drain="late"),
        why="Decided: words that missed their drain are always delivered with the next prompt.",
    ),
)

QUEUED = tuple(f"P{number}" for number in range(2, 7))
DAEMON = (
    Scenario(
        "A-serve",
        "asks for work, as in A",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        bridge=Manners(daemon=True),
    ),
    Scenario(
        "B-serve",
        "sends the next prompt while the model's last words stream, as in B",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(2, Ask("P2")),),
        bridge=Manners(daemon=True),
    ),
    Scenario(
        "C-serve",
        "the same, and takes that prompt out again, as in C",
        (ARM,),
        Expect(attempts=(1, 2), ends=("exhausted",), calls=4),
        (Step(2, Ask("P2")), Step(2, Remove("P2"))),
        bridge=Manners(daemon=True),
    ),
    Scenario(
        "D-serve",
        "says something in the guard's first attempt, as in D",
        (ARM,),
        Expect(attempts=(1, 1, 2), ends=("exhausted",), calls=6),
        (Step(3, Speak("S1")),),
        bridge=Manners(daemon=True),
    ),
    Scenario(
        "E-serve",
        "the provider refuses the guard's first attempt; retries, as in E",
        (ARM, SAY, REFUSED),
        Expect(attempts=(1, 2), ends=("error", "exhausted"), calls=6),
        (Step(IDLE, Ask("P2", "retry")),),
        bridge=Manners(daemon=True),
        why=SEND_BOUNDARY,
    ),
    Scenario(
        "Q",
        "sends five more prompts while the first one streams",
        (),
        Expect(attempts=(), ends=("done",) * 5, calls=5),
        tuple(Step(1, Ask(name)) for name in QUEUED),
        bridge=Manners(daemon=True),
    ),
    Scenario(
        "Y",
        "while the model's last words stream, an unknown client sends a prompt, then a second client does",
        (ARM,),
        Expect(attempts=(), ends=("yielded", "done"), calls=3),
        (Step(2, Ask("P9", client="nobody")), Step(2, Ask("P2", client="phone"))),
        bridge=Manners(daemon=True),
    ),
)

GROUPS = (
    ("Turns, prompts and the guard", TURN),
    ("Stop hooks", HOOKS),
    ("Background work", BACKGROUND),
    ("What comes while the agent waits", WAITING),
    ("Clients that speak to the agent themselves", DIRECT),
    ("The shipped bridge in front of the shipped agent", DAEMON),
)
ALL = tuple(scenario for _, group in GROUPS for scenario in group)
