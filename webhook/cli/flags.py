"""A flag of the command line: its environment variable, its value, and the source of the value."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from webhook.kube.labels import is_dns_label, is_subdomain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem

FORMATS = ("text", "wide", "json", "yaml", "markdown", "html", "sarif", "junit", "github")
_VERSION = re.compile(r"v?1\.(\d{1,3})(\.\d{1,5})?")


class _Path(click.Path):
    """The path of a file or a folder. An empty one is rejected: it would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("The name is empty. Is a shell variable not set?", param, ctx)
        return super().convert(value, param, ctx)


FILE = _Path(readable=False)  # whether it is readable shows when it is read
_TYPES = {"FILE": FILE, "PATH": FILE, "DIR": _Path(file_okay=False, readable=False)}


class Origin(StrEnum):
    """The source of a value."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class _Switch(click.types.BoolParamType):
    # The text for errors: it need not list all sources.
    bool_states: dict[str, bool] = {"true": True, "false": False}  # noqa: RUF012


class Flag(click.Option):
    """A flag with a variable for its command: `serve --bind` has GPU_WEBHOOK_SERVE_BIND.

    `rival` is a flag that cannot be used with this one: on the command line, this flag also
    overrides the variable of the rival. `heading` is its section in the help.
    """

    heading = "Options"

    def __init__(self, *names: str, rival: str = "", **options: Any) -> None:
        """Takes the arguments of click.Option."""
        usual = _Switch() if options.get("is_flag") else _TYPES.get(options.get("metavar", ""))
        options.setdefault("type", usual)
        super().__init__(names, **options)
        self.rival = rival

    def variable(self, ctx: click.Context) -> str:
        """The name of its environment variable."""
        return f"{ctx.auto_envvar_prefix}_{self.name.upper()}"

    def origin(self, ctx: click.Context) -> Origin:
        """The source of its value."""
        source = ctx.get_parameter_source(self.name)
        if source is ParameterSource.COMMANDLINE:
            return Origin.FLAG
        return Origin.ENVIRONMENT if source is ParameterSource.ENVIRONMENT else Origin.DEFAULT

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The name for errors: the variable, if the value comes from it."""
        if ctx is not None and self.origin(ctx) is Origin.ENVIRONMENT:
            return self.variable(ctx)
        return super().get_error_hint(ctx)

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """The value of the variable; several values are separated by commas."""
        if ctx.get_parameter_source(self.rival) is ParameterSource.COMMANDLINE:
            return None
        if not self.multiple:
            return super().value_from_envvar(ctx)
        words = (self.resolve_envvar_value(ctx) or "").split(",")
        return [word.strip() for word in words if word.strip()] or None


def section(heading: str, *params: click.Parameter) -> tuple[click.Parameter, ...]:
    """The parameters; the flags among them have this heading in the help."""
    for each in params:
        if isinstance(each, Flag):
            each.heading = heading
    return params


def rules(_ctx: click.Context, _param: click.Parameter, start: str) -> list[CompletionItem]:
    """Codes and names of rules, for shell completion."""
    from click.shell_completion import CompletionItem

    from webhook.cli.explain import headline
    from webhook.rules import ALL

    return [
        CompletionItem(word, help=headline(rule))
        for rule in sorted(ALL, key=lambda each: each.CODE)
        for word in (rule.CODE, rule.NAME)
        if word.startswith(start)
    ]


def version_of(text: str) -> str:
    """The minor version of Kubernetes, as 1.36."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not a Kubernetes version: write 1.36")
    return f"1.{int(found[1])}"


def output_file(forms: Sequence[str]) -> Callable[[str], str]:
    """The type of --output-file: FORMAT=FILE, with one of these formats."""

    def value(text: str) -> str:
        form, equals, path = text.partition("=")
        if form not in forms or not equals or not path:
            raise click.BadParameter(
                f"{text!r}: write FORMAT=FILE, such as html=x.html; the formats are "
                f"{', '.join(forms)}"
            )
        return text

    return value


def configuration(text: str) -> str:
    """The value of --configuration: KIND/NAME."""
    kind, _, name = text.partition("/")
    if kind not in ("mutating", "validating") or not is_subdomain(name):
        raise click.BadParameter(f"{text!r}: write mutating/NAME or validating/NAME")
    return text


def namespace(text: str) -> str:
    """The value of --namespace."""
    if not is_dns_label(text):
        raise click.BadParameter(f"{text!r} is not the name of a namespace")
    return text


class _Help(click.HelpFormatter):
    """Headings and names in colour; `click.echo` removes colour where it is not supported."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, prefix or f"{click.style('Usage:', bold=True)} ")

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, bold=True))

    def write_dl(self, rows: Any, *widths: int, **named: int) -> None:
        coloured = [(click.style(name, fg="cyan"), text) for name, text in rows]
        super().write_dl(coloured, *widths, **named)


class _Context(click.Context):
    formatter_class = _Help


class Command(click.Command):
    """A command with coloured help: its flags by section, then how their variables are named."""

    context_class = _Context

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections in the order of their first flags; `--help` is with the last ones."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = None if isinstance(param, click.Argument) else param.get_help_record(ctx)
            if record:
                sections.setdefault(getattr(param, "heading", Flag.heading), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write which flags have a variable, and its name for one of them."""
        flags = [each for each in self.params if isinstance(each, Flag) and not each.hidden]
        named = [each for each in flags if each.allow_from_autoenv]
        if named:
            example = named[-1]
            without = [max(each.opts, key=len) for each in flags if each not in named]
            text = (
                f"Environment variables: {example.variable(ctx)} for {max(example.opts, key=len)}, "
                f"and so on{'; none for ' * bool(without)}{', '.join(without)}."
            )
            if any(each.multiple for each in named):
                text += " Commas separate several values."
            formatter.write_paragraph()
            formatter.write_text(text)


class Group(click.Group):
    """A group of commands with coloured help."""

    context_class = _Context
    command_class = Command
