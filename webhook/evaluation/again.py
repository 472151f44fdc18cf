"""Updates of pods and templates whose manifests still have the legacy words.

When a client applies a manifest again, it restores the fields that a repair removed, and it keeps
the fields that the repair wrote. So an update is taken apart first: fields of the repair are
removed, and the author's words are translated again. If the result has the same meaning as the
stored spec, the answer is the stored spec.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.draft import Draft, copied
from webhook.core.edits import Edit, place_of
from webhook.core.errors import EditError
from webhook.core.findings import Verdict
from webhook.core.limit_ranger import Origins
from webhook.core.repaired import is_noted
from webhook.core.rule import Context, Trait
from webhook.evaluation.authors import Authors
from webhook.evaluation.pod_fields import Change, Key, PodFields, changes
from webhook.evaluation.still_right import is_still_right
from webhook.evaluation.stored import agrees, as_it_was
from webhook.evaluation.update_fields import (
    TOLERATIONS,
    VOLUMES,
    Update,
    has_words,
    is_said,
    made_anew,
    notes,
    placement,
    unit_of,
    unwritten,
    without_mounted,
)
from webhook.kube.pod import Pod
from webhook.kube.pointer import ROOT, Path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.settings import Settings
    from webhook.evaluation.evaluate import Asking

    Raw = dict[str, Any]


def pod(obj: Raw, old: Raw, rules: Asking, cx: Context, _at: Path = ROOT) -> Verdict:
    """Translate the legacy words in this update of a pod, and nothing else.

    Almost no field of a pod may change. If the words have the meaning of the stored spec, the
    stored spec is sent; otherwise the API server gets their present meaning, and rejects the
    update. A stored pod with an amount under a legacy name was created while the webhook was away,
    and stays as it is. An amount of 0 does not show that: LimitRanger and its repair leave it
    (rules/legacy_resource.py).
    """
    stored, cx = Pod(old), replace(cx, is_stored=True)
    if stored.asks_under_legacy_name(cx.settings):
        return Verdict((), obj, [])
    as_then, then, draft = as_it_was(cx, stored), PodFields(old), Draft(obj)
    at_work = _at_work(rules, old, as_then)
    sent, trial = PodFields(obj).kept(), copied(obj)
    made = _made(draft, sent, at_work, cx, cx)
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
            _apply(each, sent.edits_to(dict.fromkeys(repaired)))
        made = _made(draft, PodFields(obj).kept(), at_work, cx, cx)
    rules.of(trial, as_then)
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
    if _is_the_same_manifest(old, sent, now, then):
        _restore(
            draft, now, then, [key for key in {**now.values, **then.values} if key[0] == "spec"]
        )
    elif agrees(Pod(trial), stored, keys, (tried, then), as_then):
        _restore(draft, now, then, [*keys, *placement(now), *placement(then)])
    return replace(made.verdict, patch=draft.patch())


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
    return bool(came) and all(is_said(key, *change, said) for key, change in came.items())


class _Made(NamedTuple):
    """The results of the rules on a template."""

    author: Mapping[Key, Any]  # its fields before
    trial: Raw  # a copy of it before; empty if the stored template shows no other cluster
    verdict: Verdict


def template(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    """Repair the template as its author sends it now.

    Returns what this repair changed, or None if nothing was to repair. Where the author sends the
    same words as last time, the stored template stays: as long as it is right, or always if it may
    not change. The rules run on the sent template; if repairs wrote parts of it, these are removed
    and the rules run again.
    """
    if update.old is not None and not update.may_change:
        return _fixed(draft, update, rules, cx)
    return _repaired(draft, update, rules, cx)


def _fixed(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    """Send the stored fields where the author sends the same words as last time, or nothing new.

    Changes of settings, inventory and rules do not matter: the API server would reject the update,
    even if it only changed a label of the object. Only new words are repaired; in a suspended Job
    the node selection may change (KEP-2926).
    """
    sent, then = PodFields(draft.object, update.at).kept(), update.stored()
    differ = changes(then.values, sent.values)
    if not differ:
        return Verdict((), draft.object, []), None
    said = update.before.in_manifest(update.at)
    new = {
        unit_of(key)
        for key, change in differ.items()
        if update.noted.get(key) != change[::-1] and not is_said(key, *change, said)
    }
    verdict, changed = _repaired(draft, update, rules, cx)
    if not new:
        draft.undo()
    now = PodFields(draft.object, update.at)
    _restore(draft, now, then, [k for k in {**now.values, **then.values} if unit_of(k) not in new])
    if changed is not None:
        changed = {key: change for key, change in changed.items() if unit_of(key) in new}
        changed |= {key: each for key, each in update.noted.items() if unit_of(key) not in new}
    if not new:  # the same words again, in an update that may have removed the record
        changed = dict(update.noted) or None
    return replace(verdict, patch=draft.patch()), changed


def _repaired(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    update = update.without_forged(cx.settings)
    obj, at, sent = draft.object, update.at, PodFields(draft.object, update.at).kept()
    if update.old is None and not update.noted:  # no repair wrote any of it
        verdict = rules.of(obj, cx, at, draft)
        verdict = replace(verdict, patch=draft.patch())
        return verdict, notes(sent.values, PodFields(obj, at).values) or None
    beside = {key: change for key, change in update.noted.items() if change[0] == change[1]}
    if beside:
        noted = {key: change for key, change in update.noted.items() if key not in beside}
        update = replace(update, noted=noted)
    then = update.stored()
    back = update.put_back(sent, then, cx.settings)
    if back:
        _apply(draft, back)
        sent = PodFields(obj, at).kept()
    if has_words(Pod(obj, at), sent, update.noted, cx.settings):
        cx = replace(cx, was_stuck=update.was_stuck(sent, cx.settings))
    loose = update.of_settings(sent)
    cx = replace(cx, was_added={key: sent.values[key] for key in loose}) if loose else cx
    as_then = cx if update.old is None else as_it_was(cx, Pod(update.old, at))
    made = _made(draft, sent, rules, cx, as_then)
    now = PodFields(obj, at)
    touched = {unit_of(key) for key in changes(sent.values, now.values)}
    touched |= update.worded(sent, then)
    if not touched and not loose:
        return replace(made.verdict, patch=draft.patch()), {} if update.is_over(sent) else None
    repaired = {**update.fields_of_repairs(sent, then, touched, cx.settings), **loose}
    repaired = without_mounted(repaired, sent, read_only=not Pod(obj, at).is_in_scope(cx.settings))
    as_sent: Raw = {}
    if repaired:
        draft.undo()
        _apply(draft, back)
        as_sent = copied(value_at(obj, at)) if loose or VOLUMES in touched else {}
        _apply(draft, sent.edits_to(repaired))
        made = _made(draft, PodFields(obj, at).kept(), rules, cx, as_then)
        if as_sent:
            _apply(draft, PodFields(obj, at).ordered_as(PodFields(as_sent)))
        now = PodFields(obj, at)
    if touched and update.old is not None:
        noted = {key: change for key, change in update.noted.items() if unit_of(key) in touched}
        changed = changes(made.author, now.values)
        keys = [key for key in {**noted, **changed, **repaired} if key not in loose]
        of_these = replace(update, noted=noted)
        now = _kept(draft, of_these, keys, made, (now, then), (cx, as_then), rules)
        # Without a watcher all is known at once.
        watched = cx.inventory is not None and cx.inventory.watched
        if update.may_change and watched and VOLUMES not in map(unit_of, loose):
            now, made, left = _without_news(draft, update, made, (now, then), rules, cx.settings)
            touched -= left
    # A volume that another mount uses stays, and is no more the author's than before.
    stays = {key for key in loose.keys() - repaired.keys() if key in now.values}
    kept = {
        key: change
        for key, change in {**update.noted, **beside}.items()
        if key in stays or (unit_of(key) not in touched and key not in loose)
    }
    # Removed fields may have been added again.
    patch = draft.patch() if value_at(obj, at) != as_sent else []
    return replace(made.verdict, patch=patch), {**kept, **notes(made.author, now.values)}


def _made(draft: Draft, sent: PodFields, rules: Asking, cx: Context, as_then: Context) -> _Made:
    """The results of the rules on the template with these fields."""
    obj, at = draft.object, sent.at
    trial = copied(value_at(obj, at)) if as_then is not cx else {}
    verdict = rules.of(obj, cx, at, draft)
    return _Made(sent.values, trial, verdict)


def _kept(  # noqa: PLR0913, PLR0917  # the results, their input, and the options
    draft: Draft,
    update: Update,
    keys: list[Key],
    made: _Made,
    versions: tuple[PodFields, PodFields],
    contexts: tuple[Context, Context],
    rules: Asking,
) -> PodFields:
    """Restore the stored fields if the author sent the same words, and if they are still right.

    Returns the fields of the resulting template.
    """
    obj, at, noted, (now, then) = draft.object, update.at, update.noted, versions
    (cx, as_then), stored = contexts, Pod(update.old or {}, at)
    if update.may_change:
        anew = made_anew(keys, cx.settings)
        keys = [key for key in keys if key not in anew]
    all_keys = keys if noted else [*keys, *placement(now), *placement(then)]
    absent = [key for key in all_keys if key in then.values and key not in now.values]
    moved = any(
        # words that came while the webhook was away, and words that the author removes
        (noted and made.author.get(key) is not None)
        or update.authors.dropped(at, key, update.before)
        for key in absent
    )
    if update.may_change and (moved or not is_still_right(Pod(obj, at), stored, cx)):
        return now
    if noted:
        same = _are_the_words_of(then, noted, made.author, keys)
    else:
        tried, its = Pod(obj, at), now
        if made.trial:
            rules.of(made.trial, as_then)
            tried, its = Pod(made.trial), PodFields(made.trial)
        same = agrees(tried, stored, keys, (its, then), as_then)
    return _restore(draft, now, then, all_keys) if same else now


def _without_news(  # noqa: PLR0913, PLR0917  # as above
    draft: Draft,
    update: Update,
    made: _Made,
    versions: tuple[PodFields, PodFields],
    rules: Asking,
    settings: Settings,
) -> tuple[PodFields, _Made, set[Key]]:
    """Restore the stored template if only the settings would add to it, for the first time.

    For example, its namespace has become known. Otherwise it would be rolled out although its
    author changed nothing; its pods get these additions when they are created. So the findings on
    them are left out. Also returns the units that stay: their records are still valid.
    """
    now, then = versions
    news = changes(then.values, now.values).keys()
    is_added = not any(key in then.values and key[3:4] != ("env",) for key in news)
    if not news or not is_added or not news <= made_anew(list(news), settings):
        return now, made, set()
    trial = copied(value_at(draft.object, update.at))
    _restore(Draft(trial), PodFields(trial), then, news)
    is_same = all(
        (word := made.author.get(key)) == (value := then.values.get(key))
        or update.noted.get(key) == (word, value)
        for key in news
    )
    if not is_same or trial != value_at(update.old, update.at):
        return now, made, set()
    units = {unit_of(key) for key in news}
    asks = {rule.CODE for rule in rules.rules if Trait.CLUSTER in rule.FACTS.traits}
    idle = [
        each
        for each in made.verdict.findings
        if each.code in asks
        if any(
            unit_of(tuple(map(str, place_of(edit)[len(update.at) :]))) in units
            for edit in each.edits
        )
    ]
    found = tuple(each for each in made.verdict.findings if each not in idle)
    made = made._replace(verdict=replace(made.verdict, findings=found))
    return _restore(draft, now, then, news), made, units


def _apply(draft: Draft, edits: Iterable[Edit]) -> None:
    """Make all of these edits, or none in a pod whose fields have unexpected types."""
    with suppress(EditError):
        draft.apply(edits)


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
    _apply(draft, pod.edits_to({k: v for k, v in fields.items() if k not in pod.values}))


def _at_work(rules: Asking, old: Raw, cx: Context) -> Asking:
    """The rules on legacy words, without those whose legacy words are in the stored pod."""
    legacy = rules.only(lambda rule: Trait.CLUSTER not in rule.FACTS.traits)
    wide = replace(cx, settings=replace(cx.settings, scope="all-legacy"))
    found = legacy.of(copied(old), wide).findings
    idle = {each.code for each in found if each.action == "repaired"}
    return legacy.only(lambda rule: rule.CODE not in idle)


def _are_the_words_of(
    then: PodFields, noted: Mapping[Key, Change], author: Mapping[Key, Any], keys: Iterable[Key]
) -> bool:
    """Whether the author sends at these fields the words from before the last repair.

    The result of that repair must also be stored: it may have been undone while the webhook was
    away.
    """
    for key in keys:
        value = then.values.get(key)
        before, after = noted.get(key, (value, value))
        if value != after or author.get(key) != before:
            return False
    return True


def _restore(draft: Draft, now: PodFields, then: PodFields, keys: Iterable[Key]) -> PodFields:
    """Restore the stored values of these fields, and the order of lists.

    Returns the fields after it.
    """
    wanted = {key: then.values.get(key) for key in keys}
    _apply(draft, now.edits_to(wanted))
    restored = PodFields(draft.object, now.at)
    _apply(draft, restored.ordered_as(then))
    return restored
