"""`gpu-webhook watch`: keeps a snapshot of the cluster in a folder that `serve` reads."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.cli import settings_file
from webhook.core.errors import InputError, SettingsError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from webhook.core.pod import Pod
    from webhook.core.settings import Settings
    from webhook.inventory.project import Audit
    from webhook.inventory.watch import Watcher
    from webhook.telemetry.logs import Log

    LabelsOf = Callable[[str], Mapping[str, str]]

_NICENESS = 5  # a list of 150,000 pods takes a core for a while; answers come first


def run(args: argparse.Namespace) -> int:
    """Watch until told to stop. InputError says what is missing."""
    from webhook.core.settings import Settings
    from webhook.inventory import client, publish
    from webhook.inventory.watch import Watcher
    from webhook.telemetry.logs import Log

    settings = settings_file.load(args.config) if args.config else Settings()
    folder = Path(args.snapshot)
    if not publish.writable(folder):
        raise InputError(f"--snapshot {folder}: cannot be written to; name a folder that can")
    api = client.Client(lambda: client.configuration(args.kubeconfig, args.context))
    log = Log()

    def labels_of(namespace: str) -> Mapping[str, str]:
        return watcher.labels_of(namespace)

    watcher = Watcher(api, settings, folder, log, lambda each: audit_of(each, labels_of))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: watcher.stopped.set())
    os.nice(_NICENESS)
    reload = _Reload(args.config, settings, watcher, log)
    log.write("info", "watching", snapshot=str(folder))
    watcher.run(every_second=reload.look)
    log.write("info", "stopped")
    log.close()
    return 0


class _Reload:
    """Looks whether the settings file is another one."""

    def __init__(self, file: str | None, settings: Settings, watcher: Watcher, log: Log) -> None:
        self._file = file or ""
        self._settings = settings
        self._watcher = watcher
        self._log = log
        self._seen = settings_file.identity(self._file)

    def look(self) -> None:
        """Take new settings; bad ones are reported once, and the old ones stay."""
        seen = settings_file.identity(self._file)
        if seen == self._seen:
            return
        self._seen = seen
        try:
            settings = settings_file.load(self._file)
        except SettingsError as error:
            self._watcher.extra["settings_fault"] = str(error)[:1000]
            self._log.write("error", "the settings are bad; the old ones stay", reason=str(error))
            return
        self._watcher.extra.pop("settings_fault", None)
        if settings != self._settings:
            self._settings = settings
            self._watcher.use(settings)
            self._log.write("info", "the settings are new: everything is listed anew")


def audit_of(settings: Settings, labels_of: LabelsOf = lambda _: {}) -> Audit:
    """What the leak guard says of a pod; `labels_of` knows the namespaces' labels.

    Nothing where the guard is off, or the namespace has opted out of all.
    """
    from webhook.core.modes import Mode, is_opted_out, modes_for
    from webhook.rules import leak_guard

    def audit(pod: Pod) -> tuple[str, ...]:
        namespace = str(pod.metadata.get("namespace", ""))
        found = leak_guard.exposures(pod, settings, namespace)
        if not found:
            return ()
        labels = labels_of(namespace)
        mode = modes_for(settings.policy, namespace, labels).of(leak_guard.CODE)
        return () if mode is Mode.OFF or is_opted_out(labels) else found

    return audit
