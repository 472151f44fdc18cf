"""What Kubernetes accepts as a label key, a label value and a name (apimachinery `content`)."""

from __future__ import annotations

import re

LONGEST_VALUE = 63
_LONGEST_PREFIX = 253

_ODD = re.compile(r"[^A-Za-z0-9\-_. \t\n]")
_BLANKS = re.compile(r"\s+")
_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def is_value(value: object) -> bool:
    """True for a legal label value: at most 63 characters, alphanumeric at both ends, or empty."""
    return (
        isinstance(value, str)
        and len(value) <= LONGEST_VALUE
        and _VALUE.fullmatch(value) is not None
    )


def is_key(key: object) -> bool:
    """True for a legal label key (a qualified name): `name` or `dns.prefix/name`."""
    if not isinstance(key, str):
        return False
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= _LONGEST_PREFIX and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= LONGEST_VALUE and _NAME.fullmatch(name) is not None


def is_dns_label(name: object) -> bool:
    """True for a legal namespace, volume or host name (RFC 1123 label)."""
    return (
        isinstance(name, str)
        and len(name) <= LONGEST_VALUE
        and _DNS_LABEL.fullmatch(name) is not None
    )


def is_subdomain(name: object) -> bool:
    """True for a legal object name (RFC 1123 subdomain)."""
    return (
        isinstance(name, str)
        and len(name) <= _LONGEST_PREFIX
        and _SUBDOMAIN.fullmatch(name) is not None
    )


def is_kind(kind: object) -> bool:
    """True for a legal kind of object: a DNS label, but for capital letters."""
    return isinstance(kind, str) and kind.isascii() and is_dns_label(kind.lower())


def is_api_version(version: object) -> bool:
    """True for a legal `group/version`, or the `v1` of the core group."""
    group, slash, name = version.rpartition("/") if isinstance(version, str) else ("", "", "")
    return is_dns_label(name) and (is_subdomain(group) if slash else True)


def sanitised(text: str) -> str:
    """The text as GPU Feature Discovery would write it into a label value.

    Characters outside `[A-Za-z0-9-_. ]` go, a run of blanks becomes one dash (k8s-device-plugin
    internal/lm/resource.go), then what the API server would refuse at the ends; `unknown` if
    nothing is left.
    """
    if text and is_value(text):
        return text
    kept = _ODD.sub("", text)
    dashed = _BLANKS.sub("-", kept.strip())
    return dashed.strip("-_.")[:LONGEST_VALUE].rstrip("-_.") or "unknown"
