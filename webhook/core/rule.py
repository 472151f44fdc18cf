"""A rule is a module; this is what it must look like, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from webhook.core.modes import Modes
from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from webhook.core.findings import Finding
    from webhook.core.leaves import Key
    from webhook.core.nodes import Inventory
    from webhook.core.pod import Pod
    from webhook.core.pointer import Path


@dataclass(frozen=True, slots=True)
class Context:
    """All that a rule knows besides the pod.

    `inventory` is None where nothing is known of the cluster's nodes. `stuck` says that the pod, as
    it came, asks for GPUs under a legacy name and so can never run unrepaired, and `legacy` in
    which containers such an amount counts: the engine works it out before the first rule, since the
    rules then rename what it is read from. `repairing` names the rules that repair such a pod in
    this run, for those whose edits need others'. `was_stuck` says that a template was so before it
    was repaired. `fresh` says that the inventory is not behind the cluster, `template` that the pod
    is one that a workload will make, `workload` is that workload itself, and `workload_gpus` what
    all its pods ask for together. Of a legacy template of a DaemonSet `written` is what it said of
    its nodes as it came, and `was_added` of a template what an earlier repair wrote into it because
    the settings ask for it, by its place. `today` is the day in UTC. `at_rest` says that what is
    judged is a manifest, which the rules on manifests have judged before, `target` is the
    Kubernetes that it is for, and `unsafe` that its owner wants all edits that are not safe, too.
    """

    settings: Settings = field(default_factory=Settings)
    inventory: Inventory | None = None
    namespace: str = ""
    stuck: bool = False
    was_stuck: bool = False
    legacy: frozenset[Path] = frozenset()  # where the containers are
    repairing: frozenset[str] = frozenset()
    modes: Modes = field(default_factory=Modes)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    pods_opted_out: bool = False  # a kustomization gives all pod templates the label
    today: date | None = None
    fresh: bool = True
    template: bool = False
    workload_gpus: Mapping[str, int] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    written: Pod | None = None
    was_added: Mapping[Key, Any] = field(default_factory=dict)
    # In an UPDATE of pods/ephemeralcontainers: the names of those that it adds. The object is the
    # whole pod, and nothing else of it may change.
    only_ephemeral: frozenset[str] | None = None
    final: bool = False  # the pod is as it will be stored: nobody changes it any more
    is_stored: bool = False  # the pod was made before: nearly nothing of it may change
    at_rest: bool = False
    target: tuple[int, int] = (1, 36)
    unsafe: bool = False

    def wants_unsafe(self, code: str) -> bool:
        """Whether the owner of a manifest wants the edits of this rule that are not safe, too."""
        return self.unsafe or (self.at_rest and code in self.settings.unsafe)

    @property
    def makes_daemons(self) -> bool:
        """Whether the pods are a DaemonSet's, whose controller pins each to its node."""
        return self.workload.get("kind") == "DaemonSet"

    @property
    def may_constrain(self) -> bool:
        """Whether a rule may add a constraint to the pod, or take something away from it.

        Only if that pod cannot run as it is: what is dead in a pod that runs has had no effect for
        years, and reviving it could make the pod wait for ever.
        """
        return self.stuck or self.settings.scope == "all-legacy"


class Named(Protocol):
    """A rule of any kind: a module with a docstring, its manual."""

    NAME: str
    CODE: str


class Rule(Named, Protocol):
    """A rule on pods, with a check().

    check() is pure: it reads the pod as the earlier rules left it and yields what it found. The
    engine applies the edits of one rule together, or none of them.
    """

    def check(self, pod: Pod, cx: Context) -> Iterator[Finding]:
        """Yield what this rule finds on the pod."""
        ...


class ObjectRule(Named, Protocol):
    """A rule that looks at a whole manifest object, as it is written: dead API versions and such.

    Only road 2 asks it, and what a person applies is not changed by it. `check` sees the object as
    the earlier rules left it; paths are from its root.
    """

    def check(self, obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
        """Yield what this rule finds on the object."""
        ...
