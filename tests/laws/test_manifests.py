"""What is shipped says what the code says."""

from __future__ import annotations

from pathlib import Path

import yaml

from webhook import __version__
from webhook.cli import settings_file
from webhook.core.match_conditions import match_conditions
from webhook.core.settings import Settings

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"


def test_the_match_conditions_are_those_of_the_settings() -> None:
    configuration = yaml.safe_load((BASE / "webhook.yaml").read_text())

    for webhook in configuration["webhooks"]:
        assert webhook["matchConditions"] == match_conditions(Settings())


def test_the_shipped_settings_are_the_defaults() -> None:
    assert settings_file.load(str(BASE / "settings.yaml")) == Settings()


def test_the_image_is_that_of_this_version() -> None:
    images = yaml.safe_load((BASE / "kustomization.yaml").read_text())["images"]

    assert [image["newTag"] for image in images] == [__version__]


def test_the_webhook_never_stops_a_pod_when_it_is_away() -> None:
    webhooks = yaml.safe_load((BASE / "webhook.yaml").read_text())["webhooks"]

    assert [webhook["failurePolicy"] for webhook in webhooks] == ["Ignore"]
    assert all(webhook["timeoutSeconds"] <= 3 for webhook in webhooks)
    excluded = webhooks[0]["namespaceSelector"]["matchExpressions"][0]
    assert excluded == {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["kube-system", "gpu-webhook"],
    }
