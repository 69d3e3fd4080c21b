"""Snapshots of request bodies: one readable JSON file per case, every token as it was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import PropertyFilter, PropertyMatcher, SnapshotIndex

from switchyard_core.jsonio.printing import pretty
from switchyard_core.jsonio.tree import encode

__all__ = ["RequestBodySnapshot"]

_UNSAFE = re.compile(r"[^a-z0-9_-]+")


class RequestBodySnapshot(SingleFileSnapshotExtension):
    """A syrupy extension for bodies; use it as ``snapshot.use_extension(RequestBodySnapshot)``.

    What is compared is the text between the tokens of the JSON: key order, ``1`` or ``1.0``,
    escapes and ``null`` all count, spacing does not. The data is bytes, a string, or a tree
    (which is written in its own key order). File names consist of ``[a-z0-9_-]``.
    """

    _write_mode = WriteMode.TEXT
    file_extension = "json"

    def serialize(
        self,
        data: Any,
        *,
        exclude: PropertyFilter | None = None,
        include: PropertyFilter | None = None,
        matcher: PropertyMatcher | None = None,  # noqa: ARG002  # syrupy always gives one
    ) -> str:
        """Return the body as indented text; a filter is an error, and a matcher has no effect."""
        if exclude is not None or include is not None:
            raise ValueError("a body is compared whole: inject what varies and use no filter")
        if isinstance(data, str):
            raw = data.encode("utf-8", "surrogatepass")
        elif isinstance(data, bytes | bytearray | memoryview):
            raw = bytes(data)
        else:
            raw = encode(dict(data) if isinstance(data, Mapping) else data)
        return pretty(raw) + "\n"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """Return the name of a case: that of its test in ``[a-z0-9_-]``."""
        suffix = "" if index == 0 else f"-{index}"
        name = f"{test_location.snapshot_name}{suffix}".lower()
        return _UNSAFE.sub("-", name).strip("-")

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        """Return the name of the case's file, without its extension."""
        return cls.get_snapshot_name(test_location=test_location, index=index)

    @classmethod
    def dirname(cls, *, test_location: PyTestLocation) -> str:
        """Return the folder: one per test module below ``__snapshots__``."""
        folder = Path(test_location.filepath).parent / "__snapshots__"
        return str(folder / test_location.basename)

    @classmethod
    def matches_test_location(
        cls, *, test_location: PyTestLocation, snapshot_location: str
    ) -> bool:
        """Return whether a file holds a snapshot of a test, under the plain name of its case."""
        place = Path(snapshot_location)
        name = re.escape(cls.get_snapshot_name(test_location=test_location))
        same_folder = place.parent == Path(cls.dirname(test_location=test_location))
        return same_folder and re.fullmatch(rf"{name}(-\d+)?", place.stem) is not None
