"""Finds what the options of a route name: targets, rule sets, latch stores, labels.

The walk follows the options model and the raw values side by side, so that references of a
route are checked even when another of its keys is wrong.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from switchyard_core.declarations import Reference
from switchyard_core.policy.positions import Location

__all__ = ["Named", "references"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A name in the options of a route.

    Args:
        kind: What it should be the name of.
        name: The name.
        location: Where it stands; for a default the key that would hold it.
        is_key: Whether it is the key of a table.
    """

    kind: Literal["target", "route", "rule_set", "latch_store", "label", "tool", "plan_store"]
    name: str
    location: Location
    is_key: bool = False


def references(
    model: type[BaseModel], raw: Mapping[str, Any], location: Location
) -> Iterator[Named]:
    """Yield every name that a table and the defaults of its model hold, in order of the model.

    Args:
        model: Options model.
        raw: The table, as tomli gave it; values of a wrong type are passed over.
        location: Where the table stands.
    """
    for name, field in model.model_fields.items():
        key = field.alias or name
        value = raw.get(key)
        if key not in raw:
            value = _default(field)
        yield from _walk(field.annotation, tuple(field.metadata), value, (*location, key))


def _default(field: FieldInfo) -> Any:
    """Return a field's default as plain values, ``None`` when it is required."""
    if field.is_required():
        return None
    if field.default_factory is not None and field.default_factory_takes_validated_data:
        return None
    return _plain(field.get_default(call_default_factory=True))


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return value


def _walk(
    annotation: Any, metadata: tuple[Any, ...], value: Any, location: Location
) -> Iterator[Named]:
    if value is None:
        return
    # `type X = ...` of Python 3.12 hides what it stands for.
    annotation = getattr(annotation, "__value__", annotation)
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *more = typing.get_args(annotation)
        yield from _walk(inner, (*metadata, *more), value, location)
        return
    if isinstance(value, str):
        for mark in _marks(annotation, metadata):
            yield Named(kind=mark.kind, name=value, location=location)
        return
    if origin in {typing.Union, types.UnionType}:
        for member in typing.get_args(annotation):
            if _fits(member, value):
                yield from _walk(member, (), value, location)
                return
        return
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if isinstance(value, dict):
            yield from references(annotation, value, location)
        return
    yield from _walk_container(typing.get_args(annotation), value, location)


def _walk_container(arguments: tuple[Any, ...], value: Any, location: Location) -> Iterator[Named]:
    if isinstance(value, dict) and len(arguments) == 2:
        for key, item in value.items():
            for mark in _marks(arguments[0], ()):
                yield Named(kind=mark.kind, name=key, location=(*location, key), is_key=True)
            yield from _walk(arguments[1], (), item, (*location, key))
    elif isinstance(value, list) and arguments:
        variadic = len(arguments) == 1 or Ellipsis in arguments
        for index, item in enumerate(value):
            if variadic or index < len(arguments):
                member = arguments[0] if variadic else arguments[index]
                yield from _walk(member, (), item, (*location, index))


def _marks(annotation: Any, metadata: tuple[Any, ...]) -> list[Reference]:
    """Return the reference that marks a string, also inside of ``X | None``."""
    found = [mark for mark in metadata if isinstance(mark, Reference)]
    if found:
        return found[:1]
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        inner, *more = typing.get_args(annotation)
        return _marks(inner, tuple(more))
    if origin in {typing.Union, types.UnionType}:
        members = [m for m in typing.get_args(annotation) if m is not type(None)]
        return _marks(members[0], ()) if len(members) == 1 else []
    return []


def _fits(annotation: Any, value: Any) -> bool:
    """Return whether a member of a union is the one that holds a table or an array."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return _fits(typing.get_args(annotation)[0], value)
    if isinstance(value, dict):
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            keys = {field.alias or name for name, field in annotation.model_fields.items()}
            return set(value) <= keys
        return isinstance(origin, type) and issubclass(origin, Mapping)
    return isinstance(origin, type) and issubclass(origin, list | tuple | set | frozenset)
