"""The rule sets that are shipped: tool names of known agents as data."""

from __future__ import annotations

from importlib import resources

from switchyard_core.declarations import MutationPack

__all__ = ["core_packs"]

_FOLDER = "packs"


def core_packs() -> tuple[MutationPack, ...]:
    """Return every pack of this distribution, sorted by name.

    ``coding_agents`` is the default, ``reference_compatible`` knows only a few exact names, and
    ``strict`` takes everything for an edit that is not known to read.
    """
    folder = resources.files("switchyard_core.mutation").joinpath(_FOLDER)
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith(".toml")),
        key=lambda entry: entry.name,
    )
    return tuple(
        MutationPack(
            name=entry.name.removesuffix(".toml"),
            text=entry.read_text("utf-8"),
            source=f"switchyard_core/mutation/{_FOLDER}/{entry.name}",
        )
        for entry in files
    )
