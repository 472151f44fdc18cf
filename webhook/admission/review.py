"""From bytes to a review: parsed once, and only what this program relies on is checked."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import orjson

from webhook.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

V1 = "admission.k8s.io/v1"
V1BETA1 = "admission.k8s.io/v1beta1"  # what API servers before 1.16 send
VERSIONS = (V1, V1BETA1)

_CURE = "Send an AdmissionReview as kube-apiserver does"
_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_UID = re.compile(r"[A-Za-z0-9._:-]{1,128}")  # it is echoed: nothing in it may need escaping
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_BEYOND_64_BITS = b"0" * 19
# A light review holds the event loop for some 50 ms at most, whatever is in it: it is short, and
# has few commas. None of the things that rules go through, but parts of a search path, comes
# without one; the dearest, a container for the guard, takes 50 us.
NEVER_LIGHT = 64 * 1024
MOST_COMMAS = 1200  # a pod of ten containers, with defaults and managedFields, has 1,100
_BEFORE_OBJECT = b',"object":'


@dataclass(slots=True)
class Review:
    """A review that can be answered."""

    version: str
    uid: str
    request: dict[str, Any]
    body: bytes
    _read: Callable[[bytes], Any]

    def fresh_object(self) -> Any:
        """The object once more, as it came, however the first one was edited."""
        return self._read(self.body)["request"]["object"]


def parse(body: bytes) -> Review:
    """The review in this body, or InputError."""
    if not body:
        raise InputError(f"body: empty. {_CURE}")
    if not _OBJECT.match(body):  # said before megabytes of something else are parsed
        raise InputError(f"body: no JSON object. {_CURE}")
    try:
        review, read = _load(body)
    except ValueError as error:
        raise InputError(f"body: no JSON ({str(error)[:120]}). {_CURE}") from None
    version, kind = review.get("apiVersion"), review.get("kind")
    if kind != "AdmissionReview":
        raise InputError(f"kind: {_quoted(kind)} instead of AdmissionReview. {_CURE}")
    if version not in VERSIONS:
        raise InputError(
            f"apiVersion: {_quoted(version)} is not spoken here. "
            f"Set admissionReviewVersions of the webhook to [v1] or [v1beta1]"
        )
    request = review.get("request")
    if not isinstance(request, dict):
        raise InputError(f"request: {_kind(request)} instead of an object. {_CURE}")
    uid = request.get("uid")
    if not isinstance(uid, str) or not _UID.fullmatch(uid):
        raise InputError(
            f"request.uid: {_quoted(uid)} is none. Send 1 to 128 letters, digits and . _ : -"
        )
    return Review(version, uid, request, body, read)


def is_heavy(body: bytes) -> bool:
    """Whether judging this review might take longer; known before it is parsed."""
    return len(body) > NEVER_LIGHT or body.count(b",") > MOST_COMMAS


def glance(body: bytes) -> Review | None:
    """All of a review but its objects, at little cost; None if it is not as an API server sends it.

    Go writes the object behind all that says what the request is. Whatever stands before it, a
    text cannot hold these bytes unescaped.
    """
    end = body.find(_BEFORE_OBJECT)
    try:
        return parse(body[:end] + b"}}") if end > 0 else None
    except InputError:
        return None


def load(text: bytes) -> Any:
    """Parse JSON, or raise ValueError.

    orjson first. Two things are left to `json`, which is ten times slower: lone surrogates, which
    orjson refuses although such a text can be answered, and whole numbers beyond 64 bits (19 digits
    and more), which it would turn into floats.
    """
    return _load(text)[0]


def _load(text: bytes) -> tuple[Any, Callable[[bytes], Any]]:
    """The value, and the parser that is right for this text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        if not _SURROGATE.search(text):
            raise
        return _load_slowly(text), _load_slowly
    if _BEYOND_64_BITS not in text.translate(_DIGITS):
        return value, orjson.loads
    try:
        return _load_slowly(text), _load_slowly
    except ValueError:  # nested deeper than `json` goes: what orjson found is as good as it gets
        return value, orjson.loads


def dump(value: object) -> bytes:
    """The value as JSON, also where orjson cannot say it (lone surrogates, long integers)."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def _load_slowly(text: bytes) -> Any:
    try:
        return json.loads(
            text.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null or nothing"
        case list():
            return "a list"
        case str():
            return "a text"
        case _:
            return "something else"


def _quoted(value: object) -> str:
    """What came, short and harmless: it goes into a message."""
    return ascii(value)[:60] if isinstance(value, str) else _kind(value)
