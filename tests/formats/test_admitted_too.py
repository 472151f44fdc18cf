"""One evaluator: `/mutate`, `/validate` and `review` say of an object what is said of its file.

But for what a whole manifest says and no pod: the rules on that are asked of files only.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from tests.admission.admitted import admitted
from tests.formats.test_every_way import ALONE, WAYS, found, in_data, result_of
from tests.formats.test_same_rules import CHOOSING, plan
from tests.properties.clusters import clusters
from tests.properties.pods import pods
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.cli.review import _review
from webhook.core.legacy_names import AFFINITY_ANNOTATION
from webhook.core.modes import IGNORE, Mode
from webhook.core.namespace_selection import Selection
from webhook.core.policy_exceptions import ALLOW
from webhook.core.settings import Allowance, Policy, Settings
from webhook.core.text_patterns import find
from webhook.evaluation import repair_record
from webhook.evaluation.evaluate import Stages
from webhook.files.results import Plan, Status
from webhook.formats import file_objects, unfinished
from webhook.kube import affinity, go_json
from webhook.kube.pod import PREFERRED, as_map
from webhook.reports.printing import as_yaml
from webhook.rules import (
    PATTERNS,
    POLICY,
    RULES,
    affinity_annotation,
    leak_guard,
    legacy_resource,
    missing_toleration,
    never_fits,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence

    from tests.cases import Case
    from tests.properties.clusters import Cluster
    from webhook.core.findings import Finding
    from webhook.core.rule import Context, Facts, Rule
    from webhook.files.results import FileResult, Located
    from webhook.kube.pod import Pod

    Raw = dict[str, Any]

# What a rule on whole manifests takes over in files, and a rule on pods in admission.
TAKEN_OVER = "init-containers"
ON_PODS = [
    case for case in ALONE if not case.is_on_manifest and TAKEN_OVER not in case.file.read_text()
]
CODES = [rule.CODE for rule in (*RULES, *POLICY)]
LEGACY, GPU = "alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu"


@pytest.fixture(autouse=True, scope="module")
def only_rules_on_pods() -> Iterator[None]:
    """Ask those of files that are asked of pods, and compare all pods of files with nodes.

    Text that is illegal in its field is a placeholder in a file, and refused by the API server.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_objects, "_STAGES", Stages((), RULES, policy=POLICY))
        patched.setattr(unfinished, "is_unfinished", lambda _: False)
        yield


def as_files(settings: Settings) -> Settings:
    """The settings with which admission does what files ask for: all pods, and templates as well.

    The note on what was repaired is of no file.
    """
    return replace(
        settings,
        scope="all-legacy",
        messages=replace(settings.messages, annotation=False),
        workloads=replace(settings.workloads, repair=True),
    )


@dataclass
class Said:
    """What one way makes of the object, and which rules find something, or raise.

    Of a file `mentioned` is what no rule found, but a pattern in its text.
    """

    object: Raw
    codes: set[str]
    failed: set[str]
    mentioned: set[str] = field(default_factory=set, compare=False)


def in_file(obj: Raw, settings: Settings, inventory: Inventory | None) -> Said:
    text = json.dumps(obj, indent=2)
    result = result_of("x.json", text, Plan(settings, inventory))
    assert not result.error
    failed = {each.code for each in result.located if "the rule failed" in each.message}
    codes = {each.code for each in result.located if each.object and not is_of_zero(each)} - failed
    mentioned = {each.code for each in result.located if not each.object}
    return Said(
        without_old(json.loads(result.new_text or text), settings), codes, failed, mentioned
    )


def is_of_zero(located: Located) -> bool:
    """Whether it is the notice on a legacy 0 that stays, which is of no interest in a cluster."""
    return located.code == legacy_resource.CODE and located.status is Status.NOTICE


def in_review(obj: Raw, settings: Settings, inventory: Inventory | None) -> Said:
    made = copy.deepcopy(obj)
    (verdict,) = (each.verdict for each in _review(made, settings, inventory))
    codes = {each.code for each in verdict.findings} - {leak_guard.CODE}
    return Said(without_old(made, settings), codes, {code for code, _ in verdict.failed})


def in_admission(
    obj: Raw, settings: Settings, inventory: Inventory | None, rules: Sequence[Rule] = RULES
) -> Said:
    """What is said of templates is said by /validate where none is repaired."""
    of_all = as_files(settings)
    made = admitted(obj, of_all, inventory, rules)
    told = made
    if obj["kind"] != "Pod":
        told = admitted(obj, replace(of_all, workloads=settings.workloads), inventory, rules)
        assert told.object == obj
    seen = without_old(without_record(made.object), settings)
    return Said(seen, told.codes - told.failed, told.failed)


def without_record(obj: Raw) -> Raw:
    """The object without what the next update of a template is taken apart by."""
    annotations = as_map(as_map(obj.get("metadata")).get("annotations"))
    if annotations.pop(repair_record.ANNOTATION, None) is not None and not annotations:
        del obj["metadata"]["annotations"]
    return obj


def without_old(obj: Raw, settings: Settings) -> Raw:
    """The object without what it excludes under the old model label beside today's.

    Admission always writes both; a file is for nodes of today (docs/rules/GPU105.md).
    """
    old, today = settings.models.legacy_label, settings.models.key
    waiting: list[Any] = [obj]
    while waiting:
        here = waiting.pop()
        below = list(here.values() if isinstance(here, dict) else here)
        waiting += [each for each in below if isinstance(each, dict | list)]
        if isinstance(here, list):
            asked = [each for each in here if isinstance(each, dict)]
            ways = [each.get("operator") for each in asked if each.get("key") == today]
            here[:] = [each for each in here if not _is_excluded_twice(each, old, ways)]
    return obj


def _is_excluded_twice(requirement: Any, label: str, today: list[Any]) -> bool:
    is_old = isinstance(requirement, dict) and requirement.get("key") == label
    return is_old and requirement.get("operator") in {"NotIn", "DoesNotExist"} & {*map(str, today)}


@pytest.mark.parametrize("case", ON_PODS, ids=map(str, ON_PODS))
def test_a_case_of_the_corpus(case: Case) -> None:
    obj, asked = in_data(case.file.read_text()), plan(case)
    said = in_file(obj, asked.settings, asked.inventory)
    assert in_review(obj, asked.settings, asked.inventory) == said
    assert in_admission(obj, asked.settings, asked.inventory) == said
    assert said.codes
    assert not said.failed


def has_dead_parts(pod: Raw) -> bool:
    """Whether its affinity annotation has parts that never had an effect (GPU106)."""
    try:
        text = as_map(pod["metadata"].get("annotations"))[AFFINITY_ANNOTATION]
        sections, _ = affinity.decode(text)
    except (KeyError, TypeError, go_json.Mistake):
        return False
    terms = sections.get("podAntiAffinity", affinity.Section()).value.get(PREFERRED, [])
    return any(each.left for each in sections.values()) or any(
        "podAffinityTerm" not in each for each in terms
    )


@given(pods(), clusters(), st.sampled_from(CODES), st.booleans())
def test_any_pod(pod: Raw, cluster: Cluster, off: str, has_label: bool) -> None:  # noqa: FBT001
    """A rule that is off is off everywhere; of a pod that opted out files say nothing at all."""
    metadata = pod["metadata"]
    metadata["name"] = "p"
    annotations = as_map(metadata.get("annotations"))
    for key in [key for key in annotations if TAKEN_OVER in key]:
        del annotations[key]
    if has_label:
        metadata["labels"] = {**(metadata.get("labels") or {}), IGNORE: "true"}
    cx = cluster.context
    settings = replace(cx.settings, scope="all-legacy", policy=Policy(rules={off: Mode.OFF}))
    # With `unsafe` parts of the annotation that never had an effect are removed in a file only.
    stays = {affinity_annotation.CODE} if has_dead_parts(pod) else set()
    settings = replace(settings, unsafe=tuple(code for code in CHOOSING if code not in stays))
    said = in_file(pod, settings, cx.inventory)
    reviewed = in_review(pod, settings, cx.inventory)
    made = in_admission(pod, settings, cx.inventory)
    assert made == reviewed
    assert made.object == said.object
    assert made.failed | said.failed == set()
    assert off not in made.codes | said.codes | said.mentioned
    if has_label:
        assert (made.object, said.codes) == (pod, set())
        assert made.codes <= {rule.CODE for rule in POLICY}
    else:
        assert made.codes == said.codes
    for code in made.codes:
        event(code)


@given(pods(), clusters(), st.sampled_from(list(WAYS)))
def test_any_pod_in_any_file(pod: Raw, cluster: Cluster, name: str) -> None:
    way, cx = WAYS[name], cluster.context
    settings = replace(cx.settings, scope="all-legacy", unsafe=CHOOSING)
    text, asked = as_yaml(pod), Plan(settings, cx.inventory)
    # Of a guide, only what has a legacy word is looked at.
    assume(next(find(text, PATTERNS, asked.settings), None) is not None)
    manifest = result_of("x.yaml", text, asked)
    result = result_of(way.path, way.write(text), asked)
    assert by_rules(result) == by_rules(manifest)
    assert way.read(result.new_text or way.write(text)) == (manifest.new_text or text)


def by_rules(result: FileResult) -> Counter[tuple[str, ...]]:
    """What rules found; what only a pattern finds is of less weight in prose."""
    return found(replace(result, located=tuple(each for each in result.located if each.object)))


NODES = (NodeClass({}, gpus={GPU: 8}),)
# The policy counts what is asked for under names of today, so one requests that in any case.
CONTAINERS = [
    {"name": "a", "image": "i", "resources": {"limits": {LEGACY: "1"}}},
    {"name": "b", "image": "i", "resources": {"limits": {GPU: "9"}}},
]
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": CONTAINERS},
}
DEPLOYMENT: Raw = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replicas": 1, "template": {"metadata": {}, "spec": {"containers": CONTAINERS}}},
}
OUT = {IGNORE: "true"}
REASON = {f"{ALLOW}{never_fits.CODE}": "a test"}
EXCEPTED = Policy(exceptions=(Allowance((never_fits.CODE,), Selection()),))


def both(obj: Raw, **metadata: Any) -> Raw:
    """The object with these metadata of the pod, or of its template."""
    made = copy.deepcopy(obj)
    holder = made if made["kind"] == "Pod" else made["spec"]["template"]
    holder["metadata"].update(metadata)
    return made


def enforced(policy: Policy = Policy()) -> Policy:  # noqa: B008  # it is frozen
    return replace(policy, rules={never_fits.CODE: Mode.ENFORCE, **policy.rules})


REST = {"GPU201", "GPU301"}
FOUND = {"GPU101", *REST}


@pytest.mark.parametrize("obj", [POD, DEPLOYMENT], ids=["a pod", "a workload"])
@pytest.mark.parametrize(
    ("metadata", "policy", "namespace", "files", "others", "repaired"),
    [
        pytest.param({}, Policy(), {}, FOUND, FOUND, "both", id="as it is by default"),
        pytest.param(
            {"labels": OUT}, Policy(), {}, set(), {"GPU301"}, "none",
            id="the label: the policy is for whoever runs the cluster",
        ),
        pytest.param({}, Policy(), OUT, set(), set(), "none", id="the label of the namespace"),
        pytest.param(
            {}, Policy(rules={"GPU101": Mode.OFF}), {}, REST, REST, "both",
            id="a rule that is off",
        ),
        pytest.param({}, Policy(Mode.OFF), {}, set(), set(), "none", id="all are off"),
        pytest.param(
            {}, Policy(Mode.WARN), {}, FOUND, FOUND, "files",
            id="modes are for admission, but for off",
        ),
        pytest.param({}, Policy(Mode.AUDIT), {}, FOUND, FOUND, "files", id="the same of audit"),
        pytest.param(
            {"annotations": REASON}, EXCEPTED, {}, FOUND, FOUND, "both", id="an exception"
        ),
    ],
)  # fmt: skip
def test_opt_outs_modes_and_exceptions(  # a table
    obj: Raw,
    metadata: Raw,
    policy: Policy,
    namespace: dict[str, str],
    files: set[str],
    others: set[str],
    repaired: str,
) -> None:
    sent, settings = both(obj, **metadata), Settings(policy=policy)
    inventory = Inventory(NODES, namespaces={"default": namespace})
    said = in_file(sent, settings, inventory)
    assert said.codes == files
    assert policy.mode is not Mode.OFF or not said.mentioned
    made = in_admission(sent, settings, inventory)
    assert made.codes == others
    assert in_review(sent, settings, inventory) == made
    assert (said.object != sent) is (repaired in {"files", "both"})
    assert made.object == (said.object if repaired == "both" else sent)


@pytest.mark.parametrize(
    ("metadata", "policy", "is_denied"),
    [
        pytest.param({}, Policy(), False, id="it only warns by default"),
        pytest.param({}, enforced(), True, id="it is enforced"),
        pytest.param({"labels": OUT}, enforced(), True, id="the label requests no repair only"),
        pytest.param({"annotations": REASON}, enforced(), True, id="an exception nobody allows"),
        pytest.param({"annotations": REASON}, enforced(EXCEPTED), False, id="one that counts"),
    ],
)
def test_what_is_denied(metadata: Raw, policy: Policy, *, is_denied: bool) -> None:
    sent, inventory = both(POD, **metadata), Inventory(NODES)
    settings = Settings(policy=policy)
    assert bool(admitted(sent, settings, inventory).denial) is is_denied
    (verdict,) = (each.verdict for each in _review(sent, settings, inventory))
    assert any(each.action == "denied" for each in verdict.findings) is is_denied


@dataclass(eq=False)
class Raising:
    """A rule that fails in the place of another."""

    CODE: str
    FACTS: Facts
    NAME: str = "raising"

    def check(self, _pod: Pod, _cx: Context) -> Iterator[Finding]:
        raise ValueError("of our making")


@pytest.mark.parametrize("obj", [POD, DEPLOYMENT], ids=["a pod", "a workload"])
def test_a_rule_that_raises_stops_no_other(obj: Raw, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = missing_toleration
    rules = [Raising(each.CODE, each.FACTS) if each is broken else each for each in RULES]
    monkeypatch.setattr(file_objects, "_STAGES", Stages((), rules, policy=POLICY))
    monkeypatch.setattr("webhook.cli.review.RULES", rules)
    inventory = Inventory(NODES)
    said = in_file(obj, Settings(), inventory)
    assert (said.codes, said.failed) == ({"GPU101", "GPU301"}, {broken.CODE})
    assert in_review(obj, Settings(), inventory) == said
    made = in_admission(obj, Settings(), inventory, rules)
    assert made == said
    assert made.object != obj
