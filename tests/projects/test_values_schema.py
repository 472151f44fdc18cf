"""Amounts in values wait where the schema of their chart may refuse them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects.test_values import MADE, NEW, OLD, assert_all_wait, looked_at, pod, resources
from webhook.cli.workers import judge
from webhook.files.results import Plan

if TYPE_CHECKING:
    from pathlib import Path

NUMBER = {"type": "number"}


def of_limits(schema: Any) -> dict[str, Any]:
    return {"properties": {"resources": {"properties": {"limits": schema}}}}


# A schema of values with an amount, and the amount.
REFUSES = {
    "names by a pattern": (of_limits({"propertyNames": {"pattern": "^alpha"}}), 1),
    "no other names": (of_limits({"properties": {OLD: {}}, "additionalProperties": False}), 1),
    "a pattern of names": (of_limits({"patternProperties": {"^nvidia": {"type": "string"}}}), 1),
    "a pattern that is not known": (of_limits({"patternProperties": {"(?<n>a)\\p{L}": {}}}), 1),
    "a required name": (of_limits({"required": [OLD]}), 1),
    "a pattern of amounts": (
        of_limits({"additionalProperties": {"type": "string", "pattern": "m$"}}),
        '"500m"',
    ),
    "a list of amounts": (of_limits({"additionalProperties": {"enum": [0.5, 2]}}), 0.5),
    "another type": (of_limits({"properties": {NEW: {"type": "string"}}}), 1),
    "a false schema": (of_limits({"properties": {NEW: False}}), 1),
    "a reference": (of_limits({"$ref": "#/definitions/amounts"}), 1),
    "a reference above": ({"properties": {"resources": {"$ref": "https://example.org/r"}}}, 1),
    "a choice above": ({"anyOf": [of_limits({}), {}]}, 1),
}
REFUSES |= {
    "a reference to what refuses": (
        {**of_limits({"$ref": "#/definitions/a"}), "definitions": {"a": {"required": [OLD]}}},
        1,
    ),
    "a keyword beside a reference": (
        {**of_limits({"$ref": "#/$defs/a", "maxProperties": 1}), "$defs": {"a": {}}},
        1,
    ),
    "a reference to itself": ({"$ref": "#"}, 1),
    "a reference to a name": (of_limits({"$ref": "#amounts"}), 1),
    "a reference to a list": (
        {**of_limits({"$ref": "#/$defs/l/allOf/7"}), "$defs": {"l": {"allOf": [True]}}},
        1,
    ),
    "a reference in a schema with an address of its own": (
        of_limits({"$id": "https://example.org/a", "$ref": "#/properties"}),
        1,
    ),
    "one of all": (of_limits({"allOf": [{}, {"required": [OLD]}]}), 1),
    "two choices of an amount": (
        of_limits({"additionalProperties": {"anyOf": [{"type": "integer"}, {"enum": [1]}]}}),
        1,
    ),
    "no choice": (of_limits({"additionalProperties": {"oneOf": [{"type": "string"}, False]}}), 1),
    "a required member of another form": (of_limits({"required": True}), 1),
    "choices of another form": (of_limits({"anyOf": 1}), 1),
    "all of another form": (of_limits({"allOf": {}}), 1),
    "a type of another form": (of_limits({"additionalProperties": {"type": 1}}), 1),
    "no reference": (of_limits({"$ref": 1}), 1),
}
OF_KUBERNETES = (
    "https://raw.githubusercontent.com/yannh/kubernetes-json-schema/master/v1.30.0/_definitions.json"
    "#/definitions/io.k8s.api.core.v1.ResourceRequirements"
)
ALLOWS = {
    "a reference": (
        {
            **of_limits({"$ref": "#/$defs/a~1b"}),
            "$defs": {"a/b": {"additionalProperties": {"$ref": "#/$defs/n"}}, "n": NUMBER},
        },
        1,
    ),
    "a reference through a list": (
        {**of_limits({"$ref": "#/$defs/l/allOf/0"}), "$defs": {"l": {"allOf": [{}]}}},
        1,
    ),
    "the resources of Kubernetes": (
        {"properties": {"resources": {"$ref": OF_KUBERNETES}}},
        '"1"',
    ),
    "all of several": (of_limits({"allOf": [{"type": "object"}, True]}), 1),
    "the only choice for a map": (
        {"properties": {"resources": {"anyOf": [{"type": "null"}, {"type": "object"}]}}},
        1,
    ),
    "the only choice for an amount": (
        of_limits({"additionalProperties": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}),
        2,
    ),
    "empty schemas of other names": (
        {
            "additionalProperties": {},
            "properties": {
                "resources": {
                    "additionalProperties": {},
                    "properties": {"limits": {"additionalProperties": {}, "required": []}},
                }
            },
        },
        1,
    ),
    "any names": (of_limits({"type": "object"}), 1),
    "any names of a type": (of_limits({"additionalProperties": NUMBER}), 0.5),
    "an integer": (of_limits({"additionalProperties": {"type": "integer"}}), 2),
    "one of two types": (of_limits({"additionalProperties": {"type": ["string", "null"]}}), '"1"'),
    "both names": (
        of_limits({"properties": {OLD: {}, NEW: NUMBER}, "additionalProperties": False}),
        1,
    ),
    "a pattern of other names": (of_limits({"patternProperties": {"^cpu$": False}}), 1),
    "a schema of other values": ({"properties": {"name": {"enum": ["a"]}}}, 1),
    "a reference elsewhere": ({"properties": {"image": {"$ref": "#/definitions/i"}}}, 1),
    "everything": (True, 1),
}


def files(schema: Any, amount: object, folder: str = "") -> dict[str, str]:
    return {
        f"{folder}values.schema.json": json.dumps(schema),
        "values.yaml": resources(amount),
        "templates/p.yaml": pod(MADE),
    }


@pytest.mark.parametrize(("schema", "amount"), REFUSES.values(), ids=REFUSES)
def test_amounts_wait_for_a_schema_that_may_refuse_them(
    schema: Any, amount: object, tmp_path: Path
) -> None:
    given = files(schema, amount)
    assert_all_wait(tmp_path, given, "values.schema.json may refuse", "resources.limits")


@pytest.mark.parametrize(("schema", "amount"), ALLOWS.values(), ids=ALLOWS)
def test_amounts_are_renamed_where_the_schema_allows_them(
    schema: Any, amount: object, tmp_path: Path
) -> None:
    results = looked_at(tmp_path, files(schema, amount))
    assert NEW in (results["values.yaml"].new_text or "")


def test_a_whole_number_is_a_number_where_a_number_stood(tmp_path: Path) -> None:
    text = looked_at(tmp_path, {"values.yaml": resources(0.5)})["values.yaml"].new_text
    assert text == resources(1, name=NEW)


def test_the_schema_of_a_chart_inside_is_for_its_part_of_the_values(tmp_path: Path) -> None:
    schema = of_limits({"additionalProperties": False})
    inner = {"charts/s/Chart.yaml": "name: s\n", "charts/s/values.schema.json": json.dumps(schema)}
    given = "s:\n" + "".join(f"  {line}\n" for line in resources(1).splitlines())
    assert_all_wait(tmp_path, {**inner, "values.yaml": given}, "may refuse")


@pytest.mark.parametrize(
    ("member", "dependencies"),
    [
        pytest.param("s", "", id="by its name"),
        pytest.param("t", "dependencies: [{name: s, alias: t}]\n", id="by its alias"),
    ],
)
def test_the_schema_around_a_chart_is_for_its_values(
    member: str, dependencies: str, tmp_path: Path
) -> None:
    schema = {"properties": {member: of_limits({"propertyNames": {"pattern": "^alpha"}})}}
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: c\nversion: 0.1.0\n{dependencies}",
        "values.schema.json": json.dumps(schema),
        "charts/s/Chart.yaml": "name: s\n",
        "charts/s/values.yaml": resources(1),
        "charts/s/templates/p.yaml": pod(MADE),
    }
    assert_all_wait(tmp_path, files, "may refuse")


def test_amounts_wait_where_values_are_imported(tmp_path: Path) -> None:
    imports = "dependencies: [{name: s, import-values: [{child: resources, parent: r}]}]\n"
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: c\nversion: 0.1.0\n{imports}",
        "charts/s/Chart.yaml": "name: s\n",
        "charts/s/values.yaml": resources(1),
        "charts/s/templates/p.yaml": pod(MADE),
    }
    assert_all_wait(tmp_path, files, "Chart.yaml has import-values")


def test_values_outside_of_a_chart_that_imports_values_wait_with_it(tmp_path: Path) -> None:
    imports = "dependencies: [{name: s, import-values: [data]}]\n"
    files = {
        "c/Chart.yaml": f"apiVersion: v2\nname: c\nversion: 0.1.0\n{imports}",
        "c/values.yaml": resources(1),
        "c/templates/p.yaml": pod(MADE),
        "values-prod.yaml": resources(2),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    plan = Plan(named=(str(tmp_path),), below=True)
    for name in ("c/values.yaml", "values-prod.yaml"):
        result = judge(str(tmp_path / name), plan).result
        assert NEW not in (result.new_text or "")


def test_a_chart_inside_has_the_global_values_at_the_same_place(tmp_path: Path) -> None:
    schema = {"properties": {"global": of_limits({"propertyNames": {"pattern": "^alpha"}})}}
    inner = {"charts/s/Chart.yaml": "name: s\n", "charts/s/values.schema.json": json.dumps(schema)}
    given = "global:\n" + "".join(f"  {line}\n" for line in resources(1).splitlines())
    assert_all_wait(tmp_path, {**inner, "values.yaml": given}, "may refuse")


def test_a_schema_that_is_no_json_holds_nothing(tmp_path: Path) -> None:
    given = {**files({}, 1), "values.schema.json": "{"}
    assert NEW in (looked_at(tmp_path, given)["values.yaml"].new_text or "")
