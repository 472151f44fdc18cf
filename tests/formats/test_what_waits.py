"""What only its author can decide stays as it is, whatever kind of file it stands in.

That is a model that stands for no GPU known here, and an annotation that cannot be read. Else a
second run would find nothing, and nobody would ever hear of it again.
"""

from __future__ import annotations

import textwrap

import pytest

from webhook.files.results import MANUAL, Plan, Report, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text

OLD, NEW = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
LABEL = f"{OLD}-name"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
VOLUME = "volumes: [{name: lib, hostPath: {path: /usr/lib/nvidia-375}}]"


def required(operator: str, *models: str) -> str:
    values = f", values: [{', '.join(models)}]" if models else ""
    return (
        f"affinity: {{nodeAffinity: {{{TERMS}: {{nodeSelectorTerms: [{{matchExpressions: "
        f"[{{key: {LABEL}, operator: {operator}{values}}}]}}]}}}}}}"
    )


def preferred(operator: str, model: str) -> str:
    return (
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, "
        f"preference: {{matchExpressions: [{{key: {LABEL}, operator: {operator}, "
        f"values: [{model}]}}]}}}}]}}}}"
    )


def annotated(operator: str, model: str) -> str:
    return (
        f'{AFFINITY}: \'{{"nodeAffinity": {{"{TERMS}": {{"nodeSelectorTerms": '
        f'[{{"matchExpressions": [{{"key": "{LABEL}", "operator": "{operator}", '
        f'"values": ["{model}"]}}]}}]}}}}}}\''
    )


def pod(spec: str = "", annotation: str = "") -> str:
    made = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n"
    made += f"  annotations:\n    {annotation}\n" if annotation else ""
    made += "spec:\n" + (textwrap.indent(spec, "  ") + "\n" if spec else "")
    made += f"  {VOLUME}\n  containers:\n  - name: c\n    image: x\n"
    made += "    volumeMounts: [{name: lib, mountPath: /usr/lib/nvidia}]\n"
    return made + f"    resources:\n      limits: {{{OLD}: 2}}\n"


PODS = [
    pytest.param(pod(required("In", "1080Ti")), id="a required model that nobody knows"),
    pytest.param(pod(required("In", "Tesla K80", "MyCard 7")), id="one beside a known model"),
    pytest.param(pod(required("NotIn", "MyCard 7")), id="an exclusion"),
    pytest.param(pod(required("NotIn", "GTX", "Tesla K80")), id="one of a known model, too"),
    pytest.param(pod(preferred("In", "MyCard 7")), id="a preference"),
    pytest.param(pod(preferred("NotIn", "MyCard 7")), id="a preference against it"),
    pytest.param(pod(f"nodeSelector: {{{LABEL}: MyCard-7}}"), id="in nodeSelector"),
    pytest.param(pod(annotation=annotated("In", "MyCard 7")), id="in the annotation"),
    pytest.param(pod(annotation=annotated("NotIn", "MyCard 7")), id="excluded in the annotation"),
    pytest.param(pod(annotation=f"{AFFINITY}: 'a: b'"), id="an affinity annotation of YAML"),
    pytest.param(
        pod(annotation=f'{AFFINITY}: \'{{"nodeAffinity": {{"{TERMS}": []}}}}\''),
        id="a part of it that is of another shape",
    ),
    pytest.param(
        pod(annotation=f'{TOLERATIONS}: "[{{key: dedicated, value: master}}]"'),
        id="a tolerations annotation of YAML",
    ),
    pytest.param(
        pod(annotation=f'{TOLERATIONS}: \'[{{"operator": "Exists"}}]\''),
        id="a toleration without a key",
    ),
    pytest.param(
        pod(f"nodeSelector: {{{LABEL}: MyCard-7}}\n{required('In', 'Tesla K80')}"),
        id="in nodeSelector, beside a known one in affinity",
    ),
    pytest.param(
        pod(f"nodeSelector: {{{LABEL}: Tesla-K80}}", annotated("In", "MyCard 7")),
        id="in the annotation, beside a known one in nodeSelector",
    ),
]
KINDS = [
    pytest.param("p.yaml", "{}", id="a manifest"),
    pytest.param("templates/p.yaml", "{{{{- if .Values.on }}}}\n{}{{{{- end }}}}\n", id="a chart"),
    pytest.param("p.md", "# Guide\n\n```yaml\n{}```\n", id="a guide"),
    pytest.param(
        "run.md", "# Guide\n\n```sh\ncat <<EOF | kubectl create -f -\n{}EOF\n```\n", id="a script"
    ),
]


def migrated(path: str, text: str, *, unsafe: bool = False) -> tuple[str, Report]:
    source = Source.of_text(path, text)
    result = migrate_text(source, Plan(unsafe=unsafe))
    return result.text if result.new_text is None else result.new_text, Report((result,))


def gone(old: str, new: str) -> list[str]:
    """Lines that are no longer there: a toleration may be added, since it only allows more."""
    return [line for line in old.splitlines() if line not in new.splitlines()]


@pytest.mark.parametrize(("path", "around"), KINDS)
@pytest.mark.parametrize("text", PODS)
def test_all_of_the_pod_stays_and_every_run_says_so(text: str, path: str, around: str) -> None:
    given = around.format(text)
    new, report = migrated(path, given)
    said = [each for file in report.results for each in file.located]
    assert gone(given, new) == []
    assert report.exit_code() == MANUAL
    assert any(each.status is Status.MANUAL and "(not done" not in each.message for each in said)
    assert {each.code for each in said} >= {"GPU101", "GPU109"}


@pytest.mark.parametrize("text", PODS)
def test_it_is_written_where_that_is_asked_for(text: str) -> None:
    new, _ = migrated("p.yaml", text, unsafe=True)
    assert f"{NEW}: 2" in new
    assert OLD + ":" not in new
    again, _ = migrated("p.yaml", new, unsafe=True)
    assert again == new


def test_another_pod_of_the_file_is_migrated() -> None:
    text = f"{pod(required('In', '1080Ti'))}---\n{pod(required('In', 'Tesla K80'))}"
    new, _ = migrated("p.yaml", text)
    first, _, second = new.partition("---\n")
    assert gone(pod(required("In", "1080Ti")), first) == []
    assert "Tesla-K80" in second
    assert f"{NEW}: 2" in second


def test_a_pod_of_today_keeps_its_constraint_and_is_told_so_again() -> None:
    text = pod(required("NotIn", "MyCard 7")).replace(OLD + ":", NEW + ":").replace(VOLUME, "")
    new, report = migrated("p.yaml", text.replace("name: lib", "name: x"))
    assert required("NotIn", "MyCard 7") in new
    assert report.exit_code() == MANUAL
