"""Where GPU pods go: taints that they tolerate, and a label that sends them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from webhook.core import settings as core
from webhook.core.built_in import AUTOSCALER_TAINTS, UNTOLERABLE
from webhook.kube.labels import KEY, VALUE
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Section

_TAINT = rf"{KEY}(?:={VALUE})?:(?:NoSchedule|PreferNoSchedule|NoExecute)"
_OFF_LIMITS = "|".join((*UNTOLERABLE, *AUTOSCALER_TAINTS)).replace(".", r"\.")


def taint(text: str) -> core.Taint:
    """The taint that the text stands for."""
    label, _, effect = text.rpartition(":")
    key, _, value = label.partition("=")
    return core.Taint(key, value, effect)


def _may_be_tolerated(text: str) -> str:
    if taint(text).is_off_limits:
        raise v.refused(f"{text} says `not now`: GPU pods must never tolerate it; delete it")
    return text


_WHAT, _SUCH = "a taint, key=value:effect", "sku=gpu:NoSchedule"
_TOLERABLE = v.Text(_WHAT, rf"(?!{_OFF_LIMITS}){_TAINT}", _SUCH)
# As `kubectl taint` writes it.
Taint = Annotated[str, v.Text(_WHAT, _TAINT, _SUCH)]
TolerableTaint = Annotated[
    Taint, AfterValidator(_may_be_tolerated), WithJsonSchema(_TOLERABLE.json_schema())
]


class Tolerations(Section):
    """What GPU pods tolerate."""

    taints: Annotated[tuple[TolerableTaint, ...], v.NOT_TOO_MANY] = ()
    """Tolerated by GPU pods where a node of the inventory carries them."""


class Placement(Section):
    """Where GPU pods go by themselves."""

    CORE = core.Placement

    enabled: bool = DEFAULT.placement.enabled
    """Send GPU pods that name neither nodeSelector nor affinity to nodes with this label. The
    resource request places them well enough where nodes without GPUs are not in the way."""
    label: v.LabelKey = DEFAULT.placement.label
    """A label of every GPU node."""
    value: v.LabelValue = DEFAULT.placement.value
    """The label's value."""
