"""What goes on beside the person in a guard simulation: the session's own process, and background work.

The process answers what the session asks of it (`open`), one effect at a time: writer, hooks, compression,
provider, tools. Tools write lists and set work going: agents with parents, known and unknown ones, shells,
monitors of an agent or of nobody, workflows, wakeups. Work tells of itself, ends, or is told twice.
`tasks` is the work there is; what the session knows of it comes by events. May not live here: the person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stopwarden.core import away_words as away
from stopwarden.core import backlog_events as waits
from stopwarden.core import door_events as asks
from stopwarden.core import turn_events as ev
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap, OpenGap
from stopwarden.core.lineage import Task
from stopwarden.core.results import Result
from stopwarden.core.todo_envelope import Todo, TodoList
from stopwarden.sim.guard_away import Away

if TYPE_CHECKING:
    from stopwarden.core.record import Record

OUTAGE = 8  # sends
KINDS = ("agent", "shell", "monitor", "workflow", "wakeup")
LISTS = tuple(
    TodoList(
        items=tuple(
            Todo(id=str(one), content="work", status="completed" if one >= left else "pending") for one in range(3)
        )
    )
    for left in range(4)
)


class Work(Away):
    """One history's process and background work."""

    # ---- moves: the session's own process

    def answer(self) -> None:
        """Something that the session asked for in its own process comes to an end, or begins."""
        numbers = list(self.open)
        late = len(numbers) > 1 and self.fault("late", 2)
        number = numbers[self.choices.below(len(numbers))] if late else numbers[0]
        effect = self.open[number]
        if isinstance(effect, ev.Send):
            self._answer_send(effect)
            return
        del self.open[number]
        said: Record
        match effect:
            case ev.AdmitWriter():
                said = ev.WriterAdmitted(id=number, granted=effect.prompt not in self.denied)
            case ev.RunHooks():
                pick = self.choices.below(4)
                failed = self.fault("failing_hook")
                said = ev.HookAnswered(
                    id=number, block=pick == 3, reason="go on", message="seen" if pick == 2 else "", failed=failed
                )
            case ev.ChooseModel():
                said = ev.ModelChosen(id=number, model="eyes")
            case ev.Compress():
                said = ev.CompressionFailed(id=number) if self.fault("no_room", 10) else ev.CompressionDone(id=number)
            case ev.CheckTokens():
                said = ev.TokensChecked(id=number, fits=not self.fault("no_room", 15))
            case asks.CheckPlace():
                said = asks.PlaceChecked(id=number, place=effect.path, problem="gone" if self.choices.one_in(4) else "")
            case asks.ReadPlace():
                said = asks.PlaceRead(id=number, same=self.choices.one_in(3))
            case asks.LookForActivity():
                live = not self.healed and self.choices.one_in(2)
                said = asks.ActivitySeen(id=number, live=live, ended=live and self.choices.one_in(2))
            case asks.MakeMove():
                said = asks.MoveMade(id=number, problem="busy" if self.choices.one_in(4) else "")
            case away.Judge():
                said = self.judged(effect)
            case away.CommitVerdict():
                said = self.committed(effect)
            case asks.Restore():
                said = self._restored(effect)
            case _:
                assert isinstance(effect, ev.RunTools)
                self._run_tools(effect)
                return
        self.feed(said)
        if self.fault("doubled", 4):
            self.feed(said)

    def was_there_before(self) -> None:
        """The session had a process before: something waited for a turn, and something had been left out."""
        result, fire = Result(id=self.name("told"), kind="shell", task="before"), Fire(id=self.name("fire"), job="look")
        gap = Gap(number=1, id=self.name("told"), kind="shell", task="before", where="", why="queue_full")
        self.book.owe(result.id, "the background result")
        self.book.owe(fire.id, "the scheduled prompt")
        for number, what in enumerate((waits.Keep(item=result), waits.Keep(item=fire), OpenGap(gap=gap)), start=1):
            self.disk.write(ev.Pass(id=number, what=what))
        self.life_from = self.disk.last_id + 1

    def _restored(self, effect: asks.Restore) -> asks.RestoreAnswered:
        """One thing of the session is put together again, from what is on disk."""
        waiting = None
        match effect.what:
            case "history":
                for written in self.disk.recover():
                    self.do(written)
            case "waiting":
                waiting = self.disk.restored(self.tasks)
            case "agents":
                self.feed(ev.BackgroundChanged(tasks=self.tasks))
            case _:
                pass
        return asks.RestoreAnswered(id=effect.id, waiting=waiting)

    def _answer_send(self, effect: ev.Send) -> None:
        number = effect.id
        if number not in self.begun:
            if not self.outage and self.fault("outage", 20):
                self.outage = OUTAGE
            self.outage = max(0, self.outage - 1) if not self.healed else 0
            if number in self.cut or self.outage or self.fault("refused_send", 6):
                del self.open[number]
                self.feed(ev.ProviderRefused(id=number, why="error"))
            else:
                self.begun[number] = None
                self.feed(ev.ProviderAccepted(id=number))
            return
        del self.open[number]
        if number in self.cut or self.fault("broken_send", 6):
            self.feed(ev.StreamBroken(id=number))
            return
        calls = (
            ()
            if self.healed
            else tuple(f"call-{number}-{one}" for one in range((1, 0, 1, 2, 0)[self.choices.below(5)]))
        )
        self.feed(ev.StreamEnded(id=number, reply=f"reply-{number}", calls=calls, tokens=10))

    def _run_tools(self, effect: ev.RunTools) -> None:
        turn = self.state.turn
        if turn is not None:
            pick = self.choices.below(10)
            if pick < 6:
                if turn.abort:
                    self.book.race("late todo write")
                self.feed(ev.TodoWritten(turn=turn.id, todos=LISTS[(2, 3, 1, 2, 0, 0)[pick]]))
            elif pick == 6:
                self.feed(ev.TodoWritten(turn=turn.id, todos=None))
            if self.tasks and self.choices.one_in(2):
                self._write_to_work()
                if self.choices.one_in(3):
                    self.finish_task()
            if "background" in self.habits and self.choices.one_in(3):
                self._spawn()
        if self.sends and self.choices.below(2) == 0:
            self.feed(waits.MessageSettled(send=self.sends.pop(0), succeeded=self.choices.one_in(2)))
        if self.down:  # the process died while its tools ran
            return
        results = tuple(ev.Part(kind="tool_result", id=f"result-{call}") for call in effect.calls)
        for part in results:
            self.book.owe(part.id, "the tool result")
        stop = ""
        if self.fault("stopped_tools", 5):
            stop = ("post_tool_use", "repeated_failure", "loop", "permission")[self.choices.below(4)]
        self.feed(ev.ToolsDone(id=effect.id, parts=results, stop=stop))

    def _write_to_work(self) -> None:
        """Messages to agents, of this chain and of older ones; several may be under way, also to one agent."""
        agents = [task.id for task in self.tasks if task.kind == "agent"] or [self.tasks[0].id]
        target, team = agents[self.choices.below(len(agents))], self.choices.below(8) == 7
        for _ in range(1 + self.choices.below(2)):
            self.sends.append(self.name("send"))
            self.feed(waits.MessageSending(send=self.sends[-1], agent=target, team=team))

    def _spawn(self) -> None:
        """An agent may be another's, its own ancestor, or of a parent nobody knows; a monitor may be an agent's."""
        kind = KINDS[self.choices.below(len(KINDS))]
        name = self.name(kind)
        agents = [task.id for task in self.tasks if task.kind == "agent"]
        parent = ""
        if kind in ("agent", "monitor") and agents:
            parent = (*agents, "", "unheard-of", name)[self.choices.below(len(agents) + 3)]
        state = "scheduled" if kind == "wakeup" else "running"
        task = Task(kind=kind, id=name, parent=parent, state=state)  # type: ignore[arg-type]
        self.book.hit(f"work {kind}")
        if kind == "agent" and self.choices.one_in(2):
            self.feed(waits.Spawned(agent=task.id))
        self._work_is((*self.tasks, task))

    def _work_is(self, tasks: tuple[Task, ...]) -> None:
        """The work has changed, and the session hears of it."""
        self.tasks = tasks
        self.feed(ev.BackgroundChanged(tasks=tasks))

    def finish_task(self) -> None:
        """Background work ends, with something to tell; a wakeup fires."""
        task = self.tasks[self.choices.below(len(self.tasks))]
        rest = tuple(one for one in self.tasks if one is not task)
        gone_first = self.choices.one_in(2)
        if gone_first:
            self._work_is(rest)
        if task.kind == "wakeup":
            self._fires(Fire(id=self.name("fire"), job=task.id, kind="wakeup"))
        else:
            status = ("completed", "failed", "cancelled")[self.choices.below(3)]
            self._tells(task, status=status)
        if not gone_first:
            self._work_is(rest)

    def pause_task(self) -> None:
        """Background work pauses, goes on, or is cancelled and has not told so yet."""
        place = self.choices.below(len(self.tasks))
        task = self.tasks[place]
        if task.kind not in ("agent", "workflow"):
            return
        states = ("paused", "running", "cancelled") if task.kind == "agent" else ("paused", "running", "running")
        changed = task.replace(state=states[self.choices.below(3)])
        self._work_is((*self.tasks[:place], changed, *self.tasks[place + 1 :]))

    def _tells(self, task: Task, **fields: object) -> None:
        result = Result(id=self.name("told"), kind=task.kind, task=task.id, owner=task.parent, **fields)  # type: ignore[arg-type]
        if self.down:
            return
        self.book.owe(result.id, "the background result")
        self.feed(ev.ResultArrived(result=result))
        if self.fault("told_twice", 3):
            self.feed(ev.ResultArrived(result=result))

    def _fires(self, fire: Fire) -> None:
        if self.down:
            return
        self.book.owe(fire.id, "the scheduled prompt")
        self.feed(ev.FireArrived(fire=fire))
        if self.fault("told_twice", 3):
            self.feed(ev.FireArrived(fire=fire))

    def pulse(self) -> None:
        """Background work has much to tell, and goes on; once in a while more than memory holds."""
        telling = [task for task in self.tasks if task.kind != "wakeup"]
        for _ in range(140 if self.choices.below(40) == 39 else 9):
            if telling:
                self._tells(telling[0], interim=True)

    def fire(self) -> None:
        """A schedule fires, now and then many of them at once."""
        for _ in range(25 if self.choices.below(20) == 19 else 1):
            self._fires(Fire(id=self.name("fire"), job=("", "look", "sweep")[self.choices.below(3)]))

    def show_gaps(self) -> None:
        """The person's screen takes gap entries, or cannot."""
        shows = self.shows.pop(0)
        self.feed(waits.GapsShown(ids=tuple(gap.id for gap in shows.gaps), done=self.healed or self.choices.one_in(2)))
