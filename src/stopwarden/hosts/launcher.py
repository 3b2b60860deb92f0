"""The launcher: the one file that agent programs' settings name, and that never moves.

Settings name an interpreter and `$XDG_DATA_HOME/stopwarden/hook.py`. The package behind it does
move (an upgrade, a new environment, a clone made a wheel), so the launcher is told where the
package and its one compiled dependency are, and looks again below its interpreter's directory when
they are gone. It imports `stopwarden.hook.run` as a module, so that cached bytecode is used, and
after `-I -S` nothing else of any site directory runs (no `.pth` files). An upgrade under way is
waited for; where the package stays away, the launcher says so in one line and lets the host go on:
it cannot judge, and a traceback would help nobody.

Any later command may call `refresh_if_stale`: it rewrites this file alone, never a settings file,
and only on behalf of the interpreter that the settings start.

Reads and writes files of ours; may not touch a settings file.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stopwarden.core.errors import StoreUnwritableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = "hook.py"
INTERPRETER_MARK = "# Written by stopwarden for "
SITES_MARK = "SITES = "

TEMPLATE = '''\
# Written by stopwarden for {python}
# Starts Stopwarden's hook program. Rewritten by stopwarden itself after an upgrade; do not edit.
import sys

SITES = {sites}


def find():
    """The package after an upgrade: looked for below this interpreter; a stop waits for one under way."""
    import os, time

    base = os.path.dirname(os.path.dirname(sys.executable))
    for _ in range(8 if sys.argv[1:2] == ["stop"] else 1):
        for lib in ("lib", "lib64"):
            try:
                found = sorted(name for name in os.listdir(os.path.join(base, lib)) if name.startswith("python3"))
            except OSError:
                found = []
            ours = "python%d.%d" % sys.version_info[:2]
            for name in sorted(found, key=lambda name: name != ours):
                site = os.path.join(base, lib, name, "site-packages")
                if site not in sys.path and os.path.isdir(os.path.join(site, "stopwarden")):
                    sys.path.append(site)
        sys.path_importer_cache.clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "stopwarden"]:
            del sys.modules[name]
        try:
            from stopwarden.hook.run import main
            return main
        except Exception:
            time.sleep(0.25)
    return give_up


def give_up():
    if sys.argv[1:2] in (["stop"], ["session-start"]):
        print('{{"systemMessage": "Stopwarden is gone or broken here, so it judges nothing. '
              'Run stopwarden doctor, or stopwarden uninstall claude-code."}}')


sys.path += SITES
try:
    from stopwarden.hook.run import main
except Exception:
    main = find()
main()
'''


@dataclass(frozen=True)
class Launcher:
    """What a launcher file says: for which interpreter it was written, and where it finds the package."""

    python: str
    sites: tuple[str, ...]
    text: str


def path(env: Mapping[str, str]) -> str:
    """Where this user's launcher is; the same across upgrades, whether or not it exists."""
    base = env.get("XDG_DATA_HOME", "")
    if not base.startswith("/"):
        base = os.path.join(env.get("HOME") or os.path.expanduser("~"), ".local", "share")
    return os.path.join(os.path.normpath(base), "stopwarden", NAME)


def interpreter() -> str:
    """The absolute interpreter of the environment we run in, as settings are to name it.

    An environment's own path is kept (its base interpreter lacks our dependency); a script that
    stands in for an interpreter (a pyenv shim) is passed over for the one that really runs.
    """
    real = [sys.executable, getattr(sys, "_base_executable", "") or "", os.path.realpath("/proc/self/exe")]
    found = next((one for one in real if _is_program(one)), sys.executable)
    directory = os.path.dirname(found)
    within = sys.prefix != sys.base_prefix and os.path.dirname(directory) == sys.prefix
    steady = "python" if within else f"python{sys.version_info.major}.{sys.version_info.minor}"
    named = os.path.join(directory, steady)
    # One name for one interpreter, however we were started, so that installing twice changes nothing.
    return named if _is_program(named) and os.path.samefile(named, found) else found


def _is_program(path: str) -> bool:
    """Whether it is an absolute path of a program that is no script."""
    if not os.path.isabs(path) or not os.access(path, os.X_OK):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(2) != b"#!"
    except OSError:
        return False


def sites() -> tuple[str, ...]:
    """The directories to import from: the package's own, and that of its compiled dependency."""
    import apsw

    import stopwarden

    ours = os.path.dirname(os.path.dirname(os.path.abspath(stopwarden.__file__)))
    theirs = os.path.dirname(os.path.abspath(apsw.__file__))
    if os.path.basename(theirs) == "apsw":
        theirs = os.path.dirname(theirs)
    return (ours,) if ours == theirs else (ours, theirs)


def text_for(python: str, where: Sequence[str]) -> str:
    """The launcher for an interpreter and the directories to import from."""
    return TEMPLATE.format(python=ascii(python), sites=f"[{', '.join(ascii(site) for site in where)}]")


def read(env: Mapping[str, str]) -> Launcher | None:
    """This user's launcher as it is on disk, or None where there is none that we wrote."""
    return read_file(path(env))


def read_file(path: str) -> Launcher | None:
    """A launcher as it is on disk, or None where the file is none."""
    import ast

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(64 * 1024)
    except (OSError, UnicodeDecodeError):
        return None
    lines = text.splitlines()
    marked = next((line for line in lines if line.startswith(INTERPRETER_MARK)), None)
    listed = next((line for line in lines if line.startswith(SITES_MARK)), None)
    if marked is None or listed is None:
        return None
    try:
        python = ast.literal_eval(marked.removeprefix(INTERPRETER_MARK))
        where = ast.literal_eval(listed.removeprefix(SITES_MARK))
    except (ValueError, SyntaxError):
        return None
    return Launcher(str(python), tuple(str(site) for site in where), text)


def write(env: Mapping[str, str], python: str) -> bool:
    """Writes the launcher for this environment; False where it is already so. Raises StoreUnwritableError."""
    wanted = text_for(python, sites())
    there = read(env)
    if there is not None and there.text == wanted:
        return False
    target = path(env)
    fresh = f"{target}.{os.getpid()}.new"
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            file.write(wanted)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, target)
    except OSError as error:
        raise StoreUnwritableError(
            f"The launcher {target} cannot be written: {error.strerror}",
            kept="Nothing was installed",
            do="Make its directory writable, or set XDG_DATA_HOME to one that is",
        ) from error
    return True


def what_is_gone(python: str, hook: str) -> str:
    """Which of an entry's two files cannot be started any more, or "": two looks, so `away` can afford it."""
    if not os.access(python, os.X_OK):
        return python
    return "" if os.path.isfile(hook) else hook


def remove(env: Mapping[str, str]) -> None:
    """Takes the launcher away, and its directory if nothing else is in it."""
    try:
        os.unlink(path(env))
        os.rmdir(os.path.dirname(path(env)))
    except OSError:
        return


def refresh_if_stale(env: Mapping[str, str]) -> bool:
    """Brings an existing launcher up to date after an upgrade; True if it was rewritten.

    For any command that runs before a night (`away`, `doctor`): cheap, never raises, never touches a
    settings file. Only the interpreter that the launcher was written for may do it: a second
    installation of Stopwarden must not take the hooks over unasked.
    """
    there = read(env)
    if there is None:
        return False
    try:
        if there.python != interpreter():
            return False
        return write(env, there.python)
    except (StoreUnwritableError, OSError, ImportError):
        return False


def compile_package() -> bool:
    """Caches the package's bytecode for this interpreter, so that no hook has to; False where it cannot be written."""
    import compileall

    import stopwarden

    package = os.path.dirname(os.path.abspath(stopwarden.__file__))
    return bool(compileall.compile_dir(package, quiet=2))
