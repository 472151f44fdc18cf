"""The types of values in the settings file: texts of some form, words, numbers, and maps of these.

Each type checks a value and has a JSON Schema. `errorMessage` is what editors show instead of a
regular expression; the messages of `config check` use it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError, core_schema
from typing_extensions import TypeAliasType

from webhook.core.modes import Mode
from webhook.kube.labels import DNS_LABEL, KEY, NAME, SUBDOMAIN, VALUE
from webhook.rules import ALL
from webhook.settings.nodes import AT_THE_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.core.rule import Named

Schema = dict[str, Any]


def refused(what: str, *at: str | int) -> ValidationError:
    """A mistake with this message, at a place below the checked value."""
    error = PydanticCustomError("refused", "{what}", {"what": what})
    return ValidationError.from_exception_data(
        "settings", [InitErrorDetails(type=error, loc=at, input=None)]
    )


@dataclass(frozen=True, slots=True)
class Text:
    """A text that matches a pattern completely. The pattern is also valid in ECMA-262."""

    what: str
    pattern: str
    such: str = ""

    def __get_pydantic_core_schema__(self, *_: object) -> core_schema.CoreSchema:
        whole = rf"\A(?:{self.pattern})\Z"
        return core_schema.str_schema(strict=True, pattern=whole, regex_engine="python-re")

    def __get_pydantic_json_schema__(self, *_: object) -> Schema:
        return self.json_schema()

    def json_schema(self) -> Schema:
        """The JSON Schema of such a text."""
        words = f"must be {self.what}" + (f", as {self.such}" if self.such else "")
        example = {"examples": [self.such.strip('"')]} if self.such else {}
        pattern = f"^(?:{self.pattern})$"
        return {"type": "string", "pattern": pattern, "errorMessage": words} | example


@dataclass(frozen=True)
class Word:
    """One of a few words; messages have `what` instead of a long list."""

    words: Iterable[str]
    what: str = ""

    def __get_pydantic_core_schema__(self, *_: object) -> core_schema.CoreSchema:
        return core_schema.literal_schema(list(self.words))

    def __get_pydantic_json_schema__(self, *_: object) -> Schema:
        said = {"errorMessage": f"must be {self.what}"} if self.what else {}
        return {"enum": list(self.words)} | said


_START = r"(?:[A-Za-z0-9][-A-Za-z0-9_.]{0,61})?\*"
_KEYS = rf"{KEY}|(?!\*)(?:{SUBDOMAIN}/)?{_START}"
_CONTROL = r"\x00-\x1f\x7f-\x9f"
_NO_CONTROL = rf"[^{_CONTROL}]"
_LONGEST = 4095  # bytes of a path: PATH_MAX of Linux, without the final zero byte
_PATH = rf"(?!.{{{_LONGEST + 1}}})(?!(?:.*/)?\.\.(?:/|$))/"

LabelKey = Annotated[str, Text("a label key", KEY, "example.com/name")]
LabelValue = Annotated[str, Text("a label value of at most 63 characters", VALUE, "gpu")]
# Names of devices have a prefix. Names without one are cpu, memory and others of Kubernetes itself.
_RESOURCE = "a resource name with a prefix"
Resource = Annotated[str, Text(_RESOURCE, rf"{SUBDOMAIN}/{NAME}", "nvidia.com/gpu")]
Resources = Annotated[
    str,
    Text(
        f"{_RESOURCE}, in which a * may stand at the end",
        rf"{SUBDOMAIN}/(?:{NAME}|{_START})",
        "nvidia.com/mig-*",
    ),
]
TaintKeys = Annotated[
    str,
    Text("the key of a taint, in which a * may stand at the end", _KEYS, "example.com/starting"),
]
ExtendedResource = Annotated[
    str,
    Text(
        "the name of an extended resource, which a device plugin can offer: not of kubernetes.io",
        # The name with `requests.` before it, as in a ResourceQuota, must be a resource name, too
        # (IsExtendedResourceName, pkg/apis/core/v1/helper).
        rf"(?!.*kubernetes\.io/)(?!requests\.)(?![^/]{{245}}){SUBDOMAIN}/{NAME}",
        "nvidia.com/gpu",
    ),
]
ObjectName = Annotated[str, Text("the name of an object", SUBDOMAIN, "nvidia")]
NamespacedName = Annotated[
    str,
    Text(
        "the namespace and the name of an object, with a / between",
        rf"{DNS_LABEL}/{SUBDOMAIN}",
        "kube-system/nvidia",
    ),
]
Scheduler = Annotated[str, Text("the name of a scheduler", r"[!-~]+", "my-scheduler")]
# GPU108 accepts only such a name from the annotation.
AnnotationScheduler = Annotated[
    str, Text("the name of a scheduler, a DNS subdomain", SUBDOMAIN, "my-scheduler")
]
HostPath = Annotated[
    str,
    Text(
        f"an absolute path without .., of at most {_LONGEST} characters",
        rf"{_PATH}{_NO_CONTROL}*",
        "/usr/lib/nvidia-375",
    ),
]
MountPath = Annotated[
    str,
    Text(
        f"an absolute path below / without .. and :, of at most {_LONGEST} characters",
        rf"(?!/(?:\.?/)*\.?$){_PATH}[^:{_CONTROL}]*",
        "/usr/local/nvidia/lib64",
    ),
]
LibraryPath = Annotated[
    str,
    Text(
        f"a text in one line of at most {_LONGEST} characters",
        rf"{_NO_CONTROL}{{1,{_LONGEST}}}",
        "/usr/local/nvidia/lib64",
    ),
]
Line = Annotated[str, Text("a text in one line", rf"{_NO_CONTROL}+")]
# A warning is cut at 256 characters, and the help text is its end.
ShortLine = Annotated[
    str, Text("a text in one line of at most 160 characters", rf"{_NO_CONTROL}{{0,160}}")
]
KindName = Annotated[
    str,
    Text("a kind, in capitals as Kubernetes writes it", r"[A-Z][A-Za-z0-9]{0,62}", "TFJob"),
]
Group = Annotated[str, Text("an API group without version", rf"(?:{SUBDOMAIN})?", "kubeflow.org")]
Pointer = Annotated[
    str,
    Text(
        "a JSON Pointer, in which a * stands for any member or item",
        r"(?:/(?:[^~/\x00-\x1f]|~[01])+)+",
        "/spec/template",
    ),
]
_Namespace = Annotated[
    str,
    Text(
        "the name of a namespace, in which a * stands for any text",
        r"(?![-a-z0-9*]{64})[a-z0-9*](?:[-a-z0-9*]*[a-z0-9*])?",
        '"team-*"',
    ),
]
NOT_EMPTY = Field(min_length=1)
MOST_IN_A_POD = 100  # entries of a list that a pod gets whole: a pod has at most 1.5 MiB in etcd
NOT_TOO_MANY = Field(max_length=MOST_IN_A_POD)
Namespaces = Annotated[tuple[_Namespace, ...], NOT_EMPTY]
Labels = Annotated[dict[LabelKey, LabelValue], NOT_EMPTY]
Percent = Annotated[int, Field(ge=0, le=100)]
Amount = Annotated[int, Field(ge=1, le=100_000)]


def codes_of(rules: Iterable[Named]) -> dict[str, str]:
    """The codes and names of these rules, each with its code."""
    ordered = sorted(rules, key=lambda each: each.CODE)
    return {word: rule.CODE for rule in ordered for word in (rule.CODE, rule.NAME)}


CODES = codes_of(ALL)
_RULE = Word(CODES, "the code or name of a rule (`gpu-webhook explain` lists them)")
POLICY_RULE = Word(
    codes_of(rule for rule in ALL if rule.FACTS.has_exceptions),
    "the code or name of a GPU3xx rule: only these have exceptions",
)
UNSAFE_RULE = Word(
    codes_of(rule for rule in ALL if rule.FACTS.unsafe),
    "the code or name of a rule that has edits that are not safe",
)
AnyMode = Annotated[Mode, Field(strict=False)]  # strict would require a Mode, not its word


def by_code(modes: Mapping[str, Mode]) -> dict[str, Mode]:
    """The modes by the codes of rules."""
    return {CODES[word]: mode for word, mode in modes.items()}


def _each_rule_once(modes: dict[str, Mode]) -> dict[str, Mode]:
    first: dict[str, str] = {}
    for word in modes:
        if first.setdefault(CODES[word], word) != word:
            raise refused(f"{CODES[word]} stands twice: delete one", word, AT_THE_NAME)
    return modes


def _modes_schema() -> Schema:
    """Names every rule, so that editors can complete and explain them."""
    mode = {"enum": [each.value for each in Mode]}
    about = {
        rule.CODE: f"{rule.CODE} {rule.NAME}: {(rule.__doc__ or '').partition(chr(10))[0]}"
        for rule in ALL
    }
    synonyms = [[code, word] for word, code in CODES.items() if word != code]
    return {
        "type": "object",
        "propertyNames": {"enum": list(CODES), "errorMessage": f"must be {_RULE.what}"},
        "properties": {word: {"title": about[code], **mode} for word, code in CODES.items()},
        "additionalProperties": mode,  # no other names: propertyNames has all
        "allOf": [{"not": {"required": pair}} for pair in synonyms],
    }


_Modes = Annotated[
    dict[Annotated[str, _RULE], AnyMode],
    AfterValidator(_each_rule_once),
    WithJsonSchema(_modes_schema()),
]
Modes = TypeAliasType("Modes", _Modes)  # with a name, so that it occurs once in the JSON Schema
