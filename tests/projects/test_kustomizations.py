"""Kustomizations: migrated where that builds what the rules make of it, and held elsewhere."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from webhook.cli.main import main
from webhook.cli.workers import judge
from webhook.files.results import Plan, Status

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.files.results import FileResult

BASE = textwrap.dedent("""\
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec:
      selector: {matchLabels: {app: d}}
      template:
        metadata: {labels: {app: d}}
        spec:
          containers:
          - name: c
            image: x
            env:
            - {name: LD_LIBRARY_PATH, value: "/lib:/opt/driver"}
            volumeMounts:
            - {name: nv, mountPath: /opt/driver}
            resources: {limits: {nvidia.com/gpu: 1}}
          volumes:
          - name: nv
            hostPath: {path: /usr/lib/nvidia-375}
    """)
MOUNTS = textwrap.dedent("""\
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: d}
    spec:
      template:
        spec:
          containers:
          - name: s
            image: y
            volumeMounts:
            - {name: nv, mountPath: /opt/driver}
    """)
AT = "/spec/template/spec"
BASE_OF = {"base/d.yaml": BASE, "base/kustomization.yaml": "resources: [d.yaml]\n"}


def written(folder: Path, files: dict[str, str]) -> Path:
    (folder / ".git").mkdir(parents=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def looked_at(folder: Path, name: str = "base/d.yaml") -> FileResult:
    return judge(str(folder / name), Plan()).result


def overlay(patches: str, **more: str) -> dict[str, str]:
    files = {f"overlays/a/{name}.yaml": text for name, text in more.items()}
    return {"overlays/a/kustomization.yaml": f"resources: [../../base]\n{patches}\n", **files}


NAMED = {
    "a strategic patch in a file": overlay("patches: [{path: p.yaml}]", p=MOUNTS),
    "a strategic patch of old": overlay("patchesStrategicMerge: [p.yaml]", p=MOUNTS),
    "a patch that is written out": overlay(
        "patches:\n- patch: |-\n" + textwrap.indent(MOUNTS, "    ")
    ),
    "an operation that adds a mount": overlay(
        "patchesJson6902:\n- {path: p.yaml, target: {version: v1, kind: Deployment, name: d}}",
        p=f"- op: add\n  path: {AT}/containers/0/volumeMounts/-\n"
        "  value: {name: nv, mountPath: /x}\n",
    ),
    "an operation that adds a container": overlay(
        "patches: [{path: p.yaml, target: {kind: Deployment}}]",
        p=f"- op: add\n  path: {AT}/containers/-\n  value:\n    name: s\n    image: y\n"
        "    volumeMounts: [{name: nv, mountPath: /x}]\n",
    ),
    "an operation that counts the volumes": overlay(
        "patches: [{path: p.yaml, target: {kind: Deployment}}]",
        p=f"- op: replace\n  path: {AT}/volumes/0/hostPath/path\n  value: /opt\n",
    ),
    "a patch of the volume itself": overlay(
        "patches: [{path: p.yaml}]",
        p=MOUNTS.split("containers")[0] + "volumes:\n      - {name: nv, hostPath: {path: /opt}}\n",
    ),
    "an overlay of the overlay": {
        **overlay(""),
        "overlays/b/kustomization.yaml": "bases: [../a]\npatches: [{path: p.yaml}]\n",
        "overlays/b/p.yaml": MOUNTS,
    },
    "a component of the overlay": {
        **overlay("components: [../../part]"),
        "part/kustomization.yaml": "kind: Component\npatches: [{path: p.yaml}]\n",
        "part/p.yaml": MOUNTS,
    },
    "a patch of the base itself": {
        "base/kustomization.yaml": "resources: [d.yaml]\npatches: [{path: p.yaml}]\n",
        "base/p.yaml": MOUNTS,
    },
}


@pytest.mark.parametrize("files", NAMED.values(), ids=NAMED)
def test_a_volume_that_a_patch_names_stays(files: dict[str, str], tmp_path: Path) -> None:
    result = looked_at(written(tmp_path / "it", {**BASE_OF, **files}))
    assert result.new_text is None
    said = [each for each in result.located if each.code == "GPU109"]
    assert {each.status for each in said} == {Status.MANUAL}
    assert all("change both by hand" in each.message for each in said)
    assert len(said) == 2  # the search path stays with its mount


NOT_NAMED = {
    "no kustomization": {"base/kustomization.yaml": ""},
    "no patch": overlay("namePrefix: a-"),
    "a patch of another volume": overlay(
        "patches: [{path: p.yaml}]", p=MOUNTS.replace("nv", "data")
    ),
    "a patch of another base": {
        **overlay("patches: [{path: p.yaml}]", p=MOUNTS),
        "overlays/a/kustomization.yaml": "patches: [{path: p.yaml}]\n",
    },
    "an overlay that is no YAML": overlay("patches: ["),
}


@pytest.mark.parametrize("files", NOT_NAMED.values(), ids=NOT_NAMED)
def test_a_volume_that_no_patch_names_goes(files: dict[str, str], tmp_path: Path) -> None:
    result = looked_at(written(tmp_path / "it", {**BASE_OF, **files}))
    assert result.new_text is not None
    assert "nvidia-375" not in result.new_text
    assert "/opt/driver" not in result.new_text


def test_a_volume_that_base_and_patch_have_leaves_both(tmp_path: Path) -> None:
    files = {**BASE_OF, **overlay("patches: [{path: p.yaml}]", p=BASE)}
    folder = written(tmp_path / "it", files)
    for name in ("base/d.yaml", "overlays/a/p.yaml"):
        assert "nvidia-375" not in (looked_at(folder, name).new_text or "nvidia-375")


def test_without_a_repository_an_overlay_beside_the_base_counts(tmp_path: Path) -> None:
    files = {
        **BASE_OF,
        "over/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]",
    }
    folder = written(tmp_path / "it", {**files, "over/p.yaml": MOUNTS})
    (folder / ".git").rmdir()
    assert looked_at(folder).new_text is None


OLD, LABEL = "alpha.kubernetes.io/nvidia-gpu", "alpha.kubernetes.io/nvidia-gpu-name"
GPU = BASE.partition("    env:")[0].rstrip(" ") + (f"        resources: {{limits: {{{OLD}: 1}}}}\n")
FIELD = f"spec.template.spec.containers.0.resources.limits.[{OLD}]"
POINTER = "resources/limits/alpha.kubernetes.io~1nvidia-gpu"
READING = {
    "a replacement": overlay(
        f"replacements:\n- source: {{kind: Deployment, fieldPath: '{FIELD}'}}\n"
        "  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.gpus]}]"
    ),
    "a replacement in a file": overlay(
        "replacements: [{path: r.yaml}]",
        r=f"source: {{kind: Deployment, fieldPath: spec.replicas}}\n"
        f"targets: [{{select: {{kind: Deployment}}, fieldPaths: ['{FIELD}']}}]\n",
    ),
    "a variable": overlay(
        "vars: [{name: G, objref: {kind: Deployment, name: d, apiVersion: apps/v1}, "
        f"fieldref: {{fieldpath: '{FIELD}'}}}}]"
    ),
}
BINDING = {
    "an operation": overlay(
        "patches: [{path: p.yaml, target: {kind: Deployment}}]",
        p=f"- {{op: replace, path: {AT}/containers/0/{POINTER}, value: 2}}\n",
    ),
}


@pytest.mark.parametrize("files", BINDING.values(), ids=BINDING)
def test_an_amount_and_what_finds_it_by_its_name_are_renamed_in_one_run(
    files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    for alone in (["-f", "base/d.yaml"], ["-k", "base"], ["-R", "overlays"]):
        assert main(["migrate", "-w", alone[0], str(folder / alone[1])]) == 3
        assert (folder / "base/d.yaml").read_text() == GPU
    assert main(["migrate", "-w", "-k", str(folder / "overlays/a")]) == 0
    for file in folder.rglob("*.yaml"):
        assert OLD not in file.read_text()
        assert "alpha.kubernetes.io~1nvidia-gpu" not in file.read_text()


GIVES = MOUNTS.partition("      containers:")[0] + f"      nodeSelector: {{{LABEL}: Tesla-K80}}\n"
CONTAINERS = "      containers:\n      - {name: c, env: []}\n"
WAYS = [["-k", "overlays/a"], ["-R", "."], ["-f", "base/d.yaml"]]


@pytest.mark.parametrize("way", WAYS)
def test_amounts_wait_for_the_model_that_a_patch_gives(way: list[str], tmp_path: Path) -> None:
    files = overlay("patches: [{path: p.yaml}]", p=GIVES + CONTAINERS)
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    assert main(["migrate", "-w", way[0], str(folder / way[1])]) == 3
    assert (folder / "base/d.yaml").read_text() == GPU


@pytest.mark.parametrize("way", WAYS[:2])
def test_amounts_are_renamed_where_the_run_changes_the_model_too(
    way: list[str], tmp_path: Path
) -> None:
    files = overlay("patches: [{path: p.yaml}]", p=GIVES)
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    assert main(["migrate", "-w", way[0], str(folder / way[1])]) == 0
    assert OLD not in (folder / "base/d.yaml").read_text()


MODEL = GPU.replace(
    "      containers:", f"      nodeSelector: {{{LABEL}: Tesla M60}}\n      containers:"
)
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
LEGACY_AFFINITY = (
    '{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":'
    f'[{{"matchExpressions":[{{"key":"{LABEL}","operator":"In","values":["Tesla K80"]}}]}}]}}}}}}'
)
ANNOTATED = GPU.replace(
    "metadata: {labels: {app: d}}",
    f"metadata: {{labels: {{app: d}}, annotations: {{{AFFINITY}: '{LEGACY_AFFINITY}'}}}}",
)
HEAD = MOUNTS.partition("    spec:\n      cont")[0]
POD = HEAD + "    spec:\n"
SELECTOR = "/spec/template/spec/nodeSelector/alpha.kubernetes.io~1nvidia-gpu-name"
ANNOTATIONS = "/spec/template/metadata/annotations"
AMOUNT = f"{AT}/containers/0/{POINTER}"
SIGNED = AMOUNT.replace("nvidia", "nvidi\\x61")
INLINE = "patches:\n- target: {kind: Deployment}\n  patch: "


def operation(text: str) -> dict[str, str]:
    return overlay("patches: [{path: p.yaml, target: {kind: Deployment}}]", p=f"- {{{text}}}\n")


def strategic(text: str) -> dict[str, str]:
    return overlay("patches: [{path: p.yaml}]", p=text)


HELD = {
    "a patch on one line": (
        GPU,
        overlay(f'{INLINE}\'[{{"op": "remove", "path": "{AMOUNT}"}}]\''),
    ),
    "a patch in a block of one line": (
        GPU,
        overlay(f'{INLINE}|-\n    [{{"op": "remove", "path": "{AMOUNT}"}}]\n')
        | {
            "overlays/b/kustomization.yaml": overlay(
                f'{INLINE}\'[{{"op": "test", "path": "{AMOUNT}", "value": 1}}]\''
            )["overlays/a/kustomization.yaml"]
        },
    ),
    "a folded patch": (GPU, overlay(f'{INLINE}>-\n    [{{"op": "remove", "path": "{AMOUNT}"}}]\n')),
    "a patch in quotes with signs": (
        GPU,
        overlay(f'{INLINE}"- op: remove\\n  path: {SIGNED}\\n"'),
    ),
    "a one-line patch that takes the amount away": (
        GPU,
        overlay(
            "patches:\n- patch: '{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec:"
            f" {{template: {{spec: {{containers: [{{name: c, resources: {{limits: {{{OLD}: null}}}}"
            "}]}}}}'"
        ),
    ),
    "null takes the model away": (
        MODEL,
        strategic(POD + f"      nodeSelector: {{{LABEL}: null}}\n"),
    ),
    "null takes the annotation away": (
        ANNOTATED,
        strategic(HEAD + f"    metadata: {{annotations: {{{AFFINITY}: null}}}}\n"),
    ),
    "an operation replaces the model": (
        MODEL,
        operation(f"op: replace, path: {SELECTOR}, value: Tesla K80"),
    ),
    "an operation removes the model": (MODEL, operation(f"op: remove, path: {SELECTOR}")),
    "an operation removes the annotation": (
        ANNOTATED,
        operation(f"op: remove, path: {ANNOTATIONS}/{AFFINITY.replace('/', '~1')}"),
    ),
    "a replacement writes the model": (
        MODEL,
        overlay(
            "replacements:\n- source: {kind: Deployment, fieldPath: metadata.name}\n  targets:\n"
            f"  - {{select: {{kind: Deployment}}, fieldPaths: ['spec.template.spec.nodeSelector."
            f"[{LABEL}]']}}"
        ),
    ),
    "a patch brings tolerations in the annotation": (
        GPU,
        strategic(
            HEAD
            + "    metadata:\n      annotations:\n"
            + f'        {TOLERATIONS}: \'[{{"key": "a", "operator": "Exists"}}]\'\n'
        ),
    ),
    "a patch brings a volume of the driver": (
        GPU,
        strategic(
            POD + "      volumes: [{name: n, hostPath: {path: "
            "/var/lib/nvidia-docker/volumes/nvidia_driver/3}}]\n"
            + "      containers: [{name: c, volumeMounts: [{name: n, mountPath: /usr/local/n}]}]\n"
        ),
    ),
    "a patch gives a model of several names, which is a list": (
        MODEL,
        strategic(POD + f"      nodeSelector: {{{LABEL}: Tesla P100}}\n"),
    ),
    "the base's model becomes a list, and a patch has one": (
        MODEL.replace("M60", "P100"),
        strategic(
            POD + "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
            "{nodeSelectorTerms: [{matchExpressions: [{key: z, operator: Exists}]}]}}}\n"
        ),
    ),
    "the base's model becomes a list, and a patch gives another model": (
        MODEL.replace("M60", "P100"),
        strategic(POD + f"      nodeSelector: {{{LABEL}: Tesla M60}}\n"),
    ),
    "what stays in one overlay keeps the base of another": (
        GPU,
        operation(f"op: test, path: {AMOUNT}, value: 1")
        | {
            "overlays/b/kustomization.yaml": overlay(
                f'{INLINE}\'[{{"op": "remove", "path": "{AMOUNT}"}}]\''
            )["overlays/a/kustomization.yaml"]
        },
    ),
    "a patch that the repository ignores": (
        GPU,
        operation(f"op: test, path: {AMOUNT}, value: 1") | {".gitignore": "p.yaml\n"},
    ),
}


OF_SEVERAL = MODEL.replace("M60", "P100")
TOLERATES = GPU.replace(
    "metadata: {labels: {app: d}}",
    f'metadata: {{labels: {{app: d}}, annotations: {{{TOLERATIONS}: \'[{{"key": "a"}}]\'}}}}',
)
BOTH = GPU.replace(f"{{limits: {{{OLD}: 1}}}}", f"{{limits: {{{OLD}: 1}}, requests: {{{OLD}: 1}}}}")
DEDICATED = "{key: dedicated, operator: Exists}"
HELD |= {
    "an operation adds to a map that would go": (
        OF_SEVERAL,
        operation(f"op: add, path: {AT}/nodeSelector/pool, value: b"),
    ),
    "an operation in the kustomization adds to a map that would go": (
        OF_SEVERAL,
        overlay(f"{INLINE}|-\n    - op: add\n      path: {AT}/nodeSelector/pool\n      value: b\n"),
    ),
    "an operation adds an annotation where all would go": (
        TOLERATES,
        operation(f"op: add, path: {ANNOTATIONS}/x, value: b"),
    ),
    "an operation removes the annotations": (
        TOLERATES,
        operation(f"op: remove, path: {ANNOTATIONS}"),
    ),
    "an operation removes the selector": (
        OF_SEVERAL,
        operation(f"op: remove, path: {AT}/nodeSelector"),
    ),
    "an operation moves the selector": (
        OF_SEVERAL,
        operation(f"op: move, from: {AT}/nodeSelector, path: /metadata/labels"),
    ),
    "an operation tests the selector": (
        OF_SEVERAL,
        operation(f"op: test, path: {AT}/nodeSelector, value: {{{LABEL}: Tesla P100}}"),
    ),
    "an operation replaces the selector": (
        OF_SEVERAL,
        operation(f"op: replace, path: {AT}/nodeSelector, value: {{pool: b}}"),
    ),
    "a patch replaces the selector": (
        OF_SEVERAL,
        strategic(POD + "      nodeSelector: {$patch: replace, pool: b}\n"),
    ),
    "a patch removes the selector": (OF_SEVERAL, strategic(POD + "      nodeSelector: null\n")),
    "a patch removes the affinity": (OF_SEVERAL, strategic(POD + "      affinity: null\n")),
    "a replacement copies the selector": (
        OF_SEVERAL,
        overlay(
            "replacements:\n- source:\n    fieldPath: spec.template.spec.nodeSelector\n"
            "    kind: Deployment\n  targets: [{select: {kind: Deployment}, "
            "fieldPaths: [metadata.labels], options: {create: true}}]"
        ),
    ),
    "a patch replaces the tolerations": (
        GPU,
        strategic(POD + f"      tolerations: [{DEDICATED}]\n"),
    ),
    "an operation replaces the tolerations": (
        GPU,
        operation(f"op: add, path: {AT}/tolerations, value: [{DEDICATED}]"),
    ),
    "a patch replaces one of two amounts": (
        BOTH,
        strategic(POD + f"      containers: [{{name: c, resources: {{limits: {{{OLD}: 4}}}}}}]\n"),
    ),
    "a patch gives another amount in requests alone": (
        GPU,
        strategic(
            POD + f"      containers: [{{name: c, resources: {{requests: {{{OLD}: 4}}}}}}]\n"
        ),
    ),
    "a patch with an image gives an amount in requests alone": (
        GPU,
        strategic(
            POD
            + f"      containers: [{{name: c, image: y, resources: {{requests: {{{OLD}: 2}}}}}}]\n"
        ),
    ),
    "a patch gives a part of a GPU": (
        GPU,
        strategic(
            POD + f"      containers: [{{name: c, resources: {{limits: {{{OLD}: 0.5}}}}}}]\n"
        ),
    ),
    "a transformer names the file of its patch": (
        OF_SEVERAL,
        overlay(
            "transformers: [t.yaml]",
            t="apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: p.yaml\n"
            "target: {kind: Deployment}\n",
            p=f"- {{op: remove, path: {AT}/nodeSelector}}\n",
        ),
    ),
    "an operation replaces the amount beside which a limit would be added": (
        GPU.replace("limits", "requests"),
        operation(f"op: replace, path: {AT}/containers/0/resources/requests, value: {{cpu: 1}}"),
    ),
}

UNTOLERATED = GPU.replace(f"{OLD}: 1", "nvidia.com/gpu: 2")
TOLERATED = "      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"
TODAY = UNTOLERATED + TOLERATED
TOLERATES = TOLERATED.replace("Exists}", "Exists, effect: NoSchedule}")
CURRENT_BELOW = "resources: [../../base]\npatches: [{path: q.yaml}]\n"


def gives(amount: str, name: str = OLD) -> str:
    limits = f"{{limits: {{{name}: {amount}}}}}"
    return f"{POD}      containers: [{{name: c, resources: {limits}}}]\n"


HELD |= {
    "a patch of 0 GPUs beside the current amount": (TODAY, strategic(gives("0"))),
    "a patch that removes the legacy amount beside the current one": (
        TODAY,
        strategic(gives("null")),
    ),
    "a patch of a smaller amount than the current one": (TODAY, strategic(gives("1"))),
    "an operation that adds a smaller amount than the current one": (
        TODAY,
        operation(f"op: add, path: {AMOUNT}, value: 1"),
    ),
    "a patch of 0 GPUs beside both amounts": (
        TODAY.replace("gpu: 2", f"gpu: 2, {OLD}: 1"),
        strategic(gives("0")),
    ),
    "a smaller amount than that of the patch of an overlay below": (
        GPU.replace(f"{OLD}:", "cpu:"),
        {
            "overlays/b/kustomization.yaml": CURRENT_BELOW,
            "overlays/b/q.yaml": gives("2", "nvidia.com/gpu"),
            **strategic(gives("1")),
            "overlays/a/kustomization.yaml": "resources: [../b]\npatches: [{path: p.yaml}]\n",
        },
    ),
}

IN_TWO = GPU.replace(f"{OLD}: 1", f"{OLD}: 2")
NEW = "nvidia.com/gpu"
AMOUNT_OF_TODAY = AMOUNT.replace(OLD.replace("/", "~1"), NEW.replace("/", "~1"))


def given(**sections: str) -> str:
    """A patch with these amounts in the sections of the container."""
    amounts = ", ".join(f"{name}: {{{each}}}" for name, each in sections.items())
    return f"{POD}      containers: [{{name: c, resources: {{{amounts}}}}}]\n"


HELD |= {
    "a smaller current amount than the legacy one of the base": (
        IN_TWO,
        strategic(gives("1", NEW)),
    ),
    "a current amount that is not known": (IN_TWO, strategic(gives("$(N)", NEW))),
    "a current amount of 0": (IN_TWO, strategic(gives("0", NEW))),
    "a patch that removes the current amount beside the legacy one": (
        IN_TWO.replace(f"{OLD}: 2", f"{OLD}: 2, {NEW}: 1"),
        strategic(gives("null", NEW)),
    ),
    "an operation that adds a smaller current amount": (
        IN_TWO,
        operation(f"op: add, path: {AMOUNT_OF_TODAY}, value: 1"),
    ),
    "operations that add both, the smaller one last": (
        GPU.replace(f"{OLD}:", "cpu:"),
        overlay(
            "patches: [{target: {kind: Deployment}, path: p.yaml}]",
            p=f"- {{op: add, path: {AMOUNT}, value: 4}}\n"
            f"- {{op: add, path: {AMOUNT_OF_TODAY}, value: 1}}\n",
        ),
    ),
    "a smaller current amount over the legacy one of an overlay below": (
        GPU.replace(f"{OLD}:", "cpu:"),
        {
            "overlays/b/kustomization.yaml": CURRENT_BELOW,
            "overlays/b/q.yaml": gives("2"),
            **strategic(gives("1", NEW)),
            "overlays/a/kustomization.yaml": "resources: [../b]\npatches: [{path: p.yaml}]\n",
        },
    ),
    "a legacy amount that is not known beside the current one": (TODAY, strategic(gives("$(N)"))),
    "a legacy amount beside a current one that is not known": (
        TODAY.replace(f"{NEW}: 2", f"{NEW}: __N__"),
        strategic(gives("4")),
    ),
    "an amount in requests alone that is not known": (
        IN_TWO,
        strategic(given(requests=f"{OLD}: $(N)")),
    ),
    "a current amount in requests alone that is not known": (
        IN_TWO,
        strategic(given(requests=f"{NEW}: $(N)")),
    ),
    "a limit and a request that are not known": (
        GPU,
        strategic(given(limits=f"{OLD}: $(N)", requests=f"{OLD}: $(M)")),
    ),
    "a limit and a request that differ": (
        GPU,
        strategic(given(limits=f"{OLD}: 1", requests=f"{OLD}: 2")),
    ),
    "a limit that is not known beside the request of the base": (BOTH, strategic(gives("$(N)"))),
}

HELD |= {
    "an amount that is not known": (GPU, strategic(gives("$(N)"))),
    "limit and request that are the same text": (
        BOTH,
        strategic(given(limits=f"{OLD}: $(N)", requests=f"{OLD}: $(N)")),
    ),
}

OTHER_OBJECT = GPU.replace("name: d}", "name: web-d}")


def above(patch: str, name: str = "a-d-v1") -> dict[str, str]:
    """A patch of what an overlay with a prefix and a suffix has renamed."""
    target = f"{{kind: Deployment, name: {name}}}"
    return {
        "mid/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\nnameSuffix: -v1\n",
        "top/kustomization.yaml": "resources: [../mid]\n"
        f"patches: [{{target: {target}, path: p.yaml}}]\n",
        "top/p.yaml": patch,
    }


HELD |= {
    "an operation on an object with a prefix and a suffix": (
        OF_SEVERAL,
        above(f"- {{op: remove, path: {AT}/nodeSelector}}\n"),
    ),
    "a patch of an object with a prefix and a suffix": (
        GPU,
        above(f"{POD}      tolerations: [{DEDICATED}]\n".replace("name: d}", "name: a-d-v1}")),
    ),
    "requests alone, as much as the limit of another object": (
        f"{IN_TWO}---\n{OTHER_OBJECT.replace(': 1}', ': 4}')}",
        strategic(gives("4").replace("limits", "requests")),
    ),
}

REMOVES = f'[{{"op": "remove", "path": "{AT}/nodeSelector"}}]'
TRANSFORMER = (
    "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\n"
    f"target: {{kind: Deployment}}\npatch: '{REMOVES}'\n"
)
HELD |= {
    "a transformer in the kustomization": (
        OF_SEVERAL,
        overlay("transformers:\n- |-\n" + textwrap.indent(TRANSFORMER, "  ")),
    ),
    "a folder of transformers": (
        OF_SEVERAL,
        overlay("transformers: [../../more]")
        | {"more/kustomization.yaml": "resources: [t.yaml]\n", "more/t.yaml": TRANSFORMER},
    ),
    "a transformer names several files": (
        OF_SEVERAL,
        overlay(
            "transformers: [t.yaml]",
            t="apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: x}\n"
            "paths: [q.yaml]\n",
            q=POD + "      nodeSelector: {$patch: replace, pool: b}\n",
        ),
    ),
}


def run_changes_nothing(base: str, files: dict[str, str], tmp_path: Path) -> None:
    """Of this base with these files beside it, and the run says that there is manual work."""
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    before = {each: each.read_text() for each in folder.rglob("*.yaml")}
    assert main(["migrate", "-w", "-R", str(folder)]) == 3
    assert {each: each.read_text() for each in folder.rglob("*.yaml")} == before


@pytest.mark.parametrize(("base", "files"), HELD.values(), ids=HELD)
def test_pods_stay_as_they_are_while_a_patch_of_them_does(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    run_changes_nothing(base, files, tmp_path)


@pytest.mark.parametrize("files", READING.values(), ids=READING)
def test_what_replacements_read_or_write_stays(files: dict[str, str], tmp_path: Path) -> None:
    run_changes_nothing(GPU, files, tmp_path)


V1BETA1 = GPU.replace("apps/v1", "extensions/v1beta1").replace(
    "  selector: {matchLabels: {app: d}}\n", ""
)
SELECTED = GPU.replace("apps/v1", "extensions/v1beta1")
PATCH = "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {name: d}\nspec: "
CRON_JOB = (
    "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: d}\n"
    "spec:\n  schedule: '0 0 * * *'\n"
    "  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: "
    f"[{{name: c, image: x, resources: {{limits: {{{OLD}: 1}}}}}}]}}}}}}}}\n"
)


def replicas_of(target: str) -> dict[str, str]:
    return overlay(
        f"patchesJson6902:\n- {{path: p.yaml, target: {target}}}",
        p="- {op: add, path: /spec/replicas, value: 3}\n",
    )


FOUND_AGAIN = {
    "a target on one line": (
        V1BETA1,
        replicas_of("{group: extensions, version: v1beta1, kind: Deployment, name: d}"),
        "group: apps, version: v1,",
    ),
    "a target on several lines": (
        V1BETA1,
        overlay(
            "patches:\n- target:\n    group: extensions\n    version: v1beta1\n"
            "    kind: Deployment\n"
            '  patch: \'[{"op": "add", "path": "/spec/replicas", "value": 3}]\''
        ),
        "    group: apps\n    version: v1\n",
    ),
    "a target of a CronJob": (
        CRON_JOB,
        overlay(
            "patches: [{path: p.yaml, target: {group: batch, version: v1beta1, kind: CronJob}}]",
            p="- {op: replace, path: /spec/schedule, value: '0 1 * * *'}\n",
        ),
        "group: batch, version: v1,",
    ),
}


@pytest.mark.parametrize(("base", "files", "target"), FOUND_AGAIN.values(), ids=FOUND_AGAIN)
def test_the_target_of_a_patch_gets_the_version_of_what_it_patches(
    base: str, files: dict[str, str], target: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    assert "beta" not in (folder / "base/d.yaml").read_text()
    assert target in (folder / "overlays/a/kustomization.yaml").read_text()


VERSIONS_HELD = {
    "a target by the group alone": (V1BETA1, replicas_of("{group: extensions, kind: Deployment}")),
    "a target by the version alone": (V1BETA1, replicas_of("{version: v1beta1, name: d}")),
    "a variable": (
        V1BETA1,
        overlay(
            "vars: [{name: N, objref: {kind: Deployment, name: d, apiVersion: extensions/v1beta1}}]"
        ),
    ),
    "a patch that recreates all pods": (
        V1BETA1,
        strategic(PATCH + "{strategy: {type: Recreate}}\n"),
    ),
    "a patch that removes the strategy": (V1BETA1, strategic(PATCH + "{strategy: null}\n")),
    "a target that would match only the new version": (
        V1BETA1,
        replicas_of("{group: apps, version: v1, kind: Deployment}"),
    ),
    "a patch of the labels": (
        V1BETA1,
        strategic(PATCH + "{template: {metadata: {labels: {app: e}}}}\n"),
    ),
    "an operation on a label": (
        V1BETA1,
        operation("op: replace, path: /spec/template/metadata/labels/app, value: e"),
    ),
    "a patch of the selector": (
        V1BETA1,
        strategic(PATCH + "{selector: {matchLabels: {env: dev}}}\n"),
    ),
    "common labels": (V1BETA1, overlay("commonLabels: {env: dev}")),
    "labels of selectors": (
        V1BETA1,
        overlay("labels: [{pairs: {env: dev}, includeSelectors: true}]"),
    ),
    "labels of templates": (
        V1BETA1,
        overlay("labels: [{pairs: {env: dev}, includeTemplates: true}]"),
    ),
    "common labels of the base": (
        V1BETA1,
        {"base/kustomization.yaml": "resources: [d.yaml]\ncommonLabels: {env: dev}\n"},
    ),
    "an operation that tests the version": (
        V1BETA1,
        operation("op: test, path: /apiVersion, value: extensions/v1beta1"),
    ),
    "an operation on a field that only the old version has": (
        V1BETA1.replace("spec:\n", "spec:\n  rollbackTo: {revision: 1}\n", 1),
        operation("op: remove, path: /spec/rollbackTo"),
    ),
}


@pytest.mark.parametrize(("base", "files"), VERSIONS_HELD.values(), ids=VERSIONS_HELD)
def test_the_version_stays_where_an_overlay_does_not_fit_what_it_needs(
    base: str, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    overlays = {each: each.read_text() for each in folder.rglob("*.yaml") if each.name != "d.yaml"}
    for _ in range(2):
        assert main(["migrate", "-w", "-R", str(folder)]) == 3
        assert "change both by hand" in " ".join(capsys.readouterr().out.split())
        text = (folder / "base/d.yaml").read_text()
        assert "apiVersion: extensions/v1beta1" in text
        assert ("selector:" in text, "strategy:" in text) == (False, False)
        assert {each: each.read_text() for each in overlays} == overlays


VERSIONS_DONE = {
    "no overlay changes the labels": (V1BETA1, overlay("namePrefix: a-")),
    "a patch of something else": (V1BETA1, strategic(PATCH + "{replicas: 3}\n")),
    "a patch that rolls more pods at once": (
        V1BETA1,
        strategic(PATCH + "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 3}}}\n"),
    ),
    "common labels over a selector": (SELECTED, overlay("commonLabels: {env: dev}")),
    "labels of the object alone": (V1BETA1, overlay("labels: [{pairs: {env: dev}}]")),
    "a target by kind": (V1BETA1, replicas_of("{kind: Deployment}")),
    "an operation that replaces the strategy": (
        V1BETA1,
        operation("op: add, path: /spec/strategy, value: {type: Recreate}"),
    ),
}


@pytest.mark.parametrize(("base", "files"), VERSIONS_DONE.values(), ids=VERSIONS_DONE)
def test_the_version_changes_where_overlays_fit_what_it_needs(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    text = (folder / "base/d.yaml").read_text()
    assert "apiVersion: apps/v1" in text
    assert "selector:" in text


def test_the_version_stays_where_the_target_is_not_among_the_files(tmp_path: Path) -> None:
    target = "{group: extensions, version: v1beta1, kind: Deployment}"
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": V1BETA1, **replicas_of(target)})
    assert main(["migrate", "-w", "-f", str(folder / "base/d.yaml")]) == 3
    assert "extensions/v1beta1" in (folder / "base/d.yaml").read_text()


FLUX = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec:\n  path: ./base\n"
ARGO = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nspec:\n  source:\n    path: base\n"
POOL = f"patches:\n- patch: |-\n    - op: add\n      path: {AT}/nodeSelector/pool\n      value: b\n"
OF_OTHERS = {
    "a patch of Flux": {"flux/ks.yaml": FLUX + textwrap.indent(POOL, "  ")},
    "a patch of Argo CD": {
        "app.yaml": f"{ARGO}    kustomize:\n" + textwrap.indent(POOL, "      "),
    },
}

OF_OTHERS |= {
    "a patch of one of several sources of Argo CD": {
        "app.yaml": ARGO.partition("  source:")[0]
        + "  sources:\n  - path: base\n    kustomize:\n"
        + textwrap.indent(POOL, "      "),
    },
    "a patch of an ApplicationSet": {
        "app.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec:\n  template:\n"
        "    spec:\n      source:\n        path: base\n        kustomize:\n"
        + textwrap.indent(POOL, "          "),
    },
    "operations in a list of Flux": {
        "flux/ks.yaml": f"{FLUX}  patchesJson6902:\n  - target: {{kind: Deployment}}\n"
        f"    patch: {REMOVES}\n",
    },
}


@pytest.mark.parametrize("files", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_patch_of_a_controller_holds_what_it_patches(
    files: dict[str, str], tmp_path: Path
) -> None:
    run_changes_nothing(OF_SEVERAL, files, tmp_path)


def test_flux_builds_a_folder_without_a_kustomization_too(tmp_path: Path) -> None:
    patched = FLUX.replace("base", "plain") + textwrap.indent(POOL, "  ")
    folder = written(tmp_path / "x", {"plain/d.yaml": OF_SEVERAL, "flux/ks.yaml": patched})
    assert main(["migrate", "-w", "-R", str(folder)]) == 3
    assert (folder / "plain/d.yaml").read_text() == OF_SEVERAL


K80 = MODEL.replace("M60", "K80")
AGREED = {
    "a selector that is replaced with all that changes in it": (
        K80,
        operation(f"op: replace, path: {AT}/nodeSelector, value: {{pool: b}}"),
    ),
    "a key beside the one that changes": (
        K80,
        operation(f"op: add, path: {AT}/nodeSelector/pool, value: b"),
    ),
    "a key that is merged": (OF_SEVERAL, strategic(POD + "      nodeSelector: {pool: b}\n")),
    "another kind of affinity": (
        OF_SEVERAL,
        strategic(POD + "      affinity: {podAntiAffinity: {}}\n"),
    ),
    "tolerations of GPU nodes": (
        GPU,
        strategic(POD + "      tolerations: [{key: nvidia.com/gpu, operator: Exists}]\n"),
    ),
    "both amounts": (
        BOTH,
        strategic(
            POD + f"      containers: [{{name: c, resources: {{limits: {{{OLD}: 4}}, "
            f"requests: {{{OLD}: 4}}}}}}]\n"
        ),
    ),
    "a patch of another object": (
        OF_SEVERAL,
        overlay(
            "patches:\n- {target: {kind: Deployment, name: other}, path: p.yaml}",
            p=f"- {{op: add, path: {AT}/nodeSelector/pool, value: b}}\n",
        ),
    ),
}

IN_BOTH = f"{{limits: {{{OLD}: 2}}, requests: {{{OLD}: 1}}}}"
TWICE = GPU + GPU[GPU.index("      - name: c") :].replace("name: c", "name: s")
HELD |= {
    "a patch of unequal amounts": (
        GPU.replace(f"{OLD}:", "cpu:"),
        strategic(f"{POD}      containers: [{{name: c, resources: {IN_BOTH}}}]\n{TOLERATED}"),
    ),
    "an operation that gives unequal amounts": (
        GPU.replace(f"{OLD}:", "cpu:"),
        operation(f"op: replace, path: {AT}/containers/0/resources, value: {IN_BOTH}"),
    ),
    "a smaller request over a limit": (
        IN_TWO,
        strategic(gives("1").replace("limits", "requests")),
    ),
    "a request in one patch and a limit in another": (
        GPU,
        overlay(
            "patches: [{path: p.yaml}, {path: q.yaml}]",
            p=gives("1").replace("limits", "requests"),
            q=gives("2"),
        ),
    ),
    "amounts of another container": (
        TWICE,
        strategic(
            gives("4")
            .replace("{name: c,", "{name: s, resources: {requests: {cpu: 1}}}, {name: c,")
            .replace("limits: ", "requests: ")
        ),
    ),
    "a patch of the current name over a larger legacy amount": (
        GPU.replace(f"{OLD}: 1", f"{OLD}: 4"),
        strategic(gives("2", "nvidia.com/gpu")),
    ),
    "an operation that adds the current name": (
        GPU.replace(f"{OLD}: 1", f"{OLD}: 4"),
        operation(f"op: add, path: {AT}/containers/0/resources/limits/nvidia.com~1gpu, value: 2"),
    ),
}
AGREED |= {
    "a patch of the current name over a smaller legacy amount": (
        GPU,
        strategic(gives("2", "nvidia.com/gpu")),
    ),
    "a patch of the current name over an equal legacy amount": (
        GPU,
        strategic(gives("1", "nvidia.com/gpu")),
    ),
    "a smaller amount than the legacy one": (
        GPU.replace(f"{OLD}: 1", f"{OLD}: 2"),
        strategic(gives("1")),
    ),
    "a larger amount than the current one": (TODAY, strategic(gives("4"))),
    "a map of amounts instead of that with the current one": (
        TODAY,
        operation(f"op: replace, path: {AT}/containers/0/resources/limits, value: {{{OLD}: 1}}"),
    ),
    "a smaller amount than that of an overlay beside it": (
        GPU.replace(f"{OLD}:", "cpu:") + TOLERATED,
        {
            "overlays/b/kustomization.yaml": CURRENT_BELOW,
            "overlays/b/q.yaml": gives("2", "nvidia.com/gpu"),
            **strategic(gives("1")),
        },
    ),
}

AGREED |= {
    "a larger current amount than the legacy one": (IN_TWO, strategic(gives("4", NEW))),
    "a limit that another patch makes equal to the request": (
        BOTH,
        overlay(
            "patches: [{path: p.yaml}, {path: q.yaml}]",
            p=given(limits=f"{OLD}: 4", requests=f"{OLD}: 8"),
            q=gives("8"),
        ),
    ),
    "limit and request twice, each time the same": (
        BOTH,
        {
            "overlays/b/kustomization.yaml": CURRENT_BELOW,
            "overlays/b/q.yaml": given(limits=f"{OLD}: 2", requests=f"{OLD}: 2"),
            **strategic(given(limits=f"{OLD}: 4", requests=f"{OLD}: 4")),
            "overlays/a/kustomization.yaml": "resources: [../b]\npatches: [{path: p.yaml}]\n",
        },
    ),
}

WEB = MODEL.replace("name: d}", "name: web-d}").replace(f"{OLD}:", "cpu:").replace(LABEL, "disk")
SELECTS = f"- {{op: replace, path: {AT}/nodeSelector, value: {{pool: x}}}}\n"


def of_words(words: str, target: str) -> tuple[str, dict[str, str]]:
    """A patch with this target, and the object with these words in its metadata."""
    patch = f"- {{op: replace, path: {AMOUNT}, value: 8}}\n"
    base = GPU.replace("metadata: {name: d}", f"metadata: {{name: d, {words}}}", 1)
    return base, overlay(f"patches: [{{target: {target}, path: p.yaml}}]", p=patch)


def of_web(target: str) -> dict[str, str]:
    return overlay(f"patches: [{{target: {target}, path: p.yaml}}]", p=SELECTS)


AGREED |= {
    "an amount with its toleration over a base without GPUs": (
        GPU.replace(f"{OLD}:", "cpu:"),
        strategic(gives("1") + TOLERATED),
    ),
    "a label that is a word for true": of_words("labels: {tier: y}", "{labelSelector: tier=y}"),
    "a label that is another word for true": of_words(
        "labels: {tier: y, x: on}", "{kind: Deployment, labelSelector: 'tier=y,x=on'}"
    ),
    "a label that is a word for false": of_words("labels: {tier: No}", "{labelSelector: tier=No}"),
    "an annotation that is a word for false": of_words(
        "annotations: {tier: off}", "{annotationSelector: tier=off}"
    ),
    "a namespace that is a word for true": of_words("namespace: on", "{namespace: 'on'}"),
    "a name that is a word for true": (
        GPU.replace("{name: d}", "{name: y}", 1),
        strategic(gives("8").replace("{name: d}", "{name: 'y'}", 1)),
    ),
    "a patch whose name is a word for true": (
        GPU.replace("{name: d}", "{name: 'yes'}", 1),
        strategic(gives("8").replace("{name: d}", "{name: yes}", 1)),
    ),
    "an operation on one line of the kustomization": (
        GPU,
        overlay(f"{INLINE}|-\n    - {{op: replace, path: {AMOUNT}, value: 8}}\n"),
    ),
    "a patch of another object whose name ends alike": (
        f"{OF_SEVERAL}---\n{WEB}",
        of_web("{kind: Deployment, name: web-d}"),
    ),
    "a patch of objects with another label": (
        OF_SEVERAL,
        of_web("{kind: Deployment, labelSelector: 'tier=web,x'}"),
    ),
    "a patch of another namespace": (
        OF_SEVERAL.replace("name: d}", "name: d, namespace: a}"),
        of_web("{kind: Deployment, namespace: b}"),
    ),
    "limits alone, beside an object with requests": (
        f"{IN_TWO}---\n{BOTH.replace('name: d}', 'name: other}')}",
        strategic(gives("8")),
    ),
    "both amounts, in two files": (
        BOTH,
        overlay(
            "patches: [{path: p.yaml}, {path: q.yaml}]",
            p=gives("8"),
            q=gives("8").replace("limits", "requests"),
        ),
    ),
    "both amounts by one alias": (
        BOTH,
        strategic(
            f"{POD}      containers:\n      - name: c\n        resources:\n"
            f"          requests: &gpus\n            {OLD}: 2\n          limits: *gpus\n"
        ),
    ),
}
SERVICE = "---\napiVersion: v1\nkind: Service\nmetadata: {name: d}\nspec: {ports: [{port: 80}]}\n"
SET = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: set}\ndata: {image: y}\n"
OF_CONTAINER = POD + "      containers:\n      - name: c\n"
ORDINARY = {
    "replicas, images, names and a namespace": overlay(
        "namePrefix: prod-\nnamespace: ml\nreplicas: [{name: d, count: 3}]\n"
        "images: [{name: x, newTag: '2'}]"
    ),
    "generated config maps and secrets": overlay(
        "configMapGenerator: [{name: c, literals: [A=b]}]\n"
        "secretGenerator: [{name: s, literals: [A=b]}]"
    ),
    "labels and annotations for everything": overlay(
        "commonLabels: {env: prod}\ncommonAnnotations: {team: ml}"
    ),
    "labels of templates": overlay("labels: [{pairs: {env: prod}, includeTemplates: true}]"),
    "a patch of replicas": strategic(HEAD.partition("  template")[0] + "  replicas: 3\n"),
    "an operation on replicas": operation("op: add, path: /spec/replicas, value: 3"),
    "another amount": strategic(gives("4")),
    "an operation on the amount": operation(f"op: replace, path: {AMOUNT}, value: 8"),
    "environment and arguments": strategic(
        f"{OF_CONTAINER}        args: [--gpus]\n        env: [{{name: A, value: b}}]\n"
    ),
    "CPU and memory": strategic(
        f"{OF_CONTAINER}        resources: {{limits: {{cpu: 8}}, requests: {{memory: 1Gi}}}}\n"
    ),
    "a container beside it": strategic(f"{POD}      containers: [{{name: side, image: y}}]\n"),
    "a volume and its mount": strategic(
        f"{OF_CONTAINER}        volumeMounts: [{{name: data, mountPath: /data}}]\n"
        "      volumes: [{name: data, emptyDir: {}}]\n"
    ),
    "a pool of nodes": strategic(POD + "      nodeSelector: {pool: b}\n"),
    "annotations of the pods": strategic(HEAD + "    metadata: {annotations: {team: ml}}\n"),
    "a component with another amount": overlay("components: [../../part]")
    | {"part/kustomization.yaml": "kind: Component\npatches: [{path: p.yaml}]\n"}
    | {"part/p.yaml": gives("4")},
    "a patch of what a prefix has renamed": above(gives("4").replace("name: d}", "name: a-d-v1}")),
    "a replacement of an image": {
        "overlays/a/set.yaml": SET,
        "overlays/a/kustomization.yaml": "resources: [../../base, set.yaml]\nreplacements:\n"
        "- source: {kind: ConfigMap, name: set, fieldPath: data.image}\n  targets:\n"
        "  - select: {kind: Deployment}\n"
        "    fieldPaths: [spec.template.spec.containers.0.image]\n",
    },
}


@pytest.mark.parametrize("files", ORDINARY.values(), ids=ORDINARY)
def test_ordinary_overlays_are_migrated(files: dict[str, str], tmp_path: Path) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU + SERVICE, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    assert all(OLD not in each.read_text() for each in folder.rglob("*.yaml"))


OUT = textwrap.dedent("""\
    apiVersion: v1
    kind: Namespace
    metadata: {name: out, labels: {gpu-webhook.dev/ignore: "true"}}
    """)
MOVES = {
    "the namespace of a kustomization": "namespace: out",
    "an operation": "patches:\n- target: {kind: Deployment}\n"
    "  patch: |\n    - {op: add, path: /metadata/namespace, value: out}",
    "a replacement": "replacements:\n- source: {kind: Namespace, name: out}\n"
    "  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.namespace], "
    "options: {create: true}}]",
}


@pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)
def test_a_pod_that_an_overlay_moves_into_a_namespace_that_opted_out_stays(
    moves: str, tmp_path: Path
) -> None:
    said = {"overlays/a/kustomization.yaml": f"resources: [../../base, out.yaml]\n{moves}\n"}
    run_changes_nothing(GPU, {**said, "overlays/a/out.yaml": OUT}, tmp_path)


def test_a_pod_that_an_overlay_moves_into_another_namespace_is_migrated(tmp_path: Path) -> None:
    files = {**overlay("namespace: other"), "overlays/a/p.yaml": OUT}
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0


REMOTE = "resources: ['https://example.org/base?ref=v1']\n"
CHART = {
    "k/charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "k/charts/c/values.yaml": "image: x\n",
    "k/charts/c/templates/d.yaml": GPU.replace("image: x", "image: {{ .Values.image }}"),
}
INFLATED = "helmCharts: [{name: c, releaseName: r}]\n"
ELSEWHERE = {
    "a base on a server": {
        "k/kustomization.yaml": f"{REMOTE}patches: [{{path: p.yaml}}]\n",
        "k/p.yaml": gives("4"),
    },
    "a base that is not there": {
        "k/kustomization.yaml": "resources: [../no]\npatches: [{path: p.yaml}]\n",
        "k/p.yaml": gives("4"),
    },
    "a replacement in a base on a server": {
        "k/kustomization.yaml": READING["a replacement"]["overlays/a/kustomization.yaml"].replace(
            "resources: [../../base]\n", REMOTE
        ),
    },
    "the tolerations of a chart": CHART
    | {
        "k/kustomization.yaml": f"{INFLATED}patches: [{{path: p.yaml}}]\n",
        "k/p.yaml": f"{POD}      tolerations: [{DEDICATED}]\n",
    },
    "the selector of a chart, in an overlay": CHART
    | {
        "k/kustomization.yaml": INFLATED,
        "top/kustomization.yaml": "resources: [../k]\n"
        f'{INLINE}\'[{{"op": "remove", "path": "{AT}/nodeSelector"}}]\'\n',
    },
    "the network of a chart, beside which sysctls are refused": CHART
    | {
        "k/kustomization.yaml": f"{INFLATED}patches: [{{path: p.yaml}}]\n",
        "k/p.yaml": f"{POD}      hostNetwork: true\n",
    },
    "the namespace of a chart, in an overlay": CHART
    | {
        "k/kustomization.yaml": INFLATED,
        "top/kustomization.yaml": "resources: [../k]\n"
        f'{INLINE}\'[{{"op": "add", "path": "/metadata/namespace", "value": "out"}}]\'\n',
    },
    "values for a chart": CHART
    | {"k/kustomization.yaml": "helmCharts: [{name: c, valuesFile: v.yaml}]\n"}
    | {"k/v.yaml": f"resources: {{limits: {{{OLD}: 2}}}}\n"},
}


@pytest.mark.parametrize("files", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_patches_objects_that_no_file_shows_is_held(
    files: dict[str, str], tmp_path: Path
) -> None:
    run_changes_nothing(GPU.replace(f"{OLD}:", "cpu:"), files, tmp_path)


def test_a_chart_is_migrated_where_its_patches_are_of_other_places(tmp_path: Path) -> None:
    patch = f"{OF_CONTAINER}        args: [--gpus]\n"
    said = {"k/kustomization.yaml": f"{INFLATED}patches: [{{path: p.yaml}}]\n", "k/p.yaml": patch}
    folder = written(tmp_path / "x", {**CHART, **said})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    assert OLD not in (folder / "k/charts/c/templates/d.yaml").read_text()


ADDED = {
    "labels": ("labels: [{pairs: {tier: web}}]", "labelSelector: tier=web"),
    "a namespace": ("namespace: b", "namespace: b"),
}


@pytest.mark.parametrize(("added", "target"), ADDED.values(), ids=ADDED)
def test_a_target_may_name_what_a_kustomization_below_adds(
    added: str, target: str, tmp_path: Path
) -> None:
    base = OF_SEVERAL.replace("name: d}", "name: d, namespace: a}")
    files = {
        "mid/kustomization.yaml": f"resources: [../base]\n{added}\n",
        "top/kustomization.yaml": "resources: [../mid]\n"
        f"patches: [{{target: {{kind: Deployment, {target}}}, path: p.yaml}}]\n",
        "top/p.yaml": SELECTS,
    }
    run_changes_nothing(base, files, tmp_path)


@pytest.mark.parametrize(("base", "files"), AGREED.values(), ids=AGREED)
def test_pods_are_migrated_where_their_patches_mean_the_same_of_them(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    assert all(OLD not in each.read_text() for each in folder.rglob("*.yaml"))


CPU = GPU.replace(f"{OLD}:", "cpu:")
NOT_TOLERATED = {
    "a patch": (CPU, strategic(gives("1"))),
    "an operation": (
        CPU,
        operation(f"op: add, path: {AT}/containers/0/resources, value: {{limits: {{{OLD}: 1}}}}"),
    ),
    "a larger amount than the current one": (UNTOLERATED, strategic(gives("4"))),
}


@pytest.mark.parametrize(("base", "files"), NOT_TOLERATED.values(), ids=NOT_TOLERATED)
def test_a_patch_that_gives_gpus_waits_for_the_toleration_of_its_pod(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    result = looked_at(folder, "overlays/a/p.yaml")
    assert result.new_text is None
    (said,) = (each.message for each in result.located if each.code == "GPU101")
    assert "add a toleration of nvidia.com/gpu:NoSchedule there" in said


def test_what_a_patch_replaces_is_named_with_what_to_write(tmp_path: Path) -> None:
    files = strategic(POD + f"      tolerations: [{DEDICATED}]\n")
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    (said,) = (each.message for each in looked_at(folder).located if each.code == "GPU101")
    assert "overlays/a/p.yaml meets what would change in spec.template.spec.tolerations" in said
    assert "add a toleration of nvidia.com/gpu:NoSchedule there" in said


def test_a_patch_that_is_excluded_is_not_among_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = operation(f"op: test, path: {AMOUNT}, value: 1")
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    monkeypatch.chdir(folder)
    assert main(["migrate", "-w", "-R", ".", "--exclude", "p.yaml"]) == 3
    assert (folder / "base/d.yaml").read_text() == GPU
    assert "overlays/a/p.yaml is not among the files of this run" in capsys.readouterr().out


def test_globs_name_the_files_that_they_stand_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = operation(f"op: test, path: {AMOUNT}, value: 1")
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    monkeypatch.chdir(folder)
    assert main(["migrate", "-w", "-f", "base/*.yaml", "-f", "overlays/*/*.yaml"]) == 0
    assert OLD not in (folder / "base/d.yaml").read_text()
    assert "nvidia.com~1gpu" in (folder / "overlays/a/p.yaml").read_text()


def test_a_model_of_one_name_is_renamed_in_the_base_and_in_its_patch(tmp_path: Path) -> None:
    files = strategic(POD + f"      nodeSelector: {{{LABEL}: Tesla K80}}\n")
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": MODEL, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    for file in ("base/d.yaml", "overlays/a/p.yaml"):
        assert "nvidia.com/gpu.product: Tesla-" in (folder / file).read_text()


@pytest.mark.parametrize("way", WAYS[:2])
def test_an_amount_in_a_patch_waits_for_the_model_that_the_base_leaves(
    way: list[str], tmp_path: Path
) -> None:
    unknown = f"      nodeSelector: {{{LABEL}: MyCard-7}}\n      containers:"
    without = GPU.replace("      containers:", unknown).replace(f"{OLD}:", "cpu:")
    patch = MOUNTS.partition("      containers:")[0] + "      containers:\n      - name: c\n"
    patch += f"        resources: {{limits: {{{OLD}: 2}}}}\n"
    files = {**BASE_OF, "base/d.yaml": without, **overlay("patches: [{path: p.yaml}]", p=patch)}
    folder = written(tmp_path / "x", files)
    for _ in range(2):
        assert main(["migrate", "-w", way[0], str(folder / way[1])]) == 3
        assert (folder / "base/d.yaml").read_text() == without
        assert (folder / "overlays/a/p.yaml").read_text() == patch


def component(patches: str, **more: str) -> dict[str, str]:
    files = {f"part/{name}.yaml": text for name, text in more.items()}
    return {"part/kustomization.yaml": f"kind: Component\n{patches}\n", **files}


MODEL_BY_OPERATION = (
    f"{INLINE}|-\n    - op: add\n      path: {AT}/nodeSelector\n"
    f"      value: {{{LABEL}: Tesla-K80}}\n"
)
UNKNOWN = GPU.replace(
    "      containers:", f"      nodeSelector: {{{LABEL}: MyCard-7}}\n      containers:"
)
TWO = POD + f"      containers:\n      - {{name: c, resources: {{limits: {{{OLD}: 2}}}}}}\n"
OF_COMPONENTS = {
    "a model in a component's patch": (
        GPU,
        overlay("components: [../../part]") | component(MODEL_BY_OPERATION),
    ),
    "an amount in a component's patch": (
        UNKNOWN,
        overlay("components: [../../part]") | component("patches: [{path: p.yaml}]", p=TWO),
    ),
    "a component of a component": (
        GPU,
        overlay("components: [../../outer]")
        | {"outer/kustomization.yaml": "kind: Component\ncomponents: [../part]\n"}
        | component(MODEL_BY_OPERATION),
    ),
    "a component that is included beside a patch": (
        GPU,
        overlay("components: [../../part]\npatches: [{path: p.yaml}]", p=MOUNTS)
        | component(MODEL_BY_OPERATION),
    ),
    "a component of the base itself": (
        GPU,
        {"base/kustomization.yaml": "resources: [d.yaml]\ncomponents: [../part]\n"}
        | component(MODEL_BY_OPERATION),
    ),
    "a component of an overlay of the overlay": (
        GPU,
        overlay("")
        | {"top/kustomization.yaml": "resources: [../overlays/a]\ncomponents: [../part]\n"}
        | component(MODEL_BY_OPERATION),
    ),
}


@pytest.mark.parametrize(("base", "files"), OF_COMPONENTS.values(), ids=OF_COMPONENTS)
def test_what_a_component_patches_waits_like_what_an_overlay_patches(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    run_changes_nothing(base, files, tmp_path)


def test_components_that_are_not_there_or_form_a_loop_hide_no_other(tmp_path: Path) -> None:
    names = "components: [../../none, ../../broken, ../../part/again, ../../part]"
    files = {
        **overlay(names),
        **component(f"components: [../part, again]\n{MODEL_BY_OPERATION}"),
        "broken/kustomization.yaml": "components: [",
    }
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    (folder / "part/again").symlink_to(folder / "part")
    main(["migrate", "-w", "-R", str(folder)])
    assert (folder / "base/d.yaml").read_text() == GPU


def with_image(amount: str) -> dict[str, str]:
    patch = POD + "      containers:\n      - name: c\n        image: y\n"
    return strategic(f"{patch}        resources: {{limits: {{{OLD}: {amount}}}}}\n")


NO_GPUS = {
    "an operation without resources": operation(
        f"op: remove, path: {AT}/containers/0/resources",
    ),
    "an operation without the amount": operation(f"op: remove, path: {AMOUNT}"),
    "an operation with no GPUs": operation(f"op: replace, path: {AMOUNT}, value: 0"),
    "a patch without the amount": strategic(gives("null")),
    "a patch without resources": strategic(
        f"{POD}      containers: [{{name: c, resources: null}}]\n"
    ),
    "a patch with an image and no GPUs": with_image("0"),
    "a patch with an image and no GPUs as a text": with_image('"0"'),
}


@pytest.mark.parametrize("files", NO_GPUS.values(), ids=NO_GPUS)
def test_a_pod_without_the_gpus_of_its_base_does_not_get_their_toleration(
    files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": GPU, **files})
    assert main(["migrate", "-w", "-R", str(folder)]) == 3
    (said,) = (each.message for each in looked_at(folder).located if each.code == "GPU101")
    assert "a pod that requests no GPUs would tolerate GPU nodes, so remove that there" in said
    assert (folder / "base/d.yaml").read_text() == GPU


@pytest.mark.parametrize("amount", ["0", "null", '"0"'])
def test_a_patch_with_an_image_still_takes_the_amount_of_its_base_away(
    amount: str, tmp_path: Path
) -> None:
    """Where the pod has the toleration of GPU nodes already, with GPUs or without."""
    files = {**BASE_OF, "base/d.yaml": GPU + TOLERATES, **with_image(amount)}
    folder = written(tmp_path / "x", files)
    assert main(["migrate", "-w", "-R", str(folder)]) == 0
    assert "nvidia.com/gpu: 1" in (folder / "base/d.yaml").read_text()
    assert f"limits: {{nvidia.com/gpu: {amount}}}" in (folder / "overlays/a/p.yaml").read_text()


WITH_DRIVER = BASE.replace("nvidia.com/gpu: 1", f"{OLD}: 1")
TEMPLATED = WITH_DRIVER.replace("image: x", "image: x{{ .Values.tag }}")
OTHER = WITH_DRIVER.replace("name: d}", "name: other}").replace("nv", "own")
KEEPS = {
    "a patch that mounts it": (WITH_DRIVER, overlay("patches: [{path: p.yaml}]", p=MOUNTS)),
    "an operation on a volume by its position": (
        WITH_DRIVER,
        operation(f"op: replace, path: {AT}/volumes/0/hostPath/path, value: /opt"),
    ),
    "a part of the pod that actions make": (
        TEMPLATED,
        overlay("patches: [{path: p.yaml}]", p=MOUNTS),
    ),
    "two pods in the file": (
        f"{WITH_DRIVER}---\n{OTHER}",
        overlay("patches: [{path: p.yaml}]", p=MOUNTS),
    ),
    "an amount in the patch that mounts it": (
        WITH_DRIVER,
        overlay(
            "patches: [{path: p.yaml}]",
            p=MOUNTS.replace("image: y", f"image: y\n        resources: {{limits: {{{OLD}: 1}}}}"),
        ),
    ),
}


@pytest.mark.parametrize(("base", "files"), KEEPS.values(), ids=KEEPS)
def test_amounts_wait_for_the_driver_volume_of_their_pod(
    base: str, files: dict[str, str], tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    before = {each: each.read_text() for each in folder.rglob("*.yaml")}
    for way in WAYS:
        assert main(["migrate", "-w", way[0], str(folder / way[1])]) == 3
    assert {each: each.read_text() for each in folder.rglob("*.yaml")} == before


def test_amounts_that_wait_for_a_volume_say_so(tmp_path: Path) -> None:
    files = overlay("patches: [{path: p.yaml}]", p=MOUNTS)
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": WITH_DRIVER, **files})
    said = {each.code: each for each in looked_at(folder).located}
    assert {each.status for each in said.values()} == {Status.MANUAL}
    assert "overlays/a/p.yaml meets what would change in" in said["GPU101"].message


def test_a_pod_beside_one_that_is_held_stays_too(tmp_path: Path) -> None:
    plain = GPU.replace("name: d}", "name: e}")
    files = overlay("patches: [{path: p.yaml}]", p=MOUNTS)
    run_changes_nothing(f"{WITH_DRIVER}---\n{plain}", files, tmp_path)


TWO_VARIABLES = WITH_DRIVER.replace(
    "        env:\n", "        env:\n        - {name: EPOCHS, value: '1'}\n"
)
ONLY_PATH = WITH_DRIVER.replace('"/lib:/opt/driver"', '"/opt/driver"')
SIDECAR = "{name: s, image: y, volumeMounts: [{name: nv, mountPath: /x}]}"
GOES_BY_POSITION = {
    "the whole pod": (
        WITH_DRIVER,
        f"op: add, path: {AT}, value: {{containers: [{SIDECAR}]}}",
    ),
    "a variable's value": (
        TWO_VARIABLES,
        f"op: replace, path: {AT}/containers/0/env/0/value, value: 9",
    ),
    "a container's image": (WITH_DRIVER, f"op: replace, path: {AT}/containers/0/image, value: z"),
    "a new variable": (
        WITH_DRIVER,
        f"op: add, path: {AT}/containers/0/env/-, value: {{name: A, value: b}}",
    ),
    "a container that mounts nothing": (
        WITH_DRIVER,
        f"op: add, path: {AT}/containers/-, value: {{name: s, image: y}}",
    ),
    "a toleration": (
        WITH_DRIVER,
        f"op: add, path: {AT}/tolerations, value: [{{key: nvidia.com/gpu, operator: Exists}}]",
    ),
}


@pytest.mark.parametrize(("base", "text"), GOES_BY_POSITION.values(), ids=GOES_BY_POSITION)
def test_a_patch_by_position_that_reaches_no_volume_keeps_none(
    base: str, text: str, tmp_path: Path
) -> None:
    files = operation(text)
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **files})
    after = looked_at(folder).new_text or ""
    assert "nvidia-375" not in after
    assert "nvidia.com/gpu: 1" in after


STAYS_BY_POSITION = {
    "a variable, where one before it would go": (
        ONLY_PATH,
        f"op: replace, path: {AT}/containers/0/env/0/value, value: '/lib'",
    ),
    "a new variable, where the list would go": (
        ONLY_PATH,
        f"op: add, path: {AT}/containers/0/env/-, value: {{name: A, value: b}}",
    ),
    "all volumes": (WITH_DRIVER, f"op: remove, path: {AT}/volumes"),
    "a mount": (WITH_DRIVER, f"op: remove, path: {AT}/containers/0/volumeMounts/0"),
    "a mount that is copied": (
        WITH_DRIVER,
        f"op: copy, from: {AT}/containers/0/volumeMounts/0, path: {AT}/containers/0/x",
    ),
    "a new volume, where the list would go": (
        WITH_DRIVER,
        f"op: add, path: {AT}/volumes/-, value: {{name: data, emptyDir: {{}}}}",
    ),
    "a container in the place of another": (
        WITH_DRIVER,
        f"op: replace, path: {AT}/containers/0, value: {SIDECAR}",
    ),
}


@pytest.mark.parametrize(("base", "text"), STAYS_BY_POSITION.values(), ids=STAYS_BY_POSITION)
def test_a_patch_by_position_that_reaches_volumes_keeps_them(
    base: str, text: str, tmp_path: Path
) -> None:
    folder = written(tmp_path / "x", {**BASE_OF, "base/d.yaml": base, **operation(text)})
    assert looked_at(folder).new_text is None
