"""Flags that several commands take."""

from __future__ import annotations

import os
from typing import Any

import click

from webhook.cli.flags import (
    FILE,
    FORMATS,
    Flag,
    configuration,
    namespace,
    output_file,
    rules,
    version_of,
)

CONFIG = Flag("--config", metavar="FILE", help="Settings file, as YAML.")
INVENTORY = Flag(
    "--inventory",
    metavar="FILE",
    rival="snapshot",
    help="The nodes of the cluster: the output of `kubectl get nodes -o yaml` or `-o json`.",
)
KUBECONFIG = Flag(
    "--kubeconfig", metavar="FILE", help="Kubeconfig of the cluster (default: as for kubectl)."
)
CONTEXT = Flag("--context", metavar="NAME", help="The context of the kubeconfig to use.")
OF_INSTALLATION = (
    Flag(
        "-n",
        "--namespace",
        metavar="NAME",
        default="gpu-webhook",
        type=namespace,
        help="The namespace of the webhook.",
    ),
    KUBECONFIG,
    CONTEXT,
)
POD_NAMESPACE = Flag(
    "--pod-namespace",
    metavar="NAME",
    default="default",
    help="Where a legacy pod is created as a dry run, which stores nothing.",
)
CONFIGURATION = Flag(
    "--configuration",
    metavar="KIND/NAME",
    multiple=True,
    type=configuration,
    help="A webhook configuration whose caBundle is kept, as mutating/NAME or validating/NAME; it "
    "need not exist. May be repeated (default: those of the manifests).",
)

# No variable names files, or turns a look into a change.
NO_VARIABLE: Any = {"allow_from_autoenv": False}
EXCLUDE = Flag(
    "--exclude",
    metavar="GLOB",
    multiple=True,
    help="Skip matching files, such as vendor/ or *.bak. Files in .gitignore are skipped, too.",
)
FILES = (
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


def output_files(*forms: str) -> Flag:
    """The flag that also writes reports of these formats to files."""
    return Flag(
        "--output-file",
        metavar="FORMAT=FILE",
        type=output_file(forms),
        multiple=True,
        help="Also write this report to a file. May be repeated.",
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
REPORTS = (
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
CHOICES = (
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


def output(*forms: str, text: str = "Output format.") -> Flag:
    """The flag for the output format; the first of the forms is the default."""
    return Flag("-o", "--output", type=click.Choice(forms), default=forms[0], help=text)
