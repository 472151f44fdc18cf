"""The base of all maps in the settings file, and their JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema, to_jsonable_python

from webhook.core.settings import Settings
from webhook.settings.nodes import NOTHING

if TYPE_CHECKING:
    from webhook.settings.values import Schema

DEFAULT = Settings()


class Map(BaseModel):
    """A map with known names. The title of a list item is its noun, such as `a pool`."""

    CORE: ClassVar[Any]  # the class of the same settings for rules

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        use_attribute_docstrings=True,
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        made = handler.resolve_ref_schema(handler(schema))
        for each in (made, *made["properties"].values()):
            if "description" in each:
                each["description"] = " ".join(each["description"].split())
        return made

    def to_core(self) -> Any:
        """The same for rules; what is left out has its default there."""
        made = {name: _for_rules(value) for name, value in self if value is not None}
        return self.CORE(**made)


def _for_rules(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_for_rules, value))
    return value.to_core() if isinstance(value, Map) else value


class Section(Map):
    """A map with a fixed place in the file; null stands for an empty one."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: Any) -> Any:
        return {} if value is NOTHING else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> Schema:
        made = super().__get_pydantic_json_schema__(schema, handler)
        made["type"] = ["object", "null"]
        return made


class Generator(GenerateJsonSchema):
    """JSON Schema (draft 2020-12) of the file; the schema of pydantic describes a Python object."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """No titles from names."""
        del schema
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        """None stands for a missing setting, and is never written."""
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        """None is not shown as a default."""
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made

    def encode_default(self, dft: Any) -> Any:
        """The default as it is written in the file."""
        return to_jsonable_python(dft, by_alias=True, exclude_none=True)

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        """Every name must match: the patternProperties of pydantic allow other names."""
        made: Schema = {
            "type": "object",
            "propertyNames": self.generate_inner(schema["keys_schema"]),
            "additionalProperties": self.generate_inner(schema["values_schema"]),
        }
        return made | ({"minProperties": schema["min_length"]} if "min_length" in schema else {})
