"""The schema of a Pod, as the API server of the pinned release serves it.

pod-1.36.3.json holds it without the descriptions, so that pods can be drawn where no control plane
runs. A cluster test compares it with what the real API server serves.
`python -m tests.schema.openapi` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.client import Client

RELEASE = "1.36.3"
FILE = Path(__file__).with_name(f"pod-{RELEASE}.json")
POD = "io.k8s.api.core.v1.Pod"

Schema = dict[str, Any]


def stored() -> dict[str, Schema]:
    """Give all definitions that a Pod is made of, by their names."""
    definitions: dict[str, Schema] = json.loads(FILE.read_text())
    return definitions


def served(client: Client) -> dict[str, Schema]:
    """Give the same from a running API server."""
    schemas = client.demand("GET", "/openapi/v3/api/v1").body["components"]["schemas"]
    wanted: dict[str, Schema] = {}
    open_names = [POD]
    while open_names:
        name = open_names.pop()
        if name not in wanted:
            wanted[name] = _without_prose(schemas[name])
            if name == POD:
                del wanted[name]["properties"]["status"]  # not the user's to write
            open_names += _references(wanted[name])
    return dict(sorted(wanted.items()))


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_prose(each)
            for key, each in schema.items()
            if not (key == "description" and isinstance(each, str)) and not key.startswith("x-")
        }
    return [_without_prose(each) for each in schema] if isinstance(schema, list) else schema


def _write() -> None:
    from tests.cluster.controlplane import ControlPlane  # noqa: PLC0415 - only to write

    with ControlPlane(RELEASE) as cluster:
        FILE.write_text(json.dumps(served(cluster.client), indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _write()
