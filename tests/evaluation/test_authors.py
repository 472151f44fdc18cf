"""Who wrote what, as the API server and kubectl have noted it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhook.core.object_size import MOST_CONTAINERS
from webhook.evaluation.authors import Authors
from webhook.evaluation.pod_fields import PodFields
from webhook.kube.managed_fields import LAST_APPLIED
from webhook.kube.pod import REQUIRED
from webhook.kube.pointer import ROOT, Path

TEMPLATE = Path(("spec", "template"))
GPU = "nvidia.com/gpu"
RESOURCES = ("spec", "containers", "c", "resources")
TERMS = ("spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")

FIELDS: dict[str, Any] = {
    "f:spec": {
        "f:containers": {
            'k:{"name":"c"}': {
                ".": {},
                "f:resources": {"f:limits": {f"f:{GPU}": {}}},
                "f:volumeMounts": {'k:{"mountPath":"/v"}': {".": {}, "f:name": {}}},
            }
        },
        "f:affinity": {"f:nodeAffinity": {f"f:{REQUIRED}": {}}},
        "f:nodeSelector": {},
        "f:securityContext": {},
        "f:tolerations": {},
        "f:volumes": {".": {}, 'k:{"name":"v"}': {".": {}, "f:emptyDir": {}}},
    }
}


def managed(operation: str, fields: Any = FIELDS) -> dict[str, Any]:
    entry = {"manager": "m", "operation": operation, "fieldsV1": fields}
    return {"metadata": {"managedFields": [entry]}}


@pytest.mark.parametrize(
    ("key", "wrote"),
    [
        ((*RESOURCES, "limits", GPU), True),
        ((*RESOURCES, "limits", "other"), False),
        ((*RESOURCES, "requests", GPU), False),
        (("spec", "containers", "other", "resources", "limits", GPU), False),
        (("spec", "containers", "c", "volumeMounts", "/v"), True),
        (("spec", "containers", "c", "env", "PATH"), False),
        (("spec", "tolerations"), True),
        (("spec", "volumes", "v"), True),
        (("spec", "volumes", "w"), False),
        (TERMS, True),
        (("spec", "affinity", "podAffinity", "x"), False),
        (("spec", "hostname"), False),
        (("spec", "securityContext", "sysctls"), False),
    ],
)
@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_fields_that_a_client_sets_are_its_own(
    operation: str, key: tuple[str, ...], *, wrote: bool
) -> None:
    authors = Authors(managed(operation))
    assert authors.wrote(ROOT, key) is wrote
    assert authors.declared(ROOT, key) is (wrote and operation == "Apply")


def test_labels_of_a_node_selector_that_was_not_applied_may_be_of_others() -> None:
    key = ("spec", "nodeSelector", "a")
    assert Authors(managed("Apply")).wrote(ROOT, key)
    assert not Authors(managed("Update")).wrote(ROOT, key)
    assert Authors(managed("Update")).wrote(ROOT, ("spec", "nodeSelector"))


def test_what_is_applied_is_said_by_the_manifest_alone() -> None:
    """What its client sent has the defaults of the API server in it, too."""
    sent = managed("Update")
    sent["metadata"]["annotations"] = {LAST_APPLIED: '{"spec":{"hostname":"h"}}'}
    assert Authors(sent).wrote(ROOT, ("spec", "hostname"))
    assert not Authors(sent).wrote(ROOT, (*RESOURCES, "limits", GPU))


def test_fields_of_a_template_are_deeper() -> None:
    authors = Authors(managed("Apply", {"f:spec": {"f:template": FIELDS}}))
    assert authors.wrote(TEMPLATE, (*RESOURCES, "limits", GPU))
    assert not authors.wrote(ROOT, (*RESOURCES, "limits", GPU))
    assert not authors.wrote(Path(("spec", "tasks", 0, "template")), (*RESOURCES, "limits", GPU))


def named(*names: str, template: Any = None) -> dict[str, Any]:
    """An object of a custom kind with a template in each item of a list."""
    items = [{"name": each, "port": 1, "template": template or {}} for each in names]
    return {"apiVersion": "example.com/v1", "spec": {"roles": items}}


ROLE = Path(("spec", "roles", 1, "template"))
RENAMED = (*RESOURCES, "limits", GPU)


@pytest.mark.parametrize(
    ("item", "names", "wrote"),
    [
        pytest.param('k:{"name":"b"}', "ab", True, id="its name is its key"),
        pytest.param('k:{"name":"b","port":1}', "ab", True, id="it has two keys"),
        pytest.param('k:{"name":"a"}', "ab", False, id="another item has it"),
        pytest.param('k:{"name":"b"}', "ba", False, id="items have moved"),
        pytest.param('k:{"name":"b"}', "", False, id="there is no item"),
        pytest.param('k:{"zone":"b"}', "ab", False, id="the item has not the key"),
        pytest.param("k:{", "ab", False, id="no one can read the key"),
        pytest.param("k:7", "ab", False, id="the key is no map"),
        pytest.param("f:1", "ab", False, id="the list has no keys"),
    ],
)
def test_items_of_a_list_have_keys(item: str, names: str, *, wrote: bool) -> None:
    fields = {"f:spec": {"f:roles": {".": {}, item: {"f:template": FIELDS}}}}
    authors = Authors({**managed("Apply", fields), **named(*names)})
    assert authors.declared(ROLE, RENAMED) is wrote


def test_a_word_that_is_taken_out_of_an_item_of_a_list_is_dropped() -> None:
    def applied(fields: Any) -> Authors:
        entry = {"f:spec": {"f:roles": {'k:{"name":"b"}': {"f:template": fields}}}}
        return Authors({**managed("Apply", entry), **named("a", "b")})

    assert applied({"f:spec": {"f:hostname": {}}}).dropped(ROLE, RENAMED, applied(FIELDS))
    assert not applied(FIELDS).dropped(ROLE, RENAMED, applied(FIELDS))


def test_what_kubectl_applied_is_declared() -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {GPU: 1}}}]}}
    manifest = json.dumps({"spec": {"template": template}})
    authors = Authors({"metadata": {"annotations": {LAST_APPLIED: manifest}}})
    assert authors.declared(TEMPLATE, (*RESOURCES, "limits", GPU))
    assert authors.wrote(TEMPLATE, (*RESOURCES, "limits", GPU))
    assert not authors.declared(TEMPLATE, (*RESOURCES, "limits", "other"))
    assert not authors.declared(Path(("spec", "x", 0)), (*RESOURCES, "limits", GPU))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000, 7, None, '{"spec":[]}'])
def test_what_nobody_can_read_declares_nothing(text: object) -> None:
    authors = Authors({"metadata": {"annotations": {LAST_APPLIED: text}}})
    assert not authors.declared(TEMPLATE, (*RESOURCES, "limits", GPU))


def test_a_manifest_over_the_budget_declares_nothing() -> None:
    containers = [{"name": "c", "resources": {"limits": {GPU: 1}}}]
    for more, declared in (0, True), (MOST_CONTAINERS, False):
        spec = {"containers": [*containers, *[{}] * more]}
        manifest = json.dumps({"spec": {"template": {"spec": spec}}})
        authors = Authors({"metadata": {"annotations": {LAST_APPLIED: manifest}}})
        assert authors.declared(TEMPLATE, (*RESOURCES, "limits", GPU)) is declared


@pytest.mark.parametrize(
    "entries", [None, 7, [7], [{}], [{"fieldsV1": 7}], [{"fieldsV1": {"f:spec": 7}}]]
)
def test_odd_managed_fields_name_nobody(entries: object) -> None:
    assert not Authors({"metadata": {"managedFields": entries}}).wrote(ROOT, ("spec", "hostname"))


def test_whether_a_selector_was_written_anew_is_the_same_for_each_word_of_it() -> None:
    selector: Any = {"f:spec": {"f:nodeSelector": {}}}
    now, before = Authors(managed("Apply", selector)), Authors(managed("Apply", selector))
    sent, then = ({"spec": {"nodeSelector": {"k": each}}} for each in "ab")
    for word in ("v", "w"):
        key = ("spec", "nodeSelector", word)
        assert now.took_out(key, before, PodFields(sent), PodFields(then))


def custom(below: Any, manager: str = "Apply", kind: str = "example.com/v1") -> dict[str, Any]:
    fields = {"f:spec": {"f:template": below}}
    return {"apiVersion": kind, **managed(manager, fields)}


@pytest.mark.parametrize(
    ("written", "hidden"),
    [
        ({"f:spec": {"f:containers": {}}}, True),
        ({"f:spec": {}}, True),
        ({}, True),
        ({"f:spec": {"f:containers": {'v:{"name":"c"}': {}}}}, True),
        ({"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:resources": {}}}}}, True),
        ({"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}, False),
        ({"f:spec": {"f:containers": {'k:{"name":"x"}': {".": {}}}}}, False),
        ({"f:spec": {"f:nodeSelector": {}}}, False),
        ({"f:metadata": {}}, False),
    ],
    ids=[
        "an atomic list of containers",
        "an atomic spec",
        "an atomic template",
        "containers as a set",
        "atomic resources",
        "a container of which each field is listed",
        "a list with another container",
        "other fields of the spec",
        "other fields of the template",
    ],
)
@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_what_an_atomic_field_of_a_custom_kind_holds_may_be_its_owners(
    operation: str, written: Any, *, hidden: bool
) -> None:
    key = (*RESOURCES, "limits", GPU)
    assert Authors(custom(written, operation)).may_have_written(TEMPLATE, key) is hidden
    for kind in ("apps/v1", "v1"):  # here it was sent empty
        assert not Authors(custom(written, operation, kind)).may_have_written(TEMPLATE, key)


def test_a_manifest_that_kubectl_applied_shows_what_an_atomic_field_holds() -> None:
    sent = custom({}, "Update")
    sent["metadata"]["annotations"] = {LAST_APPLIED: '{"spec":{"hostname":"h"}}'}
    assert not Authors(sent).may_have_written(TEMPLATE, (*RESOURCES, "limits", GPU))


@pytest.mark.parametrize(
    "tasks", [{}, {"i:0": {}}, {'k:{"name":"a"}': {"f:template": {}}}], ids=["atomic", "i", "k"]
)
def test_a_template_in_a_list_may_be_of_its_author(tasks: Any) -> None:
    sent = {"apiVersion": "example.com/v1", **managed("Apply", {"f:spec": {"f:tasks": tasks}})}
    at, key = Path(("spec", "tasks", 0, "template")), (*RESOURCES, "limits", GPU)
    assert Authors(sent).may_have_written(at, key)
    assert not Authors({"apiVersion": "example.com/v1"}).may_have_written(at, key)


def test_a_field_that_another_manager_wrote_is_hidden_from_nobody() -> None:
    amount: Any = {"f:resources": {"f:limits": {f"f:{GPU}": {".": {}}}}}
    whole = {"f:spec": {"f:containers": {'k:{"name":"c"}': amount}}}
    sent, other = custom({"f:metadata": {}}), custom(whole, "Update")
    sent["metadata"]["managedFields"] += other["metadata"]["managedFields"]
    assert not Authors(sent).may_have_written(TEMPLATE, (*RESOURCES, "limits", GPU))
