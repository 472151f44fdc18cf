"""Data: the names of 1.3-1.10, and the spellings of GPU models on current nodes.

The lists are used in addition to the values on real nodes, because a pool may have no node now;
`In` may name values that no node has. The settings add values (`models.values`).
"""

from __future__ import annotations

LEGACY_RESOURCE = "alpha.kubernetes.io/nvidia-gpu"
LEGACY_MODEL_LABEL = "alpha.kubernetes.io/nvidia-gpu-name"
AFFINITY_ANNOTATION = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS_ANNOTATION = "scheduler.alpha.kubernetes.io/tolerations"

# Names as NVML returns them and GPU Feature Discovery writes them (blanks become dashes). Drivers
# before about R470 have no leading NVIDIA; both spellings are listed for cards of that time.
_DATA_CENTRE = (
    "Tesla-K20m", "Tesla-K20Xm", "Tesla-K40c", "Tesla-K40m", "Tesla-K80",
    "Tesla-M4", "Tesla-M6", "Tesla-M10", "Tesla-M40", "Tesla-M40-24GB", "Tesla-M60",
    "Tesla-P4", "Tesla-P6", "Tesla-P40",
    "Tesla-P100-PCIE-12GB", "Tesla-P100-PCIE-16GB", "Tesla-P100-SXM2-16GB",
    "Tesla-V100-PCIE-16GB", "Tesla-V100-PCIE-32GB", "Tesla-V100-SXM2-16GB",
    "Tesla-V100-SXM2-32GB", "Tesla-V100-SXM3-32GB", "Tesla-V100S-PCIE-32GB",
    "Tesla-V100-FHHL-16GB", "Tesla-T4",
    "NVIDIA-A10", "NVIDIA-A10G", "NVIDIA-A16", "NVIDIA-A2", "NVIDIA-A30", "NVIDIA-A40",
    "NVIDIA-A100-PCIE-40GB", "NVIDIA-A100-80GB-PCIe", "NVIDIA-A100-SXM4-40GB",
    "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4", "NVIDIA-L40", "NVIDIA-L40S",
    "NVIDIA-H100-PCIe", "NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-NVL", "NVIDIA-H200",
)  # fmt: skip
_GEFORCE = (
    "GTX-660", "GTX-670", "GTX-680", "GTX-760", "GTX-770", "GTX-780", "GTX-780-Ti",
    "GTX-750", "GTX-750-Ti", "GTX-950", "GTX-960", "GTX-970", "GTX-980", "GTX-980-Ti",
    "GTX-TITAN", "GTX-TITAN-Black", "GTX-TITAN-X", "GTX-1050", "GTX-1050-Ti",
    "GTX-1060", "GTX-1060-3GB", "GTX-1060-6GB", "GTX-1070", "GTX-1070-Ti", "GTX-1080",
    "GTX-1080-Ti", "RTX-2060", "RTX-2070", "RTX-2080", "RTX-2080-Ti", "RTX-3060", "RTX-3070",
    "RTX-3080", "RTX-3080-Ti", "RTX-3090", "RTX-4080", "RTX-4090",
)  # fmt: skip
_QUADRO = (
    "M2000", "M4000", "M5000", "M6000", "P400", "P600", "P1000", "P2000", "P4000", "P5000",
    "P6000", "GP100", "GV100", "RTX-4000", "RTX-5000", "RTX-6000", "RTX-8000", "K2200", "K4200",
    "K5200", "K6000",
)  # fmt: skip
_TITAN = ("TITAN-X-Pascal", "TITAN-Xp", "TITAN-V", "TITAN-RTX")

GFD_PRODUCTS: tuple[str, ...] = (
    *_DATA_CENTRE,
    *[f"{maker}GeForce-{card}" for card in _GEFORCE for maker in ("", "NVIDIA-")],
    *[f"{maker}Quadro-{card}" for card in _QUADRO for maker in ("", "NVIDIA-")],
    *[f"{maker}{card}" for card in _TITAN for maker in ("", "NVIDIA-")],
)

# cluster-autoscaler cloudprovider/gce; GKE writes only these.
GKE_ACCELERATORS: tuple[str, ...] = (
    "nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100", "nvidia-tesla-p4",
    "nvidia-tesla-t4", "nvidia-a100-80gb", "nvidia-l4", "nvidia-h100-80gb", "nvidia-h200-141gb",
)  # fmt: skip
GKE_NAMED: tuple[tuple[str, tuple[str, ...]], ...] = (("A100 40GB", ("nvidia-tesla-a100",)),)

# The convention of cluster-autoscaler for EKS node groups.
EKS_ACCELERATORS: tuple[str, ...] = (
    "nvidia-tesla-k80", "nvidia-tesla-m60", "nvidia-tesla-p100", "nvidia-tesla-v100",
    "nvidia-tesla-t4", "nvidia-tesla-a100", "nvidia-a10g", "nvidia-l4", "nvidia-h100",
)  # fmt: skip

KARPENTER_NAMES: tuple[str, ...] = (
    "k80", "m60", "p100", "v100", "t4", "t4g", "a10g", "a100", "l4", "l40s", "h100", "h200",
)  # fmt: skip

# kubernetes.azure.com/accelerator has only the value `nvidia`; on AKS the model is in the machine
# size. Memory and form factor are listed only if sizes differ in them; a name with another form
# factor than that of AKS stands for these sizes as well.
AKS_SIZES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Tesla K80", ("Standard_NC6", "Standard_NC12", "Standard_NC24", "Standard_NC24r")),
    ("Tesla M60", (
        "Standard_NV6", "Standard_NV12", "Standard_NV24",
        "Standard_NV12s_v3", "Standard_NV24s_v3", "Standard_NV48s_v3",
    )),
    ("Tesla P40", ("Standard_ND6s", "Standard_ND12s", "Standard_ND24s", "Standard_ND24rs")),
    ("Tesla P100", (
        "Standard_NC6s_v2", "Standard_NC12s_v2", "Standard_NC24s_v2", "Standard_NC24rs_v2",
    )),
    ("Tesla V100 16GB", (
        "Standard_NC6s_v3", "Standard_NC12s_v3", "Standard_NC24s_v3", "Standard_NC24rs_v3",
    )),
    ("Tesla V100 32GB", ("Standard_ND40rs_v2",)),
    ("Tesla T4", (
        "Standard_NC4as_T4_v3", "Standard_NC8as_T4_v3", "Standard_NC16as_T4_v3",
        "Standard_NC64as_T4_v3",
    )),
    ("A100 40GB", ("Standard_ND96asr_v4",)),
    ("A100 80GB PCIe", (
        "Standard_NC24ads_A100_v4", "Standard_NC48ads_A100_v4", "Standard_NC96ads_A100_v4",
    )),
    ("A100 SXM4 80GB", ("Standard_ND96amsr_A100_v4",)),
    ("H100 NVL 94GB", ("Standard_NC40ads_H100_v5", "Standard_NC80adis_H100_v5")),
    ("H100 80GB", ("Standard_ND96isr_H100_v5",)),
)  # fmt: skip

# Node labels that were renamed; the old ones are deprecated (k/k pkg/api/node/util.go).
BETA_NODE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}
