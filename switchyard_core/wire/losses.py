"""What a pair of wire formats loses: the table of ``losses.toml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from switchyard_core.declarations import WIRE_FORMATS, WireFormat

__all__ = ["losses", "pairs"]


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    text = (files("switchyard_core.wire") / "losses.toml").read_text("utf-8")
    return tuple(tomli.loads(text)["loss"])


def losses(caller: WireFormat, target: WireFormat) -> tuple[str, ...]:
    """Return what a request can say in the caller's format and not in the target's."""
    if caller == target:
        return ()
    rows = (row for row in _rows() if caller in row["from"] and target in row["at"])
    return tuple(dict.fromkeys(row["what"] for row in rows))


def pairs(targets: tuple[WireFormat, ...]) -> tuple[tuple[WireFormat, WireFormat], ...]:
    """Return the pairs of caller and target between which requests are translated."""
    return tuple(
        (caller, target) for target in targets for caller in WIRE_FORMATS if caller != target
    )
