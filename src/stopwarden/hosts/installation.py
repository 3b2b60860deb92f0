"""Putting our entries into a settings file, and taking them out so that nothing remains.

Every change is a `Plan` first: what the file holds now, what it would hold then, and what it would
hold without us. The plan can be shown; carrying it out writes the backup, the record, and last the
file itself, each whole or not at all. What is taken out is restored byte for byte from the backup
while the file is as we left it; once somebody has edited it since, our entries alone are taken out.

The record is `install.json` in the state directory: paths, digests and times, never what a
settings file says. The backup holds the file itself, and is as private as the state directory.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import stat
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from stopwarden.core.errors import HostError, StoreUnwritableError
from stopwarden.hosts import claude_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stopwarden.hosts.claude_settings import Entry, Installed

RECORD = "install.json"
BACKUPS = "backups"
SETTINGS_MAX = 8 * 1024 * 1024


@dataclass(frozen=True)
class SettingsFile:
    """One settings file that holds our entries, as recorded. `at` is seconds UTC."""

    path: str
    scope: str  # "user" or "project"
    host: str = "claude-code"
    keeper: bool = False
    existed: bool = True  # before we came
    made: tuple[str, ...] = ()  # directories we made for it, the outermost first
    backup: str = ""  # the file as it is without us; "" where there was none
    after: str = ""  # digest of the file as we left it
    excluded: str = ""  # the git exclude file that we added a line to
    at: int = 0


@dataclass(frozen=True)
class Record:
    """Everything that is installed."""

    python: str = ""
    launcher: str = ""
    version: str = ""
    files: tuple[SettingsFile, ...] = ()

    def file(self, path: str) -> SettingsFile | None:
        return next((file for file in self.files if file.path == path), None)

    def with_file(self, changed: SettingsFile) -> Record:
        others = tuple(file for file in self.files if file.path != changed.path)
        return replace(self, files=(*others, changed))

    def without(self, path: str) -> Record:
        return replace(self, files=tuple(file for file in self.files if file.path != path))


def load(state_dir: str) -> Record:
    """The record; empty where there is none or it cannot be understood (entries are found by themselves)."""
    try:
        with open(os.path.join(state_dir, RECORD), encoding="utf-8") as file:
            told = json.load(file)
        files = [
            SettingsFile(**{**one, "made": tuple(one.get("made", ()))}) for one in told.pop("files") if one.get("path")
        ]
        told.pop("v", None)
        return Record(**told, files=tuple(files))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Record()


def save(state_dir: str, record: Record) -> None:
    """Writes the record, or removes it when nothing is installed any more. Raises StoreUnwritableError."""
    path = os.path.join(state_dir, RECORD)
    if not record.files:
        if os.path.lexists(path):
            os.unlink(path)
        return
    _write(path, (json.dumps({"v": 1, **asdict(record)}, indent=2) + "\n").encode(), mode=0o600)


def keeper_installed(state_dir: str) -> bool:
    """Whether the person said yes to the keeper when installing; `away` asks this."""
    return any(file.keeper for file in load(state_dir).files)


@dataclass(frozen=True)
class Plan:
    """One change of one file. None stands for a file that does not exist."""

    path: str  # as the host names it
    target: str  # the file itself, links followed
    now: bytes | None
    then: bytes | None
    without: bytes | None  # the file without us: what the backup holds

    @property
    def changes(self) -> bool:
        return self.now != self.then

    def diff(self) -> str:
        """What changes, as a unified diff of the file."""
        return diff(self.now, self.then, self.path)


def diff(now: bytes | None, then: bytes | None, path: str) -> str:
    """The unified diff of two contents of a file. Raises HostError for what is no text."""
    before, after = (_text(data, path).splitlines(keepends=True) for data in (now, then))
    lines = []
    for line in difflib.unified_diff(before, after, path, path):
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(lines).replace("\r\n", "\n")


def plan_install(
    path: str, wanted: Sequence[Entry], python: str, launcher: str, record: Record, state_dir: str
) -> Plan:
    """What adding these entries changes. Raises HostError for a file we cannot put them into; it is left alone."""
    target, now = _target(path), _read(path)
    text = _text(now, path)
    with _Naming(path):
        without = _without(path, now, record, state_dir)
        if now is not None and claude_settings.is_as_wanted(text, wanted, python, launcher):
            return Plan(path, target, now, now, without)
        then = claude_settings.add(_text(without, path), wanted, python, launcher)
    return Plan(path, target, now, then.encode(), without)


def plan_removal(path: str, record: Record, state_dir: str) -> Plan:
    """What taking our entries out changes. Raises HostError for a file that cannot be read; it is left alone."""
    now = _read(path)
    with _Naming(path):
        without = _without(path, now, record, state_dir)
    return Plan(path, _target(path), now, without, without)


def _without(path: str, now: bytes | None, record: Record, state_dir: str) -> bytes | None:
    """The file without us: the backup while the file is as we left it, else what remains of it."""
    if now is None:
        return None
    known = record.file(path)
    backup = _backup(known, state_dir)
    if known is not None and digest(now) == known.after and (backup is not None or not known.existed):
        return backup
    text = _text(now, path)
    if not claude_settings.installed(text):
        return now
    left = claude_settings.take_out(text, _text(backup, path) if backup is not None else None)
    if known is not None and not known.existed and not claude_settings.read(left):
        return None
    return left.encode()


def _backup(known: SettingsFile | None, state_dir: str) -> bytes | None:
    if known is None or not known.backup:
        return None
    try:
        with open(os.path.join(state_dir, BACKUPS, known.backup), "rb") as file:
            return file.read()
    except OSError:
        return None


def install(plan: Plan, record: Record, state_dir: str, settings: SettingsFile) -> Record:
    """Carries the plan out: backup, record, file. Returns the record.

    Raises HostError if the file has changed since the plan was made, StoreUnwritableError if
    something cannot be written; then the file is as it was.
    """
    assert plan.then is not None
    _see_that_it_still_holds(plan)
    name = ""
    if plan.without is not None:
        name = f"{settings.host}-{hashlib.sha256(plan.path.encode()).hexdigest()[:12]}.json"
        os.makedirs(os.path.join(state_dir, BACKUPS), mode=0o700, exist_ok=True)
        _write(os.path.join(state_dir, BACKUPS, name), plan.without, mode=0o600)
    known = record.file(plan.path)
    made = _missing_directories(plan.target)
    changed = replace(
        settings,
        path=plan.path,
        backup=name,
        existed=plan.without is not None,
        made=made or (known.made if known else ()),
        after=digest(plan.then),
    )
    record = record.with_file(changed)
    save(state_dir, record)
    for directory in made:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    if plan.changes:
        _replace(plan)
    return record


def uninstall(plan: Plan, record: Record, state_dir: str) -> Record:
    """Carries a removal out: the file, then the record. Returns the record. Raises as `install`."""
    known = record.file(plan.path)
    if plan.changes:
        _replace(plan)
    if known is not None:
        for directory in reversed(known.made):
            try:
                os.rmdir(directory)
            except OSError:
                break
        if known.backup:
            try:
                os.unlink(os.path.join(state_dir, BACKUPS, known.backup))
                os.rmdir(os.path.join(state_dir, BACKUPS))
            except OSError:
                pass
        record = record.without(plan.path)
        save(state_dir, record)
    return record


def digest(data: bytes) -> str:
    """The digest a file is recognised by."""
    return hashlib.sha256(data).hexdigest()


# --- files ---------------------------------------------------------------------------------------


class _Naming:
    """Names the file in whatever cannot be done with its text."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> Literal[False]:
        if isinstance(error, HostError) and self.path not in error.happened:
            raise HostError(
                f"{self.path} cannot be used: {error.happened}",
                kept="It was left as it is",
                do="Mend it first; Claude Code itself reads nothing from a file like that",
            ) from error
        return False


def read_text(path: str) -> str:
    """A settings file as text, "" where there is none. Raises HostError where it cannot be read."""
    return _text(_read(path), path)


def settings_in(path: str) -> dict[str, Any]:
    """What a settings file says, {} where there is none. Raises HostError naming the file."""
    text = read_text(path)
    with _Naming(path):
        return claude_settings.read(text)


def entries_in(path: str) -> list[Installed]:
    """Our entries in a settings file. Raises HostError naming the file."""
    text = read_text(path)
    with _Naming(path):
        return claude_settings.installed(text)


def _target(path: str) -> str:
    """The file that is written: through a symbolic link, what it leads to."""
    return os.path.realpath(path)


def _read(path: str) -> bytes | None:
    try:
        file = os.open(_target(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error.strerror or "it cannot be opened") from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise _unusable(path, "it is no regular file")
    with open(file, "rb") as opened:
        data = opened.read(SETTINGS_MAX + 1)
    if len(data) > SETTINGS_MAX:
        raise _unusable(path, f"it is larger than {SETTINGS_MAX // 1024**2} MiB")
    return data


def _text(data: bytes | None, path: str) -> str:
    try:
        return (data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unusable(path, f"it is not UTF-8 text (byte {error.start})") from error


def _unusable(path: str, why: str) -> HostError:
    return HostError(f"{path} cannot be used: {why}", kept="It was left as it is", do="Put that right first")


def _missing_directories(target: str) -> tuple[str, ...]:
    missing: list[str] = []
    directory = os.path.dirname(target)
    while not os.path.isdir(directory) and directory != os.path.dirname(directory):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    return tuple(missing)


def _see_that_it_still_holds(plan: Plan) -> None:
    if _read(plan.path) != plan.now:
        raise HostError(
            f"{plan.path} was changed by another program just now",
            kept="It was left as it is",
            do="Run the same command again",
        )


def _replace(plan: Plan) -> None:
    """Makes the file what the plan says, if it is still what the plan was made for."""
    _see_that_it_still_holds(plan)
    if plan.then is None:
        os.unlink(plan.target)
        return
    there = os.stat(plan.target) if plan.now is not None else None
    _write(plan.target, plan.then, mode=stat.S_IMODE(there.st_mode) if there else 0o600, owner=there)


def _write(path: str, data: bytes, *, mode: int, owner: os.stat_result | None = None) -> None:
    """The file whole or not at all, with this mode (and, where we may, this owner)."""
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}.new")
    try:
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if owner is not None and (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                    try:
                        os.fchown(descriptor, owner.st_uid, owner.st_gid)
                    except OSError:
                        pass
                os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            os.replace(fresh, path)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError as error:
        raise StoreUnwritableError(
            f"{path} cannot be written: {error.strerror}",
            kept="It was left as it is",
            do="Make it writable, then try again",
        ) from error


def as_json(plan: Plan, **more: Any) -> dict[str, Any]:
    """A plan for `--json`."""
    return {"file": plan.path, "target": plan.target, "changes": plan.changes, "diff": plan.diff(), **more}
