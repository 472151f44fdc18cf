"""Writes docs/rules: a page a rule, from its docstring and its corpus case `example`.

`python -m tests.laws.rule_pages` renews them; tests/laws/test_rules.py fails when they are stale.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.cases import CORPUS, GIVEN, OUTPUTS, Case
from webhook.rules import ALL

if TYPE_CHECKING:
    from webhook.core.rule import Named

PAGES = Path(__file__).parents[2] / "docs" / "rules"
RENEW = "python -m tests.laws.rule_pages"
_WORDS = ("Why:", "Does:", "Safety:")
_GENERATED = f"<!-- Generated from the rule's docstring and its corpus case: `{RENEW}` -->\n"
_INDEX = """\
# The rules

What the webhook finds on a GPU pod, and what it does about it. Rules act in the order of
`webhook/rules/__init__.py`; this table is in the order of their codes, which is what a warning
begins with. `gpu-webhook explain CODE` prints a rule's manual.

| code | name | finds |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    """Every page with what it must say."""
    rules = sorted(ALL, key=lambda rule: rule.CODE)
    lines = [
        f"| [{rule.CODE}]({rule.CODE}.md) | {rule.NAME} | {_headline(rule)} |\n" for rule in rules
    ]
    made = {PAGES / f"{rule.CODE}.md": _page(rule) for rule in rules}
    return made | {PAGES / "README.md": _GENERATED + _INDEX + "".join(lines)}


def _headline(rule: Named) -> str:
    first = (rule.__doc__ or "").strip().partition("\n")[0]
    return first.removeprefix("Finds ").removesuffix(".")


def _page(rule: Named) -> str:
    manual = (rule.__doc__ or "").strip()
    for word in _WORDS:
        manual = manual.replace(f"\n{word}", f"\n**{word}**")
    case = Case(CORPUS / rule.NAME / "example.yaml")
    config, nodes = (case.beside(ending) for ending in GIVEN)
    fixed, findings = (case.beside(ending) for ending in OUTPUTS)
    parts = [f"{_GENERATED}# {rule.CODE} {rule.NAME}\n\n{manual}\n", "## Example\n"]
    parts.append(_block("Before", case.file))
    if config.exists():
        parts.append(_block("With these settings (`--config`)", config))
    if nodes.exists():
        parts.append(_block("In this cluster (`--inventory`)", nodes))
    parts.append(_block("After, with all rules", fixed))
    parts.append(_block("What is said", findings, "text"))
    return "\n".join(parts)


def _block(title: str, file: Path, language: str = "yaml") -> str:
    return f"{title}:\n\n```{language}\n{file.read_text().rstrip()}\n```\n"


def main() -> None:
    """Write the pages, and take away those of rules that are gone."""
    made = pages()
    PAGES.mkdir(parents=True, exist_ok=True)
    for file in PAGES.glob("*.md"):
        if file not in made:
            file.unlink()
    for file, text in made.items():
        file.write_text(text)


if __name__ == "__main__":
    main()
