"""The objects that hold certificates: the Secret, and caBundles of webhook configurations.

Each is read whole and written only as it was read: a write that another one came before is refused.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

from webhook.cluster import answers
from webhook.cluster.client import Fault, address
from webhook.kube.pod import Raw, as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.cluster.client import Client


SECRET = "gpu-webhook-certificates"  # noqa: S105  # its name
CONFIGURATIONS = (
    "mutating/gpu-webhook",
    "mutating/gpu-webhook-guard",
    "mutating/gpu-webhook-workloads",
    "validating/gpu-webhook",
    "validating/gpu-webhook-guard-refuse",
)
_LABELS = {"app.kubernetes.io/part-of": "gpu-admission-webhook"}  # of all that is installed


class Secret(NamedTuple):
    """The Secret as it was read; `raw` is empty if there is none."""

    data: Mapping[str, bytes]
    raw: Raw


class Configuration(NamedTuple):
    """A webhook configuration as it was read."""

    version: str
    bundles: tuple[bytes, ...]  # of each entry


def bundles_of(found: Mapping[str, Configuration]) -> dict[str, tuple[bytes, ...]]:
    """The caBundles of each configuration."""
    return {name: each.bundles for name, each in found.items()}


class Objects:
    """Reads and writes them. Each call may raise Fault."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        secret: str = SECRET,
        configurations: Sequence[str] = (),
    ) -> None:
        """`configurations`: mutating/NAME or validating/NAME, by default those of the manifests."""
        self._client = client
        self._secret = secret
        self._secrets = address("api", "v1", "namespaces", namespace, "secrets")
        self._paths = {each: _path(each) for each in configurations or CONFIGURATIONS}

    def secret(self) -> Secret:
        """The Secret as it is now."""
        raw = answers.of_one(self._client, self._secrets + address(self._secret))
        return secret_of(raw) if raw is not None else Secret({}, {})

    def store(self, before: Secret, data: Mapping[str, bytes]) -> Secret:
        """Write the data, unless the Secret is no longer as it was."""
        held = {name: base64.b64encode(text).decode() for name, text in data.items()}
        if before.raw:
            path = self._secrets + address(self._secret)
            return secret_of(answers.read(self._client.replace(path, {**before.raw, "data": held})))
        metadata = {"name": self._secret, "labels": _LABELS}
        raw = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": held}
        return secret_of(answers.read(self._client.create(self._secrets, raw)))

    def configurations(self) -> tuple[dict[str, Configuration], dict[str, Fault]]:
        """Those that are there; and why others could not be read."""
        found: dict[str, Configuration] = {}
        faults: dict[str, Fault] = {}
        for name in self._paths:
            try:
                one = self.configuration(name)
            except Fault as fault:
                faults[name] = fault
            else:
                found |= {} if one is None else {name: one}
        return found, faults

    def configuration(self, name: str) -> Configuration | None:
        """The configuration as it is now; None if it is not there."""
        raw = answers.of_one(self._client, self._paths[name])
        return None if raw is None else configuration_of(raw)

    def fill(self, name: str, before: Configuration, bundles: Sequence[bytes]) -> None:
        """Write the bundles and nothing else, unless the configuration is no longer as it was."""
        operations: list[Raw] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": before.version}
        ]
        operations += (
            {
                "op": "add",
                "path": f"/webhooks/{position}/clientConfig/caBundle",
                "value": base64.b64encode(bundle).decode(),
            }
            for position, bundle in enumerate(bundles)
        )
        self._client.patch(self._paths[name], operations)


def configuration_of(raw: Raw) -> Configuration:
    """The bundles of a webhook configuration."""
    clients = [as_map(each.get("clientConfig")) for _, each in as_items(raw.get("webhooks"))]
    bundles = tuple(base64.b64decode(each.get("caBundle") or "") for each in clients)
    return Configuration(str(as_map(raw.get("metadata")).get("resourceVersion")), bundles)


def secret_of(raw: Raw) -> Secret:
    """What a Secret holds."""
    data = as_map(raw.get("data"))
    return Secret({name: base64.b64decode(text) for name, text in data.items()}, raw)


def _path(configuration: str) -> str:
    kind, _, name = configuration.partition("/")
    plural = f"{kind}webhookconfigurations"
    return address("apis", "admissionregistration.k8s.io", "v1", plural, name)
