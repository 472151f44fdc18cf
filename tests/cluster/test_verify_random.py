"""`gpu-webhook verify` of charts that make values anew, with the real helm."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster import build
from tests.verifying.test_command import CURRENT, DIFFERENT, EQUAL, LEGACY, NOT_PROVABLE

CHART = {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"}
DATA = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: %s\n"
OTHER = f"{DATA % '{{ randAlphaNum 16 }}'}---\n".replace("name: s", "name: t")
ENV = "image: i\n    env: [{name: a, value: '{{ uuidv4 }}'}, {name: b, value: b}]"
CERTIFICATE = '{{ (genCA "ca" 365).Cert | quote }}'
TEXT = '"user=%s password={{ randAlphaNum 16 }} gpus=%d"'
RANDOM_NAME = "job-{{ randAlphaNum 5 | lower }}"
NOT_JUDGED = "Secret/s: equal: each rendering makes another value of stringData.a"


def pods(text: str, **other: str) -> tuple[str, str]:
    """A legacy pod and the same one migrated, with parts replaced in both."""
    old, new = (each.replace("NAME", text) for each in (LEGACY, CURRENT))
    for part, by in other.items():
        old, new = old.replace(part, by), new.replace(part, by)
    return old, new


# The template before and after, the exit code, and a line of the output.
TABLE: dict[str, tuple[str, str, int, str]] = {
    "a random text": (*(DATA % "{{ randAlphaNum 16 }}",) * 2, EQUAL, NOT_JUDGED),
    "an identifier": (*(DATA % "{{ uuidv4 }}",) * 2, EQUAL, NOT_JUDGED),
    "a certificate": (*(DATA % CERTIFICATE,) * 2, EQUAL, NOT_JUDGED),
    "one in base64": (*(DATA % '{{ genPrivateKey "rsa" | b64enc }}',) * 2, EQUAL, NOT_JUDGED),
    "a hash": (*(DATA % '{{ htpasswd "a" "b" | quote }}',) * 2, EQUAL, NOT_JUDGED),
    "the time": (*(DATA % "{{ now | unixEpoch | quote }}",) * 2, EQUAL, "Secret/s: equal"),
    "the rest of the text stays": (*(DATA % (TEXT % ("u", 4)),) * 2, EQUAL, NOT_JUDGED),
    "the rest of the text changes": (
        DATA % (TEXT % ("u", 4)), DATA % (TEXT % ("u", 1)), NOT_PROVABLE,
        "Secret/s: not provable: each rendering makes another value of stringData.a",
    ),
    "a random text becomes a fixed one": (
        DATA % "{{ randAlphaNum 16 }}", DATA % "word", NOT_PROVABLE,
        "Secret/s: not provable: each rendering makes another value of stringData.a",
    ),
    "another text changes": (
        DATA % "{{ randAlphaNum 16 }}\n  b: x", DATA % "{{ randAlphaNum 16 }}\n  b: y",
        DIFFERENT, "Secret/s: different: ",
    ),
    "the text of another Secret changes": (
        f"{OTHER}{DATA % 'x'}", f"{OTHER}{DATA % 'y'}",
        DIFFERENT, "Secret/s: different: stringData.a (changed by no rule)",
    ),
    "a random name": (
        *pods(RANDOM_NAME), EQUAL,
        "equal: each rendering makes another value of metadata.name, which is not judged",
    ),
    "a pod with a random name stays legacy": (
        *(pods(RANDOM_NAME)[0],) * 2, DIFFERENT, "(changed by GPU101)",
    ),
    "one of several values of a list": (
        *pods("p", **{"image: i": ENV}),
        EQUAL, "another value of spec.containers.env.value",
    ),
    "a random amount of GPUs": (
        *pods("p", **{"gpu: 1": "gpu: {{ randInt 1 4000 }}"}), NOT_PROVABLE,
        "not provable: each rendering makes another value of spec.containers.resources.limits",
    ),
    "a random number": (
        *pods("p", **{"image: i": "image: i\n    ports: [{containerPort: {{ randInt 1 9000 }}}]"}),
        NOT_PROVABLE, "each rendering makes another value of spec.containers.ports.containerPort",
    ),
    "a list of a random length": (
        *pods("p", **{"image: i": 'image: i\n    args: [{{ repeat (randInt 1 900) "a," }}]'}),
        NOT_PROVABLE, "each rendering makes another value of spec.containers.args",
    ),
    "a random member of the object": (
        *pods("p", **{"spec:": "x{{ randAlpha 16 }}: 1\nspec:"}), NOT_PROVABLE,
        "Pod/p: not provable: each rendering makes another value of ",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("was", "now", "code", "words"), TABLE.values(), ids=TABLE)
def test_random_values(
    was: str,
    now: str,
    code: int,
    words: str,
    verify_with: Any,
) -> None:
    sides = ({**CHART, "templates/a.yaml": each} for each in (was, now))
    found, said = verify_with(build.helm().parent, *sides)
    assert (found, words in said) == (code, True), said
