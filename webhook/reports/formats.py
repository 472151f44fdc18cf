"""The reports by the names of their formats: name in, printer out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.reports.data import as_json, as_yaml
from webhook.reports.github import github
from webhook.reports.html import html
from webhook.reports.junit import junit
from webhook.reports.markdown import markdown
from webhook.reports.sarif import sarif
from webhook.reports.text import text, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.files.results import Report

REPORTS: dict[str, Callable[[Report], str]] = {
    "text": text,
    "wide": wide,
    "json": as_json,
    "yaml": as_yaml,
    "markdown": markdown,
    "html": html,
    "sarif": sarif,
    "junit": junit,
    "github": github,
}
