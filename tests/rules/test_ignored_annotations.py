from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.rules.pods import (
    ANNOTATIONS,
    FIRST,
    GPU,
    LEGACY,
    SPEC,
    container,
    found,
    legacy_pod,
    modern_pod,
    pod,
)
from webhook.core.edits import Remove, Set
from webhook.core.findings import Finding, Severity
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.rules import ignored_annotations as rule

if TYPE_CHECKING:
    from webhook.core.edits import Edit

SCHEDULER = "scheduler.alpha.kubernetes.io/name"
CRITICAL = "scheduler.alpha.kubernetes.io/critical-pod"
HINT = "scheduler.alpha.kubernetes.io/nvidiaGPU"
SYSCTLS = "security.alpha.kubernetes.io/sysctls"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF = "container.seccomp.security.alpha.kubernetes.io/"
INIT = ("pod.alpha.kubernetes.io/init-containers", "pod.beta.kubernetes.io/init-containers")

repaired = partial(Finding, rule.CODE)
reported = partial(Finding, rule.CODE, severity=Severity.MANUAL)
RUNTIME_DEFAULT = {"type": "RuntimeDefault"}
PROFILE = "securityContext.seccompProfile: {type: RuntimeDefault}"
SET_PROFILE = "seccompProfile is set and wins; delete the annotation"
UNSAFE = "write securityContext.sysctls if the kubelets allow them"


def taken_over(key: str, advice: str, *edits: Edit) -> Finding:
    what = "taken over" if edits else "removed"
    message = f"the annotation {key} has no effect today and is {what}: {advice}"
    return repaired(ANNOTATIONS / key, message, (*edits, Remove(ANNOTATIONS / key)))


def left(key: str, advice: str) -> Finding:
    message = f"the annotation {key} has no effect today and is left: {advice}"
    return reported(ANNOTATIONS / key, message)


def sysctls(*pairs: tuple[str, str]) -> Set:
    value = [{"name": name, "value": value} for name, value in pairs]
    return Set(SPEC / "securityContext" / "sysctls", value)


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="no annotation: untouched"),
        pytest.param({"prometheus.io/scrape": "true"}, id="an annotation that is alive: untouched"),
        pytest.param(
            {"container.apparmor.security.beta.kubernetes.io/cuda": "runtime/default"},
            id="AppArmor: the API server still takes it over by itself",
        ),
        pytest.param(
            {"scheduler.alpha.kubernetes.io/node-selector": "a=b"},
            id="an annotation of Namespaces, which is alive: untouched",
        ),
        pytest.param({"scheduler.alpha.kubernetes.io/affinity": "{}"}, id="GPU106's: untouched"),
    ],
)
def test_annotations_that_are_left_alone(annotations: Any) -> None:
    assert found(rule, legacy_pod(annotations)) == []


@pytest.mark.parametrize("key", INIT)
def test_init_containers_of_a_manifest_are_those_of_their_own_rule(key: str) -> None:
    assert found(rule, legacy_pod({key: "[{"}), Context(in_manifest=True)) == []


@pytest.mark.parametrize(
    ("key", "value", "spec", "expected"),
    [
        pytest.param(
            CRITICAL,
            "",
            {},
            [left(CRITICAL, "write priorityClassName (in kube-system: system-cluster-critical)")],
            id="critical-pod: only reported, the Priority plugin refuses a late class",
        ),
        pytest.param(
            HINT,
            '{"AllocationPriority":"Dense"}',
            {},
            [taken_over(HINT, "nothing replaces this hint; delete it")],
            id="IBM's hint: removed",
        ),
        pytest.param(
            INIT[0],
            "[]",
            {},
            [left(INIT[0], "the API server drops it; write spec.initContainers")],
            id="init containers, alpha: reported",
        ),
        pytest.param(
            INIT[1],
            "[]",
            {"initContainers": [container()]},
            [left(INIT[1], "the API server drops it; write spec.initContainers")],
            id="init containers beside the field (pattern 17): never made twice",
        ),
        pytest.param(
            INIT[1],
            None,
            {},
            [taken_over(INIT[1], "it is null; delete the line")],
            id="null on purpose (pattern 7): dropped, not bad JSON",
        ),
        pytest.param(
            "pod.beta.kubernetes.io/init-container-statuses",
            "[]",
            {},
            [taken_over("pod.beta.kubernetes.io/init-container-statuses", "delete it")],
            id="statuses of an exported pod: removed",
        ),
        pytest.param(
            "pod.alpha.kubernetes.io/initialized",
            "true",
            {},
            [
                taken_over(
                    "pod.alpha.kubernetes.io/initialized",
                    "no StatefulSet has waited for it since 1.8; delete it",
                )
            ],
            id="what held up a StatefulSet: removed",
        ),
        pytest.param(
            SCHEDULER,
            "default-scheduler",
            {},
            [taken_over(SCHEDULER, "it is the default; delete it")],
            id="the default scheduler: removed",
        ),
        pytest.param(
            SYSCTLS,
            "kernel.shm_rmid_forced=1,net.ipv4.tcp_syncookies=0",
            {},
            [
                taken_over(
                    SYSCTLS,
                    "write securityContext.sysctls",
                    sysctls(("kernel.shm_rmid_forced", "1"), ("net.ipv4.tcp_syncookies", "0")),
                )
            ],
            id="safe sysctls: taken over",
        ),
        pytest.param(
            SYSCTLS,
            "kernel.shm_rmid_forced=1",
            {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]}},
            [taken_over(SYSCTLS, "sysctls is set and wins; delete the annotation")],
            id="sysctls beside the field: the field wins",
        ),
        pytest.param(
            SYSCTLS,
            "kernel.shm_rmid_forced=1,kernel.msgmax=65536",
            {},
            [left(SYSCTLS, UNSAFE)],
            id="an unsafe sysctl among them: the pod could not start",
        ),
        pytest.param(
            SYSCTLS,
            "kernel.shm_rmid_forced=1,kernel.shm_rmid_forced=0",
            {},
            [left(SYSCTLS, UNSAFE)],
            id="one that stands twice: the API server would refuse it",
        ),
        pytest.param(
            SYSCTLS,
            "net.ipv4.tcp_syncookies=0",
            {"hostNetwork": True},
            [left(SYSCTLS, UNSAFE)],
            id="a host namespace: the API server would refuse it",
        ),
        pytest.param(
            SYSCTLS,
            "kernel.shm_rmid_forced",
            {},
            [left(SYSCTLS, "it is not of the form a=b,c=d; write securityContext.sysctls")],
            id="no equals sign",
        ),
        pytest.param(
            SYSCTLS,
            "a=b=c",
            {},
            [left(SYSCTLS, "it is not of the form a=b,c=d; write securityContext.sysctls")],
            id="two equals signs",
        ),
        pytest.param(
            "security.alpha.kubernetes.io/unsafe-sysctls",
            "kernel.shm_rmid_forced=1",
            {},
            [left("security.alpha.kubernetes.io/unsafe-sysctls", UNSAFE)],
            id="unsafe sysctls: reported",
        ),
        pytest.param(
            SECCOMP,
            "runtime/default",
            {},
            [
                taken_over(
                    SECCOMP,
                    f"write {PROFILE}",
                    Set(SPEC / "securityContext" / "seccompProfile", RUNTIME_DEFAULT),
                )
            ],
            id="seccomp of the pod: taken over",
        ),
        pytest.param(
            SECCOMP,
            "docker/default",
            {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
            [taken_over(SECCOMP, SET_PROFILE)],
            id="seccomp beside the field: the field wins",
        ),
        pytest.param(
            SECCOMP,
            "unconfined",
            {},
            [left(SECCOMP, "write securityContext.seccompProfile")],
            id="seccomp unconfined: it could weaken the pod, so it is reported",
        ),
        pytest.param(
            SECCOMP,
            "localhost/audit.json",
            {},
            [left(SECCOMP, "write securityContext.seccompProfile")],
            id="a local seccomp profile: the node may not have it, so it is reported",
        ),
        pytest.param(
            SECCOMP_OF + "cuda",
            "docker/default",
            {},
            [
                taken_over(
                    SECCOMP_OF + "cuda",
                    f"write {PROFILE}",
                    Set(FIRST / "securityContext" / "seccompProfile", RUNTIME_DEFAULT),
                )
            ],
            id="seccomp of a container",
        ),
        pytest.param(
            SECCOMP_OF + "warm-up",
            "runtime/default",
            {"initContainers": [container(name="warm-up")]},
            [
                taken_over(
                    SECCOMP_OF + "warm-up",
                    f"write {PROFILE}",
                    Set(
                        SPEC / "initContainers" / 0 / "securityContext" / "seccompProfile",
                        RUNTIME_DEFAULT,
                    ),
                )
            ],
            id="seccomp of an init container",
        ),
        pytest.param(
            SECCOMP_OF + "gone",
            "runtime/default",
            {},
            [left(SECCOMP_OF + "gone", "it names no container; delete it")],
            id="seccomp of a container that does not exist",
        ),
        pytest.param(
            "pod.beta.kubernetes.io/hostname",
            "worker-0",
            {},
            [
                taken_over(
                    "pod.beta.kubernetes.io/hostname",
                    "write hostname: worker-0",
                    Set(SPEC / "hostname", "worker-0"),
                )
            ],
            id="hostname: taken over",
        ),
        pytest.param(
            "pod.beta.kubernetes.io/subdomain",
            "workers",
            {"subdomain": "others"},
            [
                taken_over(
                    "pod.beta.kubernetes.io/subdomain",
                    "subdomain is set and wins; delete the annotation",
                )
            ],
            id="subdomain beside the field: the field wins",
        ),
        pytest.param(
            "pod.beta.kubernetes.io/hostname",
            "Worker_0",
            {},
            [left("pod.beta.kubernetes.io/hostname", "it is no legal hostname; delete it")],
            id="a hostname that the API server would refuse",
        ),
        pytest.param(
            SCHEDULER,
            "packer",
            {"schedulerName": "default-scheduler"},
            [left(SCHEDULER, "write schedulerName: packer if that scheduler runs here")],
            id="a scheduler that the settings do not list: only reported",
        ),
        pytest.param(
            SCHEDULER,
            "Pack er\n",
            {},
            [left(SCHEDULER, "it is no legal schedulerName; delete it")],
            id="no name of a scheduler",
        ),
    ],
)
def test_the_table_of_ignored_annotations(
    key: str, value: Any, spec: Any, expected: list[Finding]
) -> None:
    assert found(rule, legacy_pod({key: value}, **spec)) == expected


LISTED = Context(Settings(annotation_schedulers=("packer",)))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, Set(SPEC / "schedulerName", "packer"), id="nothing set"),
        pytest.param(
            {"schedulerName": "default-scheduler"},
            Set(SPEC / "schedulerName", "packer"),
            id="the default, which is the API server's word and not the author's",
        ),
        pytest.param({"schedulerName": "packer"}, None, id="that very scheduler"),
        pytest.param({"schedulerName": "spreader"}, None, id="another scheduler: the field wins"),
    ],
)
def test_a_scheduler_that_the_settings_list(spec: Any, expected: Edit | None) -> None:
    finding = (
        taken_over(SCHEDULER, "write schedulerName: packer", expected)
        if expected
        else taken_over(SCHEDULER, "schedulerName is set and wins; delete the annotation")
    )
    assert found(rule, legacy_pod({SCHEDULER: "packer"}, **spec), LISTED) == [finding]


@pytest.mark.parametrize(
    "key", [SCHEDULER, CRITICAL, HINT, SYSCTLS, SECCOMP, "pod.beta.kubernetes.io/hostname", INIT[0]]
)
def test_a_pod_that_runs_is_only_warned(key: str) -> None:
    findings = found(rule, modern_pod({key: "packer"}), LISTED)
    assert [(each.edits, each.severity) for each in findings] == [((), Severity.MANUAL)]


def test_scope_all_legacy_takes_over_what_is_dead_on_a_pod_that_runs() -> None:
    cx = Context(Settings(scope="all-legacy"))
    key = "pod.beta.kubernetes.io/hostname"
    expected = taken_over(key, "write hostname: worker-0", Set(SPEC / "hostname", "worker-0"))
    assert found(rule, modern_pod({key: "worker-0"}), cx) == [expected]


def test_alpha_and_beta_of_an_exported_pod_are_both_reported() -> None:
    obj = pod(container({LEGACY: 1, GPU: 1}), annotations=dict.fromkeys(INIT, "[]"))
    assert [each.at for each in found(rule, obj)] == [ANNOTATIONS / key for key in INIT]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("pod.beta.kubernetes.io/hostname", True, id="a pod's"),
        pytest.param("container.seccomp.security.alpha.kubernetes.io/a", True, id="a container's"),
        pytest.param("scheduler.alpha.kubernetes.io/affinity", False, id="that of another rule"),
        pytest.param("example.com/hostname", False, id="somebody else's"),
    ],
)
def test_which_annotations_are_dead(key: str, expected: bool) -> None:  # noqa: FBT001
    assert rule.is_ignored(key) is expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(SCHEDULER, True, id="a scheduler: spec.schedulerName"),
        pytest.param(SYSCTLS, True, id="sysctls: of the security context"),
        pytest.param(f"{SECCOMP_OF}web", True, id="seccomp of a container"),
        pytest.param("pod.beta.kubernetes.io/hostname", True, id="a host name"),
        pytest.param(HINT, False, id="a hint that no scheduler reads has no field"),
        pytest.param("example.com/x", False, id="an annotation that lives"),
    ],
)
def test_which_annotations_a_field_takes_over(key: str, expected: bool) -> None:  # noqa: FBT001
    assert rule.becomes_field(key) is expected
