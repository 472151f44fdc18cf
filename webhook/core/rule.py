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

# The codes of two rules on which other rules depend. The core knows no other code.
RENAMES_AMOUNTS, TRANSLATES_LABELS = "GPU101", "GPU105"


@dataclass(frozen=True)
class Context:
    """What a rule gets besides the object: settings, inventory, and facts about the object."""

    settings: Settings = field(default_factory=Settings)
    inventory: Inventory | None = None  # None: nothing is known about the nodes
    namespace: str = ""
    # The pod as it came requests GPUs under a legacy name, so it can never run without a repair.
    # Computed before the first rule, because rules rename the amounts from which it follows.
    stuck: bool = False
    was_stuck: bool = False  # the template was `stuck` before an earlier repair of it
    was_chosen: bool = False  # so it was for rules on its choice of nodes: others migrated the rest
    legacy: frozenset[Path] = frozenset()  # the containers in which a legacy amount counts
    repairing: frozenset[str] = frozenset()  # the rules that repair such a pod in this run
    modes: Modes = field(default_factory=Modes)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    labels_unknown: bool = False  # of the namespace: what may be in force there is in force
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
    # Text is inserted into the pod later: which amounts and labels it will have is not known yet.
    is_open: bool = False
    # Numbers that stand for text which a template inserts as an amount: equal ones for equal text.
    inserted: frozenset[int] = frozenset()
    in_manifest: bool = False  # the pod is in a manifest, and the rules for manifests have run
    target: tuple[int, int] = (1, 36)  # the Kubernetes version that the manifest is for
    # A part (values, a patch) that is merged over others: 0 and null in it remove their amount.
    is_merged: bool = False
    unsafe: bool = False  # unsafe edits of all rules are allowed

    def of_stuck(
        self, legacy: frozenset[Path], repairing: frozenset[str], written: Pod | None
    ) -> Context:
        """The same for a pod that can never run without a repair.

        A copy of the members: each legacy pod needs one, and `replace` takes ten times as long.
        """
        cx = object.__new__(Context)
        facts = {"stuck": True, "legacy": legacy, "repairing": repairing, "written": written}
        cx.__dict__.update(self.__dict__, **facts)
        return cx

    def wants_unsafe(self, code: str) -> bool:
        """Whether unsafe edits of this rule are allowed in the manifest."""
        return self.unsafe or (self.in_manifest and code in self.settings.unsafe)

    def leaves_choices(self, code: str) -> bool:
        """Whether this rule does not make edits that only an author can choose (Safety.CHOICE)."""
        return self.in_manifest and not self.wants_unsafe(code)

    @property
    def is_rewritten(self) -> bool:
        """Whether this is a legacy manifest whose amounts get the current name in this run.

        Findings that would not apply to the new text are then only notices.
        """
        return self.in_manifest and RENAMES_AMOUNTS in self.repairing

    @property
    def makes_daemons(self) -> bool:
        """Whether the pods belong to a DaemonSet, whose controller pins each pod to its node."""
        return self.workload.get("kind") == "DaemonSet"

    @property
    def may_constrain(self) -> bool:
        """Whether a rule may add a constraint to the pod, or remove something from it.

        Only if the pod cannot run as it is. In a pod that runs, dead fields have had no effect for
        years, and reviving them could leave the pod pending forever.
        """
        return self.stuck or self.settings.scope == "all-legacy"


class Stage(Enum):
    """The objects on which a rule runs."""

    MANIFEST = auto()  # whole objects in files, before their pods
    REPAIR = auto()  # pods that request GPUs
    POLICY = auto()  # the same pods after the repair
    GUARD = auto()  # all pods, where the leak guard is registered


class Trait(Flag):
    """What the findings of several rules have in common."""

    NONE = 0
    AMOUNTS = auto()  # about the resources of one container, independent of what is around it
    ANNOTATION = auto()  # an annotation of a pod becomes a field
    CLUSTER = auto()  # required by the nodes and the settings, independent of the pod's own fields
    LEGACY_PODS = auto()  # edited in pods with legacy amounts; in other pods only a warning
    CHOICE = auto()  # translates the words that choose nodes
    OBJECT = auto()  # about the object, and not about its pods
    SEPARATE = auto()  # correct, whatever the rest of a file contains
    TEXT = auto()  # about a whole text: no other finding about the words in it is needed
    TIMELESS = auto()  # occurs in objects of any age, not only of Kubernetes 1.3-1.10
    VERSION = auto()  # about how the API server names the object: apiVersion and kind
    # About what an object lacks, so it does not apply to a patch, which is a part of one.
    WHOLE = auto()


@dataclass(frozen=True)
class Facts:
    """What is known about a rule besides its manual; all lists of rules are computed from these.

    An `unsafe` rule has edits that are made only with --unsafe, or if the settings name it. A file
    is read if it contains one of the `words` of a rule, or a name of the settings; a word stands
    for all names that contain it. `patterns` find the same problem in texts that are not manifests.
    """

    stage: Stage
    traits: Trait = Trait.NONE
    unsafe: bool = False
    words: tuple[str, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    @cached_property
    def mode(self) -> Mode:
        """The mode of the rule unless the settings set another.

        Repairs are made. Policy rules only warn: an inventory may be behind the cluster. The guard
        only counts, because it affects pods without a GPU request.
        """
        return {Stage.POLICY: Mode.WARN, Stage.GUARD: Mode.AUDIT}.get(self.stage, Mode.ENFORCE)

    @cached_property
    def has_exceptions(self) -> bool:
        """Whether an annotation can exempt a pod from the rule."""
        return self.stage in {Stage.POLICY, Stage.GUARD}

    @cached_property
    def is_legacy(self) -> bool:
        """Whether the rule finds words of Kubernetes 1.3-1.10."""
        return not (self.has_exceptions or self.traits & (Trait.CLUSTER | Trait.TIMELESS))


class Named(Protocol):
    """A rule of any kind: a module whose docstring is its manual."""

    NAME: str
    CODE: str
    FACTS: Facts


class Rule(Named, Protocol):
    """A rule for pods, with a check().

    check() is pure: it reads the pod as the earlier rules left it and yields findings. The engine
    applies either all edits of one rule or none of them.
    """

    def check(self, pod: Pod, cx: Context) -> Iterator[Finding]:
        """Yield the findings of this rule on the pod."""
        ...


class ObjectRule(Named, Protocol):
    """A rule for whole objects as they are written, for example for removed API versions.

    It runs on files only, never in admission. `check` gets the object as the earlier rules left it;
    paths start at its root.
    """

    def check(self, obj: dict[str, Any], cx: Context) -> Iterator[Finding]:
        """Yield the findings of this rule on the object."""
        ...
