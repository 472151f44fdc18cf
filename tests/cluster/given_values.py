"""What charts and playbooks give the templates of the shared corpus, where a name says too little.

By the name of the file. `templates` are the named templates of the chart that are not empty.
"""

from __future__ import annotations

from typing import Any

_BASE64 = "Z2l2ZW4="

VALUES: dict[str, dict[str, Any]] = {
    "kubeflow-labs-templates-deployment.yaml": {
        "hyperParamValues": {"learningRate": [1], "hiddenLayers": [5]},
        "useGPU": True,
    },
    "openstack-helm-templates-mariadb-deployment.yaml": {"replicas": "1"},
    "helm-charts-templates-deployment-api.yaml": {"api": {"upgrades": {"revisionHistory": 3}}},
}
