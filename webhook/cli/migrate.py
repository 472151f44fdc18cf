"""`gpu-webhook migrate`: prints what it would change in files; with --write, changes it.

Data go to stdout, messages to stderr: `migrate -f x.yaml | git apply` works, and so does `migrate
-f - < x.yaml | kubectl apply -f -`.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.cli import file_command
from webhook.cli.progress import progress
from webhook.cli.starting import stopped_by_signals
from webhook.cli.workers import judge
from webhook.core.errors import InputError
from webhook.files.results import FileResult, Plan, Report
from webhook.files.walk import STDIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import SimpleNamespace

    from webhook.cli.progress import Progress
    from webhook.cli.workers import Judged
    from webhook.files.source import Source


def run(args: SimpleNamespace) -> int:
    """Print or write the changes; the exit code shows what remains to be done."""
    if args.write and args.check:
        raise InputError("--write and --check: leave one out; --check changes nothing")
    file_command.check_outputs(args)
    plan, seen = file_command.plan_of(args), file_command.Seen()
    if STDIN in file_command.arguments(args)[0]:
        return _filter(args, plan)
    with stopped_by_signals():
        return _run(args, plan, seen)


def _run(args: SimpleNamespace, plan: Plan, seen: file_command.Seen) -> int:
    written: dict[str, bytes] = {}
    try:
        with progress() as show_progress:
            found = file_command.report(_migrated(args, plan, show_progress, seen, written), seen)
        file_command.write_outputs(args, found)
        _print_result(args, found, seen)
        sys.stdout.flush()
    except (InputError, OSError, KeyboardInterrupt):  # no report shows what is written
        _say_written(written)
        raise
    file_command.warn_of_the_rest(args, found, seen)
    return file_command.exit_code(args, found)


def _migrated(
    args: SimpleNamespace,
    plan: Plan,
    show_progress: Progress,
    seen: file_command.Seen,
    written: dict[str, bytes],
) -> Iterator[FileResult]:
    """Each result; with --write, after its file is written.

    No file is written before all are read: those of a chart or a kustomization decide together.
    """
    found = [*file_command.judged(args, plan, show_progress, seen)]
    found = file_command.together(args, found, plan)
    if args.write or args.verify:
        found = _allowed(found, args, plan)
    if args.write:
        found = _in_order(found)
    for number, (result, source, _) in enumerate(found):
        if args.write and source is not None and result.new_text is not None:
            made = _written(result, source, args, written)
            if made.error:
                found[number:] = _without_group(found[number:], plan)
            yield made
        else:
            yield result


def _in_order(found: list[Judged]) -> list[Judged]:
    """Amounts come last: until then the webhook repairs a pod of which a part is written."""
    from webhook.files.atomic_write import is_read_only
    from webhook.formats.legacy_pods import does_amounts

    def order(each: Judged) -> tuple[bool, bool]:
        is_written = each.source is not None and each.result.new_text is not None
        is_refused = is_written and is_read_only(each.result.path)
        return not is_refused, is_written and does_amounts(each.result)

    return sorted(found, key=order)


def _without_group(found: list[Judged], plan: Plan) -> list[Judged]:
    """The results without new texts of the chart, or kustomization, of the first, which failed."""
    from webhook.projects import held_together

    path = found[0].result.path
    changed = {each: result for each, (result, _) in _changed(found).items()}
    held = held_together.held(changed, {path: f"{path} could not be written"}, plan)
    return [each._replace(result=held.get(each.result.path, each.result)) for each in found]


def _changed(found: Iterable[Judged]) -> dict[str, tuple[FileResult, Source]]:
    return {
        each.result.path: (each.result, each.source)
        for each in found
        if each.source is not None and each.result.new_text is not None
    }


def _allowed(found: list[Judged], args: SimpleNamespace, plan: Plan) -> list[Judged]:
    """The results, without the new texts that must not be written."""
    from webhook.projects import held_together

    changed = _changed(found)
    reasons: dict[str, str] = {}
    if args.write and not args.force:
        reasons = _not_to_undo({path: source.raw for path, (_, source) in changed.items()})
    if args.verify:
        from webhook.verifying import unproven

        reasons |= unproven.reasons(changed, plan)
    held = held_together.held({path: each[0] for path, each in changed.items()}, reasons, plan)
    if args.write:
        _remember(each for path, each in changed.items() if path not in held)
    return [each._replace(result=held.get(each.result.path, each.result)) for each in found]


def _not_to_undo(files: dict[str, bytes]) -> dict[str, str]:
    """Why some of these files are not written: what would be lost has no other copy."""
    from webhook.files import atomic_write, work_tree

    return atomic_write.of_several_names(files) | work_tree.unstaged(files)


def _remember(written: Iterable[tuple[FileResult, Source]]) -> None:
    from webhook.files import work_tree

    work_tree.remember({each[1].path: file_command.new_bytes(*each) for each in written})


def _written(
    result: FileResult, source: Source, args: SimpleNamespace, written: dict[str, bytes]
) -> FileResult:
    """Write the file. It is in `written` before its name changes: Ctrl-C may come right after."""
    from webhook.files import atomic_write

    new = file_command.new_bytes(result, source)
    written[result.path] = new
    try:
        if args.backup:
            atomic_write.keep(source.path, source.raw)
        said = atomic_write.replace(
            source.path, lambda raw: new if raw in (source.raw, new) else None
        )
    except atomic_write.UnwritableError as error:
        del written[result.path]
        return replace(result, error=str(error))
    if said:
        print(f"gpu-webhook: {result.path} {said}", file=sys.stderr)  # noqa: T201
    return file_command.done(result)


def _say_written(written: dict[str, bytes]) -> None:
    """Name the files that are written; of the last one only its content shows whether it is."""
    last = next(reversed(written), "")
    for path, new in written.items():
        if path != last or _has(path, new):
            print(f"gpu-webhook: {path} is written", file=sys.stderr)  # noqa: T201


def _has(path: str, content: bytes) -> bool:
    with suppress(OSError):
        return Path(path).read_bytes() == content
    return False


def _print_result(args: SimpleNamespace, found: Report, seen: file_command.Seen) -> None:
    """Data on stdout, messages on stderr."""
    changed = [each for each in found.results if each.new_text is not None]
    if args.output or args.write:
        diffs_of = seen if args.diff else None
        file_command.print_report(args.output or "text", found, diffs_of, quiet=args.quiet)
        return
    if args.check and not args.diff:
        file_command.write_text("".join(f"{each.path}\n" for each in changed))
    else:
        file_command.print_diffs(found.results, seen)
    _say(found, quiet=args.quiet)
    if changed and not (args.check or args.quiet) and STDIN not in file_command.arguments(args)[0]:
        print("Nothing is written yet: add --write.", file=sys.stderr)  # noqa: T201


def _say(found: Report, *, quiet: bool) -> None:
    """Print on stderr the findings that the diff does not show, and the summary."""
    from webhook.cli import report_console

    report_console.remarks(found, sys.stderr, quiet=quiet)


def _filter(args: SimpleNamespace, plan: Plan) -> int:
    """Stdin to stdout: the new text; or a report, the diff, or nothing with --check."""
    if file_command.arguments(args)[0] != [STDIN] or args.kustomize:
        raise InputError("- must be the only file: its new text goes to stdout")
    if args.write:
        raise InputError("- cannot be written: leave out --write; the new text goes to stdout")
    judged = [judge(STDIN, plan)]
    result, source, _ = (_allowed(judged, args, plan) if args.verify else judged)[0]
    as_text = not (args.check or args.diff or args.output) and source is not None
    found = Report((file_command.done(result) if as_text else result,), files=1)
    marked = {result.path} if source is not None and source.bom else set()
    seen = file_command.Seen(1, marked=marked)
    file_command.write_outputs(args, found)
    if as_text and source is not None:
        file_command.write_bytes((file_command.new_bytes(result, source),))
        _say(found, quiet=args.quiet)
    else:
        _print_result(args, found, seen)
    return file_command.exit_code(args, found)
