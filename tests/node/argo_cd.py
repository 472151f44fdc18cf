"""The real Argo CD in a cluster: controller, repo-server and Redis; it applies what git has."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

import yaml

from tests.cluster.client import until
from tests.cluster.controlplane import free_ports
from tests.node import operators

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.client import Json
    from tests.node.cluster import RealCluster

_HOME = "argocd"
_NAME = "argo-cd"
_APPLICATIONS = f"/apis/argoproj.io/v1alpha1/namespaces/{_HOME}/applications"
_SYNCED = 240.0
_PROJECT = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "default"},
    "spec": {
        "sourceRepos": ["*"],
        "destinations": [{"namespace": "*", "server": "*"}],
        "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
    },
}


class ArgoCD:
    """Runs in the `with` block, as an administrator like its own ServiceAccount."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self._cluster, self._folder = cluster, folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        files = operators.manifests(_NAME)
        self._cluster.make_namespace(_HOME)
        for part in ("crds", "base/config"):
            words = ("-n", _HOME, "apply", "--server-side", "-k", str(files / part))
            self._cluster.kubectl(*words)
        until(self._has_project, "its kinds to be served", _SYNCED)
        key = '{"stringData": {"server.secretkey": "a"}}'
        self._cluster.kubectl("-n", _HOME, "patch", "secret", "argocd-secret", "-p", key)
        redis, server, *metrics = free_ports(4)
        (self._folder / "redis-server").symlink_to(operators.REDIS)
        # Of its image: prints the signature of a commit. Those of these tests have none.
        (self._folder / "git-verify-wrapper.sh").symlink_to("/bin/true")
        argo = str(operators.program(_NAME))
        of_redis = ("--redis", f"127.0.0.1:{redis}")
        self._run("redis", str(self._folder / "redis-server"), "--port", str(redis), "--save", "")
        self._run(
            "argocd-repo-server",
            *(argo, *of_redis, "--port", str(server), "--metrics-port", str(metrics[0])),
        )
        self._run(
            "argocd-application-controller",
            *(argo, *of_redis, "--repo-server", f"127.0.0.1:{server}"),
            *("--namespace", _HOME, "--metrics-port", str(metrics[1])),
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]

    def follow(self, name: str, folder: Path, **spec: Any) -> None:
        """Have the manifests of a folder applied; return when all of them are."""
        _commit(folder)
        annotations = spec.pop("annotations", {})
        application = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {
                "name": name,
                "annotations": annotations,
                "finalizers": ["resources-finalizer.argocd.argoproj.io"],
            },
            "spec": {
                "project": "default",
                "source": {"repoURL": f"file://{folder}", "path": ".", "targetRevision": "HEAD"},
                "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
                "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
                **spec,
            },
        }
        self._cluster.kubectl("-n", _HOME, "apply", "-f", "-", stdin=yaml.safe_dump(application))

        def is_applied() -> bool:
            status = self.status(name)
            phase = status.get("operationState", {}).get("phase")
            return (phase, status.get("health", {}).get("status")) == ("Succeeded", "Healthy")

        try:
            until(is_applied, f"{name} to be applied", _SYNCED)
        except TimeoutError as late:
            raise TimeoutError(f"{late}: {self.status(name)}") from None

    def again(self, name: str) -> set[str]:
        """Have it compared anew; give what it says that differs."""
        note = "argocd.argoproj.io/refresh"
        words = ("-n", _HOME, "annotate", "--overwrite", "application", name, f"{note}=hard")
        self._cluster.kubectl(*words)

        def is_compared() -> bool:
            return note not in self._get(name)["metadata"].get("annotations", {})

        until(is_compared, f"{name} to be compared", _SYNCED)
        status = self.status(name)
        differ = {
            f"{each['kind']}/{each['name']}"
            for each in status["resources"]
            if each["status"] != "Synced"
        }
        assert (status["sync"]["status"] == "Synced") is not bool(differ), status
        return differ

    def status(self, name: str) -> Json:
        found: Json = self._get(name).get("status", {})
        return found

    def forget(self, name: str) -> None:
        """Delete the Application: Argo CD removes all that it applied."""
        self._cluster.kubectl("-n", _HOME, "delete", "application", name, "--timeout=55s")

    def _has_project(self) -> bool:
        words = ("-n", _HOME, "apply", "-f", "-")
        return self._cluster.try_kubectl(*words, stdin=yaml.safe_dump(_PROJECT)).returncode == 0

    def _get(self, name: str) -> Json:
        found: Json = self._cluster.client.demand("GET", f"{_APPLICATIONS}/{name}").body
        return found

    def _run(self, name: str, *command: str) -> None:
        """One of its programs decides by this name which one it is."""
        home = self._folder / name
        home.mkdir()
        variables = {
            "ARGOCD_BINARY_NAME": name,
            "ARGOCD_FAKE_IN_CLUSTER": "true",
            "ARGOCD_GPG_ENABLED": "false",
            "HOME": str(home),
            "PATH": f"{self._folder}:{os.environ['PATH']}",
            "TMPDIR": str(home),
            **{f"ARGOCD_{each}_DATA_PATH": str(home) for each in ("GPG", "SSH", "TLS")},
        }
        log = home / "log"
        program = operators.Program(command, self._cluster.kubeconfig, log, **variables)
        self._stack.enter_context(program)


def _commit(folder: Path) -> None:
    user = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    for words in (("init", "-q"), ("add", "."), (*user, "commit", "-q", "-m", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True)
