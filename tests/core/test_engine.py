"""The engine: order, scope, and one broken rule that does not stop the others."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from webhook.core.edits import Append, Remove, Set
from webhook.core.engine import run
from webhook.core.errors import EditError
from webhook.core.findings import Finding, Safety
from webhook.core.pointer import ROOT, Path
from webhook.core.rule import Context
from webhook.core.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.edits import Edit
    from webhook.core.pod import Pod

    Check = Callable[[Pod, Context], Iterator[Finding]]

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
IMAGE = Path(("spec", "containers", 0, "image"))


@dataclass
class Rule:
    """A rule made for a test: a real one is a module with the same three names."""

    CODE: str
    do: Check
    NAME: str = "test"

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
    assert verdict.object is pod
    assert pod["spec"]["containers"][0]["image"] == "c"
    assert not verdict.failed


@pytest.mark.parametrize("safety", [Safety.UNSAFE, Safety.SHOW])
def test_only_safe_edits_are_made(safety: Safety) -> None:
    pod = gpu_pod()
    verdict = run([finds("A", Set(IMAGE, "b"), safety=safety)], pod, Context())
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
    assert verdict.needs_person


def test_a_pod_that_is_none_of_our_business_meets_no_rule() -> None:
    pod = {"spec": {"containers": [{"image": "a"}]}}
    before = deepcopy(pod)
    verdict = run([finds("A", Set(IMAGE, "b")), breaks("X")], pod, Context())
    assert (verdict.findings, verdict.patch, verdict.failed) == ((), [], ())
    assert verdict.object is pod
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
    assert verdict.object is obj
