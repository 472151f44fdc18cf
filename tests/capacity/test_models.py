"""Which nodes a GPU model of 2017 means: the spelling rules of the road, and the profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.capacity.models import Match, match, spelling
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.legacy_names import GFD_PRODUCTS, LEGACY_MODEL_LABEL
from webhook.core.settings import Models
from webhook.kube import labels

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCT = "nvidia.com/gpu.product"
GFD = Models()

SPELLING = [
    # --- blanks, dashes, underscores and case are one spelling
    pytest.param("Tesla K80", "Tesla-K80", True, id="a blank is a dash"),
    pytest.param("Tesla_K80", "Tesla-K80", True, id="an underscore is a dash"),
    pytest.param("tesla-k80", "Tesla-K80", True, id="case does not count"),
    pytest.param(" Tesla \t- K80_", "Tesla-K80", True, id="runs and ends do not count"),
    pytest.param("TeslaK80", "Tesla-K80", False, id="one word is not two"),
    pytest.param("TITAN X (Pascal)", "NVIDIA-TITAN-X-Pascal", True, id="brackets do not count"),
    pytest.param("Tesla K8", "Tesla-K80", False, id="a part of a word is another model"),
    pytest.param("Tesla K80", "Tesla-K40m", False, id="another model"),
    # --- a leading NVIDIA
    pytest.param("Tesla T4", "NVIDIA-Tesla-T4", True, id="NVIDIA on the node only"),
    pytest.param("NVIDIA Tesla T4", "Tesla-T4", True, id="NVIDIA in the pod only"),
    pytest.param("nvidia-tesla-t4", "NVIDIA-Tesla-T4", True, id="NVIDIA on both sides"),
    pytest.param("A100 NVIDIA", "A100", False, id="NVIDIA at the end is a word like others"),
    pytest.param("NVIDIA NVIDIA T4", "T4", False, id="NVIDIA twice is dropped once"),
    # --- a brand word that only one side has
    pytest.param("K80", "Tesla-K80", True, id="the brand on the node only"),
    pytest.param("Tesla A100", "NVIDIA-A100-SXM4-40GB", True, id="the brand in the pod only"),
    pytest.param("GTX 1080", "NVIDIA-GeForce-GTX-1080", True, id="GeForce on the node only"),
    pytest.param("GeForce GTX 1080", "GTX-1080", True, id="GeForce in the pod only"),
    pytest.param("P4000", "Quadro-P4000", True, id="Quadro on the node only"),
    pytest.param("Tesla P4", "Quadro-P4", False, id="two different brands"),
    pytest.param("Quadro P4000", "Tesla-P4000", False, id="two different brands, turned round"),
    pytest.param("K80 Tesla", "K80", False, id="a brand word at the end is a word like others"),
    pytest.param("Tesla Tesla K80", "Tesla-K80", False, id="a brand word twice"),
    pytest.param("Tesla", "Tesla-K80", False, id="a brand alone is no model"),
    pytest.param("Tesla", "K80", False, id="a brand alone is no model of any brand"),
    pytest.param("Tesla", "Tesla", True, id="unless a node says no more"),
    # --- continuations
    pytest.param("Tesla P100", "Tesla-P100-PCIE-16GB", True, id="PCIE and memory"),
    pytest.param("Tesla P100", "Tesla-P100-SXM2-16GB", True, id="SXM2 and memory"),
    pytest.param("Tesla V100", "Tesla-V100-SXM3-32GB", True, id="SXM3"),
    pytest.param("Tesla V100", "Tesla-V100-FHHL-16GB", True, id="FHHL"),
    pytest.param("A100", "NVIDIA-A100-80GB-PCIe", True, id="memory before the form"),
    pytest.param("H100", "NVIDIA-H100-NVL", True, id="NVL"),
    pytest.param("H100", "NVIDIA-H100-80GB-HBM3", True, id="HBM3"),
    pytest.param("H100", "NVIDIA-H100-80GB-HBM2e", True, id="HBM2e"),
    pytest.param("GTX 1060", "NVIDIA-GeForce-GTX-1060-6GB", True, id="memory alone"),
    pytest.param("GTX 1080", "NVIDIA-GeForce-GTX-1080-Ti", False, id="Ti is another model"),
    pytest.param("GTX-1080-Ti", "NVIDIA-GeForce-GTX-1080", False, id="and the other way round"),
    pytest.param("GTX 1080 Ti", "GeForce-GTX-1080-Ti", True, id="Ti on both sides"),
    pytest.param("RTX 3080", "NVIDIA-GeForce-RTX-3080-Laptop-GPU", False, id="a laptop's"),
    pytest.param("RTX 2080", "NVIDIA-GeForce-RTX-2080-SUPER", False, id="SUPER is another model"),
    pytest.param("Tesla P100 PCIE", "Tesla-P100-SXM2-16GB", False, id="another form"),
    pytest.param("Tesla P100 16GB", "Tesla-P100-PCIE-16GB", True, id="the memory alone"),
    pytest.param("A100 80GB", "NVIDIA-A100-SXM4-80GB", True, id="the order does not count"),
    pytest.param("Tesla P100 12GB", "Tesla-P100-PCIE-16GB", False, id="another memory"),
    # --- the node's name says less
    pytest.param("Tesla-P100-PCIE-16GB", "Tesla-P100", True, id="a full name"),
    pytest.param("NVIDIA_Tesla_P100-PCIE-16GB", "nvidia-tesla-p100", True, id="with the maker"),
    pytest.param("P100-PCIE-16GB", "nvidia-tesla-p100", True, id="without the brand"),
    pytest.param("Tesla V100-SXM2-16GB", "v100", True, id="a full name with a blank"),
    pytest.param("Tesla V100-DGXS-32GB", "v100", True, id="of a DGX Station"),
    pytest.param("Tesla V100-SXM2-16GB", "V100-16GB", True, id="the node says the memory"),
    pytest.param("Tesla V100-SXM2-16GB", "V100-32GB", False, id="but another one"),
    pytest.param("Tesla V100-SXM2-16GB", "V100-PCIe", False, id="or another form"),
    pytest.param("Quadro P100-PCIE-16GB", "tesla-p100", False, id="or another brand"),
    pytest.param("Tesla V100S-PCIE-32GB", "v100", False, id="V100S is no V100"),
    pytest.param("GeForce GTX 1080 Ti 11GB", "GTX-1080", False, id="Ti is no detail"),
    pytest.param("Tesla-M40-24GB", "Tesla-M40", False, id="known to have another memory"),
    pytest.param("GTX 1060 6GB", "GeForce-GTX-1060", False, id="known beside the full name"),
    pytest.param("Tesla V100", "Tesla-V100S-PCIE-32GB", False, id="V100S is another model"),
    pytest.param("GTX TITAN", "GeForce-GTX-TITAN-X", False, id="TITAN X is another model"),
    pytest.param("A10", "NVIDIA-A100-PCIE-40GB", False, id="A100 is not A10"),
    # --- shared and sliced GPUs
    pytest.param("Tesla K80", "Tesla-K80-SHARED", False, id="a shared GPU is not meant"),
    pytest.param("A100", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", False, id="nor is a slice"),
    # --- nothing
    pytest.param("", "Tesla-K80", False, id="an empty name means nothing"),
    pytest.param("(*)", "Tesla-K80", False, id="nor does one of forbidden characters"),
    pytest.param("Tesla K80", "", False, id="an empty value is no model"),
    pytest.param("NVIDIA", "NVIDIA", False, id="the maker alone is no model"),
]


def stands_for(legacy: str, real: str, *, shared: bool = False, mig: bool = False) -> bool:
    """Whether the name means nodes with this value, of which there are some."""
    inventory = Inventory((NodeClass({"own/model": real}, gpus={"g": 1}),))
    settings = Models(label="own/model", shared=shared, mig=mig)
    return real in match(legacy, settings, inventory).values


@pytest.mark.parametrize(("legacy", "real", "meant"), SPELLING)
def test_a_legacy_name_stands_for_a_real_value(legacy: str, real: str, *, meant: bool) -> None:
    assert stands_for(legacy, real) is meant


@pytest.mark.parametrize(
    ("real", "shared", "mig", "meant"),
    [
        pytest.param("A100-SHARED", True, False, True, id="shared, wanted"),
        pytest.param("A100-SHARED", False, True, False, id="shared, but slices wanted"),
        pytest.param("A100-PCIE-40GB-MIG-1g.5gb", False, True, True, id="a slice, wanted"),
        pytest.param("A100-PCIE-40GB-MIG-1g.10gb.me", False, True, True, id="a slice with media"),
        pytest.param("A100-PCIE-40GB-MIG-1g.5gb", True, False, False, id="a slice, unwanted"),
        pytest.param("A100-MIG-1g.5gb-SHARED", True, True, True, id="a shared slice, wanted"),
        pytest.param("A100-MIG-1g.5gb-SHARED", False, True, False, id="a slice, but shared"),
        pytest.param("A100-MIG-1g.5gb-SHARED", True, False, False, id="shared, but a slice"),
        pytest.param("A100-MIG-big", False, True, False, id="no slice's name"),
        pytest.param("H100-MIG-1g.5gb", True, True, False, id="another model's slice"),
    ],
)
def test_shared_and_sliced_gpus_are_meant_by_setting_only(
    real: str, *, shared: bool, mig: bool, meant: bool
) -> None:
    assert stands_for("A100", real, shared=shared, mig=mig) is meant


def test_a_spelling_is_words_without_the_maker() -> None:
    assert spelling("NVIDIA GeForce_GTX-1080  Ti") == ("geforce", "gtx", "1080", "ti")


# --------------------------------------------------------------------------- match


def node(gpus: int = 1, **labels: str) -> NodeClass:
    return NodeClass(labels, gpus={"nvidia.com/gpu": gpus})


def cluster(*products: str) -> Inventory:
    return Inventory(tuple(NodeClass({PRODUCT: each}, gpus={"g": 1}) for each in products))


P100S = ("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB")
NEW_P100 = "NVIDIA-Tesla-P100-NVL-24GB"
ABSENT = f"no node carries such a model under {PRODUCT}"


def only_as(part: str, setting: str) -> str:
    return f"nodes have it only as {part}: set models.{setting} to true to take that"


@pytest.mark.parametrize(
    ("legacy", "inventory", "expected"),
    [
        pytest.param(
            "Tesla P100",
            cluster(P100S[1], "Tesla-K80"),
            Match(P100S),
            id="what nodes carry, and what the table knows: a pool may be at zero",
        ),
        pytest.param(
            "Tesla P100", cluster(NEW_P100), Match((NEW_P100, *P100S)), id="nodes know one more"
        ),
        pytest.param(
            "tesla_k80", cluster("Tesla-K80"), Match(("Tesla-K80",)), id="another spelling"
        ),
        pytest.param(
            "Tesla K80",
            cluster("tesla-k80"),
            Match(("Tesla-K80", "tesla-k80")),
            id="the node's spelling beside the table's",
        ),
        pytest.param(
            "Tesla M60",
            cluster("Tesla-K80"),
            Match(("Tesla-M60",), ABSENT),
            id="no such node now: the table's",
        ),
        pytest.param(
            "Voodoo 2", cluster("Tesla-K80"), Match((), ABSENT), id="a model that nobody knows"
        ),
        pytest.param(
            "Voodoo 2", cluster("Voodoo-2"), Match(("Voodoo-2",)), id="that nodes alone know"
        ),
        pytest.param(
            "K80",
            cluster("K80", "", "K80 x"),
            Match(("K80", "Tesla-K80")),
            id="what is no value is left out",
        ),
        pytest.param(
            "K80",
            cluster("K80-SHARED"),
            Match(("Tesla-K80",), only_as("K80-SHARED", "shared"), is_of_settings=True),
            id="only a shared one is there",
        ),
        pytest.param(
            "A30",
            cluster("NVIDIA-A30-MIG-1g.6gb"),
            Match(("NVIDIA-A30",), only_as("NVIDIA-A30-MIG-1g.6gb", "mig"), is_of_settings=True),
            id="only slices are there",
        ),
        pytest.param(
            "A30",
            cluster("NVIDIA-A30-MIG-1g.6gb-SHARED"),
            Match(
                ("NVIDIA-A30",),
                only_as("NVIDIA-A30-MIG-1g.6gb-SHARED", "shared and models.mig"),
                is_of_settings=True,
            ),
            id="only shared slices are there: both settings",
        ),
        pytest.param(
            "Voodoo 2",
            cluster("Voodoo-2-SHARED"),
            Match((), only_as("Voodoo-2-SHARED", "shared"), is_of_settings=True),
            id="only a shared one, of a model that the table does not know",
        ),
    ],
)
def test_with_an_inventory_a_model_is_what_nodes_carry_and_the_table_knows(
    legacy: str, inventory: Inventory, expected: Match
) -> None:
    assert match(legacy, GFD, inventory) == expected
    assert match(legacy, GFD, inventory) == expected  # from memory


@pytest.mark.parametrize(
    ("inventory", "values"),
    [
        pytest.param(
            cluster("Tesla-K80-SHARED", "Tesla-K80-MIG-1g.5gb"),
            ("Tesla-K80", "Tesla-K80-MIG-1g.5gb", "Tesla-K80-SHARED"),
            id="what nodes carry",
        ),
        pytest.param(None, ("Tesla-K80", "Tesla-K80-SHARED"), id="the table"),
    ],
)
def test_who_wants_none_of_a_model_wants_no_part_of_it(
    inventory: Inventory | None, values: tuple[str, ...]
) -> None:
    assert match("K80", GFD, inventory, parts=True) == Match(values)


@pytest.mark.parametrize("profile", ["gfd", "gke", "eks", "karpenter", "aks"])
def test_without_an_inventory_the_table_of_the_profile_answers(profile: str) -> None:
    want = {
        "gfd": ("Tesla-K80",),
        "gke": ("nvidia-tesla-k80",),
        "eks": ("nvidia-tesla-k80",),
        "karpenter": ("k80",),
        "aks": ("Standard_NC12", "Standard_NC24", "Standard_NC24r", "Standard_NC6"),
    }
    assert match("Tesla K80", Models(profile=profile), None) == Match(want[profile])


@pytest.mark.parametrize(
    ("legacy", "values"),
    [
        pytest.param(
            "Tesla P100",
            ("Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB"),
            id="all variants",
        ),
        pytest.param(
            "GTX 1080", ("GeForce-GTX-1080", "NVIDIA-GeForce-GTX-1080"), id="with and without maker"
        ),
        pytest.param(
            "GTX-1080-Ti", ("GeForce-GTX-1080-Ti", "NVIDIA-GeForce-GTX-1080-Ti"), id="Ti alone"
        ),
        pytest.param("Voodoo 2", (), id="none"),
    ],
)
def test_the_shipped_table_names_every_spelling(legacy: str, values: tuple[str, ...]) -> None:
    found = match(legacy, GFD, None)
    assert found.values == values
    assert found.why == ("" if values else "the table of known models has no such model")


def test_every_product_of_the_table_stands_for_itself() -> None:
    assert all(each in match(each, GFD, None).values for each in GFD_PRODUCTS)


@pytest.mark.parametrize(
    "inventory",
    [
        pytest.param(Inventory(), id="it is empty"),
        pytest.param(Inventory((node(0, zone="a"),)), id="it has no GPU nodes"),
    ],
)
def test_an_inventory_that_knows_no_models_leaves_it_to_the_table(inventory: Inventory) -> None:
    assert match("Tesla K80", GFD, inventory) == Match(("Tesla-K80",))


def test_a_pool_scaled_to_zero_still_tells_its_models() -> None:
    empty_pool = Inventory((NodeClass({PRODUCT: "Tesla-K80-24GB"}),))
    assert match("K80", GFD, empty_pool) == Match(("Tesla-K80", "Tesla-K80-24GB"))
    assert match("M60", GFD, empty_pool) == Match(("Tesla-M60",), ABSENT)


OLD_K80, NEW_K80 = {LEGACY_MODEL_LABEL: "Tesla-K80"}, {PRODUCT: "Tesla-K80"}
BOTH_K80 = {**OLD_K80, **NEW_K80}


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([node(1, **BOTH_K80)], Match(carried=True), id="the same node has today's"),
        pytest.param([node(1, **OLD_K80)], Match(carried=True), id="it has not"),
        pytest.param(
            [node(1, **BOTH_K80), node(1, **NEW_K80)],
            Match(("Tesla-K80",), carried=True),
            id="another has today's alone",
        ),
        pytest.param(
            [node(0, **OLD_K80), node(1, **NEW_K80)],
            Match(("Tesla-K80",)),
            id="a node without GPUs does not count",
        ),
        pytest.param([node(0, **BOTH_K80)], Match(("Tesla-K80",)), id="nor does it alone"),
        pytest.param(
            [NodeClass(OLD_K80, open_gpus=True)],
            Match(carried=True),
            id="one that has just joined may get GPUs",
        ),
    ],
)
def test_nodes_that_still_carry_the_legacy_label(classes: list[NodeClass], expected: Match) -> None:
    inventory = Inventory(tuple(classes))
    assert match("Tesla-K80", GFD, inventory) == expected
    assert not match("Tesla K80", GFD, inventory).carried


def test_the_settings_may_name_the_legacy_label_as_todays() -> None:
    inventory = Inventory((node(1, **OLD_K80),))
    assert match("Tesla-K80", Models(label=LEGACY_MODEL_LABEL), inventory) == Match(
        ("Tesla-K80",), carried=True
    )


@pytest.mark.parametrize(
    ("inventory", "hint"),
    [
        pytest.param(
            Inventory((NodeClass({"cloud.google.com/gke-accelerator": "x"}, gpus={"g": 1}),)),
            "; they carry cloud.google.com/gke-accelerator: set models.profile to gke",
            id="GKE",
        ),
        pytest.param(
            Inventory((NodeClass({"k8s.amazonaws.com/accelerator": "x"}, gpus={"g": 1}),)),
            "; they carry k8s.amazonaws.com/accelerator: set models.profile to eks",
            id="EKS",
        ),
        pytest.param(
            Inventory((NodeClass({"karpenter.k8s.aws/instance-gpu-name": "x"}, gpus={"g": 1}),)),
            "; they carry karpenter.k8s.aws/instance-gpu-name: set models.profile to karpenter",
            id="Karpenter",
        ),
        pytest.param(
            Inventory(
                (
                    NodeClass(
                        {
                            "node.kubernetes.io/instance-type": "Standard_NC6",
                            "kubernetes.azure.com/accelerator": "nvidia",
                        },
                        gpus={"g": 1},
                    ),
                )
            ),
            "; they are AKS nodes: set models.profile to aks",
            id="AKS",
        ),
        pytest.param(
            Inventory(
                (NodeClass({"node.kubernetes.io/instance-type": "p3.2xlarge"}, gpus={"g": 1}),)
            ),
            "",
            id="a machine size alone is everywhere and says nothing",
        ),
        pytest.param(
            Inventory(
                (
                    NodeClass({"zone": "a"}, gpus={"g": 1}),
                    NodeClass({"cloud.google.com/gke-accelerator": "x"}),
                )
            ),
            "",
            id="labels of nodes without GPUs do not count",
        ),
    ],
)
def test_if_no_gpu_node_carries_the_label_the_profile_to_choose_is_named(
    inventory: Inventory, hint: str
) -> None:
    assert match("Tesla K80", GFD, inventory) == Match(
        ("Tesla-K80",), f"no GPU node carries the label {PRODUCT}{hint}", is_of_settings=True
    )


@pytest.mark.parametrize(
    ("values", "legacy", "inventory", "expected"),
    [
        pytest.param(
            (("Tesla K80", ("Kepler",)),), "tesla-k80", None, ("Kepler",), id="over the table"
        ),
        pytest.param(
            (("Tesla K80", ("Kepler", "K80-X")),),
            "Tesla K80",
            cluster("Kepler", "Tesla-K80"),
            ("K80-X", "Kepler"),
            id="over the spelling, and over what nodes carry",
        ),
        pytest.param(
            (("K80", ("Kepler",)),), "Tesla K80", None, ("Tesla-K80",), id="for that name only"
        ),
        pytest.param(
            (("Tesla K80", ("not a value", "", "Kepler")),),
            "Tesla K80",
            None,
            ("Kepler",),
            id="but never what can be no value",
        ),
        pytest.param(
            (("Voodoo", ("b", "a")),), "voodoo", None, ("a", "b"), id="sorted, for any name"
        ),
    ],
)
def test_the_users_values_are_the_last_word(
    values: tuple[tuple[str, tuple[str, ...]], ...],
    legacy: str,
    inventory: Inventory | None,
    expected: tuple[str, ...],
) -> None:
    assert match(legacy, Models(values=values), inventory).values == expected


def test_the_users_settings_for_shared_and_sliced_gpus_are_heeded() -> None:
    inventory = cluster("A100-SHARED", "A100-MIG-1g.5gb", "A100")
    known = match("A100", GFD, None).values
    assert match("A100", GFD, inventory) == Match(("A100", *known))
    shared = match("A100", Models(shared=True), cluster("A100-SHARED"))
    assert set(shared.values) == {"A100-SHARED", *known, *(f"{each}-SHARED" for each in known)}
    assert not shared.why
    sliced = match("A100", Models(mig=True), cluster("A100-MIG-1g.5gb"))
    assert sliced == Match(("A100-MIG-1g.5gb", *known))


def test_the_users_own_label_is_asked() -> None:
    inventory = Inventory((NodeClass({"own/model": "Tesla-K80"}, gpus={"g": 1}),))
    assert match("K80", Models(label="own/model"), inventory).values == ("Tesla-K80",)


def test_machine_sizes_stand_for_models() -> None:
    label = "node.kubernetes.io/instance-type"
    inventory = Inventory((NodeClass({label: "Standard_NC12"}, gpus={"g": 1}),))
    sizes = match("K80", Models(profile="aks"), inventory)
    assert "Standard_NC12" in sizes.values
    assert not sizes.why
    assert match("V100", Models(profile="aks"), inventory).why


def test_a_text_that_is_too_long_for_a_model_is_none() -> None:
    assert match("Tesla K80" + " " * 300, GFD, cluster("Tesla-K80")).values == ()


BRANDS = ("tesla", "geforce", "quadro")
FORMS, MEMORIES = ("pcie", "sxm2"), ("16gb", "32gb")
WORDS = st.sampled_from([*BRANDS, *FORMS, *MEMORIES, "nvidia", "K7", "Ti", "", "-"])
NAMES = st.lists(WORDS, max_size=4).map("-".join)


def means(legacy: str, real: str) -> bool:
    """The rule of the module's docstring, word by word, where no other name is known."""
    wanted, offered = list(spelling(legacy)), list(spelling(real))
    brands = [words.pop(0) if words[:1] and words[0] in BRANDS and len(words) > 1 else ""
              for words in (wanted, offered)]  # fmt: skip
    if all(brands) and brands[0] != brands[1]:
        return False
    details: list[dict[str, str]] = [{}, {}]
    for words, found in zip((wanted, offered), details, strict=True):
        while len(words) > 1 and words[-1] in (*FORMS, *MEMORIES):
            word = words.pop()
            found["form" if word in FORMS else "memory"] = word
    agree = all(details[1].get(kind, word) == word for kind, word in details[0].items())
    return bool(wanted) and wanted == offered and agree


@given(NAMES, NAMES.filter(labels.is_value).filter(bool))
def test_the_spellings_are_those_of_the_rule(legacy: str, real: str) -> None:
    assert stands_for(legacy, real) is means(legacy, real)


# ------------------------------------------------------------------- full names

# What nvidia-smi prints, and the values by which each profile knows the card.
NCV2 = ("Standard_NC12s_v2", "Standard_NC24rs_v2", "Standard_NC24s_v2", "Standard_NC6s_v2")
NCV3 = ("Standard_NC12s_v3", "Standard_NC24rs_v3", "Standard_NC24s_v3", "Standard_NC6s_v3")
NDV2 = ("Standard_ND40rs_v2",)
NC = ("Standard_NC12", "Standard_NC24", "Standard_NC24r", "Standard_NC6")
NV = ("Standard_NV12", "Standard_NV12s_v3", "Standard_NV24", "Standard_NV24s_v3",
      "Standard_NV48s_v3", "Standard_NV6")  # fmt: skip
ND = ("Standard_ND12s", "Standard_ND24rs", "Standard_ND24s", "Standard_ND6s")
NCT4 = ("Standard_NC16as_T4_v3", "Standard_NC4as_T4_v3", "Standard_NC64as_T4_v3",
        "Standard_NC8as_T4_v3")  # fmt: skip
NCA = ("Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4", "Standard_NC96ads_A100_v4")
NVIDIA_SMI = {  # gfd, gke, eks, karpenter, aks
    "Tesla K80": (("Tesla-K80",), "nvidia-tesla-k80", "nvidia-tesla-k80", "k80", NC),
    "Tesla M40": (("Tesla-M40", "Tesla-M40-24GB"), "", "", "", ()),
    "Tesla M40 24GB": (("Tesla-M40-24GB",), "", "", "", ()),
    "Tesla M60": (("Tesla-M60",), "", "nvidia-tesla-m60", "m60", NV),
    "Tesla P4": (("Tesla-P4",), "nvidia-tesla-p4", "", "", ()),
    "Tesla P40": (("Tesla-P40",), "", "", "", ND),
    "Tesla P100-PCIE-12GB": (
        ("Tesla-P100-PCIE-12GB",), "nvidia-tesla-p100", "nvidia-tesla-p100", "p100", NCV2
    ),
    "Tesla P100-PCIE-16GB": (
        ("Tesla-P100-PCIE-16GB",), "nvidia-tesla-p100", "nvidia-tesla-p100", "p100", NCV2
    ),
    "Tesla P100-SXM2-16GB": (
        ("Tesla-P100-SXM2-16GB",), "nvidia-tesla-p100", "nvidia-tesla-p100", "p100", NCV2
    ),
    "Tesla V100-PCIE-16GB": (
        ("Tesla-V100-PCIE-16GB",), "nvidia-tesla-v100", "nvidia-tesla-v100", "v100", NCV3
    ),
    "Tesla V100-SXM2-16GB": (
        ("Tesla-V100-SXM2-16GB",), "nvidia-tesla-v100", "nvidia-tesla-v100", "v100", NCV3
    ),
    "Tesla V100-PCIE-32GB": (
        ("Tesla-V100-PCIE-32GB",), "nvidia-tesla-v100", "nvidia-tesla-v100", "v100", NDV2
    ),
    "Tesla V100-SXM2-32GB": (
        ("Tesla-V100-SXM2-32GB",), "nvidia-tesla-v100", "nvidia-tesla-v100", "v100", NDV2
    ),
    "Tesla T4": (("Tesla-T4",), "nvidia-tesla-t4", "nvidia-tesla-t4", "t4", NCT4),
    "A100-SXM4-40GB": (
        ("NVIDIA-A100-SXM4-40GB",), "nvidia-tesla-a100", "nvidia-tesla-a100", "a100",
        ("Standard_ND96asr_v4",),
    ),
    "A100-SXM4-80GB": (
        ("NVIDIA-A100-SXM4-80GB",), "nvidia-a100-80gb", "nvidia-tesla-a100", "a100",
        ("Standard_ND96amsr_A100_v4",),
    ),
    "A100 80GB PCIe": (
        ("NVIDIA-A100-80GB-PCIe",), "nvidia-a100-80gb", "nvidia-tesla-a100", "a100", NCA
    ),
    "H100 80GB HBM3": (
        ("NVIDIA-H100-80GB-HBM3",), "nvidia-h100-80gb", "nvidia-h100", "h100",
        ("Standard_ND96isr_H100_v5",),
    ),
    "Quadro P4000": (("NVIDIA-Quadro-P4000", "Quadro-P4000"), "", "", "", ()),
    "Quadro RTX 6000": (("NVIDIA-Quadro-RTX-6000", "Quadro-RTX-6000"), "", "", "", ()),
    "GeForce GTX 1080": (("GeForce-GTX-1080", "NVIDIA-GeForce-GTX-1080"), "", "", "", ()),
    "GeForce GTX 1080 Ti": (
        ("GeForce-GTX-1080-Ti", "NVIDIA-GeForce-GTX-1080-Ti"), "", "", "", ()
    ),
    "GeForce GTX 1060 6GB": (
        ("GeForce-GTX-1060-6GB", "NVIDIA-GeForce-GTX-1060-6GB"), "", "", "", ()
    ),
    "GeForce GTX TITAN X": (
        ("GeForce-GTX-TITAN-X", "NVIDIA-GeForce-GTX-TITAN-X"), "", "", "", ()
    ),
    "TITAN X (Pascal)": (("NVIDIA-TITAN-X-Pascal", "TITAN-X-Pascal"), "", "", "", ()),
    "TITAN V": (("NVIDIA-TITAN-V", "TITAN-V"), "", "", "", ()),
}  # fmt: skip
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is printed": str,
    "with dashes": lambda name: name.replace(" ", "-"),
    "with underscores": lambda name: name.replace(" ", "_").replace("-", "_"),
    "with the maker": lambda name: f"NVIDIA-{name}",
    "without the brand": lambda name: name.removeprefix("Tesla ").removeprefix("Quadro "),
    "in small letters": str.lower,
}


@pytest.mark.large
@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("profile", ["gfd", "gke", "eks", "karpenter", "aks"])
@pytest.mark.parametrize("name", NVIDIA_SMI)
def test_a_full_name_stands_for_what_the_profile_knows(
    name: str, profile: str, written: str
) -> None:
    known = NVIDIA_SMI[name][["gfd", "gke", "eks", "karpenter", "aks"].index(profile)]
    values = (known,) if isinstance(known, str) and known else tuple(known)
    models, legacy = Models(profile=profile), WRITTEN[written](name)
    assert match(legacy, models, None).values == values
    unwanted = match(legacy, models, None, parts=True).values
    if profile == "gfd":
        values = tuple(sorted((*values, *(f"{each}-SHARED" for each in values))))
    assert unwanted == values
    for value in values:
        there = Inventory((NodeClass({models.key: value}, gpus={"g": 1}),))
        assert value in match(legacy, models, there, parts=True).values
        if not value.endswith("-SHARED"):
            assert match(legacy, models, there) == match(legacy, models, None)


@pytest.mark.parametrize(
    ("settings", "legacy", "nodes", "wanted", "unwanted"),
    [
        pytest.param(
            Models(label="own/model"),
            "Tesla-P100-PCIE-16GB",
            ["P100"],
            ("P100", "Tesla-P100-PCIE-16GB"),
            None,
            id="a value of the administrator, beside the table's",
        ),
        pytest.param(
            Models(label="own/model"),
            "Tesla-V100-SXM2-32GB",
            ["V100", "V100-32GB", "V100-16GB"],
            ("Tesla-V100-SXM2-32GB", "V100-32GB"),
            ("Tesla-V100-SXM2-32GB", "Tesla-V100-SXM2-32GB-SHARED", "V100", "V100-32GB"),
            id="the nearest is wanted, all that it may be unwanted",
        ),
        pytest.param(
            Models(),
            "Tesla-M40-24GB",
            ["tesla-m40"],
            ("Tesla-M40-24GB",),
            ("Tesla-M40-24GB", "Tesla-M40-24GB-SHARED"),
            id="what the table knows to be another is not meant",
        ),
        pytest.param(
            Models(profile="gke", values=(("Tesla P100", ("pascal",)),)),
            "Tesla-P100-PCIE-16GB",
            ["nvidia-tesla-p100"],
            ("pascal",),
            None,
            id="the user's value comes before the table's",
        ),
        pytest.param(
            Models(values=(("Tesla P100", ("pascal",)),)),
            "Tesla-P100-PCIE-16GB",
            [],
            ("Tesla-P100-PCIE-16GB",),
            None,
            id="but not if the table knows the full name",
        ),
        pytest.param(
            Models(),
            "P100 16GB",
            ["Tesla-P100-SXM2-16GB-SHARED"],
            ("Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB"),
            None,
            id="a name without a form factor",
        ),
    ],
)
def test_a_name_that_says_more_than_nodes(
    settings: Models,
    legacy: str,
    nodes: list[str],
    wanted: tuple[str, ...],
    unwanted: tuple[str, ...] | None,
) -> None:
    there = Inventory(tuple(NodeClass({settings.key: v}, gpus={"g": 1}) for v in nodes))
    assert match(legacy, settings, there).values == wanted
    excluded = match(legacy, settings, there, parts=True).values
    assert set(wanted) <= set(excluded)
    assert unwanted is None or excluded == unwanted
    # A stored pod is judged by a cluster that has what it names: see evaluation/stored_pod.py.
    again = Inventory(tuple(NodeClass({settings.key: v}, gpus={"g": 1}) for v in wanted))
    assert match(legacy, settings, again).values == wanted
