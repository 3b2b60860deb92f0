"""What waits for a turn, as lines of the transcript: kept, settled, left out, told; and the words of a gap entry.

A result or a fire is a `Keep` line with its words; a `Settle` line ends its waiting, an `OpenGap` line makes it
a gap entry, `MarkTold` lines close that. What is left over is what a restart has to give back to the
machine. May not live here: the queues and their bounds (`core/backlog`), the store.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stopwarden.core.backlog_events import Restored
from stopwarden.core.fires import Fire
from stopwarden.core.gaps import Gap
from stopwarden.core.results import Result
from stopwarden.models.port import Text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stopwarden.store.transcripts import TranscriptLine

WHY = {"queue_full": "too many waited", "cleared": "the conversation was cleared"}


def gap_words(gap: Gap) -> Text:
    """Names a result that was left out, and how its text can be read."""
    of = f" of {gap.task}" if gap.task else ""
    how = f" Read it: {gap.where}." if gap.where else ""
    return Text(text=f"[Not delivered: the {gap.kind} result {gap.id}{of}, because {WHY[gap.why]}.{how}]")


def waiting(lines: Iterable[TranscriptLine]) -> Restored:
    """What these lines leave undelivered and untold, oldest first. Other lines are passed over."""
    items: dict[str, Result | Fire] = {}
    gaps: dict[str, Gap] = {}
    settled: dict[str, None] = {}
    highest = 0
    for line in lines:
        if line.kind not in KINDS:
            continue
        body = json.loads(line.body)
        if line.kind == "Keep":
            item = _item(body["item"])
            items[item.id] = item
        elif line.kind == "OpenGap":
            gap = Gap(**{**body["gap"], "turn": "", "showing": False})
            gaps[gap.id], highest = gap, max(highest, gap.number)
            settled.update(_known_as(items.pop(gap.id, None), gap.id))
        elif line.kind == "Settle":
            for id in body["ids"]:
                settled.update(_known_as(items.pop(id, None), id))
        else:
            for id in body["ids"]:
                if id in gaps:
                    told = gaps[id].replace(**{f"told_{body['to']}": True})
                    gaps[id] = told
                    if told.told_model and told.told_person:
                        del gaps[id]
    return Restored(
        results=tuple(item for item in items.values() if isinstance(item, Result)),
        fires=tuple(item for item in items.values() if isinstance(item, Fire)),
        gaps=tuple(gaps.values()),
        next_gap=highest + 1,
        settled=tuple(settled),
    )


KINDS = frozenset({"Keep", "OpenGap", "Settle", "MarkTold"})


def _item(told: dict[str, Any]) -> Result | Fire:
    return Fire(**told) if told["kind"] in ("cron", "wakeup") else Result(**told)


def _known_as(item: Result | Fire | None, id: str) -> dict[str, None]:
    return dict.fromkeys(item.known_as if isinstance(item, Result) else (id,))
