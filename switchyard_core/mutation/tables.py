"""Reads the command tables and packs that are shipped as TOML."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import tomli

__all__ = ["load_table"]


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return the content of ``mutation/data/<name>.toml``; shared, so nobody may change it."""
    text = (
        resources.files("switchyard_core.mutation")
        .joinpath("data", f"{name}.toml")
        .read_text("utf-8")
    )
    return tomli.loads(text)
