"""A stored pod is a translation of its author's words, whatever labels the nodes have now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.evaluation.test_template_updates import (
    BETA_ZONE,
    MODEL,
    PREFERRED,
    PRODUCT,
    REQUIRED,
    STABLE_ZONE,
    V100,
    in_annotation,
    model,
    pod,
    sent_again,
    stored,
    terms,
    tools,
    wishes,
)
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.rule import Context

if TYPE_CHECKING:
    Raw = dict[str, Any]

K80, P100 = "Tesla-K80", "Tesla-P100-PCIE-16GB"
# The labels of the V100 node and of the K80 node; None for a node that is not there.
LAYOUTS: dict[str, tuple[Raw | None, Raw | None]] = {
    "both have the label of today": ({PRODUCT: V100}, {PRODUCT: K80}),
    "one has each label": ({PRODUCT: V100}, {MODEL: K80}),
    "one has each label, the other way round": ({MODEL: V100}, {PRODUCT: K80}),
    "both have the old label": ({MODEL: V100}, {MODEL: K80}),
    "each has both labels": ({MODEL: V100, PRODUCT: V100}, {MODEL: K80, PRODUCT: K80}),
    "another spelling beside the old label": ({MODEL: V100}, {PRODUCT: "Tesla-K80-12GB"}),
    "one is not there": ({PRODUCT: V100}, None),
    "they are in zones": (
        {PRODUCT: V100, STABLE_ZONE: "a"},
        {MODEL: K80, STABLE_ZONE: "b"},
    ),
    "none is there": (None, None),
}


def cluster(*labels: Raw | None) -> Context:
    classes = tuple(NodeClass(each, (), {"nvidia.com/gpu": 8}) for each in labels if each)
    return Context(inventory=Inventory(classes))


CLUSTERS = {name: cluster(*labels) for name, labels in LAYOUTS.items()} | {"unknown": Context()}


def alternatives(*values: str) -> Raw:
    listed = [{"key": MODEL, "operator": "In", "values": [each]} for each in values]
    required = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in listed]}
    return {"nodeAffinity": {REQUIRED: required}}


def both_ways(*values: str) -> Raw:
    preferred = wishes((MODEL, "NotIn", list(values)))["nodeAffinity"][PREFERRED]
    return {"nodeAffinity": {**model(*values)["nodeAffinity"], PREFERRED: preferred}}


FORMS = {
    "in nodeSelector": pod(nodeSelector={MODEL: K80}),
    "in nodeSelector, in another spelling": pod(nodeSelector={MODEL: "Tesla K80"}),
    "in nodeSelector beside another label": pod(nodeSelector={MODEL: K80, "disk": "ssd"}),
    "in nodeSelector and affinity": pod(nodeSelector={MODEL: K80}, affinity=model(V100, K80)),
    "in nodeSelector beside an exclusion": pod(
        nodeSelector={MODEL: V100}, affinity=terms((MODEL, "NotIn", [K80]))
    ),
    "in nodeSelector beside a zone": pod(nodeSelector={MODEL: K80, BETA_ZONE: "a"}),
    "one model": pod(affinity=model(K80)),
    "two models": pod(affinity=model(V100, K80)),
    "in several spellings": pod(affinity=model("Tesla K80", "K80", K80, V100)),
    "beside an unknown one": pod(affinity=model(V100, K80, "Riva 128")),
    "an unknown one": pod(nodeSelector={MODEL: "Riva 128"}),
    "in the annotation": pod(annotations=in_annotation(model(V100, K80))),
    "in two terms": pod(affinity=alternatives(V100, K80)),
    "twice in a term": pod(affinity=terms((MODEL, "In", [V100, K80]), (MODEL, "In", [K80]))),
    "preferred": pod(affinity=wishes((MODEL, "In", [V100, K80]))),
    "preferred, annotated": pod(annotations=in_annotation(wishes((MODEL, "In", [V100, K80])))),
    "preferred not": pod(affinity=wishes((MODEL, "NotIn", [V100]))),
    "required, and preferred not": pod(affinity=both_ways(V100, K80)),
    "excluded": pod(affinity=terms((MODEL, "NotIn", [V100, K80]), ("zone", "In", ["a"]))),
    "selected and excluded": pod(
        affinity=terms((MODEL, "In", [V100, K80]), (MODEL, "NotIn", [K80]))
    ),
    "any model": pod(affinity=terms((MODEL, "Exists", []))),
    "any model preferred": pod(affinity=wishes((MODEL, "Exists", []))),
    "no model": pod(affinity=terms((MODEL, "DoesNotExist", []))),
    "two models in a zone": pod(
        affinity=terms((MODEL, "In", [V100, K80]), (BETA_ZONE, "In", ["a"]))
    ),
    "any zone": pod(affinity=terms((MODEL, "In", [V100]), (BETA_ZONE, "Exists", []))),
    "a zone alone": pod(nodeSelector={BETA_ZONE: "a"}),
}
LATER = (
    "both have the label of today",
    "one has each label",
    "both have the old label",
    "they are in zones",
    "none is there",
)
forms = pytest.mark.parametrize("manifest", FORMS.values(), ids=FORMS)


@pytest.mark.large
@forms
@tools
@pytest.mark.parametrize("then", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("now", LATER)
def test_the_same_pod_changes_nothing_whatever_labels_its_nodes_got(
    manifest: Raw, then: Context, now: str, tool: Any
) -> None:
    live = stored(manifest, then, tool)
    assert sent_again(manifest, live, CLUSTERS[now], tool)["spec"] == live["spec"]


@pytest.mark.large
@forms
def test_so_it_is_where_one_node_got_the_label_of_today(manifest: Raw) -> None:
    live = stored(manifest, CLUSTERS["one has each label"])
    now = CLUSTERS["both have the label of today"]
    assert sent_again(manifest, live, now)["spec"] == live["spec"]


OTHERS = {
    "another model in nodeSelector": (
        pod(nodeSelector={MODEL: V100}, affinity=model(V100, K80)),
        pod(nodeSelector={MODEL: K80}, affinity=model(V100, K80)),
    ),
    "a model fewer": (pod(affinity=model(V100, K80)), pod(affinity=model(V100))),
    "another model": (pod(affinity=model(V100, K80)), pod(affinity=model(V100, P100))),
    "excluded, not selected": (
        pod(affinity=model(V100, K80)),
        pod(affinity=terms((MODEL, "NotIn", [V100, K80]))),
    ),
    "preferred, not required": (
        pod(affinity=model(V100)),
        pod(affinity=wishes((MODEL, "In", [V100]))),
    ),
    "another term": (pod(affinity=alternatives(V100, K80)), pod(affinity=alternatives(V100, P100))),
    "another one excluded": (
        pod(affinity=terms((MODEL, "In", [V100, K80]), (MODEL, "NotIn", [K80]))),
        pod(affinity=terms((MODEL, "In", [V100, K80]), (MODEL, "NotIn", [V100]))),
    ),
    "one more excluded": (
        pod(affinity=terms((MODEL, "NotIn", [V100]))),
        pod(affinity=terms((MODEL, "NotIn", [V100, K80]))),
    ),
    "none, not any": (
        pod(affinity=terms((MODEL, "Exists", []))),
        pod(affinity=terms((MODEL, "DoesNotExist", []))),
    ),
    "another zone": (
        pod(nodeSelector={MODEL: V100, BETA_ZONE: "a"}),
        pod(nodeSelector={MODEL: V100, BETA_ZONE: "b"}),
    ),
}


@pytest.mark.large
@tools
@pytest.mark.parametrize(("first", "second"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize(
    "then",
    ["both have the label of today", "one has each label", "both have the old label", "unknown"],
)
def test_other_words_do_not_come_to_what_is_stored(
    first: Raw, second: Raw, then: str, tool: Any
) -> None:
    for before, after in ((first, second), (second, first)):
        live = stored(before, CLUSTERS[then], tool)
        for name in LATER:
            now = CLUSTERS[name]
            made = json.dumps(sent_again(after, live, now, tool)["spec"])
            assert made != json.dumps(live["spec"]), name
