"""One recorded verdict explained: what stopped, what was answered, by which rule, from which facts.

The recorded inputs are judged again with today's judge; whether that gives the same verdict is part
of the explanation. Pure: a verdict row in, an `Explanation` and its text out.
May not live here: reading a database, any decision of the judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import leases, wakes
from stopwarden.core.bounds import HOUR, MINUTE, Policy
from stopwarden.core.events import SessionState, Stop, Verdict, WakeFinding, World
from stopwarden.core.judge import judge
from stopwarden.core.record import Record
from stopwarden.report.moments import length
from stopwarden.report.reading import LocalTimes, count, padded, plain
from stopwarden.report.values import plain_values, utc
from stopwarden.store import journal

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stopwarden.core.events import Instant, Item, Zone
    from stopwarden.store.port import VerdictRow

LABEL = 11
ITEMS_SHOWN = 6
WAKES_SHOWN = 8

KINDS = {
    "block": "blocked: the agent was told to go on",
    "waiting": "allowed: the session waits for its next look",
    "done": "allowed: nothing is left to do",
    "idle": "allowed: nobody is away for this session",
    "waiting_on_person": "allowed: all that is left waits on a person",
    "plan_mode": "allowed: the session is in plan mode, which waits on a person",
    "cancelled": "allowed: a person had cancelled it",
    "bound_reached": "allowed: it had been sent on as often as is allowed",
    "off": "allowed: the check was switched off",
    "observed": "allowed: the check only observes",
    "error": "allowed: Stopwarden itself failed",
}
RULES = {
    "away.waiting_nothing_owed": "a wake comes in time, and nothing is owed",
    "away.waiting_unchanged": "a wake comes in time, and what is owed has not changed since the last block",
    "away.owed_changed": "a wake comes in time, but what is owed has changed since the last block: one more push",
    "away.no_qualifying_wake": "work is owed, and no wake comes in time",
    "away.no_next_look": "nothing is owed, but no wake comes in time either",
    "away.bound_reached": "one more block would pass a bound that the last one reached",
    "away.bound_kept_look": "a bound is reached, but a living keeper will look in time",
    "away.ready_offered": "it could have waited, but ready work was not offered to it yet",
    "away.until_done": "you are away until the list is done, and it is: nothing is owed, held or awaited",
    "away.not_away": "no away period holds for this session",
    "stop.subagent": "it was the stop of a child agent, which is left alone",
    "stop.plan_mode": "in plan mode nothing is continued",
    "stop.cancelled": "a cancel holds until an ordinary prompt",
    "policy.off": "the switch stood at off",
    "policy.paused": "the switch stood at off until a time, and the session waits for that",
}
BOUND_WORDS = {
    "blocks_without_tools": "blocks in a row without any tool use",
    "blocks_without_progress": "blocks in a row without progress",
    "blocks_an_hour": "blocks within an hour",
    "blocks_a_period": "blocks in this away period",
    "wall_time": "the time of this away period",
    "tokens": "the tokens of this away period",
}


class Difference(Record):
    """A part of the verdict that comes out otherwise when the record is judged again."""

    what: str
    recorded: str
    now: str


class Explanation(Record):
    """A verdict with everything it was reached by, and what judging it again gives."""

    id: int
    stop: Stop
    session: SessionState
    world: World
    policy: Policy
    verdict: Verdict
    findings: tuple[WakeFinding, ...]  # every wake of the stop, in the order the host gave
    judged_by: str
    differences: tuple[Difference, ...] = ()
    name: str = ""
    judged_again: bool = True  # False: a fault of ours gave the answer, no judge did

    @property
    def agrees(self) -> bool:
        """Whether today's judge reaches the same verdict."""
        return self.judged_again and not self.differences


def explain(row: VerdictRow, snapshot: Callable[[str], str], name: str = "") -> Explanation:
    """The explanation of a recorded verdict. Raises StoreCorruptError where its record cannot be read."""
    stop, session, world, policy, verdict = journal.decode(row.body, snapshot)
    faulty = verdict.rule.startswith("fault.")
    _, findings = wakes.judge_wakes(
        stop.wakes or (),
        now=stop.at,
        deadline=leases.deadline(world.reservations, world.copy, stop.at, policy, stop.session),
        scheduler=world.scheduler,
        zone=world.zone,
        evidence=policy.wake_evidence,
    )
    again = verdict if faulty else judge(stop, session, world, policy)
    return Explanation(
        id=row.id,
        stop=stop,
        session=session,
        world=world,
        policy=policy,
        verdict=verdict,
        findings=findings,
        judged_by=journal.judged_by(row.body),
        differences=differences(verdict, again),
        name=name or row.session[:8],
        judged_again=not faulty,
    )


def differences(recorded: Verdict, now: Verdict) -> tuple[Difference, ...]:
    """Every part in which a verdict comes out otherwise; the state after it is no part of the record."""
    now = now.replace(after=None)
    return tuple(
        Difference(what=field, recorded=_shown(getattr(recorded, field)), now=_shown(getattr(now, field)))
        for field in Verdict.fields
        if getattr(recorded, field) != getattr(now, field)
    )


def as_json(told: Explanation) -> dict[str, Any]:
    """The explanation as plain values: instants as ISO 8601 in UTC."""
    values: dict[str, Any] = plain_values(told.replace(world=told.world.replace(zone=None)), "")
    values["world"].pop("zone")
    values["world"]["zone_name"] = told.world.zone.name
    return {
        "v": 1,
        **values,
        "at": utc(told.verdict.at),
        "agrees": told.agrees,
        "means": KINDS.get(told.verdict.kind, told.verdict.kind),
        "because": RULES.get(told.verdict.rule, ""),
    }


def render(told: Explanation, zone: Zone, now: Instant, *, verbose: bool = False) -> str:
    """The explanation in plain words, times local to `zone`."""
    return "\n".join(_Telling(told, zone, now, verbose).lines()) + "\n"


class _Telling:
    """One explanation, section by section."""

    def __init__(self, told: Explanation, zone: Zone, now: Instant, verbose: bool) -> None:
        self.told, self.zone, self.verbose = told, zone, verbose
        ahead = [finding.latest for finding in told.findings if finding.latest is not None]
        near = [at for at in ahead if at < told.stop.at + 24 * HOUR]
        self.times = LocalTimes(zone, told.stop.at, max([told.stop.at, *near]), now)

    def lines(self) -> list[str]:
        """The whole text."""
        told, verdict, times = self.told, self.told.verdict, self.times
        recorded = told.verdict.zone
        head = (
            f"Verdict {told.id}   {times.day(verdict.at)} {times.second(verdict.at)}   {self.zone.name}   {told.name}"
        )
        lines = [head]
        if recorded and recorded != self.zone.name:
            lines.append(f"It was judged in {recorded}; the times here are those of {self.zone.name}.")
        lines += times.notes()
        lines.append("")
        lines += self._section("VERDICT", [KINDS.get(verdict.kind, f"allowed: {verdict.kind.replace('_', ' ')}")])
        lines += self._section("WHY", self._why())
        if told.world.period is not None and verdict.deadline is not None:
            lines += self._section("DEADLINE", self._deadline())
            lines += self._section("WAKES", self._wakes())
            lines += self._section("OWED", self._owed())
            lines += self._section("COUNTS", self._counts())
        if self.verbose and verdict.reason:
            lines += self._section("SAID", [_printable(line) for line in verdict.reason.splitlines()])
        return lines + self._section("AGAIN", self._again())

    def _why(self) -> list[str]:
        told, verdict = self.told, self.told.verdict
        because = RULES.get(verdict.rule, "")
        said = [f"{because} ({verdict.rule})" if because else verdict.rule]
        if verdict.kind == "observed":
            said.append("It was only observed, so no stop was blocked.")
        for happening in verdict.happenings:
            if happening.kind in ("stopped_with_work_owed", "stopped_without_next_look"):
                said.append(f"This block reached a bound: {BOUND_WORDS.get(happening.text, happening.text)}.")
            elif happening.kind == "item_handed_back":
                looks = count(told.policy.unchanged_looks, "wake")
                said.append(f'"{plain(happening.text, 80)}" went back to you after {looks} without progress.')
        if verdict.kind == "bound_reached" and told.session.bound:
            said.append(f"The bound: {BOUND_WORDS.get(told.session.bound, told.session.bound)}.")
        if told.stop.damaged:
            said.append("What the agent program reported could not be read whole.")
        return said

    def _deadline(self) -> list[str]:
        told, verdict = self.told, self.told.verdict
        assert verdict.deadline is not None
        away = verdict.deadline - verdict.at
        by = self.times.clock(verdict.deadline) if abs(away) < 20 * HOUR else self.times.day_clock(verdict.deadline)
        world = told.world
        held = leases.binding(world.reservations, world.copy, verdict.at, told.policy, told.stop.session)
        if away <= 0:
            return [f"was {by}, already past: a hold had to be renewed first"]
        why = f"nothing is held, so within {length(told.policy.look_without_reservation)}"
        if held:
            first = min(held, key=lambda one: leases.renewal_due(one) - leases.skew_for(one, told.policy.skew))
            due = leases.renewal_due(first)
            spare = length(leases.skew_for(first, told.policy.skew))
            why = f"the hold on {plain(first.item, 40)} is to be renewed at {self.times.clock(due)}, less {spare}"
        return [f"{by}, in {length(away)}: {why}"]

    def _wakes(self) -> list[str]:
        told = self.told
        if told.stop.wakes is None:
            return ["none reported: this program does not tell its scheduled wakes"]
        shown = told.findings if self.verbose else told.findings[:WAKES_SHOWN]
        said = [self._wake(finding) for finding in shown]
        said += [f"{plain(entry, 60)}   cannot be read, so it does not count" for entry in told.stop.unread_wakes]
        if len(told.findings) > len(shown):
            said.append(f"{len(told.findings) - len(shown)} more: stopwarden explain {told.id} --verbose")
        if told.world.kept_look is not None:
            chosen = told.verdict.wake is not None and told.verdict.wake.id == "kept"
            said.append(
                f"keeper   looks at {self.times.clock(told.world.kept_look)}   {'this one counts' if chosen else ''}"
            )
        if not said:
            said = ["none scheduled"]
        if told.stop.background:
            said.append(f"{count(len(told.stop.background), 'background task')} running; that is no wake")
        return said

    def _wake(self, finding: WakeFinding) -> str:
        chosen = self.told.verdict.wake
        name = f'{plain(finding.id, 20)} "{plain(finding.schedule, 40)}"'
        if finding.qualifies:
            verdict = "this one counts" if chosen is not None and chosen.id == finding.id else "comes in time too"
        else:
            verdict = f"does not count: it {plain(finding.why, 160)}"
        return f"{name}   {self._fires(finding)}   {verdict}"

    def _fires(self, finding: WakeFinding) -> str:
        if finding.nominal is None:
            return "no fire is known"
        early = finding.nominal if finding.earliest is None else finding.earliest
        late = finding.nominal if finding.latest is None else finding.latest
        if late - early < MINUTE:
            return f"fires {self._moment(finding.nominal)}"
        return f"fires {self._moment(early)} to {self._moment(late)}"

    def _moment(self, at: Instant) -> str:
        near = abs(at - self.told.stop.at) < 20 * HOUR
        return self.times.clock(at) if near else self.times.day_clock(at)

    def _owed(self) -> list[str]:
        told = self.told
        known = {item.id: item for item in told.world.items}
        owed = [known[one] for one in told.verdict.owed if one in known]
        shown = owed if self.verbose else owed[:ITEMS_SHOWN]
        said = [f"{item.id}  {plain(item.title, 60)}{_state(item)}" for item in shown]
        if len(owed) > len(shown):
            said.append(f"{len(owed) - len(shown)} more: stopwarden explain {told.id} --verbose")
        said += [f"{plain(source, 80)} could not be read: what it holds is not known" for source in told.world.unread]
        before = "nothing was blocked before" if told.session.fingerprint is None else ""
        if told.session.fingerprint is not None:
            same = told.session.fingerprint == told.verdict.fingerprint
            before = "the same as at the last block" if same else "changed since the last block"
        waiting = sum(item.state == "waiting" for item in told.world.items)
        parts = [before, f"{count(waiting, 'item')} waiting on somebody" if waiting else ""]
        said.append(" · ".join(part for part in parts if part))
        return said if owed or told.world.unread else ["nothing", *said]

    def _counts(self) -> list[str]:
        told, counters, policy = self.told, self.told.verdict.counters, self.told.policy
        if not told.verdict.block:
            return [
                f"{count(counters.period_blocks, 'block')} in this away period so far (bound {policy.blocks_a_period})"
            ]
        cap = f" of {counters.cap}" if counters.cap else ", no bound"
        return [
            f"block {counters.blocks} of {policy.blocks_without_progress} in a row without progress · "
            f"{counters.blocks_without_tools}{cap} without a tool",
            f"{counters.blocks_this_hour} of {policy.blocks_an_hour} this hour · "
            f"{counters.period_blocks} of {policy.blocks_a_period} this away period",
        ]

    def _again(self) -> list[str]:
        told = self.told
        if not told.judged_again:
            return ["no judge reached this: Stopwarden failed and answered as it does then"]
        if told.agrees:
            return [f"judged again from the record: the same verdict (judge {told.judged_by})"]
        said = [
            f"judged again from the record: NOT the same (it was judged by {told.judged_by or 'an unknown version'})"
        ]
        for one in told.differences[: None if self.verbose else 4]:
            said.append(f"  {one.what}: was {plain(one.recorded, 120)}, is now {plain(one.now, 120)}")
        return said

    def _section(self, label: str, entries: list[str]) -> list[str]:
        return [
            (padded(label, LABEL) if place == 0 else " " * LABEL) + entry.rstrip()
            for place, entry in enumerate(entries)
        ]


def _state(item: Item) -> str:
    if item.state == "open":
        return ""
    gone = {"removed": "taken off the list, asked for once more", "dropped": "dropped, asked for once more"}
    said = gone.get(item.state, "marked as waiting, asked for once more" if item.state == "waiting" else item.state)
    return f"  ({said})"


def _printable(line: str) -> str:
    """A line as the agent read it, less what a terminal would act on."""
    return "".join(char if char.isprintable() else " " for char in line)


def _shown(value: object) -> str:
    return str(value)
