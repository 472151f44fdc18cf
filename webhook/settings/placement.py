"""Where GPU pods go: taints that they tolerate, and a label that sends them."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, GetJsonSchemaHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError, core_schema

from webhook.core import settings as core
from webhook.core.built_in import AUTOSCALER_TAINTS, UNTOLERABLE
from webhook.settings import values as v
from webhook.settings.maps import DEFAULT, Map, Section

_TAINT = rf"({v.KEY})(?:=({v.VALUE}))?:(NoSchedule|PreferNoSchedule|NoExecute)"
_OFF_LIMITS = "|".join((*UNTOLERABLE, *AUTOSCALER_TAINTS)).replace(".", r"\.")


class Taint(Map, title="a taint"):
    """A taint, as `kubectl taint` writes it or as a map."""

    key: v.LabelKey = Field(examples=["sku"])
    """The taint's key."""
    value: v.LabelValue = ""
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """The taint's effect."""

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return value
        if not isinstance(value, str) or not (found := re.fullmatch(_TAINT, value)):
            raise PydanticCustomError("taint", "is no taint")
        return dict(zip(("key", "value", "effect"), found.groups(""), strict=True))

    @model_serializer
    def _as_text(self) -> str:
        return str(self.to_core())

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> v.Schema:
        record = super().__get_pydantic_json_schema__(schema, handler)
        text = {"type": "string", "pattern": f"^(?:{_TAINT})$"}
        words = "must be a taint, key=value:effect, as sku=gpu:NoSchedule"
        return {"anyOf": [text, record], "errorMessage": words}

    def to_core(self) -> core.Taint:
        return core.Taint(self.key, self.value, self.effect)


class TolerableTaint(Taint, title="a taint"):
    """A taint that GPU pods may tolerate, or the name of a ready-made one."""

    @model_validator(mode="before")
    @classmethod
    def _of_name(cls, value: Any) -> Any:
        found = core.READY_MADE_TAINTS.get(value) if isinstance(value, str) else None
        return str(found) if found else value

    @model_validator(mode="after")
    def _may_be_tolerated(self) -> Self:
        taint = self.to_core()
        if taint.is_off_limits:
            raise v.refused(f"{taint} says `not now`: GPU pods must never tolerate it; delete it")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> v.Schema:
        made = super().__get_pydantic_json_schema__(schema, handler)
        text, record = made["anyOf"]
        for each in (text, record["properties"]["key"]):
            each["pattern"] = f"^(?!{_OFF_LIMITS}){each['pattern'][1:]}"
        names = list(core.READY_MADE_TAINTS)
        made["anyOf"] = [{"enum": names}, text, record]
        made["errorMessage"] += f", or {', '.join(names)}"
        return made


class Tolerations(Section):
    """What GPU pods tolerate."""

    taints: Annotated[tuple[TolerableTaint, ...], v.NOT_TOO_MANY] = ()
    """Tolerated by GPU pods where a node of the inventory carries them. aks-sku is
    sku=gpu:NoSchedule."""


class Placement(Section):
    """Where GPU pods go by themselves."""

    enabled: bool = DEFAULT.placement.enabled
    """Send GPU pods that name neither nodeSelector nor affinity to nodes with this label. The
    resource request places them well enough where nodes without GPUs are not in the way."""
    label: v.LabelKey = DEFAULT.placement.label
    """A label of every GPU node."""
    value: v.LabelValue = DEFAULT.placement.value
    """The label's value."""

    def to_core(self) -> core.Placement:
        return core.Placement(self.enabled, self.label, self.value)
