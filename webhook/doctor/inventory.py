"""Whether the servers know the nodes: pages of their readiness, or a ConfigMap, in; a line out."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from webhook.core.errors import InputError
from webhook.doctor.lines import FAILED, OK, WARNING, Line, few
from webhook.doctor.mounted_files import file_of
from webhook.inventory.inventory_file import objects_in
from webhook.kube.pod import as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.doctor.facts import Facts
    from webhook.doctor.mounted_files import File

# How the page of a server begins. It may not be ready for other reasons, too.
READY, NOT_READY = "ok", "503: not ready: the watcher"
_PARTS = ("inventory: ", "watcher: ")  # its remarks
_NO_GPUS = "inventory: no node offers GPUs"  # so it may be
_FILE = "write the output of `kubectl get nodes -o yaml` into it"
_RIGHTS = "the line `rights` says what the watcher lacks"


def inventory(facts: Facts) -> Iterator[Line]:
    """Whether each server has one that is up to date; no line if none runs."""
    if file := file_of(facts.pod_spec, "--inventory"):
        yield _of_file(file, facts)
    elif file_of(facts.pod_spec, "--snapshot") is None:
        yield Line(OK, "none is used: pods are not compared with nodes")
    elif facts.readiness:
        yield _of_servers(facts)


def _of_servers(facts: Facts) -> Line:
    pages, faults = facts.readiness, defaultdict[str, list[str]](list)
    for name, page in pages.items():
        if why := _fault(page):
            faults[why].append(name)
    bad = sorted(name for names in faults.values() for name in names)
    if bad:
        shown = "; ".join(f"{why} ({few(sorted(names))})" for why, names in faults.items())
        lacks = any((e.verb, e.resource) == ("list", "nodes") for e in facts.missing_rights)
        log = f"kubectl -n {facts.namespace} logs {bad[0]} -c watch"
        text = f"{len(bad)} of {len(pages)} servers have none that is up to date: {shown}"
        state = WARNING if lacks or len(bad) < len(pages) else FAILED
        return Line(state, text, _RIGHTS if lacks else log)
    unread = [name for name, page in pages.items() if not page.startswith(READY)]
    if unread:
        log = f"kubectl -n {facts.namespace} logs {unread[0]}; or a firewall is in the way"
        return Line(WARNING, f"{unread[0]} does not say: {pages[unread[0]]}", log)
    note = "; no node offers GPUs now" if any(_NO_GPUS in each for each in pages.values()) else ""
    return Line(OK, f"{len(pages)} of {len(pages)} servers have one that is up to date{note}")


def _fault(page: str) -> str:
    """What a server says is wrong with its inventory; empty if nothing is."""
    if page.startswith(NOT_READY):
        return page.removeprefix("503: not ready: ").partition(". ")[0]
    lines = page.split("\n")[1:] if page.startswith(READY) else []
    faults = (e for e in lines if e.startswith(_PARTS) and not e.startswith(_NO_GPUS))
    return "; ".join(each.removeprefix("inventory: ") for each in faults)


def _of_file(file: File, facts: Facts) -> Line:
    """A server with a file that cannot be used does not start. Only a ConfigMap can be seen."""
    if file.kind != "configMap":
        return Line(OK, f"the file {file.path}, which does not change with the cluster")
    where = f"the ConfigMap {file.name}"
    text = as_map(facts.inventory_map.get("data")).get(file.key)
    if text is None:
        lacks = f"there is no ConfigMap {file.name} with the key {file.key}"
        return Line(FAILED, f"{lacks}: a new pod cannot start", _FILE)
    try:
        kinds = [each["kind"] for each in objects_in(file.key, str(text))]
    except InputError as error:
        return Line(FAILED, f"{where}: a new pod cannot start: {error}", _FILE)
    if "Node" not in kinds and not facts.settings.capacity.pools:
        return Line(WARNING, f"{where} has no nodes", _FILE)
    return Line(OK, f"{kinds.count('Node')} nodes of {where}")
