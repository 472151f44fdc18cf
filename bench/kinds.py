"""The kinds of pods among the recorded reviews: gives a file for the generator with each kind."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING, Any

import orjson

from bench.generator import REVIEWS

if TYPE_CHECKING:
    from pathlib import Path

_LEGACY = b'"alpha.kubernetes.io/nvidia-gpu":'
_INDEX = "batch.kubernetes.io/job-completion-index"
_MANY = 10  # containers
_LONG = 20_000  # bytes: none but those with long annotations and many containers have so many


def files(folder: Path) -> dict[str, Path]:
    """Write the reviews of each kind into a file of its own; give the files."""
    found: dict[str, list[bytes]] = {}
    for line in gzip.decompress(REVIEWS.read_bytes()).splitlines():
        found.setdefault(_kind(line), []).append(line)
    written = {}
    for kind, lines in sorted(found.items()):
        written[kind] = folder / f"{re.sub('[^a-z]+', '-', kind.lower())}.jsonl.gz"
        written[kind].write_bytes(gzip.compress(b"\n".join(lines), 1))
    return written


def _kind(line: bytes) -> str:
    """In words: who made the pod; of pods that nobody has a second of, what is large in them."""
    pod = orjson.loads(line)["request"]["object"]
    if _LEGACY not in line:
        return "modern, replica" if "ownerReferences" in pod["metadata"] else "modern, unique"
    return _maker(pod) or f"unique{_size(line, pod)}"


def _maker(pod: Any) -> str:
    owner = pod["metadata"].get("ownerReferences", [{}])[0]
    if owner.get("kind") != "Job":
        return str(owner.get("kind", ""))
    if owner["name"].startswith("cronjob-"):
        return "CronJob"
    return "Indexed Job" if _INDEX in pod["metadata"].get("annotations", {}) else "Job"


def _size(line: bytes, pod: Any) -> str:
    if len(pod["spec"]["containers"]) > _MANY:
        return ", 30 containers"
    if len(line) > _LONG:
        return ", long annotation"
    starts = pod["spec"].get("initContainers", ())
    return ", sidecar" if any("restartPolicy" in each for each in starts) else ""
