"""The tables and packs that are shipped as TOML."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import tomli

from switchyard_core.declarations import MutationPack

__all__ = ["core_packs", "load_table"]

_HERE = resources.files("switchyard_core.mutation")


@cache
def load_table(name: str) -> dict[str, Any]:
    """Return the content of ``mutation/data/<name>.toml``; shared, so do not change it."""
    return tomli.loads(_HERE.joinpath("data", f"{name}.toml").read_text("utf-8"))


def core_packs() -> tuple[MutationPack, ...]:
    """Return every pack of this distribution, sorted by name."""
    files = [entry for entry in _HERE.joinpath("packs").iterdir() if entry.name.endswith(".toml")]
    return tuple(
        MutationPack(
            name=entry.name.removesuffix(".toml"),
            text=entry.read_text("utf-8"),
            source=f"switchyard_core/mutation/packs/{entry.name}",
        )
        for entry in sorted(files, key=lambda entry: entry.name)
    )
