"""All commands and flags; each command runs the module of its name, which is loaded only then."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import click

from webhook import __version__
from webhook.cli.file_flags import (
    CHANGES,
    CHOICES,
    EXCLUDE,
    FILES,
    REPORTS,
    TARGET_VERSION,
    VERIFIED,
)
from webhook.cli.flags import FILE, Command, Flag, Group, rules, section
from webhook.cli.shared_flags import (
    CONFIG,
    CONFIGURATION,
    CONTEXT,
    INVENTORY,
    KUBECONFIG,
    NO_VARIABLE,
    OF_INSTALLATION,
    POD_NAMESPACE,
    output,
    output_files,
)

PROGRAM = "gpu-webhook"
COMPLETE = "_GPU_WEBHOOK_COMPLETE"  # the completion script of a shell sets this variable
_EPILOG = """\
Most flags have an environment variable: --bind of serve has GPU_WEBHOOK_SERVE_BIND.

\b
Exit codes: 0 success, no findings, or all written; 1 bad input or usage;
            2 repaired or fixable; 3 denied, or needs manual changes;
            70 a bug in this program; 141 the output was closed
"""


@click.group(
    cls=Group,
    epilog=_EPILOG,
    subcommand_metavar="COMMAND ...",
    context_settings={
        "auto_envvar_prefix": "GPU_WEBHOOK",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
)
@click.version_option(__version__, message="%(prog)s %(version)s", allow_from_autoenv=False)
def commands() -> None:
    """Makes GPU pods of Kubernetes 1.3-1.10 run on current clusters."""


def _command(
    name: str,
    text: str,
    *params: click.Parameter,
    of: click.Group = commands,
    does: str = "",
) -> None:
    """Add a command. `does` is the function that runs it.

    By default this is `run` in the module of its name, or its name in the module of its group.
    """
    usual = f"{name}.run" if of is commands else f"{of.name}.{name.replace('-', '_')}"
    module, _, function = (does or usual).partition(".")

    def run(**given: Any) -> Any:
        return getattr(import_module(f"webhook.cli.{module}"), function)(SimpleNamespace(**given))

    of.add_command(Command(name, help=text, params=[*params], callback=run))


_command(
    "serve",
    "Answer admission reviews over TLS.",
    Flag(
        "--bind",
        metavar="ADDRESS:PORT",
        help="Address to listen on (default: all, IPv6 too, port 8443; loopback with --dev).",
    ),
    Flag("--workers", metavar="N", type=int, default=2, help="Worker processes."),
    Flag(
        "--dev",
        is_flag=True,
        help="Listen on loopback, with development certificates that are created in certs/.",
    ),
    *section(
        "Certificates",
        Flag(
            "--tls-cert-file",
            metavar="FILE",
            default="/etc/gpu-webhook/tls/tls.crt",
            help="Certificate chain, as PEM. It is read again when it changes.",
        ),
        Flag(
            "--tls-private-key-file",
            metavar="FILE",
            default="/etc/gpu-webhook/tls/tls.key",
            help="Its private key, as PEM.",
        ),
        Flag(
            "--tls-wait",
            is_flag=True,
            help="Wait until both files exist: `watch --certificates` writes them.",
        ),
        Flag(
            "--client-ca",
            metavar="FILE",
            help="CA, as PEM. Only clients with a certificate of this CA may send reviews. It is "
            "read again when it changes (default: all clients may).",
        ),
        Flag(
            "--client-name",
            metavar="NAME",
            multiple=True,
            help="Accept only client certificates with this common name, DNS name or URI. May be "
            "repeated (default: any name).",
        ),
    ),
    Flag(
        "--metrics-bind",
        metavar="ADDRESS:PORT",
        help="Address that serves metrics, over plain HTTP at /metrics (default: none).",
    ),
    CONFIG,
    INVENTORY,
    Flag(
        "--snapshot",
        metavar="DIR",
        rival="inventory",
        help="The folder into which `gpu-webhook watch` writes its snapshot of the cluster.",
    ),
)
_command(
    "watch",
    "Keep a snapshot of the cluster's nodes and pods for serve.",
    Flag(
        "--snapshot",
        metavar="DIR",
        required=True,
        help="The folder for the snapshot, best in memory. It is created if it is missing.",
    ),
    *section(
        "Cluster",
        Flag(
            "--kubeconfig",
            metavar="FILE",
            help="Kubeconfig of the cluster (default: in-cluster, otherwise as for kubectl).",
        ),
        CONTEXT,
    ),
    CONFIG,
    *section(
        "Certificates",
        Flag(
            "--certificates",
            metavar="DIR",
            help="Also keep the webhook's own certificates, and write the server's tls.crt and "
            "tls.key into this folder, best in memory (default: certificates come from elsewhere).",
        ),
        Flag(
            "--certificate-for",
            metavar="HOST",
            multiple=True,
            help="A DNS name or address in the own certificates. May be repeated (default: "
            "gpu-webhook.NAMESPACE.svc, with the own namespace).",
        ),
        Flag(
            "--leaf-minutes",
            metavar="N",
            type=click.IntRange(1, 43200),
            default=43200,
            help="How long an own server certificate is valid. It is renewed after two thirds.",
        ),
        CONFIGURATION,
    ),
)
_command(
    "review",
    "Show how the webhook would change or deny objects in files.",
    Flag(
        "-f",
        "--filename",
        metavar="FILE",
        required=True,
        multiple=True,
        help="Pods, workloads, a List or an AdmissionReview, as YAML or JSON; - for stdin. "
        "May be repeated.",
    ),
    output("text", "json", "yaml"),
    CONFIG,
    INVENTORY,
)
_command(
    "explain",
    "Print the manual of a rule.",
    click.Argument(
        ["code"],
        metavar="[CODE]",
        required=False,
        shell_complete=rules,
        help="Code or name, such as GPU101 or legacy-resource. Without it, all rules are listed.",
    ),
)
_command(
    "inventory",
    "Show the GPUs of a cluster: nodes, models, use.",
    output("table", "wide", "json", "yaml", text="Output format; wide adds labels and node names."),
    CONFIG,
    INVENTORY,
    KUBECONFIG,
    CONTEXT,
)

_command(
    "scan",
    "Find legacy GPU use in files or in a cluster.",
    *FILES,
    *REPORTS,
    *section("Reports", Flag("--diff", is_flag=True, help="Also show the changes of each file.")),
    *CHOICES,
    *section(
        "Cluster",
        Flag(
            "--cluster",
            is_flag=True,
            help="Check the live workloads of a cluster instead of files.",
        ),
        Flag(
            "-A",
            "--all-namespaces",
            is_flag=True,
            help="With --cluster: check all namespaces (default: the namespace of the context).",
        ),
        Flag("-n", "--namespace", metavar="NAME", help="With --cluster: check this namespace."),
        Flag(
            "-l",
            "--selector",
            metavar="SELECTOR",
            help="With --cluster: check only objects with these labels, such as app=x.",
        ),
        KUBECONFIG,
        CONTEXT,
    ),
)
_command(
    "migrate",
    "Fix legacy GPU use in files; other bytes stay the same.",
    *FILES,
    *CHANGES,
    *REPORTS,
    *CHOICES,
)
_command(
    "verify",
    "Prove that old files through the webhook are the new ones.",
    click.Argument(
        ["paths"],
        metavar="OLD NEW",
        nargs=-1,
        type=FILE,
        help="Two files or folders (also charts and kustomizations); - for stdin. With --git: the "
        "paths that are compared (default: the current folder).",
    ),
    Flag(
        "--git",
        metavar="REVISION",
        help="Compare this revision of the git repository with the files that are there now.",
        **NO_VARIABLE,
    ),
    Flag(
        "--server",
        is_flag=True,
        help="Let the API server write the defaults of both, by dry runs that store nothing.",
    ),
    KUBECONFIG,
    CONTEXT,
    EXCLUDE,
    output(*VERIFIED),
    output_files(*VERIFIED),
    Flag("-q", "--quiet", is_flag=True, help="Print only what is not equal, and the summary."),
    TARGET_VERSION,
    CONFIG,
    INVENTORY,
)

_config = Group("config", help="Check, show and document the settings.")
commands.add_command(_config)
_command(
    "check",
    "Find the mistakes in settings files.",
    click.Argument(
        ["files"],
        metavar="FILE...",
        nargs=-1,
        required=True,
        type=FILE,
        help="Settings, as YAML; - for stdin.",
    ),
    of=_config,
    does="config_check.run",
)
_command(
    "show",
    "Print every setting, and every flag of serve, with its source.",
    Flag("--config", metavar="FILE", help="Settings, as YAML.", **NO_VARIABLE),
    output("text", "json", "yaml"),
    Flag("--namespace", metavar="NAME", help="Also show the modes of the rules in this namespace."),
    Flag("--labels", metavar="KEY=VALUE,...", help="Labels of that namespace."),
    of=_config,
    does="config_show.run",
)
_command("schema", "Print the JSON Schema of the settings file, for editors.", of=_config)
_command(
    "match-conditions",
    "Print the matchConditions of the webhook configurations.",
    CONFIG,
    of=_config,
)

_certs = Group("certs", help="Show and renew the webhook's own certificates in a cluster.")
commands.add_command(_certs)
_PAGES = ("text", "json", "yaml", "html")
for _name, _text in (
    ("status", "Show the CA, the server certificate, and the caBundles that trust it."),
    ("issue", "Sign a new server certificate now."),
):
    _command(_name, _text, *OF_INSTALLATION, CONFIGURATION, of=_certs)
_command(
    "rotate",
    "Replace the CA in steps during which no call fails.",
    *OF_INSTALLATION,
    CONFIGURATION,
    Flag(
        "--distrust",
        is_flag=True,
        help="Then take all earlier CAs out of every caBundle, because a key may have leaked. It "
        "takes about a minute.",
        **NO_VARIABLE,
    ),
    of=_certs,
)
_command(
    "doctor",
    "Check the webhook in a cluster, and print what to do.",
    *OF_INSTALLATION,
    POD_NAMESPACE,
    output("text", "json", "yaml"),
)
_command(
    "report",
    "Show who still needs the webhook, and whether to remove it.",
    Flag("--cluster", is_flag=True, help="Report on a cluster. There is no other report yet."),
    *OF_INSTALLATION,
    POD_NAMESPACE,
    Flag(
        "--days",
        metavar="N",
        type=click.IntRange(1, 3650),
        default=30,
        help="How long nothing legacy must have come: the interval of your rarest job.",
    ),
    output(*_PAGES),
    output_files(*_PAGES),
)
_command(
    "completion",
    "Generate the script for shell completion.",
    click.Argument(
        ["shell"],
        type=click.Choice(("bash", "zsh", "fish")),
        help="Load it with `source <(gpu-webhook completion bash)`.",
    ),
)


@commands.command()
@click.pass_context
def version(ctx: click.Context) -> int:
    """Print the version of this program."""
    click.echo(f"{ctx.find_root().info_name} {__version__}")
    return 0
