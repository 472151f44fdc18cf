"""Parses the bytes of an AdmissionReview once, and checks the fields that the program uses."""

from __future__ import annotations

import gc
import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

import orjson

from webhook.core.errors import InputError

V1 = "admission.k8s.io/v1"
V1BETA1 = "admission.k8s.io/v1beta1"  # from API servers before 1.16
VERSIONS = (V1, V1BETA1)

_ADVICE = "Send an AdmissionReview as kube-apiserver does"
_OBJECT = re.compile(rb"[ \t\r\n]*\{")
_UID = re.compile(r"[A-Za-z0-9._:-]{1,128}")  # it is echoed: nothing in it may need escaping
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_DIGITS = bytes(ord("0") if chr(byte) in "0123456789" else ord(" ") for byte in range(256))
_BEYOND_64_BITS = b"0" * 19
_STEP = 1024 * 1024  # bytes that are searched at once, so that no copy of the body is made
# Seven MiB of `{},` become 210 MiB of values. So the memory is bounded before a text is parsed, by
# an upper estimate (tests/admission/test_review.py measures). Two pods of 1 MB each, half of it
# managedFields, come to 45 MiB. Overestimates are subtracted: an empty object is smaller, and the
# colon in a key of managedFields ends no key.
MOST_PARSED = 60 * 1024 * 1024
_BYTES_OF = {b"{": 112, b"[": 96, b",": 56, b":": 64, b'"': 32, b"{}": -48, b'"f:': -64}
_DEAREST = 117  # bytes of memory for one byte of text, at most
# A light review blocks the event loop for at most 50 ms, whatever it contains: it is short and has
# few commas. Everything that rules loop over, except parts of a search path, needs commas; the
# slowest, a container for the guard, takes 50 us.
NEVER_LIGHT = 64 * 1024
MOST_COMMAS = 1200  # a pod of ten containers, with defaults and managedFields, has 1,100
# The facts about a review come before the object, and all but the user before userInfo, which an
# authenticator may make long, and which may have a field "object" of its own.
_MARKS = (b',"object":', b',"userInfo":')
HEAD_BYTES = 64 * 1024  # contains one of them; a name has at most 253 bytes


@dataclass(slots=True)
class Review:
    """A review that can be answered."""

    version: str
    uid: str
    request: dict[str, Any]
    body: bytes
    _has_long_digits: bool

    def fresh_object(self) -> Any:
        """The object parsed again, as it came, whatever edits the first one got."""
        return _load(self.body, has_long_digits=self._has_long_digits)["request"]["object"]


def parse(body: bytes) -> Review:
    """The review in this body, or InputError."""
    if not body:
        raise InputError(f"body: empty. {_ADVICE}")
    if not _OBJECT.match(body):  # checked before megabytes of other data are parsed
        raise InputError(f"body: not a JSON object. {_ADVICE}")
    if len(body) * _DEAREST > MOST_PARSED and memory_of(body) > MOST_PARSED:
        raise InputError("body: too many fields and list items. Send a smaller object")
    long_digits = _has_long_digits(body)
    try:
        review = _load(body, has_long_digits=long_digits)
    except ValueError as error:
        raise InputError(f"body: not JSON ({str(error)[:120]}). {_ADVICE}") from None
    version, kind = review.get("apiVersion"), review.get("kind")
    if kind != "AdmissionReview":
        raise InputError(f"kind: {_quoted(kind)} instead of AdmissionReview. {_ADVICE}")
    if version not in VERSIONS:
        raise InputError(
            f"apiVersion: {_quoted(version)} is not supported. "
            f"Set admissionReviewVersions of the webhook to [v1] or [v1beta1]"
        )
    request = review.get("request")
    if not isinstance(request, dict):
        raise InputError(f"request: {_kind(request)} instead of an object. {_ADVICE}")
    uid = request.get("uid")
    if not isinstance(uid, str) or not _UID.fullmatch(uid):
        raise InputError(
            f"request.uid: {_quoted(uid)} is not a UID. Send 1 to 128 letters, digits and . _ : -"
        )
    return Review(version, uid, request, body, long_digits)


def is_heavy(body: bytes) -> bool:
    """Whether this review might take long to evaluate; known before it is parsed."""
    return len(body) > NEVER_LIGHT or body.count(b",") > MOST_COMMAS


def glance(body: bytes) -> Review | None:
    """All of a review except its objects, quickly; None unless it is as an API server sends it.

    Go writes the object after all facts about the request. A string before it cannot contain these
    bytes unescaped. The body may be cut off, or malformed, from there on.
    """
    for mark in _MARKS:
        end = body.find(mark, 0, HEAD_BYTES)
        with suppress(InputError):
            if end > 0:
                return parse(body[:end] + b"}}")
    return None


def memory_of(text: bytes) -> int:
    """The most bytes that parsing this text takes, whatever it contains.

    Takes some ms for a MiB.
    """
    is_narrow = text.isascii() and text.count(b"\\u") == text.count(b"\\u00")  # as Go writes `<`
    size = len(text) * (2 if is_narrow else 5)  # one wide character makes all of its text wide
    if _may_be_read_slowly(text):  # then there is a copy of all characters besides the values
        size += len(text) * (2 if text.isascii() else 5)
    return size + sum(text.count(mark) * each for mark, each in _BYTES_OF.items())


def load(text: bytes) -> Any:
    """Parse JSON, or raise ValueError.

    orjson is tried first. Two cases are left to `json`, which is ten times slower: lone surrogates,
    which orjson rejects although such a text can be answered, and integers beyond 64 bits (19
    digits and more), which it would turn into floats. There are never two values at a time.
    """
    return _load(text, has_long_digits=_has_long_digits(text))


def _load(text: bytes, *, has_long_digits: bool) -> Any:
    """Parsed without garbage collection, which takes four times as long as a million small lists.

    All other requests would wait meanwhile.
    """
    gc.disable()
    try:
        return _parsed(text, has_long_digits=has_long_digits)
    finally:
        gc.enable()


def _parsed(text: bytes, *, has_long_digits: bool) -> Any:
    if has_long_digits:
        # Nested deeper than `json` supports: the result of orjson is the best available.
        with suppress(ValueError):
            return _load_slowly(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if not _SURROGATE.search(text):
            raise
    return _load_slowly(text)


def _may_be_read_slowly(text: bytes) -> bool:
    return bool(_SURROGATE.search(text)) or _has_long_digits(text)


def _has_long_digits(text: bytes) -> bool:
    if len(text) <= _STEP:  # the usual case
        return _BEYOND_64_BITS in text.translate(_DIGITS)
    width = _STEP + len(_BEYOND_64_BITS) - 1
    starts = range(0, len(text), _STEP)
    return any(_BEYOND_64_BITS in text[at : at + width].translate(_DIGITS) for at in starts)


def dump(value: object) -> bytes:
    """The value as JSON, also if orjson cannot write it (lone surrogates, long integers)."""
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
    raise ValueError(f"{name} is not a JSON number")


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
    """The value, short and escaped, for a message."""
    return ascii(value)[:60] if isinstance(value, str) else _kind(value)
