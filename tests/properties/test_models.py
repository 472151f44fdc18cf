"""Which nodes a model of 2017 comes to, judged by a port of kube-scheduler's node affinity.

Fleets are of one profile. Some nodes still carry the old label, beside today's or alone, also nodes
without GPUs; authors write full names of nvidia-smi, or the model alone, in any spelling.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import event, given
from hypothesis import strategies as st

from tests.capacity.test_models import NVIDIA_SMI, WRITTEN
from tests.engine import run
from tests.evaluation.test_template_updates import sent_again, stored
from tests.properties.test_allowed_nodes import node_affinity, parsed_term
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context
from webhook.core.settings import Models, Settings
from webhook.kube import labels
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.properties.test_allowed_nodes import Term

    Raw = dict[str, Any]

LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"
OLD = "alpha.kubernetes.io/nvidia-gpu-name"
ANNOTATION = "scheduler.alpha.kubernetes.io/affinity"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
PROFILES = ("gfd", "gke", "eks", "karpenter", "aks")
SHORT = {"Tesla P100": "Tesla P100-", "Tesla V100": "Tesla V100-"}
CARDS = [name for name in NVIDIA_SMI if name.startswith("Tesla")]


def values_of(name: str, profile: str) -> set[str]:
    """The values of today's label by which the profile knows these cards."""
    if name in SHORT:
        full = [each for each in NVIDIA_SMI if each.startswith(SHORT[name])]
        more = {"Tesla-V100-SXM3-32GB", "Tesla-V100-FHHL-16GB"} if "V100" in name else set()
        return set().union(more, *(values_of(each, profile) for each in full))
    known = NVIDIA_SMI[name][PROFILES.index(profile)]
    return {known} if isinstance(known, str) and known else set(known)


@dataclass(frozen=True)
class Asked:
    """What the author requests: names as they are meant, and as they are written."""

    operator: str
    names: tuple[str, ...]
    written: tuple[str, ...]

    def means(self, node: Raw, profile: str, key: str) -> bool:
        there = node["metadata"]["labels"]
        known = set().union(*(values_of(name, profile) for name in self.names))
        named = there.get(key) in known or there.get(OLD) in self.written
        return named if self.operator == "In" else not named

    @property
    def term(self) -> Raw:
        asked = {"key": OLD, "operator": self.operator, "values": list(self.written)}
        return {"matchExpressions": [asked]}


@st.composite
def fleets(draw: st.DrawFn, profile: str, key: str) -> list[Raw]:
    nodes: list[Raw] = []
    names: list[str] = draw(st.lists(st.sampled_from(CARDS), min_size=1, max_size=6))
    for name in names:
        there, dashed = sorted(values_of(name, profile)), name.replace(" ", "-")
        kept, renamed = draw(st.tuples(st.booleans(), st.booleans()))
        carried = {OLD: dashed} if kept else {}
        today = {key: draw(st.sampled_from(there))} if there and renamed else {}
        gpus = draw(st.sampled_from([8, 8, 8, 0]))
        metadata = {"name": f"n{len(nodes)}", "labels": {**carried, **today}}
        nodes.append({"metadata": metadata, "gpus": gpus})
    return nodes


@st.composite
def authors(draw: st.DrawFn) -> Asked:
    names = draw(st.lists(st.sampled_from([*CARDS, *SHORT]), min_size=1, max_size=3))
    ways = [draw(st.sampled_from(["with dashes", *WRITTEN])) for _ in names]
    written = (WRITTEN[way](name) for way, name in zip(ways, names, strict=True))
    return Asked(draw(st.sampled_from(["In", "NotIn"])), tuple(names), tuple(written))


def pod(asked: Asked, place: str) -> Raw:
    """Give a legacy pod that requests it there, as far as that place can say it."""
    annotations: Raw = {}
    spec: Raw = {"containers": [{"name": "c", "image": "i", "resources": {"limits": {LEGACY: 1}}}]}
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [asked.term]}}}
    if place == "preferred":
        preferred = [{"weight": 1, "preference": asked.term}]
        spec["affinity"] = {"nodeAffinity": {PREFERRED: preferred}}
    elif place == "nodeSelector" and len(asked.written) == 1 and asked.operator == "In":
        spec["nodeSelector"] = {OLD: asked.written[0]}
    elif place == "spec.affinity" and all(map(labels.is_value, asked.written)):
        spec["affinity"] = required
    else:
        annotations = {ANNOTATION: json.dumps(required)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
        "spec": spec,
    }


def weight(node: Raw, spec: Raw) -> int:
    """What the preferences give to a node."""
    preferred = spec.get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, [])
    parsed: list[tuple[int, Term | None]] = [
        (each["weight"], parsed_term(each["preference"])) for each in preferred
    ]
    return sum(much for much, term in parsed if term is not None and term.matches(node))


PLACES = ("nodeSelector", "spec.affinity", "annotation", "preferred")


@given(st.sampled_from(PROFILES), authors(), st.sampled_from(PLACES), st.data())
def test_a_pod_gets_all_the_models_that_it_names_and_none_that_it_excludes(
    profile: str, asked: Asked, place: str, data: st.DataObject
) -> None:
    models = Models(profile=profile)
    nodes = data.draw(fleets(profile, models.key))
    classes = (
        NodeClass(dict(each["metadata"]["labels"]), gpus={GPU: each["gpus"]}) for each in nodes
    )
    cx = Context(Settings(models=models), Inventory(tuple(classes)))
    manifest = pod(asked, place)
    made = copy.deepcopy(manifest)
    verdict = run(RULES, made, cx)
    assert verdict.failed == ()
    fits: Callable[[Raw], bool] = node_affinity(made)
    with_gpus = [each for each in nodes if each["gpus"]]
    meant = {each["metadata"]["name"]: asked.means(each, profile, models.key) for each in with_gpus}
    if place == "preferred":
        assert all(map(fits, with_gpus))
        given_to = {each["metadata"]["name"]: weight(each, made["spec"]) for each in with_gpus}
        liked = {given_to[name] for name in meant if meant[name]}
        others = {given_to[name] for name in meant if not meant[name]}
        assert len(liked) <= 1
        assert not liked or not others or {max(others) + 1} == liked
    else:
        assert {each["metadata"]["name"]: fits(each) for each in with_gpus} == meant
    event(f"{place}, {asked.operator}, {'both labels' if OLD in str(made['spec']) else 'one'}")

    again = copy.deepcopy(made)
    again["spec"]["containers"][0]["resources"] = {"limits": {LEGACY: 1}}
    run(RULES, again, cx)
    for member in ("nodeSelector", "affinity"):
        assert again["spec"].get(member) == made["spec"].get(member)
    live = stored(manifest, cx)
    assert sent_again(manifest, live, cx)["spec"] == live["spec"]
