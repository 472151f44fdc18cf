"""Flags, their environment variables, and where a value came from."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from webhook.cli.environment import Flag, Origin, flag, flags

DEFAULT, ENVIRONMENT, FLAG = Origin.DEFAULT, Origin.ENVIRONMENT, Origin.FLAG


def command() -> argparse.ArgumentParser:
    """A command with every sort of flag that there is."""
    top = argparse.ArgumentParser(prog="top")
    serve = top.add_subparsers().add_parser("serve")
    flag(serve, "--bind", metavar="ADDRESS", help="where to listen")
    flag(serve, "--workers", metavar="N", type=int, default=2, help="100 %% (default: %(default)s)")
    flag(serve, "--dev", action="store_true")
    flag(serve, "-o", "--output", choices=("text", "json"), default="text")
    flag(serve, "--tls-cert-file", default="/tls.crt")
    flag(serve, "--share", type=share, default=0.5)
    flag(serve, "--rule", action="append")
    flag(serve, "--most", type=share, action="append")
    nodes = serve.add_mutually_exclusive_group()
    flag(nodes, "--inventory", rival="snapshot")
    flag(nodes, "--snapshot", rival="inventory")
    return top


def share(text: str) -> float:
    value = float(text)
    if value > 1:
        raise argparse.ArgumentTypeError("a share is at most 1")
    return value


def given(words: list[str]) -> dict[str, tuple[Any, Origin]]:
    """Value and origin of each flag that has not its default."""
    found = flags(command().parse_args(["serve", *words]))
    return {each.name: (each.value, each.origin) for each in found if each.origin is not DEFAULT}


@pytest.mark.parametrize(
    ("environment", "words", "expected"),
    [
        pytest.param({}, [], {}, id="nothing is said: all defaults"),
        pytest.param(
            {"BIND": ":1"}, [], {"--bind": (":1", ENVIRONMENT)}, id="a variable stands in"
        ),
        pytest.param(
            {"BIND": ":1"}, ["--bind", ":2"], {"--bind": (":2", FLAG)}, id="the flag wins"
        ),
        pytest.param(
            {"WORKERS": "7"}, [], {"--workers": (7, ENVIRONMENT)}, id="a variable has a type"
        ),
        pytest.param(
            {"WORKERS": "7"}, ["--workers", "3"], {"--workers": (3, FLAG)}, id="so has the flag"
        ),
        pytest.param(
            {"WORKERS": "many"},
            ["--workers", "3"],
            {"--workers": (3, FLAG)},
            id="a bad variable is not looked at where the flag wins",
        ),
        pytest.param({}, ["--workers", "2"], {"--workers": (2, FLAG)}, id="the default, but said"),
        pytest.param({"BIND": ""}, [], {}, id="an empty variable is not set"),
        pytest.param({"DEV": "TRUE"}, [], {"--dev": (True, ENVIRONMENT)}, id="a switch is on"),
        pytest.param({"DEV": "0"}, [], {"--dev": (False, ENVIRONMENT)}, id="a switch is off"),
        pytest.param({}, ["--dev"], {"--dev": (True, FLAG)}, id="a switch by flag"),
        pytest.param({"OUTPUT": "json"}, [], {"--output": ("json", ENVIRONMENT)}, id="a choice"),
        pytest.param({}, ["-o", "json"], {"--output": ("json", FLAG)}, id="a choice, in short"),
        pytest.param({}, ["--rule=a", "--rule", "b"], {"--rule": (("a", "b"), FLAG)}, id="twice"),
        pytest.param(
            {"RULE": "a, b,"}, [], {"--rule": (("a", "b"), ENVIRONMENT)}, id="a variable of two"
        ),
        pytest.param(
            {"RULE": "a,b"},
            ["--rule=c", "--rule=d"],
            {"--rule": (("c", "d"), FLAG)},
            id="flags that repeat do not add to the variable",
        ),
        pytest.param(
            {"MOST": "0.25,1"}, [], {"--most": ((0.25, 1.0), ENVIRONMENT)}, id="two with a type"
        ),
        pytest.param(
            {"TLS_CERT_FILE": "x"}, [], {"--tls-cert-file": ("x", ENVIRONMENT)}, id="dashes"
        ),
        pytest.param(
            {"INVENTORY": "x"},
            ["--snapshot", "y"],
            {"--snapshot": ("y", FLAG)},
            id="a flag rules out the variable of its rival",
        ),
        pytest.param(
            {"SNAPSHOT": "y"}, [], {"--snapshot": ("y", ENVIRONMENT)}, id="a rival by variable"
        ),
    ],
)
def test_a_value_and_where_it_came_from(
    environment: dict[str, str],
    words: list[str],
    expected: dict[str, tuple[Any, Origin]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in environment.items():
        monkeypatch.setenv(f"GPU_WEBHOOK_{name}", text)
    assert given(words) == expected


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("WORKERS", "many", "GPU_WEBHOOK_WORKERS says 'many': must be a whole number"),
        ("DEV", "maybe", "GPU_WEBHOOK_DEV says 'maybe': must be true or false"),
        ("OUTPUT", "xml", "GPU_WEBHOOK_OUTPUT says 'xml': must be one of text, json"),
        ("SHARE", "2", "GPU_WEBHOOK_SHARE says '2': a share is at most 1"),
        ("MOST", "1,2", "GPU_WEBHOOK_MOST says '1,2': a share is at most 1"),
        ("SHARE", "x", "GPU_WEBHOOK_SHARE says 'x': must be what the flag takes"),
    ],
)
def test_a_bad_variable_is_named(
    name: str,
    text: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(f"GPU_WEBHOOK_{name}", text)
    with pytest.raises(SystemExit):
        given([])
    assert said in capsys.readouterr().err


def test_help_names_the_variable_and_the_default_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("GPU_WEBHOOK_WORKERS", "7")
    with pytest.raises(SystemExit):
        given(["--help"])
    out = capsys.readouterr().out
    assert "--workers N           100 % (default: 2) [GPU_WEBHOOK_WORKERS]" in out
    assert "--dev                 [GPU_WEBHOOK_DEV]" in out


def test_a_required_flag_may_be_a_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def parse() -> list[Flag]:
        review = argparse.ArgumentParser()
        flag(review, "-f", "--filename", required=True)
        return flags(review.parse_args([]))

    with pytest.raises(SystemExit):
        parse()
    assert "-f" in capsys.readouterr().err

    monkeypatch.setenv("GPU_WEBHOOK_FILENAME", "x")
    assert parse() == [Flag("--filename", "x", ENVIRONMENT, "GPU_WEBHOOK_FILENAME")]


@pytest.mark.parametrize("name", ["--port", "--port-of-metrics", "--service-host"])
def test_no_variable_is_one_that_kubernetes_sets_beside_our_service(name: str) -> None:
    with pytest.raises(AssertionError, match="is set by Kubernetes"):
        flag(argparse.ArgumentParser(), name)
