"""Programs that build pods: told with line and cure, never edited."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.files.results import Plan, Report, Status
from webhook.files.source import Source
from webhook.formats import programs
from webhook.formats.migrate import migrate_text
from webhook.reports.sarif import sarif
from webhook.yamlpatch.splice import apply

OLD = "alpha.kubernetes.io/nvidia-gpu"

TOLD = {
    "Go, a constant": ("x.go", f'package x\n\nconst gpu = "{OLD}"\n', 3, "GPU101"),
    "Go, the API's constant": ("x.go", "\nlimits[v1.ResourceNvidiaGPU] = n\n", 2, "GPU101"),
    "Go, an annotation": ("x.go", "\na[v1.AffinityAnnotationKey] = text\n", 2, "GPU106"),
    "Python": ("x.py", f"limits = {{'{OLD}': str(n)}}\n", 1, "GPU101"),
    "Jsonnet": ("x.jsonnet", f'{{\n  limits: {{"{OLD}": n}},\n}}\n', 2, "GPU101"),
    "Jsonnet, a config in one line": (
        "x.jsonnet",
        f'"a:\\n  {OLD}:\\n    volumes:\\n"',
        1,
        "GPU101",
    ),
    "Terraform": ("x.tf", f'limits {{\n  "{OLD}" = 1\n}}\n', 2, "GPU101"),
    "a label": ("x.py", f"\n\nkey = '{OLD}-name'\n", 3, "GPU105"),
    "a shell's flag": ("x.sh", "\nkubelet --experimental-nvidia-gpus=1\n", 2, "GPU131"),
    "a shell's label": ("x.sh", f"kubectl label nodes --all {OLD}-name=x\n", 1, "GPU129"),
}


@pytest.mark.parametrize(("name", "text", "line", "code"), TOLD.values(), ids=TOLD)
def test_it_is_told(name: str, text: str, line: int, code: str) -> None:
    result = programs.migrate(Source.of_text(name, text, "other"), Plan())
    assert result.new_text is None
    ((each),) = result.located
    assert (each.place.line, each.code, each.fix) == (line, code, ())
    assert any(word in each.message for word in ("write", "use", "select", "delete"))


LIBRARY = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
MOUNTS = {
    "a library": ("x.py", f'V1HostPathVolumeSource(path="{LIBRARY}")\n', [1]),
    "its mount": ("x.go", f'HostPath: "/x"\nMountPath: "{LIBRARY}",\n', [2]),
    "another library": ("x.sh", 'hostPath="/usr/lib64/libnvidia-ml.so.375.66"\n', [1]),
    "a folder": ("x.js", "hostPath: {path: '/usr/local/nvidia'}\n", [1]),
    "a folder below": ("x.tf", 'host_path {\n path = "/usr/local/nvidia/lib64"\n}\n', [2]),
    "devices": ("x.jsonnet", "hostPath: { path: '/dev/nvidia0' }, b: '/dev/nvidiactl',\n", [1, 1]),
    "a volume of nvidia-docker": (
        "x.py", "host_path = '/var/lib/nvidia-docker/volumes/nvidia_driver/latest'\n", [1]
    ),
    "an old library folder, once": ("x.py", "host_path = '/usr/lib/nvidia-375/bin'\n", [1]),
    "what no volume is made of": ("x.py", f"ctypes.CDLL('{LIBRARY}')\n", []),
    "a Dockerfile": ("Dockerfile", "ENV LD_LIBRARY_PATH /usr/local/nvidia/lib64\n", []),
    "a search path": ("x.py", "host_path(); E = '/usr/local/nvidia/lib:/usr/local/nvidia'\n", []),
    "a longer name": ("x.py", "host_path('/usr/local/nvidia-x', '/opt/usr/local/nvidia')\n", []),
    "a comment": ("x.py", f"x = 1  # host_path {LIBRARY}\n", [1]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "lines"), MOUNTS.values(), ids=MOUNTS)
def test_driver_mounts_in_programs(name: str, text: str, lines: list[int]) -> None:
    result = migrate_text(Source.of_text(name, text), Plan())
    assert [each.place.line for each in result.located if each.code == "GPU109"] == lines
    manual = Status.NOTICE if "#" in text else Status.MANUAL
    assert {each.status for each in result.located} <= {manual}
    assert result.new_text is None


def test_a_program_is_asked_for_driver_mounts_only_if_the_rule_is() -> None:
    source = Source.of_text("x.py", f"host_path = '{LIBRARY}'\n")
    assert migrate_text(source, Plan(ignored=["GPU109"])).located == ()


def test_in_a_here_document_the_rule_has_said_it() -> None:
    text = SCRIPT.replace(
        "  containers:",
        f"  volumes: [{{name: a, hostPath: {{path: {LIBRARY}}}}}]\n  containers:",
    ).replace(
        "    resources:", f"    volumeMounts: [{{name: a, mountPath: {LIBRARY}}}]\n    resources:"
    )
    text = text.replace("limits() {", f"mount {LIBRARY}\nlimits() {{")
    result = migrate_text(Source.of_text("x.sh", text), Plan())
    said = [(each.place.line, each.status) for each in result.located if each.code == "GPU109"]
    assert said[0] == (2, Status.MANUAL), "outside of it"
    assert {status for _, status in said[1:]} == {Status.FIXABLE}


# The line of a program, and what an editor makes of it; None: it has no suggestion.
CONSTANTS = {
    "Go": ("x.go", f'const gpu = "{OLD}"', 'const gpu = "nvidia.com/gpu"'),
    "Go, the label": ("x.go", f'l := "{OLD}-name"', 'l := "nvidia.com/gpu.product"'),
    "Go, a comment": ("x.go", f"// as {OLD} was", None),
    "Go, a part of a text": ("x.go", f's := "requests.{OLD}x"', None),
    "Go, a sentence": ("x.go", f's := "{OLD} is old"', None),
    "Go, a constant of the API": ("x.go", "limits[v1.ResourceNvidiaGPU] = n", None),
    "Python": ("x.py", f"limits = {{'{OLD}': n}}", "limits = {'nvidia.com/gpu': n}"),
    "Python, a comment": ("x.py", f"a = 1  # '{OLD}'", None),
    "a shell's variable": ("x.sh", f"GPU={OLD}", "GPU=nvidia.com/gpu"),
    "a shell's JSON": ("x.sh", f"k -p '{{\"{OLD}\": 1}}'", "k -p '{\"nvidia.com/gpu\": 1}'"),
    "a shell's longer word": ("x.sh", f"GPU={OLD}/x", None),
    "the first word of a file": ("x.sh", OLD, None),
    "Terraform may have it in a map": ("x.tf", f'"{OLD}" = 1', None),
}


@pytest.mark.parametrize(("name", "line", "wanted"), CONSTANTS.values(), ids=CONSTANTS)
def test_a_whole_constant_has_a_suggestion(name: str, line: str, wanted: str | None) -> None:
    text = f"{line}\n"
    result = programs.migrate(Source.of_text(name, text, "other"), Plan())
    assert (result.new_text, [each.fix for each in result.located if each.fix]) == (None, [])
    fixes = [fix for each in result.located for fix in each.suggestion]
    assert ([apply(text, fixes)] if fixes else []) == ([f"{wanted}\n"] if wanted else [])
    log = json.loads(sarif(Report((result,))))
    inserted = [
        change["insertedContent"]["text"]
        for each in log["runs"][0]["results"]
        for fix in each.get("fixes", [])
        for change in fix["artifactChanges"][0]["replacements"]
    ]
    assert inserted == [each.text for each in fixes]


IN_DOCUMENTS = {
    "reStructuredText": ("x.rst", f".. code-block:: yaml\n\n    limits:\n      {OLD}: 1\n", 4),
    "AsciiDoc": ("x.adoc", f"[source,yaml]\n----\nlimits:\n  {OLD}: 1\n----\n", 4),
    "HTML": ("x.HTML", f'<pre>\n"{OLD}": 1\n</pre>\n', 2),
    "plain text": ("x.txt", f"limits:\n  {OLD}: 1\n", 2),
    "a key of which the rest is above": ("x.org", f"see {OLD} below\n#+BEGIN_SRC\n{OLD}: 1\n", 3),
}


@pytest.mark.parametrize(("name", "text", "line"), IN_DOCUMENTS.values(), ids=IN_DOCUMENTS)
def test_in_other_documents_a_key_is_manual_and_prose_is_a_notice(
    name: str, text: str, line: int
) -> None:
    result = migrate_text(Source.of_text(name, f"{text}The name {OLD} is old.\n"), Plan())
    manual = [each for each in result.located if each.status is Status.MANUAL]
    assert [(each.place.line, each.code) for each in manual] == [(line, "GPU101")]
    assert "only Markdown is edited" in manual[0].message
    assert result.located[-1].status is Status.NOTICE
    assert result.new_text is None


def test_a_rule_that_is_not_asked_says_nothing() -> None:
    source = Source.of_text("x.py", f"a = '{OLD}'\n", "other")
    assert programs.migrate(source, Plan(ignored=["GPU101"])).located == ()


SCRIPT = f"""#!/bin/bash
limits() {{ echo {OLD}; }}
kubectl apply -f - <<EOF
kind: Pod
apiVersion: v1
metadata: {{name: $NAME}}
spec:
  tolerations: [{{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}]
  containers:
  - name: main
    image: registry.example/main:${{TAG:-1}}
    resources:
      limits:
        {OLD}: $(nproc)
EOF
"""


@pytest.mark.parametrize("name", ["run.sh", "run"])
def test_what_a_script_hands_to_kubectl_is_as_good_as_a_file(name: str) -> None:
    result = programs.migrate(Source.of_text(name, SCRIPT, "other"), Plan())
    head, _, tail = SCRIPT.partition("kubectl")
    assert result.new_text == f"{head}kubectl{tail.replace(OLD, 'nvidia.com/gpu')}"
    assert [(each.place.line, each.status) for each in result.located] == [
        (2, Status.MANUAL),
        (14, Status.FIXABLE),
    ]


def test_a_here_document_that_begins_with_tabs_is_no_yaml_so_the_name_alone_is_renamed() -> None:
    head, _, tail = SCRIPT.partition("<<EOF\n")
    lines = tail.removesuffix("EOF\n").splitlines(keepends=True)
    text = f"{head}<<-EOF\n{''.join(f'{chr(9)}{line}' for line in lines)}\tEOF\n"
    result = programs.migrate(Source.of_text("x.sh", text, "other"), Plan())
    head, _, tail = text.partition("<<-")
    assert result.new_text == f"{head}<<-{tail.replace(OLD, 'nvidia.com/gpu')}"
    assert ["is not YAML" in each.reason for each in result.skipped] == [True]


def test_what_the_shell_would_read_otherwise_is_held_with_the_amounts_of_its_pod() -> None:
    annotation = (
        '  annotations: {scheduler.alpha.kubernetes.io/tolerations: "[{\\"key\\": \\"a\\"}]"}\n'
    )
    text = SCRIPT.replace("metadata: {name: $NAME}\n", f"metadata:\n  name: x\n{annotation}")
    result = programs.migrate(Source.of_text("x.sh", text, "other"), Plan())
    assert result.new_text is None
    held = [each.message for each in result.located if "until both are changed" in each.message]
    assert len(held) == 1


@given(st.text(), st.sampled_from(["x.go", "x.sh", "x"]))
def test_whatever_text_comes(text: str, name: str) -> None:
    assert programs.migrate(Source.of_text(name, f"{text}{OLD}", "other"), Plan()).located
