"""All checks in the order of their lines: facts in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.doctor import registration, running
from webhook.doctor.edited_entries import shipped
from webhook.doctor.inventory import inventory
from webhook.doctor.leftovers import leftovers
from webhook.doctor.lines import ASK, WARNING, Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.doctor.facts import Facts


class Check(NamedTuple):
    """A check, the facts that it needs, and whether it needs an installation."""

    name: str
    lines: Callable[[Facts], Iterator[Line]]
    needs: tuple[str, ...]
    installed: bool = True


CHECKS = (
    Check(
        "registered", registration.registered, ("configurations", "deployment", "services"), False
    ),
    Check("dry run", running.dry_run, (), False),
    Check("pods", running.pods, ("pods",)),
    Check("quota", running.quota, ("priority_class", "account")),
    Check("certificates", running.certificates, ("configurations", "secret")),
    Check("watcher", running.watcher, ("lease", "root_ca")),
    Check("inventory", inventory, ("pods", "readiness", "inventory_map")),
    Check("rights", running.rights, ("rights",)),
    Check("settings", running.settings, ("settings_map",)),
    Check("matchConditions", registration.conditions, ("configurations", "settings_map")),
    Check("entries", shipped, ("configurations", "settings_map", "services")),
    Check("versions", running.versions, ("version", "pods")),
    Check("order", registration.order, ("configurations",)),
    Check("guard", registration.guard, ("configurations", "labelled")),
    Check("workloads", registration.workloads, ("configurations", "settings_map")),
    Check("leftovers", leftovers, ("configurations", "bindings", "deployment"), False),
)


def lines(facts: Facts) -> Iterator[Line]:
    """The lines of all checks that can be made."""
    for check in CHECKS:
        needs = ("deployment", *check.needs) if check.installed else check.needs
        if refusal := facts.refusal(*needs):
            text = f"cannot be checked: the API server answered {refusal}"
            yield Line(WARNING, text, ASK, check.name)
        elif facts.deployment or not check.installed:
            for line in check.lines(facts):
                yield line if line.what else line._replace(what=check.name)
