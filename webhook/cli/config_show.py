"""`gpu-webhook config show`: settings and flags of `serve`, their values, and where from."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from webhook.cli.commands import commands
from webhook.cli.flags import Flag, Origin
from webhook.core.errors import InputError
from webhook.core.modes import IGNORE, Mode, is_opted_out, modes_for
from webhook.core.settings import Override, Policy
from webhook.kube import labels as legal
from webhook.reports.printing import PRINTED, in_one_line
from webhook.rules import ALL
from webhook.settings import file as settings_file
from webhook.settings.schema import all_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import SimpleNamespace

    from webhook.settings.file import SettingsFile
    from webhook.settings.nodes import Place

T = TypeVar("T", Policy, Override)
_NOTHING = "(not set)"
_NOWHERE: Any = None


class Row(NamedTuple):
    """One value; `at` is the place in the file, or the name of the environment variable."""

    name: str
    value: Any
    origin: Origin
    at: str = ""

    @property
    def source(self) -> str:
        """The source of the value, in a word or two."""
        return self.at or str(self.origin)


def run(args: SimpleNamespace) -> int:
    """Print the values with which `serve` would run here."""
    command = _serve(args.config)
    file = command.params["config"] or ""
    read = settings_file.read(file, pipes=True) if file else settings_file.SettingsFile()
    shown = {"settings": values(read, file), "flags": flags(command)}
    titles = {"settings": "Settings", "flags": "Flags of serve"}
    if args.namespace:
        labels = read_labels(args.labels)
        where = f"{IGNORE}=true" if is_opted_out(labels) else ""
        shown["modes"] = [
            Row(row.name, str(Mode.OFF), Origin.FLAG, where) if where else row
            for row in modes(read, file, args.namespace, labels)
        ]
        written = "".join(f", {key}={value}" for key, value in labels.items())
        titles["modes"] = f"Modes in the namespace {args.namespace}{written}"
    elif args.labels:
        raise InputError("--labels are labels of a namespace: name it with --namespace")
    if args.output == "text":
        for part, rows in shown.items():
            _print(titles[part], rows)
    else:
        _write(args.output, shown)
    return 0


def _serve(file: str | None) -> click.Context:
    """The command `serve` with its variables; it does not run."""
    top = click.get_current_context().find_root()
    words = ["--config", file] if file else []
    return commands.commands["serve"].make_context("serve", words, parent=top)


def values(read: SettingsFile, file: str) -> list[Row]:
    """Every setting, under its name in the file."""
    return [
        _row(".".join(map(str, place)), read.value(place), read, file, place)
        for place, _ in all_settings()
    ]


def flags(command: click.Context) -> list[Row]:
    """The flags of a command."""
    rows = []
    for flag in command.command.params:
        if isinstance(flag, Flag):
            origin = flag.origin(command)
            at = flag.variable(command) if origin is Origin.ENVIRONMENT else ""
            rows.append(Row(flag.opts[-1], command.params[flag.name], origin, at))
    return rows


def modes(read: SettingsFile, file: str, namespace: str, labels: Mapping[str, str]) -> list[Row]:
    """The mode of each rule in a namespace, and the place of the policy that decides it."""
    policy, rows = read.settings.policy, []
    resolved = modes_for(policy, namespace, labels)
    places = modes_for(_with_places(policy), namespace, labels)
    for rule in sorted(ALL, key=lambda each: each.CODE):
        place: Any = places.of_code(rule.CODE, _NOWHERE)
        name = f"{rule.CODE} {rule.NAME}"
        rows.append(_row(name, str(resolved.of(rule)), read, file, place))
    return rows


def _with_places(policy: Policy) -> Policy:
    """The policy with its place in the stead of each mode: so the mode that decides is found."""
    marked = (_marked(each, "overrides", n) for n, each in enumerate(policy.overrides))
    return replace(_marked(policy), overrides=tuple(marked))


def _marked(part: T, *at: str | int) -> T:
    mode: Any = None if part.mode is None else ("policy", *at, "mode")
    rules: Any = {code: ("policy", *at, "rules", code) for code in part.rules}
    return replace(part, mode=mode, rules=rules)


def _row(name: str, value: Any, read: SettingsFile, file: str, place: Place | None) -> Row:
    at = read.position(place) if place else None
    return (
        Row(name, value, Origin.FILE, f"{file}:{at[0]}") if at else Row(name, value, Origin.DEFAULT)
    )


def read_labels(text: str | None) -> dict[str, str]:
    """Labels in the form of kubectl: `tier=prod,team=a`."""
    read: dict[str, str] = {}
    for part in (text or "").split(",") if text else ():
        key, equals, value = part.strip().partition("=")
        if not equals or not legal.is_key(key) or not legal.is_value(value):
            text = f"--labels {part.strip()!r}: write key=value, such as tier=prod,team=a"
            raise InputError(text)
        read[key] = value
    return read


def _print(title: str, rows: Sequence[Row]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
    names = max((len(row.name) for row in rows), default=0)
    sources = max((len(row.source) for row in rows), default=0)
    console.print(Text(title, style="bold"))
    for row in rows:
        style = "dim" if row.origin is Origin.DEFAULT else "green"
        line = Text(f"  {row.name:{names}}  ").append(f"{row.source:{sources}}", style=style)
        console.print(line.append(f"  {_NOTHING if row.value is None else in_one_line(row.value)}"))


def _write(form: str, shown: Mapping[str, Sequence[Row]]) -> None:
    data = {
        part: [
            {"name": row.name, "value": row.value, "origin": str(row.origin), "at": row.at or None}
            for row in rows
        ]
        for part, rows in shown.items()
    }
    sys.stdout.write(PRINTED[form](data))
