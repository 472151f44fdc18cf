"""Which rules are asked of an object, of which pods in it, and which of their edits are made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.draft import Draft, copied
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.findings import Finding, Severity
from webhook.core.modes import IGNORE, Mode, Modes
from webhook.core.rule import Context, Facts, Stage
from webhook.core.settings import Settings
from webhook.evaluation.evaluate import Stages, evaluate, in_force, name_of
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.edits import Edit
    from webhook.core.findings import Verdict
    from webhook.evaluation.evaluate import Asking, Evaluation
    from webhook.kube.pod import Pod

    Raw = dict[str, Any]

ANY = Context(Settings(scope="all-legacy"))
TEMPLATE = Path(("spec", "template"))
C = Path(("spec", "containers", 0))
REPAIR = Facts(Stage.REPAIR)


@dataclass(eq=False)
class Rule:
    """A rule that finds one thing."""

    CODE: str
    says: Callable[[Raw, Path], Finding]
    NAME: str = "rule"
    FACTS: Facts = REPAIR

    def check(self, looked_at: Pod | Raw, _cx: Context) -> Iterator[Finding]:
        if isinstance(looked_at, dict):
            yield self.says(looked_at, ROOT)
        else:
            yield self.says(looked_at.raw, looked_at.at)


def finds(code: str, at: Path, *edits: Edit) -> Rule:
    return Rule(code, lambda _raw, _at: Finding(code, at, "found", edits))


def notes(code: str, stage: Stage = Stage.REPAIR) -> Rule:
    """A rule that notes in the spec that it was asked, behind those that were asked before."""

    def says(_raw: Raw, at: Path) -> Finding:
        return Finding(code, at, "noted", (Append(at / "spec" / "asked", code),))

    return Rule(code, says, FACTS=Facts(stage))


def reads(code: str) -> Rule:
    """A rule that tells how many were asked before it."""
    return Rule(code, lambda raw, at: Finding(code, at, str(len(raw["spec"].get("asked", ())))))


def pod(**labels: str) -> Raw:
    metadata = {"name": "p", "labels": labels}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "c"}]}}


def deployment(**labels: str) -> Raw:
    template = {key: value for key, value in pod(**labels).items() if key != "kind"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": template}}


GUARD = notes("GPU303", Stage.GUARD)
ALL = Stages([notes("GPU101")], [notes("GPU102")], [GUARD], [reads("GPU301")])
OUT = {IGNORE: "true"}


def asked(made: Evaluation) -> list[str]:
    return [each.code for each in made.findings]


def test_the_stages_come_one_after_the_other_on_one_draft() -> None:
    made = evaluate(pod(), ALL, ANY)
    assert asked(made) == ["GPU101", "GPU102", "GPU303", "GPU301"]
    assert made.findings[-1].message == "2", "the guard only audits, and the policy sees repairs"
    assert made.object["spec"]["asked"] == ["GPU101", "GPU102"]
    assert made.edits == [Set(Path(("spec", "asked")), ["GPU101", "GPU102"])]


@pytest.mark.parametrize(
    ("obj", "cx", "codes", "left"),
    [
        pytest.param(
            pod(**OUT), ANY, ["GPU303", "GPU301"], [ROOT],
            id="the label of a pod keeps repairs off, and asks nobody about guard and policy",
        ),
        pytest.param(
            pod(**OUT), Context(ANY.settings, in_manifest=True), ["GPU303"], [ROOT],
            id="in its author's files the policy is silent of it, too",
        ),
        pytest.param(
            deployment(**OUT), ANY, ["GPU101", "GPU303", "GPU301"], [TEMPLATE],
            id="the label of a template says nothing of the object around it",
        ),
        pytest.param(
            deployment(), Context(ANY.settings, pods_opted_out=True),
            ["GPU101", "GPU303", "GPU301"], [TEMPLATE], id="a kustomization gives the label",
        ),
        pytest.param(
            pod(), Context(ANY.settings, namespace_labels=OUT), [], [ROOT],
            id="nothing is asked in a namespace that opted out",
        ),
        pytest.param({"kind": "Secret", "spec": {}}, ANY, ["GPU101"], [], id="no pod in it"),
    ],
)  # fmt: skip
def test_opt_outs(obj: Raw, cx: Context, codes: list[str], left: list[Path]) -> None:
    made = evaluate(obj, ALL, cx)
    assert asked(made) == codes
    assert made.left_alone == left


def test_only_some_rules_are_asked() -> None:
    made = evaluate(pod(), ALL.only(lambda code: code in {"GPU102", "GPU301"}), ANY)
    assert asked(made) == ["GPU102", "GPU301"]


def test_a_rule_on_objects_is_silent_inside_a_pod_that_opted_out() -> None:
    inside = finds("GPU132", TEMPLATE / "spec" / "x")
    absent = finds("GPU133", TEMPLATE / "no" / "x")
    itself, value = finds("GPU134", TEMPLATE), finds("GPU135", C.parent / 0 / "name" / "x")
    stages = Stages([inside, absent, itself])
    assert asked(evaluate(deployment(**OUT), stages, ANY)) == []
    assert asked(evaluate(deployment(), stages, ANY)) == ["GPU132", "GPU133", "GPU134"]
    assert asked(evaluate(pod(**OUT), Stages([value]), ANY)) == []
    assert asked(evaluate(pod(), Stages([value]), ANY)) == ["GPU135"]


def test_edits_that_are_held_are_not_made_and_the_finding_says_why() -> None:
    places: list[Path] = []

    def held(code: str, at: Path) -> str:
        places.append(at)
        return "not here" if code == "GPU102" else ""

    at = Path(("items", 3))
    made = evaluate(pod(), Stages((), [notes("GPU102"), notes("GPU103")]), ANY, at, held=held)
    first, second = made.findings
    assert (first.held, first.edits, first.severity) == ("not here", (), Severity.MANUAL)
    assert first.touched == (Append(at / "spec" / "asked", "GPU102"),)
    assert (second.held, second.action) == ("", "repaired")
    assert made.object["spec"]["asked"] == ["GPU103"]
    assert places == [at, at]


def test_places_are_those_of_the_document_as_it_came() -> None:
    items = C.parent
    rules = [
        finds("GPU101", items / 0, Remove(items / 0)),
        finds("GPU102", items / 0, Rename(items / 0 / "a", "b"), Set(items / 0 / "b", 2)),
        finds("GPU103", items / 0 / "b", Set(items / 0 / "n" / "x", 1)),
        finds("GPU104", items / 0 / "n" / "x"),
        finds("GPU105", items / 7 / "b"),
    ]
    stages = Stages((), rules)
    obj = {"spec": {"containers": [{"name": "first"}, {"name": "second", "a": 1}]}}
    made = evaluate(obj, stages, ANY, Path((4,)), templates=[ROOT])
    here = Path((4, "spec", "containers"))
    assert [each.origin for each in made.findings] == [
        here / 0, here / 1, here / 1 / "a", here / 1 / "n" / "x", here / 7 / "b",
    ]  # fmt: skip
    assert made.findings[1].touched == (Rename(here / 1 / "a", "b"), Set(here / 1 / "a", 2))
    assert made.edits_of(made.findings[0]) == (Remove(here / 0),)
    assert set(map(str, made.edits_of(made.findings[1]))) == {
        str(Rename(here / 1 / "a", "b")), str(Set(here / 1 / "a", 2))
    }  # fmt: skip


def test_of_items_that_are_appended_to_one_list_each_is_its_own() -> None:
    stages = Stages((), [notes("GPU101"), notes("GPU102")])
    made = evaluate({**pod(), "spec": {"containers": [{}], "asked": ["x"]}}, stages, ANY)
    asked_at = Path(("spec", "asked"))
    assert made.edits_of(made.findings[1]) == (Append(asked_at, "GPU102"),)


def test_what_is_looked_at_may_be_around_what_is_in_the_document() -> None:
    at = Path(("values", "resources"))
    stages = Stages((), [finds("GPU101", C / "name", Set(C / "name", "d"))])
    made = evaluate(pod(), stages, ANY, at, skip=len(C), name="")
    assert (made.findings[0].origin, made.findings[0].object) == (at / "name", "")
    assert made.edits == [Set(at / "name", "d")]


def test_a_rule_that_raises_is_named_and_the_others_go_on() -> None:
    def fails(_raw: Raw, _at: Path) -> Finding:
        raise ValueError("x")

    made = evaluate(pod(), Stages((), [Rule("GPU101", fails), notes("GPU102")]), ANY)
    assert [code for code, _ in made.failed] == ["GPU101"]
    assert asked(made) == ["GPU102"]


def too_large() -> str:
    return "it has too many fields"


def test_what_is_too_large_is_not_judged() -> None:
    made = evaluate(pod(), Stages(repairs=[notes("GPU102")]), ANY, excess=too_large)
    assert (asked(made), made.over) == ([], "it has too many fields")


@pytest.mark.parametrize(
    ("obj", "stages", "cx"),
    [
        pytest.param(pod(**OUT), Stages(repairs=[notes("GPU102")]), ANY, id="the pod"),
        pytest.param(pod(), ALL, Context(ANY.settings, namespace_labels=OUT), id="its namespace"),
    ],
)
def test_nobody_asks_how_large_that_is_which_opted_out(obj: Raw, stages: Stages, cx: Any) -> None:
    assert evaluate(obj, stages, cx, excess=too_large).over == ""


def test_without_held_no_finding_says_where_it_was() -> None:
    made = evaluate(pod(), Stages([notes("GPU101")], [notes("GPU102")]), ANY, held=None)
    assert [(each.origin, each.touched) for each in made.findings] == [(ROOT, ())] * 2
    assert made.edits == []
    assert made.patch == [{"op": "add", "path": "/spec/asked", "value": ["GPU101", "GPU102"]}]


def test_what_is_sent_again_is_asked_of_in_its_own_way() -> None:
    def again(asking: Asking, cx: Context, at: Path) -> Verdict:
        seen.append((asked_of(asking), cx.template, at))
        return replace(asking.of(Draft(obj), cx, at), patch=[{"op": "test"}])

    def asked_of(asking: Asking) -> list[str]:
        return [rule.CODE for rule in asking.rules]

    seen: list[Any] = []
    obj = deployment()
    made = evaluate(
        obj, Stages((), [notes("GPU102")], [GUARD], [reads("GPU301")]), ANY, again=again
    )
    assert seen == [(["GPU102"], True, TEMPLATE), (["GPU303"], True, TEMPLATE)]
    assert asked(made) == ["GPU102", "GPU303", "GPU301"]
    assert made.patch == [{"op": "test"}] * 2


LEGACY_POD: Raw = {
    "spec": {
        "containers": [{"resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}}],
    }
}


@pytest.mark.parametrize(
    ("repair", "mode", "foretold"),
    [
        pytest.param(notes("GPU101"), Mode.ENFORCE, ["True"], id="what is in force"),
        pytest.param(notes("GPU101"), Mode.WARN, [], id="not what only warns"),
        pytest.param(reads("GPU101"), Mode.ENFORCE, [], id="not where nothing is repaired"),
    ],
)
def test_the_rules_that_will_judge_the_repaired_pod_are_asked(
    repair: Rule, mode: Mode, foretold: list[str]
) -> None:
    @dataclass(eq=False)
    class Stuck(Rule):
        def check(self, looked_at: Any, cx: Context) -> Iterator[Finding]:
            assert cx.namespace == "later"
            yield Finding("GPU301", looked_at.at, str(cx.was_stuck))

    policy = Stuck("GPU301", lambda _, __: None, FACTS=Facts(Stage.POLICY))  # type: ignore[arg-type,return-value]
    made = evaluate(
        copied(LEGACY_POD),
        Stages(repairs=[repair], foretold=[policy]),
        Context(ANY.settings, modes=Modes(rules={"GPU301": mode})),
        templates=[ROOT],
        later=lambda: Context(ANY.settings, namespace="later"),
    )
    assert [each.message for each in made.foretold] == foretold
    assert asked(made) == ["GPU101"]


def test_a_pod_that_could_run_was_not_stuck() -> None:
    policy = Rule("GPU301", lambda _, at: Finding("GPU301", at, "x"))
    stages = Stages(repairs=[notes("GPU101")], foretold=[policy])
    enforced = Context(ANY.settings, modes=Modes(Mode.ENFORCE))
    made = evaluate(pod(), stages, enforced, later=lambda: enforced)
    assert [each.code for each in made.foretold] == ["GPU301"]


def test_the_modes_in_force_and_the_first_rule_of_each() -> None:
    rules = [reads("GPU301"), reads("GPU302"), reads("GPU303")]
    modes = Modes(rules={"GPU301": Mode.WARN, "GPU302": Mode.ENFORCE, "GPU303": Mode.ENFORCE})
    cx = Context(modes=modes)
    assert in_force(rules, cx) == {Mode.WARN: "GPU301", Mode.ENFORCE: "GPU302"}
    assert in_force(rules, replace(cx, namespace_labels=OUT)) == {}


@pytest.mark.parametrize(
    ("obj", "name"),
    [
        pytest.param({"kind": "Pod", "metadata": {"name": "a"}}, "Pod/a", id="its name"),
        pytest.param({"kind": "Job", "metadata": {"generateName": "a-"}}, "Job/a-", id="a prefix"),
        pytest.param({"kind": "Pod"}, "Pod/(no name)", id="no name"),
        pytest.param({"metadata": {"name": "a"}}, "/a", id="no kind"),
        pytest.param({}, "", id="nothing"),
    ],
)
def test_names(obj: Raw, name: str) -> None:
    assert name_of(obj) == name


def test_a_place_that_no_edit_touched_is_where_it_was() -> None:
    draft = Draft({"a": [1, {"b": 2}]})
    assert draft.origin(Path(("a", 1, "b", "c"))) == Path(("a", 1, "b", "c"))
