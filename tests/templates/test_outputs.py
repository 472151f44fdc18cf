"""What an action may write is known from its text only where that is certain."""

from __future__ import annotations

import pytest

from webhook.templates import outputs

# The action; whether it is never empty, and whether it never writes nothing at all.
OF_HELM = {
    "a value": ("{{ .Values.x }}", False, False),
    "a default": ("{{ .Values.x | default 1 }}", True, True),
    "a default in front": ('{{ default "x" .Values.x }}', True, True),
    "a default in quotes": ("{{ .Values.x | default 1 | quote }}", True, True),
    "a default in parentheses": ("{{- (default 1 .Values.x) | quote -}}", True, True),
    "quote in front": ("{{ quote (default 1 .Values.x) }}", True, True),
    "a default that is a number of 0": ("{{ default 0 .Values.x }}", True, True),
    "an empty default": ('{{ .Values.x | default "" }}', False, False),
    "an empty default in quotes": ('{{ .Values.x | default "" | quote }}', False, True),
    "a default of nil": ("{{ default nil .Values.x | quote }}", False, False),
    "a value as a default": ("{{ default .Values.a .Values.b | quote }}", False, False),
    "the last of two defaults": ('{{ .Values.a | default .Values.b | default "x" }}', True, True),
    "quotes leave out nil": ("{{ .Values.x | quote }}", False, False),
    "single quotes leave it out, too": ("{{ squote .Values.x }}", False, False),
    "a text of nil is no nil": ("{{ .Values.x | toString | quote }}", False, True),
    "a named template in quotes": ('{{ include "x" . | quote }}', False, True),
    "a required value": ('{{ required "write x" .Values.x }}', True, True),
    "a number": ("{{ int .Values.x }}", True, True),
    "a number of a pipe": ("{{ .Values.x | int }}", True, True),
    "a text with something around it": ('{{ printf "%s-gpu" .Values.x }}', True, True),
    "a text with nothing around it": ('{{ printf "%s" .Values.x | quote }}', False, True),
    "the name of the release": ("{{ $.Release.Name | quote }}", True, True),
    "upper case of a default": ('{{ .Values.x | default "a" | upper | quote }}', True, True),
    "JSON of nil is null": ("{{ .Values.x | toJson }}", False, False),
    "or takes 0 for nothing": ("{{ or 0 .Values.x }}", False, False),
    "or ends with its last value": ("{{ or .Values.x 0 }}", True, True),
    "or with a text": ('{{ or "a" .Values.x }}', True, True),
    "coalesce takes 0 for nothing": ("{{ coalesce .Values.x 0 }}", False, False),
    "coalesce with a text": ('{{ coalesce .Values.x "a" }}', True, True),
    "a number of 0 is replaced by an empty default": (
        '{{ .Values.x | int | default "" }}',
        False,
        False,
    ),
    "a required number of 0, too": (
        '{{ required "x" .Values.x | default .Values.y }}',
        False,
        False,
    ),
    "a text of a number is not replaced": (
        '{{ .Values.x | int | toString | default "" }}',
        True,
        True,
    ),
    "%v of an empty text": ('{{ printf "%v" .Values.x }}', False, False),
    "%x of an empty text": ('{{ printf "%x" .Values.x }}', False, False),
    "%q of an empty text": ('{{ printf "%q" .Values.x }}', False, False),
    "%d of an empty text": ('{{ printf "%d" .Values.x }}', True, True),
    "a block in one line": ("{{ if .Values.x }}a{{ end }}", False, False),
    "a default of Jinja counts only for what is not defined": (
        "{{ x | default(1) }}",
        False,
        False,
    ),
}
OF_JINJA = {
    "a default for what is not defined": ("{{ x | default(1) }}", False),
    "a default for what is empty, too": ("{{ x | default(1, true) | int }}", True),
    "the same by name": ("{{ x|default('a', boolean=True) }}", True),
    "an empty default": ("{{ x | default('', true) }}", False),
    "a number": ("{{ x | int }}", True),
    "a number of another case": ("{{ '' if y else x | int }}", False),
    "a number if something else is true": ("{{ y and x | int }}", False),
    "a default of another case": ("{{ y if y is defined else x | default(1, true) }}", False),
    "a function of Helm": ("{{ default 1 x }}", False),
}


@pytest.mark.parametrize(("action", "never_empty", "never_nothing"), OF_HELM.values(), ids=OF_HELM)
def test_what_helm_certainly_writes(
    action: str, never_empty: object, never_nothing: object
) -> None:
    assert outputs.is_never_empty(action, in_jinja=False) == never_empty
    assert outputs.is_never_nothing(action, in_jinja=False) == never_nothing


@pytest.mark.parametrize(("action", "never_empty"), OF_JINJA.values(), ids=OF_JINJA)
def test_what_jinja_certainly_writes(action: str, never_empty: object) -> None:
    assert outputs.is_never_empty(action, in_jinja=True) == never_empty
    assert outputs.is_never_nothing(action, in_jinja=True) == never_empty


def test_quotes_and_json() -> None:
    assert outputs.is_quoted("{{ .x | quote }}")
    assert outputs.is_quoted("{{ squote .x }}")
    assert not outputs.is_quoted("{{ .x | quote | indent 2 }}")
    assert outputs.is_json("{{ .x | toJson }}")
    assert not outputs.is_json("{{ .x | toJson | quote }}")
