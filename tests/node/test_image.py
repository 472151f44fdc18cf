"""The image that the nodes run: small, and with nothing to misuse."""

from __future__ import annotations

import json
import tarfile
from typing import IO, Any

import pytest

from tests.node import build

MOST_MEGABYTES = 160


@pytest.mark.usefixtures("_possible")
def test_the_image_is_small_and_has_no_root_no_shell_and_no_package_manager() -> None:
    with tarfile.open(build.images()) as archive:

        def blob(digest: str) -> IO[bytes]:
            found = archive.extractfile(f"./blobs/{digest.replace(':', '/')}")
            assert found
            return found

        def read(described: dict[str, Any]) -> Any:
            return json.load(blob(described["digest"]))

        index = archive.extractfile("./index.json")
        assert index
        (ours,) = [
            each
            for each in json.load(index)["manifests"]
            if each["annotations"]["org.opencontainers.image.ref.name"] == build.OURS
        ]
        manifest = read(ours)
        files: list[tarfile.TarInfo] = []
        for each in manifest["layers"]:
            with tarfile.open(fileobj=blob(each["digest"])) as layer:
                files += layer.getmembers()
        user = read(manifest["config"])["config"]["User"]
    assert sum(each.size for each in files) <= MOST_MEGABYTES * 1e6
    assert user == "65532:65532"
    programs = {each.name.rpartition("/")[2] for each in files if not each.isdir()}
    assert not programs & {"sh", "bash", "busybox", "apt-get", "dpkg", "pip", "perl"}
