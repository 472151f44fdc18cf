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

    def leaves_choices(self, code: str) -> bool:
        """Whether this rule leaves what only an author can decide (Safety.CHOICE) as it is."""
        return self.at_rest and not self.wants_unsafe(code)

    @property
    def is_rewritten(self) -> bool:
        """Whether this is a legacy manifest whose amounts get today's name in this run.

        What is then still to be said would not be said of the new text: it is a notice, then.
        """
        return self.at_rest and RENAMES_AMOUNTS in self.repairing

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
