"""Draws the pictures of the report's page with a real browser: `python docs/pictures/draw_page.py [chromium]`.

The night is a written one, of five sessions; the page is the real one, by day and by night.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent)]  # the written night is one of the tests'

from tests.conftest import LONDON  # noqa: E402
from tests.support.many_nights import busy_night  # noqa: E402

from stopwarden.report import html  # noqa: E402

SIZE = (1120, 1215)
SCHEMES = {"dark": 0, "light": 1}
TITLES = [
    "write the lexer",
    "test the lexer on odd input",
    "write the parser",
    "parse comments and line ends",
    "messages for syntax errors",
    "print a tree again",
    "index the documents",
    "search by title",
    "search in the text",
    "sort by relevance",
    "a page of examples",
    "rename the column",
    "import the old notes",
    "export as Markdown",
    "a dark theme",
    "measure the start-up",
    "release notes",
    "a guide for newcomers",
    "keyboard shortcuts",
    "undo for every edit",
    "a faster start",
    "links between notes",
    "a printed page",
    "tags",
]


def main() -> None:
    """Writes page-light.png and page-dark.png."""
    browser = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "chromium")
    if browser is None:
        raise SystemExit("No browser is found: name one that takes Chromium's options")
    night = busy_night(5, seed=11, names="parser search docs import export", titles=TITLES)
    night.asked = [one.replace(text="Drop the column legacy_id?", chosen="") for one in night.asked]
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        page.write_text(html.render(night.account(), LONDON), encoding="utf-8")
        for scheme, value in SCHEMES.items():
            subprocess.run(
                [
                    *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
                    *("--disable-background-networking", f"--user-data-dir={folder}/profile"),
                    *(f"--window-size={SIZE[0]},{SIZE[1]}", f"--blink-settings=preferredColorScheme={value}"),
                    *(f"--screenshot={HERE}/page-{scheme}.png", page.as_uri()),
                ],
                check=True,
                capture_output=True,
            )


if __name__ == "__main__":
    main()
