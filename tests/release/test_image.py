"""The image: we work without what the Dockerfile takes out of the locked packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import kubernetes
import pytest
import yaml

pytestmark = pytest.mark.programs

ROOT = Path(__file__).parents[2]
_DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
_PACKAGES = Path(kubernetes.__file__).parents[1]
_WORKS = """
import importlib, json, pkgutil, sys
from fnmatch import fnmatchcase

missing = json.loads(sys.argv[1])

class Missing:
    def find_spec(self, name, path=None, target=None):
        if any(fnmatchcase(name, each) for each in missing):
            raise ModuleNotFoundError(f"the image has no {name}", name=name)

sys.meta_path.insert(0, Missing())
import webhook

for each in pkgutil.walk_packages(webhook.__path__, "webhook."):
    importlib.import_module(each.name)
from webhook.cluster.client import Client, configuration

print(Client(lambda: configuration(sys.argv[2]))._who_we_are())
"""


def _words(command: str) -> list[str]:
    (found,) = re.findall(rf"&& {command} +([^&\n]+)", _DOCKERFILE)
    return str(found).split()


def test_every_module_is_imported_and_a_plugin_gives_a_token_without_what_is_taken_out(
    tmp_path: Path,
) -> None:
    removed = _words("rm -r")
    assert all(list(_PACKAGES.glob(each)) for each in removed), "a part has another place now"
    packages = {
        file.parts[0]
        for name in _words("pip --python /opt/venv uninstall --yes")
        for file in files(name) or ()
        if not file.parts[0].endswith((".dist-info", ".."))
    }
    missing = [*packages, *(each.replace("/", ".") for each in removed)]
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "of-the-plugin"},
    }
    plugin = {
        "apiVersion": credential["apiVersion"],
        "command": "echo",
        "args": [json.dumps(credential)],
        "interactiveMode": "Never",
    }
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "we"}}],
                "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "we", "user": {"exec": plugin}}],
            }
        )
    )
    patterns = json.dumps([part for each in missing for part in (each, f"{each}.*")])
    done = subprocess.run(
        [sys.executable, "-c", _WORKS, patterns, kubeconfig],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[('authorization', 'Bearer of-the-plugin')]\n"), (
        done.stderr[-2000:]
    )
