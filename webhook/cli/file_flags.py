"""Flags of the commands that read files: which files, what is written, the reports, the rules."""

from __future__ import annotations

import os

import click

from webhook.cli.flags import FILE, FORMATS, Flag, rules, section, version_of
from webhook.cli.shared_flags import CONFIG, INVENTORY, NO_VARIABLE, output_files

EXCLUDE = Flag(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Skip matching files, such as vendor/ or *.bak. Files in .gitignore are skipped, too.",
)
FILES = section(
    "Files",
    click.Argument(["paths"], metavar="[PATH]...", nargs=-1, type=FILE, help="Same as -f PATH."),
    Flag(
        "-f",
        "--filename",
        metavar="PATH",
        multiple=True,
        help="A file, a folder, a glob, or - for stdin. May be repeated.",
        **NO_VARIABLE,
    ),
    # As in kubectl, where it is needed; here subfolders are searched anyway.
    Flag("-R", "--recursive", is_flag=True, hidden=True, expose_value=False),
    Flag("--no-recursive", is_flag=True, help="Do not search the subfolders of folders."),
    Flag(
        "-k",
        "--kustomize",
        metavar="DIR",
        multiple=True,
        help="Check the files that this kustomization uses.",
        **NO_VARIABLE,
    ),
    EXCLUDE,
)


def _coloured(_ctx: click.Context, _param: click.Parameter, when: str) -> None:
    """All that prints reads these variables, as other programs do."""
    if when != "auto":
        on, off = ("FORCE_COLOR", "NO_COLOR")[:: 1 if when == "always" else -1]
        os.environ[on] = "1"
        os.environ.pop(off, None)


COLOR = Flag(
    "--color",
    type=click.Choice(("auto", "always", "never")),
    default="auto",
    expose_value=False,
    callback=_coloured,
    help="Use colours: on a terminal without NO_COLOR (auto), always, or never.",
)
CHANGES = section(
    "Changes",
    Flag(
        "-w",
        "--write",
        is_flag=True,
        help="Change the files (default: only print the diff).",
        **NO_VARIABLE,
    ),
    Flag("--check", is_flag=True, help="Only list the files that would change.", **NO_VARIABLE),
    Flag("--diff", is_flag=True, help="Print the diff also with --write, or for stdin."),
    Flag(
        "--verify",
        is_flag=True,
        help="Change only files that `verify` proves to be equal; the others are manual.",
    ),
    Flag(
        "--backup",
        is_flag=True,
        help="With --write: keep the old text of each changed file beside it, as FILE.orig.",
    ),
    Flag(
        "--force",
        is_flag=True,
        help="With --write: also change files with unstaged changes in git, and files with "
        "several names (hard links).",
        **NO_VARIABLE,
    ),
)
REPORTS = section(
    "Reports",
    Flag(
        "-o",
        "--output",
        type=click.Choice(FORMATS),
        metavar="FORMAT",
        help=f"Output format: {', '.join(FORMATS)}.",
    ),
    output_files(*FORMATS),
    Flag(
        "--statistics",
        is_flag=True,
        help="Print the number of findings of each rule, not the findings.",
    ),
    Flag(
        "-q",
        "--quiet",
        is_flag=True,
        help="Print each finding in one line, without the summary and messages.",
    ),
    COLOR,
    Flag(
        "--fail-on",
        type=click.Choice(("fixable", "manual")),
        default="fixable",
        help="Findings that make the exit code other than 0: any (fixable), or only those that "
        "`migrate --write` cannot fix (manual).",
    ),
    Flag("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
)
TARGET_VERSION = Flag(
    "--target-version",
    metavar="1.N",
    type=version_of,
    default="1.36",
    help="The Kubernetes version that the manifests are for.",
)
VERIFIED = tuple(form for form in FORMATS if form != "wide")
CHOICES = section(
    "Rules and settings",
    Flag(
        "--rule",
        "--select",
        metavar="RULE",
        multiple=True,
        shell_complete=rules,
        help="Use only this rule, such as GPU101 or legacy-resource. May be repeated.",
    ),
    Flag(
        "--ignore-rule",
        "--ignore",
        metavar="RULE",
        multiple=True,
        shell_complete=rules,
        help="Do not use this rule. May be repeated.",
    ),
    Flag(
        "--unsafe",
        is_flag=True,
        help="Also make changes that may alter how a pod runs.",
        **NO_VARIABLE,
    ),
    TARGET_VERSION,
    CONFIG,
    INVENTORY,
)
