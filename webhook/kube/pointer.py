"""The place of a value in an object: a JSON Pointer (RFC 6901) as a tuple."""

from __future__ import annotations

from typing import Any


class Path(tuple[str | int, ...]):
    """A JSON Pointer as a tuple of member names and list positions; `path / token` goes deeper."""

    __slots__ = ()

    def __truediv__(self, token: str | int) -> Path:
        """The path one step deeper."""
        return Path((*self, token))

    def __str__(self) -> str:
        """The RFC 6901 text: `~` is written `~0`, `/` is written `~1`."""
        return "".join([f"/{escape(token) if isinstance(token, str) else token}" for token in self])

    @property
    def parent(self) -> Path:
        """The path of the map or list that holds this place."""
        return Path(self[:-1])

    @property
    def dotted(self) -> str:
        """The path as Kubernetes prints it: `spec.containers[0].resources.limits[a/b]`."""
        text = ""
        for token in self:
            if isinstance(token, int) or "." in token or "/" in token:
                text += f"[{token}]"
            else:
                text += f".{token}" if text else token
        return text


def value_at(obj: Any, at: Path) -> Any:
    """The existing value at this place."""
    for token in at:
        obj = obj[token]
    return obj


def tokens(pointer: str) -> tuple[str, ...]:
    """The reference tokens of a JSON Pointer."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])


def escape(token: str) -> str:
    """One reference token of a JSON Pointer, escaped (RFC 6901 section 3)."""
    if "~" in token or "/" in token:
        return token.replace("~", "~0").replace("/", "~1")
    return token


ROOT = Path()
