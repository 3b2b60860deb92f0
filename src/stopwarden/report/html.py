"""The page as one HTML file: no script, no network, nothing outside of it.

The template lays out the values of `page`; every value is escaped by jinja2, none is ever marked as
markup but our own style sheet. A content security policy in the file allows that style sheet, by its
digest, and nothing else: even markup that got in could load and run nothing.
May not live here: words, numbers (see `page`).
"""

from __future__ import annotations

import base64
import hashlib
import os
from functools import cache
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from stopwarden.report.page import page

if TYPE_CHECKING:
    from stopwarden.core.events import Zone
    from stopwarden.report.account import Account

MARK = '<meta name="generator" content="Stopwarden'  # by which a page of ours is known
HERE = os.path.dirname(os.path.abspath(__file__))


def render(account: Account, zone: Zone) -> str:
    """The account as one HTML document, times local to `zone`."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return _template().render(page=page(account, zone), style=Markup(style), digest=digest)


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.j2")


@cache
def _style() -> str:
    with open(os.path.join(HERE, "page.css"), encoding="utf-8") as file:
        return file.read()
