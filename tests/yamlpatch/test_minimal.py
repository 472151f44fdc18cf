"""Random documents in random styles, random edits: only what must change does."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from tests.yamlpatch.styled import Styled, Values, text_of
from webhook.core.draft import Draft, copied
from webhook.core.edits import Append, Remove, Rename, Set
from webhook.core.errors import EditError
from webhook.files.results import Plan, Status
from webhook.files.source import Source
from webhook.formats.migrate import migrate_text
from webhook.kube.pointer import ROOT, Path
from webhook.yamlpatch import documents, verify
from webhook.yamlpatch.nodes import List, Map, entries, entry_at, real
from webhook.yamlpatch.splice import RefusedError, apply, splice
from webhook.yamlpatch.yaml_words import is_same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.core.edits import Edit
    from webhook.yamlpatch.documents import Document
    from webhook.yamlpatch.nodes import Node
    from webhook.yamlpatch.places import Replacement

SEEDS = st.integers(0, 2**32)
SIZES = st.integers(1, 5)


def stream(
    seed: int, size: int, *, anchored: bool = True
) -> tuple[str, list[dict[str, Any]], Random]:
    """A text, what it says, and the dice that made it."""
    random = Random(seed)  # noqa: S311  # dice, not secrets
    wanted = [Values(random, size).map() for _ in range(random.randint(1, 3))]
    return text_of(wanted, Styled(random, anchored=anchored)), wanted, random


def paths(value: Any, at: Path = ROOT) -> Iterator[Path]:
    if at:
        yield at
    if isinstance(value, dict):
        for name, item in value.items():
            yield from paths(item, at / name)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from paths(item, at / position)


def random_edit(data: dict[str, Any], random: Random) -> Edit:
    there = list(paths(data)) or [ROOT / "a"]
    at = random.choice(there)
    value = random.choice([1, 2, "x", "a: b", None, {"k": 1}, {"k": {"l": ["m"]}}, [1], [{"k": 2}]])
    match random.randrange(6):
        case 0:
            return Remove(at)
        case 1:
            return Rename(at, random.choice(["new", "example.com/gpu", "n", "a"]))
        case 2:
            return Append(at, value)
        case 3 | 4:
            return Set(random.choice([at, at.parent]) / random.choice(["new", "b"]), value)
    return Set(at, value)


def edited(document: Document, random: Random) -> Draft:
    draft = Draft(copied(document.data))
    for _ in range(random.randint(1, 4)):
        edit = random_edit(draft.object, random)
        if isinstance(edit, Rename) and document.find(edit.at) is None:
            continue  # no rule renames what another brought in
        try:
            draft.apply([edit])
        except EditError:
            continue
    return draft


@given(SEEDS, SIZES)
def test_a_text_is_read_as_what_was_written(seed: int, size: int) -> None:
    text, wanted, _ = stream(seed, size)
    found = documents.read(text)
    assert found.unread == ()
    assert is_same([document.data for document in found.documents], wanted)


@settings(max_examples=5 * settings().max_examples)  # it is quick, and about all of YAML
@example(1437, 5)  # an anchor in what is removed around a comment
@given(SEEDS, SIZES)
def test_the_result_says_what_the_edited_object_says(seed: int, size: int) -> None:
    text, _, random = stream(seed, size)
    found = documents.read(text)
    replacements: list[Replacement] = []
    data, refused = [], []
    for document in found.documents:
        draft = edited(document, random)
        try:
            made = splice(document, draft.changes())
        except RefusedError as error:
            event("refused")
            refused.append(error.reason)
            data.append(document.data)
            continue
        event("edited" if made else "as it was")
        data.append(draft.object)
        for each in made:
            assert _is_in_own_lines(document, draft.changes(), each), each
        replacements += made
    new_text = apply(text, replacements)
    assert all(_may_be_refused(reason, text) for reason in refused)
    why = verify.why_not(documents.read(new_text), data)
    assert _may_differ(text, why) or not why, why
    if "\r\n" in text:
        assert "\n" not in new_text.replace("\r\n", "")


LEGACY = "alpha.kubernetes.io/nvidia-gpu"
TOLERATED = '[{"key": "a", "operator": "Exists"}]'
WANTED = (
    '{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": '
    '[{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}}'
)


def legacy_pod(random: Random) -> dict[str, Any]:
    """A pod as people wrote them for 1.3-1.10."""

    def some(**members: Any) -> dict[str, Any]:
        return {name: value for name, value in members.items() if random.randrange(3)}

    amount = random.choice([0, 1, "1", "2", 2, 0.5])
    volume = {"name": "bin", "hostPath": {"path": "/usr/lib/nvidia-375/bin"}}
    data = {"name": "data", "emptyDir": {}}
    mounts = [
        {"name": "bin", "mountPath": "/usr/local/nvidia/bin"},
        {"name": "data", "mountPath": "/d"},
    ]
    random.shuffle(mounts)
    resources = some(limits={LEGACY: amount, **some(cpu="1")}, requests={LEGACY: amount})
    container = {
        "name": "c",
        "image": "x:1",
        **some(
            resources=resources, env=[{"name": "LD_LIBRARY_PATH", "value": "/usr/lib/nvidia-375"}]
        ),
        "volumeMounts": mounts[: random.randint(1, 2)],
    }
    annotations = some(
        **{
            "scheduler.alpha.kubernetes.io/tolerations": TOLERATED,
            "scheduler.alpha.kubernetes.io/affinity": random.choice([WANTED, WANTED + "\n"]),
            "note": "x\ny\n",
        }
    )
    metadata = {"name": "p", **some(annotations=annotations, labels={"a": "b"})}
    spec = {
        "containers": [container, *[{"name": "d", "image": "x:1"}] * random.randrange(2)],
        "volumes": random.sample([volume, data], 2),
        **some(tolerations=[{"key": "k", "operator": "Exists"}], nodeSelector={"x": "y"}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@given(SEEDS, SIZES)
def test_json_stays_json_and_compact_or_not_as_it_was(seed: int, size: int) -> None:
    random = Random(seed)  # noqa: S311
    indent = random.choice([None, None, 1, 2, 4, "\t"])
    separators = random.choice([None, (",", ":")]) if indent is None else (",", ": ")
    wanted = Values(random, size).map()
    text = json.dumps(
        wanted, indent=indent, separators=separators, ensure_ascii=random.random() < 0.5
    )
    (document,) = documents.read(text, json=True).documents
    draft = edited(document, random)
    new_text = apply(text, splice(document, draft.changes()))
    assert is_same(json.loads(new_text), draft.object)
    if not indent:
        assert "\n" not in new_text
    if separators == (",", ":"):
        assert new_text == json.dumps(
            json.loads(new_text), separators=separators, ensure_ascii=text.isascii()
        )


@given(SEEDS)
def test_a_second_run_changes_nothing(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    pods = [legacy_pod(random) for _ in range(random.randint(1, 2))]
    source = Source.of_text("p.yaml", text_of(pods, Styled(random)))
    result = migrate_text(source, Plan())
    untouched = [each.message for each in result.located if "not done here" in each.message]
    event("refused" if untouched else "edited" if result.new_text is not None else "as it was")
    assert not untouched or "&" in source.text, untouched
    if result.new_text is not None:
        again = migrate_text(Source.of_text("p.yaml", result.new_text), Plan())
        assert again.new_text is None
        assert {each.status for each in again.located} <= {*Status} - {Status.FIXABLE}


def _may_be_refused(reason: str, text: str) -> bool:
    """Anchors, flow without colons, comments in flow: refused, and said so."""
    if "&" in text and ("anchor" in reason or "elsewhere needs" in reason or "merge" in reason):
        return True
    return reason.startswith(
        ("its tag or its form", "a comment stands between", "a comment below would become part")
    )


def _may_differ(text: str, why: str) -> bool:
    """With merge keys a name can be two maps' at once; verify finds out, and the file stays."""
    return "<<" in text and "would not say" in why


def _is_in_own_lines(document: Document, edits: list[Edit], made: Replacement) -> bool:
    """Whether the lines of the replacement are those of what is edited, or blank, never comments.

    Blank lines go where a text above would keep them, behind a dash and in flow style.
    What is put in may stand behind the last of them. Of a neighbour's line only the indent may go,
    where it comes up behind a dash, and the comma before what goes.
    """
    text = document.text
    own = {line for edit in edits for line in _own_lines(document, edit, edits)}
    first, last = _line(text, made.start), _line(text, max(made.end - 1, made.start))
    if made.start == made.end:
        return bool(own & {first, first - 1})
    lines = text[made.start : made.end].split("\n")
    spare = {n for n, line in enumerate(lines, first) if not line.strip(" \t\r,")}
    return set(range(first, last + 1)) <= own | spare


def _own_lines(document: Document, edit: Edit, edits: list[Edit]) -> Iterator[int]:
    """The lines of what an edit is about; of what holds it, if it gets something or gets empty."""
    at = edit.to if isinstance(edit, Append) else edit.at
    found = [document.root]
    for token in at:
        entry = entry_at(real(found[-1]), token)
        if entry is None:
            break
        yield from () if len(found) < len(at) else _lines(document, entry.start, entry.end)
        found.append(entry.value)
    holder = real(found[len(at) - 1]) if isinstance(edit, Remove) else real(found[-1])
    gone = {other.at for other in edits if isinstance(other, Remove)}
    others = range(len(entries(holder))) if isinstance(holder, Map | List) else ()
    is_empty = sum(path.parent == at.parent for path in gone) == len(others)
    if not isinstance(edit, Remove) or is_empty:
        yield from _lines(document, _head(document, at, holder), holder.end)


def _head(document: Document, at: Path, holder: Node) -> int:
    """Where the entry begins whose value this is."""
    for depth in range(len(at), 0, -1):
        outer = document.find(Path(at[: depth - 1]))
        entry = entry_at(real(outer), at[depth - 1]) if outer is not None else None
        if entry is not None and real(entry.value) is holder:
            return entry.start
    return holder.start


def _lines(document: Document, start: int, end: int) -> range:
    return range(_line(document.text, start), _line(document.text, end) + 1)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at)
