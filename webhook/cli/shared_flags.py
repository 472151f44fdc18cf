"""Flags that several commands take, with or without files."""

from __future__ import annotations

from typing import Any

import click

from webhook.cli.flags import Flag, configuration, namespace, output_file, section

# No variable names files, or turns a look into a change.
NO_VARIABLE: Any = {"allow_from_autoenv": False}
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
section("Cluster", KUBECONFIG, CONTEXT)
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
    type=namespace,
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


def output(*forms: str, text: str = "Output format.") -> Flag:
    """The flag for the output format; the first of the forms is the default."""
    return Flag("-o", "--output", type=click.Choice(forms), default=forms[0], help=text)


def output_files(*forms: str) -> Flag:
    """The flag that also writes reports of these formats to files."""
    return Flag(
        "--output-file",
        metavar="FORMAT=FILE",
        type=output_file(forms),
        multiple=True,
        help="Also write this report to a file. May be repeated.",
    )
