"""`gpu-webhook completion SHELL`: what makes a shell complete our words, made from the parser."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = "gpu-webhook"
_SWITCH = 0


class Wanted(Enum):
    """What stands behind a flag, where it is no choice of words."""

    NOTHING = "nothing that a shell could know"
    FILE = "a file or a folder"
    FOLDER = "a folder"


@dataclass(frozen=True, slots=True)
class Word:
    """A word that can stand there, and what it means."""

    text: str
    help: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A flag in all its spellings; a switch takes no value."""

    names: tuple[str, ...]
    help: str
    switch: bool
    value: tuple[Word, ...] | Wanted


@dataclass(frozen=True, slots=True)
class Command:
    """What can stand behind these words."""

    path: tuple[str, ...]
    commands: tuple[Word, ...]
    options: tuple[Option, ...]
    argument: tuple[Word, ...] | Wanted


def run(args: argparse.Namespace) -> int:
    """Print the script of one shell."""
    from webhook.cli.main import parser

    scripts = {"bash": bash, "zsh": zsh, "fish": fish}
    sys.stdout.write(scripts[args.shell](list(commands(parser()))))
    return 0


def commands(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """All commands of the parser, the top one first."""
    below = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]  # noqa: SLF001
    arguments = [each for each in parser._get_positional_actions() if each not in below]  # noqa: SLF001
    yield Command(
        path,
        tuple(
            Word(each.dest, each.help or "")
            for action in below
            for each in action._choices_actions  # noqa: SLF001
        ),
        tuple(_option(each) for each in parser._get_optional_actions()),  # noqa: SLF001
        _value(arguments[0]) if arguments else Wanted.NOTHING,
    )
    for action in below:
        for name, command in action.choices.items():
            yield from commands(command, (*path, name))


def _option(action: argparse.Action) -> Option:
    text = re.sub(r" ?\[GPU_WEBHOOK_\w+\]$", "", (action.help or "") % vars(action))
    return Option(tuple(action.option_strings), text, action.nargs == _SWITCH, _value(action))


def _value(action: argparse.Action) -> tuple[Word, ...] | Wanted:
    if action.choices is not None:
        return tuple(Word(str(each)) for each in action.choices)
    match action.metavar:
        case "RULE" | "CODE":
            return tuple(_rules())
        case "FORMAT=FILE":
            from webhook.cli.file_flags import FORMATS

            return tuple(Word(f"{form}=") for form in FORMATS)
        case "FILE" | "PATH":
            return Wanted.FILE
        case "DIR":
            return Wanted.FOLDER
        case _:
            return Wanted.NOTHING


def _rules() -> Iterator[Word]:
    from webhook.cli.explain import headline
    from webhook.rules import ALL

    for rule in sorted(ALL, key=lambda each: each.CODE):
        yield Word(rule.CODE, headline(rule))
        yield Word(rule.NAME, headline(rule))


_BASH = """\
# bash completion of {program}: source <({program} completion bash)
_gpu_webhook() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  # bash takes `--flag=value` apart at the =.
  if [[ $current == "=" ]]; then
    current=""
  elif [[ $previous == "=" && $COMP_CWORD -ge 2 ]]; then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  local command="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$command $word" in
      {paths}) command="$command $word" ;;
    esac
  done
  local words="" flags="" files=""
  case "$command" in
{commands}
  esac
  case "$command $previous" in
{values}
  esac
  if [[ $current == -* ]]; then
    words=$flags files=""
  fi
  local IFS=$'\\n'
  if [[ $files == folders ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -d -- "$current"))
  elif [[ $files ]]; then
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  else
    IFS=$' \\n'
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
  if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}}
complete -F _gpu_webhook {program}
"""


def bash(found: Sequence[Command]) -> str:
    """The script for bash, 3.2 and up."""
    paths = "|".join(f'"{_path(each)}"' for each in found if each.path)
    at_command, at_value = [], []
    for each in found:
        flags = " ".join(name for option in each.options for name in option.names)
        words = " ".join(word.text for word in each.commands)
        files = ""
        if isinstance(each.argument, tuple):
            words = " ".join(word.text for word in each.argument)
        elif not each.commands:
            files = _bash_files(each.argument)
        assignments = f'words="{words}" flags="{flags}" files={files or chr(34) * 2}'
        at_command.append(f'    "{_path(each)}") {assignments} ;;')
        takes_value = [option for option in each.options if not option.switch]
        at_value += [f"    {_bash_value(each, option)} ;;" for option in takes_value]
    return _BASH.format(
        program=PROGRAM,
        paths=paths,
        commands="\n".join(at_command),
        values="\n".join(at_value),
    )


def _path(command: Command) -> str:
    return "".join(f" {word}" for word in command.path)


def _bash_value(command: Command, option: Option) -> str:
    pattern = "|".join(f'"{_path(command)} {name}"' for name in option.names)
    if isinstance(option.value, tuple):
        return f'{pattern}) words="{" ".join(each.text for each in option.value)}" files=""'
    return f'{pattern}) words="" files={_bash_files(option.value) or chr(34) * 2}'


def _bash_files(wanted: Wanted) -> str:
    return {Wanted.FILE: "all", Wanted.FOLDER: "folders", Wanted.NOTHING: ""}[wanted]


def zsh(found: Sequence[Command]) -> str:
    """The script for zsh: a function for each command, with what each word means."""
    functions = "\n".join(_zsh_function(each, found) for each in found)
    return (
        f"#compdef {PROGRAM}\n"
        f"# zsh completion of {PROGRAM}: source <({PROGRAM} completion zsh), after compinit\n"
        f"{functions}\ncompdef _gpu_webhook {PROGRAM}\n"
    )


def _zsh_function(command: Command, found: Sequence[Command]) -> str:
    arguments = [_zsh_option(option) for option in command.options]
    lines = [f"{_zsh_name(command.path)}() {{"]
    if not command.commands:
        if command.argument is not Wanted.NOTHING:
            arguments.append(shlex.quote(f"*:argument:{_zsh_action(command.argument)}"))
        return "\n".join([*lines, f"  _arguments -s {_lines(arguments)}", "}"])
    arguments += ["'1:command:->command'", "'*::argument:->argument'"]
    described = " ".join(shlex.quote(f"{each.text}:{each.help}") for each in command.commands)
    cases = [
        f"    {each.path[-1]}) {_zsh_name(each.path)} ;;"
        for each in found
        if each.path[:-1] == command.path and each.path
    ]
    lines += [
        "  local state",
        "  local -a line words_here",
        f"  _arguments -C {_lines(arguments)}",
        "  case $state in",
        f"  command) words_here=({described}); _describe command words_here ;;",
        "  argument)",
        "    case ${line[1]} in",
        *cases,
        "    esac ;;",
        "  esac",
        "}",
    ]
    return "\n".join(lines)


def _zsh_name(path: Sequence[str]) -> str:
    return "_".join(["_gpu_webhook", *path])


def _lines(arguments: Sequence[str]) -> str:
    return " \\\n    ".join(arguments)


def _zsh_option(option: Option) -> str:
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    joined = [f"{n}=" if n.startswith("--") and not option.switch else n for n in option.names]
    names = "{" + ",".join(joined) + "}" if len(joined) > 1 else joined[0]
    value = "" if option.switch else f":value:{_zsh_action(option.value)}"
    return f"'*'{names}{shlex.quote(f'[{text}]{value}')}"


def _zsh_action(value: tuple[Word, ...] | Wanted) -> str:
    if isinstance(value, tuple):
        return f"({' '.join(each.text for each in value)})"
    return {Wanted.FILE: "_files", Wanted.FOLDER: "_files -/", Wanted.NOTHING: " "}[value]


def fish(found: Sequence[Command]) -> str:
    """The script for fish, with what each word means."""
    lines = [
        f"# fish completion of {PROGRAM}: {PROGRAM} completion fish | source",
        f"complete -c {PROGRAM} -f",
    ]
    for each in found:
        here = f"complete -c {PROGRAM} -n {shlex.quote(_fish_condition(each))}"
        lines += [f"{here} -a {_q(word.text)} -d {_q(word.help)}" for word in each.commands]
        lines += [f"{here} {_fish_option(option)}" for option in each.options]
        if isinstance(each.argument, tuple):
            lines += [f"{here} -a {_q(word.text)} -d {_q(word.help)}" for word in each.argument]
        elif each.argument is Wanted.FILE:
            lines.append(f"{here} -F")
    return "\n".join(lines) + "\n"


def _fish_condition(command: Command) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.path]
    if command.commands:
        names = " ".join(word.text for word in command.commands)
        seen.append(f"not __fish_seen_subcommand_from {names}")
    return "; and ".join(seen)


def _fish_option(option: Option) -> str:
    parts = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names
    ]
    if not option.switch:
        parts.append("-r")
        if isinstance(option.value, tuple):
            parts.append(f"-a {_q(' '.join(each.text for each in option.value))}")
        elif option.value is Wanted.FILE:
            parts.append("-F")
        elif option.value is Wanted.FOLDER:
            parts.append("-a '(__fish_complete_directories)'")
    return f"{' '.join(parts)} -d {_q(option.help)}"


def _q(text: Any) -> str:
    return shlex.quote(str(text))
