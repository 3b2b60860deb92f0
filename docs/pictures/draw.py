"""Draws the pictures of the README from the demo's own output: `python docs/pictures/draw.py` in the environment.

The text is what `stopwarden demo` prints; only the frame and the colours are added here.
"""

from __future__ import annotations

import io
import pathlib
import subprocess
import sys

from rich.console import Console
from rich.text import Text

HERE = pathlib.Path(__file__).parent
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px;
line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: system-ui, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""
COLOURS = {
    "BLOCKED": "bold red",
    "ALLOWED": "bold green",
    "WAITS": "bold cyan",
    "REFUSED": "bold yellow",
    "ERROR": "bold red",
}
HEADS = ("DO FIRST", "LOOK AT", "DONE", "NOT DONE", "TIME", "REFUSED", "COST")


def draw(name: str, title: str, lines: list[str]) -> None:
    """One picture of these lines."""
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True)
    for line in lines:
        text = Text(line)
        for word, style in COLOURS.items():
            if f"  {word}" in line[:16]:
                text.highlight_words([word], style)
        if line.startswith(("$", *HEADS)):
            text.stylize("bold", 0, 11 if line[0] != "$" else None)
        console.print(text, no_wrap=True, crop=True)
    svg = console.export_svg(title=title, code_format=FRAME, unique_id=name)
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Runs the demo and draws the night and the morning."""
    told = subprocess.run(
        [sys.executable, "-m", "stopwarden", "demo"], capture_output=True, text=True, check=True
    ).stdout
    night, _, morning = told.partition("$ stopwarden report")
    begin = night.index("$ stopwarden away")
    draw("night", "the night", night[begin:].splitlines()[:44])
    draw(
        "morning",
        "the morning",
        ["$ stopwarden report", *morning.strip().partition("Now for real")[0].strip().splitlines()],
    )


if __name__ == "__main__":
    main()
