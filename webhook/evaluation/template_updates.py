"""Updates of templates whose manifests still have the legacy words; of pods in pod_updates.py.

When a client applies a manifest again, it restores the fields that a repair removed, and it keeps
the fields that the repair wrote. So an update is taken apart first: fields of the repair are
removed, and the author's words are translated again. If the result has the same meaning as the
stored spec, the answer is the stored spec.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.draft import Draft, copied
from webhook.core.edits import place_of
from webhook.core.findings import Verdict
from webhook.core.legacy_names import BETA_NODE_LABELS
from webhook.core.rule import Context, Trait
from webhook.evaluation.empty_fields import left_empty
from webhook.evaluation.field_values import is_as_applied
from webhook.evaluation.kept_tolerations import kept_tolerations, sent_tolerations
from webhook.evaluation.migrated_fields import unmigrated
from webhook.evaluation.pod_fields import (
    TOLERATIONS,
    Change,
    Key,
    PodFields,
    apply,
    changes,
    restore,
)
from webhook.evaluation.stored_pod import agrees, as_it_was
from webhook.evaluation.stored_template import fits_no_node, has_its_nodes, is_still_right
from webhook.evaluation.update_fields import (
    VOLUMES,
    Update,
    has_words,
    independent_of_nodes,
    notes,
    placement,
    unit_of,
    without_mounted,
)
from webhook.evaluation.workloads import is_suspended
from webhook.kube.pod import Pod, Raw, as_map
from webhook.kube.pointer import Path, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.settings import Settings
    from webhook.evaluation.evaluate import Asking

    Result = tuple[Verdict, dict[Key, Change] | None]


class _Made(NamedTuple):
    """The results of the rules on a template."""

    author: Mapping[Key, Any]  # its fields before
    trial: Raw  # a copy of it before; empty if the stored template shows no other cluster
    verdict: Verdict


def template(draft: Draft, update: Update, rules: Asking, cx: Context) -> Result:
    """Repair the template as its author sends it now.

    Returns what this repair changed, or None if nothing was to repair. Where the author sends the
    same words as last time, the stored template stays: as long as it is right, or always if it may
    not change.
    """
    fields = PodFields(draft.object, update.at).values
    sent, keys = sent_tolerations(update, fields), list(fields)
    repaired = _repaired if update.old is None or update.may_change else _fixed
    verdict, changed = repaired(draft, update, rules, cx)
    if kept := kept_tolerations(update, sent, Pod(draft.object, update.at), cx.settings):
        now = PodFields(draft.object, update.at)
        apply(draft, now.edits_to({TOLERATIONS: kept[TOLERATIONS][1]}))
        changed = {**(update.noted if changed is None else changed), **kept}
        changed = None if changed == update.noted else changed
    left = left_empty(update, keys, draft.object) if keys else []
    apply(draft, left)
    return replace(verdict, patch=draft.patch()) if kept or left else verdict, changed


def _fixed(draft: Draft, update: Update, rules: Asking, cx: Context) -> Result:
    """Send the stored fields where the author sends the same words as last time, or nothing new.

    Changes of settings, inventory and rules do not matter: the API server would reject the update,
    even if it only changed a label of the object. Only new words are repaired; in a suspended Job
    the node selection may change (KEP-2926).
    """
    sent, then = PodFields(draft.object, update.at).kept(), update.stored()
    differ = changes(then.values, sent.values)
    rest = unmigrated(update, sent, set(map(unit_of, differ)), cx.settings)
    said = update.before.in_manifest(update.at)
    new = {
        unit_of(key)
        for key, change in differ.items()
        if update.noted.get(key) != change[::-1] and not is_as_applied(key, *change, said)
    }
    if is_suspended(as_map(as_map(update.old).get("spec"))):
        new |= update.lost_nodes(sent, then)
    if not differ and not new:
        return Verdict(()), None if rest == update.noted else rest
    verdict, changed = _repaired(draft, update, rules, cx)
    if not new:
        draft.undo()
    now = PodFields(draft.object, update.at)
    restore(draft, now, then, [k for k in {**now.values, **then.values} if unit_of(k) not in new])
    if changed is not None:
        changed = {key: change for key, change in changed.items() if unit_of(key) in new}
        changed |= {key: each for key, each in rest.items() if unit_of(key) not in new}
    if not new:  # the same words again, in an update that may have removed the record
        changed = rest if update.noted else None
    return replace(verdict, patch=draft.patch()), changed


def _repaired(draft: Draft, update: Update, rules: Asking, cx: Context) -> Result:
    update = update.without_forged(cx.settings)
    obj, at, sent = draft.object, update.at, PodFields(draft.object, update.at).kept()
    if update.old is None and not update.noted:  # no repair wrote any of it
        verdict = replace(rules.of(draft, cx, at), patch=draft.patch())
        then = PodFields(obj, at) if verdict.patch else sent
        return verdict, notes(sent.values, then.values, cx.settings) or None
    recorded, then, moving = update, update.stored(), update.moving(obj)
    update = recorded.only_changed()
    back = update.put_back(sent, then, cx.settings)
    if back:
        apply(draft, back)
        sent = PodFields(obj, at).kept()
    loose = update.of_settings(sent)
    cx, as_then = _contexts(Pod(obj, at), update, sent, loose, cx)
    made = made_of(draft, sent, rules, cx, as_then)
    now = PodFields(obj, at)
    touched = {unit_of(key) for key in changes(sent.values, now.values)}
    worded = update.worded(sent, then)
    left = (touched - worded) & recorded.left(sent, then, now)
    if stay := sorted(_staying(draft, moving, left, sent, (now, then), cx) - loose.keys()):
        now, touched = _restored(draft, at, then, stay), touched - left
    touched |= worded
    rest = unmigrated(recorded, sent, touched, cx.settings)
    update = replace(recorded, noted=rest).only_changed()
    if later := _later(update, sent, cx):
        return _as_later(draft, replace(recorded, noted=rest), rules, later)
    if not touched and not loose:
        verdict = replace(made.verdict, patch=draft.patch())
        return verdict, None if rest == recorded.noted else rest
    brought = touched - left
    repaired = without_mounted(
        {**update.fields_of_repairs(sent, then, brought, cx.settings), **loose},
        sent,
        read_only=not Pod(obj, at).is_in_scope(cx.settings),
    )
    as_sent: Raw = {}
    if repaired:
        draft.undo()
        apply(draft, back)
        as_sent = copied(value_at(obj, at)) if loose or VOLUMES in touched else {}
        apply(draft, sent.edits_to(repaired))
        made = made_of(draft, PodFields(obj, at).kept(), rules, cx, as_then)
        if as_sent:
            apply(draft, PodFields(obj, at).ordered_as(PodFields(as_sent)))
        now = _restored(draft, at, then, stay)
    if brought and update.old is not None:
        of_these = replace(update, noted={k: c for k, c in rest.items() if unit_of(k) in brought})
        changed = {**of_these.only_changed().noted, **changes(made.author, now.values), **repaired}
        keys = [key for key in changed if key not in loose]
        now = _kept(draft, of_these, keys, made, (now, then), (cx, as_then), rules)
        if update.may_change and VOLUMES not in map(unit_of, loose):
            now, made, idle = _without_news(draft, update, made, (now, then), rules, cx)
            brought -= idle
    # A volume that another mount uses stays, and is no more the author's than before.
    stays = {key for key in loose.keys() - repaired.keys() if key in now.values}
    kept = {
        key: change
        for key, change in rest.items()
        if key in stays or (unit_of(key) not in brought and key not in loose)
    }
    # Removed fields may have been added again.
    patch = draft.patch() if value_at(obj, at) != as_sent else []
    kept |= recorded.composed(notes(made.author, now.values, cx.settings), sent, brought, left)
    return replace(made.verdict, patch=patch), kept


def _later(update: Update, sent: PodFields, cx: Context) -> Context | None:
    """The context of the next update, which has only the words in its record that are left."""
    if not (cx.was_stuck or cx.was_chosen):
        return None
    later = update.as_it_was(sent, cx)
    is_same = (later.was_stuck, later.was_chosen) == (cx.was_stuck, cx.was_chosen)
    return None if is_same else later


def _as_later(draft: Draft, update: Update, rules: Asking, cx: Context) -> Result:
    """Repair again as the next update does."""
    draft.undo()
    verdict, made = _repaired(draft, update, rules, replace(cx, was_added={}))
    return verdict, dict(update.noted) if made is None else made


def _restored(draft: Draft, at: Path, then: PodFields, stay: list[Key]) -> PodFields:
    """The fields of the template, with these as they are stored."""
    now = PodFields(draft.object, at)
    return restore(draft, now, then, stay) if stay else now


def _contexts(
    pod: Pod, update: Update, sent: PodFields, loose: Mapping[Key, Any], cx: Context
) -> tuple[Context, Context]:
    """The contexts of the template that is sent, now and as it was stored."""
    if has_words(pod, sent, update.noted, cx.settings):
        cx = update.as_it_was(sent, cx)
    if loose:
        cx = replace(cx, was_added={key: sent.values[key] for key in loose})
    return cx, cx if update.old is None else as_it_was(cx, Pod(update.old, update.at))


def _staying(  # noqa: PLR0913, PLR0917  # as below
    draft: Draft,
    update: Update,
    left: set[Key],
    sent: PodFields,
    versions: tuple[PodFields, PodFields],
    cx: Context,
) -> set[Key]:
    """The stored fields of these units, which the update left, if they are still right."""
    if not left or update.old is None:
        return set()
    made, stored = Pod(draft.object, update.at), Pod(update.old, update.at)
    if update.may_change and (
        not has_its_nodes(made, stored, cx)
        or (
            fits_no_node(made, stored, cx)
            and _is_rolled_out(draft, update, sent.values, versions[1])
        )
    ):
        return set()
    placed = placement(*versions)
    return set(placed) - independent_of_nodes(placed, cx.settings)


def _is_rolled_out(
    draft: Draft, update: Update, author: Mapping[Key, Any], then: PodFields
) -> bool:
    """Whether the author changes the template, so that its pods are replaced in any case.

    Not if only words of before the last repair come back.
    """
    for key in author.keys() | then.values.keys():
        word = update.noted[key][0] if key in update.noted else then.values.get(key)
        if author.get(key) not in (word, then.values.get(key)):
            return True
    trial = copied(value_at(draft.object, update.at))
    fields = PodFields(trial)
    restore(Draft(trial), fields, then, {**fields.values, **then.values})
    return bool(trial != value_at(update.old, update.at))


def taken_back(
    draft: Draft, update: Update, changed: Mapping[Key, Change], settings: Settings
) -> dict[Key, Change] | None:
    """Undo this repair of the template and the recorded ones: the author's words are stored.

    Returns the new record, which is empty, or None if there was none.
    """
    draft.undo()
    update = update.without_forged(settings)
    sent = PodFields(draft.object, update.at)
    words = {key: changed[key][0] for key in update.noted if key in changed}
    words |= {
        key: None
        for key, (before, after) in update.noted.items()
        if before is None and key not in changed and sent.values.get(key) == after
        if not update.authors.declared(update.at, key)
    }
    apply(draft, sent.edits_to(words))
    return {} if update.noted else None


def made_of(draft: Draft, sent: PodFields, rules: Asking, cx: Context, as_then: Context) -> _Made:
    """The results of the rules on the template with these fields."""
    obj, at = draft.object, sent.at
    trial = copied(value_at(obj, at)) if as_then is not cx else {}
    verdict = rules.of(draft, cx, at)
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
        anew = independent_of_nodes(keys, cx.settings)
        keys = [key for key in keys if key not in anew]
    all_keys = keys if noted else [*keys, *placement(now, then)]
    absent = [key for key in all_keys if key in then.values and key not in now.values]
    moved = any(
        # words that came while the webhook was away, and words that the author removes
        (
            noted
            and (word := made.author.get(key)) is not None
            and noted.get(key) != (word, then.values[key])
        )
        or update.authors.dropped(at, key, update.before)
        for key in absent
    )
    result = Pod(obj, at)
    if update.may_change and (
        moved
        or not is_still_right(result, stored, cx)
        or (fits_no_node(result, stored, cx) and _is_rolled_out(draft, update, made.author, then))
    ):
        return now
    if noted:
        same = _are_the_words_of(then, noted, made.author, keys)
    else:
        tried, its = Pod(obj, at), now
        if made.trial:
            rules.of(Draft(made.trial), as_then)
            tried, its = Pod(made.trial), PodFields(made.trial)
        same = agrees(tried, stored, keys, (its, then), as_then)
    if not same:
        return now
    # A label of zones is not in the record for its own sake: a policy may have set it.
    zones = [
        (*key[:-1], BETA_NODE_LABELS[key[-1]]) for key in all_keys if key[-1] in BETA_NODE_LABELS
    ]
    here = [key for key in zones if key in then.values and key not in now.values]
    return restore(draft, now, then, [*all_keys, *here])


def _without_news(  # noqa: PLR0913, PLR0917  # as above
    draft: Draft,
    update: Update,
    made: _Made,
    versions: tuple[PodFields, PodFields],
    rules: Asking,
    cx: Context,
) -> tuple[PodFields, _Made, set[Key]]:
    """Restore the stored template if only the settings would add to it, for the first time.

    For example, its namespace has become known. Otherwise it would be rolled out although its
    author changed nothing; its pods get these additions when they are created. So the findings on
    them are left out. Also returns the units that stay: their records are still valid.
    """
    now, then = versions
    if cx.inventory is None or not cx.inventory.watched:
        return now, made, set()  # without a watcher all is known at once
    news = changes(then.values, now.values).keys()
    is_added = not any(key in then.values and key[3:4] != ("env",) for key in news)
    if not news or not is_added or not news <= independent_of_nodes(list(news), cx.settings):
        return now, made, set()
    trial = copied(value_at(draft.object, update.at))
    restore(Draft(trial), PodFields(trial), then, news)
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
    return restore(draft, now, then, news), made, units


def _are_the_words_of(
    then: PodFields, noted: Mapping[Key, Change], author: Mapping[Key, Any], keys: Iterable[Key]
) -> bool:
    """Whether the author sends at these fields the words from before the last repair.

    The result of that repair must also be stored: it may have been undone while the webhook was
    away.
    """
    stored = ((key, then.values.get(key)) for key in keys)
    return all(noted.get(key, (it, it)) == (author.get(key), it) for key, it in stored)
