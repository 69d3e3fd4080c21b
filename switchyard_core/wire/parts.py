"""Looking into an answer's tree: what is not as it should be is told by its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["ShapeError", "an_array", "an_object", "objects", "text_in"]


class ShapeError(ValueError):
    """A tree lacks something; the message says what and where, for people."""


def an_object(tree: Mapping[str, Any], key: str, place: str = "") -> Mapping[str, Any]:
    """Return a member that must be an object.

    Args:
        tree: What it is a member of.
        key: Its key.
        place: Place of ``tree``, such as ``choices[0]``; ``""`` at the top.

    Raises:
        ShapeError: It is missing or none.
    """
    value = _member(tree, key, place)
    if not isinstance(value, dict):
        raise _wrong(_at(place, key), "no object")
    return value


def an_array(tree: Mapping[str, Any], key: str, place: str = "") -> Sequence[Any]:
    """Return a member that must be an array; takes and raises what :func:`an_object` does."""
    value = _member(tree, key, place)
    if not isinstance(value, list):
        raise _wrong(_at(place, key), "no array")
    return value


def objects(values: Any, place: str) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return the items of an array, each with its place; ``None`` has none.

    Args:
        values: The array.
        place: Its place.

    Raises:
        ShapeError: It is no array, or an item is no object.
    """
    if values is None:
        return ()
    if not isinstance(values, list):
        raise _wrong(place, "no array")
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise _wrong(f"{place}[{index}]", "no object")
    return tuple((f"{place}[{index}]", value) for index, value in enumerate(values))


def text_in(tree: Mapping[str, Any], key: str, place: str = "") -> str:
    """Return a member that must be a string; takes and raises what :func:`an_object` does."""
    value = _member(tree, key, place)
    if not isinstance(value, str):
        raise _wrong(_at(place, key), "no string")
    return value


def _member(tree: Mapping[str, Any], key: str, place: str) -> Any:
    if key not in tree:
        raise _wrong(_at(place, key), "missing")
    return tree[key]


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _wrong(place: str, what: str) -> ShapeError:
    return ShapeError(f"`{place}` is {what}")
