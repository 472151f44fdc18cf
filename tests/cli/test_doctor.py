"""`gpu-webhook doctor`: how the lines look, the exit code, and what stops it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.doctor.installation import CA, HEALTHY, NOW, secret, tried, without
from webhook import __version__
from webhook.certs.own_certificates import OwnCertificates
from webhook.cluster.client import Client, Fault, Refused
from webhook.doctor import facts

if TYPE_CHECKING:
    from tests.cli.conftest import Command
    from webhook.doctor.facts import Facts

# A foreign text must not move the cursor.
SICK = replace(
    without("validating/gpu-webhook"),
    secret=secret(OwnCertificates(ca=CA)),
    trial=tried({}, refusal="403: \x1b[2Jno"),
    now=NOW,
)
GOLDEN = Path(__file__).with_name("doctor.txt")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> list[Facts]:
    """What is read of the cluster: the first of the list."""
    found = [HEALTHY]
    monkeypatch.setattr(Client, "__init__", lambda *_: None)
    monkeypatch.setattr(facts, "read", lambda *_: found[0])
    return found


STATES = {
    "a healthy installation": (HEALTHY, 0),
    "a warning": (without("validating/gpu-webhook"), 2),
    "a failure and a warning": (SICK, 3),
}


@pytest.mark.parametrize(("read", "code"), STATES.values(), ids=STATES)
@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_the_exit_code_is_that_of_the_worst_line(
    form: str, read: Facts, code: int, cluster: list[Facts], gpu_webhook: Command
) -> None:
    cluster[0] = read
    assert gpu_webhook("doctor", "-o", form).code == code


def test_each_line_has_its_fix_below_it(cluster: list[Facts], gpu_webhook: Command) -> None:
    cluster[0] = SICK
    assert gpu_webhook("doctor").out == GOLDEN.read_text().replace("VERSION", __version__)


def test_json_has_all_parts_of_a_line(cluster: list[Facts], gpu_webhook: Command) -> None:
    cluster[0] = SICK
    lines = json.loads(gpu_webhook("doctor", "-o", "json").out)
    assert lines[1] == {
        "state": "warning",
        "what": "dry run",
        "text": "a legacy pod could not be tried in namespace default: 403: \x1b[2Jno",
        "fix": "name another namespace with --pod-namespace, or create a pod of yours as a dry run",
        "until": "",
    }
    assert lines[4]["until"] == "2036-05-29 00:00 UTC (3650 d)"


@pytest.mark.usefixtures("cluster")
def test_colours_only_where_they_are_wanted(
    gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    green = "\x1b[32mok"
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert green not in gpu_webhook("doctor").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert green in gpu_webhook("doctor").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert green not in gpu_webhook("doctor").out


def test_without_an_answer_nothing_can_be_said(
    gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Fault("connection refused", away=True)

    monkeypatch.setattr(Client, "__init__", lambda *_: None)
    monkeypatch.setattr(facts, "read", away)
    code, out, err = gpu_webhook("doctor")
    assert (code, out) == (1, "")
    assert "no answer from the API server: connection refused" in err


FORBIDDEN = 'pods is forbidden: User "{}" cannot list resource "pods" in API group ""'
REFUSALS = {
    "a login that has expired": (Refused(401, "Unauthorized"), 1),
    "no login, and a cluster that lets anybody ask": (
        Refused(403, FORBIDDEN.format("system:anonymous")),
        1,
    ),
    "a user without rights": (Refused(403, FORBIDDEN.format("ann")), 2),
}


@pytest.mark.parametrize(("refused", "code"), REFUSALS.values(), ids=REFUSALS)
def test_without_a_login_no_right_would_help(
    refused: Refused, code: int, gpu_webhook: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise refused

    monkeypatch.setattr(Client, "__init__", lambda *_: None)
    monkeypatch.setattr(Client, "now", lambda _: NOW)
    for method in ("get", "dry_run", "create"):
        monkeypatch.setattr(Client, method, refuse)
    answer = gpu_webhook("doctor")
    assert answer.code == code
    if code == 1:
        assert answer.out == ""
        assert f"the API server answered {refused}: the credentials are missing or" in answer.err
        assert answer.err.count("\n") == 1
    else:
        assert "ask for the right to read it" in answer.out
