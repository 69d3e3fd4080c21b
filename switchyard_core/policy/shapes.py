"""What a model says about a place inside of its values: which keys, and which kind of value."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pydantic import BaseModel

from switchyard_core.policy.positions import Location

__all__ = ["allowed_keys", "annotations_at", "keys_at", "takes_dates", "word_of"]

#: Plain types and the word for a value of theirs; a boolean is an integer in Python.
_WORDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
)


def allowed_keys(model: type[BaseModel]) -> tuple[str, ...]:
    """Return the keys that a model takes, as a policy writes them."""
    return tuple(field.alias or name for name, field in model.model_fields.items())


def annotations_at(model: type[BaseModel], inner: Location) -> list[Any]:
    """Return the annotations of the value at a place inside of a model's table.

    Several when unions leave it open, none when the place is unknown.
    """
    annotations: list[Any] = [model]
    for part in inner:
        annotations = [found for annotation in annotations for found in _members(annotation, part)]
    return [plain for annotation in annotations for plain in _alternatives(annotation)]


def keys_at(model: type[BaseModel], inner: Location) -> tuple[str, ...]:
    """Return the keys that are allowed in a nested table of a model, as far as it is clear."""
    models = [found for found in annotations_at(model, inner) if _is_model(found)]
    return tuple(dict.fromkeys(key for found in models for key in allowed_keys(found)))


def takes_dates(annotations: Sequence[Any]) -> bool:
    """Return whether a date or time may stand at a place with these annotations.

    Types that this module does not know are given the benefit of the doubt: their own
    validation decides.
    """
    return not annotations or any(not _refuses_dates(annotation) for annotation in annotations)


def word_of(annotations: Sequence[Any]) -> str:
    """Return what should stand at a place, such as ``a string``; ``""`` when several things may."""
    words = {_word(annotation) for annotation in annotations if annotation is not types.NoneType}
    return words.pop() if len(words) == 1 else ""


def _word(annotation: Any) -> str:
    origin = typing.get_origin(annotation) or annotation
    if origin is typing.Literal:
        return "a string"
    if not isinstance(origin, type) or origin is object:
        return ""
    for kind, word in _WORDS:
        if issubclass(origin, kind):
            return word
    if issubclass(origin, enum.Enum):
        return "a string"
    if _is_table(origin):
        return "a table"
    return "an array" if issubclass(origin, Sequence | AbstractSet) else ""


def _refuses_dates(annotation: Any) -> bool:
    if annotation in (Any, object, types.NoneType):
        return True
    return _word(annotation) != ""


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_typed_dict(kind: type) -> bool:
    # Of `typing` or of `typing_extensions`, which are not the same.
    return issubclass(kind, dict) and hasattr(kind, "__total__")


def _is_table(kind: type) -> bool:
    return (
        issubclass(kind, BaseModel | Mapping)
        or dataclasses.is_dataclass(kind)
        or _is_typed_dict(kind)
    )


def _alternatives(annotation: Any) -> list[Any]:
    """Return the members of a union, without what only wraps them."""
    # `type X = ...` of Python 3.12 and `NewType` hide what they stand for.
    annotation = getattr(annotation, "__value__", annotation)
    annotation = getattr(annotation, "__supertype__", annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _alternatives(arguments[0])
    if origin in {typing.Union, types.UnionType}:
        return [found for argument in arguments for found in _alternatives(argument)]
    return [annotation]


def _members(annotation: Any, part: str | int) -> list[Any]:
    """Return the annotations of what a key or an index of a value leads to."""
    found: list[Any] = []
    for plain in _alternatives(annotation):
        found += _members_of_one(plain, part)
    return found


def _members_of_one(annotation: Any, part: str | int) -> list[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if _is_model(annotation):
        fields = {field.alias or name: field for name, field in annotation.model_fields.items()}
        return [fields[part].annotation] if part in fields else []
    if annotation in (Any, object):
        return [Any]
    kind = origin or annotation
    if not isinstance(kind, type):
        return []
    if issubclass(kind, Mapping) and not _is_typed_dict(kind):
        # A mapping of unknown values holds anything.
        return [arguments[1] if len(arguments) == 2 else Any] if isinstance(part, str) else []
    if dataclasses.is_dataclass(kind) or _is_typed_dict(kind):
        hint = typing.get_type_hints(kind).get(str(part))
        return [] if hint is None else [hint]
    if isinstance(part, int) and issubclass(kind, Sequence | AbstractSet):
        return _element(arguments, part, is_tuple=kind is tuple)
    return []


def _element(arguments: tuple[Any, ...], index: int, *, is_tuple: bool) -> list[Any]:
    if not arguments:
        return [Any]
    if is_tuple and Ellipsis not in arguments:
        return [arguments[index]] if index < len(arguments) else []
    return [arguments[0]]
