"""The marker: a small file that says the person is away, for when the database cannot say it.

The hook looks for it before anything else, and it is what our own faults are judged by. So it is
on disk before the database says *away*, and goes only after the database says *not*: a crash in
between leaves "armed", never a session that is silently let go. The order is kept by `arm`,
`disarm` and `settle`; nobody else writes it.

It also carries each period's policy, so that a new database (the old one was damaged in the night)
can be told again what holds: `settle` does that. What it holds is `{"v":1,"periods":[…]}`, each
period the fields of an `AwayPeriod` and `policy`.

Runs when the database may be what is broken: it must not import apsw.
"""

from __future__ import annotations

import os

from stopwarden import wire
from stopwarden.core.errors import StopwardenError, StoreUnwritableError
from stopwarden.core.events import AwayPeriod
from stopwarden.store import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from stopwarden.core.events import Instant
    from stopwarden.store.port import Store

NAME = "away.json"
FAULTS = "faults"
FORMAT = 1
LARGEST = 1024 * 1024  # bytes; a marker of fifty periods has 20,000

UNREADABLE: tuple[AwayPeriod, ...] = (AwayPeriod(id="?", since=0, scope="everywhere"),)
"""What `read` returns for a marker that is there and cannot be understood: away for every session,
without an end, so that a caller who does not look closer treats it as armed. Tell it by `is`."""


def read(state_dir: str) -> tuple[AwayPeriod, ...] | None:
    """The periods that the marker names; None if there is no marker; `UNREADABLE` if it cannot be understood.

    Raises StorePlaceError where the file is a symbolic link or another user's: armed as well.
    """
    try:
        told = _read(state_dir)
    except OSError:  # the disk does not give it
        return UNREADABLE
    return None if told is None else told[0]


def write(state_dir: str, periods: Iterable[AwayPeriod], policies: Mapping[str, str] | None = None) -> None:
    """Makes the marker name these periods, whole and on disk, or leaves it as it was. None of them: removes it.

    `policies` are JSON texts by period id; a period without one keeps the one that the marker has.
    Raises StoreUnwritableError, or StorePlaceError as `read` does.
    """
    _, before = _told(state_dir)
    known = {**before, **(policies or {})}
    told = [{**period.as_dict(), "policy": known.get(period.id, "")} for period in periods]
    if not told:
        remove(state_dir)
        return
    new = f"{state_dir}/{NAME}.new.{os.getpid()}"
    try:
        _write_new(new, wire.dumps({"v": FORMAT, "periods": told}).encode() + b"\n")
        os.rename(new, f"{state_dir}/{NAME}")
        place.sync_directory(state_dir)
    except OSError as error:
        _discard(new)
        raise _unwritable(state_dir, error) from error
    except BaseException:
        _discard(new)
        raise


def remove(state_dir: str) -> None:
    """Takes the marker away, if there is one. Raises StoreUnwritableError."""
    try:
        os.unlink(f"{state_dir}/{NAME}")
        place.sync_directory(state_dir)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unwritable(state_dir, error) from error


def arm(store: Store, state_dir: str, period: AwayPeriod, policy_json: str) -> None:
    """Begins an away period: the marker first, then the database.

    If the marker cannot be written or the database refuses, or the person interrupts, nothing is
    armed that was not before (where the disk lets the marker be put back).
    If it is the commit that fails, the marker stays: away holds, at the latest after `settle`.
    Raises the Store…Error classes.
    """
    with store.transaction():  # two commands at once take turns at the marker too
        before, _ = _told(state_dir)
        others = [*store.open_periods(), *(before if before and before is not UNREADABLE else ())]
        told = {one.id: one for one in (*others, period)}
        try:
            write(state_dir, told.values(), {period.id: policy_json})
            store.add_period(period, policy_json)
        except BaseException:  # nothing of this is committed, a person's Ctrl-C included
            if before is not UNREADABLE:
                _put_back(state_dir, before or ())
            raise
    _reserve_faults(state_dir)


def _reserve_faults(state_dir: str) -> None:
    """Begins the file in which our own faults are counted, so that a disk that fills up in the night has room in it."""
    try:
        file = place.open_private(f"{state_dir}/{FAULTS}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    except (OSError, StopwardenError):
        return  # counting will say so when it matters
    try:
        if os.fstat(file).st_size == 0:
            os.write(file, b"# Stopwarden's own faults while somebody was away: seconds, session, what\n")
    except OSError:
        pass
    finally:
        os.close(file)


def disarm(store: Store, state_dir: str, period_id: str, at: Instant, why: str) -> bool:
    """Ends an away period: the database first, then the marker. Whether it was open.

    Inside a transaction only the database's part is done: call `settle` after it has committed.
    Raises the Store…Error classes; then the marker may still say away.
    """
    ended = store.end_period(period_id, at, why)
    if not store.in_transaction:
        settle(store, state_dir)
    return ended


def settle(store: Store, state_dir: str) -> list[AwayPeriod]:
    """Makes the marker and the database say the same; the periods that are open then.

    A period in the marker that the database never heard of is added to it (the database is new,
    the old one was damaged, or a command was killed while it armed). A period that the database
    has ended leaves the marker. An unreadable marker is written anew from the database (kept aside
    as `away.json.damaged-…`), unless the database knows of no period at all: then it stays, and
    with it "armed". Call it outside a transaction. Raises the Store…Error classes.
    """
    assert not store.in_transaction, "the marker follows what is committed"
    with store.transaction():
        marked, policies = _told(state_dir)
        known = {period.id for period in store.periods()}
        if marked is UNREADABLE:
            if not known:
                return list(UNREADABLE)
            _keep_aside(state_dir)
        else:
            for period in marked or ():
                if period.id not in known:
                    store.add_period(period, policies[period.id])
        still = store.open_periods()
        if tuple(still) != (marked or ()):
            write(state_dir, still, {period.id: store.period_policy(period.id) for period in still})
    return still


def _told(state_dir: str) -> tuple[tuple[AwayPeriod, ...] | None, dict[str, str]]:
    """What `_read` says, for whoever will write the marker: a disk that fails just now must not cost what it holds."""
    try:
        return _read(state_dir) or (None, {})
    except OSError as error:
        raise _unwritable(state_dir, error) from error


def _read(state_dir: str) -> tuple[tuple[AwayPeriod, ...], dict[str, str]] | None:
    """The periods, or `UNREADABLE`, and the policies by period id; None if there is no marker.

    Raises OSError where the file is there and the disk does not give it.
    """
    try:
        file = place.open_private(f"{state_dir}/{NAME}", os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        data = b""
        while len(data) <= LARGEST:
            part = os.read(file, LARGEST)
            if not part:
                return _understood(wire.loads(data))
            data += part
    except (ValueError, TypeError, KeyError):
        pass
    finally:
        os.close(file)
    return UNREADABLE, {}


def _understood(told: Any) -> tuple[tuple[AwayPeriod, ...], dict[str, str]]:
    """Periods and policies of a marker's value. Raises ValueError, TypeError or KeyError if it is none of ours."""
    if told["v"] != FORMAT:
        raise ValueError(f"format {told['v']}")
    periods = tuple(_period(fields) for fields in told["periods"])
    return periods, {fields["id"]: _text(fields.get("policy", "")) for fields in told["periods"]}


def _period(fields: Mapping[str, Any]) -> AwayPeriod:
    period = AwayPeriod(**{field: fields[field] for field in AwayPeriod.fields if field in fields})
    if period.scope not in ("checkout", "session", "everywhere"):
        raise ValueError(f"scope {period.scope!r}")
    for field in ("id", "copy", "root", "session", "ended_why", "zone"):
        _text(getattr(period, field))
    for instant in (period.since, period.until, period.ended_at):
        if instant is not None and type(instant) is not int:
            raise ValueError(f"instant {instant!r}")
    if type(period.also_scripts) is not bool or type(period.until_done) is not bool or period.since is None:
        raise ValueError("a field of the wrong type")
    return period.replace(lists=tuple(_text(path) for path in period.lists))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"no text: {value!r}")
    return value


def _put_back(state_dir: str, periods: tuple[AwayPeriod, ...]) -> None:
    try:
        write(state_dir, periods)
    except StopwardenError:  # it stays as it is: armed
        pass


def _write_new(path: str, data: bytes) -> None:
    _discard(path)  # of a process of this number that was killed
    file = place.open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)


def _discard(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _keep_aside(state_dir: str) -> None:
    """A second name for the marker's content; the marker itself stays until it is replaced."""
    try:
        os.link(f"{state_dir}/{NAME}", place.unused(f"{state_dir}/{NAME}.damaged-{place.stamp()}"))
    except OSError:
        pass


def _unwritable(state_dir: str, error: OSError) -> StoreUnwritableError:
    return StoreUnwritableError(
        f"{state_dir}/{NAME} cannot be read or written: {os.strerror(error.errno or 0)}",
        kept="Whether you are away was not changed in the database",
        do="Make room on that disk, or make it writable",
    )
