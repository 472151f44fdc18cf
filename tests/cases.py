"""The cases of tests/corpus: `<rule>/<case>.yaml` in, `.fixed.yaml` and `.findings.txt` out.

`<case>.settings.yaml` and `<case>.nodes.yaml`, where they are there, are what a user gives as
`--config` and `--inventory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from webhook.cli import settings_file
from webhook.core.engine import run
from webhook.core.modes import modes_for
from webhook.core.pointer import ROOT
from webhook.core.rule import Context
from webhook.core.settings import Settings
from webhook.core.workloads import around, template_at
from webhook.inventory import static
from webhook.rules import GUARD, POLICY, RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.core.findings import Verdict
    from webhook.core.rule import Rule

CORPUS = Path(__file__).parent / "corpus"
OUTPUTS = (".fixed.yaml", ".findings.txt")
GIVEN = (".settings.yaml", ".nodes.yaml")
DAY = date(2026, 11, 21)  # of all cases: an exception may end


@dataclass(frozen=True)
class Case:
    """One manifest with what belongs to it."""

    file: Path

    def __str__(self) -> str:
        return f"{self.rule}/{self.file.stem}"

    @property
    def rule(self) -> str:
        return self.file.parent.name

    def beside(self, ending: str) -> Path:
        """The file of this case with another ending."""
        return self.file.with_name(self.file.stem + ending)

    def object(self) -> dict[str, Any]:
        obj: dict[str, Any] = yaml.safe_load(self.file.read_text())
        return obj

    def context(self, obj: dict[str, Any]) -> Context:
        config, nodes = (self.beside(ending) for ending in GIVEN)
        settings = settings_file.load(str(config)) if config.exists() else Settings()
        inventory = static.load(str(nodes), settings) if nodes.exists() else None
        namespace = obj["metadata"].get("namespace", "default")
        modes = modes_for(settings.policy, namespace, {})
        cx = Context(settings, inventory, namespace, modes=modes, today=DAY)
        return cx if template_at(obj) == ROOT else around(cx, obj)

    @property
    def is_for_guard(self) -> bool:
        return self.rule in {rule.NAME for rule in GUARD}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that an object like this meets, in order."""
        return GUARD if self.is_for_guard else (*RULES, *POLICY)

    def judge(self, obj: dict[str, Any], rules: Sequence[Rule] = ()) -> Verdict:
        """Send the object down road 1; it is repaired in place."""
        at = template_at(obj)
        assert at is not None
        cx = self.context(obj)
        return run(rules or self.rules, obj, cx, at, every_pod=self.is_for_guard)

    def outputs(self) -> dict[Path, str]:
        """What the golden files of this case must say."""
        obj = self.object()
        verdict = self.judge(obj)
        findings = "".join(
            f"{each.code} {each.severity} {each.at.dotted}\n    {each.message}\n"
            for each in verdict.findings
        )
        fixed = yaml.safe_dump(obj, sort_keys=False, width=100)
        return dict(zip(map(self.beside, OUTPUTS), (fixed, findings), strict=True))


def cases() -> list[Case]:
    """Every case, in order."""
    return [
        Case(file)
        for file in sorted(CORPUS.glob("*/*.yaml"))
        if not file.name.endswith((*OUTPUTS, *GIVEN))
    ]
