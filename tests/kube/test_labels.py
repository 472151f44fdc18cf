"""Label keys, label values and names, by the rules of apimachinery; and GFD's way to make them."""

from __future__ import annotations

import pytest

from webhook.kube import labels

VALUES = [
    pytest.param("Tesla-K80", True, id="a product of GPU Feature Discovery"),
    pytest.param("", True, id="the empty value"),
    pytest.param("a", True, id="one letter"),
    pytest.param("0", True, id="one digit"),
    pytest.param("a.b_c-d", True, id="dots, underscores and dashes inside"),
    pytest.param("a" * 63, True, id="63 characters"),
    pytest.param("a" * 64, False, id="64 characters"),
    pytest.param("Tesla K80", False, id="a blank"),
    pytest.param("-a", False, id="a dash at the front"),
    pytest.param("a-", False, id="a dash at the end"),
    pytest.param(".a", False, id="a dot at the front"),
    pytest.param("a_", False, id="an underscore at the end"),
    pytest.param("a/b", False, id="a slash"),
    pytest.param("é", False, id="a letter beyond ASCII"),
    pytest.param("a\n", False, id="a line end"),
    pytest.param("٣", False, id="a digit of another script"),
    pytest.param(1, False, id="a number"),
    pytest.param(None, False, id="null"),
]


@pytest.mark.parametrize(("value", "legal"), VALUES)
def test_label_values(value: object, *, legal: bool) -> None:
    assert labels.is_value(value) is legal


@pytest.mark.parametrize(
    ("key", "legal"),
    [
        pytest.param("nvidia.com/gpu.product", True, id="a prefix and a name"),
        pytest.param("accelerator", True, id="a name alone"),
        pytest.param("a" * 63, True, id="a name of 63 characters"),
        pytest.param("a" * 64, False, id="a name of 64 characters"),
        pytest.param("p/" + "a" * 64, False, id="a name of 64 characters after a prefix"),
        pytest.param(".".join(["a" * 62] * 4) + "a/b", True, id="a prefix of 252 characters"),
        pytest.param(".".join(["a" * 62] * 4) + "aa/b", True, id="a prefix of 253 characters"),
        pytest.param(".".join(["a" * 62] * 4) + "aaa/b", False, id="a prefix of 254 characters"),
        pytest.param("", False, id="nothing"),
        pytest.param("/a", False, id="an empty prefix"),
        pytest.param("a/", False, id="an empty name"),
        pytest.param("a/b/c", False, id="two slashes"),
        pytest.param("A/b", False, id="a capital in the prefix"),
        pytest.param("a..b/c", False, id="an empty part of the prefix"),
        pytest.param("a b", False, id="a blank"),
        pytest.param("-a", False, id="a dash at the front"),
        pytest.param(None, False, id="null"),
        pytest.param(["a"], False, id="a list"),
    ],
)
def test_label_keys(key: object, *, legal: bool) -> None:
    assert labels.is_key(key) is legal


@pytest.mark.parametrize(
    ("name", "label", "subdomain"),
    [
        pytest.param("default", True, True, id="a word"),
        pytest.param("a-1", True, True, id="a dash inside"),
        pytest.param("a.b", False, True, id="a dot"),
        pytest.param("a" * 63, True, True, id="63 characters"),
        pytest.param("a" * 64, False, True, id="64 characters"),
        pytest.param("a" * 253, False, True, id="253 characters"),
        pytest.param("a" * 254, False, False, id="254 characters"),
        pytest.param("A", False, False, id="a capital"),
        pytest.param("a-", False, False, id="a dash at the end"),
        pytest.param("a.-b", False, False, id="a part that begins with a dash"),
        pytest.param("", False, False, id="nothing"),
        pytest.param(None, False, False, id="null"),
    ],
)
def test_names(name: object, *, label: bool, subdomain: bool) -> None:
    assert labels.is_dns_label(name) is label
    assert labels.is_subdomain(name) is subdomain


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("Tesla K80", "Tesla-K80", id="a blank becomes a dash"),
        pytest.param("Tesla \t K80", "Tesla-K80", id="a run of blanks becomes one dash"),
        pytest.param("NVIDIA TITAN X (Pascal)", "NVIDIA-TITAN-X-Pascal", id="GFD's own case"),
        pytest.param("  Tesla K80  ", "Tesla-K80", id="blanks at the ends go"),
        pytest.param("-Tesla_", "Tesla", id="what may not stand at the ends goes"),
        pytest.param("GTX/1080", "GTX1080", id="a forbidden character goes"),
        pytest.param("é", "unknown", id="nothing is left"),
        pytest.param("", "unknown", id="nothing was there"),
        pytest.param("---", "unknown", id="only dashes"),
        pytest.param("a" * 64, "a" * 63, id="cut at 63 characters"),
        pytest.param("a" * 62 + "-b", "a" * 62, id="no dash at the end after the cut"),
        pytest.param("-" + "a" * 63, "a" * 63, id="the front goes before the cut"),
    ],
)
def test_a_name_is_sanitised_as_gpu_feature_discovery_does(name: str, value: str) -> None:
    assert labels.sanitised(name) == value
    assert labels.is_value(value)
