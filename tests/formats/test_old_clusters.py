"""Removed API versions in the branches of templates, and which branch the target takes."""

from __future__ import annotations

import pytest

from webhook.files.results import FileResult, Plan, Status
from webhook.files.source import Source
from webhook.formats.mentions import mentions
from webhook.formats.migrate import migrate_text

POD_TEMPLATE = """\
metadata: {name: x}
spec:
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec:
      containers:
      - name: x
        resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
"""
OLD_ELSE = "apiVersion: apps/v1beta1\n{{- end }}\nkind: Deployment\n"
HAS_REMOVED = '.Capabilities.APIVersions.Has "apps/v1beta2"'


def chosen(condition: str) -> str:
    """A template that writes the current version if this is so, and a removed one otherwise."""
    return f"{{{{- if {condition} }}}}\napiVersion: apps/v1\n{{{{- else }}}}\n{OLD_ELSE}"


ELSE_IS_TAKEN = {
    "a removed version is asked for": chosen(HAS_REMOVED),
    "a removed kind": chosen('.Capabilities.APIVersions.Has "extensions/v1beta1/Deployment"'),
    "a removed version and a current one": chosen(
        f'and ({HAS_REMOVED}) (.Capabilities.APIVersions.Has "apps/v1")'
    ),
    "a removed version and a value": chosen(f"and ({HAS_REMOVED}) .Values.new"),
    "a removed version or another one": chosen(
        f'or ({HAS_REMOVED}) (.Capabilities.APIVersions.Has "batch/v1beta1")'
    ),
    "a removed version or a value": chosen(f"or ({HAS_REMOVED}) .Values.new"),
    "not, and not": chosen(f"not (not ({HAS_REMOVED}))"),
    "no current version": chosen('not (.Capabilities.APIVersions.Has "apps/v1")'),
    "a variable": f"{{{{- $new := {HAS_REMOVED} }}}}\n{chosen('$new')}",
    "a list of versions": chosen('has "apps/v1beta2" .Capabilities.APIVersions'),
    "a function that is not known": chosen(f'eq "true" (printf "%t" ({HAS_REMOVED}))'),
    "an old release": chosen('semverCompare "<1.16-0" .Capabilities.KubeVersion.Version'),
    "a range of releases": chosen(
        'semverCompare ">=1.9-0, <1.16-0 || ~1.17" .Capabilities.KubeVersion.Version'
    ),
    "the release of a chart": chosen('semverCompare ">=1.9-0" .Chart.AppVersion'),
    "the release of an image": chosen('semverCompare ">=1.9-0" .Values.tag'),
    "a variable of another file": chosen("$new"),
    "not, and a value": chosen(f"and (not ({HAS_REMOVED})) .Values.new"),
    "an end without a begin": (chosen('.Capabilities.APIVersions.Has "apps/v1"') + "{{- end }}\n"),
    "a list of others": chosen('has "apps/v1" .Values.versions'),
    "a list of texts": chosen('has "apps/v1" (list "apps/v1" "x")'),
    "a loop": (
        "{{- range .Capabilities.APIVersions }}\napiVersion: apps/v1\n{{- else }}\n" + OLD_ELSE
    ),
    "false": chosen("false"),
    "the second branch": (
        '{{- if semverCompare "<1.9-0" .Capabilities.KubeVersion.Version }}\napiVersion: apps/v1\n'
        '{{- else if .Capabilities.APIVersions.Has "apps/v1" }}\n' + OLD_ELSE
    ),
    "a block in a block": (
        '{{- if semverCompare ">=1.9-0" .Capabilities.KubeVersion.Version }}\n'
        + chosen(HAS_REMOVED)
        + "{{- else }}\napiVersion: apps/v1\n{{- end }}\n"
    ),
    "a helper that prints it": (
        f'{{{{- define "x" }}}}{{{{ if {HAS_REMOVED} }}}}{{{{ print "apps/v1" }}}}{{{{ else }}}}'
        '{{ print "apps/v1beta1" }}{{ end }}{{ end }}\n'
    ),
    "a helper that always prints it": '{{- define "x" }}{{ "apps/v1beta1" | quote }}{{ end }}\n',
    "a default": 'apiVersion: {{ .Values.version | default "apps/v1beta1" }}\n',
    "one of two": f'apiVersion: {{{{ ternary "apps/v1" "apps/v1beta1" ({HAS_REMOVED}) }}}}\n',
    "one of two, by a value": 'apiVersion: {{ ternary "apps/v1" "apps/v1beta1" .Values.new }}\n',
    "in parentheses": 'apiVersion: {{ ("apps/v1beta1") }}\n',
    "a variable that is printed": (
        '{{- $version := "apps/v1beta1" }}\napiVersion: {{ $version }}\n'
    ),
    "a variable of Jinja": '{% set version = "apps/v1beta1" %}\napiVersion: {{ version }}\n',
    "Jinja": (
        "{% if 'apps/v1beta2' in api_versions %}\napiVersion: apps/v1\n{% else %}\n"
        "apiVersion: apps/v1beta1\n{% endif %}\n"
    ),
}
ELSE_IS_OLD = {
    "not a removed version": chosen(f"not ({HAS_REMOVED})"),
    "a current version or a value": chosen(
        'or .Values.new (.Capabilities.APIVersions.Has "apps/v1")'
    ),
    "true": chosen("true"),
    "twice": chosen("true") + chosen("true"),
    "two old branches": (
        '{{- if .Capabilities.APIVersions.Has "apps/v1" }}\napiVersion: apps/v1\n'
        "{{- else if .Values.old }}\napiVersion: apps/v1beta1\n{{- else }}\n" + OLD_ELSE
    ),
    "a version of others": chosen('.Capabilities.APIVersions.Has "monitoring.coreos.com/v1"'),
    "another release": chosen('semverCompare "!=1.8" .Capabilities.KubeVersion.Version'),
    "the first release of the target": chosen(
        'semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version'
    ),
    "a range with a caret": chosen('semverCompare "^1.9-0" .Capabilities.KubeVersion.Version'),
    "a range that is not read": chosen('semverCompare "1.9 - 2" .Capabilities.KubeVersion.Version'),
    "a patch release of the target": chosen(
        'semverCompare ">1.36.2" .Capabilities.KubeVersion.Version'
    ),
    "two definitions of a variable": (
        '{{- $new := .Capabilities.APIVersions.Has "apps/v1" }}\n'
        '{{- $new = eq "x" .Capabilities.KubeVersion.Version }}\n' + chosen("$new")
    ),
    "a variable of itself": (
        "{{- $new := $new }}\n{{- $new = $new | default .Capabilities.KubeVersion }}\n"
        + chosen("$new")
    ),
    "one of two": (
        'apiVersion: {{ ternary "apps/v1" "apps/v1beta1" (.Capabilities.APIVersions.Has "apps/v1") '
        "}}\n"
    ),
    "one of two, by a helper": (
        'apiVersion: {{ ternary "apps/v1" "apps/v1beta1" (include "x.isStable" .) }}\n'
    ),
    "the release by a helper": chosen('semverCompare ">=1.9-0" (include "x.version" .)'),
    "two versions": chosen('.Capabilities.APIVersions.Has "apps/v1" "x"'),
    "Jinja": (
        "{% if kube_version is version('1.9', '>=') %}\napiVersion: apps/v1\n{% else %}\n"
        "apiVersion: apps/v1beta1\n{% endif %}\n"
    ),
    "an object that is looked up": '{{- $old := lookup "apps/v1beta1" "Deployment" "a" "b" }}\n',
}


def judged(text: str, *, target: tuple[int, int] = (1, 36)) -> set[Status]:
    """The statuses of the version apps/v1beta1 in a template."""
    name = "templates/x.yaml.j2" if "{%" in text else "templates/x.yaml"
    source = Source.of(name, text.encode())
    found = mentions(source, Plan(target=target), ())
    return {each.status for each in found if "apps/v1beta1:" in each.message}


@pytest.mark.parametrize("text", ELSE_IS_TAKEN.values(), ids=ELSE_IS_TAKEN)
def test_a_branch_that_the_target_takes_is_manual(text: str) -> None:
    assert judged(text) == {Status.MANUAL}


@pytest.mark.parametrize("text", ELSE_IS_OLD.values(), ids=ELSE_IS_OLD)
def test_a_branch_for_old_clusters_is_worth_knowing(text: str) -> None:
    assert judged(text) == {Status.NOTICE}


@pytest.mark.parametrize(
    ("target", "status"), [((1, 15), Status.NOTICE), ((1, 16), Status.MANUAL)], ids=str
)
def test_the_release_decides_which_versions_are_removed(
    target: tuple[int, int], status: Status
) -> None:
    assert judged(chosen(HAS_REMOVED), target=target) == {status}


TWO_REMOVED = {
    "a removed version": f"if {HAS_REMOVED}",
    "a helper": 'if include "x.isStable" .',
    "an old release": 'if semverCompare "<1.9-0" .Capabilities.KubeVersion.Version',
    "a new release": 'if semverCompare ">=1.9-0" .Capabilities.KubeVersion.Version',
    "a value": "if .Values.new",
}


@pytest.mark.parametrize("condition", TWO_REMOVED.values(), ids=TWO_REMOVED)
def test_a_second_run_judges_the_other_branch_alike(condition: str) -> None:
    head = f"{{{{- {condition} }}}}\napiVersion: apps/v1beta2\n{{{{- else }}}}\n"
    text = head + OLD_ELSE + POD_TEMPLATE
    first = migrate_text(Source.of("templates/x.yaml", text.encode()), Plan())
    assert first.new_text is not None
    second = migrate_text(Source.of("templates/x.yaml", first.new_text.encode()), Plan())

    def left(found: FileResult) -> list[tuple[int, Status]]:
        return [(e.place.line, e.status) for e in found.located if "v1beta1:" in e.message]

    assert "v1beta2\n{{- else" not in first.new_text
    assert left(first) == left(second) != []
