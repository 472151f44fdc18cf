"""Whether the webhook may be removed: what is left in a cluster and what came in, one page out.

`Usage.verdict` alone decides it. Nothing is safe that is not known: what could not be read is in
`gaps`, and `since` is the time before which nothing is known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import __version__
from webhook.kube.times import DAY, date
from webhook.reports.escaping import sentence
from webhook.reports.frame import escaped, framed
from webhook.reports.printing import as_json, as_yaml
from webhook.rules import is_legacy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Row = tuple[str, ...]

SAFE, UNKNOWN, LEFT = "safe", "unknown", "left"
_TITLE = "Legacy GPU use in this cluster"
_OWNERS = ("namespace", "owner", "objects", "last created", "rules", "to be changed")
_CAME = ("namespace", "last one", "objects", "of which")


class Owner(NamedTuple):
    """What has objects that need the webhook, or had some; `newest` is 0 if that is unknown."""

    namespace: str
    kind: str
    name: str
    change: str = ""
    objects: int = 0  # that still exist
    newest: float = 0.0
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What is known now; times are seconds of the epoch."""

    now: float
    days: int  # for so long nothing legacy must have come
    since: float  # from then on the webhook has counted all that came
    began: str = ""  # what happened then
    owners: Sequence[Owner] = ()
    last: Mapping[str, float] = field(default_factory=dict)  # by namespace: when one came
    kinds: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # how many came
    gaps: Sequence[str] = ()  # what must be known first
    notes: Sequence[str] = ()  # what a cluster cannot answer
    checked: int = 0  # objects
    repairs: Mapping[str, float] = field(default_factory=dict)  # of modern pods, by rule: the last
    policies: Mapping[str, str] = field(default_factory=dict)  # in force, by rule: what they do

    def age(self, when: float) -> float:
        """How many days ago that was."""
        return (self.now - when) / DAY

    @property
    def lately(self) -> int:
        """The number of namespaces from which legacy objects came within these days."""
        return sum(self.age(when) < self.days for when in self.last.values())

    @property
    def completed(self) -> list[str]:
        """The rules that within these days added what modern pods cannot run without."""
        return sorted(code for code, when in self.repairs.items() if self.age(when) < self.days)

    @property
    def quiet(self) -> float:
        """The days for which it is known that nothing came which needs the webhook."""
        return max(0.0, self.age(max(self.since, *self.last.values(), *self.repairs.values(), 0.0)))

    @property
    def verdict(self) -> str:
        """SAFE only if nothing is left, nothing came for so many days, and both are known."""
        if self.owners or self.lately or self.completed or self.policies:
            return LEFT
        return UNKNOWN if self.gaps or self.quiet < self.days else SAFE

    @property
    def answer(self) -> str:
        """The verdict as a sentence."""
        if self.verdict == LEFT:
            modern = sum(
                bool(each.codes) and not any(map(is_legacy, each.codes)) for each in self.owners
            )
            legacy = len(self.owners) - modern
            found = {
                f"{_number(legacy, 'owner')} with legacy objects left": legacy,
                f"{_number(modern, 'owner')} of modern pods that run only repaired": modern,
                f"legacy objects from {_number(self.lately, 'namespace')} in the last "
                f"{_number(self.days, 'day')}": self.lately,
                f"repairs by {', '.join(self.completed)} in the last "
                f"{_number(self.days, 'day')}": len(self.completed),
                f"only the webhook enforces {', '.join(sorted(self.policies))}": len(self.policies),
            }
            return f"Not yet: {', '.join(each for each, count in found.items() if count)}"
        if self.gaps:
            return "Not known: nothing legacy was found, but not everything could be checked"
        quiet = f"othing legacy for {_number(int(self.quiet), 'day')}"
        if self.verdict == SAFE:
            return f"N{quiet}: safe to remove"
        after = date(self.now + (self.days - self.quiet) * DAY)
        return f"Not known yet: n{quiet}, nothing is known before; ask after {after}"

    @property
    def known(self) -> str:
        """Since when it is known what came, and why not for longer."""
        if self.since > self.now:
            return "It is not known what came to the webhook."
        share = f"{min(self.age(self.since), self.days):.1f} of {_number(self.days, 'day')}"
        return f"Known since {date(self.since)} ({share}): {sentence(self.began)} then."

    def sections(self) -> Iterator[tuple[str, Row, list[Row]]]:
        """The parts of the page: heading, columns (a list has none), rows."""
        yield (
            f"Left, of {_number(self.checked, 'object')}",
            _OWNERS,
            [*map(self._owner, self.owners)],
        )
        latest = Counter(self.last).most_common()
        yield "Came to the webhook", _CAME, [self._came(*each) for each in latest]
        if self.repairs:
            rows: list[Row] = [(code, self._when(at)) for code, at in sorted(self.repairs.items())]
            yield "Repairs of modern pods", ("rule", "last one"), rows
        if self.policies:
            yield "Ends with the webhook", ("rule", "what it does"), [*self.policies.items()]
        for heading, said in (("Not known", self.gaps), ("Not in this report", self.notes)):
            if said:
                yield heading, (), [(each,) for each in said]

    def _owner(self, owner: Owner) -> Row:
        space, kind, name, change, objects, newest, codes = owner
        there = f"{objects:,}" if objects else "deleted"
        return space, f"{kind}/{name}", there, self._when(newest), ", ".join(codes), change

    def _came(self, namespace: str, when: float) -> Row:
        kinds = self.kinds.get(namespace, {})
        parts = (f"{kind} {number:,}" for kind, number in sorted(kinds.items()))
        return namespace, self._when(when), f"{sum(kinds.values()):,}", ", ".join(parts)

    def _when(self, seconds: float) -> str:
        return f"{date(seconds)[:10]} ({self.age(seconds):.0f} d ago)" if seconds else ""


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def data(usage: Usage) -> dict[str, Any]:
    """The page for programs."""
    since = date(usage.since) if usage.since <= usage.now else None
    return {
        "version": 1,  # of the format, as in data.py
        "tool": {"name": "gpu-webhook", "version": __version__},
        "verdict": usage.verdict,
        "answer": usage.answer,
        "days": usage.days,
        "quietDays": round(usage.quiet, 2),
        "known": {"since": since, "because": usage.began},
        "checked": usage.checked,
        "owners": [
            each._asdict() | {"newest": date(each.newest) if each.newest else None}
            for each in usage.owners
        ],
        "namespaces": [
            {"name": name, "last": date(when), "objects": dict(usage.kinds.get(name, {}))}
            for name, when in sorted(usage.last.items())
        ],
        "repairs": [
            {"rule": code, "last": date(when)} for code, when in sorted(usage.repairs.items())
        ],
        "policies": dict(usage.policies),
        "gaps": [*usage.gaps],
        "notes": [*usage.notes],
    }


def text(usage: Usage) -> str:
    """The page for a terminal."""
    lines = [usage.answer, usage.known]
    for heading, columns, rows in usage.sections():
        lines += ["", f"{heading}:" if rows else f"{heading}: nothing"]
        table = [columns, *rows] if rows and columns else [("-", *row) for row in rows]
        shown = [[sentence(cell) for cell in row] for row in table]
        wide = [max(map(len, column)) for column in zip(*shown, strict=True)]
        gap = "  " if columns else " "
        lines += [gap.join(map(str.ljust, row, wide)).rstrip() for row in shown]
    return "".join(f"{line}\n" for line in lines)


def html(usage: Usage) -> str:
    """The page for a browser."""
    return framed(
        _TITLE,
        f'<header><h1>{_TITLE}</h1><p class="summary">{date(usage.now)}</p></header>'
        f'<main class="page"><p class="answer {usage.verdict}">{escaped(usage.answer)}.</p>'
        f"<p>{escaped(usage.known)}</p>{''.join(_section(*each) for each in usage.sections())}"
        f"</main><footer>gpu-webhook {escaped(__version__)}</footer>",
    )


def _section(heading: str, columns: Row, rows: list[Row]) -> str:
    tag = "td" if columns else "li"
    cells = ["".join(f"<{tag}>{escaped(sentence(cell))}</{tag}>" for cell in row) for row in rows]
    if columns and rows:
        head = "".join(f'<th scope="col">{each}</th>' for each in columns)
        body = "".join(f"<tr>{each}</tr>" for each in cells)
        inside = (
            f'<div class="wide" tabindex="0" role="region" aria-label="{heading}"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
    else:
        inside = f"<ul>{''.join(cells)}</ul>" if cells else "<p>Nothing.</p>"
    return f"<section><h2>{heading}</h2>{inside}</section>"


PRINTED: dict[str, Callable[[Usage], str]] = {
    "text": text,
    "json": lambda usage: as_json(data(usage)),
    "yaml": lambda usage: as_yaml(data(usage)),
    "html": html,
}
