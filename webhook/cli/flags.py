"""A flag of the command line: its environment variable, its value, and where that came from."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

FORMATS = ("text", "wide", "json", "yaml", "markdown", "html", "sarif", "junit", "github")
_VERSION = re.compile(r"v?1\.(\d{1,3})(\.\d{1,5})?")


class _Path(click.Path):
    """A file or a folder that is named: an empty name would be the folder that one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("The name is empty; is a variable of your shell not set?", param, ctx)
        return super().convert(value, param, ctx)


FILE = _Path(readable=False)  # whether it can be read is seen when it is read
_TYPES = {"FILE": FILE, "PATH": FILE, "DIR": _Path(file_okay=False, readable=False)}


class Origin(StrEnum):
    """Where a value came from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class _Switch(click.types.BoolParamType):
    # What an error names: it need not name all that counts.
    bool_states: dict[str, bool] = {"true": True, "false": False}  # noqa: RUF012


class Flag(click.Option):
    """Has a variable of its command: `serve --bind` has GPU_WEBHOOK_SERVE_BIND.

    `rival` is the name of a flag that cannot stand beside this one: given on the command line, it
    also takes the place of this one's variable.
    """

    def __init__(self, *names: str, rival: str = "", **options: Any) -> None:
        """Take what click.Option takes."""
        usual = _Switch() if options.get("is_flag") else _TYPES.get(options.get("metavar", ""))
        options.setdefault("type", usual)
        super().__init__(names, show_envvar=True, **options)
        self.rival = rival

    def variable(self, ctx: click.Context) -> str:
        """The name of its environment variable."""
        return f"{ctx.auto_envvar_prefix}_{self.name.upper()}"

    def origin(self, ctx: click.Context) -> Origin:
        """Where its value came from."""
        source = ctx.get_parameter_source(self.name)
        if source is ParameterSource.COMMANDLINE:
            return Origin.FLAG
        return Origin.ENVIRONMENT if source is ParameterSource.ENVIRONMENT else Origin.DEFAULT

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """What an error names: the variable, if its text is what is wrong."""
        if ctx is not None and self.origin(ctx) is Origin.ENVIRONMENT:
            return self.variable(ctx)
        return super().get_error_hint(ctx)

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """What the variable says; several values have commas between them."""
        if ctx.get_parameter_source(self.rival) is ParameterSource.COMMANDLINE:
            return None
        if not self.multiple:
            return super().value_from_envvar(ctx)
        words = (self.resolve_envvar_value(ctx) or "").split(",")
        return [word.strip() for word in words if word.strip()] or None


def rules(_ctx: click.Context, _param: click.Parameter, start: str) -> list[CompletionItem]:
    """Codes and names of rules, for a shell to complete."""
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
        raise click.BadParameter(f"{text!r} is no version of Kubernetes: write 1.36")
    return f"1.{int(found[1])}"


def output_file(text: str) -> str:
    """FORMAT=FILE, if it is that."""
    form, equals, path = text.partition("=")
    if form not in FORMATS or not equals or not path:
        raise click.BadParameter(
            f"{text!r}: write FORMAT=FILE, as sarif=gpu.sarif; the formats are {', '.join(FORMATS)}"
        )
    return text


class _Help(click.HelpFormatter):
    """Headings and names in colour; `click.echo` takes that away where it does not belong."""

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
    """A command with coloured help."""

    context_class = _Context


class Group(click.Group):
    """A group of commands with coloured help."""

    context_class = _Context
    command_class = Command
