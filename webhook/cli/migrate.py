"""`gpu-webhook migrate`: prints what it would change in files; with --write, changes it.

Data go to stdout, words to stderr: `migrate -f x.yaml | git apply` works, and so does
`migrate -f - < x.yaml | kubectl apply -f -`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.cli import on_files
from webhook.cli.judging import STDIN, judge
from webhook.cli.progress import progress
from webhook.core.errors import InputError
from webhook.migration.results import Report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import SimpleNamespace

    from webhook.cli.progress import Progress
    from webhook.migration.results import FileResult, Plan
    from webhook.migration.source import Source


def run(args: SimpleNamespace) -> int:
    """Print, or write, what is to change; the exit code says what is left to do."""
    if args.write and args.check:
        raise InputError("--write and --check: leave one out; --check changes nothing")
    on_files.check_outputs(args)
    asked, seen = on_files.plan(args), on_files.Seen()
    if STDIN in on_files.arguments(args)[0]:
        return _filter(args, asked)
    with progress() as tell:
        found = on_files.report(_migrated(args, asked, tell, seen), seen)
    try:
        on_files.write_outputs(args, found)
        _tell(args, found, seen)
        sys.stdout.flush()
    except (InputError, OSError) as error:
        if args.write and not isinstance(error, BrokenPipeError):
            _say_written(found)
        raise
    on_files.warn_of_the_rest(args, found)
    return on_files.exit_code(args, found)


def _migrated(
    args: SimpleNamespace, asked: Plan, tell: Progress, seen: on_files.Seen
) -> Iterator[FileResult]:
    """Each result; with --write, once its file is written."""
    for result, source in on_files.judged(args, asked, tell, seen):
        if args.write and source is not None and result.new_text is not None:
            yield _written(result, source)
        else:
            yield result


def _written(result: FileResult, source: Source) -> FileResult:
    from webhook.migration import replacing

    new = on_files.new_bytes(result, source)
    try:
        said = replacing.replace(source.path, lambda raw: new if raw in (source.raw, new) else None)
    except replacing.UnwritableError as error:
        return replace(result, error=str(error))
    if said:
        print(f"gpu-webhook: {result.path} {said}", file=sys.stderr)  # noqa: T201
    return on_files.done(result)


def _say_written(found: Report) -> None:
    """On stderr, what was done although no report of it could be written."""
    for each in found.results:
        if each.new_text is not None and not each.error:
            print(f"gpu-webhook: {each.path} is written", file=sys.stderr)  # noqa: T201


def _tell(args: SimpleNamespace, found: Report, seen: on_files.Seen) -> None:
    """Data on stdout as asked for, and words on stderr."""
    changed = [each for each in found.results if each.new_text is not None]
    if args.output or args.write:
        on_files.print_report(args.output or "text", found, seen if args.diff else None)
        return
    if args.check and not args.diff:
        on_files.write_text("".join(f"{each.path}\n" for each in changed))
    else:
        on_files.print_diffs(found.results, seen)
    _say(found)
    if changed and not args.check and STDIN not in on_files.arguments(args)[0]:
        print("Nothing is written yet: add --write.", file=sys.stderr)  # noqa: T201


def _say(found: Report) -> None:
    """On stderr, what the diff does not show, and how much there is."""
    from webhook.cli import report_console

    report_console.remarks(found, report_console.console(sys.stderr))


def _filter(args: SimpleNamespace, asked: Plan) -> int:
    """Stdin to stdout: the new text; or a report, the diff, or nothing if it is only checked."""
    if on_files.arguments(args)[0] != [STDIN] or args.kustomize:
        raise InputError("- stands alone: its new text goes to stdout")
    if args.write:
        raise InputError("- has no file to write: leave --write out, the new text goes to stdout")
    result, source = judge(STDIN, asked)
    as_text = not (args.check or args.diff or args.output) and source is not None
    found = Report((on_files.done(result) if as_text else result,), files=1)
    marked = {result.path} if source is not None and source.bom else set()
    seen = on_files.Seen(1, marked=marked)
    on_files.write_outputs(args, found)
    if as_text and source is not None:
        on_files.write_bytes(on_files.new_bytes(result, source))
        _say(found)
    else:
        _tell(args, found, seen)
    return on_files.exit_code(args, found)
