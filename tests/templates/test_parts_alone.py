"""A part of a text is read by itself: what is around it takes no time, and changes nothing."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from webhook.templates import actions, cases
from webhook.templates.cases import Case, Rest
from webhook.templates.regions import Region, manifests

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: main}\n"
# An action over two lines, one inside another block, and a branch that is not chosen.
TEMPLATE = """\
first: {{ .a
  | quote }}
{{- if .b }}
second: {{ .c }}
{{- else }}
third: {{ .d }} # {{ .e }}
{{- end }}
fourth: |

  {{ if .f }}x{{ end }}
"""


def test_a_manifest_does_not_reach_into_the_blanks_before_its_part() -> None:
    before = "\n" * 1000
    text = f"{before}{POD}\n{POD}"
    assert manifests(text, Region(1000, 1000 + len(POD))) == [Region(1000, 1000 + len(POD))]


@pytest.mark.parametrize("rest", Rest)
def test_a_part_shows_what_it_shows_in_the_whole_text(rest: Rest) -> None:
    template, case = actions.read(TEMPLATE), Case({}, rest)
    whole = _hidden(template, case, 0, len(TEMPLATE))
    assert "{{" not in whole
    starts = [0, *(each.end() for each in re.finditer("\n", TEMPLATE))]
    for first, last in pairwise(starts[:9]):
        assert _hidden(template, case, first, last) == whole[first:last]


def _hidden(template: actions.Template, case: Case, first: int, last: int) -> str:
    part = cases.Part(template, lambda each: "x" * (each.end - each.start), first, last)
    return part.text(case)


@pytest.mark.parametrize("text", ["a\tb\r\n c", "  \n\t\n x", " \r\n \n", ""])
def test_blanks_take_the_place_of_all_but_the_line_ends(text: str) -> None:
    for end in range(len(text) + 1):
        assert actions.blank_until(text, end) == actions.blank(text[:end])
