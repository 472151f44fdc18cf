"""`gpu-webhook watch`: keeps a snapshot of the cluster in a folder that `serve` reads."""

from __future__ import annotations

import os
import secrets
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.cli import inputs
from webhook.cli.settings_follower import SettingsFollower
from webhook.cli.starting import ended_by_signals
from webhook.core.errors import InputError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping
    from types import SimpleNamespace

    from webhook.cluster.client import Client
    from webhook.core.settings import Settings
    from webhook.inventory.object_facts import Audit
    from webhook.inventory.watch import Watcher
    from webhook.kube.pod import Pod
    from webhook.telemetry.logs import Log

    LabelsOf = Callable[[str], Mapping[str, str]]

_RELEASE_SECONDS = 3.0  # to give the Lease to another replica
_NICENESS = 5  # a list of 150,000 pods needs a core for a while; answers have priority


def run(args: SimpleNamespace) -> int:
    """Watch until a signal arrives. InputError for faulty flags or files."""
    with ended_by_signals():
        return _run(args)


def _run(args: SimpleNamespace) -> int:
    from webhook.cluster import client
    from webhook.inventory import publish
    from webhook.inventory.watch import Watcher
    from webhook.serving.heap import HEAP
    from webhook.telemetry.logs import Log

    HEAP.share()
    settings = inputs.read(args.config)
    folder = Path(args.snapshot)
    if not publish.writable(folder):
        raise InputError(f"--snapshot {folder}: cannot be written; name a writable folder")
    api = client.connected(args.kubeconfig, args.context)
    log = Log()

    def labels_of(namespace: str) -> Mapping[str, str]:
        return watcher.labels_of(namespace)

    watcher = Watcher(api, settings, folder, log, lambda each: audit_of(each, labels_of))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watcher.stopped.set())
    os.nice(_NICENESS)
    reload = _reload(args.config or "", settings, watcher, log)
    log.write("info", "watching", snapshot=str(folder))
    keeping = _keep_certificates(args, api, watcher, log) if args.certificates else None
    watcher.run(every_second=reload, tidy=HEAP.trim)
    if keeping is not None:
        keeping.join(_RELEASE_SECONDS)
    log.write("info", "stopped")
    log.close()
    return 0


def _keep_certificates(
    args: SimpleNamespace, api: Client, watcher: Watcher, log: Log
) -> threading.Thread:
    """Start the thread that keeps the webhook's own certificates."""
    from webhook.certs.renewal import Plan
    from webhook.cluster import client
    from webhook.issuing.keeper import Clocks, Keeper
    from webhook.issuing.lease import Lease
    from webhook.issuing.objects import SECRET, Objects

    namespace = client.namespace(args.kubeconfig, args.context)
    hosts = args.certificate_for or [f"gpu-webhook.{namespace}.svc"]
    identity = f"{os.uname().nodename}_{secrets.token_hex(4)}"
    keeper = Keeper(
        Objects(api, namespace, SECRET, args.configuration),
        Lease(api, namespace, SECRET, identity),
        Plan(tuple(hosts), leaf_life=60.0 * args.leaf_minutes),
        Path(args.certificates),
        log,
        Clocks(api.now),
    )
    watcher.extra["certificates"] = keeper.status
    return keeper.start(watcher.stopped)


def _reload(file: str, used: Settings, watcher: Watcher, log: Log) -> Callable[[], None]:
    """Returns what passes new settings to the watcher; bad ones are reported once, and not used."""

    def say(level: str, message: str, reason: str) -> None:
        log.write(level, message, reason=reason)

    following = SettingsFollower(file, lambda: inputs.read(file), say)

    def look() -> None:
        nonlocal used
        settings = following.look()
        if following.fault:
            watcher.extra["settings_fault"] = following.fault[:1000]
        else:
            watcher.extra.pop("settings_fault", None)
        if settings is not None and settings != used:
            used = settings
            watcher.use(settings)
            log.write("info", "the settings have changed: everything is listed again")

    return look


def audit_of(settings: Settings, labels_of: LabelsOf = lambda _: {}) -> Audit:
    """Returns the audit of the leak guard for a pod; `labels_of` returns labels of namespaces.

    Empty if the guard is off, or if the namespace has opted out.
    """
    from webhook.core.modes import Mode, modes_for
    from webhook.core.rule import Context
    from webhook.evaluation.evaluate import in_force
    from webhook.rules import leak_guard

    def audit(pod: Pod) -> tuple[str, ...]:
        namespace = str(pod.metadata.get("namespace", ""))
        found = leak_guard.exposures(pod, settings, namespace)
        if not found:
            return ()
        labels = labels_of(namespace)
        modes = modes_for(settings.policy, namespace, labels)
        cx = Context(settings, namespace=namespace, modes=modes, namespace_labels=labels)
        return () if in_force([leak_guard], cx).keys() <= {Mode.OFF} else found

    return audit
