"""What charts and playbooks give the templates of the shared corpus, where a name says too little.

By the name of the file. What is not here has the values of rendering.by_name().
"""

from __future__ import annotations

from typing import Any

_BASE64 = "Z2l2ZW4="
_SECURITY = {"runAsUser": 1, "runAsGroup": 1, "runAsNonRoot": True, "supplementalGroups": []}
_ARENA: dict[str, Any] = {
    "tolerations": [],
    "enableRDMA": False,
    "dataDir": "",
    "podSecurityContext": _SECURITY,
    "successPolicy": "",
}
_KEYS = {"CACert": _BASE64, "APIServerCert": _BASE64, "APIServerKey": _BASE64}
_TLS: dict[str, Any] = {"TLSConfig": {**_KEYS, "EtcdClientCert": _BASE64, "EtcdClientKey": _BASE64}}
_LAUNCH: dict[str, Any] = {"job": {"LaunchCMD": ["train"], "cmd": ["train"], "id": "judged"}}

VALUES: dict[str, dict[str, Any]] = {
    "arena-templates-corn-tfjob.yaml": {"tfjob": _ARENA},
    "arena-templates-job-2.yaml": {
        **_ARENA,
        "logDir": "",
        "tensorboard": {"enabled": False},
        "syncMode": "",
    },
    "arena-templates-job.yaml": {**_ARENA, "syncMode": ""},
    "arena-templates-mpijob.yaml": _ARENA,
    "arena-templates-statefulset.yaml": {**_ARENA, "syncMode": ""},
    "arena-templates-tfjob-2.yaml": _ARENA,
    "arena-templates-tfjob.yaml": _ARENA,
    "blogposts-templates-eval-deployment.yaml": {
        "tensorboard": {
            "resources": {"limits": {"cpu": "1"}},
            "service": {"command": "[tensorboard]", "type": "ClusterIP"},
        },
        "evaluating": {"resources": {"limits": {"cpu": "1"}}},
    },
    "charts-templates-cockroachdb-petset.yaml": {"HttpPort": 2},
    "charts-templates-cockroachdb-petset-2.yaml": {"HttpPort": 2},
    "charts-templates-daemonset.yaml": {"image": {"pullPolicy": "Always"}},
    "dlworkspace-jobs-templete-disttensorflow-worker-yaml.template": {
        "job": {**_LAUNCH["job"], "id": "judged", "worker-id": "w1"}
    },
    "dlworkspace-jobs-templete-distjob-yaml-3.template": _LAUNCH,
    "dlworkspace-jobs-templete-distjob-yaml-2.template": _LAUNCH,
    "dlworkspace-jobs-templete-regularjob-yaml-2.template": _LAUNCH,
    "dlworkspace-jobs-templete-regularjob-yaml.template": _LAUNCH,
    "dlworkspace-restapi-regularjob-yaml.template": _LAUNCH,
    "helm-charts-templates-deployment-2.yaml": {"backup_os_user_domain": "given"},
    "helm-charts-templates-deployment-api.yaml": {
        "api": {"upgrades": {"revisionHistory": 3, "podReplacementStrategy": "Recreate"}}
    },
    "k2-v1-5-dns-yaml.jinja2": {
        "dns_config": {"healthz_threshold": 1},
    },
    "kubeflow-cilium-ds-yml.j2": {"cilium_hubble_scrape_port": 2},
    "kubeflow-labs-templates-deployment.yaml": {
        "hyperParamValues": {"learningRate": [1], "hiddenLayers": [5]},
        "useGPU": True,
    },
    "kubespray-templates-cilium-ds-yml.j2": {"cri_socket": "/var/run/cri.sock"},
    "kube-aws-templates-cloud-config-controller.txt": _TLS,
    "kube-aws-templates-cloud-config-controller-2.txt": _TLS,
    "kube-aws-templates-cloud-config-controller-3.txt": _TLS,
    "openstack-helm-templates-mariadb-deployment.yaml": {"replicas": "1"},
}
