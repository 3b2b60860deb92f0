"""Stopwarden as a person has it: a wheel, installed in an environment of its own, with no clone behind it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real_host.harness import CLONE, RealHost, claude

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Furnish(Protocol):
        """Makes a `RealHost`; all of them are left at the test's end."""

        def __call__(
            self, answer: Callable[..., object], *, allow: tuple[str, ...] = ..., env: dict[str, str] | None = ...
        ) -> RealHost: ...


NEEDED = ("apsw", "jinja2", "markupsafe", "rich", "markdown-it-py", "mdurl", "pygments")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `stopwarden` of an environment into which the wheel was installed; what the wheel was built from is gone."""
    claude()  # before anything is built: without the real host there is nothing to try
    place = tmp_path_factory.mktemp("installed")
    copy = place / "clone"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(CLONE / name, copy)
    shutil.copytree(CLONE / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    _build(copy, place)
    shutil.rmtree(copy)
    venv = place / "venv"
    _run(sys.executable, "-m", "venv", "--without-pip", str(venv))
    site = next((venv / "lib").glob("python3*/site-packages"))
    for needed in NEEDED:
        _copy_installed(needed, site)
    python = venv / "bin" / "python"
    wheel = str(next(place.glob("*.whl")))
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps", wheel)
    return venv / "bin" / "stopwarden"


@pytest.fixture
def furnish(program: Path) -> Iterator[Furnish]:
    """Furnishes homes with a scripted model; every process started in them is ended with the test."""
    made: list[RealHost] = []

    def make(
        answer: Callable[..., object], *, allow: tuple[str, ...] = (), env: dict[str, str] | None = None
    ) -> RealHost:
        host = RealHost(program, answer, allow=allow, env=env)  # type: ignore[arg-type]
        host.__enter__()
        made.append(host)
        return host

    yield make
    for host in made:
        host.__exit__()


def _build(source: Path, target: Path) -> None:
    _run(
        *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"),
        *("--no-index", "-w", str(target), str(source)),
    )


def _copy_installed(name: str, site: Path) -> None:
    """Copies a package from this environment, so that no network is needed to make another."""
    package = importlib.metadata.distribution(name)
    for file in package.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(package.locate_file(file)), target)


def _run(*words: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the build backend looks for its program there
    environment = {**os.environ, "HOME": str(Path.home()), "PATH": path}
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
