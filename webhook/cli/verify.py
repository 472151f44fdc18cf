"""`gpu-webhook verify`: proves that old files through the webhook are the new ones without it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webhook.cli import file_command, inputs
from webhook.core.errors import InputError
from webhook.files.results import FileResult, Located, Plan, Report, Skipped, Status
from webhook.reports.escaping import sentence, storable, visible
from webhook.reports.formats import REPORTS
from webhook.reports.printing import PRINTED
from webhook.verifying import comparison, read_side
from webhook.verifying.comparison import NotTaken, Result

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import SimpleNamespace

    from webhook.core.settings import Settings
    from webhook.verifying.comparison import Compared, Store

_DIFFERENT, _NOT_PROVABLE = 2, 3


def run(args: SimpleNamespace) -> int:
    """Print the result for each object; the exit code is that of the worst."""
    file_command.check_files(args)
    settings = replace(inputs.settings(args), scope="all-legacy")
    minor = int(args.target_version.partition(".")[2])
    plan = Plan(settings, inputs.inventory(args), target=(1, minor))
    with ExitStack() as stack:
        old, new = _sides(args, minor, settings, stack)
        found = comparison.compare(old, new, plan, _server(args, settings))
    texts = {**old.texts, **new.texts}
    file_command.write_files(args, lambda form: _printed(form, found, texts))
    quiet = args.output == "text" and args.quiet
    sys.stdout.write(_text(found, quiet=quiet) if quiet else _printed(args.output, found, texts))
    return exit_code(found)


def exit_code(found: Sequence[Compared]) -> int:
    """2 if an object differs, otherwise 3 if one is not provable, otherwise 0."""
    results = {each.result for each in found}
    if Result.DIFFERENT in results:
        return _DIFFERENT
    return _NOT_PROVABLE if Result.NOT_PROVABLE in results else 0


def _sides(
    args: SimpleNamespace, minor: int, settings: Settings, stack: ExitStack
) -> tuple[read_side.Side, read_side.Side]:
    options = read_side.ReadOptions(minor, args.exclude, settings=settings)
    if args.git is None:
        if len(args.paths) != 2:  # noqa: PLR2004
            raise InputError("write two files or folders, OLD and NEW; or --git REVISION [PATH...]")
        _are_there(args.paths)
        old, new = args.paths
        return read_side.read([old], options), read_side.read([new], options)
    from webhook.verifying import revision

    paths = args.paths or (os.curdir,)
    if "-" in paths:
        raise InputError("stdin is in no revision: name files or folders with --git")
    root = revision.root_of(paths[0])
    below = [os.path.relpath(os.path.abspath(each), root) for each in paths]  # noqa: PTH100
    for path, name in zip(paths, below, strict=True):
        if Path(name).parts[:1] == (os.pardir,):
            raise InputError(f"{path}: is not in the repository {root}")
    folder, missing = stack.enter_context(revision.checked_out(root, args.git))
    there = [os.path.normpath(os.path.join(folder, each)) for each in below]  # noqa: PTH118
    was = [each for each in there if os.path.lexists(each)]
    _are_there([path for path, before in zip(paths, there, strict=True) if before not in was])
    now = [each for each in paths if os.path.lexists(each)]
    old = read_side.read(was, replace(options, base=folder, label=args.git))
    old.unread += [
        read_side.Unread(f"{args.git}:{path}", path, why)
        for path, why in missing.items()
        if any(Path(path).is_relative_to(each) for each in below)
    ]
    return old, read_side.read(now, replace(options, base=root))


def _are_there(paths: Sequence[str]) -> None:
    for each in paths:
        if each != "-" and not os.path.lexists(each):
            raise InputError(f"{each}: is not there")


def _server(args: SimpleNamespace, settings: Settings) -> Store | None:
    """What stores an object in the cluster, as a dry run; None without --server."""
    if args.server:
        return store(args.kubeconfig, args.context, settings)
    for dest in ("kubeconfig", "context"):
        if getattr(args, dest):
            raise InputError(f"--{dest} is only for clusters: add --server, or leave it out")
    return None


def store(kubeconfig: str | None, context: str | None, settings: Settings) -> Store:
    """What this cluster would store of an object."""
    from webhook.cluster import client
    from webhook.cluster.dry_run import DryRun

    api = client.connected(kubeconfig, context)
    rehearsal = DryRun(api, client.namespace(kubeconfig, context), settings)

    def stored(obj: dict[str, Any]) -> dict[str, Any]:
        try:
            return rehearsal.stored(obj)
        except client.Fault as fault:
            if fault.away:
                raise client.no_answer(fault) from fault
            raise NotTaken(str(fault)) from fault

    return stored


def summary(found: Sequence[Compared]) -> str:
    """The number of objects of each result."""
    counts = Counter(each.result for each in found)
    parts = ", ".join(f"{counts[each]:,} {each}" for each in Result if counts[each])
    return f"{len(found):,} compared: {parts}" if found else "nothing to compare"


def _text(found: Sequence[Compared], *, quiet: bool) -> str:
    lines = []
    for each in found:
        if quiet and each.result is Result.EQUAL:
            continue
        why = f": {sentence(each.why)}" if each.why else ""
        names = dict.fromkeys((visible(each.path), visible(each.name)))  # a file has one name
        lines.append(f"{': '.join(names)}: {each.result}{why}")
        lines += [f"  converted first: {sentence(said)}" for said in each.conversions]
        lines += [f"  {visible(line)}" for line in each.diff.splitlines()]
    return "".join(f"{line}\n" for line in (*lines, summary(found)))


def _printed(form: str, found: Sequence[Compared], texts: dict[str, str]) -> str:
    if form == "text":
        return _text(found, quiet=False)
    if form in PRINTED:
        return PRINTED[form](_data(found))
    return REPORTS[form](file_command.of_repository(_report(found, texts)))


def _data(found: Sequence[Compared]) -> dict[str, Any]:
    counts = Counter(each.result for each in found)
    return {
        "version": 1,
        "summary": {each.value: counts[each] for each in Result},
        "objects": [
            {
                "object": storable(each.name),
                "result": each.result.value,
                "old": storable(each.old_path),
                "new": storable(each.path),
                "line": each.place.line,
                "why": storable(each.why),
                "converted": [storable(said) for said in each.conversions],
                "diff": storable(each.diff),
            }
            for each in found
        ],
    }


def _report(found: Sequence[Compared], texts: dict[str, str]) -> Report:
    """The differences as findings, and what is not provable as skipped parts."""
    results: dict[str, FileResult] = {}
    for each in found:
        result = results.setdefault(each.path, FileResult(each.path, text=texts.get(each.path, "")))
        if each.result is Result.DIFFERENT:
            located = Located(
                "verify",
                f"it is not what the webhook makes of OLD: {each.why}",
                Status.MANUAL,
                each.place,
                object=each.name,
            )
            results[each.path] = replace(result, located=(*result.located, located))
        elif each.result is Result.NOT_PROVABLE:
            skipped = Skipped(f"{each.name} is not provable: {each.why}", each.place)
            results[each.path] = replace(result, skipped=(*result.skipped, skipped))
    return Report(tuple(each for each in results.values() if each.remarks), files=len(results))
