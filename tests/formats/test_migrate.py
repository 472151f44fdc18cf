"""Road 2 from a text to its result: what is fixed, what a person must see, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.findings import Finding
from webhook.core.modes import Mode
from webhook.core.rule import Facts, Stage
from webhook.core.settings import Policy, Settings
from webhook.evaluation.evaluate import Stages
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats import file_objects, manifest
from webhook.formats.migrate import migrate_text
from webhook.kube.pointer import Path
from webhook.yamlpatch import documents
from webhook.yamlpatch.splice import apply, splice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.edits import Edit
    from webhook.core.rule import Context, ObjectRule
    from webhook.files.results import FileResult
    from webhook.yamlpatch.documents import Document
    from webhook.yamlpatch.places import Replacement

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    resources:
      limits:
        alpha.kubernetes.io/nvidia-gpu: 1  # one
"""
FIXED = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    resources:
      limits:
        nvidia.com/gpu: 1  # one
  tolerations:
  - key: nvidia.com/gpu
    operator: Exists
    effect: NoSchedule
"""


def migrated(text: str, plan: Plan | None = None, path: str = "p.yaml") -> FileResult:
    return migrate_text(Source.of_text(path, text), plan or Plan())


def said(result: FileResult) -> list[tuple[str, str, int, str]]:
    return [(each.code, each.status, each.place.line, each.path) for each in result.located]


def test_a_pod_is_fixed_where_its_text_says_it() -> None:
    result = migrated(POD)
    assert result.new_text == FIXED
    name = "alpha.kubernetes.io/nvidia-gpu"
    assert said(result) == [
        ("GPU201", "fixable", 4, "spec.tolerations"),
        ("GPU101", "fixable", 9, f"spec.containers[0].resources.limits[{name}]"),
    ]
    assert {each.object for each in result.located} == {"Pod/p"}
    assert result.skipped == ()


def test_each_fix_is_right_by_itself_and_all_together_are_the_new_text() -> None:
    result = migrated(POD)
    for located in result.located:
        assert located.fix
        assert documents.read(apply(POD, located.fix)).unread == ()
    assert apply(POD, {fix for each in result.located for fix in each.fix}) == FIXED


def test_windows_and_a_missing_last_line_end_stay() -> None:
    text = POD.replace("\n", "\r\n").removesuffix("\r\n")
    assert migrated(text).new_text == FIXED.replace("\n", "\r\n").removesuffix("\r\n")


def test_what_is_of_today_is_left_alone() -> None:
    result = migrated(FIXED)
    assert result.new_text is None
    assert result.located == ()


def test_documents_and_items_of_lists_are_all_asked() -> None:
    item = "".join(f"  {line}\n" for line in POD.splitlines()).replace("  api", "- api", 1)
    text = f"kind: List\napiVersion: v1\nitems:\n{item}---\n{POD}"
    result = migrated(text)
    assert result.new_text is not None
    assert result.new_text.count("nvidia.com/gpu: 1  # one") == 2
    paths = {path for code, _, _, path in said(result) if code == "GPU101"}
    name = "resources.limits[alpha.kubernetes.io/nvidia-gpu]"
    assert paths == {f"items[0].spec.containers[0].{name}", f"spec.containers[0].{name}"}


def test_json_is_migrated_as_json() -> None:
    text = (
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": '
        '[{"name": "c", "resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}}]}}'
    )
    result = migrated(text, path="p.json")
    assert result.kind == "json"
    assert result.new_text == text.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")[
        :-2
    ] + (
        ', "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", '
        '"effect": "NoSchedule"}]}}'
    )


ANCHORED = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels: &shared
    alpha.kubernetes.io/nvidia-gpu: "1"
spec:
  containers:
  - name: c
    resources:
      limits: *shared
"""


def test_a_document_that_cannot_be_edited_is_a_persons_and_the_others_are_not() -> None:
    result = migrated(f"{ANCHORED}---\n{POD}")
    assert result.new_text == f"{ANCHORED}---\n{FIXED}"
    refused = [each for each in result.located if "not done here" in each.message]
    assert refused
    assert {each.status for each in refused} == {Status.MANUAL}
    assert "by the anchor &shared this is in 2 places" in refused[0].message
    assert all(each.fix == () for each in refused)


LISTED = """\
apiVersion: v1
kind: List
items:
- &pod
  apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec:
    containers:
    - name: c
      image: i
      resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
- <<: *pod
  metadata: {name: b, labels: {gpu-webhook.dev/ignore: "true"}}
"""
ITEM = """\
- apiVersion: v1
  kind: Pod
  metadata: {name: d}
  spec:
    containers:
    - name: c
      image: i
      resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 1}}
"""


def test_an_item_of_a_list_that_cannot_be_edited_holds_no_other() -> None:
    result = migrated(LISTED + ITEM)
    assert result.new_text is not None
    assert result.new_text.startswith(LISTED)
    assert "nvidia.com/gpu: 1" in result.new_text.removeprefix(LISTED)
    (refused,) = [each for each in result.located if "in 2 places" in each.message]
    assert (refused.status, refused.object, refused.fix) == (Status.MANUAL, "Pod/a", ())
    again = migrated(result.new_text)
    assert again.new_text is None
    assert [each.message for each in again.located] == [refused.message]


def test_a_shared_anchor_is_edited_once_if_all_want_it() -> None:
    text = POD.replace("limits:\n", "limits: &l\n") + "      requests: *l\n"
    result = migrated(text)
    assert result.new_text is not None
    assert result.new_text.count("nvidia.com/gpu: 1") == 1
    assert "requests: *l\n" in result.new_text


def test_what_cannot_be_read_is_told_and_the_rest_is_migrated() -> None:
    bad = "oc patch dc -p '{\"alpha.kubernetes.io/nvidia-gpu\": 1}'\nor: [\n"
    result = migrated(f"{bad}---\n{POD}")
    assert result.new_text == f"{bad}---\n{FIXED}"
    assert [each.reason.split(":")[0] for each in result.skipped] == ["is not YAML"]
    assert result.skipped[0].place is not None
    assert ("GPU101", "manual", 1, "") in said(result)


def test_comments_are_worth_knowing() -> None:
    result = migrated(f"{FIXED}# alpha.kubernetes.io/nvidia-gpu: 1\n")
    assert said(result) == [("GPU101", "notice", len(FIXED.splitlines()) + 1, "")]


def test_a_name_that_stands_twice_is_told() -> None:
    result = migrated(POD.replace("kind: Pod\n", "kind: Pod\nkind: Pod\n"))
    assert result.new_text is not None
    assert [(each.reason, each.place and each.place.line) for each in result.skipped] == [
        ("kind occurs twice, and only one counts: delete one", 3)
    ]


def test_a_pod_that_wants_to_be_left_alone_is() -> None:
    text = POD.replace("{name: p}", '{name: p, labels: {gpu-webhook.dev/ignore: "true"}}')
    result = migrated(text)
    assert result.new_text is None
    assert [each.reason for each in result.skipped] == [
        (
            "the label gpu-webhook.dev/ignore (of the pod, its namespace or its kustomization) "
            "says to leave it alone"
        )
    ]


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec:
  hard:
    requests.alpha.kubernetes.io/nvidia-gpu: 4
"""


def test_what_is_not_safe_is_a_persons_until_asked_for() -> None:
    result = migrated(QUOTA)
    assert result.new_text is None
    assert {each.status for each in result.located} == {Status.MANUAL}
    asked = migrated(QUOTA, Plan(unsafe=True))
    assert asked.new_text == QUOTA.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
    assert {each.status for each in asked.located} == {Status.FIXABLE}


@pytest.mark.parametrize(
    ("plan", "codes"),
    [
        pytest.param(Plan(codes=("GPU101",)), {"GPU101"}, id="only some rules"),
        pytest.param(Plan(ignored=("GPU101",)), {"GPU201"}, id="all but some"),
        pytest.param(
            Plan(Settings(policy=Policy(rules={"GPU101": Mode.OFF}))), {"GPU201"}, id="one is off"
        ),
        pytest.param(
            Plan(Settings(policy=Policy(mode=Mode.AUDIT))), {"GPU101", "GPU201"}, id="audit: all"
        ),
    ],
)
def test_rules_are_asked_as_planned(plan: Plan, codes: set[str]) -> None:
    fixable = {each.code for each in migrated(POD, plan).located if each.fix}
    assert fixable <= codes
    assert ("GPU101" in fixable) is ("GPU101" in codes)


def test_a_part_of_a_manifest_is_known_by_its_shape() -> None:
    text = "worker:\n  resources:\n    limits:\n      alpha.kubernetes.io/nvidia-gpu: 0.5\n"
    result = migrated(text, path="values.yaml")
    assert result.new_text == text.replace(
        "alpha.kubernetes.io/nvidia-gpu: 0.5", "nvidia.com/gpu: 1"
    )
    *fixed, elsewhere = sorted(result.located, key=lambda each: each.code)
    assert all(each.fix for each in fixed)
    assert (elsewhere.code, elsewhere.status) == ("GPU201", Status.NOTICE)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param("[]", True, id="none"),
        pytest.param("[{key: team, operator: Exists}]", True, id="of something else"),
        pytest.param("[{key: nvidia.com/gpu, operator: Exists}]", False, id="of GPU nodes"),
        pytest.param("[{operator: Exists}]", False, id="of everything"),
    ],
)
def test_a_toleration_beside_resources_is_theirs(tolerations: str, *, expected: bool) -> None:
    text = f"worker:\n  tolerations: {tolerations}\n  resources:\n    limits:\n"
    text += "      alpha.kubernetes.io/nvidia-gpu: 1\n"
    codes = {each.code for each in migrated(text, path="values.yaml").located}
    assert ("GPU201" in codes) is expected


class Rule:
    """A rule on objects that does what a test wants."""

    NAME = "test-rule"
    CODE = "GPU998"
    FACTS = Facts(Stage.MANIFEST)

    def __init__(self, *rounds: Any) -> None:
        self.rounds = rounds

    def check(self, obj: dict[str, Any], cx: Context) -> Iterator[Finding]:  # noqa: ARG002
        for each in self.rounds:
            yield each(obj)


def with_rules(monkeypatch: pytest.MonkeyPatch, *rules: ObjectRule) -> None:
    monkeypatch.setattr(file_objects, "_STAGES", Stages(rules))


def test_a_rule_that_is_never_content_leaves_the_file_untouched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = Path(("count",))
    more = Rule(lambda obj: Finding("GPU998", at, "more", (Set(at, obj["count"] + 1),)))
    with_rules(monkeypatch, more)
    result = migrated("kind: A\ncount: 1\n")
    assert result.new_text is None
    assert [(each.status, each.fix) for each in result.located] == [(Status.MANUAL, ())]
    assert result.located[0].message == (
        "more (not done here, since a second run would change document 1 again (GPU998))"
    )


def test_a_rule_that_fails_is_told_and_the_others_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(obj: dict[str, Any]) -> Finding:
        raise KeyError(obj["kind"])

    done = Rule(lambda _: Finding("GPU997", Path(("count",)), "gone", (Remove(Path(("count",))),)))
    done.CODE = "GPU997"
    with_rules(monkeypatch, Rule(fails), done)
    result = migrated("kind: A\ncount: 1\n", Plan(codes=("GPU998",)))
    assert result.new_text is None
    assert [each.message for each in result.located] == [
        "the rule failed and changed nothing: KeyError('A'); please report it"
    ]


def test_a_finding_of_two_that_add_to_one_list_has_its_own_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = Path(("l",))

    def adds(value: int) -> Any:
        return lambda obj: Finding(
            "GPU998", at, f"{value}", () if value in obj["l"] else (Append(at, value),)
        )

    with_rules(monkeypatch, Rule(adds(2), adds(3)))
    result = migrated("kind: A\nl: [1]\n")
    assert result.new_text == "kind: A\nl: [1, 2, 3]\n"
    assert [[fix.text for fix in each.fix] for each in result.located] == [[", 2"], [", 3"]]


def test_places_are_those_of_the_text_whatever_was_removed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, name = Path(("l", 0)), Path(("l", 0, "new"))
    goes = Rule(
        lambda obj: Finding("GPU998", first, "goes", (Remove(first),) * ("a" in obj["l"][0]))
    )
    called = Rule(lambda _: Finding("GPU998", first / "b", "old", (Rename(first / "b", "new"),)))
    after = Rule(lambda _: Finding("GPU998", name, "two", (Set(name, 2),)))
    with_rules(monkeypatch, goes, called, after)
    result = migrated("kind: A\nl:\n- a: 1\n- b: 1\n")
    lines = {each.message.split(" ")[0]: each.place.line for each in result.located}
    assert lines == {"goes": 3, "old": 4, "two": 4}


def test_the_place_of_what_a_rule_brought_in_is_that_of_what_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = Path(("a", "b"))
    first = Rule(lambda _: Finding("GPU998", Path(("a",)), "made", (Set(new, {"c": 1}),)))
    second = Rule(lambda _: Finding("GPU998", new / "c", "two", (Set(new / "c", 2),)))
    with_rules(monkeypatch, first, second)
    result = migrate_text(Source.of_text("a.yaml", "kind: A\na:\n  x: 1\n"), Plan())
    assert [each.place.line for each in result.located] == [2, 2]


@pytest.mark.parametrize(
    ("text", "behind", "why"),
    [
        pytest.param("3", 0, "document 2 of the new text would not say", id="another value"),
        pytest.param("[", 0, "the new text would not parse", id="no YAML"),
        pytest.param("2\n---\nb: 1", 0, "the new text would have 2 documents", id="one more"),
        pytest.param("2", 1, "the next document would be a part of it", id="no line end"),
    ],
)
def test_a_document_whose_text_would_be_wrong_stays_and_the_others_do_not(
    text: str, behind: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if splice() had made a mistake: a new text is believed only once it was read."""

    def mistaken(document: Document, edits: list[Edit]) -> list[Replacement]:
        made = splice(document, edits)
        if not document.start:
            return made
        return [replace(each, end=each.end + behind, text=text) for each in made]

    to_two = Set(Path(("a",)), 2)
    found = Finding("GPU998", Path(("a",)), "two", (to_two,))
    monkeypatch.setattr(manifest, "splice", mistaken)
    with_rules(monkeypatch, Rule(lambda obj: found if obj["a"] == 1 else replace(found, edits=())))
    wrong = "---\nkind: A\na: 1\n---\nkind: A\na: 2\n"
    result = migrated(f"kind: A\na: 1\n{wrong}")
    assert result.new_text == f"kind: A\na: 2\n{wrong}"
    assert [each.status for each in result.located[:2]] == [Status.FIXABLE, Status.MANUAL]
    assert why in result.located[1].message


def test_settings_of_a_plan_keep_their_own_names() -> None:
    settings = replace(Settings(), legacy_resources=("example.com/old",))
    text = POD.replace("alpha.kubernetes.io/nvidia-gpu", "example.com/old")
    assert migrated(text, Plan(settings)).new_text == FIXED


def test_nothing_more_is_said_of_a_line_that_is_edited_for_an_alias() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
        "  - name: c\n    image: x\n    resources: &r\n"
        "      limits: {alpha.kubernetes.io/nvidia-gpu: &n 1}\n"
        "      requests: {alpha.kubernetes.io/nvidia-gpu: *n}\n"
        "  - {name: d, image: x, resources: *r}\n"
    )
    result = migrate_text(Source.of_text("pod.yaml", text), Plan())
    assert "alpha.kubernetes.io" not in str(result.new_text)
    assert {each.status for each in result.located} == {Status.FIXABLE}


@pytest.mark.parametrize("first", ["Thanks.", "Thanks: see {{ .Release.Name }}."])
def test_notes_that_show_a_manifest_are_no_manifest(first: str) -> None:
    text = f"{first} On old clusters:\n\n    apiVersion: v1\n    kind: Pod\n\na: b: c\n"
    source = Source.of_text("templates/NOTES.txt", text)
    result = migrate_text(source, Plan())
    assert source.kind == "other"
    assert (result.located, result.skipped, result.error) == ((), (), "")


@pytest.mark.parametrize("amount", ["0", '"0"', "null"])
def test_values_that_take_gpus_away_still_do_when_the_values_below_are_renamed(
    amount: str,
) -> None:
    """Of a values file for one stage, a parent chart, or a release of helmfile."""
    text = f"sub:\n  resources:\n    limits: {{alpha.kubernetes.io/nvidia-gpu: {amount}}}\n"
    result = migrate_text(Source.of_text("values-dev.yaml", text), Plan())
    assert result.new_text == text.replace("alpha.kubernetes.io/nvidia-gpu", "nvidia.com/gpu")
    assert [each.code for each in result.located] == ["GPU101"]  # no toleration for no GPU


def test_a_whole_pod_keeps_an_amount_of_0() -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n"
        "    image: x\n    resources: {limits: {alpha.kubernetes.io/nvidia-gpu: 0}}\n"
    )
    assert migrate_text(Source.of_text("p.yaml", text), Plan()).new_text is None
