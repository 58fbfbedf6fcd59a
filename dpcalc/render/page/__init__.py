"""A page that the people who approve a release can read, keep and verify: self-contained HTML, without scripts."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
from typing import TYPE_CHECKING, Any

from dpcalc.inert import inert, printable
from dpcalc.render.asked import Asked
from dpcalc.render.page.figures import clipped
from dpcalc.render.page.view import Page
from dpcalc.report import Report

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_TEXT = 1500
"""Characters of a text: longer ones are cut."""

_FOLDER = os.path.dirname(__file__)


def render_html(report: Report, asked: Asked) -> str:
    """Return the page of a report.

    It loads nothing: it contains the styles, and its policy forbids everything else. Every text is escaped. Characters
    that would not be visible, such as one that reverses the direction of the text, are shown as their codes.

    Args:
        report: of a query or a check; the cases may have the curves behind their answers.
        asked: the precision of numbers, the earlier report to compare with, and the words of the command line.

    Raises:
        ImportError: jinja2 is not installed.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    from markupsafe import Markup

    page = Page(report, asked)
    text = _environment().get_template("page.jinja").render(page=page, policy=policy, style=Markup(style))
    return inert(text.encode("ascii", "xmlcharrefreplace").decode("ascii"))


@functools.cache
def _style() -> str:
    with open(os.path.join(_FOLDER, "page.css"), encoding="utf-8") as stream:
        return stream.read()


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        """Return a value as a text for the page; jinja2 escapes it."""
        if isinstance(value, Markup):
            return value
        text = printable(value if isinstance(value, str) else str(value))
        return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + " ... (cut)"

    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clipped"] = clipped
    environment.filters["whole"] = Markup  # a data URL of an image, in base64
    return environment
