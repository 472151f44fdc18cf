"""The engine: order, scope, and one broken rule that does not stop the others."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from tests.engine import run
from webhook.core.edits import Append, Remove, Set
from webhook.core.errors import EditError
from webhook.core.findings import Finding, Safety, Severity
from webhook.core.modes import Mode, Modes
from webhook.core.namespace_selection import Selection
from webhook.core.policy_exceptions import ALLOW
from webhook.core.rule import Context, Facts, Stage, Trait
from webhook.core.settings import Allowance, Policy, Settings
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.edits import Edit
    from webhook.kube.pod import Pod

    Check = Callable[[Pod, Context], Iterator[Finding]]

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
IMAGE = Path(("spec", "containers", 0, "image"))
REPAIR = Facts(Stage.REPAIR)


@dataclass(eq=False)
class Rule:
    """A rule made for a test: a real one is a module with the same four names."""

    CODE: str
    do: Check
    NAME: str = "test"
    FACTS: Facts = REPAIR

    def check(self, pod: Pod, cx: Context) -> Iterator[Finding]:
        return self.do(pod, cx)


def finds(code: str, *edits: Edit, safety: Safety = Safety.SAFE) -> Rule:
    def check(_pod: Pod, _cx: Context) -> Iterator[Finding]:
        yield Finding(code, ROOT, f"{code} found it", edits, safety=safety)

    return Rule(code, check)


def breaks(code: str, *edits: Edit) -> Rule:
    def check(_pod: Pod, _cx: Context) -> Iterator[Finding]:
        yield Finding(code, ROOT, "half way", edits)
        raise ZeroDivisionError(code)

    return Rule(code, check)


def gpu_pod() -> dict[str, Any]:
    return {"spec": {"containers": [{"image": "a", "resources": {"limits": {LEGACY: 1}}}]}}


def test_rules_act_in_order_and_each_sees_what_the_earlier_ones_did() -> None:
    seen: list[object] = []

    def look(pod: Pod, _cx: Context) -> Iterator[Finding]:
        seen.append(pod.containers[0].raw["image"])
        return iter(())

    pod = gpu_pod()
    rules = [Rule("L", look), finds("A", Set(IMAGE, "b")), Rule("L", look)]
    verdict = run([*rules, finds("B", Set(IMAGE, "c"))], pod, Context())
    assert seen == ["a", "b"]
    assert [each.code for each in verdict.findings] == ["A", "B"]
    assert verdict.patch == [{"op": "replace", "path": "/spec/containers/0/image", "value": "c"}]
    assert pod["spec"]["containers"][0]["image"] == "c"
    assert not verdict.failed


def test_only_safe_edits_are_made() -> None:
    pod = gpu_pod()
    verdict = run([finds("A", Set(IMAGE, "b"), safety=Safety.UNSAFE)], pod, Context())
    assert [each.code for each in verdict.findings] == ["A"]
    assert (pod, verdict.patch) == (gpu_pod(), [])


BROKEN = [
    pytest.param(breaks("X", Set(IMAGE, "x")), ZeroDivisionError, id="it raises half way"),
    pytest.param(
        finds("X", Set(IMAGE, "x"), Remove(ROOT / "spec" / "nothing")),
        EditError,
        id="one of its edits does not fit",
    ),
    pytest.param(finds("X", Set(IMAGE, "x"), Set(IMAGE / "y", 1)), EditError, id="its edits clash"),
    pytest.param(Rule("X", lambda *_: None), TypeError, id="it gives nothing to go through"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("broken", "error"), BROKEN)
def test_a_rule_that_raises_changes_nothing_and_the_others_go_on(
    broken: Rule, error: type[Exception]
) -> None:
    pod, without = gpu_pod(), gpu_pod()
    before, after = finds("A", Append(ROOT / "spec" / "l", 1)), finds("B", Set(IMAGE, "b"))
    verdict = run([before, broken, after], pod, Context())
    expected = run([before, after], without, Context())
    assert (verdict.findings, verdict.patch) == (expected.findings, expected.patch)
    assert pod == without
    assert [(code, type(raised)) for code, raised in verdict.failed] == [("X", error)]


OF_LEGACY_PODS = Facts(Stage.REPAIR, traits=Trait.LEGACY_PODS)
ADDS = Append(Path(("spec", "tolerations")), {"operator": "Exists"})


@pytest.mark.parametrize(
    ("facts", "in_manifest", "severities"),
    [
        pytest.param(
            OF_LEGACY_PODS, True, [Severity.MANUAL, Severity.NOTICE], id="in a file it is manual"
        ),
        pytest.param(OF_LEGACY_PODS, False, [], id="no API server sends such a pod"),
        pytest.param(REPAIR, True, [], id="a rule that others do not wait for"),
    ],
)
def test_a_text_that_stands_for_a_list_to_be_extended_makes_the_edit_manual(
    facts: Facts, severities: list[Severity], *, in_manifest: bool
) -> None:
    def check(_pod: Pod, _cx: Context) -> Iterator[Finding]:
        yield Finding("A", ROOT, "tolerates", (ADDS,))
        yield Finding("A", ROOT, "says so", severity=Severity.NOTICE)

    pod = gpu_pod()
    pod["spec"]["tolerations"] = "${TOLERATIONS}"
    was = deepcopy(pod)
    result = run([Rule("A", check, FACTS=facts)], pod, Context(in_manifest=in_manifest))
    assert pod == was
    assert [each.severity for each in result.findings] == severities
    assert all(not each.edits for each in result.findings)
    assert not result.failed


def test_a_pod_that_is_none_of_our_business_meets_no_rule() -> None:
    pod = {"spec": {"containers": [{"image": "a"}]}}
    before = deepcopy(pod)
    verdict = run([finds("A", Set(IMAGE, "b")), breaks("X")], pod, Context())
    assert (verdict.findings, verdict.patch, verdict.failed) == ((), [], ())
    assert pod == before


def test_with_the_scope_all_legacy_every_pod_meets_the_rules() -> None:
    pod = {"spec": {"containers": [{"image": "a"}]}}
    verdict = run([finds("A", Set(IMAGE, "b"))], pod, Context(Settings(scope="all-legacy")))
    assert verdict.patch


@pytest.mark.parametrize(
    ("amount", "stuck"),
    [
        pytest.param(1, True, id="a legacy GPU: the pod can never run"),
        pytest.param(0, False, id="no legacy GPU: it runs as it is"),
    ],
)
def test_rules_are_told_whether_the_pod_as_it_came_could_ever_run(
    amount: int, *, stuck: bool
) -> None:
    told: list[bool] = []

    def listen(_pod: Pod, cx: Context) -> Iterator[Finding]:
        told.append(cx.stuck)
        return iter(())

    pod = gpu_pod()
    limits = Path(("spec", "containers", 0, "resources", "limits"))
    pod["spec"]["containers"][0]["resources"]["limits"][LEGACY] = amount
    run([Rule("L", listen), finds("A", Remove(limits)), Rule("L", listen)], pod, Context())
    assert told == [stuck, stuck]


def test_a_template_deep_in_an_object_is_repaired_in_place() -> None:
    obj = {"kind": "Job", "spec": {"template": gpu_pod()}}
    at = Path(("spec", "template"))
    verdict = run([finds("A", Set(Path((*at, *IMAGE)), "b"))], obj, Context(), at)
    assert [each["path"] for each in verdict.patch] == ["/spec/template/spec/containers/0/image"]


# ----------------------------------------------------------------- modes


@pytest.mark.parametrize(
    ("mode", "actions", "image"),
    [
        pytest.param(Mode.OFF, ["repaired"], "z", id="off: it is not even asked"),
        pytest.param(Mode.AUDIT, ["would repair", "repaired"], "z", id="audit changes nothing"),
        pytest.param(Mode.WARN, ["would repair", "repaired"], "z", id="warn changes nothing"),
        pytest.param(Mode.ENFORCE, ["repaired", "repaired"], "bz", id="enforce repairs"),
    ],
)
def test_a_rule_does_what_its_mode_lets_it_and_the_others_go_on(
    mode: Mode, actions: list[str], image: str
) -> None:
    asked: list[str] = []

    def first(_pod: Pod, _cx: Context) -> Iterator[Finding]:
        asked.append("A")
        yield Finding("A", ROOT, "found", (Set(IMAGE, "b"),))

    def second(pod: Pod, _cx: Context) -> Iterator[Finding]:
        was = str(pod.containers[0].raw["image"])
        yield Finding("Z", ROOT, "found", (Set(IMAGE, was.replace("a", "") + "z"),))

    pod = gpu_pod()
    verdict = run(
        [Rule("A", first), Rule("Z", second)], pod, Context(modes=Modes(None, {"A": mode}))
    )
    assert bool(asked) is (mode is not Mode.OFF)
    assert [found.action for found in verdict.findings] == actions
    assert [f.mode for f in verdict.findings] == [mode, Mode.ENFORCE][-len(actions) :]
    assert pod["spec"]["containers"][0]["image"] == image
    assert [each["value"] for each in verdict.patch] == [image]
    assert not verdict.failed


@pytest.mark.parametrize("mode", [Mode.AUDIT, Mode.WARN])
def test_edits_that_are_not_made_need_not_fit(mode: Mode) -> None:
    edits = (Set(IMAGE, "x"), Remove(ROOT / "spec" / "nothing"))
    verdict = run([finds("X", *edits)], gpu_pod(), Context(modes=Modes(mode)))
    assert ([f.action for f in verdict.findings], verdict.failed) == (["would repair"], ())


@pytest.mark.parametrize("mode", [Mode.AUDIT, Mode.WARN, Mode.ENFORCE])
def test_a_rule_that_raises_is_named_whatever_its_mode(mode: Mode) -> None:
    verdict = run([breaks("X", Set(IMAGE, "x"))], gpu_pod(), Context(modes=Modes(mode)))
    assert [code for code, _ in verdict.failed] == ["X"]
    assert (verdict.findings, verdict.patch) == ((), [])


def test_a_broken_rule_that_is_off_breaks_nothing() -> None:
    verdict = run([breaks("X")], gpu_pod(), Context(modes=Modes(Mode.OFF)))
    assert not verdict.failed
    assert not verdict.findings


@pytest.mark.parametrize(
    ("mode", "denied"),
    [
        pytest.param(Mode.AUDIT, False, id="audit"),
        pytest.param(Mode.WARN, False, id="warn"),
        pytest.param(Mode.ENFORCE, True, id="enforce"),
    ],
)
def test_only_enforce_denies(mode: Mode, *, denied: bool) -> None:
    verdict = run([DENIES], gpu_pod(), Context(modes=Modes(None, {"GPU301": mode})))
    assert any(each.action == "denied" for each in verdict.findings) is denied
    assert [found.mode for found in verdict.findings] == [mode]


# ----------------------------------------------------------------- exceptions


def says(code: str, *severities: Severity, edits: tuple[Edit, ...] = ()) -> Rule:
    """A rule with a finding of each severity."""

    def check(_pod: Pod, _cx: Context) -> Iterator[Finding]:
        for severity in severities:
            yield Finding(code, ROOT, f"a {severity}", edits, severity)

    return Rule(code, check, FACTS=Facts(Stage.POLICY))


DENIES = says("GPU301", Severity.DENY)
CODES = ("GPU101", "GPU301", "GPU303")
ALLOWS = Context(
    Settings(policy=Policy(exceptions=(Allowance(CODES, Selection(("ml-*",), (("a", "b"),))),))),
    namespace="ml-train",
    namespace_labels={"a": "b"},
    modes=Modes(Mode.ENFORCE),
    today=date(2027, 3, 31),
)


def excepted_pod(code: str, text: object = "migrating") -> dict[str, Any]:
    return {**gpu_pod(), "metadata": {"annotations": {ALLOW + code: text}}}


def test_an_exception_that_counts_spares_the_pod_and_its_reason_is_kept() -> None:
    verdict = run([DENIES], excepted_pod("GPU301"), ALLOWS)
    assert [(f.action, f.exception, f.message) for f in verdict.findings] == [
        ("excepted", "migrating", "a deny")
    ]


NO_EXCEPTION = [
    pytest.param("GPU301", "", ALLOWS, "(gpu-webhook.dev/allow.GPU301 needs", id="no reason"),
    pytest.param(
        "GPU301", "x (until 2027-03-30)", ALLOWS, "(its exception ended on 2027-03-30)", id="over"
    ),
    pytest.param(
        "GPU301", "x", replace(ALLOWS, namespace="web"), "(the settings allow no", id="elsewhere"
    ),
    pytest.param(
        "GPU301", "x", replace(ALLOWS, namespace_labels={}), "(the settings", id="without its label"
    ),
    pytest.param("GPU301", "x (until 2027-03-31)", replace(ALLOWS, today=None), "(", id="no clock"),
    pytest.param("GPU303", "x", ALLOWS, "", id="another rule's"),
    pytest.param("GPU301", 1, ALLOWS, "", id="a number"),
]


@pytest.mark.parametrize(("code", "text", "cx", "why"), NO_EXCEPTION)
def test_an_exception_that_does_not_count_denies_and_says_why(
    code: str, text: object, cx: Context, why: str
) -> None:
    verdict = run([DENIES], excepted_pod(code, text), cx)
    (found,) = verdict.findings
    assert found.action == "denied"
    assert found.message.startswith(f"a deny {why}") if why else found.message == "a deny"


@pytest.mark.parametrize("mode", [Mode.AUDIT, Mode.WARN, Mode.ENFORCE])
def test_an_exception_counts_in_every_mode(mode: Mode) -> None:
    verdict = run([DENIES], excepted_pod("GPU301"), replace(ALLOWS, modes=Modes(mode)))
    assert [(f.action, f.mode) for f in verdict.findings] == [("excepted", mode)]


def test_a_repair_rule_has_no_exceptions() -> None:
    pod = excepted_pod("GPU101")
    verdict = run([finds("GPU101", Set(IMAGE, "b"))], pod, ALLOWS)
    assert [f.action for f in verdict.findings] == ["repaired"]
    assert pod["spec"]["containers"][0]["image"] == "b"


@pytest.mark.parametrize(
    ("text", "patches"),
    [
        pytest.param("debugging", 0, id="with a reason"),
        pytest.param(" ", 1, id="without one"),
    ],
)
def test_an_exception_to_a_repairing_policy_rule_leaves_the_pod_as_it_is(
    text: str, patches: int
) -> None:
    rule = says("GPU303", Severity.REPAIR, edits=(Set(IMAGE, "b"),))
    verdict = run([rule], excepted_pod("GPU303", text), ALLOWS)
    assert len(verdict.patch) == patches
    assert verdict.findings[0].action == ("repaired" if patches else "excepted")


@pytest.mark.parametrize("text", ["migrating", "", "x (until 2020-01-01)"])
def test_a_notice_is_never_excepted_and_nothing_is_said_of_it(text: str) -> None:
    rule = says("GPU301", Severity.NOTICE, Severity.DENY, Severity.MANUAL)
    notice, *others = run([rule], excepted_pod("GPU301", text), ALLOWS).findings
    assert (notice.message, notice.exception, notice.action) == ("a notice", "", "reported")
    assert all(each.exception or "(" in each.message for each in others)


def test_a_rule_that_finds_nothing_needs_no_exception() -> None:
    for text in ("migrating", ""):
        assert not run([says("GPU301")], excepted_pod("GPU301", text), ALLOWS).findings


def test_rules_for_every_pod_are_asked_outside_the_scope_too() -> None:
    pod = {"spec": {"containers": [{"image": "a"}]}}
    rules = [finds("A", Set(IMAGE, "b"))]
    assert not run(rules, pod, Context()).findings
    verdict = run(rules, pod, Context(), every_pod=True)
    assert [found.action for found in verdict.findings] == ["repaired"]
    assert pod["spec"]["containers"][0]["image"] == "b"
