"""Charts of which one file stays as it is: what the others must not do then, and what they may.

Each case has the files of a chart, and how a file is kept from being edited.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.projects.chart_flows import FROM_HELPER, OLD, WHOLE, Files, given, helper, of, pod

TEMPLATE, HELPER, VALUES = "templates/p.yaml", "templates/_h.tpl", "values.yaml"
LEFT_OUT, LINKED, NO_UTF8, ITSELF = "not named", "a link that leads out", "not UTF-8", "by itself"
READ_ONLY = "read-only"


class Half(NamedTuple):
    """A chart. `stays` is not edited, for the reason `by`; `said` is in a finding of another."""

    files: Files
    stays: str
    by: str
    said: str = ""


SELECTED = f"  nodeSelector: {{{OLD}-name: Tesla-K80}}\n"
UNKNOWN = SELECTED.replace("Tesla-K80", "MyCard-7")
DRIVER = "  volumes: [{name: nv, hostPath: {path: /usr/lib/nvidia-375}}]\n"
OPEN = f"  nodeSelector:\n    {OLD}-name: Tesla-K80\n  {{{{- toYaml .Values.more | nindent 2 }}}}\n"
MORE = f"more: {{dnsPolicy: Default}}\nresources: {given(2)}\n"
INCLUDED = '{{- include "r" . | nindent 6 }}'
LIMITS = helper(f"limits:\n  {OLD}: 2", "r")
IGNORED = "  name: p\n  labels: {gpu-webhook.dev/ignore: 'true'}\n"
AFFINITY = (
    '  name: p\n  annotations:\n    scheduler.alpha.kubernetes.io/affinity: \'{"nodeAffinity":'
    '{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":'
    f'[{{"key":"{OLD}-name","operator":"In","values":["Tesla-K80"]}}]}}]}}}}}}\'\n'
)


def named(text: str, metadata: str) -> str:
    """The pod with more metadata."""
    return text.replace("  name: p\n", metadata, 1)


def beside(template: str, values: str) -> Files:
    """A chart that uses one beside it, whose named template writes the pod."""
    return {
        "values.yaml": values,
        "templates/p.yaml": '{{ include "pod" . }}\n',
        "Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n"
        "dependencies: [{name: l, version: 0.1.0, repository: 'file://charts/l'}]\n",
        "charts/l/Chart.yaml": "apiVersion: v2\nname: l\nversion: 0.1.0\ntype: library\n",
        "charts/l/templates/_pod.tpl": helper(template, "pod"),
    }


# A pod would lose what the webhook makes only for pods with legacy amounts, or get other GPUs.
WAITING: dict[str, Half] = {
    "a model in a template that is not named": Half(
        of(pod(WHOLE, SELECTED)), TEMPLATE, LEFT_OUT, "GPU105 needs manual work in"
    ),
    "an affinity in a template that is not named": Half(
        of(named(pod(WHOLE), AFFINITY)), TEMPLATE, LEFT_OUT, "GPU106 needs manual work in"
    ),
    "a driver in a template that is not named": Half(
        of(pod(WHOLE, DRIVER)), TEMPLATE, LEFT_OUT, "GPU109 needs manual work in"
    ),
    "amounts of a helper": Half(
        of(pod(INCLUDED, SELECTED), "{}", h=LIMITS), TEMPLATE, LEFT_OUT, "which is not among"
    ),
    "a template outside of the run by a link": Half(
        of(pod(WHOLE, SELECTED)), TEMPLATE, LINKED, "which is not among the files of this run"
    ),
    "a template that is not UTF-8": Half(
        of(pod(WHOLE, SELECTED)), TEMPLATE, NO_UTF8, "GPU105 needs manual work in"
    ),
    "a template in a chart inside that is not named": Half(
        beside(pod(WHOLE, SELECTED), f"resources: {given(2)}\n"),
        "charts/l/templates/_pod.tpl",
        LEFT_OUT,
        "which is not among the files of this run",
    ),
    "a template that is read-only": Half(
        of(pod(WHOLE, SELECTED)), TEMPLATE, READ_ONLY, "could not be written"
    ),
    "values that are read-only, below others": Half(
        of(pod(WHOLE), x=given(1)), VALUES, READ_ONLY, "could not be written"
    ),
    "a model that stays because of a stand-in": Half(
        of(pod(f"\n      {WHOLE}", OPEN), all=MORE), TEMPLATE, ITSELF, "GPU105 needs manual work in"
    ),
    "the limit of a helper that is not named, below one of values": Half(
        of(pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), x=given(1)),
        HELPER,
        LEFT_OUT,
        "may put amounts of several places together",
    ),
    "the limit of a helper outside of the run by a link": Half(
        of(pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), x=given(1)),
        HELPER,
        LINKED,
        "may put amounts of several places together",
    ),
    "the limit of a helper that is not UTF-8": Half(
        of(pod(FROM_HELPER), "{}", h=helper(f"limits:\n  {OLD}: 2"), x=given(1)),
        HELPER,
        NO_UTF8,
        "may put amounts of several places together",
    ),
    "values of a pod that is left alone": Half(
        of(named(pod(WHOLE), IGNORED)), TEMPLATE, ITSELF, "leaves a pod alone"
    ),
    "a helper of a pod that is left alone": Half(
        of(named(pod(INCLUDED), IGNORED), "{}", h=LIMITS),
        TEMPLATE,
        ITSELF,
        "leaves a pod alone",
    ),
    "a helper of a pod that values leave alone": Half(
        of(
            named(pod(INCLUDED), "  name: p\n  labels: {{- toYaml .Values.labels | nindent 4 }}\n"),
            all="labels: {gpu-webhook.dev/ignore: 'true'}\n",
            h=LIMITS,
        ),
        VALUES,
        ITSELF,
        "leaves a pod alone",
    ),
}
# What the webhook makes of the pods stays the same.
GOING_ON: dict[str, Half] = {
    "another pod of the chart needs manual work": Half(
        {**of(pod(given(2))), "templates/q.yaml": pod(given(2), UNKNOWN, name="q")},
        "templates/q.yaml",
        ITSELF,
    ),
    "another pod of the chart is not named": Half(
        {**of(pod(given(2))), "templates/q.yaml": pod(given(2), SELECTED, name="q")},
        "templates/q.yaml",
        LEFT_OUT,
    ),
    "another pod of the chart is left alone": Half(
        {
            **of(pod(given(2))),
            "templates/q.yaml": pod(given(2), name="q").replace(
                "  name: q\n", IGNORED.replace("name: p", "name: q")
            ),
        },
        "templates/q.yaml",
        ITSELF,
    ),
    "a template that is not named has nothing but the amounts of values": Half(
        of(pod(WHOLE)), TEMPLATE, LEFT_OUT
    ),
    "a model, while the amounts of values are not named": Half(
        of(pod(WHOLE, SELECTED)), VALUES, LEFT_OUT
    ),
    "an affinity, while the amounts of values are outside of the run by a link": Half(
        of(named(pod(WHOLE), AFFINITY)), VALUES, LINKED
    ),
    "the limit of a helper is not named, and no values go over it": Half(
        of(pod(INCLUDED), "{}", h=LIMITS) | {"templates/q.yaml": pod(given(1), name="q")},
        HELPER,
        LEFT_OUT,
    ),
}
