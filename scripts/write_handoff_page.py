"""Writes the tables at the end of docs/handoff.md from the data; tests fail on a difference.

python scripts/write_handoff_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.wire.losses import all_losses
from switchyard_core.wire.rewrites import CORE_REWRITES

PAGE = Path(__file__).parents[1] / "docs" / "handoff.md"
#: The heading from which on the page is written by this script.
MARK = "## The order of rewrites\n"
_SHORT: dict[WireFormat, str] = {
    "openai_chat": "Chat",
    "openai_responses": "Responses",
    "anthropic_messages": "Messages",
}
_LEFT_OUT = "left out"


def main() -> None:
    """Write the tables under the hand-written part of the page."""
    head = PAGE.read_text(encoding="utf-8").partition(MARK)[0]
    PAGE.write_text(head + tables(), encoding="utf-8")


def tables() -> str:
    """Return the generated part of the page."""
    lines = [
        MARK,
        "This and what follows is written from the data by `python scripts/write_handoff_page.py`.",
        "Rewrites up to 730 see the wire format of the caller, those from 800 on the target's.",
        "",
        *_orders(),
        "",
        "## What another wire format cannot say",
        "",
        "A request whose target speaks the caller's wire format is not translated: nothing in it",
        "changes. In the other pairs, everything is kept but this:",
        "",
        *_pairs(),
        "",
        "A thing that one format says and a target's does not, and what becomes of it there.",
        "`explain` and the report of each request name what was left out or changed; `check` lists",
        "the rows that concern a route.",
        "",
        *_losses(),
    ]
    return "\n".join(lines) + "\n"


def _orders() -> Iterator[str]:
    yield "| order | rewrite | wire format | does |"
    yield "|---|---|---|---|"
    translation = next(kind.order for kind in CORE_REWRITES if kind.name == "translate")
    for kind in sorted(CORE_REWRITES, key=lambda kind: kind.order):
        side = "the caller's" if kind.order < translation else "the target's"
        side = "from one to the other" if kind.name == "translate" else side
        yield f"| {kind.order} | `{kind.name}` | {side} | {kind.summary} |"


def _pairs() -> Iterator[str]:
    yield "| caller | " + " | ".join(f"target: {_SHORT[name]}" for name in WIRE_FORMATS) + " |"
    yield "|---|" + "---|" * len(WIRE_FORMATS)
    for caller in WIRE_FORMATS:
        cells = [_pair(caller, target) for target in WIRE_FORMATS]
        yield f"| {_SHORT[caller]} | " + " | ".join(cells) + " |"


def _pair(caller: WireFormat, target: WireFormat) -> str:
    if caller == target:
        return "all is kept"
    told = [row.at[target] for row in all_losses() if caller in row.callers and target in row.at]
    gone = sum(word.startswith(_LEFT_OUT) for word in told)
    return f"{len(told) - gone} things change, {gone} are left out"


def _losses() -> Iterator[str]:
    yield "| what | callers | " + " | ".join(f"at {_SHORT[name]}" for name in WIRE_FORMATS) + " |"
    yield "|---|---|" + "---|" * len(WIRE_FORMATS)
    for row in all_losses():
        callers = (
            "all"
            if len(row.callers) == len(WIRE_FORMATS)
            else ", ".join(_SHORT[name] for name in row.callers)
        )
        cells = [row.at.get(name, "kept").replace("|", "\\|") for name in WIRE_FORMATS]
        yield f"| {row.of} | {callers} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
