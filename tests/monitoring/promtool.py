"""The real promtool: what Prometheus makes of rules and queries on series that a test writes.

`python -m tests.monitoring.promtool` takes it, and prometheus itself, out of Debian's package where
there are none, and installs nothing: a service with its dependencies would come with that package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.cluster.build import CACHE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MISSING = "no promtool or prometheus: run `make promtool`, or install Prometheus"
PROGRAMS = ("promtool", "prometheus")
_KEPT = CACHE / "programs"


def find(name: str = "promtool") -> str | None:
    """The program, if there is one."""
    kept = _KEPT / name
    return shutil.which(name) or (str(kept) if kept.exists() else None)


def install() -> None:
    """Keep the programs of Debian's package in the cache."""
    if all(map(find, PROGRAMS)):
        return
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    subprocess.run([*sudo, "apt-get", "-qq", "update"], check=True)
    _KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_KEPT) as folder:
        subprocess.run(["apt-get", "-qq", "download", "prometheus"], check=True, cwd=folder)
        (package,) = Path(folder).glob("*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, folder], check=True)
        for name in PROGRAMS:
            (Path(folder) / "usr" / "bin" / name).replace(_KEPT / name)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    program = find()
    assert program, MISSING
    # It ends before its memory is worth collecting, which takes a sixth of its time.
    env = {**os.environ, "GOGC": "off"}
    return subprocess.run([program, *words], env=env, capture_output=True, text=True, check=False)


def judge(
    folder: Path,
    series: Mapping[str, Iterable[Any] | str],
    expected: Iterable[tuple[str, str, Mapping[str, float]]],
    rules: Mapping[str, Any] | None = None,
    interval: str = "1m",
) -> None:
    """Fail unless each query gives what is expected of it: a time, a query, values by labels."""
    written = {
        name: values if isinstance(values, str) else " ".join(map(str, values))
        for name, values in series.items()
    }
    test = {
        "interval": interval,
        "input_series": [{"series": name, "values": each} for name, each in written.items()],
        "promql_expr_test": [
            {
                "expr": query,
                "eval_time": at,
                "exp_samples": [{"labels": key, "value": value} for key, value in samples.items()],
            }
            for at, query, samples in expected
        ],
    }
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules or {"groups": []}))
    file = folder / "test.yaml"
    file.write_text(
        yaml.safe_dump(
            {"rule_files": ["rules.yaml"], "evaluation_interval": interval, "tests": [test]}
        )
    )
    done = run("test", "rules", str(file))
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    install()
    sys.exit(None if all(map(find, PROGRAMS)) else MISSING)
