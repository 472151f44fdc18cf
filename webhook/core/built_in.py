"""Built-in lists that settings can add to: taints that go away, and namespaces of GPU software."""

from __future__ import annotations

# Taints that mean "not now" or "not this pod", never "GPU": the webhook must not tolerate them.
UNTOLERABLE = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/")
AUTOSCALER_TAINTS = (
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
)
# Taints that agents set or nodes register with until a node is ready, and taints of nodes that are
# repaired, updated or removed. A * stands for any text. docs/policy.md has the source of each.
STARTUP_TAINTS = (
    # Cilium (node.cilium.io), the CSI drivers for EBS, EFS, FSx and S3 (ebs.csi.aws.com and so on)
    # and for Azure disks (disk.csi.azure.com): each driver removes its own when it has started.
    "*/agent-not-ready",
    # Istio CNI (cni.istio.io, PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS), EKS Auto Mode.
    "*/not-ready",
    # Cluster API and OpenShift (node.cluster.x-k8s.io), kOps (node.kops.k8s.io), cloud providers.
    "*/uninitialized",
    "amd-gpu-unhealthy",  # AMD's GPU operator, while it repairs a node
    "AggregatedNodeHealth",  # NVSentinel, while a node is in quarantine
    "autoscaling.cast.ai/draining",  # Cast AI
    "aws-node-termination-handler/*",  # AWS: spot-itn, scheduled-maintenance and others
    "cloud.google.com/impending-node-termination",  # GKE, the node termination handler of GCP
    "cloud.google.com/maintenance-window-started",  # GKE
    "drbd.linbit.com/force-io-error",  # the HA controller of LINSTOR
    "drbd.linbit.com/lost-quorum",
    "egressgateway.kubernetes.azure.com/cni-not-ready",  # AKS
    "k8s.ovn.org/network-unavailable",  # OVN-Kubernetes
    "kubevirt.io/drain",  # KubeVirt and Harvester, while virtual machines leave a node
    "medik8s.io/*",  # remediation, drain, fence-agents-remediation: Medik8s and OpenShift
    "network.openshift.io/mtu-too-small",  # OpenShift, until the node's network is set up
    "nidhogg.uswitch.com/*",  # Nidhogg, until the configured DaemonSets are ready
    "node.cluster.x-k8s.io/outdated-revision",  # Cluster API, of a machine that is replaced
    "node.deckhouse.io/*-uninitialized",  # Deckhouse
    "node.deckhouse.io/csi-not-bootstrapped",
    "node.gardener.cloud/critical-components-not-ready",  # Gardener
    "readiness.k8s.io/*",  # the node readiness controller of SIG Node
    "remediation.medik8s.io/*",  # fence agents of Medik8s, in newer releases
    "remediator.aks.microsoft.com/unschedulable",  # AKS, auto-repair and auto-drain
    "remediator.kubernetes.azure.com/unschedulable",  # its newer name
    "sagemaker.amazonaws.com/node-health-status",  # SageMaker HyperPod, during its health checks
    "skyhook.nvidia.com",  # NVIDIA's Skyhook, until the packages of a node are set up
    "tke.cloud.tencent.com/*-unavailable",  # TKE, until a node has addresses for pods
    "UpdateInProgress",  # OpenShift's machine config operator
    "weave.works/kured-node-reboot",  # kured
)

# Namespaces where charts install the device plugin, the GPU operator, DCGM and the DRA driver.
MANAGEMENT_NAMESPACES = (
    "kube-system",
    "gpu-operator",
    "gpu-operator-resources",
    "nvidia-gpu-operator",
    "nvidia-device-plugin",
    "nvidia-dra-driver-gpu",
    "nvidia-network-operator",
    "gpu-resources",  # where the documentation of AKS installs the device plugin
    # DCGM exporters of GKE, of Google Managed Prometheus and of Amazon Container Insights.
    "gke-managed-system",
    "gmp-public",
    "amazon-cloudwatch",
)
