"""Updates of pods whose manifests still have the legacy words: pod in, verdict out.

The same for templates is in template_updates.py, which says how an update is taken apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from webhook.capacity import node_selection
from webhook.core.draft import Draft, copied
from webhook.core.findings import Verdict
from webhook.core.limit_ranger import Origins
from webhook.core.repaired_annotation import is_noted
from webhook.core.rule import TRANSLATES_LABELS, Context, Trait
from webhook.evaluation.authors import Authors
from webhook.evaluation.field_values import is_as_applied
from webhook.evaluation.pod_fields import TOLERATIONS, Key, PodFields, apply, changes, restore
from webhook.evaluation.stored_pod import agrees, as_it_was
from webhook.evaluation.template_updates import made_of
from webhook.evaluation.update_fields import placement, unit_of, unwritten
from webhook.kube.pod import Pod, Raw
from webhook.kube.pointer import ROOT, Path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.core.settings import Settings
    from webhook.evaluation.evaluate import Asking


def pod(obj: Raw, old: Raw, rules: Asking, cx: Context, _at: Path = ROOT) -> Verdict:
    """Translate the legacy words in this update of a pod, and nothing else.

    Almost no field of a pod may change. If the words have the meaning of the stored spec, the
    stored spec is sent; otherwise the API server gets their present meaning, and rejects the
    update. A stored pod with an amount under a legacy name was created while the webhook was away,
    and stays as it is. An amount of 0 does not show that: LimitRanger and its repair leave it
    (rules/legacy_resource.py). A pod with scheduling gates may get further node selection
    (KEP-3838): if it was repaired, a model label that comes alone is translated.
    """
    stored, cx = Pod(old), replace(cx, is_stored=True)
    if stored.asks_under_legacy_name(cx.settings):
        return Verdict(())
    if is_noted(old) and stored.spec.get("schedulingGates") and _brings_model(obj, stored, cx):
        narrowed = _narrowed(obj, stored, rules, cx)
        if narrowed is not None:
            return narrowed
    draft = Draft(obj)
    if is_noted(old) and not Pod(obj).asks_under_legacy_name(cx.settings):
        # Words that come without the legacy amount may mean what they meant beside it.
        verdict, is_stored = _translated(draft, old, rules, replace(cx, was_stuck=True))
        if is_stored:
            return verdict
        draft.undo()
    return _translated(draft, old, rules, cx)[0]


def _translated(draft: Draft, old: Raw, rules: Asking, cx: Context) -> tuple[Verdict, bool]:
    """The update with its words translated; and whether they mean the stored spec: it is sent."""
    obj, stored = draft.object, Pod(old)
    as_then, then = as_it_was(cx, stored), PodFields(old)
    at_work = _at_work(rules, old, as_then)
    sent, trial = PodFields(obj).kept(), copied(obj)
    made = made_of(draft, sent, at_work, cx, cx)
    touched = {unit_of(key) for key in changes(made.author, PodFields(obj).values)}
    # A legacy 0 is not translated, but instead of the amount of a repair it counts.
    came = changes(then.values, sent.values).items()
    legacy = cx.settings.legacy_resources
    touched |= {unit_of(key) for key, (_, now) in came if key[-1] in legacy and now is not None}
    found = unwritten(sent, then, touched, Authors(obj), cx.settings)
    repaired = _without_defaults(found, stored, cx.settings)
    if repaired:
        draft.undo()
        for each in (draft, Draft(trial)):
            apply(each, sent.edits_to(dict.fromkeys(repaired)))
        made = made_of(draft, PodFields(obj).kept(), at_work, cx, cx)
    rules.of(Draft(trial), as_then)
    if repaired:
        _keep_fields(Draft(trial), repaired)
        _keep_fields(draft, repaired)
    now, tried = PodFields(obj), PodFields(trial)
    changed = {
        **changes(made.author, now.values),
        **changes(made.author, tried.values),
        **repaired,
    }
    zeros = (key for key in now.values if key[-1] in cx.settings.legacy_resources)
    keys = [key for key in (*changed, *zeros, TOLERATIONS) if key[0] == "spec"]
    is_stored = True
    if _is_the_same_manifest(old, sent, now, then):
        restore(
            draft, now, then, [key for key in {**now.values, **then.values} if key[0] == "spec"]
        )
    elif agrees(Pod(trial), stored, keys, (tried, then), as_then):
        restore(draft, now, then, [*keys, *placement(now, then)])
    else:
        is_stored = False
    return replace(made.verdict, patch=draft.patch()), is_stored


def _brings_model(obj: Raw, stored: Pod, cx: Context) -> bool:
    label = cx.settings.models.legacy_label
    is_new = not stored.names_legacy_label(label) and Pod(obj).names_legacy_label(label)
    return is_new and not Pod(obj).asks_under_legacy_name(cx.settings)


def _narrowed(obj: Raw, stored: Pod, rules: Asking, cx: Context) -> Verdict | None:
    """The update with the model translated; None if the API server would refuse the result.

    It accepts further requirements in the stored terms, but no other terms.
    """
    draft = Draft(obj)
    models = rules.only(lambda rule: rule.CODE == TRANSLATES_LABELS)
    verdict = models.of(draft, replace(cx, was_stuck=True))
    before, after = node_selection.terms(stored), node_selection.terms(Pod(obj)) or []
    may_be = before is None or len(before) == len(after)
    if may_be and all(map(_has_all_of, after, before or ())) and draft.patch():
        return replace(verdict, patch=draft.patch())
    draft.undo()
    return None


def _has_all_of(term: Raw, before: Raw) -> bool:
    """Whether the term has all requirements that it had before."""
    return all(
        each in (term.get(name) or [])
        for name in ("matchExpressions", "matchFields")
        for each in before.get(name) or []
    )


def _is_the_same_manifest(old: Raw, sent: PodFields, now: PodFields, then: PodFields) -> bool:
    """Whether all words that come back to a repaired pod were in the manifest that kubectl applied.

    Then the pod was created from them, whatever the present settings make of them. An annotation is
    such a word if it is translated now.
    """
    if not is_noted(old):
        return False
    came = {
        key: each for key, each in changes(then.values, sent.values).items() if key[0] == "spec"
    }
    gone = changes(now.values, sent.values).items()
    came |= {key: each for key, each in gone if key[0] == "metadata"}
    said = Authors(old).in_manifest(sent.at)
    return bool(came) and all(is_as_applied(key, *change, said) for key, change in came.items())


def _without_defaults(repaired: dict[Key, Any], stored: Pod, settings: Settings) -> dict[Key, Any]:
    """Fields of repairs without amounts that LimitRanger set: the amount of an author wins."""
    added = {
        ("spec", *container, "resources", *place)
        for container, places in Origins.of(stored).claimed.items()
        for place in places
        if place[1] not in settings.legacy_resources
    }
    return {key: value for key, value in repaired.items() if key not in added}


def _keep_fields(draft: Draft, repaired: Mapping[Key, Any]) -> None:
    """Put back fields whose words are no longer there: the API server sets some by itself."""
    pod = PodFields(draft.object)
    fields = {k: value for k, value in repaired.items() if unit_of(k) == ("fields",)}
    apply(draft, pod.edits_to({k: v for k, v in fields.items() if k not in pod.values}))


def _at_work(rules: Asking, old: Raw, cx: Context) -> Asking:
    """The rules on legacy words, without those whose legacy words are in the stored pod."""
    legacy = rules.only(lambda rule: Trait.CLUSTER not in rule.FACTS.traits)
    wide = replace(cx, settings=replace(cx.settings, scope="all-legacy"))
    found = legacy.of(Draft(copied(old)), wide).findings
    idle = {each.code for each in found if each.action == "repaired"}
    return legacy.only(lambda rule: rule.CODE not in idle)
