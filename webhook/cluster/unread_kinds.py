"""Custom kinds that may have pod templates and are not known: definitions in, sentences out.

Without its schema nobody knows where the templates of a kind are: `workloads.kinds` names them.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from webhook.cluster import answers, listing
from webhook.cluster.client import Client, Fault, Refused, address
from webhook.cluster.objects import Served
from webhook.evaluation.workloads import makes_pods
from webhook.kube.pod import as_items, as_map

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.settings import Settings

    Raw = dict[str, Any]

_DEFINITIONS = address("apis", "apiextensions.k8s.io", "v1", "customresourcedefinitions")
_MOST = 200  # kinds that are asked for an object
_NOT_FOUND = 404
_TEMPLATES = ("template", "templates")  # ends of the names of their fields
_ADVICE = "add the kind to `workloads.kinds` of the settings"


def unread(client: Client, settings: Settings) -> Iterator[str]:
    """What is not known of each kind that has an object. Fault if the definitions are not read."""
    definitions = listing.objects(client, _DEFINITIONS, lambda *_: None)
    kinds = (kind for each in definitions if (kind := _unknown(as_map(each.get("spec")), settings)))
    for kind in islice(kinds, _MOST):
        try:
            found = as_map(answers.read(client.get(kind.path(), {"limit": "1"})))
            why = "they exist" if found.get("items") else ""
        except Fault as fault:
            is_absent = isinstance(fault, Refused) and fault.status == _NOT_FOUND
            why = "" if is_absent else f"their list failed: {fault}"
        if why:
            name = f"{kind.kind}s ({kind.group})"
            yield f"{name} may have pod templates, which are not checked, and {why}: {_ADVICE}"
    if next(kinds, None):
        yield f"more than {_MOST} custom kinds may have pod templates: {_ADVICE}"


def _unknown(spec: Raw, settings: Settings) -> Served | None:
    """Where such a kind is served; None if it is known, or has no pod templates."""
    group, names = str(spec.get("group")), as_map(spec.get("names"))
    kind, plural = str(names.get("kind")), str(names.get("plural"))
    if makes_pods({"apiVersion": f"{group}/v1", "kind": kind}, settings):
        return None
    for _, version in as_items(spec.get("versions")):
        schema = as_map(as_map(version.get("schema")).get("openAPIV3Schema"))
        if version.get("served") and may_have_pods(schema):
            return Served(group, str(version.get("name")), kind, plural)
    return None


def may_have_pods(schema: Raw) -> bool:
    """Whether it has containers with resources, or takes anything where templates are."""
    waiting = [("", schema)]
    while waiting:
        name, here = waiting.pop()
        inner = as_map(here.get("properties"))
        takes_anything = here.get("x-kubernetes-preserve-unknown-fields") is True and not inner
        if name == "containers" and (takes_anything or "resources" in inner):
            return True
        if takes_anything and (name in ("", "spec") or name.lower().endswith(_TEMPLATES)):
            return True
        waiting += [(each, as_map(below)) for each, below in inner.items()]
        of_items = (here.get(each) for each in ("items", "additionalProperties"))
        waiting += [(name, below) for below in of_items if isinstance(below, dict)]
    return False
