"""Draws the dashboard with the data of a real Prometheus: `python -m tests.monitoring.drawn PNG`.

No Grafana can be had for tests (it is no Debian package). This draws what its panels would have, in
their places, colours, units and words, so that somebody can look at it.
"""

from __future__ import annotations

import html
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.monitoring import recorded
from tests.reports import browser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Panel = dict[str, Any]
    Series = list[dict[str, Any]]

FILE = Path(__file__).parents[2] / "manifests" / "monitoring" / "dashboard.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text())
_CHOSEN = {"$__rate_interval": "4h", "$__range": "7d"}  # what Grafana writes for its variables
_HOURS = 7 * 24
_COLUMN, _ROW, _GAP = 58, 34, 8  # pixels
_NAMED = {"red": "#c4162a", "orange": "#b35c00", "green": "#37872d", "blue": "#1f60c4"}
_OTHERS = ("#5794f2", "#ff9830", "#b877d9", "#73bf69", "#fade2a")
_STYLE = """
body { margin: 0; background: #111217; color: #ccccdc; font: 14px sans-serif }
section { position: absolute; box-sizing: border-box; background: #181b1f; overflow: hidden;
  border: 1px solid #2c3235; padding: 6px 10px }
section.row { background: none; border: 0; font-size: 18px }
h2 { font-size: 14px; margin: 0 0 6px }
.value { color: #fff; font-size: 26px; text-align: center; padding: 14px 4px; line-height: 1.1 }
td, th { text-align: left; padding: 3px 14px 3px 0 } svg { display: block } p { margin: 2px 0 }
"""


def written(query: str) -> str:
    """The query as Grafana sends it."""
    for variable, value in _CHOSEN.items():
        query = query.replace(variable, value)
    assert "$" not in query
    return query


def page(panels: Iterable[Panel], found: recorded.Prometheus) -> str:
    """The panels as HTML."""
    drawn = "".join(_panel(each, found) for each in panels)
    return f"<!doctype html><title>dashboard</title><style>{_STYLE}</style>{drawn}"


def data(panel: Panel, found: recorded.Prometheus) -> list[Series]:
    """What Prometheus answers to each query of a panel."""
    hours = 0 if panel["type"] in {"stat", "table"} else _HOURS
    return [found.ask(written(each["expr"]), hours) for each in panel.get("targets", ())]


def _panel(panel: Panel, found: recorded.Prometheus) -> str:
    at = panel["gridPos"]
    left, top = _COLUMN * at["x"], _ROW * at["y"]
    size = _COLUMN * at["w"] - _GAP, _ROW * at["h"] - _GAP
    kind, answers = panel["type"], data(panel, found)
    if kind in {"row", "text"}:
        inner = html.escape(panel.get("options", {}).get("content", ""))
    elif not any(answers):
        inner = html.escape(panel["fieldConfig"]["defaults"].get("noValue", "No data"))
        inner = f'<div class="value">{inner}</div>'
    else:
        draw_it = {"stat": _stat, "table": _table, "timeseries": _lines}[kind]
        inner = draw_it(panel, answers, size, found.now)
    return (
        f'<section class="{kind}" style="left:{left}px;top:{top}px;width:{size[0]}px;'
        f'height:{size[1]}px"><h2>{html.escape(panel["title"])}</h2>{inner}</section>'
    )


def _stat(panel: Panel, answers: list[Series], _: tuple[int, int], now: int) -> str:
    found, defaults = answers[0][0], panel["fieldConfig"]["defaults"]
    value = float(found["value"][1])
    shown, colour = _in_unit(value, defaults.get("unit", ""), now), "green"
    for step in defaults.get("thresholds", {}).get("steps", ()):
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    for mapping in defaults.get("mappings", ()):
        option = mapping["options"].get(f"{value:g}", {})
        shown, colour = option.get("text", shown), option.get("color", colour)
    name = " ".join(found["metric"].values())
    mode = panel["options"].get("textMode", "")
    shown = {"name": name, "value_and_name": f"{name}<br>{shown}"}.get(mode, shown)
    return f'<div class="value" style="background:{_NAMED[colour]}">{shown}</div>'


def _table(panel: Panel, answers: list[Series], _: tuple[int, int], now: int) -> str:
    units = {
        each["matcher"]["options"]: {p["id"]: p["value"] for p in each["properties"]}
        for each in panel["fieldConfig"]["overrides"]
    }
    rows: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for target, answer in zip(panel["targets"], answers, strict=True):
        name = f"Value #{target['refId']}" if answers[1:] else "Value"
        for each in answer:
            row = rows.setdefault(tuple(sorted(each["metric"].items())), {**each["metric"]})
            row[name] = _in_unit(float(each["value"][1]), units[name].get("unit", ""), now)
    (order,) = (each for each in panel["transformations"] if each["id"] == "organize")
    columns = sorted(order["options"]["indexByName"], key=order["options"]["indexByName"].get)
    heads = "".join(f"<th>{units.get(each, {}).get('displayName', each)}</th>" for each in columns)
    cells = (("<td>" + row.get(each, "") for each in columns) for row in rows.values())
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    return f"<table><tr>{heads}</tr>{body}</table>"


def _lines(panel: Panel, answers: list[Series], size: tuple[int, int], now: int) -> str:
    """Stacked bars or lines, each with its name and last value below."""
    width, height = size[0] - 20, size[1] - 76
    series = [
        (_legend(target["legendFormat"], each["metric"]), each["values"])
        for target, answer in zip(panel["targets"], answers, strict=True)
        for each in answer
    ]
    defaults = panel["fieldConfig"]["defaults"]
    is_stacked = defaults.get("custom", {}).get("stacking", {}).get("mode") == "normal"
    points = [{at: float(value) for at, value in values if value != "NaN"} for _, values in series]
    times = [now - hour * recorded.HOUR for hour in reversed(range(_HOURS + 1))]
    sums = [[each.get(at, 0.0) for each in points] for at in times]
    most = max((sum if is_stacked else max)(each) for each in sums) or 1.0
    colours = [_colour(panel, number, name) for number, (name, _) in enumerate(series)]
    if is_stacked:
        drawn = _bars(sums, most, width, height, colours)
    else:
        drawn = (_line(column, most, width, height) for column in zip(*sums, strict=True))
        drawn = (
            f'<polyline fill="none" stroke="{c}" {d}' for c, d in zip(colours, drawn, strict=True)
        )
    legend = " ".join(
        f'<span style="color:{colour}">&#9632;</span> {html.escape(name)} '
        f"({_in_unit(float(values[-1][1]), defaults.get('unit', ''), now)})"
        for (name, values), colour in zip(series, colours, strict=True)
    )
    top = _in_unit(most, defaults.get("unit", ""), now)
    picture = f'<svg width="{width}" height="{height}">{"".join(drawn)}</svg>'
    return f"{picture}<p>{legend}; up to {top}</p>"


def _bars(
    sums: list[list[float]], most: float, width: int, height: int, colours: list[str]
) -> Iterator[str]:
    wide = width / len(sums)
    for number, values in enumerate(sums):
        base = float(height)
        for value, colour in zip(values, colours, strict=True):
            tall = height * value / most
            base -= tall
            at = f'x="{number * wide:.1f}" y="{base:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
            yield f'<rect fill="{colour}" {at}/>'


def _line(values: Iterable[float], most: float, width: int, height: int) -> str:
    at = (
        f"{number * width / _HOURS:.1f},{height - (height - 2) * value / most:.1f}"
        for number, value in enumerate(values)
    )
    return f'points="{" ".join(at)}"/>'


def _legend(written_so: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), written_so)


def _colour(panel: Panel, number: int, name: str) -> str:
    for override in panel["fieldConfig"]["overrides"]:
        options = override["matcher"]["options"]
        is_it = re.search(options.strip("/"), name) if options[0] == "/" else options == name
        if is_it:
            return _NAMED[override["properties"][0]["value"]["fixedColor"]]
    return _OTHERS[number % len(_OTHERS)]


def _in_unit(value: float, unit: str, now: int) -> str:
    if unit == "dateTimeFromNow":
        return f"{_in_unit(now - value / 1000, 's', now)} ago"
    if unit != "s":
        return f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"
    for name, seconds in (("days", 86_400), ("hours", 3600), ("s", 1)):
        if value >= seconds:
            return f"{value / seconds:.3g} {name}"
    return f"{1000 * value:.3g} ms"


def draw(file: Path) -> None:
    """Write the picture."""
    lowest = max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in DASHBOARD["panels"])
    with (
        tempfile.TemporaryDirectory() as folder,
        recorded.prometheus(Path(folder)) as found,
        browser.started() as program,
    ):
        made = Path(folder) / "dashboard.html"
        made.write_text(page(DASHBOARD["panels"], found))
        shown = browser.Page(program, size=(24 * _COLUMN, _ROW * lowest))
        shown.open(made.as_uri())
        shown.screenshot(file)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
