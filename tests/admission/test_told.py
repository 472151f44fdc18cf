"""What people are told: of a workload's pods, of a refused pod, of what was changed."""

from __future__ import annotations

import base64
import copy
import json
from dataclasses import replace
from typing import Any

import jsonpatch
import pytest

from tests.admission.kept_lines import KeptLines
from tests.admission.test_policy import GPU, NODES, STRICT, USUAL, asking, deployment
from tests.hostile.wire import review
from webhook.admission.decide import REFUSE, Decider
from webhook.admission.review import dump, parse
from webhook.capacity.nodes import Inventory, NodeClass
from webhook.core.settings import Taint
from webhook.rules import GUARD, POLICY, RULES
from webhook.settings import file as settings_file
from webhook.telemetry.metrics import Metrics

LEGACY = "alpha.kubernetes.io/nvidia-gpu"
REPAIRED = "gpu-webhook.dev/repaired"
AFFINITY = "scheduler.alpha.kubernetes.io/affinity"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
HELP = "ask #gpu, https://wiki.example.com/gpu"
SETTINGS = f"""
policy:
  overrides:
  - labels: {{tier: strict}}
    rules: {{GPU301: enforce, GPU304: enforce, GPU303: enforce}}
  - namespaces: [careful]
    mode: warn
  - namespaces: [silent]
    mode: audit
  exceptions:
  - rules: [GPU301]
    labels: {{tier: strict}}
capacity:
  limits:
  - namespaces: [limited, strict]
    gpus: {{nvidia.com/gpu: 10}}
messages:
  help: "{HELP}"
"""
HINT = f"gpu-webhook: `gpu-webhook explain CODE` explains each code; {HELP}"

LET_IN = "To run it anyway, annotate the pod (of a workload: its template):"


class Counted(Metrics):
    """Keeps what it is told of legacy objects."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str]] = []

    def legacy(self, namespace: str, kind: str) -> None:
        self.seen.append((namespace, kind))


class Desk:
    """Answers by these settings, and keeps the lines of the log."""

    def __init__(self, settings: str = SETTINGS, inventory: Inventory = NODES) -> None:
        self._kept = KeptLines()
        self.metrics = Counted()
        self.decider = Decider(
            RULES,
            settings_file.parse(settings),
            inventory,
            self._kept.log,
            policy=POLICY,
            guards=GUARD,
            metrics=self.metrics,
        )

    def ask(self, road: str, what: Any, namespace: str, **request: Any) -> dict[str, Any]:
        sent = parse(dump(review(what, namespace=namespace, **request)))
        path = {"refuse": REFUSE}.get(road, f"/{road}")
        answer: dict[str, Any] = json.loads(self.decider.answer(path, sent))["response"]
        return answer

    def mutated(
        self, what: Any, namespace: str = USUAL, road: str = "mutate", **request: Any
    ) -> dict[str, Any]:
        """The object as /mutate, or another road, would leave it."""
        before = copy.deepcopy(what)
        patch = self.ask(road, what, namespace, **request).get("patch")
        return jsonpatch.apply_patch(before, base64.b64decode(patch)) if patch else before  # type: ignore[no-any-return]

    def lines(self) -> list[dict[str, Any]]:
        return self._kept.lines()


def legacy(amount: int = 1, **metadata: Any) -> dict[str, Any]:
    return asking(amount, LEGACY, **metadata)


def note(obj: dict[str, Any]) -> object:
    return (obj["metadata"].get("annotations") or {}).get(REPAIRED)


# --- what becomes of a workload's pods


@pytest.mark.parametrize(
    ("namespace", "amount", "code", "end"),
    [
        pytest.param(USUAL, 1, "GPU101", "[its pods will be repaired]", id="enforce: repaired"),
        pytest.param(
            "careful",
            1,
            "GPU101",
            "[its pods will not be repaired in namespace careful]",
            id="warn: not repaired",
        ),
        pytest.param(
            STRICT,
            9,
            "GPU301",
            "[its pods WILL BE REFUSED in namespace strict]",
            id="enforce: refused",
        ),
        pytest.param(
            USUAL,
            9,
            "GPU301",
            "[its pods will not be refused in namespace usual]",
            id="warn: not refused",
        ),
        pytest.param(
            STRICT,
            11,
            "GPU304",
            "[its pods WILL BE REFUSED in namespace strict]",
            id="enforce: above the limit",
        ),
    ],
)
def test_a_warning_on_a_workload_says_what_becomes_of_its_pods(
    namespace: str, amount: int, code: str, end: str
) -> None:
    obj, request = deployment(legacy(amount))
    answer = Desk().ask("validate", obj, namespace, **request)
    assert answer["allowed"] is True
    (said,) = [text for text in answer["warnings"] if text.startswith(code)]
    assert said.endswith(end)
    assert len(said) <= 256


NOWHERE = {"GPU110": "into the template", "GPU301": ""}
TOO_LATE = "[too late in its pods: repair the template]"


@pytest.mark.parametrize(
    ("gpus", "spec", "ends"),
    [
        pytest.param(
            LEGACY,
            {"nodeSelector": {"alpha.kubernetes.io/nvidia-gpu-name": "Tesla-V100"}},
            {"GPU101": "[see GPU110]", "GPU105": TOO_LATE, "GPU201": TOO_LATE, **NOWHERE},
            id="a label of then: there will be no pod",
        ),
        pytest.param(
            LEGACY,
            {"tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]},
            {"GPU101": "[its pods will be repaired]"},
            id="right as it is, but for the name",
        ),
        pytest.param(
            LEGACY,
            {"dnsPolicy": "Default"},
            {"GPU101": "[its pods will be repaired]", "GPU201": TOO_LATE},
            id="a toleration",
        ),
    ],
)
def test_no_repair_is_promised_that_a_daemonset_has_nothing_of(
    gpus: str, spec: dict[str, Any], ends: dict[str, str]
) -> None:
    obj, request = deployment(asking(1, gpus))
    obj["kind"] = request["kind"]["kind"] = "DaemonSet"
    obj["spec"]["template"]["spec"].update(spec)
    warnings = Desk().ask("validate", obj, USUAL, **request)["warnings"]
    texts = [text for text in reversed(warnings) if not text.startswith("gpu-webhook")]
    said = {text[:6]: text for text in texts}  # of several, the first
    assert said.keys() == ends.keys()
    for code, end in ends.items():
        assert said[code].endswith(end)


def test_what_nothing_becomes_of_has_no_such_end() -> None:
    obj, request = deployment(asking(8), replicas=9)
    warnings = Desk().ask("validate", obj, USUAL, **request)["warnings"]
    (said,) = [text for text in warnings if text.startswith("GPU305")]
    assert not said.endswith("]")


def test_an_exception_on_the_template_counts_for_the_workload() -> None:
    obj, request = deployment(legacy(9))
    template = obj["spec"]["template"]
    template["metadata"] = {"annotations": {"gpu-webhook.dev/allow.GPU301": "tonight"}}
    answer = Desk().ask("validate", obj, STRICT, **request)
    assert not [text for text in answer["warnings"] if text.startswith("GPU301")]


@pytest.mark.parametrize("kind", ["DaemonSet"])
def test_a_daemon_set_is_never_said_to_be_refused(kind: str) -> None:
    obj, request = deployment(legacy(9))
    obj["kind"] = request["kind"]["kind"] = kind
    warnings = Desk().ask("validate", obj, STRICT, **request)["warnings"]
    (said,) = [text for text in warnings if text.startswith("GPU301")]
    assert "REFUSED" not in said


def test_log_metric_and_audit_keep_their_words_for_workloads() -> None:
    desk = Desk()
    obj, request = deployment(legacy(9))
    audit = desk.ask("validate", obj, STRICT, **request)["auditAnnotations"]
    assert (audit["gpu101"], audit["gpu301"]) == ("warn: would repair", "warn: reported")


def test_a_long_message_is_cut_and_its_end_is_not() -> None:
    pod = legacy(10**200)
    obj, request = deployment(pod)
    (said,) = [
        text
        for text in Desk().ask("validate", obj, USUAL, **request)["warnings"]
        if text.startswith("GPU101")
    ]
    assert len(said) == 256
    assert said.endswith("… [its pods will be repaired]")


def test_all_warnings_of_one_answer_take_less_than_half_of_what_the_api_server_shows() -> None:
    containers = [
        {"name": f"{n}{'c' * 60}", "resources": {"limits": {LEGACY: "1"}}} for n in range(40)
    ]
    pod = {**legacy(), "spec": {"containers": containers}}
    warnings = Desk().ask("mutate", pod, USUAL)["warnings"]
    assert sum(map(len, warnings)) <= 2048
    assert warnings[-1] == HINT
    assert "more; see `gpu-webhook review`" in warnings[-2]


# --- the way out


def test_a_denial_names_the_way_out() -> None:
    message = Desk().ask("validate", asking(9), STRICT)["status"]["message"]
    assert message.splitlines()[1:] == [
        f'{LET_IN} gpu-webhook.dev/allow.GPU301: "reason (until DATE)".',
        f"More: `gpu-webhook explain GPU301`; {HELP}",
    ]


def test_an_exception_that_would_not_be_enough_is_not_named() -> None:
    message = Desk().ask("validate", asking(11), STRICT)["status"]["message"]
    assert "gpu-webhook.dev/allow" not in message
    assert message.splitlines()[-1] == f"More: `gpu-webhook explain GPU304`; {HELP}"


def test_without_a_help_text_the_commands_are_named_alone() -> None:
    desk = Desk(SETTINGS.replace(f'help: "{HELP}"', 'help: ""'))
    assert desk.ask("validate", asking(9), STRICT)["status"]["message"].splitlines()[-1] == (
        "More: `gpu-webhook explain GPU301`"
    )
    assert desk.ask("mutate", legacy(), USUAL)["warnings"][-1] == HINT.removesuffix(f"; {HELP}")


def test_warnings_end_with_the_way_out_and_silence_has_none() -> None:
    assert Desk().ask("mutate", legacy(), USUAL)["warnings"][-1] == HINT
    assert "warnings" not in Desk().ask("mutate", legacy(), "silent")


def test_the_longest_help_text_is_not_cut() -> None:
    desk = Desk(SETTINGS.replace(HELP, "h" * 160))
    said = desk.ask("mutate", legacy(), USUAL)["warnings"][-1]
    assert len(said) <= 256
    assert said.endswith("h" * 160)


def test_of_a_pod_that_will_be_refused_nothing_is_said_to_be_repaired() -> None:
    warnings = Desk().ask("mutate", legacy(9), STRICT)["warnings"]
    assert not [text for text in warnings if "repaired]" in text]
    assert warnings[0].endswith("[the pod is refused]")
    assert Desk().ask("mutate", legacy(1), STRICT)["warnings"][0].endswith("[enforce: repaired]")


@pytest.mark.parametrize(
    ("amount", "known_until", "end"),
    [
        pytest.param(9, 0.0, "[the pod is refused]", id="the inventory is as new as the review"),
        pytest.param(9, -1.0, "[the pod may be refused]", id="a node may have got them just now"),
        pytest.param(11, -1.0, "[the pod is refused]", id="no node changes a limit of a namespace"),
        pytest.param(1, -1.0, "[enforce: repaired]", id="it fits"),
    ],
)
def test_repairs_say_of_a_refusal_what_is_sure(amount: int, known_until: float, end: str) -> None:
    """/mutate does not wait for the inventory; a denial of /validate does."""
    desk = Desk()
    desk.decider.known_until = lambda: known_until
    said = desk.ask("mutate", legacy(amount), STRICT)["warnings"]
    assert said[0].startswith("GPU101")
    assert said[0].endswith(end)


TEAMS = Inventory(
    (
        NodeClass({"pool": "a"}, (Taint(GPU),), {GPU: 4}, ("a",)),
        NodeClass({"pool": "b"}, (Taint("team"),), {GPU: 8}, ("b",)),
    ),
    namespaces=NODES.namespaces,
    runtime_classes={"team": {"pool": "b"}, "a": {"pool": "a"}},
    class_tolerations={"team": [{"key": "team", "operator": "Exists"}]},
)
BY_CLASS = "{profile: runtime-class, runtimeClass: %s, assumeRuntimeClass: true}"
REFUSED, MAY_BE = "is refused", "may be refused"


@pytest.mark.parametrize(
    ("gpus", "amount", "profile", "spec", "end"),
    [
        pytest.param(LEGACY, 8, "team", {}, "", id="legacy, our class tolerates the taint"),
        pytest.param(GPU, 8, "team", {}, "", id="of today, our class tolerates the taint"),
        pytest.param(LEGACY, 8, "", {"runtimeClassName": "team"}, "", id="its own class does"),
        pytest.param(LEGACY, 8, "", {}, MAY_BE, id="the taint alone: a plugin may tolerate it"),
        pytest.param(LEGACY, 8, "new", {}, MAY_BE, id="a class that is not known may tolerate it"),
        pytest.param(LEGACY, 9, "team", {}, REFUSED, id="more than any node has"),
        pytest.param(
            LEGACY, 8, "", {"nodeSelector": {"pool": "a"}}, REFUSED, id="no node of that pool"
        ),
        pytest.param(
            LEGACY, 8, "", {"runtimeClassName": "a"}, REFUSED, id="its class is for another pool"
        ),
    ],
)
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_nobody_is_told_refused_of_what_plugins_may_still_let_in(
    kind: str, gpus: str, amount: int, profile: str, spec: dict[str, Any], end: str
) -> None:
    """RuntimeClass and PodTolerationRestriction add to a pod after it was judged."""
    drivers = f"drivers: {BY_CLASS % profile}\n" if profile else ""
    desk = Desk(SETTINGS.replace("policy:", f"{drivers}policy:", 1), TEAMS)
    what = asking(amount, gpus)
    what["spec"].update(spec)
    if kind == "Pod":
        told = desk.ask("mutate", what, STRICT)["warnings"]
        of_pods = f"[the pod {end}]"
    else:
        obj, request = deployment(what)
        told = desk.ask("validate", obj, STRICT, **request)["warnings"]
        of_pods = f"[its pods {'WILL BE REFUSED' if end == REFUSED else end} in namespace strict]"
    said = [text for text in told if "refused" in text.lower()]
    assert all(text.endswith(of_pods) for text in said)
    assert bool(said) is bool(end)


LABEL, PRODUCT = "alpha.kubernetes.io/nvidia-gpu-name", "nvidia.com/gpu.product"
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
OF_CLASSES = Inventory(
    tuple(
        NodeClass({PRODUCT: model, ZONE: "a"}, (), {GPU: 4}, (model,))
        for model in ("Tesla-K80", "Tesla-P100-PCIE-16GB")
    ),
    namespaces=NODES.namespaces,
    runtime_classes={
        "k80": {LABEL: "Tesla K80"},
        "p100": {LABEL: "Tesla P100"},
        "m40": {LABEL: "Tesla M40"},
        "zone": {OLD_ZONE: "a"},
        "large": {},
    },
    class_overheads={"large": {GPU: "3", "memory": "1Gi"}},
)


@pytest.mark.parametrize(
    ("spec", "amount", "says"),
    [
        pytest.param({"runtimeClassName": "k80"}, 1, "", id="a model of one value"),
        pytest.param({"runtimeClassName": "p100"}, 1, "", id="a model of several values"),
        pytest.param({"runtimeClassName": "zone"}, 1, "", id="a zone under its label of then"),
        pytest.param({"runtimeClassName": "k80"}, 5, "refused", id="more than any node has"),
        pytest.param({"runtimeClassName": "m40"}, 1, "refused", id="a model that no node has"),
        pytest.param(
            {"runtimeClassName": "k80", "nodeSelector": {PRODUCT: "Tesla-P100-PCIE-16GB"}},
            1,
            "refused",
            id="the pod requests another model",
        ),
        pytest.param({"runtimeClassName": "large"}, 1, "", id="overhead that fits"),
        pytest.param({"runtimeClassName": "large"}, 2, "refused", id="overhead that is too much"),
    ],
)
@pytest.mark.parametrize("repairs", [False, True], ids=["as written", "templates are repaired"])
@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_what_a_class_adds_is_judged_as_it_will_be_in_the_pod(
    *, kind: str, repairs: bool, spec: dict[str, Any], amount: int, says: str
) -> None:
    settings = f"{SETTINGS}workloads: {{repair: {str(repairs).lower()}}}\n"
    desk, what = Desk(settings, OF_CLASSES), legacy(amount)
    what["spec"].update(copy.deepcopy(spec))
    if kind == "Pod":
        what["spec"]["nodeSelector"] = {
            **what["spec"].get("nodeSelector", {}),
            **OF_CLASSES.runtime_classes[spec["runtimeClassName"]],
        }
        if overhead := OF_CLASSES.class_overheads.get(spec["runtimeClassName"]):
            what["spec"]["overhead"] = overhead
        told = desk.ask("mutate", what, STRICT)["warnings"]
    else:
        obj, request = deployment(what)
        made = desk.mutated(obj, STRICT, **request)
        told = desk.ask("validate", made, STRICT, **request).get("warnings", [])
    assert ("refused" in " ".join(told).lower()) is bool(says), told


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet"])
def test_the_overhead_of_a_class_counts_for_the_limit(kind: str) -> None:
    inventory = replace(OF_CLASSES, class_overheads={"large": {GPU: "8"}})
    desk, what = Desk(inventory=inventory), asking(3)
    what["spec"]["runtimeClassName"] = "large"
    obj, request = deployment(what)
    obj["kind"] = request["kind"]["kind"] = kind
    told = desk.ask("validate", obj, "limited", **request)["warnings"]
    assert [text for text in told if text.startswith("GPU304: requests 11")]


def test_a_class_with_a_legacy_label_lets_no_pod_of_today_in() -> None:
    what = asking(1)
    what["spec"]["runtimeClassName"] = "k80"
    obj, request = deployment(what)
    told = Desk(inventory=OF_CLASSES).ask("validate", obj, STRICT, **request)["warnings"]
    assert [text for text in told if "WILL BE REFUSED" in text]


# --- the annotation on what was changed


def test_a_repaired_pod_says_by_which_rules() -> None:
    assert note(Desk().mutated(legacy())) == "GPU101,GPU201"


@pytest.mark.parametrize(
    ("what", "namespace", "settings"),
    [
        pytest.param(legacy(), USUAL, f"{SETTINGS}  annotation: false\n", id="switched off"),
        pytest.param(legacy(), "careful", SETTINGS, id="only warned of"),
        pytest.param(legacy(), "silent", SETTINGS, id="only counted"),
        pytest.param(
            legacy(labels={"gpu-webhook.dev/ignore": "true"}), USUAL, SETTINGS, id="opted out"
        ),
        pytest.param(asking(0, "cpu"), USUAL, SETTINGS, id="no GPU pod"),
    ],
)
def test_what_is_not_changed_or_not_to_be_annotated(
    what: dict[str, Any], namespace: str, settings: str
) -> None:
    made = Desk(settings).mutated(what, namespace)
    assert note(made) is None


def wrote(*keys: str) -> list[dict[str, Any]]:
    """The managedFields of whoever wrote these annotations."""
    fields: Any = {"f:metadata": {"f:annotations": {".": {}, **{f"f:{key}": {} for key in keys}}}}
    return [{"manager": "kubectl", "operation": "Update", "fieldsV1": fields}]


def annotated(text: object, *written: str, **more: Any) -> dict[str, Any]:
    return legacy(annotations={REPAIRED: text}, managedFields=wrote(*written), **more)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(annotated("GPU106"), "GPU101,GPU106,GPU201", id="an earlier round's: merged"),
        pytest.param(annotated("GPU106", REPAIRED), "GPU101,GPU201", id="the tenant's own: gone"),
        pytest.param(legacy(annotations=None), "GPU101,GPU201", id="null annotations"),
        pytest.param(
            legacy(annotations={AFFINITY: '{"nodeAffinity": {}}'}),
            "GPU101,GPU106,GPU201",
            id="the last annotation went with the repair",
        ),
    ],
)
def test_the_annotation_is_the_truth(pod: dict[str, Any], expected: str) -> None:
    assert note(Desk().mutated(pod)) == expected


def test_a_forged_one_on_what_is_not_changed_is_left_alone() -> None:
    tolerating = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    pod = asking(1, annotations={REPAIRED: "GPU106"}, managedFields=wrote(REPAIRED))
    pod["spec"]["tolerations"] = [tolerating]
    assert "patch" not in Desk().ask("mutate", pod, USUAL)


@pytest.mark.parametrize(
    "annotations", [[], "x", {"a": "x" * (256 * 1024 - 20)}], ids=["list", "text", "full"]
)
def test_where_no_annotation_fits_the_pod_is_repaired_all_the_same(annotations: object) -> None:
    made = Desk().mutated(legacy(annotations=annotations))
    assert made["spec"]["containers"][0]["resources"]["limits"] == {GPU: "1"}
    assert made["metadata"]["annotations"] == annotations


def repairing(**metadata: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    obj, request = deployment(legacy())
    obj["metadata"] |= metadata
    return obj, request


REPAIR_TEMPLATES = f"{SETTINGS}\nworkloads: {{repair: true}}\n"


def test_a_repaired_template_is_noted_on_the_workload_itself() -> None:
    obj, request = repairing()
    made = Desk(REPAIR_TEMPLATES).mutated(obj, **request)
    assert note(made) == "GPU101,GPU201"
    assert "annotations" not in made["spec"]["template"]["metadata"]


@pytest.mark.parametrize(("written", "expected"), [("2", "3"), ("3", "3"), ("6", "6")])
def test_a_template_gets_no_less_by_another_webhook_that_writes_the_legacy_name(
    written: str, expected: str
) -> None:
    """It was called after us, and then we once more."""
    desk = Desk(REPAIR_TEMPLATES)
    obj, request = deployment(legacy(3))
    made = desk.mutated(obj, **request)
    resources = made["spec"]["template"]["spec"]["containers"][0]["resources"]
    resources["limits"][LEGACY] = written
    again = desk.mutated(made, **request)
    (container,) = again["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {GPU: expected}


def test_an_update_of_a_workload_keeps_the_codes_of_before() -> None:
    """What `kubectl apply` did not write it keeps, the repairs of before included."""
    obj, request = repairing(annotations={REPAIRED: "GPU106"}, managedFields=wrote())
    old = copy.deepcopy(obj)
    old["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {LEGACY: "4"}}
    made = Desk(REPAIR_TEMPLATES).mutated(obj, operation="UPDATE", oldObject=old, **request)
    assert note(made) == "GPU101,GPU106,GPU201"


RECORD = "gpu-webhook.dev/template-repair"


def stored_and_sent(by_rollout: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Give a stored workload that was repaired, and the same as it was before, with its request.

    `kubectl rollout undo` sends the annotations of the revision, so that they are the client's.
    """
    obj, request = repairing()
    old = Desk(REPAIR_TEMPLATES).mutated(obj, **request)
    old["metadata"]["annotations"][REPAIRED] = "GPU101,GPU109,GPU201"
    sent = copy.deepcopy(old)
    sent["metadata"]["annotations"][REPAIRED] = by_rollout
    sent["metadata"]["managedFields"] = wrote(REPAIRED, RECORD)
    return old, sent, request


def test_a_rollout_undo_takes_no_codes_away() -> None:
    """Else the next apply would add them again, and that is a change."""
    old, sent, request = stored_and_sent("GPU101,GPU201")
    container = sent["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["limits"] = {LEGACY: "2"}
    desk = Desk(REPAIR_TEMPLATES)
    undone = desk.mutated(sent, operation="UPDATE", oldObject=old, **request)
    assert note(undone) == "GPU101,GPU109,GPU201"
    again = copy.deepcopy(undone)
    again["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {LEGACY: "2"}
    made = desk.mutated(again, operation="UPDATE", oldObject=undone, **request)
    assert note(made) == "GPU101,GPU109,GPU201"
    assert made == undone


def test_they_go_with_the_last_word_where_tolerations_stay_on_record() -> None:
    def manifest(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        obj, request = repairing(managedFields=wrote())
        spec = obj["spec"]["template"]["spec"]
        spec["tolerations"] = [{"key": "own", "operator": "Exists"}]
        spec["containers"][0]["resources"] = {"limits": {name: "2"}}
        return obj, request

    desk = Desk(REPAIR_TEMPLATES)
    obj, request = manifest(LEGACY)
    old = desk.mutated(obj, **request)
    sent, request = manifest(GPU)
    made = desk.mutated(sent, operation="UPDATE", oldObject=old, **request)
    assert note(old) == "GPU101,GPU201"
    assert note(made) is None  # this update is not repaired: the toleration is the stored one
    assert RECORD in made["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("limits", "namespace", "expected"),
    [
        pytest.param({GPU: "1"}, USUAL, None, id="no legacy word is left"),
        pytest.param({LEGACY: "2"}, "careful", None, id="the rules only warn now"),
        pytest.param({LEGACY: "2"}, USUAL, "GPU101,GPU201", id="there are others"),
    ],
)
def test_the_codes_go_with_the_repair(limits: Any, namespace: str, expected: str | None) -> None:
    def manifest(limits: Any) -> dict[str, Any]:
        obj, _ = repairing()
        obj["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": limits}
        return obj

    def applied(limits: Any, live: dict[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(live)
        container = made["spec"]["template"]["spec"]["containers"][0]
        container["resources"]["limits"] = limits
        text = json.dumps(manifest(limits))
        annotations = made["metadata"].setdefault("annotations", {})
        annotations["kubectl.kubernetes.io/last-applied-configuration"] = text
        return made

    _, request = repairing()
    desk = Desk(REPAIR_TEMPLATES)
    first = desk.mutated(applied({LEGACY: "1"}, manifest({LEGACY: "1"})), **request)
    assert note(first) == "GPU101,GPU201"
    update = {"operation": "UPDATE", "oldObject": first, **request}
    made = desk.mutated(applied(limits, first), namespace, **update)
    assert note(made) == expected
    assert (RECORD in made["metadata"]["annotations"]) is bool(expected)


def test_what_the_guard_hides_is_noted_too() -> None:
    plain = asking(0, "cpu")
    before = copy.deepcopy(plain)
    patch = base64.b64decode(Desk().ask("guard", plain, STRICT)["patch"])
    assert note(jsonpatch.apply_patch(before, patch)) == "GPU303"


# --- legacy, apart from everything else


OWNED: dict[str, Any] = {
    "ownerReferences": [{"kind": "ReplicaSet", "name": "r-7d9", "controller": True}]
}
ADA = {"userInfo": {"username": "ada@example.com"}}


def test_a_line_says_whether_it_is_legacy_whose_it_is_and_who_asked() -> None:
    desk = Desk()
    desk.ask("mutate", legacy(**OWNED), USUAL, **ADA)
    (line,) = desk.lines()
    assert line["legacy"] is True
    assert (line["namespace"], line["user"]) == (USUAL, "ada@example.com")
    assert line["owner"] == {"kind": "ReplicaSet", "name": "r-7d9"}
    assert desk.metrics.seen == [(USUAL, "ReplicaSet")]


@pytest.mark.parametrize(
    ("road", "what", "counted"),
    [
        pytest.param("mutate", legacy(), [(USUAL, "Pod")], id="a legacy pod by hand"),
        pytest.param(
            "mutate",
            legacy(ownerReferences=[{"kind": "Odd", "name": "o", "controller": True}]),
            [(USUAL, "other")],
            id="an owner of a kind that nobody knows",
        ),
        pytest.param("mutate", asking(1), [], id="a modern pod"),
        pytest.param("validate", asking(99), [], id="a modern pod that can never run"),
        pytest.param(
            "mutate",
            asking(1, annotations={AFFINITY: '{"nodeAffinity": {}}'}),
            [],
            id="an annotation that is left as it is",
        ),
        pytest.param(
            "mutate",
            asking(1, annotations={TOLERATIONS: '[{"key": "a", "operator": "Exists"}]'}),
            [(USUAL, "Pod")],
            id="an annotation that becomes a field",
        ),
        pytest.param(
            "mutate",
            legacy(annotations={AFFINITY: '{"nodeAffinity": {}}'}),
            [(USUAL, "Pod")],
            id="an annotation of a legacy pod",
        ),
    ],
)
def test_only_legacy_words_count_as_legacy(
    road: str, what: dict[str, Any], counted: list[tuple[str, str]]
) -> None:
    desk = Desk()
    desk.ask(road, what, USUAL)
    assert desk.metrics.seen == counted
    assert all(line["legacy"] is bool(counted) for line in desk.lines())


@pytest.mark.parametrize("mode", ["careful", "silent"])
def test_a_legacy_pod_counts_whatever_the_mode(mode: str) -> None:
    desk = Desk()
    desk.ask("mutate", legacy(), mode)
    assert desk.metrics.seen == [(mode, "Pod")]


def test_a_legacy_workload_counts_where_it_is_applied() -> None:
    desk = Desk()
    obj, request = deployment(legacy())
    desk.ask("validate", obj, USUAL, **request, **ADA)
    assert desk.metrics.seen == [(USUAL, "Deployment")]
    (line,) = desk.lines()
    assert (line["legacy"], line["owner"], line["user"]) == (True, None, "ada@example.com")


def test_a_dry_run_makes_no_object_so_only_the_log_knows() -> None:
    desk = Desk()
    desk.ask("mutate", legacy(), USUAL, dryRun=True)
    assert desk.metrics.seen == []
    (line,) = desk.lines()
    assert (line["legacy"], line["dryRun"]) == (True, True)
