"""What holds for every pod and every cluster: P2-P6, P9 and the API server's own rules.

The checks share their examples: drawing a pod costs more than repairing it.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
from hypothesis import event, given

from tests.engine import run
from tests.properties import api_server
from tests.properties.clusters import Cluster, clusters
from tests.properties.frame import DECLARED, is_stale, without
from tests.properties.pods import GPU, LABEL, LEGACY, TOLERATIONS, broken_pods, pods
from webhook.core.errors import EditError
from webhook.kube import quantity
from webhook.kube.pod import PREFERRED, REQUIRED, Pod
from webhook.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webhook.core.findings import Verdict
    from webhook.core.rule import Context

    Raw = dict[str, Any]


@dataclass(frozen=True)
class Repair:
    """A pod as it came, as it left, and all that was said of it."""

    before: Raw
    after: Raw
    verdict: Verdict
    cx: Context


def repair(pod: Raw, cluster: Cluster) -> Repair:
    after = deepcopy(pod)
    return Repair(pod, after, run(RULES, after, cluster.context), cluster.context)


# --------------------------------------------------------------------------- the checks


def no_rule_raises(repair: Repair) -> None:
    assert repair.verdict.failed == ()


def p2_the_patch_makes_the_object_that_was_meant(repair: Repair) -> None:
    patched = jsonpatch.apply_patch(repair.before, repair.verdict.patch)
    assert exact(patched) == exact(repair.after)


def p3_a_second_run_changes_nothing(repair: Repair) -> None:
    again = deepcopy(repair.after)
    assert run(RULES, again, repair.cx).patch == []
    assert again == repair.after


def p4_outside_the_declared_places_nothing_changes(repair: Repair) -> None:
    settings = repair.cx.settings
    before = without(repair.before, repair.before, settings)
    assert exact(without(repair.after, repair.before, settings), sort=False) == exact(
        before, sort=False
    )


def p4_tolerations_and_volumes_that_are_not_stale_stay_in_order(repair: Repair) -> None:
    before, after = spec(repair.before), spec(repair.after)
    there = before.get("tolerations") or []
    assert (after.get("tolerations") or [])[: len(there)] == there
    kept = [each for each in before.get("volumes") or () if not stale(each, repair)]
    assert [each for each in after.get("volumes") or () if not stale(each, repair)][
        : len(kept)
    ] == kept


def p4_entries_only_leave_search_paths_and_none_with_a_variable(repair: Repair) -> None:
    for old, new in zip(
        api_server.containers(repair.before), api_server.containers(repair.after), strict=True
    ):
        values = {each["name"]: each.get("value") for each in new.get("env") or ()}
        for variable in old.get("env") or ():
            value = variable.get("value")
            if not isinstance(value, str) or values.get(variable["name"]) == value:
                continue
            if any(
                each is not variable and each["name"] == variable["name"] for each in old["env"]
            ):
                continue  # a name that stands twice: the last one counts
            assert variable["name"] in ("LD_LIBRARY_PATH", "PATH")
            library = repair.cx.settings.drivers.library_path
            left = (values.get(variable["name"]) or "").split(":")
            assert "$(" not in value or left == [*value.split(":"), library]
            assert set(left) <= {*value.split(":"), library, ""}
            gone = set(value.split(":")) - set(left)
            assert not gone & {"/usr/local/nvidia", "/usr/local/nvidia/lib64", "/bin"}


def p4_affinity_of_the_spec_is_only_narrowed(repair: Repair) -> None:
    before = spec(repair.before).get("affinity") or {}
    after = spec(repair.after).get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        if before.get(name) is not None:
            assert after[name] == before[name]
    old, new = before.get("nodeAffinity") or {}, after.get("nodeAffinity") or {}
    if any(each.get("key") == LABEL for each in api_server.node_requirements(repair.before)):
        return
    assert (new.get(PREFERRED) or [])[: len(old.get(PREFERRED) or ())] == (old.get(PREFERRED) or [])
    terms = (old.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    joined = (new.get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    assert not terms or joined
    if terms:
        assert all(any(is_narrower(term, wide) for wide in terms) for term in joined)


def p6_only_plain_operations_on_paths_that_are_there(repair: Repair) -> None:
    obj = deepcopy(repair.before)
    for operation in repair.verdict.patch:
        assert operation["op"] in ("add", "replace", "remove")
        holder, last = holder_of(obj, operation["path"])
        if isinstance(holder, list):
            assert last == "-" if operation["op"] == "add" else last.isdecimal()
            assert last == "-" or str(int(last)) == last
            assert last == "-" or int(last) < len(holder)
        else:
            assert isinstance(holder, dict)
            assert (last in holder) is (operation["op"] != "add")
        obj = jsonpatch.apply_patch(obj, [operation])
    paths = [each["path"] for each in repair.verdict.patch if not each["path"].endswith("/-")]
    kinds = [(each["op"], each["path"]) for each in repair.verdict.patch]
    assert len(paths) == len(set(paths)), kinds


def p9_nothing_is_granted_but_what_the_settings_profile_adds(repair: Repair) -> None:
    mounts = repair.cx.settings.drivers.mounts
    provided = {(mount.path, mount.type) for mount in mounts}
    new = host_paths(repair.after) - host_paths(repair.before)
    assert new <= provided
    for old, now in zip(
        api_server.containers(repair.before), api_server.containers(repair.after), strict=True
    ):
        secured = dict(now.get("securityContext") or {})
        was = dict(old.get("securityContext") or {})
        if secured.get("seccompProfile") == {"type": "RuntimeDefault"}:
            secured.pop("seccompProfile")
            was.pop("seccompProfile", None)
        assert secured == was
        assert new or len(now.get("volumeMounts") or ()) <= len(
            old.get("volumeMounts") or ()
        ) + len(mounts)
    for name in ("serviceAccountName", "hostNetwork", "hostPID", "priorityClassName", "nodeName"):
        assert spec(repair.after).get(name) == spec(repair.before).get(name)


def p9_tolerations_are_those_of_gpus_of_the_settings_and_of_the_annotation(repair: Repair) -> None:
    there = spec(repair.before).get("tolerations") or []
    gpus = Pod(repair.after).gpus(repair.cx.settings)
    listed = repair.cx.settings.taints
    text = ((repair.before.get("metadata") or {}).get("annotations") or {}).get(TOLERATIONS)
    for new in (spec(repair.after).get("tolerations") or [])[len(there) :]:
        assert new.get("key")
        assert (
            (
                new == {"key": new["key"], "operator": "Exists", "effect": "NoSchedule"}
                and new["key"] in gpus
            )
            or any((new["key"], new.get("value")) == (taint.key, taint.value) for taint in listed)
            or new["key"].lower() in str(text).lower()
        )


def the_api_server_takes_the_amounts(repair: Repair) -> None:
    """An amount that stood under a name of today is left to the API server, right or wrong."""
    settings = repair.cx.settings
    were = {id(each): was for each, was in both_containers(repair)}
    for container, name, limits, requests in api_server.extended_amounts(repair.after):
        given_ = [each[name] for each in (limits, requests) if name in each]
        of_today = [each[name] for each in sections(were[id(container)]) if name in each]
        is_new = any(amount not in of_today for amount in given_)
        if not settings.is_gpu(name) or not is_new or not all(map(api_server.is_amount, given_)):
            continue
        assert name in limits, "a request without a limit"
        values = {quantity.parse(amount) for amount in given_}
        assert len(values) == 1, "a request that is not the limit"
        assert all(value is not None and quantity.is_whole(value) for value in values)


def both_containers(repair: Repair) -> Iterator[tuple[Raw, Raw]]:
    return zip(
        api_server.containers(repair.after), api_server.containers(repair.before), strict=True
    )


def no_legacy_name_is_left_with_an_amount(repair: Repair) -> None:
    settings = repair.cx.settings
    for container in api_server.containers(repair.after):
        gpus = {name for name in declared(container) if settings.is_gpu(name)}
        gpus |= set(settings.legacy_resources)
        amounts = [each[name] for each in sections(container) for name in gpus & each.keys()]
        if not all(map(api_server.is_amount, amounts)):
            continue  # the API server refuses it, whichever of them is larger
        for name in set(settings.legacy_resources) & declared(container):
            written = [each[name] for each in sections(container) if name in each]
            # A 0 stays: a LimitRange of that name would add its amount.
            assert not any(quantity.parse(amount) for amount in written)


def no_gpu_is_added_or_lost(repair: Repair) -> None:
    """The larger amount counts; slices and shared GPUs win over the legacy name."""
    settings = repair.cx.settings
    for new, old in both_containers(repair):
        gpus = {name for name in declared(old) if settings.is_gpu(name)}
        legacy = set(settings.legacy_resources) & declared(old)
        written = [each[name] for each in sections(old) for name in each if name in gpus | legacy]
        if not all(map(api_server.is_amount, written)):
            continue
        others = gpus - {settings.gpu_resource}
        assert [largest(new, {name}) for name in others] == [
            largest(old, {name}) for name in others
        ]
        whole, asked = largest(old, {settings.gpu_resource}), largest(old, legacy)
        expected = whole if not whole and largest(old, others) else max(whole, asked)
        assert largest(new, {settings.gpu_resource}) in (expected, quantity.whole(expected))


def largest(container: Raw, names: set[str]) -> Fraction:
    """The largest amount under any of the names."""
    found = [quantity.parse(s[name]) for s in sections(container) for name in names if name in s]
    return max((each for each in found if each is not None), default=Fraction(0))


def an_invalid_label_value_is_never_emitted(repair: Repair) -> None:
    before = [exact(each) for each in api_server.node_requirements(repair.before)]
    for requirement in api_server.node_requirements(repair.after):
        if exact(requirement) not in before:
            for value in requirement.get("values") or ():
                assert api_server.is_label_value(value)
    old = spec(repair.before).get("nodeSelector") or {}
    for key, value in (spec(repair.after).get("nodeSelector") or {}).items():
        if old.get(key) != value:
            assert api_server.is_label_value(value)


def what_is_found_is_said_in_text(repair: Repair) -> None:
    for finding in repair.verdict.findings:
        assert finding.message
        assert finding.code.startswith("GPU")
        finding.message.encode()  # no half of a surrogate pair
    json.dumps(repair.verdict.patch, ensure_ascii=False).encode()


def what_changes_is_found(repair: Repair) -> None:
    assert bool(repair.verdict.patch) <= bool(repair.verdict.findings)
    assert bool(repair.verdict.patch) is (exact(repair.before) != exact(repair.after))


CHECKS = (
    no_rule_raises,
    p2_the_patch_makes_the_object_that_was_meant,
    p3_a_second_run_changes_nothing,
    p4_outside_the_declared_places_nothing_changes,
    p4_tolerations_and_volumes_that_are_not_stale_stay_in_order,
    p4_entries_only_leave_search_paths_and_none_with_a_variable,
    p4_affinity_of_the_spec_is_only_narrowed,
    p6_only_plain_operations_on_paths_that_are_there,
    p9_nothing_is_granted_but_what_the_settings_profile_adds,
    p9_tolerations_are_those_of_gpus_of_the_settings_and_of_the_annotation,
    the_api_server_takes_the_amounts,
    no_legacy_name_is_left_with_an_amount,
    no_gpu_is_added_or_lost,
    an_invalid_label_value_is_never_emitted,
    what_is_found_is_said_in_text,
    what_changes_is_found,
)


@given(pods(), clusters())
def test_every_repair_passes_every_check(pod: Raw, cluster: Cluster) -> None:
    made = repair(pod, cluster)
    for finding in made.verdict.findings:
        event(finding.code)
    for check in CHECKS:
        check(made)


@given(broken_pods(), clusters())
def test_junk_in_a_pod_neither_stops_the_others_nor_spoils_the_patch(
    pod: Raw, cluster: Cluster
) -> None:
    made = repair(pod, cluster)
    # An edit that does not fit junk is refused whole; any other error would be ours.
    assert [error for _, error in made.verdict.failed if not isinstance(error, EditError)] == []
    p2_the_patch_makes_the_object_that_was_meant(made)
    p3_a_second_run_changes_nothing(made)
    p6_only_plain_operations_on_paths_that_are_there(made)
    what_is_found_is_said_in_text(made)
    what_changes_is_found(made)


BAD: dict[Any, Callable[[Any], object]] = {
    p2_the_patch_makes_the_object_that_was_meant: lambda r: r.after["spec"].update(more=1),
    p3_a_second_run_changes_nothing: lambda r: r.after["spec"]["containers"][0].update(
        resources={"limits": {LEGACY: 1}}
    ),
    p4_outside_the_declared_places_nothing_changes: lambda r: r.after["spec"].update(more=1),
    p4_tolerations_and_volumes_that_are_not_stale_stay_in_order: lambda r: r.after["spec"][
        "tolerations"
    ].insert(0, {}),
    p4_entries_only_leave_search_paths_and_none_with_a_variable: lambda r: r.after["spec"][
        "containers"
    ][0]["env"].pop(),
    p4_affinity_of_the_spec_is_only_narrowed: lambda r: r.after["spec"]["affinity"].clear(),
    p6_only_plain_operations_on_paths_that_are_there: lambda r: r.verdict.patch.append(
        {"op": "remove", "path": "/spec/nothing"}
    ),
    p9_nothing_is_granted_but_what_the_settings_profile_adds: lambda r: r.after["spec"].update(
        volumes=[{"name": "v", "hostPath": {"path": "/"}}]
    ),
    p9_tolerations_are_those_of_gpus_of_the_settings_and_of_the_annotation: lambda r: r.after[
        "spec"
    ]["tolerations"].append({"operator": "Exists"}),
    the_api_server_takes_the_amounts: lambda r: r.after["spec"]["containers"][0]["resources"][
        "limits"
    ].clear(),
    no_legacy_name_is_left_with_an_amount: lambda r: r.after["spec"]["containers"][0].update(
        resources={"limits": {LEGACY: 1}}
    ),
    no_gpu_is_added_or_lost: lambda r: r.after["spec"]["containers"][0].update(
        resources={"limits": {GPU: 3}}
    ),
    an_invalid_label_value_is_never_emitted: lambda r: r.after["spec"].update(
        nodeSelector={"a": "b c"}
    ),
    what_changes_is_found: lambda r: r.verdict.patch.clear(),
}


@pytest.mark.parametrize("check", BAD, ids=lambda check: check.__name__)
def test_each_check_sees_the_fault_that_it_is_for(check: Any) -> None:
    pod = {
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "resources": {"limits": {LEGACY: 1}, "requests": {LEGACY: 1}},
                    "env": [{"name": "A", "value": "b"}],
                }
            ],
            "tolerations": [{"key": "a"}],
            "affinity": {
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
                        ]
                    }
                }
            },
        }
    }
    made = repair(pod, Cluster("default", "none"))
    check(made)
    BAD[check](made)
    with pytest.raises((AssertionError, KeyError, jsonpatch.JsonPatchException)):
        check(made)


def test_every_check_but_two_is_shown_to_see_its_fault() -> None:
    assert set(CHECKS) - set(BAD) == {no_rule_raises, what_is_found_is_said_in_text}


STUCK = {"name": "c", "resources": {"limits": {LEGACY: 1}}}
DRIVER = {"name": "v", "hostPath": {"path": "/usr/lib/nvidia-375"}}
MOUNT = {"name": "v", "mountPath": "/cuda"}
ALPHA, SECCOMP = "scheduler.alpha.kubernetes.io", "seccomp.security.alpha.kubernetes.io"
NEEDED: dict[str, tuple[Raw, Raw, Raw]] = {  # annotations, members of the container, of the spec
    "/metadata/annotations/<dead annotation>": ({f"{ALPHA}/affinity": "{}"}, {}, {}),
    "/spec/<containers>/*/resources/limits/<gpu>": ({}, {}, {}),
    "/spec/<containers>/*/resources/requests/<gpu>": (
        {},
        {"resources": {"requests": {LEGACY: 1}}},
        {},
    ),
    "/spec/<containers>/*/env/<search path>": (
        {},
        {"volumeMounts": [MOUNT], "env": [{"name": "PATH", "value": "/cuda"}]},
        {"volumes": [DRIVER]},
    ),
    "/spec/<containers>/*/volumeMounts/<driver mount>": (
        {},
        {"volumeMounts": [MOUNT]},
        {"volumes": [DRIVER]},
    ),
    "/spec/<containers>/*/securityContext/seccompProfile": (
        {f"container.{SECCOMP}/c": "docker/default"},
        {},
        {},
    ),
    "/spec/volumes/<driver volume>": ({}, {}, {"volumes": [DRIVER]}),
    "/spec/nodeSelector/<model or placement>": ({}, {}, {"nodeSelector": {LABEL: "Tesla K80"}}),
    "/spec/affinity": ({}, {}, {"nodeSelector": {LABEL: "Tesla P100"}}),
    "/spec/tolerations/<toleration>": ({}, {}, {}),
    "/spec/schedulerName": ({f"{ALPHA}/name": "gpu-scheduler"}, {}, {}),
    "/spec/runtimeClassName": ({}, {}, {}),
    "/spec/hostname": ({"pod.beta.kubernetes.io/hostname": "h"}, {}, {}),
    "/spec/subdomain": ({"pod.beta.kubernetes.io/subdomain": "s"}, {}, {}),
    "/spec/securityContext/sysctls": (
        {"security.alpha.kubernetes.io/sysctls": "kernel.shm_rmid_forced=1"},
        {},
        {},
    ),
    "/spec/securityContext/seccompProfile": ({f"{SECCOMP}/pod": "runtime/default"}, {}, {}),
}
CLUSTER_OF = {
    "/spec/schedulerName": Cluster("shared", "none"),
    "/spec/runtimeClassName": Cluster("runtime-class", "GFD"),
}


@pytest.mark.parametrize("place", DECLARED)
def test_every_declared_place_is_one_that_some_repair_touches(place: str) -> None:
    annotations, container, more = deepcopy(NEEDED[place])
    pod = {
        "metadata": {"annotations": annotations},
        "spec": {"containers": [{**deepcopy(STUCK), **container}], **more},
    }
    made = repair(pod, CLUSTER_OF.get(place, Cluster("default", "none")))
    others = [each for each in DECLARED if each != place]
    settings = made.cx.settings
    assert without(made.after, pod, settings) == without(pod, pod, settings)
    assert without(made.after, pod, settings, others) != without(pod, pod, settings, others)


# --------------------------------------------------------------------------- small questions


def exact(value: object, *, sort: bool = True) -> str:
    """The value as JSON: 1 is not 1.0, and lists keep their order."""
    return json.dumps(value, sort_keys=sort)


def spec(pod: Raw) -> Raw:
    found: Raw = pod.get("spec") or {}
    return found


def stale(volume: Raw, repair: Repair) -> bool:
    source = volume.get("hostPath") or {}
    return is_stale(source.get("path"), repair.cx.settings)


def is_narrower(term: Raw, wide: Raw) -> bool:
    """True if the term requests all that the wide one requests."""
    expressions = term.get("matchExpressions") or []
    return term.get("matchFields") == wide.get("matchFields") and all(
        each in expressions for each in wide.get("matchExpressions") or ()
    )


def host_paths(pod: Raw) -> set[tuple[Any, Any]]:
    sources = [volume.get("hostPath") or {} for volume in spec(pod).get("volumes") or ()]
    return {(source["path"], source.get("type")) for source in sources if "path" in source}


def holder_of(obj: Raw, path: str) -> tuple[Any, str]:
    *above, last = [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]
    here: Any = obj
    for token in above:
        here = here[int(token)] if isinstance(here, list) else here[token]
    return here, last


def sections(container: Raw) -> Iterator[Raw]:
    resources = container.get("resources") or {}
    yield resources.get("limits") or {}
    yield resources.get("requests") or {}


def declared(container: Raw) -> set[str]:
    return {name for section in sections(container) for name in section}
