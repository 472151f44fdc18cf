"""Nobody gets fewer GPUs than were asked for, whatever a LimitRange adds and whoever says so."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.engine import run
from tests.rules.pods import GPU, LEGACY, container, pod
from webhook.core.limit_ranger import ANNOTATION
from webhook.core.rule import Context
from webhook.kube import quantity
from webhook.rules import RULES

SLICE = "nvidia.com/mig-1g.5gb"
SECTIONS = ("limits", "requests")
AMOUNTS = st.sampled_from(["0", "1", "2", "3", "500m", "1500m", "4"])
WHOLE = st.sampled_from(["0", "1", "2", "4"])


@st.composite
def authors(draw: st.DrawFn) -> dict[str, dict[str, str]]:
    """The limits and requests that an author writes, as the API server takes them."""
    old = st.fixed_dictionaries({}, optional={LEGACY: AMOUNTS})
    limits = {**draw(old), **draw(st.fixed_dictionaries({}, optional={GPU: WHOLE}))}
    requests = draw(old)
    return {"limits": limits, "requests": {**limits, **requests}}


ranges = st.dictionaries(st.sampled_from([LEGACY, GPU, SLICE, "cpu"]), WHOLE)


def admitted(obj: Any, defaults: dict[str, str]) -> Any:
    """What LimitRanger makes of the pod (1.36)."""
    resources = obj["spec"]["containers"][0]["resources"]
    said = []
    for section, word in (("requests", "request"), ("limits", "limit")):
        there = resources.setdefault(section, {})
        added = sorted(set(defaults) - set(there))
        there.update({name: defaults[name] for name in added})
        said += [f"{', '.join(added)} {word} for container cuda"] if added else []
    if said:
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        obj["metadata"]["annotations"] = {ANNOTATION: text}
    return obj


def managed(obj: Any) -> Any:
    """The pod with the managedFields that the API server keeps of a request."""
    resources = obj["spec"]["containers"][0]["resources"]
    fields: Any = {f"f:{s}": {f"f:{name}": {} for name in resources[s]} for s in resources}
    of_container = {'k:{"name":"cuda"}': {"f:resources": fields}}
    obj["metadata"]["managedFields"] = [{"fieldsV1": {"f:spec": {"f:containers": of_container}}}]
    return obj


def value(resources: Any, name: str) -> Any:
    """The larger one of limit and request."""
    amounts = [quantity.parse(resources.get(section, {}).get(name)) for section in SECTIONS]
    return max(each for each in amounts if each is not None)


def sent(author: dict[str, dict[str, str]]) -> Any:
    return pod(container(copy.deepcopy(author["limits"]), copy.deepcopy(author["requests"])))


@given(authors(), ranges, st.booleans())
def test_the_author_of_a_legacy_pod_gets_what_was_asked_for(
    author: dict[str, dict[str, str]],
    defaults: dict[str, str],
    kept: bool,  # noqa: FBT001
) -> None:
    asked = max(value(author, LEGACY), value(author, GPU))
    of_legacy = value(author, LEGACY) > value(author, GPU)
    obj = admitted(managed(sent(author)) if kept else sent(author), defaults)
    run(RULES, obj, Context())
    admitted(obj, defaults)
    run(RULES, obj, Context())  # the second round
    resources = obj["spec"]["containers"][0]["resources"]
    after = copy.deepcopy(obj)
    assert run(RULES, after, Context()).patch == []
    assert value(resources, LEGACY) == 0
    got, wanted = value(resources, GPU), quantity.whole(asked) if of_legacy else asked
    if asked > 0:
        # LimitRanger adds anew what was renamed: where the author sent both names nobody can tell.
        both = LEGACY in author["requests"] and GPU in author["requests"]
        assert got == wanted or (both and kept and got == value({"limits": defaults}, LEGACY))
        assert got >= wanted
        assert resources["limits"][GPU] == resources["requests"][GPU]
    elif SLICE not in defaults:
        wrote = {LEGACY, GPU} & {*author["limits"], *author["requests"]}
        added = any(quantity.parse(defaults.get(name)) for name in (LEGACY, GPU))
        assert (got > 0) is (added and not wrote), "who wrote 0 gets 0"


@given(authors(), st.text() | st.sampled_from([LEGACY, GPU]))
def test_a_forged_annotation_takes_no_gpu_away(
    author: dict[str, dict[str, str]], forged: str
) -> None:
    text = f"LimitRanger plugin set: {forged} request for container cuda; {forged} limit for "
    obj = managed(sent(author))
    obj["metadata"]["annotations"] = {ANNOTATION: f"{text}container cuda"}
    run(RULES, obj, Context())
    asked = max(value(author, LEGACY), value(author, GPU))
    assert value(obj["spec"]["containers"][0]["resources"], GPU) >= asked
