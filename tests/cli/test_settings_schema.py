"""The JSON Schema and the reader agree on every file, good or bad."""

from __future__ import annotations

import contextlib
import json
import re
from functools import cache
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from webhook.core.settings import Settings
from webhook.kube import labels
from webhook.rules import ALL
from webhook.settings import file as settings_file
from webhook.settings import values as v
from webhook.settings.schema import ID, all_settings, at, schema

SCHEMA = schema()
LEAVES = {".".join(map(str, place)): part for place, part in all_settings()}
ITEMS: dict[str, Any] = {
    "drivers.hostPath.mounts": {"path": "/usr/lib/nvidia-375", "mountPath": "/usr/lib/nvidia"},
    "policy.overrides": {"namespaces": ["team-*"], "percent": 25, "mode": "audit"},
    "policy.exceptions": {"rules": ["GPU301"], "namespaces": ["ml-*"]},
    "capacity.pools": {"name": "a100", "gpus": {"nvidia.com/gpu": 8}, "nodes": 20},
    "capacity.limits": {"namespaces": ["students-*"], "gpus": {"nvidia.com/gpu": 1}},
    "guard.exempt": {"namespaces": ["gpu-operator"], "labels": {"app": "dcgm-exporter"}},
    "workloads.kinds": {"kind": "TFJob", "templates": ["/spec/tfReplicaSpecs/*/template"]},
}
# Not to be said in JSON Schema: these look at what stands elsewhere in the file.
BEYOND = (
    "is no GPU by resources.gpus",
    "cannot be both legacy and what",
    "is already the mountPath of another mount",
)
JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 8.0, 10**20, "", " ", "*", "a*b", "off", "8", "x" * 64),
    *("/a/../b", "a/b/c", "x" * 260, "a\n", "Ü", "~", "true", "sku=gpu:NoSchedule", "a:b"),
    *([], [None], ["a b"], [[]], [{}], {}, {"x": 1}, {"a b": "c"}, {"nvidia.com/gpu": 1}),
)


def _pattern(
    _: object, pattern: str, instance: object, __: object
) -> Any:  # pragma: no cover - called by jsonschema
    """`pattern` by ECMA-262, where $ is the very end; in Python it may stand before a newline."""
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


VALIDATOR = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": _pattern})(
    SCHEMA
)


def text_of(data: object) -> str:
    """The data as a file: JSON is YAML, and says of each value what it is."""
    return json.dumps(data, indent=1)


def refused(data: object) -> list[str]:
    """What the reader says of the data, but for what no schema can say."""
    try:
        settings_file.parse(text_of(data))
    except settings_file.MistakesError as error:
        return [
            each.what for each in error.mistakes if not any(words in each.what for words in BEYOND)
        ]
    return []


def assert_agreed(data: object) -> None:
    said = refused(data)
    errors = [each.message for each in VALIDATOR.iter_errors(data)]
    assert bool(said) == bool(errors), (data, said, errors)


def nested(name: str, value: object) -> Any:
    """The value under a dotted name."""
    for part in reversed(name.split(".")):
        value = {part: value}
    return value


def test_it_is_a_schema_of_draft_2020_12() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["$id"] == ID


def plain(settings: str) -> Any:
    """The whole settings that this text gives, as a file that leaves nothing out."""
    written: dict[str, Any] = {}
    read = settings_file.read_text(settings, "")
    for place, _ in all_settings():
        here = written
        *sections, last = map(str, place)
        for name in sections:
            here = here.setdefault(name, {})
        if (value := read.value(place)) is not None:
            here[last] = value
    return written


MAPS = {
    name: part
    for name, part in {"": SCHEMA, **SCHEMA["$defs"]}.items()
    if "properties" in part and "propertyNames" not in part
}


def test_every_member_says_what_it_is() -> None:
    assert len(MAPS) > 15
    for part in MAPS.values():
        assert part["description"]
        for name, member in part["properties"].items():
            assert "$ref" in member or member["description"], name
    rules = LEAVES["policy.rules"]["properties"]
    assert len(rules) > len(ALL)
    assert all(each["title"].startswith("GPU") for each in rules.values())


def test_every_map_is_closed() -> None:
    assert {part["additionalProperties"] for part in MAPS.values()} == {False}


def test_defaults_are_those_of_the_program() -> None:
    assert settings_file.parse("") == Settings()
    assert settings_file.parse(text_of(plain(""))) == Settings()
    assert LEAVES["models.profile"]["default"] == Settings().models.profile
    unset = {name for name, part in LEAVES.items() if "default" not in part}
    assert unset == {
        "models.label",
        "drivers.hostPath.libraryPath",
        "drivers.runtimeClass",
        "policy.mode",
    }


def test_patterns_are_ones_that_editors_understand() -> None:
    """ECMA-262 with the flag u: no groups with names, nothing escaped that needs it not."""
    patterns = set(re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(SCHEMA)))
    assert len(patterns) > 10
    for pattern in map(json.loads, patterns):
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        assert not re.search(r"\(\?(?![:=!])", pattern), pattern
        assert not re.search(r"\\(?![.*x/])", pattern), pattern


@pytest.mark.parametrize("name", [name for name, part in LEAVES.items() if "examples" in part])
def test_an_example_is_legal(name: str) -> None:
    assert_legal(nested(name, LEAVES[name]["examples"][0]))


@pytest.mark.parametrize("name", ITEMS)
def test_an_example_of_an_item_is_legal(name: str) -> None:
    item = at((*name.split("."), 0))
    needed = {each: item["properties"][each] for each in item.get("required", ())}
    assert_legal(nested(name, [ITEMS[name]]))
    for each, part in needed.items():
        assert_legal(nested(name, [ITEMS[name] | {each: part["examples"][0]}]))


def assert_legal(data: Any) -> None:
    assert refused(data) == []
    assert_agreed(data)
    settings = settings_file.parse(text_of(data))
    assert settings_file.parse(text_of(plain(text_of(data)))) == settings


@pytest.mark.parametrize("name", LEAVES)
def test_they_agree_on_every_kind_of_value(name: str) -> None:
    for junk in JUNK:
        assert_agreed(nested(name, junk))


@pytest.mark.parametrize(
    ("name", "member"),
    [
        pytest.param(name, member, id=f"{name}[].{member}")
        for name in ITEMS
        for member in at((*name.split("."), 0))["properties"]
    ],
)
def test_they_agree_on_every_kind_of_value_within_an_item(name: str, member: str) -> None:
    for value in JUNK:
        assert_agreed(nested(name, [ITEMS[name] | {member: value}]))


NOT_EMPTY: dict[tuple[str, str], Any] = {
    (name, member): [] if "minItems" in part else {}
    for name in ITEMS
    for member, part in at((*name.split("."), 0))["properties"].items()
    if {"minItems", "minProperties"} & part.keys()
}


def test_an_entry_has_no_list_or_map_that_is_empty_for_nothing() -> None:
    """Of the others, nothing in it says what leaving it out says."""
    assert {f"{name}[].{member}" for name, member in NOT_EMPTY} == {
        *(f"policy.overrides[].{member}" for member in ("namespaces", "labels", "rules")),
        *(f"policy.exceptions[].{member}" for member in ("namespaces", "labels", "rules")),
        *(f"capacity.limits[].{member}" for member in ("namespaces", "labels", "gpus")),
        *(f"guard.exempt[].{member}" for member in ("namespaces", "labels")),
        "capacity.pools[].gpus",
        "workloads.kinds[].templates",
    }


@pytest.mark.parametrize(
    ("name", "member"), [pytest.param(*each, id="[].".join(each)) for each in NOT_EMPTY]
)
@pytest.mark.parametrize("least", [False, True], ids=["with others", "with what is needed"])
def test_what_to_do_about_an_empty_list_or_map_is_true(
    name: str, member: str, *, least: bool
) -> None:
    """Done as it is said, there is no next mistake."""
    needed = at((*name.split("."), 0)).get("required", ())
    rest = {
        each: value
        for each, value in ITEMS[name].items()
        if each != member and (each in needed or not least)
    }
    (said,) = refused(nested(name, [{**rest, member: NOT_EMPTY[name, member]}]))
    if said == f"must name at least one, or be left out: delete {member}":
        assert refused(nested(name, [rest])) == []
    else:
        assert said.startswith("must name at least one")
        assert ", or delete the " in said
        assert refused(nested(name, [rest])) != []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="an empty file"),
        pytest.param({}, id="an empty map"),
        pytest.param([], id="a list"),
        pytest.param({"models": None, "policy": None}, id="empty sections"),
        pytest.param({"policy": {"rules": None}}, id="rules without anything"),
        pytest.param({"policy": {"rules": {"GPU301": "off", "never-fits": "off"}}}, id="twice"),
        pytest.param({"policy": {"rules": {"gpu301": "off"}}}, id="a code in small letters"),
        pytest.param({"policy": {"overrides": [{"percent": 5}]}}, id="an override of nothing"),
        pytest.param({"policy": {"exceptions": [{"rules": ["GPU101"]}]}}, id="no GPU3xx"),
        pytest.param({"policy": {"exceptions": [{"namespaces": ["a"]}]}}, id="no rules"),
        pytest.param({"drivers": {"profile": "host-path"}}, id="host-path without mounts"),
        pytest.param(
            {"drivers": {"profile": "host-path", "hostPath": None}}, id="host-path with nothing"
        ),
        pytest.param(
            {"drivers": {"profile": "host-path", "hostPath": {"mounts": []}}}, id="an empty list"
        ),
        pytest.param(
            {
                "drivers": {
                    "profile": "host-path",
                    "hostPath": {"mounts": [{"path": "/a", "mountPath": "/b"}]},
                }
            },
            id="host-path with a mount",
        ),
        pytest.param({"drivers": {"profile": "runtime-class"}}, id="no runtimeClass"),
        pytest.param({"guard": {"exempt": [{}]}}, id="an exemption of everything"),
        pytest.param({"guard": {"exempt": []}}, id="no exemption"),
        pytest.param({"workloads": {"kinds": [{"kind": "PyTorchJob"}]}}, id="a known kind"),
        pytest.param({"workloads": {"kinds": [{"kind": "Foo"}]}}, id="an unknown kind"),
        pytest.param(
            {"workloads": {"kinds": [{"kind": "TFJob", "group": "a.b"}]}}, id="another group"
        ),
        pytest.param(
            {"tolerations": {"taints": ["node.kubernetes.io/not-ready:NoExecute"]}}, id="off limits"
        ),
        pytest.param(
            {"tolerations": {"taints": ["karpenter.sh/disrupted:NoExecute"]}}, id="and another"
        ),
        pytest.param(
            {
                "capacity": {
                    "pools": [
                        {
                            "name": "a",
                            "gpus": {"nvidia.com/gpu": 1},
                            "taints": ["karpenter.sh/disrupted:NoSchedule", "a/b:NoExecute"],
                        }
                    ]
                }
            },
            id="taints of a pool",
        ),
        pytest.param({"capacity": {"limits": [{"gpus": {"nvidia.com/gpu": 0}}]}}, id="none at all"),
        pytest.param(
            {"capacity": {"pools": [{"name": "a", "gpus": {"nvidia.com/gpu": 0}}]}}, id="no GPUs"
        ),
    ],
)
def test_they_agree_on(data: object) -> None:
    assert_agreed(data)


def values(part: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that the schema allows, but for what `allOf` asks of them together."""
    if "$ref" in part:
        return values(SCHEMA["$defs"][part["$ref"].rpartition("/")[2]])
    if "enum" in part:
        return st.sampled_from(part["enum"])
    if "anyOf" in part and "type" not in part:
        return st.one_of(*map(values, part["anyOf"]))
    match part["type"]:
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(part["minimum"], part["maximum"])
        case "string":
            return texts(part["pattern"])
        case "array":
            least = part.get("minItems", 0)
            return st.lists(values(part["items"]), min_size=least, max_size=least + 2)
        case _:
            return maps_of(part)


@cache
def texts(pattern: str) -> st.SearchStrategy[str]:
    plane = st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"])
    return st.from_regex(re.sub(r"\$$", r"\\Z", pattern), alphabet=plane)


def maps_of(part: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    least = part.get("minProperties", 0)
    if "propertyNames" in part and "properties" not in part:
        names, each = values(part["propertyNames"]), values(part["additionalProperties"])
        return st.dictionaries(names, each, min_size=least, max_size=least + 2)
    known = {name: values(each) for name, each in part["properties"].items()}
    needed = {name: known.pop(name) for name in part.get("required", ())}
    # A few at a time: a file with everything in it is slow to draw and says no more.
    few = st.lists(st.sampled_from(sorted(known)), unique=True, max_size=3)
    return few.flatmap(
        lambda names: st.fixed_dictionaries(needed | {name: known[name] for name in names})
    )


FILES = values(SCHEMA)


@given(FILES)
def test_they_agree_on_what_the_schema_draws_and_show_writes_it_back(data: Any) -> None:
    assert_agreed(data)
    with contextlib.suppress(settings_file.MistakesError):
        settings = settings_file.parse(text_of(data))
        assert settings_file.parse(text_of(plain(text_of(data)))) == settings


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every map and list within, with each of its names or positions."""
    match data:
        case dict():
            own: list[Any] = list(data)
        case list():
            own = list(range(len(data)))
        case _:
            return []
    return [(data, name) for name in own] + [place for name in own for place in places(data[name])]


@given(FILES.filter(bool), st.data())
def test_they_agree_on_files_with_something_changed(data: Any, draw: st.DataObject) -> None:
    data = json.loads(json.dumps(data))
    holder, name = draw.draw(st.sampled_from(places(data)))
    match draw.draw(st.sampled_from(("replaced", "gone", "another name", "one more"))):
        case "replaced":
            holder[name] = draw.draw(st.sampled_from(JUNK))
        case "gone":
            del holder[name]
        case "another name" if isinstance(holder, dict):
            holder[f"{name}s"] = holder.pop(name)
        case _:
            data["policies"] = {}
    assert_agreed(data)


WORDS = st.text(alphabet="aZ0-_./*=: é\n", max_size=12)
LONG = st.builds(
    lambda prefix, name: f"{'a' * prefix}{'/' if prefix else ''}{'b' * name}",
    st.sampled_from((0, 1, 244, 245, 252, 253, 254)),
    st.sampled_from((0, 1, 62, 63, 64)),
)


@given(WORDS | LONG)
def test_patterns_say_what_kubernetes_says(text: str) -> None:
    def fits(kind: Any) -> bool:
        with contextlib.suppress(ValidationError):
            return bool(TypeAdapter(kind).validate_python(text, strict=True) == text)
        return False

    assert fits(v.LabelKey) == labels.is_key(text)
    assert fits(v.LabelValue) == labels.is_value(text)
    assert fits(v.ObjectName) == labels.is_subdomain(text)
    stem = f"{text[:-1]}x" if text.endswith("*") else text
    assert fits(v.TaintKeys) == (labels.is_key(stem) and text != "*")
    assert fits(v.Resources) == (labels.is_key(stem) and "/" in text)
    assert fits(v.Resource) == (labels.is_key(text) and "/" in text)
    assert fits(v.ExtendedResource) == (
        labels.is_key(f"requests.{text}")
        and "/" in text
        and "kubernetes.io/" not in text
        and not text.startswith("requests.")
    )
