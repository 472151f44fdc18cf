"""`gpu-webhook config`: check, show, schema."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webhook.cli import config_show
from webhook.cli.explain import find
from webhook.core.modes import modes_for
from webhook.reports.printing import as_yaml
from webhook.rules import ALL
from webhook.settings import file as settings_file
from webhook.settings.schema import all_settings, schema
from webhook.yamlpatch import documents
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Ran

POLICY = """\
policy:
  mode: warn
  rules: {GPU301: enforce}
  overrides:
  - namespaces: ["team-*"]
    mode: audit
  - labels: {tier: prod}
    rules: {GPU303: warn, GPU301: off}
"""


@pytest.fixture
def files(tmp_path: Path) -> None:
    """A good file, a bad one, and the policy."""
    (tmp_path / "good.yaml").write_text("scope: gpu\n")
    (tmp_path / "bad.yaml").write_text("models:\n  mig: maybe # 日本\nscoop: gpu\n")
    (tmp_path / "policy.yaml").write_text(POLICY)


pytestmark = [pytest.mark.programs, pytest.mark.usefixtures("files")]


@pytest.mark.parametrize(
    ("words", "stdin", "code", "out", "err"),
    [
        pytest.param(["good.yaml"], "", 0, ["good.yaml: fine"], [], id="a good file: one line"),
        pytest.param(["-"], "scope: gpu", 0, ["stdin: fine"], [], id="stdin"),
        pytest.param(["-"], "\ufeffscope: gpu", 0, ["stdin: fine"], [], id="a byte order mark"),
        pytest.param(
            ["good.yaml", "policy.yaml"],
            "",
            0,
            ["good.yaml: fine", "policy.yaml: fine"],
            [],
            id="several good files",
        ),
        pytest.param(
            ["bad.yaml", "good.yaml"],
            "",
            1,
            ["good.yaml: fine"],
            [
                "bad.yaml:2:8: must be true or false, without quotes, not 'maybe'",
                "    2 |   mig: maybe # 日本",
                "      |        ^",
                "bad.yaml:3:1: there is no setting scoop; did you mean scope?",
                "    3 | scoop: gpu",
                "      | ^",
            ],
            id="mistakes with line and caret, and the good file after it",
        ),
        pytest.param(
            ["nowhere", "good.yaml"],
            "",
            1,
            ["good.yaml: fine"],
            ["nowhere: cannot be read: No such file or directory; name a file"],
            id="a file that does not exist",
        ),
        pytest.param(
            ["-"],
            "",
            0,
            ["stdin: fine"],
            [],
            id="nothing at all: the defaults",
        ),
        pytest.param(
            ["-"],
            'models: {"日本": 1}',
            1,
            [],
            [
                (
                    "stdin:1:10: there is no setting 日本; there are legacyLabel, profile, label, "
                    "values, shared, mig"
                ),
                '    1 | models: {"日本": 1}',
                "      |          ^",
            ],
            id="before wide characters",
        ),
        pytest.param(
            ["-"],
            '"日本": &a\n  1\nmodels: {"日本": *b}',
            1,
            [],
            [
                "stdin:3:16: is not YAML: found undefined alias 'b'",
                '    3 | models: {"日本": *b}',
                "      |                  ^",
            ],
            id="after wide characters, which take two places",
        ),
        pytest.param(
            ["-"],
            "a:\n\tb: \x1b[31m",
            1,
            [],
            [
                "stdin:2:5: is not YAML: a control character, '\\x1b': delete it",
                "    2 |  b:  [31m",
                "      |     ^",
            ],
            id="nothing that a terminal would obey",
        ),
        pytest.param(
            ["-"],
            f"annotationSchedulers: [{'a, ' * 100}{{}}]",
            1,
            [],
            [
                (
                    "stdin:1:324: must be a text, the name of a scheduler, a DNS subdomain, as "
                    "my-scheduler, not a map"
                ),
                f"    1 | {('a, ' * 20)}{{}}]",
                f"      | {' ' * 60}^",
            ],
            id="a long line is cut around the place",
        ),
        pytest.param(
            ["-"],
            "scope: gpu\nmodels:\n  mig:",
            1,
            [],
            [
                "stdin:3:7: must be true or false, without quotes, not nothing",
                "    3 |   mig:",
                "      |       ^",
            ],
            id="at the end of the file",
        ),
        pytest.param(
            ["-"],
            "models:\n  ? mig",
            1,
            [],
            ["stdin:3:1: must be true or false, without quotes, not nothing"],
            id="after the end of the file",
        ),
    ],
)
def test_check(
    words: list[str],
    stdin: str,
    code: int,
    out: list[str],
    err: list[str],
    gpu_webhook: Command,
) -> None:
    ran = gpu_webhook("config", "check", *words, stdin=stdin)

    assert (ran.code, ran.out.splitlines(), ran.err.splitlines()) == (code, out, err)


def on_a_terminal(environment: dict[str, str], folder: Path) -> str:
    """What `config check` writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "webhook", "config", "check", str(folder / "bad.yaml")]
    plain = {name: text for name, text in os.environ.items() if name != "NO_COLOR"}
    root = Path(__file__).parents[2]
    subprocess.run(
        command,
        stderr=theirs,
        env=plain | {"TERM": "xterm", "PYTHONPATH": str(root)} | environment,
        check=False,
    )
    os.close(theirs)
    written = os.read(ours, 65536).decode()
    os.close(ours)
    return written


def test_check_has_colours_on_a_terminal_only(tmp_path: Path, gpu_webhook: Command) -> None:
    assert "\x1b[1;31m^" in on_a_terminal({}, tmp_path)
    assert "31m" not in on_a_terminal({"NO_COLOR": "1"}, tmp_path)
    assert "\x1b" not in gpu_webhook("config", "check", "bad.yaml").err


def shown(ran: Ran) -> dict[str, dict[str, Any]]:
    """What `show` says, by part and name."""
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    return {part: {row.pop("name"): row for row in rows} for part, rows in data.items()}


def test_show_names_every_setting_with_its_default(gpu_webhook: Command) -> None:
    settings = shown(gpu_webhook("config", "show", "-o", "json"))["settings"]

    assert set(settings) == {".".join(map(str, place)) for place, _ in all_settings()}
    assert {row["origin"] for row in settings.values()} == {"default"}
    assert settings["models.profile"] == {"value": "gfd", "origin": "default", "at": None}


def test_show_says_where_in_the_file_a_value_stands(gpu_webhook: Command) -> None:
    ran = gpu_webhook("config", "show", "-o", "json", "--config", "policy.yaml")
    settings = shown(ran)["settings"]

    assert settings["policy.mode"] == {"value": "warn", "origin": "file", "at": "policy.yaml:2"}
    assert settings["policy.rules"] == {
        "value": {"GPU301": "enforce"},
        "origin": "file",
        "at": "policy.yaml:3",
    }
    assert settings["policy.overrides"]["at"] == "policy.yaml:4"
    assert settings["policy.exceptions"] == {"value": [], "origin": "default", "at": None}


def test_what_show_says_makes_the_same_settings(gpu_webhook: Command, tmp_path: Path) -> None:
    settings = shown(gpu_webhook("config", "show", "-o", "json", "--config", "policy.yaml"))
    file: dict[str, Any] = {}
    for name, row in settings["settings"].items():
        *groups, last = name.split(".")
        here = file
        for group in groups:
            here = here.setdefault(group, {})
        if row["value"] is not None:
            here[last] = row["value"]

    written = settings_file.parse(yaml.safe_dump(file))
    assert written == settings_file.load(str(tmp_path / "policy.yaml"))


def test_the_file_may_be_named_by_the_environment(
    gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_CONFIG", "policy.yaml")

    assert shown(gpu_webhook("config", "show", "-o", "json"))["settings"]["policy.mode"] == {
        "value": "warn",
        "origin": "file",
        "at": "policy.yaml:2",
    }
    ran = gpu_webhook("config", "show", "-o", "json", "--config", "good.yaml")
    assert shown(ran)["settings"]["policy.mode"]["origin"] == "default"


@pytest.mark.parametrize(
    ("environment", "words", "expected"),
    [
        pytest.param("", [], (None, "default", None), id="neither"),
        pytest.param(
            "policy.yaml",
            [],
            ("policy.yaml", "environment", "GPU_WEBHOOK_SERVE_CONFIG"),
            id="the environment",
        ),
        pytest.param(
            "policy.yaml", ["--config", "good.yaml"], ("good.yaml", "flag", None), id="a flag"
        ),
    ],
)
def test_show_says_where_a_flag_came_from(
    environment: str,
    words: list[str],
    expected: tuple[str | None, str, str | None],
    gpu_webhook: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_CONFIG", environment)
    ran = gpu_webhook("config", "show", "-o", "json", *words)

    flag = shown(ran)["flags"]["--config"]
    assert (flag["value"], flag["origin"], flag["at"]) == expected


def test_the_three_forms_say_the_same(gpu_webhook: Command) -> None:
    words = ("config", "show", "--config", "policy.yaml", "--namespace", "team-a")
    data = json.loads(gpu_webhook(*words, "-o", "json").out)
    text = gpu_webhook(*words).out

    assert yaml.safe_load(gpu_webhook(*words, "-o", "yaml").out) == data
    lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
    rows = [row for part in data.values() for row in part]
    assert [line[: len(row["name"].split())] for line, row in zip(lines, rows, strict=True)] == [
        row["name"].split() for row in rows
    ]
    assert ["policy.mode", "policy.yaml:2", "warn"] in lines
    assert ["models.label", "default", "(not", "set)"] in lines
    assert "Modes in the namespace team-a\n" in text


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        pytest.param([], "GPU301", None, id="no namespace: no modes"),
        pytest.param(["a"], "GPU301", ("enforce", "policy.yaml:3"), id="a rule by itself"),
        pytest.param(["a"], "GPU101", ("warn", "policy.yaml:2"), id="the mode of all"),
        pytest.param(["team-a"], "GPU301", ("audit", "policy.yaml:6"), id="an override by name"),
        pytest.param(
            ["a", "--labels", "tier=prod"], "GPU301", ("off", "policy.yaml:8"), id="by label"
        ),
        pytest.param(
            ["a", "--labels", "tier=prod"],
            "GPU303",
            ("warn", "policy.yaml:8"),
            id="said twice: by what decides",
        ),
        pytest.param(
            ["team-a", "--labels", "x=y,tier=prod"],
            "GPU101",
            ("audit", "policy.yaml:6"),
            id="two overrides",
        ),
        pytest.param(
            ["a", "--labels", "gpu-webhook.dev/ignore=true"],
            "GPU101",
            ("off", "gpu-webhook.dev/ignore=true"),
            id="a namespace that opted out",
        ),
    ],
)
def test_show_tells_the_modes_of_a_namespace(
    words: list[str], code: str, expected: tuple[str, str] | None, gpu_webhook: Command
) -> None:
    where = ["--namespace", *words] if words else []
    ran = gpu_webhook("config", "show", "-o", "json", "--config", "policy.yaml", *where)
    modes = shown(ran).get("modes", {})

    found = [(row["value"], row["at"]) for name, row in modes.items() if name.startswith(code)]
    assert found == ([expected] if expected else [])


def test_the_usual_mode_comes_from_nowhere(gpu_webhook: Command) -> None:
    modes = shown(gpu_webhook("config", "show", "-o", "json", "--namespace", "a"))["modes"]

    assert len(modes) == len(ALL)
    assert modes["GPU303 leak-guard"] == {"value": "audit", "origin": "default", "at": None}


MODE = st.sampled_from(["off", "audit", "warn", "enforce"])
CODES = st.sampled_from(["GPU101", "GPU301", "GPU303"])
RULES = st.dictionaries(CODES, MODE, max_size=2)
SOME = st.dictionaries(CODES, MODE, min_size=1, max_size=2)
OVERRIDES = st.lists(
    st.fixed_dictionaries(
        {"namespaces": st.sampled_from([["a"], ["b"], ["*"]]), "rules": SOME},
        optional={"mode": MODE, "labels": st.just({"tier": "prod"})},
    ),
    max_size=4,
)


@given(st.fixed_dictionaries({"overrides": OVERRIDES, "rules": RULES}, optional={"mode": MODE}))
def test_the_place_that_show_names_says_that_mode(policy: dict[str, Any]) -> None:
    """And where it names none, none says a word of this rule here."""
    text = json.dumps({"policy": policy}, indent=1)
    read, lines = settings_file.read_text(text, "f"), text.splitlines()
    here = [policy, *(each for each in policy["overrides"] if each["namespaces"] != ["b"])]
    resolved = modes_for(read.settings.policy, "a", {"tier": "prod"})

    for row in config_show.modes(read, "f", "a", {"tier": "prod"}):
        code = row.name.split()[0]
        assert row.value == resolved.of(find(code))
        if row.at:
            line = lines[int(row.at.partition(":")[2]) - 1]
            assert f'"{row.value}"' in line
            assert '"mode"' in line or code in line
        else:
            assert not any("mode" in part or code in part["rules"] for part in here)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["--labels", "a=b"], "name it with --namespace", id="labels of nothing"),
        pytest.param(
            ["--namespace", "x", "--labels", "a"],
            "--labels 'a': write key=value, such as tier=prod,team=a",
            id="a label without value",
        ),
        pytest.param(
            ["--namespace", "x", "--labels", "a=b,c d=e"], "--labels 'c d=e'", id="no label key"
        ),
        pytest.param(["--config", "bad.yaml"], "bad.yaml:2:8: must be", id="a bad file"),
    ],
)
def test_what_show_cannot_show_is_named(words: list[str], said: str, gpu_webhook: Command) -> None:
    ran = gpu_webhook("config", "show", *words)

    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_the_schema_is_printed(gpu_webhook: Command) -> None:
    ran = gpu_webhook("config", "schema")

    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == schema()


def test_match_conditions_follow_from_the_file(gpu_webhook: Command, tmp_path: Path) -> None:
    (tmp_path / "amd.yaml").write_text("resources: {gpus: [amd.com/gpu]}\n")
    ran = gpu_webhook("config", "match-conditions", "--config", "amd.yaml")

    assert ran.code == 0
    assert '"amd.com/gpu"' in ran.out


@pytest.mark.parametrize(
    "words", [["--help"], ["scan", "--help"], ["review", "-h"], ["config", "show", "-h"]]
)
def test_help_is_quick(words: list[str]) -> None:
    """Nothing that is slow to import is imported for it."""
    script = (
        f"import sys\nfrom webhook.cli.main import main\nmain({words})\n"
        "slow = {'yaml', 'rich', 'flask', 'orjson', 'pydantic', 'webhook.rules'}\n"
        "print(*sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == ""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["explain", "GPU101"], id="the manual of a rule"),
        pytest.param(["explain", "GPU10"], id="a rule that there is not"),
        pytest.param(["scan", "."], id="files"),
        pytest.param(["review", "-f", "pod.yaml"], id="a pod"),
    ],
)
def test_without_a_settings_file_pydantic_is_not_imported(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("{apiVersion: v1, kind: Pod, spec: {}}")
    script = (
        f"import sys\nfrom webhook.cli.main import main\nmain({words})\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("command", ["serve", "watch", "review", "inventory"])
def test_every_flag_has_a_variable(command: str, gpu_webhook: Command) -> None:
    _, _, variables = gpu_webhook(command, "--help").out.partition("\nEnvironment variables: ")
    assert variables.startswith(f"GPU_WEBHOOK_{command.upper()}_")
    assert "none for" not in variables


def test_show_tells_the_flags_of_serve(
    gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_WORKERS", "7")
    monkeypatch.setenv("GPU_WEBHOOK_SERVE_CLIENT_NAME", "a, b,")
    monkeypatch.setenv("GPU_WEBHOOK_WATCH_SNAPSHOT", "of another command")
    ran = gpu_webhook("config", "show", "-o", "json")
    rows = shown(ran)["flags"]

    assert rows["--workers"] == {
        "value": 7,
        "origin": "environment",
        "at": "GPU_WEBHOOK_SERVE_WORKERS",
    }
    assert rows["--client-name"]["value"] == ["a", "b"]
    assert rows["--snapshot"] == {"value": None, "origin": "default", "at": None}
    assert rows["--dev"] == {"value": False, "origin": "default", "at": None}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
        lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    )
)
def test_what_is_printed_is_read_as_what_it_is(value: Any) -> None:
    """By kubectl, too: its reader takes `y`, `0o17` and `1_000` for more than texts."""
    (document,) = documents.read(as_yaml({"value": value})).documents
    assert is_same(document.data, {"value": value})


@pytest.mark.parametrize("text", ["y", "0o17", "1_000", "12:30", "2017-03-01", "=", "<<", "~"])
def test_texts_that_look_like_something_else_are_quoted(text: str) -> None:
    assert as_yaml({text: text}) == f"'{text}': '{text}'\n"
