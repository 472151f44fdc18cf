"""JSON as Go reads it into a type."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.kube.go_json import INT32, INT64, INT_OR_STRING, QUANTITY, Mistake, loads, read

INT32_WANTED = "it must be a whole number (int32)"


def reading(text: str, shape: Any) -> tuple[Any, list[str]]:
    unknown: list[str] = []
    value = read(loads(text), shape, "it", lambda where, key: unknown.append(f"{where}.{key}"))
    return value, unknown


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        pytest.param('{"Name": "a"}', {"name": str}, {"name": "a"}, id="names in any case"),
        pytest.param(
            '{"\u017f\u212a": "a"}', {"sk": str}, {"sk": "a"}, id="the long s and the Kelvin sign"
        ),
        pytest.param('{"name": null}', {"name": str}, {}, id="null is as good as nothing"),
        pytest.param("[null]", [str], [""], id="a null in a list of texts is an empty one"),
        pytest.param("[null]", [INT32], [0], id="a null in a list of numbers is zero"),
        pytest.param("[null]", [{"name": str}], [{}], id="a null in a list of objects"),
        pytest.param("[null]", [[str]], [[]], id="a null in a list of lists"),
        pytest.param('{"a": null}', {"*": QUANTITY}, {"a": "0"}, id="a null amount is 0"),
        pytest.param('{"a": "1Gi"}', {"*": QUANTITY}, {"a": "1Gi"}, id="an amount as a text"),
        pytest.param('{"a": 0.5}', {"*": QUANTITY}, {"a": 0.5}, id="an amount as a number"),
        pytest.param(f"{2**64}", QUANTITY, 2**64, id="an amount has as many digits as it likes"),
        pytest.param("true", bool, True, id="true"),
        pytest.param(f"[{2**31 - 1}, {-(2**31)}]", [INT32], [2**31 - 1, -(2**31)], id="an int32"),
        pytest.param(f"[{2**63 - 1}, {-(2**63)}]", [INT64], [2**63 - 1, -(2**63)], id="an int64"),
        pytest.param("80", INT_OR_STRING, 80, id="a port by number"),
        pytest.param('"http"', INT_OR_STRING, "http", id="a port by name"),
        pytest.param('"\\ud83d"', str, "\ufffd", id="half of a surrogate pair"),
    ],
)
def test_what_fits(text: str, shape: Any, expected: Any) -> None:
    assert reading(text, shape) == (expected, [])


@pytest.mark.parametrize(
    ("text", "shape", "why"),
    [
        pytest.param("[", [str], "it is not JSON (", id="no JSON"),
        pytest.param("[" * 100_000, [str], "it is not JSON (too deeply nested)", id="too deep"),
        pytest.param("NaN", INT32, "it is not JSON (NaN is not JSON)", id="NaN"),
        pytest.param('{"a":1,"a":1}', {}, "it is not JSON (a member occurs twice)", id="twice"),
        pytest.param(
            '{"a": 1, "A": 1}', {"a": INT32}, "it.a occurs twice", id="twice, in another case"
        ),
        pytest.param("1", str, "it must be a text", id="a number for a text"),
        pytest.param("1.0", INT32, INT32_WANTED, id="a float for an integer"),
        pytest.param("true", INT64, "it must be a whole number (int64)", id="true is no number"),
        pytest.param(f"{2**31}", INT32, INT32_WANTED, id="above an int32"),
        pytest.param(f"{-(2**31) - 1}", INT32, INT32_WANTED, id="below an int32"),
        pytest.param(f"{2**63}", INT64, "it must be a whole number (int64)", id="above an int64"),
        pytest.param(f"{2**31}", INT_OR_STRING, "it must be a text or", id="no port at all"),
        pytest.param('"much"', QUANTITY, "it must be an amount", id="a text that is no amount"),
        pytest.param('""', QUANTITY, "it must be an amount", id="an empty text is no amount"),
        pytest.param("1e400", QUANTITY, "it must be an amount", id="more than a float can be"),
        pytest.param("1", bool, "it must be true or false", id="one is not true"),
        pytest.param("true", QUANTITY, "it must be an amount", id="true is no amount"),
        pytest.param(
            "1.5", INT_OR_STRING, "it must be a text or a whole number (int32)", id="half a port"
        ),
        pytest.param("{}", [str], "it must be a list", id="an object for a list"),
        pytest.param("[]", {"a": str}, "it must be an object", id="a list for an object"),
    ],
)
def test_what_does_not_fit(text: str, shape: Any, why: str) -> None:
    with pytest.raises(Mistake) as raised:
        reading(text, shape)
    assert str(raised.value).startswith(why)


def test_whoever_reads_is_told_of_members_that_the_type_does_not_have() -> None:
    value, unknown = reading('{"a": {"b": 1, "c": 2}, "d": 3}', {"a": {"c": INT32}})
    assert value == {"a": {"c": 2}}
    assert unknown == ["it.a.b", "it.d"]
