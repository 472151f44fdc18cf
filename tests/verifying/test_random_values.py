"""Values that each rendering makes anew: what is still compared, and what is not provable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.verifying.test_command import (
    DIFFERENT,
    EQUAL,
    NOT_PROVABLE,
    program,
    verify,
    written,
)  # fmt: skip
from webhook.verifying import comparison

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verifying.test_command import Verify

__all__ = ["verify"]

DATA = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
PEM = '"-----BEGIN KEY-----\\nsame\\n$1==\\n-----END KEY-----\\n"'
SCRIPT = r"""
PATH=/usr/bin:/bin
n=$(($(cat runs 2>/dev/null) + 1)); echo $n >runs
end=$([ $n -gt 2 ] && echo '/^---/,$d')
list=$(seq -s, $n)
sed "s/\$1/w$n/g; s/\$2/$n/g; s/\$3/[$list]/g; $end" $3/templates/made.tpl
"""
# What helm prints of the old and the new chart ($1 is another word each time), and the result.
TABLE: dict[str, tuple[str, str, int, str]] = {
    "a text": ("data: {a: $1}", "data: {a: $1}", EQUAL, "value of data.a, which is not judged"),
    "a key of several lines": (f"data: {{a: {PEM}}}", f"data: {{a: {PEM}}}", EQUAL, "not judged"),
    "a part of a text that stays": ("data: {a: x $1}", "data: {a: x $1}", EQUAL, "not judged"),
    "a part of a text that changes": ("data: {a: x $1}", "data: {a: y $1}", NOT_PROVABLE, "data.a"),
    "a fixed text before": ("data: {a: x}", "data: {a: $1}", NOT_PROVABLE, "data.a"),
    "a fixed text beside it that changes": (
        *("data: {a: $1, b: x}", "data: {a: $1, b: y}"),
        DIFFERENT,
        "data.b (changed by no rule)",
    ),
    "a number": ("x: $2", "x: $2", NOT_PROVABLE, "another value of x"),
    "a name": ("data: {$1: x}", "data: {$1: x}", NOT_PROVABLE, "another value of data"),
    "a name of the whole object": ("$1: x", "$1: x", NOT_PROVABLE, "of the whole object"),
    "a list of another length": ("x: $3", "x: $3", NOT_PROVABLE, "another value of x"),
    "an object that later renderings do not have": (
        *(f"---\n{DATA}x: $1", f"---\n{DATA}x: $1"),
        NOT_PROVABLE,
        "another value of the whole object",
    ),
    "many places": (
        *(f"data: {{{', '.join(f'{each}: $1' for each in 'abcdefghij')}}}",) * 2,
        EQUAL,
        "data.h and 2 more, which is not judged",
    ),
}


@pytest.mark.parametrize(("was", "now", "code", "words"), TABLE.values(), ids=TABLE)
def test_renderings_that_differ(
    was: str,
    now: str,
    code: int,
    words: str,
    verify: Verify,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The program prints other values in each run."""
    monkeypatch.setattr(comparison, "_TICK", 0)
    program(tmp_path, "helm", SCRIPT)
    chart: dict[str, Any] = {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n"}
    written(tmp_path / "old", {**chart, "templates/made.tpl": f"{DATA}{was}\n"})
    written(tmp_path / "new", {**chart, "templates/made.tpl": f"{DATA}{now}\n"})
    found, said = verify("old", "new")
    assert (found, words in said) == (code, True), said
