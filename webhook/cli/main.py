"""`gpu-webhook`, the front door: parses the words, then imports the one command asked for."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from webhook import __version__
from webhook.cli import file_flags
from webhook.cli.environment import flag
from webhook.core.errors import WebhookError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FINE, ERROR = 0, 1
_INTERRUPTED = 130
_OUR_BUG = 70
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

_EPILOG = """\
Most flags have an environment variable: --bind has GPU_WEBHOOK_BIND.

exit codes: 0 fine, nothing found, or all written; 1 bad input or usage;
            2 repaired, or can be; 3 denied, or needs a person;
            70 a fault of this program
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with 1: the 2 of argparse means `repaired` here."""
        self.print_usage(sys.stderr)
        self.exit(ERROR, f"{self.prog}: {message}\n")


class _Help(argparse.RawDescriptionHelpFormatter):
    """Puts the longest command and its text on one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = 14  # argparse forgets to count the indentation of commands


def parser(program: str = "gpu-webhook") -> argparse.ArgumentParser:
    """All commands and flags."""
    top = _Parser(
        prog=program,
        description="Makes GPU pods of Kubernetes 1.3-1.10 run on the clusters of today.",
        epilog=_EPILOG,
        formatter_class=_Help,
    )
    top.add_argument("--version", action="version", version=f"{program} {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for add in _COMMANDS.values():
        add(commands)
    return top


_INVENTORY = "the cluster's nodes: what `kubectl get nodes -o yaml` or `-o json` prints"
_Commands = "argparse._SubParsersAction[_Parser]"


def _command(commands: argparse._SubParsersAction[_Parser], name: str, text: str) -> _Parser:
    return commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def _knowledge(command: argparse.ArgumentParser) -> None:
    """The flags that mean the same in every command."""
    flag(command, "--config", metavar="FILE", help="settings, as YAML (default: none)")
    flag(command, "--inventory", metavar="FILE", help=_INVENTORY)


def _serve(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = _command(commands, "serve", "answer admission reviews over TLS")
    flag(
        serve,
        "--bind",
        metavar="ADDRESS:PORT",
        help="where to listen (default: all addresses, IPv6 too, port 8443; loopback with --dev)",
    )
    flag(serve, "--workers", metavar="N", type=int, default=2, help="worker processes (default: 2)")
    flag(
        serve,
        "--dev",
        action="store_true",
        help="listen on loopback, with development certificates that are made under certs/",
    )
    flag(
        serve,
        "--tls-cert-file",
        metavar="FILE",
        default="/etc/gpu-webhook/tls/tls.crt",
        help="certificate chain, as PEM; read again when it changes (default: %(default)s)",
    )
    flag(
        serve,
        "--tls-private-key-file",
        metavar="FILE",
        default="/etc/gpu-webhook/tls/tls.key",
        help="its key, as PEM (default: %(default)s)",
    )
    flag(
        serve,
        "--client-ca",
        metavar="FILE",
        help="CA, as PEM, whose client certificates may ask for decisions; read again when it "
        "changes (default: anybody may ask)",
    )
    flag(
        serve,
        "--client-name",
        metavar="NAME",
        action="append",
        help="a common name, DNS name or URI of such a certificate; may be repeated (default: any)",
    )
    flag(
        serve,
        "--metrics-bind",
        metavar="ADDRESS:PORT",
        help="where to show metrics, over plain HTTP at /metrics (default: nowhere)",
    )
    flag(serve, "--config", metavar="FILE", help="settings, as YAML (default: none)")
    nodes = serve.add_mutually_exclusive_group()
    flag(nodes, "--inventory", rival="snapshot", metavar="FILE", help=_INVENTORY)
    flag(
        nodes,
        "--snapshot",
        rival="inventory",
        metavar="DIR",
        help="the folder in which `gpu-webhook watch` keeps what it knows of the cluster",
    )


def _watch(commands: argparse._SubParsersAction[_Parser]) -> None:
    watch = _command(commands, "watch", "keep a snapshot of the cluster's nodes and pods for serve")
    flag(
        watch,
        "--snapshot",
        metavar="DIR",
        required=True,
        help="the folder to keep it in, best in memory; made if it is missing",
    )
    flag(
        watch,
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster (default: from inside a pod, else as kubectl does)",
    )
    flag(watch, "--context", metavar="NAME", help="the context of the kubeconfig to use")
    flag(watch, "--config", metavar="FILE", help="settings, as YAML (default: none)")


def _review(commands: argparse._SubParsersAction[_Parser]) -> None:
    review = _command(commands, "review", "show what would be done to pods and workloads in files")
    flag(
        review,
        "-f",
        "--filename",
        metavar="FILE",
        required=True,
        help="a pod, a workload, a List or an AdmissionReview, as YAML or JSON; - for stdin",
    )
    flag(
        review,
        "-o",
        "--output",
        choices=("text", "json", "yaml"),
        default="text",
        help="default: text",
    )
    _knowledge(review)


def _explain(commands: argparse._SubParsersAction[_Parser]) -> None:
    explain = _command(commands, "explain", "print the manual of a rule")
    explain.add_argument(
        "code", metavar="CODE", nargs="?", help="as GPU101 or legacy-resource; without: list all"
    )


def _inventory(commands: argparse._SubParsersAction[_Parser]) -> None:
    inventory = _command(commands, "inventory", "show the GPUs of the cluster: nodes, models, use")
    flag(
        inventory,
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="wide: also labels and node names (default: table)",
    )
    _knowledge(inventory)
    flag(
        inventory,
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster (default: as kubectl)",
    )
    flag(
        inventory,
        "--context",
        metavar="NAME",
        help="the context of the kubeconfig (default: its current one)",
    )


def _config(commands: argparse._SubParsersAction[_Parser]) -> None:
    config = _command(commands, "config", "what the settings may be, are, and lead to")
    parts = config.add_subparsers(dest="part", metavar="COMMAND", required=True)
    check = _command(parts, "check", "find the mistakes in settings files")
    check.add_argument("files", metavar="FILE", nargs="+", help="settings, as YAML; - for stdin")
    show = _command(parts, "show", "print every setting and flag, and where its value came from")
    flag(show, "--config", metavar="FILE", help="settings, as YAML (default: none)")
    show.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="default: text"
    )
    show.add_argument("--namespace", metavar="NAME", help="show the modes of rules there, too")
    show.add_argument("--labels", metavar="KEY=VALUE,...", help="labels of that namespace")
    show.add_argument(
        "words",
        metavar="COMMAND",
        nargs=argparse.REMAINDER,
        help="the command whose flags are shown, with its own, as `watch --snapshot DIR` "
        "(default: serve)",
    )
    _command(parts, "schema", "print the JSON Schema of the settings file, for editors")
    conditions = _command(
        parts, "match-conditions", "print the matchConditions of the webhook configurations"
    )
    flag(conditions, "--config", metavar="FILE", help="settings, as YAML (default: none)")


def _scan(commands: argparse._SubParsersAction[_Parser]) -> None:
    file_flags.scan(_command(commands, "scan", "find legacy GPU use in files, or in a cluster"))


def _migrate(commands: argparse._SubParsersAction[_Parser]) -> None:
    file_flags.migrate(_command(commands, "migrate", "rewrite it in the files, and nothing else"))


def _completion(commands: argparse._SubParsersAction[_Parser]) -> None:
    completion = _command(commands, "completion", "print what makes a shell complete our words")
    completion.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish"
    )


_COMMANDS = {
    "serve": _serve,
    "watch": _watch,
    "review": _review,
    "explain": _explain,
    "inventory": _inventory,
    "scan": _scan,
    "migrate": _migrate,
    "config": _config,
    "completion": _completion,
}


def kubectl_plugin() -> int:
    """`kubectl gpu-migrate`: migrates, unless the first word is another command."""
    words = sys.argv[1:]
    if words[:1] not in [[name] for name in (*_COMMANDS, "--version")]:
        words = ["migrate", *words]
    return main(words, "kubectl gpu-migrate")


def main(argv: Sequence[str] | None = None, program: str = "gpu-webhook") -> int:
    """Run the command; the exit code is the epilog's."""
    args = parser(program).parse_args(argv)
    try:
        code = _run(args)
        sys.stdout.flush()
    except WebhookError as error:
        print(f"gpu-webhook: {error}", file=sys.stderr)  # noqa: T201
        return ERROR
    except BrokenPipeError:  # the reader, as `head`, has seen enough
        _print_no_more()
        return FINE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001  # whatever it is, nobody can make use of a traceback
        if isinstance(error, OSError) and error.errno in _FULL:
            _print_no_more()
            print(f"gpu-webhook: the output cannot be written: {error.strerror}", file=sys.stderr)  # noqa: T201
            return ERROR
        return _our_bug(args.command, error)
    else:
        return code


def _our_bug(command: str, error: Exception) -> int:
    """Say in one line what failed and where; what to do about it is to report it."""
    import traceback

    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"  # noqa: PTH119
    print(  # noqa: T201
        f"gpu-webhook: a fault of this program in `{command}` ({place}: {type(error).__name__}: "
        f"{error}); please report this line, `gpu-webhook --version` and the input",
        file=sys.stderr,
    )
    return _OUR_BUG


def _print_no_more() -> None:
    """What is still in the buffer would fail once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(args: argparse.Namespace) -> int:
    """Run the module that has the command's name; no other is loaded, so that --help is quick."""
    run: Callable[[argparse.Namespace], int] = import_module(f"webhook.cli.{args.command}").run
    return run(args)
