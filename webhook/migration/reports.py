"""The reports by the names of their formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.migration.report_data import as_json, as_yaml
from webhook.migration.report_github import github
from webhook.migration.report_html import html
from webhook.migration.report_junit import junit
from webhook.migration.report_markdown import markdown
from webhook.migration.report_sarif import sarif
from webhook.migration.report_text import text, wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.migration.results import Report

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
