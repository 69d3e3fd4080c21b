"""The fixed texts that are put into bodies, read from ``texts.toml``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import tomli

__all__ = ["fixed_text"]


def fixed_text(name: str) -> str:
    """Return one of the texts."""
    return _texts()[name]


@cache
def _texts() -> dict[str, str]:
    return tomli.loads((files(__package__) / "texts.toml").read_text("utf-8"))
