"""The container of today, held against the API server's own schema."""

from __future__ import annotations

from typing import Any

from tests.schema.openapi import stored
from webhook.kube.container_shape import CONTAINER
from webhook.kube.go_json import INT32, INT64, INT_OR_STRING, QUANTITY

_LEAVES = {"string": str, "int32": INT32, "int64": INT64, "boolean": bool}


def shape_of(schema: Any) -> Any:
    """The same shape, read from the schema."""
    if "allOf" in schema:
        return shape_of(schema["allOf"][0])
    if "$ref" in schema:
        return shape_of(stored()[schema["$ref"].rpartition("/")[2]])
    if "oneOf" in schema:
        return INT_OR_STRING if schema.get("format") == "int-or-string" else QUANTITY
    if schema["type"] == "array":
        return [shape_of(schema["items"])]
    if schema["type"] != "object":
        whole = schema["type"] == "integer"
        return _LEAVES[schema["format" if whole else "type"]]
    if "additionalProperties" in schema:
        return {"*": shape_of(schema["additionalProperties"])}
    return {name: shape_of(member) for name, member in schema["properties"].items()}


def test_it_is_the_container_of_the_api_server() -> None:
    assert shape_of(stored()["io.k8s.api.core.v1.Container"]) == CONTAINER
