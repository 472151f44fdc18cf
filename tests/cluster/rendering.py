"""Templates, rendered by the programs that people render them with: helm, and Jinja for the rest.

The files were taken out of their charts and playbooks, so what they take from there is given here:
every value that a text names is given by its name (a number where the name says so), every named
template that it includes and does not define is an empty one. VALUES has what must be other.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jinja2
import yaml

from tests.cluster import helm
from webhook.yamlpatch import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_TEXT = re.compile(
    r"name|image|path|class|type|host|tag|version|policy|key|value|file", re.IGNORECASE
)
_NUMBER = re.compile(
    r"replica|count|port|gpu|size|worker|^ps$|num|^n[a-z]?$|nb|weight|second|period|timeout"
    r"|limit|request|cpu|mem|retry|user_?id|runas|threshold|delay|^id$|interval|per",
    re.IGNORECASE,
)
_TRUTH = re.compile(r"use[A-Z]|enable|is[A-Z]|privileged|hostNetwork|hostPID")
_VALUE = re.compile(r"\.Values((?:\.[A-Za-z_]\w*)+)")
_DOT = re.compile(r"(?:\{\{-?|[\s(])\.([A-Z]\w*(?:\.[A-Za-z_]\w*)*)")
_MANY = re.compile(r"range\s+(?:\$\w+\s*(?:,\s*\$\w+\s*)?:=\s*)?(?:\.Values)?\.(\w+(?:\.\w+)*)")
_MAP = re.compile(r"toYaml\s+\.Values\.(\w+(?:\.\w+)*)")
_INCLUDED = re.compile(r"\b(?:include|template)\s+\"([^\"]+)\"")
_DEFINED = re.compile(r"\bdefine\s+\"([^\"]+)\"")
_BESIDE = re.compile(r"\.Template\.BasePath\s+\"/([^\"]+)\"")


class NotRenderedError(Exception):
    """What the program said."""


def rendered(text: str, folder: Path, given: Mapping[str, Any], like: str = "") -> str:
    """The text as helm renders it, or Jinja if it is none of Go's templates.

    With `like`, one of OTHERS, the values are others than by_name() gives.
    """
    if re.search(r"\{%|\{#", text):
        return by_jinja(text, given, like)
    try:
        return by_helm(text, folder, given, like)
    except NotRenderedError as error:
        try:
            return by_jinja(text, given, like)
        except NotRenderedError:
            raise error from None


# Other values, by the type of those that are usual: texts, numbers, truths, lists and maps.
OTHERS: dict[str, dict[type, Any]] = {
    "off": {bool: False, int: 0, list: [], dict: {}},
    "much": {str: "other", int: 2},
    "empty": {str: "", int: 0, bool: False},
}


def _other(value: Any, like: str) -> Any:
    if isinstance(value, dict) and value:
        return {name: _other(each, like) for name, each in value.items()}
    return OTHERS[like].get(type(value), value) if like else value


def by_helm(text: str, folder: Path, given: Mapping[str, Any], like: str = "") -> str:
    """What `helm template` makes of a chart with this one template."""
    values = _values(_written_out(text))
    _merge(values, given)
    values = _other(values, like)
    templates = folder / "templates"
    templates.mkdir(parents=True, exist_ok=True)
    chart = {"apiVersion": "v2", "name": "judged", "version": "1.0.0", "appVersion": "1.0"}
    (folder / "Chart.yaml").write_text(json.dumps(chart))
    (folder / "values.yaml").write_text(json.dumps(values))
    defined = set(_DEFINED.findall(text))
    missing = sorted(set(_INCLUDED.findall(text)) - defined)
    given_templates = given.get("templates", {})
    for name in set(_BESIDE.findall(text)):
        (templates / name).write_text("# given\n")
    (templates / "_given.tpl").write_text(
        "".join(
            f'{{{{- define "{name}" -}}}}{given_templates.get(name, "given")}{{{{- end -}}}}\n'
            for name in missing
        )
    )
    if _takes_no_chart(text):  # a program's own template: its dot is what we give as values
        called = '{{ template "judged.it" .Values }}'
        text = f'{{{{- define "judged.it" }}}}{text}{{{{ end }}}}{called}'
    text = text.replace(".Release.Time.Seconds", '"1500000000"')  # gone since Helm 3
    (templates / "judged.yaml").write_text(text, newline="")
    done = helm.template(folder, "judged", "--namespace", "judged")
    if done.returncode != 0:
        raise NotRenderedError(" ".join(done.stderr.split())[:400])
    return _readable(done.stdout)


def _takes_no_chart(text: str) -> bool:
    return not any(f".{name}" in text for name in ("Values", "Release", "Chart", "Capabilities"))


def _written_out(text: str) -> str:
    """The text with values in the place of the variables that stand for them."""
    for name, value in re.findall(r"\$(\w+)\s*:=\s*(\.Values(?:\.\w+)+)\s*-?\}\}", text):
        text = re.sub(rf"\${name}\b(?!\s*:=)", value, text)
    return text


def _values(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    names = [found[1][1:] for found in _VALUE.finditer(text)]
    if _takes_no_chart(text):
        names += [found[1] for found in _DOT.finditer(text)]
    many = set(_MANY.findall(text))
    maps = set(_MAP.findall(text))
    for dotted in sorted(set(names), key=len, reverse=True):
        here: Any = values
        *above, last = dotted.split(".")
        for name in above:
            here = here.setdefault(name, {})
            if not isinstance(here, dict):
                break
        else:
            empty: Any = [] if dotted in many else {}
            here.setdefault(last, empty if dotted in many | maps else by_name(last))
    return values


def _merge(into: dict[str, Any], given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        here = into.get(key)
        if isinstance(value, dict) and isinstance(here, dict):
            _merge(here, value)
        else:
            into[key] = value


def by_name(name: str) -> Any:
    """A value that is likely right for what has this name."""
    if re.search("pull_?policy", name, re.IGNORECASE):
        return "IfNotPresent"
    if re.search("dns_?policy", name, re.IGNORECASE):
        return "Default"
    if _TRUTH.match(name):
        return True
    return 1 if _NUMBER.search(name) and not _TEXT.search(name) else "given"


def _readable(text: str) -> str:
    unread = documents.read(text).unread
    if unread and re.search(r"^\s*kind:", text, re.MULTILINE):
        raise NotRenderedError(f"what it renders to is no YAML: {unread[0]}")
    return text


class _Given(jinja2.ChainableUndefined):
    """A variable of the playbook, given by its name."""

    like = ""

    def __str__(self) -> str:
        return str(_other(by_name(str(self._undefined_name)), self.like))

    def __getitem__(self, name: object) -> Any:
        return type(self)(name=str(name))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(self)(name=name)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __bool__(self) -> bool:
        return bool(_other(True, self.like))

    def __contains__(self, _: object) -> bool:
        return False


_OF_ANSIBLE = {
    "to_nice_yaml": lambda value, **_: yaml.safe_dump(str(value)),
    "to_json": lambda value: json.dumps(str(value)),
    "regex_replace": lambda value, old="", new="": re.sub(old, new, str(value)),
    "bool": bool,
}


def by_jinja(text: str, given: Mapping[str, Any], like: str = "") -> str:
    """What Jinja makes of it when lines with nothing but a block make no line."""
    # It makes YAML, so nothing is to be escaped.
    environment = jinja2.Environment(  # noqa: S701
        undefined=type("_Other", (_Given,), {"like": like}),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= _OF_ANSIBLE
    environment.filters["int"] = lambda value: value if isinstance(value, int) else 1
    environment.tests["version"] = lambda *_: True
    try:
        return _readable(environment.from_string(text).render(**_other(dict(given), like)))
    except (jinja2.TemplateError, TypeError) as error:
        raise NotRenderedError(f"Jinja: {error}") from error
