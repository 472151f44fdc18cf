"""Reports of clusters, for tests of their pages."""

from __future__ import annotations

from datetime import UTC, datetime

from webhook.kube.times import DAY
from webhook.reports.usage import Owner, Usage

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC).timestamp()


def ago(days: float) -> float:
    return NOW - days * DAY


OWNERS = (
    Owner(
        "ml-platform-training-and-evaluation",
        "CronJob",
        "nightly",
        "Helm release nightly, chart nightly-1.2.0",
        1,
        ago(400),
        ("GPU101", "GPU105"),
    ),
    Owner(
        "vision",
        "Deployment",
        "detector",
        "Deployment/detector (last written by kubectl)",
        12,
        ago(3),
        ("GPU101",),
    ),
    Owner("vision", "Pod", "airflow-\x1b[2Jx", "", 0, ago(0.02), ("GPU109",)),
)
NOTES = (
    "manifests that were not applied in this time: `gpu-webhook scan FOLDER` finds them",
    "calls that failed in API servers other than the one that answered (docs/uninstall.md)",
)
LEFT = Usage(
    NOW,
    30,
    ago(12.4),
    "gpu-webhook-7d9c5-x2x started",
    OWNERS,
    {"ml-platform-training-and-evaluation": ago(5.2), "vision": ago(0.02), "<b>old</b>": ago(11)},
    {
        "ml-platform-training-and-evaluation": {"Job": 7},
        "vision": {"Pod": 31, "ReplicaSet": 1200},
        "<b>old</b>": {"Pod": 1},
    },
    ("Job: Jobs are not checked: the API server answered 403: jobs is forbidden",),
    NOTES,
    1204,
)
EMPTY = Usage(NOW, 30, ago(3.5), "the API server started", notes=NOTES, checked=1204)
SAFE = Usage(NOW, 30, ago(45), "the Deployment was changed", notes=NOTES, checked=1204)
