"""Writes docs/cases.md: what each case id means, in our words, from the docstrings of the tests that prove it.

`python -m tests.cases_page` (`make cases`). A test holds the page to the tests.
"""

from __future__ import annotations

import ast
import pathlib
import re

TESTS = pathlib.Path(__file__).parent
PAGE = TESTS.parent / "docs" / "cases.md"
HEAD = """# Cases

Each id names one thing that must hold; the sentence is the docstring of the test that fails when it does not. `A`: the away
check, `G`: the todo guard, `BR`: a fault that users of such tools reported. Written by `make cases`; do not edit.
"""


def cited(test: ast.FunctionDef) -> list[str]:
    """The case ids that a test function cites."""
    found = []
    for call in (node for decorator in test.decorator_list for node in ast.walk(decorator)):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "case":
            found += [
                word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
            ]
    return found


def page() -> str:
    """The whole page."""
    told: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                sentence = " ".join((ast.get_docstring(node) or node.name.replace("_", " ")).split())
                place = f"`{path.relative_to(TESTS)}::{node.name}`"
                for case in cited(node):
                    told.setdefault(case, []).append(f"{sentence} {place}")
    lines = [HEAD]
    for kind, title in (("A", "The away check"), ("G", "The todo guard"), ("BR", "From the field")):
        ids = sorted(
            (case for case in told if re.fullmatch(rf"{kind}-?\d+", case)),
            key=lambda case: int(re.sub(r"\D", "", case)),
        )
        if ids:
            lines.append(f"## {title}\n")
            lines += [f"- **{case}** " + "; ".join(dict.fromkeys(told[case])) for case in ids]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
