"""Draws docs/architecture.svg: the rooms of the package and their imports, as the code has them.

`python -m tests.laws.rooms_picture` writes it. Rows are the layers of pyproject.toml. An arrow is
an import; it is left out where other arrows lead to the same room.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "architecture.svg"
RENEW = "python -m tests.laws.rooms_picture"

WIDTH, TOP, ROW = 1100, 64, 74  # of the picture, of its head, of a layer
BOX_WIDTH, BOX_HEIGHT = 160, 48


@dataclass(frozen=True)
class Room:
    """Where a room is drawn, what it is for, and to which group it belongs."""

    x: int  # of its middle
    text: str
    group: str


ROOMS = {
    "cli": Room(540, "commands", "entry"),
    "doctor": Room(540, "what is wrong in a cluster", "cluster"),
    "verifying": Room(195, "old is new, proven", "file"),
    "settings": Room(287, "settings file, JSON Schema", "entry"),
    "issuing": Room(467, "own certificates", "cluster"),
    "projects": Room(105, "files that belong together", "file"),
    "serving": Room(910, "connections, limits", "request"),
    "inventory": Room(647, "nodes and pods, watched", "cluster"),
    "formats": Room(195, "YAML, Helm, Markdown...", "file"),
    "admission": Room(910, "review in, patch out", "request"),
    "reports": Room(365, "text, SARIF, HTML...", "file"),
    "cluster": Room(735, "client of the API server", "cluster"),
    "certs": Room(540, "TLS certificates", "request"),
    "templates": Room(97, "Helm and Jinja actions", "file"),
    "telemetry": Room(1000, "logs, metrics", "request"),
    "files": Room(300, "find, read, write", "file"),
    "yamlpatch": Room(205, "smallest change of a text", "file"),
    "rules": Room(540, "one module a rule", "pure"),
    "evaluation": Room(540, "which rules, which order", "pure"),
    "capacity": Room(540, "does a pod fit a node?", "pure"),
    "core": Room(540, "edits, findings, settings", "pure"),
    "kube": Room(540, "pods, quantities, labels", "pure"),
}
LEGEND = (
    ("request", "answers requests"),
    ("file", "changes files"),
    ("cluster", "watches the cluster"),
    ("pure", "decides: pure, no I/O"),
)
STYLE = """\
  text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2933; }
  .page { fill: #ffffff; } .band { fill: #f5f7fa; }
  .name { font-size: 16px; font-weight: 600; text-anchor: middle; }
  .text { font-size: 11.5px; fill: #52606d; text-anchor: middle; }
  .head { font-size: 20px; font-weight: 600; } .note { font-size: 12.5px; fill: #52606d; }
  rect.room { stroke-width: 1.5; } path { fill: none; stroke-width: 1.6; }
  .entry { fill: #e4e7eb; stroke: #7b8794; } path.entry { fill: none; stroke: #9aa5b1; }
  .request { fill: #ffefe0; stroke: #d9731a; } path.request { fill: none; }
  .file { fill: #e3f0fc; stroke: #2b7bc4; } path.file { fill: none; }
  .cluster { fill: #f0e8fb; stroke: #8250c4; } path.cluster { fill: none; }
  .pure { fill: #e2f5e9; stroke: #2a8a52; } path.pure { fill: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .text, .note { fill: #9fb0c0; }
    .page { fill: #0d1117; } .band { fill: #151b23; }
    rect.entry { fill: #2a313a; } rect.request { fill: #3d2714; } rect.file { fill: #12304d; }
    rect.cluster { fill: #2d2145; } rect.pure { fill: #12351f; }
  }
"""


def layers() -> list[list[str]]:
    """The rooms of each layer, from the top, as the contract has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    return next(
        [layer.split(" | ") for layer in each["layers"]]
        for each in contracts
        if each["type"] == "layers"
    )


def imports() -> dict[str, set[str]]:
    """The rooms that each room imports."""
    graph = grimp.build_graph("webhook", cache_dir=None, exclude_type_checking_imports=True)
    found: dict[str, set[str]] = {name: set() for layer in layers() for name in layer}
    for module in graph.modules:
        room = _room(module)
        if room in found:
            others = graph.find_modules_directly_imported_by(module)
            found[room] |= {_room(each) for each in others} & found.keys() - {room}
    return found


def _room(module: str) -> str:
    return [*module.split("."), ""][1]


def arrows(rooms: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports that do not follow from others."""

    def reached(name: str) -> set[str]:
        return rooms[name].union(*map(reached, rooms[name]))

    return [
        (name, other)
        for name, others in rooms.items()
        for other in sorted(others - set().union(*map(reached, others)))
    ]


def drawn() -> str:
    """The picture, as SVG."""
    rows = layers()
    middle = {
        name: (ROOMS[name].x, TOP + ROW * row + ROW // 2)
        for row, names in enumerate(rows)
        for name in names
    }
    height = TOP + ROW * len(rows) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">',
        "<title>The rooms of the package webhook and their imports</title>",
        f"<style>\n{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="12"/>',
        *(_band(row) for row in range(0, len(rows), 2)),
        '<text class="head" x="28" y="40">The rooms</text>',
        *(_key(200 + 190 * place, *each) for place, each in enumerate(LEGEND)),
        *(_arrow(name, other, middle) for name, other in arrows(imports())),
        *(_box(name, *middle[name]) for names in rows for name in names),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _band(row: int) -> str:
    return f'<rect class="band" x="0" y="{TOP + ROW * row}" width="{WIDTH}" height="{ROW}"/>'


def _key(x: int, group: str, text: str) -> str:
    square = f'<rect class="room {group}" x="{x}" y="25" width="18" height="18" rx="4"/>'
    return f'{square}<text class="note" x="{x + 26}" y="39">{escape(text)}</text>'


def _box(name: str, x: int, y: int) -> str:
    room = ROOMS[name]
    left, top = x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2
    return (
        f'<rect class="room {room.group}" x="{left}" y="{top}" width="{BOX_WIDTH}"'
        f' height="{BOX_HEIGHT}" rx="8"/>'
        f'<text class="name" x="{x}" y="{y - 3}">{name}</text>'
        f'<text class="text" x="{x}" y="{y + 14}">{escape(room.text)}</text>'
    )


def _arrow(name: str, other: str, middle: dict[str, tuple[int, int]]) -> str:
    """A curve from the bottom of a box to the top of another; to its side if it is far below."""
    (x, y), (to_x, to_y) = middle[name], middle[other]
    y += BOX_HEIGHT // 2
    group = ROOMS[name].group
    is_covered = (to_x, to_y - ROW) in middle.values()
    if x != to_x and (is_covered or to_y - y > 2 * ROW):
        right = 1 if x > to_x else -1
        to_x += right * BOX_WIDTH // 2
        curve = f"M{x} {y}C{x} {to_y} {x} {to_y} {to_x + right * 7} {to_y}"
        head = f"M{to_x + right * 8} {to_y - 4}L{to_x + right} {to_y}L{to_x + right * 8} {to_y + 4}"
    else:
        to_y -= BOX_HEIGHT // 2
        bend = (to_y - y) // 2
        curve = f"M{x} {y}C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y - 7}"
        head = f"M{to_x - 4} {to_y - 8}L{to_x} {to_y - 1}L{to_x + 4} {to_y - 8}"
    return (
        f'<path class="{group}" d="{curve}"><title>{name} imports {other}</title></path>'
        f'<path class="{group}" d="{head}"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn())
