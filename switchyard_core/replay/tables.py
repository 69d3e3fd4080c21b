"""What is kept of a call and what is not, as data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import tomli

__all__ = ["Tables", "plain_name", "tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The lists of ``recordings.toml``.

    Args:
        headers: Lower-case names of the headers of an answer that are stored.
        not_kept: Statuses below 500 that are not stored; those from 500 on never are.
        credential_fields: Names, as :func:`plain_name` gives them, of fields that hold keys.
        opaque_fields: Names of fields with opaque data.
        delta_fields: Names of fields that a stream sends in pieces.
    """

    headers: tuple[str, ...]
    not_kept: frozenset[int]
    credential_fields: frozenset[str]
    opaque_fields: frozenset[str]
    delta_fields: frozenset[str]


@cache
def tables() -> Tables:
    """Return the lists; they are read once."""
    path = files("switchyard_core.replay").joinpath("recordings.toml")
    values = tomli.loads(path.read_text(encoding="utf-8"))
    return Tables(
        headers=tuple(values["headers"]),
        not_kept=frozenset(values["not_kept"]),
        credential_fields=frozenset(map(plain_name, values["credential_fields"])),
        opaque_fields=frozenset(values["opaque_fields"]),
        delta_fields=frozenset(values["delta_fields"]),
    )


def plain_name(name: str) -> str:
    """Return the name of a field without case, hyphens and underscores."""
    return name.lower().replace("-", "").replace("_", "")
