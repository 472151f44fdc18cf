"""`gpu-webhook inventory` of a file: what it counts, and how it looks."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.cluster_objects import A100, GPU, LARGE, POOLS, SMALL, T4, node, nodes, pod, pods

if TYPE_CHECKING:
    from tests.cli.conftest import Command

pytestmark = pytest.mark.programs

GOLDEN = Path(__file__).with_name("inventory")
PROGRAM = Path(sys.executable).with_name("gpu-webhook")


def write(folder: Path, objects: list[dict[str, Any]]) -> str:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    (folder / "settings.yaml").write_text(POOLS)
    return "--inventory=cluster.json"


@pytest.mark.parametrize(
    ("name", "columns", "flags"),
    [
        pytest.param("80-columns", "80", ["--config=settings.yaml"], id="a narrow terminal"),
        pytest.param("140-columns", "140", ["--config=settings.yaml"], id="a wide terminal"),
        pytest.param("80-columns-wide", "80", ["-o", "wide"], id="with labels, narrow"),
        pytest.param(
            "140-columns-wide", "140", ["-o", "wide", "--config=settings.yaml"], id="with labels"
        ),
    ],
)
def test_the_table_fits_its_terminal(
    name: str,
    columns: str,
    flags: list[str],
    gpu_webhook: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, err = gpu_webhook("inventory", write(tmp_path, nodes() + pods()), *flags)
    assert (code, err) == (0, "")
    lines = [line.rstrip() for line in out.splitlines()]
    assert max(map(len, lines)) <= int(columns)
    golden = GOLDEN / f"{name}.txt"
    if request.config.getoption("--update-golden"):
        golden.write_text("\n".join(lines) + "\n")
    assert lines == golden.read_text().splitlines()


def data(ran: tuple[int, str, str]) -> Any:
    code, out, err = ran
    assert (code, err) == (0, "")
    return json.loads(out)


def amount(total: int, allocatable: int, used: int, free: int, largest: int) -> dict[str, int]:
    return {
        "total": total,
        "allocatable": allocatable,
        "used": used,
        "free": free,
        "largestNode": largest,
    }


def test_json_has_every_class_and_the_sums(gpu_webhook: Command, tmp_path: Path) -> None:
    found = data(gpu_webhook("inventory", write(tmp_path, nodes() + pods()), "-o", "json"))
    assert (found["nodes"], found["gpuNodes"], found["podsKnown"]) == (28, 16, True)
    assert found["resources"] == {
        GPU: amount(66, 65, 35, 30, 8),
        "nvidia.com/gpu.shared": amount(20, 20, 20, 0, 4),
        SMALL: amount(28, 28, 1, 27, 14),
        LARGE: amount(8, 8, 0, 8, 4),
    }
    assert found["leakGuard"] == {"pods": 2, "by": {"privileged": 1, "variable": 1}}
    first = found["classes"][0]
    assert first == {
        "model": A100,
        "declaredPool": None,
        "count": 6,
        "joining": False,
        "gpus": {GPU: amount(48, 48, 35, 13, 8)},
        "taints": [{"key": GPU, "value": "", "effect": "NoSchedule", "notNow": False}],
        "labels": {"kubernetes.io/os": "linux", "nvidia.com/gpu.product": A100, "zone": "a"},
        "nodes": [f"a100-{n}" for n in range(6)],
    }
    by_node = {name: each for each in found["classes"] for name in each["nodes"]}
    assert by_node["a100-ill"]["gpus"][GPU] == amount(8, 7, 0, 7, 7)
    assert [t["notNow"] for t in by_node["a100-resting"]["taints"]] == [False, True]
    assert by_node["cpu-3"]["gpus"] == {}
    assert sum(each["count"] for each in found["classes"]) == 28
    assert len(by_node) == 28


def test_yaml_says_the_same(gpu_webhook: Command, tmp_path: Path) -> None:
    file = write(tmp_path, nodes() + pods())
    found = data(gpu_webhook("inventory", file, "-o", "json"))
    assert yaml.safe_load(gpu_webhook("inventory", file, "-o", "yaml").out) == found


def test_a_class_that_differs_only_in_labels_is_one_line_of_the_short_table(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    file = write(tmp_path, nodes())
    short, wide = (gpu_webhook("inventory", file, *more).out for more in ([], ["-o", "wide"]))
    assert [line.split()[0] for line in short.splitlines() if T4 in line] == ["5"]
    lines = [line.split() for line in wide.splitlines() if T4 in line and "=" not in line]
    assert [line[1] for line in lines] == ["3", "2"]


def test_a_declared_pool_is_named_and_not_summed_up(gpu_webhook: Command, tmp_path: Path) -> None:
    file = write(tmp_path, nodes() + pods())
    found = data(gpu_webhook("inventory", file, "--config=settings.yaml", "-o", "json"))
    (pool,) = (each for each in found["classes"] if each["declaredPool"])
    assert pool["declaredPool"] == "h100-spot"
    assert (pool["count"], pool["nodes"]) == (4, [])
    assert pool["gpus"][GPU] == {**amount(32, 32, 0, 0, 8), "used": None, "free": None}
    assert found["resources"][GPU]["total"] == 66
    assert found["nodes"] == 28


def test_nodes_that_join_and_what_autoscalers_may_add_are_named(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    young = node("new")
    young["metadata"]["creationTimestamp"] = datetime.now(UTC).isoformat()
    typed = node("g5", "", {GPU: 4})
    typed["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "g5.large"
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In"}
    made = {"spec": {"requirements": [{**types, "values": ["g5.large", "p5.large"]}]}}
    status = "nodeGroups:\n- name: big\n  maxSize: 3\n"
    objects = [
        young,
        typed,
        {"kind": "NodePool", "metadata": {"name": "spot"}, "spec": {"template": made}},
        {
            "kind": "ConfigMap",
            "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
            "data": {"status": status},
        },
    ]
    said = [
        "NodePool spot (Karpenter) may add g5.large with 4 nvidia.com/gpu.",
        "NodePool spot (Karpenter) may add nodes with GPUs; which ones is not known.",
        "node group big (cluster-autoscaler) may add nodes with GPUs; which ones is not known.",
    ]
    _, out, _ = gpu_webhook("inventory", write(tmp_path, objects))
    joined = "1 node has just joined: GPUs and labels may still be added (GPU301)."
    assert [line for line in out.splitlines() if line in [joined, *said]] == [joined, *said]
    _, out, _ = gpu_webhook("inventory", "--inventory=cluster.json", "-o", "json")
    data = json.loads(out)
    assert data["autoscalers"] == said
    assert [each["joining"] for each in data["classes"]] == [False, True]


def test_pods_that_are_not_listed_make_use_unknown(gpu_webhook: Command, tmp_path: Path) -> None:
    file = write(tmp_path, nodes())
    table = gpu_webhook("inventory", file)
    assert "USED" not in table.out
    assert "Used and free are unknown: cluster.json has no pods." in table.out
    code, out, err = gpu_webhook("inventory", file, "-o", "json")
    assert code == 0
    assert "used and free are unknown" in err
    found = json.loads(out)
    assert found["podsKnown"] is False
    assert found["resources"][GPU]["used"] is None
    assert found["leakGuard"] == {"pods": None, "by": {}}


def test_a_node_whose_device_plugin_is_away_is_a_gpu_node_all_the_same(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    file = write(tmp_path, [node("a", "Tesla-K80", {GPU: 0}, capacity={GPU: 4})])
    out = gpu_webhook("inventory", file).out
    assert re.search(r"1 +Tesla-K80 +gpu +0 +0\n +4 unhealthy", out)
    assert "0 nodes without GPUs." in out


def test_more_is_held_than_there_is(gpu_webhook: Command, tmp_path: Path) -> None:
    """As after a GPU fell ill below running pods: free is never negative."""
    cluster = [node("a", "", {GPU: 2}), node("b", "", {GPU: 2}), pod("p", "a", {GPU: 4})]
    found = data(gpu_webhook("inventory", write(tmp_path, cluster), "-o", "json"))
    assert found["resources"][GPU] == amount(4, 4, 4, 2, 2)


def test_a_cluster_without_gpus(gpu_webhook: Command, tmp_path: Path) -> None:
    code, out, err = gpu_webhook("inventory", write(tmp_path, [node("a"), node("b")]))
    assert (code, err) == (0, "")
    assert out.startswith("No node offers GPUs")
    assert "2 nodes without GPUs." in out


def test_names_that_dra_serves_are_said(gpu_webhook: Command, tmp_path: Path) -> None:
    device_class = {
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": GPU},
    }
    file = write(tmp_path, [node("a", "", {GPU: 2}), device_class])
    assert "DRA serves nvidia.com/gpu too" in gpu_webhook("inventory", file).out


def test_long_lists_of_names_are_cut_in_the_table_and_whole_in_json(
    gpu_webhook: Command, tmp_path: Path
) -> None:
    file = write(tmp_path, [*(node(f"n{n:04}", "", {GPU: 1}) for n in range(2000)), pod("p", "")])
    wide = gpu_webhook("inventory", file, "-o", "wide").out
    assert "n0000, n0001" in wide
    assert "n0011 and 1,988 more" in wide
    found = data(gpu_webhook("inventory", file, "-o", "json"))
    assert len(found["classes"][0]["nodes"]) == 2000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(["--inventory=none.yaml"], "none.yaml: cannot be read", id="no such file"),
        pytest.param(
            ["--inventory=cluster.json", "--context=c"], "leave out one of the two", id="both"
        ),
        pytest.param([], "kubeconfig", id="no kubeconfig"),
        pytest.param(["--kubeconfig=none"], "none", id="no such kubeconfig"),
        pytest.param(["--kubeconfig=away", "--context=x"], "x", id="no such context"),
        pytest.param(["--kubeconfig=away"], "no answer from the API server", id="nobody is there"),
        pytest.param(["-o", "xml", "--inventory=cluster.json"], "xml", id="no such format"),
    ],
)
def test_what_cannot_be_shown_is_said_in_one_line_with_the_cure(
    gpu_webhook: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    said: str,
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, nodes())
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    config = {"current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]}
    (tmp_path / "away").write_text(yaml.safe_dump(config))
    code, out, err = gpu_webhook("inventory", *flags)
    assert (code, out) == (1, "")
    assert said in err
    assert err.splitlines()[-1].startswith(("gpu-webhook", "Error: "))


def on_a_terminal(folder: Path, *flags: str, **environment: str) -> str:
    """What a person sees: standard output and standard error on one terminal."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, "inventory", *flags],
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "80", **environment},
    )
    os.close(terminal)
    seen = b""
    while select.select([main], [], [], 30)[0]:
        try:
            seen += os.read(main, 65536)
        except OSError:  # the program has closed the other end
            break
    os.close(main)
    assert process.wait(60) == 0, seen
    return seen.decode()


COLOUR = re.compile(r"\x1b\[(?:\d+;)*3[0-8](?:;\d+)*m")


def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    file = write(tmp_path, nodes() + pods())
    assert COLOUR.search(on_a_terminal(tmp_path, file))
    plain = on_a_terminal(tmp_path, file, NO_COLOR="1")
    assert not COLOUR.search(plain)
    assert "████" in plain


def test_a_pipe_gets_text_alone(tmp_path: Path) -> None:
    file = write(tmp_path, nodes() + pods())
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    done = subprocess.run(
        [PROGRAM, "inventory", file],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"PYTHONIOENCODING": "utf-8"},
    )
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
    assert "nvidia.com/gpu:NoSchedule" in done.stdout


def test_a_terminal_without_unicode_gets_bars_of_ascii(tmp_path: Path) -> None:
    file = write(tmp_path, nodes() + pods())
    done = subprocess.run(
        [PROGRAM, "inventory", file],
        cwd=tmp_path,
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "80"},
    )
    text = done.stdout.decode("ascii")
    assert "####.." in text
    assert ".....x" in text


def test_a_long_list_shows_how_far_it_is_and_a_short_one_does_not(tmp_path: Path) -> None:
    long = write(tmp_path, [node(f"n{n}", "", {GPU: 1}) for n in range(3000)])
    assert "3000/3000" in on_a_terminal(tmp_path, long)
    short = write(tmp_path, nodes())
    assert f"{len(nodes())}/" not in on_a_terminal(tmp_path, short)
    piped = subprocess.run(
        [PROGRAM, "inventory", long], cwd=tmp_path, capture_output=True, check=True
    )
    assert piped.stderr == b""
