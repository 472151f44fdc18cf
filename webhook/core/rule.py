"""The interface of a rule: the members of its module, and the context that it gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from webhook.core.modes import Mode, Modes
from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from webhook.capacity.nodes import Inventory
    from webhook.core.findings import Finding
    from webhook.core.text_patterns import Pattern
    from webhook.evaluation.pod_fields import Key
    from webhook.kube.pod import Pod
    from webhook.kube.pointer import Path

# The codes of two rules on which it depends what others do. The core knows no other code.
RENAMES_AMOUNTS, TRANSLATES_LABELS = "GPU101", "GPU105"


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule gets besides the object: settings, inventory, and facts about the object."""

    settings: Settings = field(default_factory=Settings)
    inventory: Inventory | None = None  # None: nothing is known about the nodes
    namespace: str = ""
    # The pod as it came requests GPUs under a legacy name, so it can never run without a repair.
    # Computed before the first rule, because rules rename the amounts from which it follows.
    stuck: bool = False
    was_stuck: bool = False  # the template was `stuck` before an earlier repair of it
    legacy: frozenset[Path] = frozenset()  # the containers in which a legacy amount counts
    repairing: frozenset[str] = frozenset()  # the rules that repair such a pod in this run
    modes: Modes = field(default_factory=Modes)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    pods_opted_out: bool = False  # a kustomization adds the opt-out label to all pod templates
    today: date | None = None  # the day in UTC
    fresh: bool = True  # the inventory is up to date with the cluster
    template: bool = False  # the pod is a template of a workload
    workload_gpus: Mapping[str, int] = field(default_factory=dict)  # of all its pods together
    workload: Mapping[str, Any] = field(default_factory=dict)
    written: Pod | None = None  # for a legacy template of a DaemonSet: the template as it came
    was_added: Mapping[Key, Any] = field(default_factory=dict)  # by an earlier repair, by settings
    # In an UPDATE of pods/ephemeralcontainers: the names of the added containers. The object is the
    # whole pod, and no other field of it may change.
    only_ephemeral: frozenset[str] | None = None
    final: bool = False  # the pod is as it will be stored: no later webhook changes it
    is_stored: bool = False  # the pod exists already: almost none of its fields may change
    in_manifest: bool = False  # the pod is in a manifest, and the rules for manifests have run
    target: tuple[int, int] = (1, 36)  # the Kubernetes version that the manifest is for
    unsafe: bool = False  # unsafe edits of all rules are allowed

    def wants_unsafe(self, code: str) -> bool:
        """Whether the owner of a manifest wants the edits of this rule that are not safe, too."""
        return self.unsafe or (self.in_manifest and code in self.settings.unsafe)

    def leaves_choices(self, code: str) -> bool:
        """Whether this rule leaves what only an author can decide (Safety.CHOICE) as it is."""
        return self.in_manifest and not self.wants_unsafe(code)

    @property
    def is_rewritten(self) -> bool:
        """Whether this is a legacy manifest whose amounts get today's name in this run.

        What is then still to be said would not be said of the new text: it is a notice, then.
        """
        return self.in_manifest and RENAMES_AMOUNTS in self.repairing

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


class Stage(Enum):
    """What a rule is asked of."""

    MANIFEST = auto()  # whole objects in files, before the pods in them
    REPAIR = auto()  # pods that ask for GPUs
    POLICY = auto()  # the same, as they are repaired
    GUARD = auto()  # all pods, where the leak guard is registered


class Trait(Flag):
    """What the findings of a rule have in common with those of others."""

    NONE = 0
    AMOUNTS = auto()  # about the resources of one container, whatever is around it
    ANNOTATION = auto()  # a pod's annotation becomes a field
    CLUSTER = auto()  # what the nodes and the settings ask for, and not what the pod says
    LEGACY_PODS = auto()  # edited in pods that ask under a legacy name; others are warned about
    OBJECT = auto()  # about the object, and not about its pods
    SEPARATE = auto()  # right whatever the rest of a file turns out to be
    TEXT = auto()  # about a whole text: nothing more is to be said of the words in it
    TIMELESS = auto()  # objects of any age have it: it is no word of Kubernetes 1.3-1.10
    VERSION = auto()  # how the API server names the object: apiVersion and kind
    WHOLE = auto()  # about what an object lacks, so a patch, which is a part of one, has none


@dataclass(frozen=True)
class Facts:
    """What is known of a rule besides its manual; every list of rules is made from these.

    An `unsafe` rule has edits that are made only with --unsafe, or where the settings name it. A
    file is looked into if it holds one of the `words` of a rule, or a name of the settings; a word
    stands for all names that it is a part of. `patterns` are what the rule is about in texts that
    are no manifests.
    """

    stage: Stage
    traits: Trait = Trait.NONE
    unsafe: bool = False
    words: tuple[str, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    @cached_property
    def mode(self) -> Mode:
        """The mode that the rule has if the settings do not name another.

        Repairs are made. Policy only warns: an inventory may be behind the cluster. The guard,
        which concerns pods that ask for no GPU, only counts.
        """
        return {Stage.POLICY: Mode.WARN, Stage.GUARD: Mode.AUDIT}.get(self.stage, Mode.ENFORCE)

    @cached_property
    def has_exceptions(self) -> bool:
        """Whether an annotation may except a pod from the rule."""
        return self.stage in {Stage.POLICY, Stage.GUARD}

    @cached_property
    def is_legacy(self) -> bool:
        """Whether the rule finds words of Kubernetes 1.3-1.10."""
        return not (self.has_exceptions or self.traits & (Trait.CLUSTER | Trait.TIMELESS))


class Named(Protocol):
    """A rule of any kind: a module with a docstring, its manual."""

    NAME: str
    CODE: str
    FACTS: Facts


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
