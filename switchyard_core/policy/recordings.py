"""Resolves ``[replay]``: which fields of a body tell one recorded call from another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import tomli

from switchyard_core.errors import nearest
from switchyard_core.policy.draft import Draft
from switchyard_core.policy.models import ReplaySettings
from switchyard_core.policy.places import Location
from switchyard_core.policy.secrets import shown
from switchyard_core.policy.values import KEY_FIELD

__all__ = ["default_key_fields", "resolve_replay"]


@cache
def _table() -> Mapping[str, Any]:
    text = files("switchyard_core.policy").joinpath("key_fields.toml").read_text(encoding="utf-8")
    return tomli.loads(text)


def default_key_fields() -> tuple[str, ...]:
    """Return the fields that count when nothing else is said, in the order of the data file."""
    return tuple(_table()["default"])


def resolve_replay(draft: Draft) -> ReplaySettings:
    """Return what ``[replay]`` says; wrong fields are reported."""
    raw = draft.tables("replay")
    model = draft.validated(("replay",), ReplaySettings, raw)
    found, location = raw.get("key_fields"), ("replay", "key_fields")
    fields = found if isinstance(found, list) else []
    if found == []:
        message = "without fields all calls would be equal"
        fix = "list at least `model` and the fields of the conversation, or remove the key"
        draft.report("SY114", message, location, fix=fix)
    for index, name in enumerate(fields):
        if isinstance(name, str):
            _check_field(draft, (*location, index), name, fields[:index])
    return model or ReplaySettings()


def _check_field(draft: Draft, location: Location, name: str, before: list[Any]) -> None:
    known = [*_table()["default"], *_table()["known"]]
    near = nearest(name, known)
    if name in before:
        message, fix = f"`{shown(name)}` is listed twice", "remove one of them"
    elif not KEY_FIELD.fullmatch(name):
        message = f"`{shown(name)}` is not the name of a body field"
        fix = "write a key, or keys joined by dots, such as `text.format`"
    elif name not in known and near:
        # A provider may have its own fields; a misspelt one would never distinguish calls.
        message, fix = f"unknown field `{shown(name)}`", f"did you mean `{near}`?"
    else:
        return
    draft.report("SY114", message, location, fix=fix)
