"""Everything that the checks look at: reads each object of the cluster once, and changes nothing.

What the API server refuses to show is in `unread`; the checks that need it report that.
"""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from webhook.cluster import answers, listing
from webhook.cluster.client import Fault, Refused, address
from webhook.core.errors import SettingsError
from webhook.core.settings import Settings
from webhook.doctor import rights
from webhook.doctor.leftovers import called, named
from webhook.doctor.legacy_trial import Trial, legacy_pod, tried
from webhook.doctor.mounted_files import SERVER, File, file_of, has_flag, server_of
from webhook.issuing.objects import SECRET, secret_of
from webhook.kube.pod import as_items, as_map, is_finished, labels_of
from webhook.settings.file import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from webhook.cluster.client import Client
    from webhook.doctor.rights import Right

Raw = dict[str, Any]

T = TypeVar("T")
GUARD = "gpu-webhook.dev/guard"  # a label: pods of namespaces with "enabled" reach the guard
_ROLES = ("gpu-webhook", SECRET)  # the ClusterRoles of an installation
_GROUP = ("apis", "admissionregistration.k8s.io", "v1")
_FORBIDDEN = 403
_REVIEWS = address("apis", "authorization.k8s.io", "v1", "subjectaccessreviews")


@dataclass(frozen=True)
class Facts:
    """What was read. An object that is not there is empty."""

    namespace: str
    now: float  # of the API server
    trial: Trial
    unread: Mapping[str, str] = field(default_factory=dict)  # the name of a field below: why
    version: Raw = field(default_factory=dict)
    configurations: Mapping[str, Raw] = field(default_factory=dict)  # mutating/NAME: all there are
    bindings: tuple[Raw, ...] = ()  # ClusterRoleBindings of any installation
    labelled: tuple[Raw, ...] = ()  # namespaces with the label of the guard, whatever its value
    deployment: Raw = field(default_factory=dict)
    # Each namespace that they name: whether the webhook is there. None: it may not be read.
    live: Mapping[str, bool | None] = field(default_factory=dict)
    pods: tuple[Raw, ...] = ()
    services: tuple[Raw, ...] = ()
    priority_class: Raw = field(default_factory=dict)
    settings_map: Raw = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    mistakes: str = ""  # in the settings
    secret: Raw = field(default_factory=dict)
    lease: Raw = field(default_factory=dict)
    root_ca: Raw = field(default_factory=dict)  # a ConfigMap
    inventory_map: Raw = field(default_factory=dict)  # a ConfigMap with nodes, if one is used
    readiness: Mapping[str, str] = field(default_factory=dict)  # by pod: what its server answers
    account: Raw = field(default_factory=dict)  # the ServiceAccount of the pods
    missing_rights: tuple[Right, ...] = ()

    @property
    def pod_spec(self) -> Raw:
        """The template of the Deployment."""
        return _template(self.deployment)

    @property
    def keeps_certificates(self) -> bool:
        """Whether the watchers keep certificates of their own."""
        return has_flag(self.pod_spec, "--certificates")

    @property
    def has_watchers(self) -> bool:
        """Whether the servers are to use the inventory of a watcher."""
        return has_flag(self.pod_spec, "--snapshot")

    @property
    def account_name(self) -> str:
        """The name of the ServiceAccount of the pods."""
        return _account(self.pod_spec)

    @property
    def settings_file(self) -> File | None:
        """Where the servers read their settings; None if they have the defaults."""
        return file_of(self.pod_spec, "--config")

    @property
    def unseen(self) -> str:
        """Why the settings of the servers cannot be seen; empty if they can."""
        file = self.settings_file
        if file is None or file.key in as_map(self.settings_map.get("data")):
            return ""
        if file.kind == "configMap":
            return f"there is no ConfigMap {file.name} with the key {file.key}"
        return f"{file.path} is not a file of one ConfigMap"

    def pair(self) -> list[bytes]:
        """The certificate and the key that others make, as the servers read them."""
        files = [file_of(self.pod_spec, f"--tls-{name}-file") for name in ("cert", "private-key")]
        return [self.data().get(file.key, b"") if file else b"" for file in files]

    def refusal(self, *names: str) -> str:
        """Why the first of these fields could not be read that could not; empty if all could."""
        return next((self.unread[name] for name in names if name in self.unread), "")

    def data(self) -> Mapping[str, bytes]:
        """The data of the Secret."""
        return secret_of(self.secret).data

    @property
    def guarded(self) -> list[Raw]:
        """The namespaces that the guard is to guard."""
        return [each for each in self.labelled if labels_of(each).get(GUARD) == "enabled"]

    def entries(self, *names: str) -> Iterator[tuple[str, Raw]]:
        """The entries of these configurations, each with the name of its configuration."""
        for name in names:
            for _, entry in as_items(self.configurations.get(name, {}).get("webhooks")):
                yield name, entry


class _Reader:
    """Reads objects; remembers what was refused."""

    def __init__(self, api: Client) -> None:
        self._api = api
        self.unread: dict[str, str] = {}

    def ask(self, name: str, call: Callable[[], T], otherwise: T) -> T:
        try:
            return call()
        except Refused as refused:
            if refused.is_of_nobody:
                raise
            self.unread[name] = str(refused)
            return otherwise

    def one(self, name: str, *segments: str) -> Raw:
        """An object; empty if there is none."""
        path = address(*segments)
        return self.ask(name, lambda: answers.of_one(self._api, path), None) or {}

    def all(self, name: str, *segments: str, selector: str = "") -> tuple[Raw, ...]:
        """The objects whose labels this selects."""
        query = {"labelSelector": selector} if selector else None

        def call() -> tuple[Raw, ...]:
            return tuple(listing.objects(self._api, address(*segments), query=query))

        return self.ask(name, call, ())


def read(api: Client, namespace: str, tried_in: str) -> Facts:
    """Read an installation. Fault if the API server does not answer."""
    reader = _Reader(api)
    core, here = ("api", "v1"), ("api", "v1", "namespaces", namespace)
    configurations = {
        f"{kind}/{each['metadata']['name']}": each
        for kind in ("mutating", "validating")
        for each in reader.all("configurations", *_GROUP, f"{kind}webhookconfigurations")
    }
    rbac = ("apis", "rbac.authorization.k8s.io", "v1", "clusterrolebindings")
    bound = reader.all("bindings", *rbac)
    bindings = tuple(each for each in bound if as_map(each.get("roleRef")).get("name") in _ROLES)
    deployment = next(iter(_deployed(reader, "deployment", namespace)), {})
    pod = _template(deployment)
    selector = as_map(as_map(deployment.get("spec")).get("selector"))
    labels = ",".join(
        f"{key}={value}" for key, value in as_map(selector.get("matchLabels")).items()
    )
    file = file_of(pod, "--config")
    settings_map = _config_map(reader, "settings_map", namespace, file)
    settings, mistakes = _settings(settings_map, file)
    images = [str(each) for each in [server_of(pod).get("image")] if each]
    own = has_flag(pod, "--certificates")
    shown = file_of(pod, "--tls-cert-file")
    secret = SECRET if own else shown.name if shown and shown.kind == "secret" else ""
    lease = ("apis", "coordination.k8s.io", "v1", "namespaces", namespace, "leases", SECRET)
    priority = pod.get("priorityClassName")
    classes = ("apis", "scheduling.k8s.io", "v1", "priorityclasses")
    nothing: tuple[Right, ...] = ()
    missing = reader.ask(
        "rights", lambda: _missing(api, namespace, pod, settings, own=own) if pod else (), nothing
    )
    pods = reader.all("pods", *here, "pods", selector=labels) if labels else ()
    nodes = _config_map(reader, "inventory_map", namespace, file_of(pod, "--inventory"))
    asked = pods if file_of(pod, "--snapshot") else ()
    space = reader.one("namespace", *core, "namespaces", tried_in)
    space = space or {"metadata": {"name": tried_in}}
    return Facts(
        namespace,
        version=reader.one("version", "version"),
        configurations=configurations,
        bindings=bindings,
        live=_live(reader, configurations, bindings),
        labelled=reader.all("labelled", *core, "namespaces", selector=GUARD),
        deployment=deployment,
        pods=pods,
        inventory_map=nodes,
        readiness=reader.ask("readiness", lambda: readiness(api, namespace, asked), {}),
        account=reader.one("account", *here, "serviceaccounts", _account(pod)) if pod else {},
        services=reader.all("services", *here, "services"),
        priority_class=reader.one("priority_class", *classes, priority) if priority else {},
        settings_map=settings_map,
        settings=settings,
        mistakes=mistakes,
        secret=reader.one("secret", *here, "secrets", secret) if secret else {},
        lease=reader.one("lease", *lease),
        root_ca=reader.one("root_ca", *here, "configmaps", "kube-root-ca.crt"),
        missing_rights=missing,
        # Policies may allow the images of one registry only, as they do that of the webhook.
        trial=tried(api, space, legacy_pod(settings, *images[:1])),
        unread=reader.unread,
        now=api.now(),
    )


def _config_map(reader: _Reader, field_name: str, namespace: str, file: File | None) -> Raw:
    """The ConfigMap that has this file, with its binary data as text; empty if none has it."""
    if file is None or file.kind != "configMap":
        return {}
    found = reader.one(field_name, "api", "v1", "namespaces", namespace, "configmaps", file.name)
    if binary := as_map(found.get("binaryData")):  # of programs that write all files so
        texts = {key: b64decode(each).decode(errors="replace") for key, each in binary.items()}
        found = {**found, "data": {**texts, **as_map(found.get("data"))}}
    return found


def readiness(api: Client, namespace: str, pods: Iterable[Raw]) -> dict[str, str]:
    """The pages of readiness of the servers that run, or why there is none.

    The proxy of the API server asks for them. Refused without the right to it.
    """
    found: dict[str, str] = {}
    for name, port in filter(None, map(_server_of, pods)):
        server = address("api", "v1", "namespaces", namespace, "pods", f"https:{name}:{port}")
        try:
            page = api.get(f"{server}/proxy/readyz", {}, media_type="text/plain")
        except Refused as refused:
            if refused.status == _FORBIDDEN:
                raise
            found[name] = str(refused)
        except Fault as fault:
            found[name] = str(fault)
        else:
            found[name] = page.decode(errors="replace")
    return found


def _server_of(pod: Raw) -> tuple[str, int] | None:
    """The name of a pod, and the port of its server; None if that does not run, or starts."""
    status = as_map(pod.get("status"))
    started = [
        each.get("started")
        for _, each in as_items(status.get("containerStatuses"))
        if each.get("name") == SERVER
    ]
    if not status.get("podIP") or pod["metadata"].get("deletionTimestamp") or False in started:
        return None
    containers = as_items(as_map(pod.get("spec")).get("containers"))
    ports = [port for _, each in containers for _, port in as_items(each.get("ports"))]
    for port in ports:
        if port.get("name") == "https" and not is_finished(pod):
            return str(pod["metadata"]["name"]), int(port["containerPort"])
    return None


def _deployed(reader: _Reader, name: str, namespace: str) -> list[Raw]:
    """The Deployments of the webhook, whatever labels a platform gives to all of its objects."""
    found = reader.all(name, "apis", "apps", "v1", "namespaces", namespace, "deployments")
    return [
        each
        for each in found
        if SERVER in (c.get("name") for _, c in as_items(_template(each).get("containers")))
    ]


def _live(
    reader: _Reader, configurations: Mapping[str, Raw], bindings: tuple[Raw, ...]
) -> dict[str, bool | None]:
    """Whether a Deployment of the webhook, or a Service that they call, is in each namespace."""
    services = set().union(*map(called, configurations.values()))
    found: dict[str, bool | None] = {}
    for space in set().union(*named(configurations, bindings).values()):
        what = f"installation in {space}"
        is_there = any(_deployed(reader, what, space)) or any(
            reader.one(what, "api", "v1", "namespaces", space, "services", name)
            for each, _, name in (service.partition("/") for service in services)
            if each == space
        )
        found[space] = None if what in reader.unread and not is_there else is_there
    return found


def _missing(
    api: Client, namespace: str, pod: Raw, settings: Settings, *, own: bool
) -> tuple[Right, ...]:
    wanted = [*rights.of_inventory(settings), *(rights.of_certificates(namespace) if own else ())]
    reviews = ((each, each.review(_account(pod), namespace)) for each in wanted)
    return tuple(
        right
        for right, review in reviews
        if not as_map(answers.read(api.create(_REVIEWS, review)).get("status")).get("allowed")
    )


def _settings(found: Raw, file: File | None) -> tuple[Settings, str]:
    """The settings in the ConfigMap; and their mistakes, with the defaults."""
    text = as_map(found.get("data")).get(file.key) if file else None
    try:
        return (parse(text) if text is not None else Settings()), ""
    except SettingsError as error:
        return Settings(), str(error)


def _template(deployment: Raw) -> Raw:
    return as_map(as_map(as_map(deployment.get("spec")).get("template")).get("spec"))


def _account(pod: Raw) -> str:
    return str(pod.get("serviceAccountName") or "default")
