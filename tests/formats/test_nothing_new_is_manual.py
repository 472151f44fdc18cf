"""What a run writes needs no manual work after it: a second run with the same nodes asks for none.

Among the nodes are such that still have the model label of Kubernetes 1.3-1.10, alone or with the
current label: there the rules keep that label, or write it themselves.
"""

from __future__ import annotations

import itertools
import json
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.formats.test_every_way import WAYS, Way
from tests.properties.pods import pods
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.modes import IGNORE
from webhook.core.settings import Models, Settings
from webhook.files.results import Plan, Status
from webhook.files.source import OBJECT, Source
from webhook.formats.migrate import migrate_text
from webhook.rules import GUARD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases import Case

    Raw = dict[str, Any]

CASES = [case for case in cases() if case.rule not in {rule.NAME for rule in GUARD}]
LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
OLD, PRODUCT = f"{LEGACY}-name", "nvidia.com/gpu.product"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(*old: str, today: str = "") -> Iterator[NodeClass]:
    """Give nodes with these values of the old label, and with this value of the current one."""
    for each in old or ("",):
        labels = ({OLD: each} if each else {}) | ({PRODUCT: today} if today else {})
        yield NodeClass(labels, gpus={GPU: 8})


K80, P100 = "Tesla-K80", "Tesla-P100-PCIE-16GB"
NODES: dict[str, tuple[NodeClass, ...] | None] = {
    "nothing is known": None,
    "no node": (),
    "the current label": (*node(today=K80), *node(today=P100)),
    "both labels on one": (*node(K80, today=K80), *node(today=P100)),
    "both labels": (*node(K80, today=K80), *node("Tesla-P100", today=P100)),
    "the old label alone": (*node(K80), *node("Tesla-P100")),
    "the old label alone on one": (*node(K80), *node(today=P100)),
    "each label on another of one model": (*node(K80), *node(today=K80)),
    "old labels in other spellings": (*node("TESLA-K80", "k80"), *node(today=P100)),
    "an old label on a node without GPUs": (NodeClass({OLD: K80}), *node(today=K80)),
}
PLANS = {
    name: Plan(inventory=None if classes is None else Inventory(classes))
    for name, classes in NODES.items()
}
every_cluster = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
SOME = ("nothing is known", "both labels on one", "the old label alone on one")
some_clusters = pytest.mark.parametrize("plan", [PLANS[name] for name in SOME], ids=SOME)


def as_json(text: str) -> str:
    return json.dumps(yaml.safe_load(text), indent=2) + "\n"


def in_branch(text: str) -> str:
    return f"{{{{- if .Values.gpu }}}}\n{text}{{{{- end }}}}\n"


def in_list(text: str) -> str:
    items = textwrap.indent(text, "  ").replace("  ", "- ", 1)
    return f"apiVersion: v1\nkind: List\nitems:\n{items}"


KINDS = {
    "JSON": Way("x.json", as_json, str),
    "JSON in one line": Way("x.json", lambda text: json.dumps(yaml.safe_load(text)), str),
    "a list": Way("x.yaml", in_list, str),
    "a branch of a chart": Way("templates/x.yaml", in_branch, str),
    **WAYS,
}
every_kind = pytest.mark.parametrize("way", KINDS.values(), ids=KINDS)


def manual(path: str, text: str, plan: Plan, kind: str = "") -> tuple[set[tuple[str, str]], str]:
    source = Source.of_text(path, text, kind) if kind else Source.of_text(path, text)
    result = migrate_text(source, plan)
    said = {(each.code, each.message) for each in result.located if each.status is Status.MANUAL}
    return said, text if result.new_text is None else result.new_text


def added(path: str, text: str, plan: Plan, kind: str = "") -> set[tuple[str, str]]:
    """What a second run finds manual and the first did not; a third run changes nothing."""
    first, new = manual(path, text, plan, kind)
    second, again = manual(path, new, plan, kind)
    assert again == new
    return {each for each in second if each[0] not in {code for code, _ in first}}


def requirement(operator: str, *values: str) -> Raw:
    return {"key": OLD, "operator": operator} | ({"values": [*values]} if values else {})


def required(*terms: list[Raw]) -> Raw:
    listed = [{"matchExpressions": each} for each in terms]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": listed}}}


def preferred(*requirements: Raw) -> Raw:
    preference = {"matchExpressions": [*requirements]}
    return {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": preference}]}}


MODELS = (("Tesla-K80",), ("Tesla-P100",), ("Tesla-K80", "Tesla-P100"), ("Tesla K80", "Tesla-T4"))
REQUIREMENTS = [
    *(requirement(operator, *each) for operator in ("In", "NotIn") for each in MODELS),
    requirement("Exists"),
    requirement("DoesNotExist"),
]
AFFINITIES = {
    **{f"{each['operator']} {each.get('values', '')}": required([each]) for each in REQUIREMENTS},
    "two terms": required([requirement("In", "Tesla-K80")], [requirement("In", "Tesla-P100")]),
    "two in one term": required([requirement("NotIn", "Tesla-K80"), requirement("Exists")]),
    "preferred": preferred(requirement("In", "Tesla-K80")),
    "preferred not": preferred(requirement("NotIn", "Tesla-K80", "Tesla-T4")),
}


def pod(annotations: Raw | None = None, amount: str = LEGACY, **spec: Any) -> Raw:
    main = {"name": "main", "image": "i", "resources": {"limits": {amount: 1}}}
    metadata = {"name": "p"} | ({"annotations": annotations} if annotations else {})
    made = {"containers": [main], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": made}


PODS = {
    "in nodeSelector": pod(nodeSelector={OLD: "Tesla-K80"}),
    "in nodeSelector with another": pod(nodeSelector={"disk": "ssd", OLD: "Tesla-P100"}),
    **{f"{name} in affinity": pod(affinity=each) for name, each in AFFINITIES.items()},
    **{
        f"{name} in an annotation": pod({AFFINITY: json.dumps(each)})
        for name, each in AFFINITIES.items()
    },
}


def in_template(made: Raw) -> Raw:
    labels = {"labels": {"app": "a"}}
    template = {"metadata": made["metadata"] | labels, "spec": made["spec"]}
    template["metadata"].pop("name")
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def text_of(made: Raw) -> str:
    return yaml.safe_dump(made, sort_keys=False)


TEXTS = {name: text_of(made) for name, made in PODS.items()}
OF_TEMPLATES = {
    name: text_of(in_template(json.loads(json.dumps(made)))) for name, made in PODS.items()
}
# Each pod meets each cluster, alone or in a template, and each kind of file in one of the clusters;
# `make nightly` has all of it.
IS_NIGHTLY = settings.get_current_profile_name() == "nightly"
CLUSTERS_OF_A_POD = len(SOME) if IS_NIGHTLY else 1


def in_turn(plan: Plan, *ways: Any) -> Iterator[tuple[str, Raw, tuple[Any, ...]]]:
    """Give each pod with the ways in which this cluster meets it."""
    first = [*PLANS.values()].index(plan)
    for turn, (name, made) in enumerate(PODS.items(), first):
        yield name, made, ways if IS_NIGHTLY else (ways[turn % len(ways)],)


@pytest.mark.nightly
@every_cluster
def test_the_model_label_of_a_pod(plan: Plan) -> None:
    for name, _, ways in in_turn(plan, TEXTS, OF_TEMPLATES):
        for texts in ways:
            assert added("x.yaml", texts[name], plan) == set(), name


@pytest.mark.nightly
@every_kind
def test_the_model_label_in_a_file_of_any_kind(way: Way) -> None:
    first = [*KINDS.values()].index(way)
    for turn, (name, text) in enumerate(TEXTS.items(), first):
        for cluster in (SOME * 2)[turn % len(SOME) :][:CLUSTERS_OF_A_POD]:
            assert added(way.path, way.write(text), PLANS[cluster]) == set(), (name, cluster)


@some_clusters
def test_a_case_of_the_corpus(plan: Plan) -> None:
    for case in CASES:
        assert _of_case(case, plan) == set(), case


def _of_case(case: Case, plan: Plan) -> set[tuple[str, str]]:
    settings = replace(case.context(case.object()).settings, scope="all-legacy")
    return added("x.yaml", case.file.read_text(), replace(plan, settings=settings))


UNCLEAR = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {},
    "spec": {
        "containers": [
            {"name": "c0", "image": "i", "resources": None},
            {"name": "c1", "image": "i", "resources": {"limits": {LEGACY: "", GPU: "1"}}},
        ]
    },
}


@example(UNCLEAR, PODS["in nodeSelector with another"], "the current label", False)
@example(UNCLEAR, PODS["in nodeSelector with another"], "the current label", True)
@given(pods(), st.sampled_from([*PODS.values()]), st.sampled_from([*PLANS]), st.booleans())
def test_a_drawn_pod(drawn: Raw, asking: Raw, plan: str, is_template: bool) -> None:  # noqa: FBT001
    spec = drawn["spec"] | {k: v for k, v in asking["spec"].items() if k != "containers"}
    metadata = (drawn.get("metadata") or {}) | asking["metadata"]
    made = json.loads(json.dumps({**drawn, "metadata": metadata, "spec": spec}))
    made = in_template(made) if is_template else made
    assert added("x.yaml", text_of(made), PLANS[plan]) == set()


def test_a_name_on_the_line_below_a_removed_annotation() -> None:
    """Drawn: the removed line ends where the next one begins, and hid the name on it."""
    text = text_of(pod({AFFINITY: "{}", "example.com/note": OLD}))
    assert {code for code, _ in manual("x.yaml", text, PLANS[SOME[0]])[0]} == {"GPU105"}
    assert added("x.yaml", text, PLANS[SOME[0]]) == set()


def test_an_escape_in_an_annotation_is_no_placeholder() -> None:
    """Drawn: with such a key, the pod was compared with the nodes in the second run only."""
    text = text_of(
        pod({AFFINITY: '{"nodeAffinity": {"\\ud800": 1}}'}, nodeSelector={"disk": "ssd"})
    )
    assert "GPU301" in {code for code, _ in manual("x.yaml", text, PLANS["the current label"])[0]}
    assert added("x.yaml", text, PLANS["the current label"]) == set()


@some_clusters
def test_what_the_api_server_stores(plan: Plan) -> None:
    for name, made in PODS.items():
        assert added("team/Pod/p", text_of(made), plan, OBJECT) == set(), name


def patch_of(made: Raw) -> str:
    patch = in_template(json.loads(json.dumps(made)))
    del patch["spec"]["template"]["spec"]["containers"][0]["image"]
    return text_of(patch)


def inside(patch: str) -> str:
    return f"patches:\n- patch: |\n{textwrap.indent(patch, '    ')}"


@pytest.mark.nightly
@every_cluster
def test_a_patch_of_kustomize(plan: Plan) -> None:
    files = ("patch.yaml", str), ("kustomization.yaml", inside)
    for name, made, ways in in_turn(plan, *files):
        for path, write in ways:
            assert added(path, write(patch_of(made)), plan) == set(), name


BOTH = PLANS["both labels on one"]
KEPT = pod(nodeSelector={OLD: "Tesla-K80"}, amount=GPU)


@every_kind
def test_a_label_that_nodes_have_is_no_finding(way: Way) -> None:
    said, new = manual(way.path, way.write(text_of(KEPT)), BOTH)
    assert said == set()
    assert OLD in new


ELSEWHERE = {
    "a note": KEPT | {"metadata": {"name": "p", "annotations": {"note": OLD}}},
    "affinity to pods": pod(
        amount=GPU, affinity={"podAffinity": {REQUIRED: [{"topologyKey": OLD}]}}
    ),
    "another field": pod(amount=GPU, hostname=OLD),
    "another model": pod(amount=GPU, nodeSelector={OLD: "Tesla-M60"}),
    "data": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"selector": f"{OLD}=Tesla-K80"},
    },
    "an object that no rule knows": {
        "apiVersion": "x.org/v1",
        "kind": "X",
        "metadata": {"name": "x"},
        "spec": {"nodeSelector": {OLD: "Tesla-K80"}},
    },
}


@pytest.mark.parametrize("made", ELSEWHERE.values(), ids=ELSEWHERE)
def test_the_label_elsewhere_is_found(made: Raw) -> None:
    for text, path in ((text_of(made), "x.yaml"), (json.dumps(made), "x.json")):
        said, _ = manual(path, text, BOTH)
        assert {"GPU105", "GPU132"} & {code for code, _ in said}, path


def test_other_words_of_the_same_line_are_found() -> None:
    made = KEPT | {"metadata": {"name": "p", "annotations": {"note": f"as {LEGACY}"}}}
    said, _ = manual("x.json", json.dumps(made), BOTH)
    assert {code for code, _ in said} == {"GPU101"}


def test_a_pod_that_is_left_alone_stays_so() -> None:
    made = KEPT | {"metadata": {"name": "p", "labels": {IGNORE: "true"}}}
    assert manual("x.yaml", text_of(made), BOTH)[0] == set()


def test_the_old_label_may_be_that_of_the_settings() -> None:
    """Then it is today's, wherever it stands."""
    models = Models(label=OLD)
    settings = Settings(scope="all-legacy", models=models)
    for made, known in itertools.product((KEPT, ELSEWHERE["data"]), (None, BOTH.inventory)):
        assert manual("x.yaml", text_of(made), Plan(settings, known))[0] == set()


def test_nothing_is_claimed_of_nodes() -> None:
    for plan in PLANS.values():
        said, _ = manual("x.yaml", text_of(ELSEWHERE["data"]), plan)
        [(_, message)] = said
        assert message == (f"{OLD}: current kubelets do not set this label; write {PRODUCT}")
