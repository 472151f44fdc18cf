"""The flags of the commands that work on files: `scan` and `migrate`, as kubectl calls them."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from webhook.cli.environment import flag

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMATS = ("text", "wide", "json", "yaml", "markdown", "html", "sarif", "junit", "github")
_VERSION = re.compile(r"v?1\.(\d{1,3})(\.\d{1,5})?")


def scan(command: argparse.ArgumentParser) -> None:
    """The flags of `scan`."""
    _files(command)
    _reports(command)
    flag(command, "--diff", action="store_true", help="show each file before and after, too")
    _choices(command)
    cluster = command.add_argument_group("of a cluster, instead of files")
    flag(cluster, "--cluster", action="store_true", help="look at the live workloads of a cluster")
    flag(
        cluster,
        "-A",
        "--all-namespaces",
        action="store_true",
        help="of all namespaces (default: the one of the context)",
    )
    flag(cluster, "-n", "--namespace", metavar="NAME", help="of this namespace")
    flag(cluster, "-l", "--selector", metavar="SELECTOR", help="only with these labels, as app=x")
    flag(
        cluster,
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster (default: as kubectl)",
    )
    flag(cluster, "--context", metavar="NAME", help="the context of the kubeconfig")


def migrate(command: argparse.ArgumentParser) -> None:
    """The flags of `migrate`."""
    _files(command)
    doing = command.add_mutually_exclusive_group()
    # No variables: what stands in the environment must not turn a look into a change.
    doing.add_argument(
        "-w",
        "--write",
        action="store_true",
        help="change the files (default: print the diff, change nothing)",
    )
    doing.add_argument("--check", action="store_true", help="only name the files that would change")
    flag(command, "--diff", action="store_true", help="print the diff also with --write, or of -")
    _reports(command)
    _choices(command)


def _files(command: argparse.ArgumentParser) -> None:
    command.add_argument("paths", metavar="PATH", nargs="*", help="the same as -f PATH")
    flag(
        command,
        "-f",
        "--filename",
        metavar="PATH",
        action="append",
        help="a file, a folder, a glob, or - for stdin; may be repeated",
    )
    flag(command, "-R", "--recursive", action="store_true", help="also folders within folders")
    flag(
        command,
        "-k",
        "--kustomize",
        metavar="DIR",
        action="append",
        help="the files that a kustomization is made of",
    )
    flag(
        command,
        "--exclude",
        metavar="GLOB",
        action="append",
        help="leave out what matches, as vendor/ or *.bak; .gitignore is heeded anyway",
    )


def _reports(command: argparse.ArgumentParser) -> None:
    flag(command, "-o", "--output", choices=FORMATS, metavar="FORMAT", help=f"{_one_of(FORMATS)}")
    flag(
        command,
        "--output-file",
        metavar="FORMAT=FILE",
        type=_output_file,
        action="append",
        help="write this report, too; may be repeated",
    )
    flag(
        command,
        "--fail-on",
        choices=("fixable", "person"),
        default="fixable",
        help="what is no success; person: not what `migrate --write` does (default: fixable)",
    )
    flag(command, "--exit-zero", action="store_true", help="findings are no failure; errors are")


def _choices(command: argparse.ArgumentParser) -> None:
    flag(
        command,
        "--rule",
        metavar="RULE",
        action="append",
        help="ask only this rule, as GPU101 or legacy-resource; may be repeated",
    )
    flag(command, "--ignore-rule", metavar="RULE", action="append", help="do not ask this rule")
    command.add_argument(
        "--unsafe", action="store_true", help="also what may change how a pod runs"
    )
    flag(
        command,
        "--target-version",
        metavar="1.N",
        type=_version,
        default="1.36",
        help="the Kubernetes that the manifests are for (default: 1.36)",
    )
    flag(command, "--config", metavar="FILE", help="settings, as YAML (default: none)")
    flag(
        command,
        "--inventory",
        metavar="FILE",
        help="the cluster's nodes: what `kubectl get nodes -o yaml` or `-o json` prints",
    )


def _version(text: str) -> str:
    found = _VERSION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no version of Kubernetes: write 1.36")
    return f"1.{int(found[1])}"


def _output_file(text: str) -> str:
    form, equals, path = text.partition("=")
    if form not in FORMATS or not equals or not path:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write FORMAT=FILE, as sarif=gpu.sarif; the formats are {_one_of(FORMATS)}"
        )
    return text


def _one_of(words: Iterable[str]) -> str:
    return ", ".join(words)
