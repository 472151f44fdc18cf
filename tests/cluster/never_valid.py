"""Manifests that no API server ever took, and why; found when today's refused them."""

from __future__ import annotations

# By the name of the file and the object: the words of the server, and what is wrong.
NEVER_VALID: dict[tuple[str, str], str] = {}
