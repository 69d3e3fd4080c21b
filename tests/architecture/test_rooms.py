"""The map in ``docs/architecture.md`` shows the folders as they are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "switchyard_core"
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_rooms_of_the_map_are_the_entries_of_the_core() -> None:
    rooms = re.findall(r"^\| `([\w./]+)` \| ", MAP, re.MULTILINE)
    entries = {
        f"{entry.name}/" if entry.is_dir() else entry.name
        for entry in CORE.iterdir()
        if entry.name not in ("__pycache__", "__init__.py", "py.typed")
    }

    assert set(rooms) == entries
    assert len(rooms) == len(set(rooms)), "a room is listed twice"
    assert len(rooms) <= 30


def test_map_lists_the_rooms_in_the_order_of_their_imports() -> None:
    layers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (names,) = re.findall(r"^layers = \[\n(.*?)^\]", layers, re.MULTILINE | re.DOTALL)
    order = [re.findall(r"\w+", line) for line in re.findall(r'"([^"]+)"', names)]
    level = {name: number for number, line in enumerate(order) for name in line}
    rooms = [
        room.removesuffix("/").removesuffix(".py")
        for room in re.findall(r"^\| `([\w./]+)` \| ", MAP, re.MULTILINE)
    ]

    levels = [level[room] for room in rooms]
    wrong = [rooms[n] for n in range(1, len(levels)) if levels[n] < levels[n - 1]]
    assert not wrong, f"listed below a room that may not import them: {wrong}"
