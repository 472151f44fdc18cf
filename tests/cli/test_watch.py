"""`gpu-webhook watch`, as a process before a small API server."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.client import until
from tests.inventory.api_server import ApiServer
from tests.log_lines import entries
from webhook.cli.main import main
from webhook.cli.watch import audit_of
from webhook.core.modes import Mode
from webhook.core.namespace_selection import Selection
from webhook.core.settings import Override, Policy, Settings
from webhook.inventory.publish import Snapshot
from webhook.kube.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.programs

COMMAND = str(Path(sys.executable).parent / "gpu-webhook")
GPU = "nvidia.com/gpu"


class Watch:
    """The process, its settings file, and what it published."""

    def __init__(self, api: ApiServer, folder: Path) -> None:
        self.config = folder / "settings.yaml"
        self.config.write_text("{}\n")
        self.reader = Snapshot(folder / "snapshot")
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    COMMAND,
                    "watch",
                    f"--snapshot={folder / 'snapshot'}",
                    f"--kubeconfig={api.kubeconfig(folder)}",
                    f"--config={self.config}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def settings(self, text: str) -> None:
        """As a ConfigMap changes: by a rename."""
        new = self.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self.config)

    def messages(self) -> list[str]:
        return [line["message"] for line in entries(self._log)]

    def told(self) -> dict[str, Any]:
        return dict(self.reader.status().content)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer() as running:
        amounts = {GPU: "8", "example.com/gpu": "4"}
        running.put("nodes", "n", {"status": {"allocatable": amounts}})
        yield running


@pytest.fixture
def watch(api: ApiServer, tmp_path: Path) -> Iterator[Watch]:
    running = Watch(api, tmp_path)
    yield running
    running.process.kill()
    running.process.wait()


def test_publishes_reads_new_settings_and_keeps_the_old_for_bad_ones(watch: Watch) -> None:
    first = until(watch.reader.refresh, "a snapshot")
    assert set(first.index.totals) == {GPU}

    watch.settings("resources: 7\n")
    fault = until(lambda: watch.told().get("settings_fault"), "the fault")
    assert "settings.yaml:1:" in fault
    time.sleep(2)
    assert sum("have mistakes" in each for each in watch.messages()) == 1, "it is said once"
    assert watch.reader.refresh() is None

    watch.settings("{}\n")
    until(lambda: "settings_fault" not in watch.told(), "no fault any more")
    until(lambda: "the settings file is good again" in watch.messages(), "the line")

    watch.settings("resources: {gpus: [example.com/gpu]}\n")
    second = until(watch.reader.refresh, "another snapshot", 30)
    assert set(second.index.totals) == {GPU, "example.com/gpu"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(number: signal.Signals, watch: Watch) -> None:
    until(watch.reader.refresh, "a snapshot")
    watch.process.send_signal(number)
    assert watch.process.wait(60) == 0, "it does not wait for the API server's next answer"
    assert watch.messages()[-1] == "stopped"


def test_no_kubeconfig_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "missing"
    assert main(["watch", f"--snapshot={tmp_path}", f"--kubeconfig={missing}"]) == 1
    said = capsys.readouterr().err
    assert str(missing) in said
    assert "--kubeconfig" in said


def test_a_snapshot_folder_that_is_a_file_is_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["watch", f"--snapshot={file}"]) == 1
    assert "is a file" in capsys.readouterr().err


LEAKY = Pod(
    {
        "metadata": {"namespace": "team", "name": "p"},
        "spec": {
            "containers": [
                {"name": "c", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
            ]
        },
    }
)
TEAM_OFF = Policy(overrides=(Override(Selection(("team",)), Mode.OFF),))
STAGE_OFF = Policy(overrides=(Override(Selection(labels=(("stage", "dev"),)), Mode.OFF),))
AUDITS: dict[str, tuple[Policy, dict[str, str], bool]] = {
    "audited by default": (Policy(), {}, True),
    "off for all": (Policy(mode=Mode.OFF), {}, False),
    "off for this namespace": (TEAM_OFF, {}, False),
    "off for a label that it carries": (STAGE_OFF, {"stage": "dev"}, False),
    "off for a label that it does not carry": (STAGE_OFF, {"stage": "prod"}, True),
    "a namespace that opted out of all": (Policy(), {"gpu-webhook.dev/ignore": "true"}, False),
}


@pytest.mark.parametrize(("policy", "labels", "found"), AUDITS.values(), ids=AUDITS)
def test_the_audit_follows_the_modes(
    policy: Policy,
    labels: dict[str, str],
    found: bool,  # noqa: FBT001 - of a table
) -> None:
    audit = audit_of(Settings(policy=policy), lambda _: labels)
    assert bool(list(audit(LEAKY))) is found
