"""Updates of pods and templates whose manifests still have the legacy words.

What a repair took away the author's tool brings back, and what it wrote the tool leaves in place.
So an update is taken apart first: what the repair wrote goes, and the author's words are translated
anew. If they come to what is stored, then what is stored is the answer.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.core.draft import Draft, copied
from webhook.core.edits import place_of
from webhook.core.errors import EditError
from webhook.core.findings import Verdict
from webhook.core.legacy_names import AFFINITY_ANNOTATION, TOLERATIONS_ANNOTATION
from webhook.core.limit_ranger import Origins
from webhook.core.repaired import is_noted
from webhook.core.rule import Trait
from webhook.evaluation.authors import Authors
from webhook.evaluation.pod_fields import PodFields, changes, is_of_settings
from webhook.evaluation.repair_fields import RepairFields
from webhook.evaluation.stored import PLACEMENT, agrees, as_it_was, is_still_right, model_labels
from webhook.kube import quantity
from webhook.kube.canonical import canonical
from webhook.kube.pod import KINDS, Pod, as_items, as_map
from webhook.kube.pointer import ROOT, value_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.edits import Edit
    from webhook.core.rule import Context
    from webhook.core.settings import Settings
    from webhook.evaluation.evaluate import Asking
    from webhook.evaluation.pod_fields import Change, Key
    from webhook.kube.pointer import Path

    Raw = dict[str, Any]

_TOLERATIONS: Key = ("spec", "tolerations")
_SETTINGS = ("nodeSelector", "runtimeClassName", "volumes")
_IN_CONTAINERS = (("env",), ("volumeMounts",))
# What the API server writes where an author writes nothing.
_DEFAULTS: dict[Key, Any] = {("spec", "schedulerName"): "default-scheduler"}
_VOLUMES: Key = ("volumes",)


def pod(obj: Raw, old: Raw, rules: Asking, cx: Context, _at: Path = ROOT) -> Verdict:
    """Translate the legacy words that this update of a pod brings, and nothing else.

    Nearly nothing of a pod may change. If the words say what is stored, the stored spec is sent; if
    not, the API server sees what they say today, and refuses it. A pod that is stored with an
    amount under a legacy name was made while nobody repaired it, and stays as it is. An amount of 0
    says nothing of that: LimitRanger and its repair leave it (rules/legacy_resource.py).
    """
    stored, cx = Pod(old), replace(cx, is_stored=True)
    if stored.asks_under_legacy_name(cx.settings):
        return Verdict((), obj, [])
    as_then, then, draft = as_it_was(cx, stored), PodFields(old), Draft(obj)
    at_work = _at_work(rules, old, as_then)
    sent, trial = PodFields(obj).kept(), copied(obj)
    made = _made(draft, sent, at_work, cx, cx)
    touched = {_unit(key) for key in changes(made.author, PodFields(obj).values)}
    found = _unwritten(sent, then, touched, Authors(obj), cx.settings)
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
    keys = [key for key in (*changed, *zeros, _TOLERATIONS) if key[0] == "spec"]
    if _is_the_same_manifest(old, sent, now, then):
        _restore(
            draft, now, then, [key for key in {**now.values, **then.values} if key[0] == "spec"]
        )
    elif agrees(Pod(trial), stored, keys, (tried, then), as_then):
        _restore(draft, now, then, [*keys, *_placement(now), *_placement(then)])
    return replace(made.verdict, patch=draft.patch())


def _is_the_same_manifest(old: Raw, sent: PodFields, now: PodFields, then: PodFields) -> bool:
    """Whether all that comes back to a repaired pod stood in the manifest that kubectl applied.

    Then it was what the pod was made of, whatever the settings make of it today. An annotation is
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
    return bool(came) and all(_is_said(key, *change, said) for key, change in came.items())


@dataclass(frozen=True, slots=True)
class Update:
    """What is known of a template that is sent; `noted` is what the last repair of it changed."""

    at: Path
    old: Raw | None  # the object that is stored, if the template is in it
    noted: Mapping[Key, Change]
    authors: Authors  # of the object that is sent
    before: Authors  # of the one that is stored
    may_change: bool

    def stored(self) -> PodFields:
        return PodFields(self.old, self.at) if self.old else PodFields({})


class _Made(NamedTuple):
    """What the rules made of a template."""

    author: Mapping[Key, Any]  # its fields before
    trial: Raw  # a copy of it before; empty if what is stored speaks of no other cluster
    verdict: Verdict


def template(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    """Repair the template, from what its author writes now.

    Gives what this repair changed, or None if there was nothing to repair. Where the author writes
    what was written then, the stored template stays: for as long as it is right, or always if it
    may not change. The rules are asked of all that is sent; only if repairs wrote some of it, that
    comes out and they are asked again.
    """
    if update.old is not None and not update.may_change:
        return _fixed(draft, update, rules, cx)
    return _repaired(draft, update, rules, cx)


def _fixed(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    """Send what is stored wherever the author writes what was written then, or nothing new.

    Whatever settings, inventory and rules have become: the API server would refuse the update, be
    it of a label of the object alone. Only what is new is repaired; of a Job that is suspended the
    choice of nodes may change (KEP-2926).
    """
    sent, then = PodFields(draft.object, update.at).kept(), update.stored()
    differ = changes(then.values, sent.values)
    if not differ:
        return Verdict((), draft.object, []), None
    said = update.before.in_manifest(update.at)
    new = {
        _unit(key)
        for key, change in differ.items()
        if update.noted.get(key) != change[::-1] and not _is_said(key, *change, said)
    }
    verdict, changed = _repaired(draft, update, rules, cx)
    if not new:
        draft.undo()
    now = PodFields(draft.object, update.at)
    _restore(draft, now, then, [k for k in {**now.values, **then.values} if _unit(k) not in new])
    if changed is not None:
        changed = {key: change for key, change in changed.items() if _unit(key) in new}
        changed |= {key: each for key, each in update.noted.items() if _unit(key) not in new}
    return replace(verdict, patch=draft.patch()), changed if new else None


def _is_said(key: Key, then: Any, now: Any, said: Mapping[Key, Any]) -> bool:
    """Whether this comes back of the manifest that kubectl applied the last time.

    The API server has written it in its own way: an amount as a text, and requests where there are
    only limits; a member of a volume that was left out; tolerations of every pod.
    """
    is_amount = key[3:4] == ("resources",)
    limit = said.get((*key[:4], "limits", *key[5:])) if is_amount else None
    word = said.get(key, limit)
    if now is None or word is None:
        return False
    if is_amount:
        return quantity.parse(now) == quantity.parse(str(word))
    if key == _TOLERATIONS:
        return _items(word) <= _items(now) <= _items(word) | _items(then)
    if isinstance(now, dict) and isinstance(word, dict):
        inside = {
            name: as_map(now.get(name)) for name, each in word.items() if each != now.get(name)
        }
        word = word | {name: {**there, **as_map(word[name])} for name, there in inside.items()}
        return bool({**now, **word} == now)
    return bool(now == word)


def _repaired(
    draft: Draft, update: Update, rules: Asking, cx: Context
) -> tuple[Verdict, dict[Key, Change] | None]:
    update = _without_forged(update, cx.settings)
    obj, at, sent = draft.object, update.at, PodFields(draft.object, update.at).kept()
    if update.old is None and not update.noted:  # no repair wrote any of it
        verdict = rules.of(obj, cx, at, draft)
        verdict = replace(verdict, patch=draft.patch())
        return verdict, _notes(sent.values, PodFields(obj, at).values) or None
    beside = {key: change for key, change in update.noted.items() if change[0] == change[1]}
    if beside:
        noted = {key: change for key, change in update.noted.items() if key not in beside}
        update = replace(update, noted=noted)
    then = update.stored()
    back = _put_back(update, sent, then, cx.settings)
    if back:
        _apply(draft, back)
        sent = PodFields(obj, at).kept()
    if _has_words(Pod(obj, at), sent, update.noted, cx.settings):
        cx = replace(cx, was_stuck=_was_stuck(sent, update, cx.settings))
    loose = _of_settings(sent, update)
    cx = replace(cx, was_added={key: sent.values[key] for key in loose}) if loose else cx
    as_then = cx if update.old is None else as_it_was(cx, Pod(update.old, at))
    made = _made(draft, sent, rules, cx, as_then)
    now = PodFields(obj, at)
    touched = {_unit(key) for key in changes(sent.values, now.values)}
    touched |= _worded(update, sent, then)
    if not touched and not loose:
        return replace(made.verdict, patch=draft.patch()), None
    repaired = {**_fields_of_repairs(update, sent, then, touched, cx.settings), **loose}
    repaired = _without_mounted(repaired, sent, read_only=not Pod(obj, at).is_in_scope(cx.settings))
    as_sent: Raw = {}
    if repaired:
        draft.undo()
        _apply(draft, back)
        as_sent = copied(value_at(obj, at)) if loose or _VOLUMES in touched else {}
        _apply(draft, sent.edits_to(repaired))
        made = _made(draft, PodFields(obj, at).kept(), rules, cx, as_then)
        if as_sent:
            _apply(draft, PodFields(obj, at).ordered_as(PodFields(as_sent)))
        now = PodFields(obj, at)
    if touched and update.old is not None:
        noted = {key: change for key, change in update.noted.items() if _unit(key) in touched}
        changed = changes(made.author, now.values)
        keys = [key for key in {**noted, **changed, **repaired} if key not in loose]
        of_these = replace(update, noted=noted)
        now = _kept(draft, of_these, keys, made, (now, then), (cx, as_then), rules)
        watched = cx.inventory is not None and cx.inventory.watched  # else all is known at once
        if update.may_change and watched and _VOLUMES not in map(_unit, loose):
            now, made, left = _without_news(draft, update, made, (now, then), rules, cx.settings)
            touched -= left
    kept = {
        key: change
        for key, change in {**update.noted, **beside}.items()
        if _unit(key) not in touched and key not in loose
    }
    patch = draft.patch() if value_at(obj, at) != as_sent else []  # what came out may be in again
    return replace(made.verdict, patch=patch), {**kept, **_notes(made.author, now.values)}


def _made(draft: Draft, sent: PodFields, rules: Asking, cx: Context, as_then: Context) -> _Made:
    """What the rules make of the template of which these are the fields."""
    obj, at = draft.object, sent.at
    trial = copied(value_at(obj, at)) if as_then is not cx else {}
    verdict = rules.of(obj, cx, at, draft)
    return _Made(sent.values, trial, verdict)


def _worded(update: Update, sent: PodFields, then: PodFields) -> set[Key]:
    """The units of which this update brings a noted word, or takes one out."""
    return {
        _unit(key)
        for key, (word, after) in update.noted.items()
        if word is not None
        if sent.values.get(key) == word
        or (after is None and key in sent.values)
        or update.authors.took_out(key, update.before, sent, then)
    }


def _fields_of_repairs(
    update: Update, sent: PodFields, then: PodFields, touched: set[Key], settings: Settings
) -> dict[Key, Any]:
    """The sent fields that repairs wrote, where words are translated; with the values before."""
    if update.noted:
        return _noted(update, sent, then, touched, settings)
    unwritten = _unwritten(sent, then, touched, update.authors, settings)
    forms = RepairFields(sent.values, settings)
    return {key: None for key, value in unwritten.items() if forms.may_be(key, None, value)}


def _kept(  # noqa: PLR0913, PLR0917  # what was made, of what, and how
    draft: Draft,
    update: Update,
    keys: list[Key],
    made: _Made,
    versions: tuple[PodFields, PodFields],
    contexts: tuple[Context, Context],
    rules: Asking,
) -> PodFields:
    """Restore what is stored at these fields if the author wrote the same then, and it is right.

    Returns the fields of the resulting template.
    """
    obj, at, noted, (now, then) = draft.object, update.at, update.noted, versions
    (cx, as_then), stored = contexts, Pod(update.old or {}, at)
    if update.may_change:
        anew = _made_anew(keys, cx.settings)
        keys = [key for key in keys if key not in anew]
    all_keys = keys if noted else [*keys, *_placement(now), *_placement(then)]
    absent = [key for key in all_keys if key in then.values and key not in now.values]
    moved = any(
        # words that came while nobody repaired them, and what the author takes out
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
    """Restore the stored template if the settings alone would add to it, for the first time.

    Its namespace is known now, say. It would be rolled out although its author changed nothing, and
    its pods get what the settings ask for when they are made. So the findings on it are left out.
    Gives the units that stay, too: what is noted of them still holds.
    """
    now, then = versions
    news = changes(then.values, now.values).keys()
    is_added = not any(key in then.values and key[3:4] != ("env",) for key in news)
    if not news or not is_added or not news <= _made_anew(list(news), settings):
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
    units = {_unit(key) for key in news}
    asks = {rule.CODE for rule in rules.rules if Trait.CLUSTER in rule.FACTS.traits}
    idle = [
        each
        for each in made.verdict.findings
        if each.code in asks
        if any(
            _unit(tuple(map(str, place_of(edit)[len(update.at) :]))) in units for edit in each.edits
        )
    ]
    found = tuple(each for each in made.verdict.findings if each not in idle)
    made = made._replace(verdict=replace(made.verdict, findings=found))
    return _restore(draft, now, then, news), made, units


def _put_back(update: Update, sent: PodFields, then: PodFields, settings: Settings) -> list[Edit]:
    """The edits that put back a legacy amount where another manager releases today's beside it.

    Its own manager applies it still, but it went when it was repaired: the container would be left
    without a GPU until it is applied again.
    """
    released = {
        key[:-1]
        for key in then.values.keys() - sent.values.keys()
        if settings.is_gpu(key[-1])
        if update.authors.dropped(update.at, key, update.before)
    }
    if not released:
        return []
    words = {
        key: word
        for key, (word, after) in update.noted.items()
        if key[:-1] in released and key[-1] in settings.legacy_resources and after is None
        if key not in sent.values and update.authors.declared(update.at, key)
    }
    return sent.edits_to(words)


def _of_settings(sent: PodFields, update: Update) -> dict[Key, None]:
    """What the last repair wrote for no word, and stands there still: the settings asked for it.

    Whatever is sent now, it comes out and is made anew. A label for the choice of nodes is such a
    one only where no word was beside it.
    """
    noted, authors = update.noted, update.authors
    if not update.may_change:
        return {}
    if not any(key[1] in _SETTINGS or key[3:4] in _IN_CONTAINERS for key in noted):
        return {}
    worded = {_unit(key) for key, (word, _) in noted.items() if word is not None}
    return {
        key: None
        for key, (word, after) in noted.items()
        if word is None and is_of_settings(key)
        if key[1] != "nodeSelector" or _unit(key) not in worded
        if sent.values.get(key) == after is not None and not authors.wrote(sent.at, key)
    }


def _made_anew(keys: list[Key], settings: Settings) -> set[Key]:
    """What follows from what is sent and from the settings, and from no inventory.

    So it need not stay as it is stored while nodes come and go.
    """
    label = settings.placement.label
    found = {key for key in keys if key[1] == "volumes" or key[3:4] in _IN_CONTAINERS}
    return found if label in model_labels(settings) else {*found, ("spec", "nodeSelector", label)}


def _without_mounted(
    repaired: dict[Key, Any], sent: PodFields, *, read_only: bool
) -> dict[Key, Any]:
    """Fields of repairs without volumes that other mounts still use.

    Where no rule will be asked, which makes such mounts read-only, they must be `read_only`.
    """
    if not any(key[1] == "volumes" for key in repaired):
        return repaired
    used = {
        ("spec", "volumes", str(as_map(mount).get("name")))
        for key, mount in sent.values.items()
        if "volumeMounts" in key[3:4] and key not in repaired
        if not read_only or as_map(mount).get("readOnly") is True
    }
    return {key: value for key, value in repaired.items() if value is not None or key not in used}


def _notes(author: Mapping[Key, Any], now: Mapping[Key, Any]) -> dict[Key, Change]:
    """What was changed; and beside a word in nodeSelector its other labels, which were not.

    By them the record differs as soon as the selector does (evaluation/authors.py).
    """
    found = changes(author, now)
    words = (key for key, (_, after) in found.items() if after is None)
    if found and any(key[1] == "nodeSelector" for key in words):
        found |= {
            key: (value, value)
            for key, value in now.items()
            if key[1] == "nodeSelector" and author.get(key) == value
        }
    return found


def _without_forged(update: Update, settings: Settings) -> Update:
    """The same, but for what is noted and no repair writes: whoever may write it may forge it."""
    if not update.noted:
        return update
    forms = RepairFields({key: before for key, (before, _) in update.noted.items()}, settings)
    noted = {key: change for key, change in update.noted.items() if forms.may_be(key, *change)}
    return replace(update, noted=noted)


def _apply(draft: Draft, edits: Iterable[Edit]) -> None:
    """Make all of these edits or, in a pod whose members are of odd types, none."""
    with suppress(EditError):
        draft.apply(edits)


def _unit(key: Key) -> Key:
    """The fields that one repair changes together: legacy words, and what stands for them."""
    if key[1] in KINDS and "resources" in key[3:4]:
        return key[:4]
    if key[1] in PLACEMENT or key[-1] == AFFINITY_ANNOTATION:
        return ("placement",)
    if key == _TOLERATIONS or key[-1] == TOLERATIONS_ANNOTATION:
        return _TOLERATIONS
    if key[1] == "volumes" or "env" in key[3:4] or "volumeMounts" in key[3:4]:
        return _VOLUMES
    return ("fields",)


def _has_words(pod: Pod, sent: PodFields, noted: Mapping[Key, Change], settings: Settings) -> bool:
    """Whether legacy words on the choice of nodes are in the pod, or any that are noted."""
    return (
        pod.names_legacy_label(settings.models.legacy_label)
        or AFFINITY_ANNOTATION in pod.annotations
        or any(after is None and key in sent.values for key, (_, after) in noted.items())
    )


def _was_stuck(sent: PodFields, update: Update, settings: Settings) -> bool:
    """Whether an amount stands for a legacy name that the author has not taken back.

    A word that comes alone is then translated as it was when it came with the amount.
    """
    repaired = {
        key[:-1]
        for key, (_, after) in update.noted.items()
        if settings.is_gpu(key[-1]) and sent.values.get(key) == after is not None
        if not update.authors.declared(sent.at, key)
    }
    return any(
        key[-1] in settings.legacy_resources and after is None and key[:-1] in repaired
        for key, (_, after) in update.noted.items()
        if not update.authors.dropped(sent.at, key, update.before)
    )


def _noted(
    update: Update, sent: PodFields, then: PodFields, touched: set[Key], settings: Settings
) -> dict[Key, Any]:
    """What stood before the last repair where this update brings its words, and not the value.

    Beside the words another writer may have put something that we added to: that stays. An
    amount that nobody applied goes, and one that we raised over what another manager applied
    becomes that again: else it could never be lowered.
    """
    noted, authors = update.noted, update.authors
    loose = _unwritten(sent, then, touched, authors, settings)
    forms = RepairFields({key: before for key, (before, _) in noted.items()}, settings)
    found: dict[Key, Any] = {key: None for key in loose if settings.is_gpu(key[-1])}
    for key, (before, after) in noted.items():
        value = sent.values.get(key)
        if _unit(key) not in touched or value is None:
            continue
        if value != after and not forms.may_be(key, before, value):
            continue
        words = _words_beside(key, sent, settings)
        if words and not then.values:
            continue  # made in this request, in which another webhook has written the word since
        if authors.declared(sent.at, key):
            beside = any(authors.declared_together(sent.at, key, word) for word in words)
            if words and value == after and _is_less(before, value) and not beside:
                found[key] = before
        elif before is None and (
            value == then.values.get(key)
            or any(not _is_less(sent.values[word], value) for word in words)
        ):
            found[key] = None
        elif value == after and (_is_part(before, value) or before == _DEFAULTS.get(key)):
            found[key] = before
    return found


def _words_beside(key: Key, sent: PodFields, settings: Settings) -> list[Key]:
    """The legacy names beside an amount. If they ask for as much, the amount says nothing more.

    A `rollout undo` brings back both, of a revision that was applied while we were away.
    """
    if not settings.is_gpu(key[-1]):
        return []
    words = ((*key[:-1], name) for name in settings.legacy_resources)
    return [word for word in words if word in sent.values]


def _is_less(amount: Any, than: Any) -> bool:
    less, more = quantity.parse(amount), quantity.parse(than)
    return amount is not None and less is not None and more is not None and less < more


def _is_part(before: Any, value: Any) -> bool:
    """Whether nothing stands in the former that is not in the latter, as far as items go."""
    return before is None or (isinstance(before, list) and _items(before) <= _items(value))


def _items(value: Any) -> set[str]:
    """The texts of all maps in a list, or of those in lists in them."""
    found: set[str] = set()
    waiting = [item for _, item in as_items(value)]
    while waiting:
        here = waiting.pop()
        below = [item for each in here.values() for _, item in as_items(each)]
        waiting += below
        if not below:
            found.add(canonical(here))
    return found


def _unwritten(
    sent: PodFields, then: PodFields, touched: set[Key], authors: Authors, settings: Settings
) -> dict[Key, Any]:
    """What is stored and no author wrote, where it would win over the words, or be joined to them.

    Without a record this webhook or another one may have written it; then it is removed again.
    """
    labels = model_labels(settings)
    return {
        key: value
        for key, value in sent.values.items()
        if (unit := _unit(key)) in touched and then.values.get(key) == value
        if _is_of_words(key, unit, labels, settings) and value != _DEFAULTS.get(key)
        if not authors.wrote(sent.at, key)
    }


def _without_defaults(repaired: dict[Key, Any], stored: Pod, settings: Settings) -> dict[Key, Any]:
    """Fields of repairs without amounts that LimitRanger set: the amount of an author wins."""
    added = {
        ("spec", *container, "resources", *place)
        for container, places in Origins.of(stored).claimed.items()
        for place in places
        if place[1] not in settings.legacy_resources
    }
    return {key: value for key, value in repaired.items() if key not in added}


def _is_of_words(key: Key, unit: Key, labels: frozenset[str], settings: Settings) -> bool:
    match unit:
        case (_, _, _, "resources"):
            return settings.is_gpu(key[-1]) or key[-1] in settings.legacy_resources
        case ("placement",):
            return key[1] == "affinity" or key[-1] in labels
        case ("fields",):
            return key[0] == "spec"
        case _:
            return False


def _keep_fields(draft: Draft, repaired: Mapping[Key, Any]) -> None:
    """Put fields back that no word stands for any more: the API server sets some by itself."""
    pod = PodFields(draft.object)
    fields = {k: value for k, value in repaired.items() if _unit(k) == ("fields",)}
    _apply(draft, pod.edits_to({k: v for k, v in fields.items() if k not in pod.values}))


def _at_work(rules: Asking, old: Raw, cx: Context) -> Asking:
    """The rules on legacy words, without those that let what they would change be stored."""
    legacy = rules.only(lambda rule: Trait.CLUSTER not in rule.FACTS.traits)
    wide = replace(cx, settings=replace(cx.settings, scope="all-legacy"))
    found = legacy.of(copied(old), wide).findings
    idle = {each.code for each in found if each.action == "repaired"}
    return legacy.only(lambda rule: rule.CODE not in idle)


def _are_the_words_of(
    then: PodFields, noted: Mapping[Key, Change], author: Mapping[Key, Any], keys: Iterable[Key]
) -> bool:
    """Whether the author writes at these fields what was written before the last repair.

    And whether that repair is what is stored: while we were away it may have been undone.
    """
    for key in keys:
        value = then.values.get(key)
        before, after = noted.get(key, (value, value))
        if value != after or author.get(key) != before:
            return False
    return True


def _placement(fields: PodFields) -> list[Key]:
    return [key for key in fields.values if key[1] in PLACEMENT]


def _restore(draft: Draft, now: PodFields, then: PodFields, keys: Iterable[Key]) -> PodFields:
    """Give these fields the values that are stored, and lists their order; the fields after it."""
    wanted = {key: then.values.get(key) for key in keys}
    _apply(draft, now.edits_to(wanted))
    restored = PodFields(draft.object, now.at)
    _apply(draft, restored.ordered_as(then))
    return restored
