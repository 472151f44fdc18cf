"""What Kubernetes accepts as a label key, a label value and a name (apimachinery `content`)."""

from __future__ import annotations

import re

LONGEST_VALUE = 63

# Also valid in ECMA-262, for the JSON Schema of the settings. Lengths are checked first, by a
# negative lookahead.
NAME = r"(?![-A-Za-z0-9_.]{64})[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_DNS = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
DNS_LABEL = rf"(?![-a-z0-9]{{64}}){_DNS}"
SUBDOMAIN = rf"(?![-a-z0-9.]{{254}}){_DNS}(?:\.{_DNS})*"
KEY = rf"(?:{SUBDOMAIN}/)?{NAME}"
VALUE = rf"(?:{NAME})?"

_ODD = re.compile(r"[^A-Za-z0-9\-_. \t\n]")
_BLANKS = re.compile(r"\s+")
_DNS_LABEL, _SUBDOMAIN, _KEY, _VALUE = map(re.compile, (DNS_LABEL, SUBDOMAIN, KEY, VALUE))


def is_value(value: object) -> bool:
    """True for a legal label value: at most 63 characters, alphanumeric at both ends, or empty."""
    return isinstance(value, str) and _VALUE.fullmatch(value) is not None


def is_key(key: object) -> bool:
    """True for a legal label key (a qualified name): `name` or `dns.prefix/name`."""
    return isinstance(key, str) and _KEY.fullmatch(key) is not None


def is_dns_label(name: object) -> bool:
    """True for a legal namespace, volume or host name (RFC 1123 label)."""
    return isinstance(name, str) and _DNS_LABEL.fullmatch(name) is not None


def is_subdomain(name: object) -> bool:
    """True for a legal object name (RFC 1123 subdomain)."""
    return isinstance(name, str) and _SUBDOMAIN.fullmatch(name) is not None


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
