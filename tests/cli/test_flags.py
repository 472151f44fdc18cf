"""Flags, their environment variables, and where a value came from."""

from __future__ import annotations

from typing import Any

import click
import pytest

from webhook.cli.commands import commands
from webhook.cli.flags import Command, Flag, Origin, section

DEFAULT, ENVIRONMENT, FLAG = Origin.DEFAULT, Origin.ENVIRONMENT, Origin.FLAG


def share(text: str) -> float:
    value = float(text)
    if value > 1:
        raise click.BadParameter(f"{text}: a share is at most 1")
    return value


SERVE = Command(
    "serve",
    params=[
        Flag("--bind", metavar="ADDRESS", help="Where to listen."),
        Flag("--workers", metavar="N", type=int, default=2, help="100 %."),
        Flag("--dev", is_flag=True),
        Flag("-o", "--output", type=click.Choice(("text", "json")), default="text"),
        Flag("--tls-cert-file", default="/tls.crt"),
        Flag("--share", type=share, default=0.5),
        Flag("--rule", multiple=True),
        Flag("--most", type=share, multiple=True),
        Flag("--write", is_flag=True, allow_from_autoenv=False),
        Flag("--inventory", rival="snapshot"),
        Flag("--snapshot", rival="inventory"),
    ],
)


def given(words: list[str]) -> dict[str, tuple[Any, Origin]]:
    """Value and origin of each flag that has not its default."""
    prefix, width = "GPU_WEBHOOK_SERVE", 100
    ctx = SERVE.make_context(
        "serve", words, auto_envvar_prefix=prefix, show_default=True, max_content_width=width
    )
    flags = [each for each in SERVE.params if isinstance(each, Flag)]
    return {
        each.opts[-1]: (ctx.params[each.name], each.origin(ctx))
        for each in flags
        if each.origin(ctx) is not DEFAULT
    }


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
        pytest.param({"WRITE": "1"}, [], {}, id="a switch that has no variable"),
        pytest.param({"OUTPUT": "json"}, [], {"--output": ("json", ENVIRONMENT)}, id="a choice"),
        pytest.param({}, ["-o", "json"], {"--output": ("json", FLAG)}, id="a choice, in short"),
        pytest.param({}, ["--rule=a", "--rule", "b"], {"--rule": (("a", "b"), FLAG)}, id="twice"),
        pytest.param(
            {"RULE": "a, b,"}, [], {"--rule": (("a", "b"), ENVIRONMENT)}, id="a variable of two"
        ),
        pytest.param({"RULE": " , "}, [], {}, id="a variable of none"),
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
        monkeypatch.setenv(f"GPU_WEBHOOK_SERVE_{name}", text)
        monkeypatch.setenv(f"GPU_WEBHOOK_SCAN_{name}", "of another command")
    assert given(words) == expected


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("WORKERS", "many", "'many' is not a valid integer"),
        ("DEV", "maybe", "'maybe' is not a valid boolean. Recognized values: false, true"),
        ("OUTPUT", "xml", "'xml' is not one of 'text', 'json'"),
        ("SHARE", "2", "2: a share is at most 1"),
        ("MOST", "1,2", "2: a share is at most 1"),
    ],
)
def test_a_bad_variable_is_named(
    name: str, text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"GPU_WEBHOOK_SERVE_{name}", text)
    with pytest.raises(click.UsageError) as raised:
        given([])
    told = raised.value.format_message()
    assert told.startswith(f"Invalid value for GPU_WEBHOOK_SERVE_{name}: {said}")


def test_a_bad_flag_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_OUTPUT", "text")
    with pytest.raises(click.UsageError) as raised:
        given(["-o", "xml"])
    assert raised.value.format_message().startswith("Invalid value for '-o' / '--output': 'xml'")


def test_help_names_the_variable_and_the_default_of_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_WORKERS", "7")
    with pytest.raises(click.exceptions.Exit):
        given(["--help"])
    out = capsys.readouterr().out
    assert "  100 %.  [default: 2]\n" in out
    assert " ".join(out.partition("\n\nEnvironment")[2].split()) == (
        "variables: GPU_WEBHOOK_SERVE_SNAPSHOT for --snapshot, and so on; none for --write. "
        "Commas separate several values."
    )


def test_help_lists_flags_by_section(capsys: pytest.CaptureFixture[str]) -> None:
    one, other, hidden = Flag("--one"), Flag("--other"), Flag("--hidden", hidden=True)
    command = Command("x", params=[*section("Files", one), Flag("--here"), other, hidden])
    section("Files", other)
    with pytest.raises(click.exceptions.Exit):
        command.make_context("x", ["--help"], auto_envvar_prefix="X")
    parts = capsys.readouterr().out.split("\n\n")
    assert [part.split("\n")[0] for part in parts[1:-1]] == ["Files:", "Options:"]
    assert [word for word in " ".join(parts).split() if word.startswith("--")] == [
        *("--one", "--other", "--here", "--help"),
        "--other,",
    ]


def test_a_required_flag_may_be_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    review = Command("review", params=[Flag("-f", "--filename", required=True)])
    settings = {"auto_envvar_prefix": "X"}
    with pytest.raises(click.MissingParameter):
        review.make_context("review", [], **settings)  # type: ignore[arg-type]

    monkeypatch.setenv("X_FILENAME", "x")
    assert review.make_context("review", [], **settings).params == {"filename": "x"}  # type: ignore[arg-type]


def test_no_variable_is_one_that_kubernetes_sets_beside_our_service() -> None:
    """GPU_WEBHOOK_PORT and GPU_WEBHOOK_SERVICE_HOST, in every pod beside a Service of our name."""
    assert not {"port", "service"} & set(commands.commands)
