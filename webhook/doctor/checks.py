"""All checks in the order of their lines: facts in, lines out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.doctor import registration, running
from webhook.doctor.lines import WARNING, Line

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
    Check("quota", running.quota, ("quotas", "priority_class")),
    Check("certificates", running.certificates, ("configurations", "secret")),
    Check("watcher", running.watcher, ("lease", "root_ca")),
    Check("rights", running.rights, ("rights",)),
    Check("settings", running.settings, ("settings_map",)),
    Check("matchConditions", registration.conditions, ("configurations", "settings_map")),
    Check("versions", running.versions, ("version", "pods")),
    Check("order", registration.order, ("configurations",)),
    Check("guard", registration.guard, ("configurations", "guarded")),
    Check("workloads", registration.workloads, ("configurations", "settings_map")),
    Check("leftovers", registration.leftovers, ("configurations", "bindings"), False),
)


def lines(facts: Facts) -> Iterator[Line]:
    """The lines of all checks that can be made."""
    for check in CHECKS:
        needs = ("deployment", *check.needs) if check.installed else check.needs
        unread = [facts.unread[name] for name in needs if name in facts.unread]
        if unread:
            text = f"cannot be checked: the API server answered {unread[0]}"
            yield Line(WARNING, text, "ask for the right to read it", check.name)
        elif facts.deployment or not check.installed:
            for line in check.lines(facts):
                yield line if line.what else line._replace(what=check.name)
