"""Guesses the word that a mistyped word was meant to be."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message, for any capitalization; empty if no known word is similar."""
    lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1)
    return f"; did you mean {lower[close[0]]}?" if close else ""
