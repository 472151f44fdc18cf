"""What `scan` and `migrate` share: selects files, runs the rules, prints the reports."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from webhook.cli import inputs
from webhook.cli.progress import LONG
from webhook.cli.workers import Judged, judge, judge_all
from webhook.core.errors import InputError
from webhook.files.results import FileResult, OptedOut, Plan, Report, Skipped, Status
from webhook.files.walk import STDIN
from webhook.reports.escaping import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import SimpleNamespace

    from webhook.cli.progress import Progress
    from webhook.files.source import Source

_MOST_KINDS = 10  # kinds of files that are named
_FOR_PEOPLE = ("text", "wide")
_STATISTICS = "statistics"
_GLOB = re.compile(r"[\\*?\[]")  # special in .gitignore
# Read where only the root of the repository is known.
_OF_REPOSITORIES = ("sarif", "github", "junit", "markdown")


def plan_of(args: SimpleNamespace) -> Plan:
    """The options for each file. InputError for names that do not exist."""
    settings = replace(inputs.settings(args), scope="all-legacy")
    opted_out = OptedOut()
    if len(args.kustomize) == 1:  # other files may be excluded, but its own files are checked
        from webhook.formats import kustomization

        opted_out = kustomization.opted_out_by(args.kustomize[0])
    return Plan(
        settings,
        inputs.inventory(args),
        codes(args.rule),
        codes(args.ignore_rule),
        unsafe=args.unsafe,
        target=(1, int(args.target_version.partition(".")[2])),
        opted_out=opted_out,
    )


def codes(words: Iterable[str]) -> tuple[str, ...]:
    """The codes of these rules; several may be separated by commas."""
    from webhook.cli.explain import find

    return tuple(find(each.strip()).CODE for word in words for each in word.split(",") if each)


def arguments(args: SimpleNamespace) -> tuple[list[str], list[FileResult]]:
    """The named files, folders and globs, and the names in a kustomization that do not exist."""
    named, vain = [*args.paths, *args.filename], []
    if args.kustomize:
        from webhook.formats import kustomization

        for folder in args.kustomize:
            parts = kustomization.parts(folder)
            named += parts.files
            vain += [FileResult(file, skipped=(Skipped(why),)) for file, why in parts.missing]
    if not named:
        raise InputError(
            "no files are named: write files or folders, such as -f deploy/, or - for stdin"
        )
    return named, vain


# For a link to a file outside of the arguments: it is read but not edited.
_HELD = "the link leads to {}, which is not among the arguments; name that file"


@dataclass(slots=True)
class Seen:
    """Facts about all files of a run."""

    files: int = 0  # files that were checked
    stdin: int = 0  # how many of them were stdin
    uncompared: int = 0  # files with GPU pods that could not be compared with nodes
    marked: set[str] = field(default_factory=set)  # files with a result and a byte order mark
    others: Counter[str] = field(default_factory=Counter)  # ends of names that are only searched


def judged(args: SimpleNamespace, plan: Plan, progress: Progress, seen: Seen) -> Iterator[Judged]:
    """The result of each file, as soon as it is known; files without findings are dropped."""
    from webhook.files import candidates, search_words
    from webhook.files.source import is_read

    named, vain = arguments(args)
    plan = _of_files(args, plan, named)
    wanted = candidates.Wanted(named, plan.below, plan.excluded)

    def show_progress(number: int, _: int) -> None:
        seen.files = number
        if number >= LONG:
            progress("files", number, None)

    def paths() -> Iterator[str]:
        for found in candidates.candidates(
            wanted, search_words.words(plan.settings), show_progress, others=seen.others
        ):
            if isinstance(found, str):
                seen.stdin += found == STDIN
                yield found
            else:
                vain.append(found)

    for each in judge_all(paths(), plan):
        seen.uncompared += each.result.uncompared
        if each.result.kind != "other" and each.source and not is_read(each.source.path):
            seen.others[candidates.end(each.source.path)] -= 1  # the whole text is objects
        if each.result.remarks or each.result.new_text is not None:
            if each.source is not None and each.source.bom:
                seen.marked.add(each.result.path)
            changed = each.result.new_text is not None
            target = candidates.leads_out(each.result.path, wanted) if changed else ""
            yield each._replace(result=each.result.undone(_HELD.format(target))) if target else each
    yield from map(Judged, vain)


def _of_files(args: SimpleNamespace, plan: Plan, named: list[str]) -> Plan:
    """The plan for these files and folders."""
    excluded = (*args.exclude, *_own_reports(args))
    return replace(plan, named=tuple(named), below=not args.no_recursive, excluded=excluded)


def together(args: SimpleNamespace, found: list[Judged], plan: Plan) -> list[Judged]:
    """The results; amounts wait where those that belong to them do."""
    from webhook.formats.legacy_pods import does_amounts

    if all(each.result.new_text is None for each in found):
        return found
    from webhook.projects import outside_amounts, ytt_overlays

    plan = _of_files(args, plan, arguments(args)[0])
    stay = ytt_overlays.waiting([each.result for each in found], plan)
    found = [
        each._replace(result=each.result.undone(stay[each.result.path]))
        if each.result.path in stay
        else each
        for each in found
    ]
    if not any(does_amounts(each.result) for each in found):
        return found
    found = _of_charts(found, plan)
    return _held(found, outside_amounts.waiting([each.result for each in found], plan), plan)


def _of_charts(found: list[Judged], plan: Plan) -> list[Judged]:
    """The results; amounts wait where edits of another file of their chart are not made."""
    reasons = {each.result.path: each.of_chart for each in found if each.of_chart}
    if not reasons:
        return found
    from webhook.files.source import STREAM
    from webhook.formats.legacy_pods import does_amounts
    from webhook.projects.held_together import groups

    results = [each.result for each in found if each.of_chart or does_amounts(each.result)]
    planned = [each.path for each in results if each.path != STREAM]
    waits: dict[str, str] = {}
    for group in groups(planned, plan):
        for path in group:
            others = (reasons[each] for each in group if each in reasons and each != path)
            waits[path] = next(others, "")
    return _held(found, waits, plan)


def _held(found: list[Judged], waits: Mapping[str, str], plan: Plan) -> list[Judged]:
    """The results, where amounts wait for such reasons."""
    from webhook.formats.legacy_pods import with_amounts_held

    return [
        judge(path, with_amounts_held(plan, why))
        if (why := waits.get(path := each.result.path, ""))
        else each
        for each in found
    ]


def new_bytes(result: FileResult, source: Source) -> bytes:
    """The new bytes of the file; the same bytes if nothing changes."""
    return source.raw if result.new_text is None else source.bytes_of(result.new_text)


def done(result: FileResult) -> FileResult:
    """The result after its new text was written or printed."""
    return result.changed(
        lambda each: replace(each, status=Status.FIXED) if each.status is Status.FIXABLE else each
    )


def report(found: Iterable[FileResult], seen: Seen) -> Report:
    """All results, in the order of paths."""
    results = tuple(sorted(found, key=lambda each: each.path))
    return Report(results, seen.files + seen.stdin, _root().name, time.time())


def warn_of_the_rest(args: SimpleNamespace, found: Report, seen: Seen) -> None:
    """Warn on stderr of what was not found, or not compared with the inventory."""
    if args.quiet:
        return
    if not found.files and not found.results:
        words = "no file was checked: there is none of a kind that is searched"
        print(f"gpu-webhook: {words}", file=sys.stderr)  # noqa: T201
    if others := [(number, end) for end, number in seen.others.items() if number > 0]:
        print(f"gpu-webhook: {_only_searched(others)}", file=sys.stderr)  # noqa: T201
    if seen.uncompared:
        words = (
            "files have GPU pods that are" if seen.uncompared > 1 else "file has a GPU pod that is"
        )
        print(  # noqa: T201
            f"gpu-webhook: {seen.uncompared:,} {words} not compared with the nodes of --inventory, "
            "since a template action or a placeholder stands in the object; render it and scan the "
            "result",
            file=sys.stderr,
        )


def _only_searched(others: list[tuple[int, str]]) -> str:
    """How many texts of which kinds were not read as manifests."""
    total = sum(number for number, _ in others)
    ordered = sorted(others, key=lambda each: (-each[0], each[1]))
    shown = [f"{number:,} {visible(end)}" for number, end in ordered[:_MOST_KINDS]]
    if rest := sum(number for number, _ in ordered[_MOST_KINDS:]):
        shown.append(f"{rest:,} of other kinds")
    noun = "file was" if total == 1 else "files were"
    return f"{total:,} {noun} only searched for legacy words, line by line: {', '.join(shown)}"


def exit_code(args: SimpleNamespace, found: Report) -> int:
    """The exit code, the same for every output format."""
    return found.exit_code(Status(args.fail_on), exit_zero=args.exit_zero)


def check_outputs(args: SimpleNamespace) -> None:
    """Check that each report can be written; done before the work, not after it."""
    if args.statistics:
        if args.output or args.diff or args.quiet:
            raise InputError("--statistics prints numbers: leave out -o, --diff and -q")
        args.output = _STATISTICS
    if args.diff and args.output not in (None, *_FOR_PEOPLE):
        raise InputError(f"--diff prints text: leave it out, or leave out -o {args.output}")
    check_files(args)


def check_files(args: SimpleNamespace) -> None:
    """Check that each --output-file can be written."""
    for text in args.output_file:
        folder = Path(text.partition("=")[2]).parent
        if not folder.is_dir():
            raise InputError(f"--output-file {text}: there is no folder {folder}; create it first")


def _own_reports(args: SimpleNamespace) -> Iterator[str]:
    """The patterns of the reports that this run writes: an earlier run's quotes legacy words."""
    for text in args.output_file:
        path = os.path.relpath(text.partition("=")[2])
        yield "/" + _GLOB.sub(r"\\\g<0>", path.replace(os.sep, "/"))


def write_outputs(args: SimpleNamespace, found: Report) -> None:
    """Write the reports that go into files."""
    write_files(args, lambda form: _as(form, found))


def write_files(args: SimpleNamespace, printed: Callable[[str], str]) -> None:
    """Write each --output-file in its format."""
    for text in args.output_file:
        form, _, path = text.partition("=")
        try:
            Path(path).write_text(printed(form), encoding="utf-8", newline="")
        except OSError as error:
            why = error.strerror
            raise InputError(f"--output-file {text}: cannot be written: {why}") from error


def print_report(
    form: str, found: Report, diffs_of: Seen | None = None, *, quiet: bool = False
) -> None:
    """Print the report on stdout; the diffs before it, if they are wanted."""
    if form == _STATISTICS:
        from webhook.reports.text import statistics

        sys.stdout.write(statistics(found))
        return
    if form not in _FOR_PEOPLE:
        sys.stdout.write(_as(form, found))
        return
    from webhook.cli import report_console

    if diffs_of is not None:
        print_diffs(found.results, diffs_of)
    report_console.report(found, sys.stdout, wide=form == "wide", quiet=quiet)


def print_diffs(found: Sequence[FileResult], seen: Seen) -> None:
    """Print patches: in colour on a terminal, otherwise as `git apply` needs them."""
    from webhook.cli import report_console
    from webhook.files import diff

    coloured = report_console.console(sys.stdout) is not None
    for result in found:
        if result.new_text is None:
            continue
        if coloured:
            report_console.diff(result, sys.stdout)
        else:
            mark = "\ufeff" if result.path in seen.marked else ""
            path = _without_links(result.path)
            lines = diff.unified_lines(path, mark + result.text, mark + result.new_text)
            write_bytes(line.encode("utf-8", "surrogateescape") for line in lines)


def _without_links(path: str) -> str:
    """The path of the file itself, if it is below: git applies no patch through a link."""
    here, target = os.path.realpath(os.curdir), os.path.realpath(path)
    is_below = not Path(path).is_absolute() and os.path.commonpath([here, target]) == here
    return os.path.relpath(target, here) if is_below else path


def write_text(text: str) -> None:
    """Write to stdout without changing line ends, also characters that the locale does not have."""
    write_bytes((text.encode("utf-8", "surrogateescape"),))


def write_bytes(pieces: Iterable[bytes]) -> None:
    """Write to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.writelines(pieces)
    sys.stdout.buffer.flush()


def _as(form: str, found: Report) -> str:
    from webhook.reports.formats import REPORTS

    return REPORTS[form](of_repository(found) if form in _OF_REPOSITORIES else found)


def of_repository(found: Report) -> Report:
    """The same results with paths from the root of the repository."""
    root = _root()
    return replace(found, results=tuple(_rooted(each, root) for each in found.results))


def _root() -> Path:
    from webhook.files.folder import repository

    return Path(repository(os.curdir) or Path.cwd())


def _rooted(result: FileResult, root: Path) -> FileResult:
    path = os.path.abspath(result.path)  # noqa: PTH100  # links are to be named as they are
    inside = os.path.commonpath([path, root]) == str(root) and os.path.lexists(path)
    return replace(result, path=os.path.relpath(path, root)) if inside else result
