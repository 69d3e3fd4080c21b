"""What one wire format says and another does not, as data: ``losses.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import tomli

from switchyard_core.declarations import WIRE_FORMATS, WireFormat

__all__ = ["Loss", "all_losses", "losses"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something that some formats say, and what becomes of it at those that do not.

    Args:
        of: What it is, as a person reads it.
        callers: The formats that say it.
        at: What becomes of it, by the target's format.
    """

    id: str
    of: str
    callers: tuple[WireFormat, ...]
    at: Mapping[WireFormat, str]


@cache
def all_losses() -> tuple[Loss, ...]:
    """Return the whole table."""
    tables = tomli.loads((files(__package__) / "losses.toml").read_text("utf-8"))["loss"]
    return tuple(
        Loss(
            id=row["id"],
            of=row["of"],
            callers=tuple(row["from"]),
            at={name: row[name] for name in WIRE_FORMATS if name in row},
        )
        for row in tables
    )


def losses(caller: WireFormat, target: WireFormat) -> Mapping[str, str]:
    """Return what a pair of formats does not keep: what it is, and what becomes of it."""
    if caller == target:
        return {}
    rows = [row for row in all_losses() if caller in row.callers and target in row.at]
    return {row.of: row.at[target] for row in rows}
