"""Finds kubelet flags and feature gates of the first GPU support.

Why: `--experimental-nvidia-gpus` was removed in 1.6, the gate `Accelerators` in 1.11, the gate
`DevicePlugins` in 1.28. A kubelet that is started with one of them exits at once ("unknown flag",
"unrecognized feature gate"), and the node goes down with all its pods.

Does: changes nothing. It reports what to delete, wherever a manifest has such a flag: in arguments,
in the text of a ConfigMap, in `featureGates` of a kubelet configuration.

Safety: manual: change the configuration of the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context, Facts, Stage
from webhook.core.text_patterns import GET_PLUGIN, Pattern, find
from webhook.kube.pointer import ROOT
from webhook.kube.walk import walk

if TYPE_CHECKING:
    from collections.abc import Iterator


NAME = "removed-kubelet-flag"
CODE = "GPU131"
_IS_SET = r"['\"]?\s{0,8}[=:]\s{0,8}['\"]?(?i:true|false)\b"  # in any language

FACTS = Facts(
    Stage.MANIFEST,
    words=("nvidia", "Accelerators", "DevicePlugins"),
    patterns=(
        Pattern(
            "gpu-flag",
            r"(?:--)?\bexperimental-nvidia-gpus?\b(?:=\d+)?",
            "a kubelet of 1.6 or later does not start with it",
            "delete it, and " + GET_PLUGIN,
            words=("experimental-nvidia-gpu",),
        ),
        Pattern(
            "accelerators-gate",
            rf"\bAccelerators{_IS_SET}",
            "a kubelet of 1.11 or later does not start with this gate",
            "delete it, and " + GET_PLUGIN,
            words=("Accelerators",),
        ),
        Pattern(
            "device-plugins-gate",
            rf"\bDevicePlugins{_IS_SET}",
            "a kubelet of 1.28 or later does not start with this gate",
            "delete it: it is always on",
            words=("DevicePlugins",),
        ),
    ),
)

_METADATA = (ROOT / "metadata",)
_FLAG, _GATES = "experimental-nvidia-gpus", ("Accelerators", "DevicePlugins")


def check(obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
    for at, value in walk(obj, without=_METADATA):
        # A member of featureGates, or of kubeadm's kubeletExtraArgs, reads like the flag itself.
        name = at[-1] if at else ""
        is_member = name == _FLAG or (name in _GATES and isinstance(value, bool | str))
        text = f"{name}: {str(value).lower()}" if is_member else value
        if isinstance(text, str) and any(map(text.__contains__, FACTS.words)):
            found = find(text, FACTS.patterns, cx.settings)
            said = {match.pattern.name: match.message for match in found}
            for message in said.values():
                yield Finding(CODE, at, message, severity=Severity.MANUAL)
