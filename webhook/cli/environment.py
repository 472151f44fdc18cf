"""Flags with an environment variable that stands in for them: --bind has GPU_WEBHOOK_BIND.

What the command line says wins over the environment, and that over the default. A variable that is
empty counts as not set. Where a flag may be repeated, its variable has commas.
"""

from __future__ import annotations

import argparse
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PREFIX = "GPU_WEBHOOK_"
# Kubernetes sets these in every pod beside a Service named gpu-webhook: no flag may be called so.
_TAKEN = (f"{PREFIX}PORT", f"{PREFIX}SERVICE_")
_FLAGS, _GIVEN = "flags", "given"  # what a command's namespace says of its flags


class Origin(StrEnum):
    """Where a value came from."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Flag(NamedTuple):
    """What a flag says in one run, and where that came from."""

    name: str
    value: Any
    origin: Origin
    variable: str


def flag(command: argparse._ActionsContainer, *names: str, rival: str = "", **options: Any) -> None:
    """As `command.add_argument`: of its actions `store`, `store_true` and `append`, to a tuple.

    `rival` is the `dest` of a flag that cannot stand beside this one: given on the command line,
    this one also takes the place of the rival's variable.
    """
    sort = options.pop("action", "store")
    if sort == "store_true":
        options |= {"nargs": 0, "const": True, "default": False}
    elif sort == "append":
        options["default"] = ()
    action = command.add_argument(*names, action=_Flag, **options)
    assert isinstance(action, _Flag)  # noqa: S101
    action.rival, action.repeats = rival, sort == "append"
    variable = variable_of(action.dest)
    assert not variable.startswith(_TAKEN), f"{variable} is set by Kubernetes"  # noqa: S101
    # Said before the variable takes its place, since --help tells the default of the command.
    told = (action.help or "") % vars(action)
    action.help = f"{told.replace('%', '%%')} [{variable}]".lstrip()
    text = os.environ.get(variable)
    if text:
        action.type = _reader(action, variable)
        action.default = _Text(text)
        action.required = False
    command.set_defaults(**{_FLAGS: (*(command.get_default(_FLAGS) or ()), action)})


def variable_of(dest: str) -> str:
    """The environment variable of a flag."""
    return PREFIX + dest.upper()


def flags(args: argparse.Namespace) -> list[Flag]:
    """The flags of the command that was run."""
    return [
        Flag(
            action.option_strings[-1],
            getattr(args, action.dest),
            origin(args, action.dest),
            variable_of(action.dest),
        )
        for action in getattr(args, _FLAGS, ())
    ]


def origin(args: argparse.Namespace, dest: str) -> Origin:
    """Where the value of this flag came from."""
    if dest in getattr(args, _GIVEN, ()):
        return Origin.FLAG
    is_set = bool(os.environ.get(variable_of(dest))) and getattr(args, dest) is not None
    return Origin.ENVIRONMENT if is_set else Origin.DEFAULT


class _Flag(argparse.Action):
    """Stores the value, and that the command line gave it."""

    rival = ""
    repeats = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse calls it so
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        given = getattr(namespace, _GIVEN, ())
        if self.repeats:
            before = getattr(namespace, self.dest) if self.dest in given else ()
            setattr(namespace, self.dest, (*before, values))
        else:
            setattr(namespace, self.dest, self.const if self.nargs == 0 else values)
        setattr(namespace, _GIVEN, {*given, self.dest})
        if self.rival:
            setattr(namespace, self.rival, None)


class _Text(str):
    """What a variable says: argparse hands a default that is a text to the flag's type."""

    __slots__ = ()


def _reader(action: _Flag, variable: str) -> Callable[[str], Any]:
    """A type that reads the command line as before, and says which variable is wrong."""
    plain: Callable[[str], Any] = action.type if callable(action.type) else str
    read = _truth if action.nargs == 0 else _several(plain) if action.repeats else plain

    def from_either(text: str) -> Any:
        if not isinstance(text, _Text):
            return plain(text)
        wrong = f"{variable} says {str(text)!r}"
        try:
            value = read(str(text))
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(f"{wrong}: {error}") from error
        except (LookupError, TypeError, ValueError) as error:
            words = _WORDS.get(read, "what the flag takes")
            raise argparse.ArgumentTypeError(f"{wrong}: must be {words}") from error
        if action.choices is not None and value not in action.choices:
            choices = ", ".join(map(str, action.choices))
            raise argparse.ArgumentTypeError(f"{wrong}: must be one of {choices}")
        return value

    return from_either


def _several(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(read(part.strip()) for part in text.split(",") if part.strip())


def _truth(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


_WORDS: dict[Callable[[str], Any], str] = {
    int: "a whole number",
    float: "a number",
    _truth: "true or false",
}
