"""Whether a repaired template that is stored may stay as it is."""

from __future__ import annotations

from webhook.core.rule import Context
from webhook.evaluation.stored import is_still_right
from webhook.kube.pod import Pod

LEGACY, TODAY = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"


def choosing(**labels: str) -> Pod:
    return Pod({"spec": {"containers": [], "nodeSelector": labels}})


def test_a_legacy_label_that_is_translated_now_is_not_right() -> None:
    stored = choosing(**{LEGACY: "K80", TODAY: "K80"})
    made = choosing(**{TODAY: "K80"})
    assert not is_still_right(made, stored, Context())
    assert is_still_right(made, made, Context())
    assert is_still_right(stored, stored, Context())
