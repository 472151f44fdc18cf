"""Finds code of ytt, which stands where YAML has comments, or in the texts of its values.

What ytt makes of such a text is not known: a value in a comment is null for every reader of YAML.
"""

from __future__ import annotations

import re

# ytt takes what begins with #! for a comment, and refuses `#@` before any other word.
CODE = r"#@(?:[ \t]|[\w-]+/)"
# A file of data values is plain YAML below its header.
_HEADER = r"#@data/values(?:-schema)?[ \t]*\r?$"
# A line that begins as another comment has none.
_SIGN = re.compile(
    rf"^(?![ \t]*#(?!@))(?:[^\n]*[\s\]}}\"',])?(?!{_HEADER}){CODE}|\(@-?=?[ \t][^\n]*?@\)",
    re.MULTILINE,
)


def has_code(text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether this part of a text has code of ytt."""
    end = len(text) if end is None else end
    if text.find("#@", start, end) < 0 and text.find("(@", start, end) < 0:
        return False
    return _SIGN.search(text, start, end) is not None
