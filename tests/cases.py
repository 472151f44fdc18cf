"""The cases of tests/corpus: `<rule>/<case>.yaml` in, `.fixed.yaml` and `.findings.txt` out.

`<case>.settings.yaml` and `<case>.nodes.yaml`, where they are there, are what a user gives as
`--config` and `--inventory`. Cases of the rules on manifests are judged as the second road does:
the whole object first, then each pod template; those whose name ends with `unsafe` as with
`--unsafe`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.engine import run
from webhook.core.draft import Draft
from webhook.core.findings import Safety, Verdict
from webhook.core.modes import modes_for
from webhook.core.rule import Context, Facts
from webhook.core.settings import Settings
from webhook.evaluation import engine
from webhook.evaluation.workloads import around, template_at, templates_of
from webhook.inventory import inventory_file
from webhook.kube.pointer import ROOT
from webhook.rules import GUARD, MANIFEST, POLICY, RULES
from webhook.settings import file as settings_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.core.findings import Finding
    from webhook.core.rule import Named, Rule

    Watch = Callable[[Any], Any]  # a rule in the place of another

CORPUS = Path(__file__).parent / "corpus"
OUTPUTS = (".fixed.yaml", ".findings.txt")
GIVEN = (".settings.yaml", ".nodes.yaml")
DAY = date(2026, 11, 21)  # of all cases: an exception may end


@dataclass(eq=False)
class MadeRule:
    """A rule made for a test: a real one is a module, so it is compared by identity."""

    NAME: str
    CODE: str
    FACTS: Facts
    check: Any


def _as_it_is(rule: Named) -> Named:
    return rule


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
        inventory = inventory_file.load(str(nodes), settings) if nodes.exists() else None
        namespace = obj["metadata"].get("namespace", "default")
        modes = modes_for(settings.policy, namespace, {})
        if self.is_on_manifest:
            settings = replace(settings, scope="all-legacy")
            unsafe = self.file.stem.endswith("unsafe")
            return Context(
                settings, inventory, modes=modes, today=DAY, in_manifest=True, unsafe=unsafe
            )
        cx = Context(settings, inventory, namespace, modes=modes, today=DAY)
        return cx if template_at(obj) == ROOT else around(cx, obj)

    @property
    def is_for_guard(self) -> bool:
        return self.rule in {rule.NAME for rule in GUARD}

    @property
    def is_on_manifest(self) -> bool:
        return self.rule in {rule.NAME for rule in MANIFEST}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that a pod like this meets, in order."""
        return GUARD if self.is_for_guard else (*RULES, *POLICY)

    def judge(self, obj: dict[str, Any], watch: Watch = _as_it_is) -> Verdict:
        """Send the object down its road; it is repaired in place."""
        cx = self.context(obj)
        rules = [watch(rule) for rule in self.rules]
        if self.is_on_manifest:
            return _second_road([watch(rule) for rule in MANIFEST], rules, obj, cx)
        at = template_at(obj)
        assert at is not None
        return run(rules, obj, cx, at, every_pod=self.is_for_guard)

    def outputs(self) -> dict[Path, str]:
        """What the golden files of this case must say."""
        obj = self.object()
        verdict = self.judge(obj)
        findings = "".join(
            f"{each.code} {each.severity}{_only_on_request(each)} {each.at.dotted}\n"
            f"    {each.message}\n"
            for each in verdict.findings
        )
        fixed = yaml.safe_dump(obj, sort_keys=False, width=100)
        return dict(zip(map(self.beside, OUTPUTS), (fixed, findings), strict=True))


def _only_on_request(finding: Finding) -> str:
    return "" if finding.safety is Safety.SAFE else f" ({finding.safety})"


def _second_road(
    manifest: list[Any], rules: list[Any], obj: dict[str, Any], cx: Context
) -> Verdict:
    draft = Draft(obj)
    verdicts = [engine.run_on_object(manifest, draft, cx)]
    for at in templates_of(obj, cx.settings):
        inside = cx if at == ROOT else around(cx, obj)
        verdicts.append(engine.run(rules, draft, inside, at))
    return Verdict(
        tuple(finding for verdict in verdicts for finding in verdict.findings),
        draft.patch(),
        tuple(failure for verdict in verdicts for failure in verdict.failed),
    )


def cases() -> list[Case]:
    """Every case, in order."""
    return [
        Case(file)
        for file in sorted(CORPUS.glob("*/*.yaml"))
        if not file.name.endswith((*OUTPUTS, *GIVEN))
    ]
