"""Which item of a list is which, across every edit that a person or an agent makes. Pure.

Theory of operation. A *snapshot* is what a list looked like when it was last read, as two lines of
compact JSON: how its items stand, and what they are (which changes seldom, and is the long one).
`track` lays a new reading beside it. An item is the same item if

1. an id comment says so (`<!-- sw:ID -->`);
2. it has the same text in the same context (heading and parent); what begins and ends the list is
   matched first, so that of equal texts each keeps its place; what is left is matched in order;
3. it has the same text, wherever it went, also if it had vanished and is back;
4. it stands between the same neighbours: a reworded item. Where more than one stands there, those
   that share half their words are matched; then as many as are left on both sides, in order. What was finished
   does not become something unfinished in this way.

Everything else is new, and gets an id made from its text: the same on every machine, a letter and
a digit first so that it is never taken for a word, and never one that this period has used.

What vanished stays in the snapshot for the away period: as *removed* if it was unfinished, else as it was.
`before` is the state an item was first seen in during the period. An unchanged text gives the
unchanged snapshot.

May not live here: the grammar of lists (`work.checklist`), files, what is owed (`core.owed`).
"""

from __future__ import annotations

from stopwarden import wire
from stopwarden.core.events import Item
from stopwarden.core.record import Record
from stopwarden.work.checklist import leaves_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from stopwarden.core.events import ItemState
    from stopwarden.work.checklist import Reading

VANISHED_MAX = 20_000
_BETWEEN = "  "  # no title has two blanks in a row, and JSON need not escape them: twice as quick
_FINISHED = ("done", "dropped", "removed")
_CODES: dict[str, str] = {"open": "o", "doing": "g", "done": "d", "waiting": "w", "dropped": "x", "removed": "r"}
_STATES: dict[str, ItemState] = {
    "o": "open", "g": "doing", "d": "done", "w": "waiting", "x": "dropped", "r": "removed",
}  # fmt: skip
_SIGNS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that looks like another
_LETTERS = "abcdefghjkmnpqrsuvxyz"  # `t3` is the host's, `w3` the ledger's
_HEADS = [letter + numeral for letter in _LETTERS for numeral in "23456789"]
_PRIME = 1_073_741_789
_STEP = 7_368_787
_ALIKE_MAX = 400  # beyond so many pairs of reworded items only their order counts


class _Seen(Record):
    """A snapshot taken apart: the items present, a column a field, and those that vanished."""

    period: str = ""
    ids: list[str]
    titles: list[str]
    contexts: list[str]
    states: str  # a letter an item
    before: str  # likewise; "?" where the period has not seen it yet
    gone: list[tuple[str, str, str, str]]  # id, title, state, before
    retired: list[str]  # ids given up for an id comment
    second: str = ""  # ids, titles and contexts as they are written, "" if they have changed


_NOTHING = _Seen(ids=[], titles=[], contexts=[], states="", before="", gone=[], retired=[])


def begin_period(snapshot: str, period: str) -> str:
    """The snapshot for an away period: another one forgets what vanished and the states first seen."""
    if snapshot.startswith(_head(period)):
        return snapshot
    seen = _decoded(snapshot)
    return _encoded(seen.replace(period=period, before="?" * len(seen.ids), gone=[], retired=[]))


def track(
    snapshot: str, reading: Reading, source: str = "", taken: Collection[str] = ()
) -> tuple[str, tuple[Item, ...]]:
    """The snapshot after a reading, and the items: each parent after its children, the vanished last.

    New items get none of the ids in `taken`. A snapshot that cannot be read counts as none.
    """
    seen = _decoded(snapshot)
    contexts = _contexts(reading)
    same = _matched(seen, reading, contexts)
    ids, retired = _ids(seen, reading, same, taken)
    states = "".join(map(_CODES.__getitem__, reading.states))
    before, gone = seen.before, seen.gone
    if same is not None:
        first_seen = [*seen.before, *(one[3] for one in seen.gone), "?"]  # -1, a new item, finds the "?"
        before = "".join([first_seen[old] for old in same])
        gone = _gone(seen, same)
    if "?" in before:
        before = "".join(map(_first_seen, before, states))
    now = _Seen(
        period=seen.period,
        ids=ids,
        titles=reading.titles,
        contexts=contexts,
        states=states,
        before=before,
        gone=gone,
        retired=retired,
        second=seen.second if same is None and ids == seen.ids else "",
    )
    unchanged = same is None and states == seen.states and before == seen.before and ids == seen.ids
    return snapshot if unchanged and snapshot else _encoded(now), _items(now, reading, source)


def last_seen(snapshot: str) -> dict[str, tuple[str, ItemState]]:
    """Title and state of each item that was present when the list was last read, by id."""
    seen = _decoded(snapshot)
    return {known: (seen.titles[at], _STATES[seen.states[at]]) for at, known in enumerate(seen.ids)}


def match(old: Sequence[str], new: Sequence[str], vanished: Sequence[str] = ()) -> list[int]:
    """For each new text the index of the one it was among `old` and then `vanished`, -1: none.

    By text, and by likeness where the neighbours agree; never by place alone.
    """
    nowhere = [""] * max(len(old), len(new))
    over = _CODES["done"] * len(old)  # what is over is never matched by place alone
    return _laid_beside(
        list(old), nowhere[: len(old)], list(new), nowhere[: len(new)], [-1] * len(new), over, list(vanished)
    )


# --- matching --------------------------------------------------------------------------------


def _matched(seen: _Seen, reading: Reading, contexts: list[str]) -> list[int] | None:
    """For each item the index of the one it was (the vanished come after the present), -1: new. None: nothing moved."""
    titles = reading.titles
    if titles == seen.titles and contexts == seen.contexts and _keeps_ids(seen, reading):
        return None
    given = [-1] * len(titles)
    if any(reading.ids):
        place = {gone[0]: len(seen.ids) + at for at, gone in enumerate(seen.gone)}
        place.update(zip(seen.ids, range(len(seen.ids)), strict=True))
        given = [place.get(known, -1) if known else -1 for known in reading.ids]
    if not seen.ids and not seen.gone:
        return given
    vanished = [gone[1] for gone in seen.gone]
    return _laid_beside(seen.titles, seen.contexts, titles, contexts, given, seen.states, vanished, reading.ids)


def _keeps_ids(seen: _Seen, reading: Reading) -> bool:
    return not any(reading.ids) or all(
        not known or known == old for known, old in zip(reading.ids, seen.ids, strict=True)
    )


def _laid_beside(
    old: list[str],
    old_contexts: list[str],
    new: list[str],
    new_contexts: list[str],
    same: list[int],
    states: str,
    vanished: list[str],
    named: Sequence[str] = (),
) -> list[int]:
    """Completes `same`, which holds what ids already say: by text and context, by text, by place."""
    free = [True] * (len(old) + len(vanished))
    for index in same:
        if index >= 0:
            free[index] = False
    first = min(_common(old, new), _common(old_contexts, new_contexts))
    last = min(
        _common(old[first:][::-1], new[first:][::-1]), _common(old_contexts[first:][::-1], new_contexts[first:][::-1])
    )
    for was, now, length in ((0, 0, first), (len(old) - last, len(new) - last, last)):
        for at in range(length):
            if same[now + at] < 0 and free[was + at]:
                same[now + at], free[was + at] = was + at, False
    middle = [at for at, was in enumerate(same) if was < 0]
    if not middle:
        return same
    left = [at for at in range(len(old)) if free[at]]
    middle = _by_text(
        {at: (old[at], old_contexts[at]) for at in left}, {at: (new[at], new_contexts[at]) for at in middle}, same, free
    )
    left = [at for at in left if free[at]]
    by_text = {at: old[at] for at in left}
    by_text.update((len(old) + at, text) for at, text in enumerate(vanished) if free[len(old) + at])
    middle = _by_text(by_text, {at: new[at] for at in middle}, same, free)
    if named:
        middle = [at for at in middle if not named[at]]  # who has a name of its own is nobody else reworded
    if middle and any(free[at] for at in left):
        _by_place(old, new, same, free, states, middle)
    return same


def _common(one: list[str], other: list[str]) -> int:
    """How many items two lists begin with alike, by comparing halves (a comparison of slices is quick)."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        half = (low + high + 1) // 2
        if one[low:half] == other[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _by_text(old: Mapping[int, object], new: Mapping[int, object], same: list[int], free: list[bool]) -> list[int]:
    """Matches equal values in order; the indices that stay new."""
    waiting: dict[object, list[int]] = {}
    for was in sorted(old, reverse=True):
        waiting.setdefault(old[was], []).append(was)
    unmatched = []
    for now, value in new.items():
        places = waiting.get(value)
        if places:
            same[now] = places.pop()
            free[same[now]] = False
        else:
            unmatched.append(now)
    return unmatched


def _by_place(
    old: list[str], new: list[str], same: list[int], free: list[bool], states: str, middle: list[int]
) -> None:
    """Matches reworded items: what is new between two known neighbours with what is missing there."""
    at = 0
    while at < len(middle):
        start = at
        while at + 1 < len(middle) and middle[at + 1] == middle[at] + 1:
            at += 1
        run = middle[start : at + 1]
        at += 1
        missing: dict[int, None] = {}  # the free old items next to where the neighbours were, in order
        was = same[run[0] - 1] + 1 if run[0] else 0
        while (was or not run[0]) and was < len(old) and free[was]:
            missing[was] = None
            was += 1
        was = (same[run[-1] + 1] if run[-1] + 1 < len(new) else len(old)) - 1
        ahead: list[int] = []
        while 0 <= was < len(old) and free[was]:
            ahead.append(was)
            was -= 1
        missing.update(dict.fromkeys(reversed(ahead)))
        if missing:
            _reworded(old, new, run, list(missing), same, free, states)


def _reworded(
    old: list[str],
    new: list[str],
    run: list[int],
    missing: list[int],
    same: list[int],
    free: list[bool],
    states: str,
) -> None:
    if len(run) * len(missing) <= _ALIKE_MAX:
        words = {was: frozenset(old[was].lower().split()) for was in missing}
        for now in run:
            said = frozenset(new[now].lower().split())
            likeness, was = max(
                ((len(said & words[was]) / max(len(said), len(words[was]), 1), -was) for was in words if free[was]),
                default=(0.0, 0),
            )
            if likeness > 0.5:
                same[now], free[-was] = -was, False
    run = [now for now in run if same[now] < 0]
    missing = [was for was in missing if free[was] and _STATES[states[was]] not in _FINISHED]
    if len(run) == len(missing):
        for now, was in zip(run, missing, strict=True):
            same[now], free[was] = was, False


# --- ids -------------------------------------------------------------------------------------


def _ids(seen: _Seen, reading: Reading, same: list[int] | None, taken: Collection[str]) -> tuple[list[str], list[str]]:
    """The id of each item, and the ids that are not to be used again."""
    if same is None:
        return seen.ids, seen.retired
    known = [*seen.ids, *(gone[0] for gone in seen.gone)]
    used = {*known, *seen.retired, *taken, *reading.ids}
    retired = list(seen.retired)
    tried: dict[int, int] = {}
    ids = []
    for now, was in enumerate(same):
        given = reading.ids[now]
        if given:
            if was >= 0 and known[was] != given:
                retired.append(known[was])
            ids.append(given)
        elif was >= 0:
            ids.append(known[was])
        else:
            ids.append(_new_id(reading.titles[now], used, tried))
    return ids, retired


def _new_id(title: str, used: set[str], tried: dict[int, int]) -> str:
    """An id made from the title that is not used yet; `tried` spares equal titles the same search again."""
    base = int.from_bytes(title.encode("utf-8", "replace"), "little") % _PRIME
    rest, head = divmod(base, len(_HEADS))
    made = _HEADS[head] + _SIGNS[rest % len(_SIGNS)]
    while made in used:
        attempt = tried[base] = tried.get(base, 0) + 1
        rest, head = divmod((base + attempt * _STEP) % _PRIME, len(_HEADS))
        made = _HEADS[head]
        for _ in range(2 if attempt < 50 else 4):
            rest, sign = divmod(rest, len(_SIGNS))
            made += _SIGNS[sign]
    used.add(made)
    return made


# --- what the new snapshot holds -------------------------------------------------------------


def _contexts(reading: Reading) -> list[str]:
    """Where each item stands: under which heading, below which parent."""
    if max(reading.parents, default=-1) < 0:
        return reading.headings
    titles = reading.titles
    return [
        heading if parent < 0 else f"{heading} > {titles[parent]}"
        for heading, parent in zip(reading.headings, reading.parents, strict=True)
    ]


def _first_seen(before: str, state: str) -> str:
    return state if before == "?" else before


def _gone(seen: _Seen, same: list[int]) -> list[tuple[str, str, str, str]]:
    """The vanished: those that were and have not come back, then the newly vanished.

    What this period has never seen is no loss of this period.
    """
    back = set(same)
    count = len(seen.ids)
    gone = [one for at, one in enumerate(seen.gone) if count + at not in back]
    for at in range(count):
        if at not in back and seen.before[at] != "?":
            state = seen.states[at]
            kept = state if _STATES[state] in _FINISHED else "r"
            gone.append((seen.ids[at], seen.titles[at], kept, seen.before[at]))
    return gone[-VANISHED_MAX:]


def _items(now: _Seen, reading: Reading, source: str) -> tuple[Item, ...]:
    count, vanished = len(now.ids), len(now.gone)
    columns: dict[str, Sequence[object]] = {
        "id": now.ids + [one[0] for one in now.gone],
        "title": now.titles + [one[1] for one in now.gone],
        "state": reading.states + [_STATES[one[2]] for one in now.gone],
        "before": list(map(_STATES.__getitem__, now.before)) + [_STATES[one[3]] for one in now.gone],
        "waits_on": reading.waits + [None] * vanished,
        "why": reading.whys + [""] * vanished,
        "source": [source] * (count + vanished),
        "line": reading.lines + [0] * vanished,
    }
    items = Item.many(count + vanished, columns)
    if max(reading.parents, default=-1) >= 0:
        order = leaves_first(reading.parents)
        items[:count] = [items[at] for at in order]
    return tuple(items)


# --- as text ---------------------------------------------------------------------------------


def _head(period: str) -> str:
    return wire.dumps({"v": 1, "period": period})[:-1] + ","


def _encoded(seen: _Seen) -> str:
    stand = {
        "v": 1,
        "period": seen.period,
        "states": seen.states,
        "before": seen.before,
        "gone": [list(one) for one in seen.gone],
        "retired": seen.retired,
    }
    return f"{wire.dumps(stand)}\n{seen.second or _second(seen)}"


def _second(seen: _Seen) -> str:
    runs: list[list[object]] = []  # neighbours mostly share their context
    length, context = 0, ""
    for one in seen.contexts:
        if one != context and length:
            runs.append([length, context])
            length = 0
        context = one
        length += 1
    if length:
        runs.append([length, context])
    return wire.dumps({"ids": " ".join(seen.ids), "titles": _BETWEEN.join(seen.titles), "contexts": runs})


def _decoded(snapshot: str) -> _Seen:
    if not snapshot:
        return _NOTHING
    try:
        first, _, second = snapshot.partition("\n")
        stand, told = wire.loads(first), wire.loads(second)
        contexts: list[str] = []
        for length, context in told["contexts"]:
            contexts += [context] * length
        seen = _Seen(
            period=stand["period"],
            ids=told["ids"].split(),
            titles=told["titles"].split(_BETWEEN) if told["ids"] else [],
            contexts=contexts,
            states=stand["states"],
            before=stand["before"],
            gone=[(known, title, state, before) for known, title, state, before in stand["gone"]],
            retired=stand["retired"],
            second=second,
        )
        if not len(seen.ids) == len(seen.titles) == len(contexts) == len(seen.states) == len(seen.before):
            return _NOTHING
        if not {*seen.states, *seen.before, *(code for one in seen.gone for code in one[2:])} <= {*_STATES, "?"}:
            return _NOTHING
    except (ValueError, KeyError, TypeError, AttributeError):
        return _NOTHING
    return seen
