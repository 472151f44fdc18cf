from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import run
from tests.rules.pods import LABEL, PRODUCT, SPEC, found, gpu_nodes, legacy_pod, modern_pod
from webhook.capacity.legacy_selector import carried
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Models, Settings, Workloads
from webhook.kube.pod import Pod
from webhook.kube.pointer import Path
from webhook.rules import RULES, never_fits
from webhook.rules import model_label as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SELECTOR = SPEC / "nodeSelector"
NODE = SPEC / "affinity" / "nodeAffinity"
TERMS = NODE / REQUIRED / "nodeSelectorTerms"

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)

NODES = gpu_nodes(
    {PRODUCT: "Tesla-K80"},
    {PRODUCT: "Tesla-P100-PCIE-16GB"},
    {PRODUCT: "Tesla-P100-SXM2-16GB"},
    {PRODUCT: "GeForce-GTX-1080-Ti"},
    {PRODUCT: "Tesla-T4-SHARED"},
    {PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"},
)


P100S = ("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB")


def on(inventory: Inventory | None = NODES, **models: Any) -> Context:
    return Context(Settings(models=Models(**models)), inventory)


def term(key: str, *values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def models(*values: str, operator: str = "In") -> dict[str, Any]:
    return term(LABEL, *values, operator=operator)


def required(*terms: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def both(*terms: Any) -> dict[str, Any]:
    return {"matchExpressions": [each for term in terms for each in term["matchExpressions"]]}


def preferred(*preferences: Any) -> dict[str, Any]:
    return {
        "nodeAffinity": {PREFERRED: [{"weight": 1, "preference": each} for each in preferences]}
    }


def named(values: str, key: str = PRODUCT) -> str:
    return (
        f"no node carries the label {LABEL} any more; write {key}{f': {values}' if values else ''}"
    )


BOTH = f"nodes of these models may lack the label {LABEL}; write {PRODUCT} as well"
NOT_OLD_GTX = {"key": LABEL, "operator": "NotIn", "values": ["GTX"]}
ABSENT = f"no node carries such a model under {PRODUCT}"
GONE = (
    f"no node carries the label {LABEL} any more, and nothing here stands for its value: "
    "delete the term"
)


def waits(value: str, why: str = ABSENT) -> str:
    advice = "name the model as the nodes do"
    return f"{value!r} stands for no GPU here, so no node fits: {why}; {advice}"


SHARED_ALONE = "nodes have it only as Tesla-T4-SHARED: set models.shared to true to take that"


def absent(value: str, why: str = ABSENT) -> str:
    return f"there is no node of the model {value!r} now: {why}"


def excluded(value: str) -> str:
    return (
        f"{value!r} stands for no GPU here and is excluded by this name: {ABSENT}; "
        "name the model as the nodes do"
    )


def dropped(value: str, why: str = ABSENT) -> str:
    return f"{value!r} stands for no GPU here and is dropped: {why}; name the model as the nodes do"


ZONE = term("zone", "a")
PIN = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing said of nodes: untouched"),
        pytest.param(
            {"nodeSelector": {PRODUCT: "Tesla-K80"}, "affinity": required(ZONE)},
            [],
            id="today's label: untouched",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-K80", "zone": "a"}},
            [repaired(SELECTOR / LABEL, named("Tesla-K80"), (Rename(SELECTOR / LABEL, PRODUCT),))],
            id="nodeSelector, one real value of the same spelling: stays there under the new key",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "tesla_k80"}},
            [
                repaired(
                    SELECTOR / LABEL,
                    named("Tesla-K80"),
                    (Rename(SELECTOR / LABEL, PRODUCT), Set(SELECTOR / PRODUCT, "Tesla-K80")),
                )
            ],
            id="nodeSelector, another spelling: the value of the nodes",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-P100"}},
            [
                repaired(
                    SELECTOR / LABEL,
                    named(", ".join(P100S)),
                    (
                        Remove(SELECTOR / LABEL),
                        Set(TERMS, [term(PRODUCT, *P100S)]),
                    ),
                )
            ],
            id="nodeSelector, several real values: one required In, and the key goes",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-P100"}, "affinity": required(PIN, ZONE)},
            [
                repaired(
                    SELECTOR / LABEL,
                    named(", ".join(P100S)),
                    (
                        Remove(SELECTOR / LABEL),
                        Set(
                            TERMS,
                            [
                                PIN | term(PRODUCT, *P100S),
                                {
                                    "matchExpressions": [
                                        *ZONE["matchExpressions"],
                                        *term(PRODUCT, *P100S)["matchExpressions"],
                                    ]
                                },
                            ],
                        ),
                    ),
                )
            ],
            id="nodeSelector, several values beside required terms: AND-ed to each, the pin stays",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "GTX-1080"}},
            [
                repaired(
                    SELECTOR / LABEL,
                    named("GeForce-GTX-1080, NVIDIA-GeForce-GTX-1080"),
                    (
                        Remove(SELECTOR / LABEL),
                        Set(TERMS, [term(PRODUCT, "GeForce-GTX-1080", "NVIDIA-GeForce-GTX-1080")]),
                    ),
                ),
                reported(SELECTOR, absent("GTX-1080")),
            ],
            id="nodeSelector, a model that no node has now (a Ti is another): the table's values",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-M60"}},
            [
                repaired(
                    SELECTOR / LABEL, named("Tesla-M60"), (Rename(SELECTOR / LABEL, PRODUCT),)
                ),
                reported(SELECTOR, absent("Tesla-M60")),
            ],
            id="nodeSelector, a model of one value that no node has now",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-T4"}},
            [
                repaired(SELECTOR / LABEL, named("Tesla-T4"), (Rename(SELECTOR / LABEL, PRODUCT),)),
                reported(SELECTOR, absent("Tesla-T4", SHARED_ALONE)),
            ],
            id="nodeSelector, a model that is there only as shared GPUs",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Voodoo-2"}},
            [reported(SELECTOR / LABEL, waits("Voodoo-2"), (Rename(SELECTOR / LABEL, PRODUCT),))],
            id="nodeSelector, a model that nobody knows: the pod waits",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-K80", PRODUCT: "Tesla-K80"}},
            [repaired(SELECTOR / LABEL, named("Tesla-K80"), (Remove(SELECTOR / LABEL),))],
            id="nodeSelector, both keys agree: the legacy one goes",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-K80", PRODUCT: "Tesla-T4"}},
            [
                repaired(
                    SELECTOR / LABEL,
                    named("Tesla-K80"),
                    (Remove(SELECTOR / LABEL), Set(TERMS, [term(PRODUCT, "Tesla-K80")])),
                )
            ],
            id="nodeSelector, the keys disagree: both must hold, as they had to",
        ),
        pytest.param(
            {"affinity": required(models("Tesla K80", "Tesla P100"))},
            [
                repaired(
                    TERMS / 0,
                    named("Tesla-K80, Tesla-P100-PCIE-12GB, Tesla-P100-PCIE-16GB, ..."),
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(
                            TERMS / 0 / "matchExpressions" / 0 / "values",
                            ["Tesla-K80", *P100S],
                        ),
                    ),
                )
            ],
            id="required In: the values of the nodes",
        ),
        pytest.param(
            {"affinity": required(ZONE, models("GTX 970 (rev 2)"))},
            [
                reported(
                    TERMS / 1,
                    waits("GTX 970 (rev 2)"),
                    (
                        Set(TERMS / 1 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(TERMS / 1 / "matchExpressions" / 0 / "values", ["GTX-970-rev-2"]),
                    ),
                ),
            ],
            id="required In, unmapped: sanitised as GFD does, so the pod waits",
        ),
        pytest.param(
            {"affinity": required(models("Tesla M60"))},
            [
                repaired(
                    TERMS / 0,
                    named("Tesla-M60"),
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(TERMS / 0 / "matchExpressions" / 0 / "values", ["Tesla-M60"]),
                    ),
                ),
                reported(TERMS / 0, absent("Tesla M60")),
            ],
            id="required In, a model that no node has now: the table's values",
        ),
        pytest.param(
            {"affinity": required(models("GTX", "Tesla K80", "Foo"))},
            [
                repaired(
                    TERMS / 0,
                    named("Tesla-K80"),
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(TERMS / 0 / "matchExpressions" / 0 / "values", ["Tesla-K80"]),
                    ),
                ),
                reported(
                    TERMS / 0,
                    f"'GTX' (and 1 more) stands for no GPU here and is dropped: {ABSENT}; "
                    "name the model as the nodes do",
                ),
            ],
            id="required In, unmapped beside a mapped one: dropped with a warning",
        ),
        pytest.param(
            {"affinity": required(models("GTX", operator="NotIn") | PIN)},
            [
                repaired(
                    TERMS / 0,
                    f"{BOTH}: GTX",
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(TERMS / 0 / "matchExpressions" / 0 / "values", ["GTX"]),
                        Append(TERMS / 0 / "matchExpressions", NOT_OLD_GTX),
                    ),
                ),
                reported(TERMS / 0, excluded("GTX")),
            ],
            id="NotIn, unmapped, beside the pin of a DaemonSet",
        ),
        pytest.param(
            {"affinity": required(models("GTX 7", operator="NotIn"), ZONE)},
            [
                repaired(
                    TERMS / 0,
                    named("GTX-7"),
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(TERMS / 0 / "matchExpressions" / 0 / "values", ["GTX-7"]),
                    ),
                ),
                reported(TERMS / 0, excluded("GTX 7")),
            ],
            id="NotIn, unmapped and alone: excluded by its name",
        ),
        pytest.param(
            {"affinity": required(models("Tesla K80", "GTX", operator="NotIn"))},
            [
                repaired(
                    TERMS / 0,
                    f"{BOTH}: Tesla-K80, Tesla-K80-SHARED, GTX",
                    (
                        Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),
                        Set(
                            TERMS / 0 / "matchExpressions" / 0 / "values",
                            ["Tesla-K80", "Tesla-K80-SHARED", "GTX"],
                        ),
                        Append(TERMS / 0 / "matchExpressions", NOT_OLD_GTX),
                    ),
                ),
                reported(TERMS / 0, excluded("GTX")),
            ],
            id="NotIn, mapped and unmapped: both are avoided",
        ),
        pytest.param(
            {"affinity": required(models())},
            [
                repaired(
                    TERMS / 0,
                    named(""),
                    (Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),),
                )
            ],
            id="In nothing: the API server refuses it in its own words",
        ),
        pytest.param(
            {"affinity": required(models(operator="Exists"))},
            [
                repaired(
                    TERMS / 0,
                    named(""),
                    (Set(TERMS / 0 / "matchExpressions" / 0 / "key", PRODUCT),),
                )
            ],
            id="Exists: any model, under the new key",
        ),
        pytest.param(
            {"affinity": preferred(ZONE, models("Tesla K80"))},
            [
                repaired(
                    NODE / PREFERRED / 1 / "preference",
                    named("Tesla-K80"),
                    (
                        Set(
                            NODE / PREFERRED / 1 / "preference" / "matchExpressions" / 0 / "key",
                            PRODUCT,
                        ),
                        Set(
                            NODE / PREFERRED / 1 / "preference" / "matchExpressions" / 0 / "values",
                            ["Tesla-K80"],
                        ),
                    ),
                )
            ],
            id="preferred In: the values of the nodes",
        ),
        pytest.param(
            {"affinity": preferred(ZONE, models("GTX"))},
            [
                repaired(
                    NODE / PREFERRED / 1 / "preference", GONE, (Remove(NODE / PREFERRED / 1),)
                ),
                reported(NODE / PREFERRED / 1 / "preference", dropped("GTX")),
            ],
            id="preferred In, unmapped: the preference goes",
        ),
        pytest.param(
            {"affinity": preferred(models("GTX", operator="NotIn"))},
            [
                repaired(
                    NODE / PREFERRED / 0 / "preference",
                    f"{BOTH}: GTX",
                    (
                        Set(
                            NODE / PREFERRED / 0 / "preference" / "matchExpressions" / 0 / "key",
                            PRODUCT,
                        ),
                        Set(
                            NODE / PREFERRED / 0 / "preference" / "matchExpressions" / 0 / "values",
                            ["GTX"],
                        ),
                        Append(
                            NODE / PREFERRED / 0 / "preference" / "matchExpressions", NOT_OLD_GTX
                        ),
                    ),
                ),
                reported(NODE / PREFERRED / 0 / "preference", excluded("GTX")),
            ],
            id="preferred NotIn, unmapped: avoided by its name",
        ),
        pytest.param(
            {
                "nodeSelector": {LABEL: "Tesla-P100"},
                "affinity": required(ZONE, models("GTX", operator="NotIn")),
            },
            [
                repaired(
                    SELECTOR / LABEL,
                    named(", ".join(P100S)),
                    (
                        Remove(SELECTOR / LABEL),
                        Set(
                            TERMS,
                            [
                                both(ZONE, term(PRODUCT, *P100S)),
                                both(
                                    term(PRODUCT, "GTX", operator="NotIn"),
                                    models("GTX", operator="NotIn"),
                                    term(PRODUCT, *P100S),
                                ),
                            ],
                        ),
                    ),
                ),
                reported(TERMS / 1, excluded("GTX")),
            ],
            id="nodeSelector joined to terms of which one excludes what nobody knows",
        ),
        pytest.param(
            {
                "nodeSelector": {LABEL: "Tesla-P100"},
                "affinity": required(models("Tesla K80")),
            },
            [
                repaired(
                    SELECTOR / LABEL,
                    named(", ".join(P100S)),
                    (
                        Remove(SELECTOR / LABEL),
                        Set(
                            TERMS,
                            [
                                {
                                    "matchExpressions": [
                                        *term(PRODUCT, "Tesla-K80")["matchExpressions"],
                                        *term(PRODUCT, *P100S)["matchExpressions"],
                                    ]
                                }
                            ],
                        ),
                    ),
                )
            ],
            id="nodeSelector joined to a term that names a model too",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: None, "beta.kubernetes.io/arch": None}},
            [],
            id="null in nodeSelector is no model and no other value",
        ),
    ],
)
def test_model_label(spec: Any, expected: list[Finding]) -> None:
    assert found(rule, legacy_pod(**spec), on()) == expected


def today(value: str, cx: Context) -> dict[str, str]:
    """What a nodeSelector on this legacy value says afterwards."""
    obj = legacy_pod(nodeSelector={LABEL: value})
    found(rule, obj, cx)
    selector: dict[str, str] = obj["spec"].get("nodeSelector", {})
    return selector


def wanted(value: str, cx: Context) -> list[str]:
    """The values that a required In on this legacy value names afterwards."""
    obj = legacy_pod(affinity=required(models(value)))
    found(rule, obj, cx)
    terms = obj["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    values: list[str] = terms[0]["matchExpressions"][0]["values"]
    return values


@pytest.mark.parametrize(
    ("value", "real", "expected"),
    [
        pytest.param(
            "Tesla K80",
            ["NVIDIA-Tesla-K80"],
            ["NVIDIA-Tesla-K80", "Tesla-K80"],
            id="a leading NVIDIA",
        ),
        pytest.param("NVIDIA Tesla K80", ["Tesla-K80"], ["Tesla-K80"], id="a leading NVIDIA once"),
        pytest.param("K80", ["Tesla-K80"], ["Tesla-K80"], id="a brand that only the node names"),
        pytest.param("Tesla A9", ["NVIDIA-A9-NVL"], ["NVIDIA-A9-NVL"], id="only the pod names"),
        pytest.param("Quadro P4", ["Tesla-P4"], ["Quadro-P4"], id="two brands: another card"),
        pytest.param("GTX 1090", ["GeForce-GTX-1090-Ti"], ["GTX-1090"], id="a Ti is another card"),
        pytest.param(
            "P101", ["Tesla-P101-HBM2e-16GB"], ["Tesla-P101-HBM2e-16GB"], id="memory words"
        ),
        pytest.param("Tesla P1", ["Tesla-P100"], ["Tesla-P1"], id="a beginning is not the word"),
        pytest.param("Tesla K80", ["Tesla-K80-SHARED"], ["Tesla-K80"], id="shared only by setting"),
        pytest.param("A9", ["A9-MIG-1g.5gb"], ["A9"], id="sliced only by setting"),
        pytest.param(
            "Tesla  K80 ", ["TESLA_K80"], ["TESLA_K80", "Tesla-K80"], id="blanks and case"
        ),
        pytest.param("(((", ["Tesla-K80"], ["unknown"], id="nothing is left of it"),
        pytest.param("x" * 99, ["Tesla-K80"], ["x" * 63], id="63 characters at most"),
        pytest.param("Tesla K80", [], ["Tesla-K80"], id="no GPU node now: the table of models"),
    ],
)
def test_which_values_a_model_stands_for(value: str, real: list[str], expected: list[str]) -> None:
    nodes = gpu_nodes(*({PRODUCT: each} for each in real))
    assert wanted(value, on(nodes)) == expected


def test_shared_and_sliced_gpus_stand_for_the_model_by_setting() -> None:
    assert wanted("Tesla T4", on()) == ["Tesla-T4"]
    assert wanted("Tesla T4", on(shared=True)) == ["Tesla-T4", "Tesla-T4-SHARED"]
    assert wanted("A100 SXM4 40GB", on()) == ["NVIDIA-A100-SXM4-40GB"]
    sliced = ["NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"]
    assert wanted("A100 SXM4 40GB", on(mig=True)) == sliced


@pytest.mark.parametrize(
    ("profile", "key", "values"),
    [
        pytest.param("gfd", PRODUCT, ["Tesla-K80"], id="GPU Feature Discovery"),
        pytest.param("gke", "cloud.google.com/gke-accelerator", ["nvidia-tesla-k80"], id="GKE"),
        pytest.param("eks", "k8s.amazonaws.com/accelerator", ["nvidia-tesla-k80"], id="EKS"),
        pytest.param("karpenter", "karpenter.k8s.aws/instance-gpu-name", ["k80"], id="Karpenter"),
    ],
)
def test_profiles_without_an_inventory(profile: str, key: str, values: list[str]) -> None:
    cx = on(None, profile=profile)
    assert today("Tesla-K80", cx) == {key: values[0]}
    assert wanted("Tesla K80", cx) == values


def test_aks_names_machine_sizes() -> None:
    sizes = wanted("Tesla K80", on(None, profile="aks"))
    assert sizes == ["Standard_NC12", "Standard_NC24", "Standard_NC24r", "Standard_NC6"]


GKE = "cloud.google.com/gke-accelerator"
SIZE = "node.kubernetes.io/instance-type"
OF_P100, OF_K80, OF_T4 = "nvidia-tesla-p100", "nvidia-tesla-k80", "nvidia-tesla-t4"
P100_AND_T4 = gpu_nodes({GKE: OF_P100}, {GKE: OF_T4})


@pytest.mark.parametrize(
    "inventory", [None, P100_AND_T4], ids=["nothing is known", "nodes are known"]
)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla-P100-PCIE-16GB"}},
            {"nodeSelector": {GKE: OF_P100}},
            id="nodeSelector",
        ),
        pytest.param(
            {"affinity": required(models("Tesla-K80", "Tesla P100-SXM2-16GB"))},
            {"affinity": required(term(GKE, OF_K80, OF_P100))},
            id="In",
        ),
        pytest.param(
            {"affinity": required(models("Tesla P100-PCIE-16GB", "Tesla T4", operator="NotIn"))},
            {"affinity": required(term(GKE, OF_P100, OF_T4, operator="NotIn"))},
            id="NotIn",
        ),
        pytest.param(
            {"affinity": preferred(models("NVIDIA_Tesla_P100_PCIE_16GB"))},
            {"affinity": preferred(term(GKE, OF_P100))},
            id="preferred",
        ),
    ],
)
def test_a_full_name_of_a_card_stands_for_the_short_name_of_a_cloud(
    spec: dict[str, Any], expected: dict[str, Any], inventory: Inventory | None
) -> None:
    obj = legacy_pod(**copy.deepcopy(spec))
    findings = found(rule, obj, on(inventory, profile="gke"))
    assert {name: obj["spec"].get(name) for name in expected} == expected
    assert {each.severity for each in findings} == {Severity.REPAIR}


def test_values_and_label_of_the_settings() -> None:
    cx = on(None, label="example.com/card", values=(("GTX", ("gtx-970", "gtx-980")),))
    obj = legacy_pod(affinity=required(models("GTX")))
    found(rule, obj, cx)
    assert obj["spec"]["affinity"] == required(term("example.com/card", "gtx-970", "gtx-980"))


def test_an_unknown_model_without_an_inventory() -> None:
    why = "the table of known models has no such model"
    expected = reported(SELECTOR / LABEL, waits("GTX", why), (Rename(SELECTOR / LABEL, PRODUCT),))
    assert found(rule, legacy_pod(nodeSelector={LABEL: "GTX"}), on(None)) == [expected]


@pytest.mark.parametrize(
    ("labels", "hint"),
    [
        pytest.param(
            {GKE: "nvidia-tesla-k80"}, f"; they carry {GKE}: set models.profile to gke", id="GKE"
        ),
        pytest.param(
            {"kubernetes.azure.com/accelerator": "nvidia", SIZE: "Standard_NC6"},
            "; they are AKS nodes: set models.profile to aks",
            id="AKS",
        ),
        pytest.param({SIZE: "p2.xlarge"}, "", id="nothing that any profile knows"),
    ],
)
def test_a_wrong_profile_makes_every_pod_wait_and_is_named(
    labels: dict[str, str], hint: str
) -> None:
    why = f"no GPU node carries the label {PRODUCT}{hint}"
    place = TERMS / 0 / "matchExpressions" / 0
    edits = (Set(place / "key", PRODUCT), Set(place / "values", ["Tesla-K80"]))
    obj = legacy_pod(affinity=required(models("Tesla K80")))
    assert found(rule, obj, on(gpu_nodes(labels))) == [
        repaired(TERMS / 0, named("Tesla-K80"), edits),
        reported(TERMS / 0, absent("Tesla K80", why)),
    ]
    obj = legacy_pod(affinity=required(models(operator="Exists")))
    assert found(rule, obj, on(gpu_nodes(labels))) == [
        reported(TERMS / 0, waits("any model", why), edits[:1])
    ]
    obj = legacy_pod(affinity=preferred(models(operator="Exists")))
    assert [each.severity for each in found(rule, obj, on(gpu_nodes(labels)))] == [Severity.REPAIR]


CARRIED = gpu_nodes(
    {LABEL: "Tesla-K80", PRODUCT: "Tesla-K80"}, *(dict(each.labels) for each in NODES.classes[1:])
)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {LABEL: "Tesla-K80"}}, id="nodeSelector"),
        pytest.param({"affinity": required(models("Tesla-K80"))}, id="required In"),
        pytest.param({"affinity": preferred(models("Tesla-K80"))}, id="preferred In"),
    ],
)
def test_a_label_that_nodes_still_carry_stays(spec: Any) -> None:
    assert found(rule, legacy_pod(**spec), on(CARRIED)) == []
    assert found(rule, modern_pod(**spec), on(CARRIED)) == []


def test_what_it_excludes_is_excluded_under_both_as_the_nodes_may_get_the_label_of_today() -> None:
    asked = required(models("Tesla-K80", operator="NotIn"))
    assert found(rule, modern_pod(affinity=asked), on(CARRIED)) == []
    obj = legacy_pod(affinity=asked)
    (said,) = found(rule, obj, on(CARRIED))
    assert (said.severity, said.message) == (Severity.REPAIR, f"{BOTH}: {', '.join(NO_K80S)}")
    without = term(PRODUCT, *NO_K80S, operator="NotIn")
    old = models("Tesla-K80", operator="NotIn")
    assert obj["spec"]["affinity"] == required(both(without, old))
    assert found(rule, legacy_pod(**copy.deepcopy(obj["spec"])), on(CARRIED)) == []


def test_a_label_that_nodes_still_carry_with_another_value_does_not_stay() -> None:
    assert today("Tesla-P100-SXM2-16GB", on(CARRIED)) == {PRODUCT: "Tesla-P100-SXM2-16GB"}


def test_what_can_be_no_label_value_goes_also_beside_one_that_is_carried() -> None:
    obj = legacy_pod(affinity=required(models("Tesla-K80", "Voodoo 2")))
    place = TERMS / 0 / "matchExpressions" / 0
    assert found(rule, obj, on(CARRIED)) == [
        repaired(
            TERMS / 0,
            "a value that can be no label value is dropped; delete it",
            (Set(place / "values", ["Tesla-K80"]),),
        ),
        reported(TERMS / 0, "'Voodoo 2' is dropped: it can be no label value; delete it"),
    ]


OLD_M40 = {LABEL: "Tesla-M40", PRODUCT: "Tesla-M40"}
NO_GPUS = NodeClass({LABEL: "Tesla-K80"})
MIXED = Inventory(
    (*gpu_nodes(OLD_M40, {PRODUCT: "Tesla-P100-PCIE-16GB"}, {PRODUCT: "Tesla-T4"}).classes, NO_GPUS)
)
WITHOUT_P100 = {"key": PRODUCT, "operator": "NotIn", "values": list(P100S)}
SHARED_M40S = tuple(f"Tesla-M40{each}" for each in ("", "-24GB", "-24GB-SHARED", "-SHARED"))
NO_K80S = ("Tesla-K80", "Tesla-K80-SHARED")
SHARED_P100S = tuple(sorted((*P100S, *(f"{each}-SHARED" for each in P100S))))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"affinity": required(models("Tesla-P100", "Tesla-M40"), ZONE)},
            {
                "affinity": required(
                    term(PRODUCT, *P100S),
                    ZONE,
                    both(models("Tesla-M40"), {"matchExpressions": [WITHOUT_P100]}),
                )
            },
            id="In: the old label for what nodes carry, today's for the rest",
        ),
        pytest.param(
            {"affinity": required(models("Tesla-P100", "Tesla-M40", operator="NotIn"))},
            {
                "affinity": required(
                    both(
                        term(PRODUCT, *SHARED_P100S, *SHARED_M40S, operator="NotIn"),
                        models("Tesla-P100", "Tesla-M40", operator="NotIn"),
                    )
                )
            },
            id="NotIn: both",
        ),
        pytest.param(
            {"affinity": preferred(models("Tesla-P100", "Tesla-M40"), ZONE)},
            {
                "affinity": preferred(
                    term(PRODUCT, *P100S),
                    ZONE,
                    both(models("Tesla-M40"), {"matchExpressions": [WITHOUT_P100]}),
                )
            },
            id="preferred: two preferences",
        ),
        pytest.param(
            {"affinity": required(models("Tesla-K80", "Tesla-T4"))},
            {"affinity": required(term(PRODUCT, "Tesla-K80", "Tesla-T4"))},
            id="a node without GPUs carries the label for nobody",
        ),
        pytest.param(
            {"affinity": required(models(operator="Exists"))},
            {
                "affinity": required(
                    {"matchExpressions": [{"key": PRODUCT, "operator": "Exists", "values": []}]},
                    {
                        "matchExpressions": [
                            {"key": LABEL, "operator": "Exists"},
                            {"key": PRODUCT, "operator": "DoesNotExist"},
                        ]
                    },
                )
            },
            id="Exists: either",
        ),
    ],
)
def test_a_label_that_some_nodes_still_carry(spec: Any, expected: Any) -> None:
    obj = legacy_pod(**copy.deepcopy(spec))
    findings = found(rule, obj, on(MIXED))
    assert obj["spec"]["affinity"] == expected["affinity"]
    assert {each.severity for each in findings} == {Severity.REPAIR}
    assert found(rule, legacy_pod(**copy.deepcopy(expected)), on(MIXED)) == []
    assert found(rule, modern_pod(**copy.deepcopy(expected)), on(MIXED)) == []
    (said,) = found(rule, modern_pod(**copy.deepcopy(spec)), on(MIXED))
    left = f"{BOTH}. It is left as it is: this pod requests GPUs under today's name"
    assert (said.severity, said.edits) == (Severity.MANUAL, ())
    assert said.message == left or "K80" in str(spec)


SOME = Inventory((*MIXED.classes, *gpu_nodes({PRODUCT: "Tesla-M40"}).classes))
M40S = ("Tesla-M40", "Tesla-M40-24GB")
OLD_OR_NEW = [
    term(PRODUCT, *M40S),
    both(models("Tesla-M40"), term(PRODUCT, *M40S, operator="NotIn")),
]


@pytest.mark.parametrize(
    ("affinity", "terms"),
    [
        pytest.param({}, OLD_OR_NEW, id="alone"),
        pytest.param(required(ZONE), [both(ZONE, each) for each in OLD_OR_NEW], id="beside a term"),
        pytest.param(
            required(models("Tesla-P100")),
            [both(term(PRODUCT, *P100S), each) for each in OLD_OR_NEW],
            id="beside another model",
        ),
    ],
)
def test_a_node_selector_that_some_nodes_of_the_model_fulfil(
    affinity: Any, terms: list[Any]
) -> None:
    obj = legacy_pod(nodeSelector={LABEL: "Tesla-M40", "zone": "a"}, affinity=affinity)
    first = found(rule, obj, on(SOME))[0]
    assert (first.severity, first.message) == (Severity.REPAIR, f"{BOTH}: {', '.join(M40S)}")
    assert obj["spec"]["nodeSelector"] == {"zone": "a"}
    assert obj["spec"]["affinity"] == required(*terms)
    again = modern_pod(**copy.deepcopy(obj["spec"]))
    assert found(rule, again, on(SOME)) == []
    again["spec"]["nodeSelector"][LABEL] = "Tesla-M40"  # the namespace adds it once more
    assert [each.severity for each in found(rule, again, on(SOME))] == [Severity.REPAIR]
    assert again["spec"] == modern_pod(**obj["spec"])["spec"]
    assert found(rule, legacy_pod(nodeSelector={LABEL: "Tesla-M40"}), on(MIXED)) == []


def test_if_there_are_too_many_ways_some_nodes_are_left_out() -> None:
    spec = {"affinity": required(*[models("Tesla-P100", "Tesla-M40")] * 60)}
    findings = found(rule, legacy_pod(**spec), on(MIXED))
    told = [each for each in findings if each.severity is Severity.MANUAL]
    assert len(told) == 20
    assert all(each.message.startswith("node affinity would have over 100") for each in told)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {LABEL: "Tesla-K80"}}, id="nodeSelector"),
        pytest.param({"affinity": required(models("Tesla-K80"))}, id="required"),
        pytest.param({"affinity": preferred(models("Tesla-K80"))}, id="preferred"),
    ],
)
def test_a_pod_that_asks_under_todays_name_is_only_warned(spec: Any) -> None:
    message = (
        f"no node carries the label {LABEL} any more; it is left as it is: "
        f"write {PRODUCT} or delete it"
    )
    assert found(rule, modern_pod(**spec), on()) == [reported(SPEC, message)]
    cx = Context(Settings(scope="all-legacy"), NODES)
    obj = modern_pod(**spec)
    found(rule, obj, cx)
    assert LABEL not in str(obj)


@pytest.mark.parametrize("in_manifest", [False, True], ids=["in admission", "in a file"])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {LABEL: "Tesla-K80"}}, id="in nodeSelector"),
        pytest.param({"affinity": required(models("Tesla-K80"))}, id="in required affinity"),
    ],
)
def test_a_node_with_the_old_label_has_the_model_though_others_only_share_it(
    spec: dict[str, Any], *, in_manifest: bool
) -> None:
    nodes = gpu_nodes({LABEL: "Tesla-K80"}, {PRODUCT: "Tesla-K80", "nvidia.com/gpu.replicas": "4"})
    cx = Context(Settings(scope="all-legacy"), nodes, in_manifest=in_manifest)
    (finding,) = found(rule, modern_pod(**copy.deepcopy(spec)), cx)
    assert finding.message == f"{BOTH}: Tesla-K80"
    assert (finding.action, finding.severity) == ("repaired", Severity.REPAIR)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {LABEL: "Tesla-K80"}}, id="nodeSelector"),
        pytest.param({"affinity": required(models("Tesla-K80"))}, id="required"),
    ],
)
@pytest.mark.parametrize("make", [legacy_pod, modern_pod])
def test_a_label_that_a_node_carries_with_another_value_is_not_called_gone(
    make: Any, spec: Any
) -> None:
    gpus = {"nvidia.com/gpu": 1}
    nodes = (
        NodeClass({LABEL: "Tesla-M60", PRODUCT: "Tesla-M60"}, gpus=gpus),
        NodeClass({PRODUCT: "Tesla-K80"}, gpus=gpus),
    )
    (finding,) = found(rule, make(**copy.deepcopy(spec)), Context(inventory=Inventory(nodes)))
    start = f"no GPU node carries the label {LABEL} with this value; "
    assert finding.message.startswith(start)


WHERE = (
    "write {} where it comes from (namespace annotation "
    "scheduler.alpha.kubernetes.io/node-selector, RuntimeClass, policy or webhook)"
)
SAYS = f"the label {{}} came back and is removed again: {WHERE}"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
NEW_ZONE = "topology.kubernetes.io/zone"
TWO = Inventory((NodeClass({PRODUCT: "Tesla-K80", NEW_ZONE: "a"}, gpus={"nvidia.com/gpu": 1}),))


@pytest.mark.parametrize(
    ("spec", "label", "today"),
    [
        pytest.param(
            {"nodeSelector": {LABEL: "K80", PRODUCT: "Tesla-K80"}}, LABEL, PRODUCT, id="a model"
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "P100"}, "affinity": required(term(PRODUCT, *P100S))},
            LABEL,
            PRODUCT,
            id="several values",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "odd", PRODUCT: "odd"}}, LABEL, PRODUCT, id="an unknown model"
        ),
        pytest.param(
            {"nodeSelector": {OLD_ZONE: "a", NEW_ZONE: "a"}}, OLD_ZONE, NEW_ZONE, id="a zone"
        ),
    ],
)
def test_a_label_that_an_admission_plugin_adds_again_is_removed_again(
    spec: Any, label: str, today: str
) -> None:
    """PodNodeSelector runs once more after a repair, and then we do, on what is a modern pod."""
    selector = spec["nodeSelector"]
    rest = {key: value for key, value in selector.items() if key != label}
    obj = modern_pod(**{**spec, "nodeSelector": dict(selector)})
    edits = (Remove(SELECTOR / label),)
    assert found(rule, obj, on(TWO)) == [
        repaired(SELECTOR / label, SAYS.format(label, today), edits)
    ]
    assert obj["spec"].get("nodeSelector", {}) == rest
    assert found(rule, obj, on(TWO)) == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": {LABEL: "K80"}}, id="no constraint of today"),
        pytest.param({"nodeSelector": {LABEL: "K80", PRODUCT: "Tesla-T4"}}, id="another model"),
        pytest.param(
            {
                "nodeSelector": {LABEL: "P100"},
                "affinity": required(term(PRODUCT, *P100S), term(NEW_ZONE, "a")),
            },
            id="one of two terms",
        ),
        pytest.param({"nodeSelector": {OLD_ZONE: "a", NEW_ZONE: "b"}}, id="another zone"),
        pytest.param({"nodeSelector": {OLD_ZONE: "a"}}, id="a zone alone"),
    ],
)
def test_on_a_pod_of_today_what_its_constraints_do_not_say_already_stays(spec: Any) -> None:
    assert not [edit for each in found(rule, modern_pod(**spec), on(TWO)) for edit in each.edits]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        pytest.param({"f:spec": {"f:containers": {}}}, True, id="no selector was sent"),
        pytest.param({"f:spec": {"f:nodeSelector": {}}}, False, id="one was sent"),
        pytest.param(None, False, id="nobody knows"),
    ],
)
def test_a_label_that_was_not_sent_was_added_by_somebody(written: Any, *, says: bool) -> None:
    obj = modern_pod(nodeSelector={LABEL: "K80"})
    if written is not None:
        obj["metadata"]["managedFields"] = [{"fieldsV1": written}]
    (told,) = found(rule, obj, on(TWO))
    assert (WHERE.format(PRODUCT) in told.message) == says
    assert told.severity is Severity.MANUAL
    assert not told.edits


REPAIRING = Settings(workloads=Workloads(repair=True))
OF_REPLICA_SET = [{"kind": "ReplicaSet", "name": "train", "controller": True}]
REPAIRED = {"gpu-webhook.dev/repaired": "GPU101,GPU201"}
TWO_OLD = gpu_nodes({LABEL: "Tesla-K80"}, {PRODUCT: "Tesla-P100-PCIE-16GB", NEW_ZONE: "a"})
P100S_HERE = required(term(PRODUCT, *P100S))


def made_by_a_controller(**spec: Any) -> Any:
    obj = modern_pod(**copy.deepcopy(spec))
    obj["metadata"]["ownerReferences"] = OF_REPLICA_SET
    return obj


def repaired_before(**spec: Any) -> Any:
    """As it comes in the second round of a request, after another webhook."""
    return modern_pod(annotations=dict(REPAIRED), **copy.deepcopy(spec))


@pytest.mark.parametrize("made", [made_by_a_controller, repaired_before])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"nodeSelector": {LABEL: "Tesla K80", "disk": "ssd"}},
            {"nodeSelector": {PRODUCT: "Tesla-K80", "disk": "ssd"}},
            id="one value, beside a label of the author",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "P100"}}, {"affinity": P100S_HERE}, id="several values"
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "P100"}, "affinity": required(term("zone", "a"))},
            {"affinity": required(both(term("zone", "a"), term(PRODUCT, *P100S)))},
            id="several values, beside affinity",
        ),
        pytest.param(
            {"nodeSelector": {LABEL: "odd one"}},
            {"nodeSelector": {PRODUCT: "odd-one"}},
            id="a value that nobody knows",
        ),
        pytest.param(
            {"nodeSelector": {OLD_ZONE: "a"}}, {"nodeSelector": {NEW_ZONE: "a"}}, id="a zone"
        ),
    ],
)
def test_what_was_added_to_a_pod_that_may_be_of_a_repaired_template_is_translated(
    made: Any, spec: Any, expected: Any
) -> None:
    obj = made(**spec)
    cx = Context(REPAIRING, TWO)
    (said,) = found(rule, obj, cx)
    assert said.action == "repaired"
    assert obj["spec"] == modern_pod(**expected)["spec"]
    again = made(**obj["spec"])
    again["spec"].setdefault("nodeSelector", {}).update(spec["nodeSelector"])  # it is added again
    (said,) = found(rule, again, cx)
    assert said.action == "repaired"
    assert "came back and is removed again" in said.message
    assert again["spec"] == made(**expected)["spec"]


@pytest.mark.parametrize(
    ("made", "cx"),
    [
        pytest.param(modern_pod, Context(REPAIRING, TWO), id="nobody's pod"),
        pytest.param(made_by_a_controller, Context(inventory=TWO), id="templates stay as written"),
        pytest.param(made_by_a_controller, Context(REPAIRING), id="nothing is known of nodes"),
        pytest.param(made_by_a_controller, Context(REPAIRING, TWO_OLD), id="nodes carry the label"),
        pytest.param(modern_pod, Context(REPAIRING, TWO, template=True), id="a template of today"),
    ],
)
@pytest.mark.parametrize("selector", [{LABEL: "Tesla-K80"}, {LABEL: "Tesla-K80", OLD_ZONE: "a"}])
def test_a_pod_of_today_that_nobody_repaired_is_left_alone(
    made: Any, cx: Context, selector: dict[str, str]
) -> None:
    obj = made(nodeSelector=dict(selector))
    if cx.inventory is TWO_OLD:
        selector = {LABEL: "Tesla-K80"}
        obj["spec"]["nodeSelector"] = dict(selector)
    for said in found(rule, obj, cx):
        assert not said.edits
        assert ("translated in the pods" in said.message) == cx.template
    assert obj["spec"]["nodeSelector"] == selector


def test_who_wrote_that_note_was_not_repaired() -> None:
    obj = repaired_before(nodeSelector={LABEL: "K80"})
    wrote: Any = {"f:metadata": {"f:annotations": {f"f:{name}": {} for name in REPAIRED}}}
    obj["metadata"]["managedFields"] = [{"fieldsV1": wrote}]
    (said,) = found(rule, obj, on(TWO))
    assert not said.edits


def test_a_label_that_only_some_nodes_carry_is_left_to_them() -> None:
    obj = made_by_a_controller(nodeSelector={LABEL: "Tesla-M40"})
    (said,) = found(rule, obj, Context(REPAIRING, SOME))
    assert not said.edits
    assert said.message.startswith(BOTH)


def test_terms_that_are_too_many_already_leave_node_selector_alone() -> None:
    many = [term("zone", f"z{number}") for number in range(101)]
    obj = legacy_pod(
        nodeSelector={LABEL: "Tesla-P100"}, affinity=required(*many, models("Tesla K80"))
    )
    message = (
        "spec.affinity would have over 100 terms or 2000 expressions, so nodeSelector stays as it "
        "is and the pod "
        f"waits: write {PRODUCT} into spec.affinity"
    )
    edits: tuple[Edit, ...] = (
        Set(TERMS / 101 / "matchExpressions" / 0 / "key", PRODUCT),
        Set(TERMS / 101 / "matchExpressions" / 0 / "values", ["Tesla-K80"]),
    )
    assert found(rule, obj, on()) == [
        reported(NODE / REQUIRED, message),
        repaired(TERMS / 101, named("Tesla-K80"), edits),
    ]


def test_a_label_of_the_settings_may_be_the_legacy_one() -> None:
    """Some clusters go on labelling their nodes as in 2017."""
    assert found(rule, legacy_pod(nodeSelector={LABEL: "Tesla-K80"}), on(None, label=LABEL)) == []
    assert today("tesla_k80", on(None, label=LABEL)) == {LABEL: "Tesla-K80"}


BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_TYPE = "beta.kubernetes.io/instance-type"
TYPE, TODAYS_ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
ZONED = gpu_nodes({PRODUCT: "Tesla-K80", TODAYS_ZONE: "a", TYPE: "p2.xlarge"})


def gone(was: str, key: str) -> str:
    return f"no node carries the label {was} any more; write {key}"


@pytest.mark.parametrize(
    ("spec", "expected", "texts"),
    [
        pytest.param(
            {"nodeSelector": {BETA_ZONE: "a", "disk": "ssd"}},
            {"nodeSelector": {TODAYS_ZONE: "a", "disk": "ssd"}},
            [gone(BETA_ZONE, TODAYS_ZONE)],
            id="nodeSelector",
        ),
        pytest.param(
            {"nodeSelector": {BETA_ZONE: "a", TODAYS_ZONE: "a"}},
            {"nodeSelector": {TODAYS_ZONE: "a"}},
            [gone(BETA_ZONE, TODAYS_ZONE)],
            id="nodeSelector, both say the same",
        ),
        pytest.param(
            {"nodeSelector": {BETA_ZONE: "a", TODAYS_ZONE: "b"}},
            {"nodeSelector": {BETA_ZONE: "a", TODAYS_ZONE: "b"}},
            [
                (
                    f"nodeSelector requests {BETA_ZONE}=a and {TODAYS_ZONE}=b: "
                    "no node has both, so the pod waits; delete the one that is not meant"
                ),
            ],
            id="nodeSelector, they disagree: no node was ever meant",
        ),
        pytest.param(
            {"nodeSelector": {BETA_ZONE: "c"}},
            {"nodeSelector": {BETA_ZONE: "c"}},
            [],
            id="nodeSelector, a zone that no node is in",
        ),
        pytest.param(
            {"affinity": required(term(BETA_ZONE, "a"))},
            {"affinity": required(term(TODAYS_ZONE, "a"))},
            [gone(BETA_ZONE, TODAYS_ZONE)],
            id="a required term",
        ),
        pytest.param(
            {
                "nodeSelector": {LABEL: "Tesla-K80", BETA_TYPE: "p2.xlarge"},
                "affinity": required(
                    {
                        "matchExpressions": [
                            *term(BETA_ZONE, "a")["matchExpressions"],
                            *models("Tesla K80")["matchExpressions"],
                        ]
                    }
                ),
            },
            {
                "nodeSelector": {PRODUCT: "Tesla-K80", TYPE: "p2.xlarge"},
                "affinity": required(
                    {
                        "matchExpressions": [
                            *term(TODAYS_ZONE, "a")["matchExpressions"],
                            *term(PRODUCT, "Tesla-K80")["matchExpressions"],
                        ]
                    }
                ),
            },
            [
                named("Tesla-K80"),
                gone(BETA_TYPE, TYPE),
                f"{named('Tesla-K80')} (and 1 more)",
            ],
            id="beside models",
        ),
        pytest.param(
            {"affinity": preferred(term(BETA_ZONE, "a"))},
            {"affinity": preferred(term(BETA_ZONE, "a"))},
            [],
            id="a preference keeps no pod from running: it stays",
        ),
    ],
)
def test_labels_that_were_beta_once(spec: Any, expected: Any, texts: list[str]) -> None:
    obj = legacy_pod(**spec)
    said = [each.message for each in found(rule, obj, on(ZONED))]
    assert {key: obj["spec"][key] for key in spec} == expected
    assert sorted(said) == sorted(texts)
    modern = modern_pod(nodeSelector={BETA_ZONE: "a"}, affinity=required(term(BETA_ZONE, "a")))
    assert found(rule, modern, on(ZONED)) == []


ON_GKE = Settings(models=Models(profile="gke"))
ACCELERATOR = "cloud.google.com/gke-accelerator"
SLICES = "cloud.google.com/gke-gpu-partition-size"
SHARING = "cloud.google.com/gke-gpu-sharing-strategy"
CLIENTS = "cloud.google.com/gke-max-shared-clients-per-gpu"
T4 = {ACCELERATOR: "nvidia-tesla-t4"}
SHARED_T4 = {**T4, SHARING: "time-sharing", CLIENTS: "4"}
V100 = {ACCELERATOR: "nvidia-tesla-v100"}
NO_SHARING = [
    {"key": key, "operator": "NotIn", "values": [SHARED_T4[key]]} for key in (SHARING, CLIENTS)
]
NO_SLICES = [{"key": SLICES, "operator": "NotIn", "values": ["1g.5gb"]}]
IS_T4 = {"key": ACCELERATOR, "operator": "In", "values": ["nvidia-tesla-t4"]}


def whole(
    model: str, settings: Settings = ON_GKE, *labels: dict[str, str]
) -> tuple[Any, list[str]]:
    """What becomes of a pod that requests a whole GPU of this model, and what is said."""
    obj = legacy_pod(nodeSelector={LABEL: model})
    said = run(RULES, obj, Context(settings, inventory=gpu_nodes(*labels))).findings
    return obj["spec"], [each.message for each in said if each.code == rule.CODE]


def terms_of(spec: Any) -> Any:
    return spec["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


@pytest.mark.parametrize(
    ("model", "labels", "excluded"),
    [
        pytest.param("Tesla-T4", [T4, SHARED_T4], NO_SHARING, id="some are shared"),
        pytest.param(
            "Tesla-V100", [V100, {**V100, SLICES: "1g.5gb"}], NO_SLICES, id="some are sliced"
        ),
        pytest.param(
            "Tesla-T4", [T4, {**V100, SLICES: "1g.5gb"}], [], id="another model is sliced"
        ),
        pytest.param("Tesla-T4", [T4], [], id="all are whole"),
    ],
)
def test_nodes_that_are_marked_as_having_parts_of_gpus_are_excluded(
    model: str, labels: list[dict[str, str]], excluded: list[Any]
) -> None:
    spec, _ = whole(model, ON_GKE, *labels)
    assert spec["nodeSelector"] == labels[0]
    assert (terms_of(spec) if excluded else [{}])[0].get("matchExpressions", []) == excluded
    assert ("affinity" in spec) == bool(excluded)


def test_where_a_model_has_only_parts_a_warning_says_what_to_set() -> None:
    spec, said = whole("Tesla-T4", ON_GKE, SHARED_T4)
    assert terms_of(spec) == [{"matchExpressions": NO_SHARING}]
    why = f"nodes have it only with {SHARING}=time-sharing: set models.shared to true to take that"
    assert said[1:] == [absent("Tesla-T4", why)]

    both = Models(profile="gke", shared=True)
    spec, said = whole("Tesla-T4", Settings(models=both), SHARED_T4)
    assert spec["nodeSelector"] == T4
    assert "affinity" not in spec
    assert len(said) == 1


SLICED_T4 = {**T4, SLICES: "1g.5gb"}
IN_POOL = {**SHARED_T4, "pool": "b"}
OF_GFD = {PRODUCT: "Tesla-T4", "nvidia.com/gpu.sharing-strategy": "mps"}


@pytest.mark.parametrize(
    ("spec", "labels", "settings"),
    [
        pytest.param({SHARING: "time-sharing"}, [T4, SHARED_T4], ON_GKE, id="GKE: sharing"),
        pytest.param({SHARING: "time-sharing"}, [SHARED_T4], ON_GKE, id="GKE: all are shared"),
        pytest.param({CLIENTS: "4"}, [T4, SHARED_T4], ON_GKE, id="GKE: clients of one GPU"),
        pytest.param({SLICES: "1g.5gb"}, [T4, SLICED_T4], ON_GKE, id="GKE: slices"),
        pytest.param(
            {SLICES: "1g.5gb"},
            [T4, {**SHARED_T4, **SLICED_T4}],
            ON_GKE,
            id="GKE: slices, which are shared besides",
        ),
        pytest.param({"pool": "b"}, [T4, IN_POOL], ON_GKE, id="nodes that are all shared"),
        pytest.param(
            {"nvidia.com/gpu.sharing-strategy": "mps"},
            [{PRODUCT: "Tesla-T4"}, OF_GFD],
            Settings(),
            id="GPU Feature Discovery",
        ),
    ],
)
def test_nodes_with_parts_that_the_pod_selects_are_not_excluded(
    spec: dict[str, str], labels: list[dict[str, str]], settings: Settings
) -> None:
    chosen = [{"key": key, "operator": "In", "values": [value]} for key, value in spec.items()]
    of_model = {"key": LABEL, "operator": "In", "values": ["Tesla-T4"]}
    both = required({"matchExpressions": [of_model, *chosen]})
    alone = required({"matchExpressions": chosen})
    for obj in (
        legacy_pod(nodeSelector={LABEL: "Tesla-T4", **spec}),
        legacy_pod(nodeSelector={LABEL: "Tesla-T4"}, affinity=alone),
        legacy_pod(nodeSelector=spec, affinity=required(term(LABEL, "Tesla-T4"))),
        legacy_pod(affinity=both),
        legacy_pod({"scheduler.alpha.kubernetes.io/affinity": json.dumps(both)}),
    ):
        cx = Context(settings, inventory=gpu_nodes(*labels))
        said = [each.message for each in run(RULES, obj, cx).findings]
        assert "NotIn" not in json.dumps(obj["spec"])
        assert any("which offer parts of GPUs as whole ones" in each for each in said)
        assert not list(never_fits.check(Pod(obj), cx))


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        pytest.param({"arch": "x"}, [{**T4, "arch": "x"}, {**SHARED_T4, "arch": "x"}], id="both"),
        pytest.param({"arch": "x"}, [{**SHARED_T4, "arch": "x"}], id="no choice among nodes"),
        pytest.param({"pool": "none"}, [T4, SHARED_T4], id="no node at all"),
    ],
)
def test_a_selection_that_does_not_ask_for_parts_excludes_them(spec: Any, labels: Any) -> None:
    for obj in (
        legacy_pod(nodeSelector={LABEL: "Tesla-T4", **spec}),
        legacy_pod(nodeSelector=spec, affinity=required(term(LABEL, "Tesla-T4"))),
    ):
        run(RULES, obj, Context(ON_GKE, inventory=gpu_nodes(*labels)))
        (only,) = terms_of(obj["spec"])
        assert only["matchExpressions"][-2:] == NO_SHARING


def test_required_affinity_and_the_annotation_exclude_them_too() -> None:
    wanted = required(term(LABEL, "Tesla-T4"))
    for obj in (
        legacy_pod(affinity=wanted),
        legacy_pod({"scheduler.alpha.kubernetes.io/affinity": json.dumps(wanted)}),
    ):
        run(RULES, obj, Context(ON_GKE, inventory=gpu_nodes(T4, SHARED_T4)))
        assert terms_of(obj["spec"]) == [{"matchExpressions": [IS_T4, *NO_SHARING]}]


def test_several_values_of_today_and_the_exclusions_are_one_term() -> None:
    key = "nvidia.com/gpu.sharing-strategy"
    labels = ({PRODUCT: "Tesla-P100-PCIE-16GB"}, {PRODUCT: "Tesla-P100-SXM2-16GB", key: "mps"})
    spec, _ = whole("Tesla-P100", Settings(), *labels)
    (only,) = terms_of(spec)
    assert [each["key"] for each in only["matchExpressions"]] == [PRODUCT, key]
    assert only["matchExpressions"][1] == {"key": key, "operator": "NotIn", "values": ["mps"]}


def test_a_part_that_the_settings_name_is_not_excluded() -> None:
    value = "Tesla-T4-SHARED"
    named = Models(values=(("Tesla-T4", (value,)),))
    node = {PRODUCT: value, "nvidia.com/gpu.sharing-strategy": "mps"}
    spec, _ = whole("Tesla-T4", Settings(models=named), node)
    assert spec["nodeSelector"] == {PRODUCT: value}
    assert "affinity" not in spec


@pytest.mark.parametrize(
    ("spec", "labels", "marked"),
    [
        pytest.param({}, [{}, {PRODUCT: "A-MIG-1g.5gb"}], f"{PRODUCT}=A-MIG-1g.5gb", id="slices"),
        pytest.param({}, [{SHARING: "mps"}], f"{SHARING}=mps", id="only shared ones"),
        pytest.param(
            {"nodeSelector": {"pool": "a"}},
            [{"pool": "a"}, {SHARING: "mps"}],
            "",
            id="they are not for this pod",
        ),
        pytest.param({}, [{}], "", id="whole GPUs alone"),
    ],
)
def test_a_pod_without_a_model_is_told_that_it_may_get_parts(
    spec: Any, labels: Any, marked: str
) -> None:
    obj = legacy_pod(**spec)
    said = run(RULES, obj, Context(inventory=gpu_nodes(*labels))).findings
    notes = [each for each in said if each.code == rule.CODE]
    assert [(each.severity, marked in each.message) for each in notes] == (
        [(Severity.NOTICE, True)] if marked else []
    )
    assert "affinity" not in obj["spec"]
    assert run(RULES, modern_pod(**spec), Context(inventory=gpu_nodes(*labels))).findings == ()


OLD_LABELS = gpu_nodes({LABEL: "Tesla-K80"}, {PRODUCT: "Tesla-P100-PCIE-16GB"})
KEY = Path((*TERMS, 0, "matchExpressions", 0, "key"))


@pytest.mark.parametrize(
    ("spec", "places"),
    [
        pytest.param({"nodeSelector": {LABEL: "Tesla-K80"}}, [SELECTOR / LABEL], id="selected"),
        pytest.param({"nodeSelector": {LABEL: "Tesla-P100"}}, [], id="another model"),
        pytest.param({"nodeSelector": {LABEL: None}}, [], id="null"),
        pytest.param({"affinity": required(models("M60", "Tesla-K80"))}, [KEY], id="required"),
        pytest.param(
            {"affinity": required(models("Tesla-K80", operator="NotIn"))}, [KEY], id="excluded"
        ),
        pytest.param({"affinity": required(models(operator="Exists"))}, [KEY], id="any model"),
        pytest.param({"affinity": required(models("Tesla-P100"))}, [], id="requires another"),
        pytest.param({"affinity": required(term(PRODUCT, "Tesla-K80"))}, [], id="current label"),
        pytest.param(
            {"affinity": required({"matchExpressions": [{"key": LABEL, "values": "x"}]})},
            [KEY],
            id="values of another type",
        ),
        pytest.param(
            {"affinity": preferred(models("Tesla-K80"))},
            [Path((*NODE, PREFERRED, 0, "preference", "matchExpressions", 0, "key"))],
            id="preferred",
        ),
    ],
)
def test_the_places_where_the_old_label_is_right(spec: Any, places: list[Path]) -> None:
    pod = Pod(legacy_pod(**spec))
    assert list(carried(pod, Models(), OLD_LABELS)) == places
    assert list(carried(pod, Models(), NODES)) == []
