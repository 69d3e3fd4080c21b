"""The profiles that ship with switchyard, and reading those of anybody."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import tomli
from pydantic import ValidationError
from pydantic_core import to_json

from switchyard_core.declarations import ModelProfiles
from switchyard_core.models.schema import Entry, ProfileFile

__all__ = ["core_profiles", "read_profiles"]


def core_profiles() -> tuple[ModelProfiles, ...]:
    """Return the profiles of this distribution, one declaration per vendor."""
    folder = files(__package__) / "data"
    found = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return tuple(
        ModelProfiles(
            text=entry.read_text("utf-8"), source=f"switchyard_core/models/data/{entry.name}"
        )
        for entry in found
        if entry.name.endswith(".toml")
    )


@lru_cache(maxsize=64)
def read_profiles(declared: ModelProfiles) -> tuple[Entry, ...]:
    """Return the entries of a declaration; a ``ValueError`` says what is wrong with its text."""
    place = f" ({declared.source})" if declared.source else ""
    try:
        tree = tomli.loads(declared.text)
    except (ValueError, RecursionError) as error:
        msg = f"gives model profiles{place} that are not TOML: {error}"
        raise ValueError(msg) from error
    try:
        return ProfileFile.model_validate_json(to_json(tree)).profile
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        msg = f"gives wrong model profiles{place}: {where}: {first['msg']}"
        raise ValueError(msg) from error
