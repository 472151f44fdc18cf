"""A page that needs no network: frame.html with a title, a body, our style and at most our script.

Its policy allows the style and the script by their hashes, so whatever a file or an object contains
does not run.
"""

from __future__ import annotations

import base64
import hashlib
import html
from importlib.resources import files
from string import Template

from webhook.reports.escaping import visible

_ROOM = files("webhook.reports")


def part(name: str) -> str:
    """A file of this package, as text."""
    return _ROOM.joinpath(name).read_text("utf-8")


def escaped(text: str) -> str:
    """The text for HTML, in one line."""
    return html.escape(visible(text))


def framed(title: str, body: str, script: str = "") -> str:
    """The page; the title and the body are HTML."""
    style = part("report.css")
    runs = f"<script>{script}</script>\n" if script else ""
    return Template(part("frame.html")).substitute(
        policy=f"default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'" + (f"; script-src '{_hash(script)}'" if script else ""),
        title=title,
        style=style,
        body=f"{body.rstrip()}\n{runs}",
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
