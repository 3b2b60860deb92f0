"""The checkout a session works in: its root, its copy key, the session's own list.

Theory of operation. A checkout is found from a directory by the nearest `.git` above it (a folder
for a clone, a file for a worktree or a submodule); a folder without git is a checkout of itself; a
directory that is gone is itself, never the repository that happens to lie above it. Found paths are real
paths, so that one checkout has one name.

The *copy key*, 32 random hexadecimal digits, tells checkouts apart without saying where they lie. It is
minted once, in the checkout's own git directory (a worktree has one of its own, `git clean` does
not reach it), or in the state directory where there is no git or it cannot be written. It appears
whole or not at all (written beside, then linked), so two first runs get one key.

A session's own list lies in `.stopwarden/` of its checkout, out of git's sight. Links planted in
its place are refused.

May not live here: reading or editing lists, git commands (none is ever run).
"""

from __future__ import annotations

import errno
import os
import stat

from stopwarden.core.digest import digest
from stopwarden.core.errors import ListError
from stopwarden.work.titles import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

KEY_NAME = "stopwarden-copy-key"
OWN_LISTS = ".stopwarden"
_HEX = frozenset("0123456789abcdef")
_SMALL = 4096  # bytes read of a `.git` file, a key, `commondir`
_READS = 20


# --- where ------------------------------------------------------------------------------------


def find_root(cwd: str) -> str:
    """The root of the checkout that a directory belongs to, as a real path; the directory itself without git."""
    start = os.path.realpath(cwd or "/")
    if not os.path.isdir(start):
        return start
    for folder in _upwards(start):
        if _is_git(f"{folder.rstrip('/')}/.git"):
            return folder
    return start


def is_gone(root: str) -> bool:
    """Whether a checkout is no longer there. One that cannot be looked at is not gone."""
    try:
        return not stat.S_ISDIR(os.stat(root).st_mode)
    except OSError as error:
        return error.errno in (errno.ENOENT, errno.ENOTDIR)


def git_dir(root: str) -> str:
    """The checkout's own git directory (a worktree's is its own), "" without git."""
    path = f"{root.rstrip('/')}/.git"
    if os.path.isdir(path):
        return path if _is_git(path) else ""
    told = _small_text(path)
    if not told.startswith("gitdir:"):
        return ""
    target = told[len("gitdir:") :].strip()
    found = os.path.normpath(os.path.join(root, target))
    return found if os.path.isdir(found) else ""


def common_git_dir(git: str) -> str:
    """The git directory that all worktrees of a repository share."""
    told = _small_text(f"{git}/commondir").strip()
    return os.path.normpath(os.path.join(git, told)) if told else git


def project_key(root: str) -> str:
    """What the worktrees of one repository share, and a folder without git has alone: a real path."""
    git = git_dir(root)
    return os.path.realpath(common_git_dir(git) if git else root)


def place_of_list(path: str) -> tuple[str, str]:
    """The project that a list belongs to, and the place of its items, the same in every worktree."""
    real = os.path.realpath(path)
    root = find_root(os.path.dirname(real))
    project = project_key(root)
    return project, f"{project} {os.path.relpath(real, root)}"


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _is_git(path: str) -> bool:
    return os.path.exists(f"{path}/HEAD") or _small_text(path).startswith("gitdir:")


def _small_text(path: str) -> str:
    """The beginning of an ordinary file as text, "" if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        ordinary = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return os.read(descriptor, _SMALL).decode("utf-8", "surrogateescape") if ordinary else ""
    except OSError:
        return ""
    finally:
        os.close(descriptor)


# --- the copy key -----------------------------------------------------------------------------


def copy_key(root: str, state_dir: str, make: bool = True) -> str:
    """The key of a checkout, minted at first need; "" if there is none and `make` is false, or none can be kept."""
    git = git_dir(root)
    places = [f"{git}/{KEY_NAME}"] if git else []
    places.append(f"{state_dir}/copies/{_digest(root)}")
    for path in places:
        key = _key_in(path)
        if key:
            return key
    if not make or is_gone(root):
        return ""
    for path in places:
        try:
            if path == places[-1]:
                os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            return _minted(path)
        except OSError:
            continue  # a git directory that cannot be written: the state directory keeps the key
    return ""


def _key_in(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        key = os.read(descriptor, _SMALL).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return key if len(key) == 32 and _HEX.issuperset(key) else ""


def _minted(path: str) -> str:
    """A new key at that path, or the one that another process has put there first. Raises OSError."""
    content = os.urandom(16).hex().encode() + b"\n"
    for _ in range(_READS):
        if _appears(path, content, 0o600):
            return content.decode().strip()
        key = _key_in(path)
        if key:
            return key
        _remove_damaged(path)
    raise OSError(errno.EIO, "no copy key can be kept", path)


def _remove_damaged(path: str) -> None:
    """Takes away a key that is none; one process at a time, so that no good one goes."""
    import fcntl

    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path) and not _key_in(path):
            os.unlink(path)
    finally:
        os.close(folder)


def _appears(path: str, content: bytes, mode: int) -> bool:
    """Makes a file that appears whole at once; False if there is one already. Raises OSError."""
    beside = f"{path}.{os.urandom(6).hex()}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        try:
            os.write(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(beside, path, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        if os.path.lexists(path):
            return False
        os.rename(beside, path)  # a file system without hard links
        return True
    finally:
        if os.path.lexists(beside):
            os.unlink(beside)
    return True


def _digest(text: str) -> str:
    return digest(text, 32)


# --- a session's own list ---------------------------------------------------------------------


def own_list_path(root: str, session_id: str) -> str:
    """Where a session's own list is, or would be. An id that is no file name is replaced by its digest."""
    safe = 0 < len(session_id) <= 64 and session_id.isascii() and session_id.replace("-", "").replace("_", "").isalnum()
    name = session_id if safe else f"session-{_digest(session_id)[:16]}"
    return f"{root.rstrip('/')}/{OWN_LISTS}/{name}.md"


def make_own_list(root: str, session_id: str, title: str = "") -> tuple[str, bool]:
    """The session's own list, and whether it was made now: a short head that tells how to write in it.

    Raises ListError if the checkout is gone, something is planted in its place, or it cannot be written.
    """
    path = own_list_path(root, session_id)
    folder = os.path.dirname(path)
    try:
        there = os.lstat(path)
        if not stat.S_ISREG(there.st_mode) or not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise _not_made(path, "something else stands in its place")
        return path, False
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _not_made(path, os.strerror(error.errno or 0).lower()) from error
    try:
        _make_folder(folder)
        _hide_from_git(root, folder)
        return path, _appears(path, _head(one_line(title)).encode(), 0o644)
    except OSError as error:
        raise _not_made(path, os.strerror(error.errno or 0).lower()) from error


def _make_folder(folder: str) -> None:
    try:
        os.mkdir(folder, 0o755)
    except FileExistsError:
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise _not_made(folder, "it is a symbolic link or no folder") from None


def _hide_from_git(root: str, folder: str) -> None:
    """Keeps the folder out of git by `info/exclude`, or where that cannot be written, by a file inside it."""
    git = git_dir(root)
    if not git:
        return
    info = f"{common_git_dir(git)}/info"
    try:
        os.makedirs(info, exist_ok=True)
        descriptor = os.open(
            f"{info}/exclude", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
        )
        try:
            there = os.read(descriptor, 1 << 20)
            if f"{OWN_LISTS}/".encode() not in (line.strip().lstrip(b"/") for line in there.split(b"\n")):
                os.write(
                    descriptor, (b"" if there.endswith(b"\n") or not there else b"\n") + f"{OWN_LISTS}/\n".encode()
                )
        finally:
            os.close(descriptor)
    except OSError:
        _appears(f"{folder}/.gitignore", b"*\n", 0o644)


def _head(title: str) -> str:
    return f"""# {title or "Work of this session"}

What is to be done here, one line each, from top to bottom. A line begins with a box that says how it stands:
open `- [ ]`, begun `- [/]`, done `- [x]`, dropped `- [-]`. What cannot be done now ends in
`(waits for person: why)` or `(waits for external: why)`. Agent and person both write in this file.

"""


def _not_made(path: str, why: str) -> ListError:
    return ListError(
        f"The session's own list {path} cannot be made ({why})",
        kept="Nothing was written",
        do="Put that right, or name a list: stopwarden away --list TODO.md",
    )
