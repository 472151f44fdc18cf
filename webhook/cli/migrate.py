"""`gpu-webhook migrate`: prints what it would change in files; with --write, changes it.

Data go to stdout, words to stderr: `migrate -f x.yaml | git apply` works, and so does
`migrate -f - < x.yaml | kubectl apply -f -`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from webhook.cli import on_files
from webhook.cli.progress import progress
from webhook.core.errors import InputError
from webhook.migration.results import Report, Status

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from webhook.cli.progress import Progress
    from webhook.migration.results import FileResult, Plan


def run(args: argparse.Namespace) -> int:
    """Print, or write, what is to change; the exit code says what is left to do."""
    on_files.check_outputs(args)
    asked, seen = on_files.plan(args), on_files.Seen()
    if on_files.STDIN in on_files.arguments(args)[0]:
        return _filter(args, asked)
    with progress() as tell:
        found = on_files.report(_migrated(args, asked, tell, seen), seen)
    on_files.write_outputs(args, found)
    _tell(args, found)
    return on_files.exit_code(args, found)


def _migrated(
    args: argparse.Namespace, asked: Plan, tell: Progress, seen: on_files.Seen
) -> Iterator[FileResult]:
    """Each result; with --write, once its file is written."""
    from webhook.migration import files

    for result in on_files.results(args, asked, tell, seen):
        if not args.write or result.new_text is None:
            yield result
            continue
        error = files.write(result)
        yield replace(result, error=error) if error else on_files.done(result)


def _tell(args: argparse.Namespace, found: Report) -> None:
    """Data on stdout as asked for, and words on stderr."""
    changed = [each for each in found.results if each.new_text is not None]
    if args.output or args.write:
        diffs = args.diff and args.output in (None, "text", "wide")
        on_files.print_report(args.output or "text", found, diffs=diffs)
        return
    if args.check and not args.diff:
        on_files.write_text("".join(f"{each.path}\n" for each in changed))
    else:
        on_files.print_diffs(found.results)
    _say(found)


def _say(found: Report) -> None:
    """On stderr, what the diff does not show, and how much there is."""
    from webhook.cli import report_console

    left = (Status.PERSON, Status.NOTICE)
    rest = [
        replace(each, located=tuple(f for f in each.located if f.status in left))
        for each in found.results
    ]
    report_console.report(replace(found, results=tuple(rest)), report_console.console(sys.stderr))


def _filter(args: argparse.Namespace, asked: Plan) -> int:
    """Stdin to stdout: the new text, or the diff, or nothing if it is only checked."""
    from webhook.migration import files
    from webhook.migration.migrate import migrate_text

    if on_files.arguments(args)[0] != [on_files.STDIN] or args.kustomize:
        raise InputError("- stands alone: its new text goes to stdout")
    if args.write:
        raise InputError("- has no file to write: leave --write out, the new text goes to stdout")
    source = files.read(on_files.STDIN)
    result = source if isinstance(source, files.FileResult) else migrate_text(source, asked)
    printed = not (args.check or args.diff or args.output)
    if printed and not result.error:
        result = on_files.done(result)
    found = Report((result,), files=1)
    on_files.write_outputs(args, found)
    if printed and not result.error:
        on_files.write_bytes(source.bytes_of(result.new_text or source.text))
    if printed:
        _say(found)
    else:
        _tell(args, found)
    return on_files.exit_code(args, found)
