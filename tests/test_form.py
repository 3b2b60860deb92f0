"""Limits of form: how long a module, and a function of the core, may be, so that each can be read top to bottom."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "src" / "stopwarden"
MODULES = sorted(PACKAGE.rglob("*.py"))
CORE = [module for module in MODULES if module.parent.name == "core"]
LINES_OF_A_FUNCTION, LINES_OF_A_MODULE = 70, 600


def functions(module: pathlib.Path) -> Iterator[tuple[str, int]]:
    """Name and lines of every function, methods and inner ones too, its decorators and docstring counted."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield node.name, (node.end_lineno or first) - first + 1


def named(module: pathlib.Path) -> str:
    """The module as a test's name shows it."""
    return str(module.relative_to(PACKAGE))


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_no_module_is_too_long(module: pathlib.Path) -> None:
    """Six hundred lines at most."""
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LINES_OF_A_MODULE


@pytest.mark.parametrize("module", CORE, ids=named)
def test_no_function_of_the_core_is_too_long(module: pathlib.Path) -> None:
    """Seventy lines at most."""
    assert {name: lines for name, lines in functions(module) if lines > LINES_OF_A_FUNCTION} == {}


def test_the_core_is_among_what_is_measured() -> None:
    """A core that moved elsewhere would pass without being looked at."""
    assert len(CORE) >= 30
