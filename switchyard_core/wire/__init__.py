"""All knowledge of the wire formats: reading, patching and writing bodies, answers and errors.

Each format is a folder that exports one :class:`~switchyard_core.wire.format.Format`. A further
format is a folder and one line here, with its name in ``WireFormat``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core.clients import path_prefixes
from switchyard_core.decision import RewriteReport, RewriteScope
from switchyard_core.declarations import (
    WIRE_FORMATS,
    Endpoint,
    RewriteFunction,
    WireFormat,
)
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.chat import OpenAIChat
from switchyard_core.wire.format import Format
from switchyard_core.wire.messages import AnthropicMessages
from switchyard_core.wire.responses import OpenAIResponses

__all__ = [
    "FORMATS",
    "WIRE_FORMATS",
    "Format",
    "RewriteFunction",
    "RewriteReport",
    "RewriteScope",
    "caller_format",
    "endpoint_of",
    "format_of",
    "guess_format",
    "left_out_sampling",
    "may_be",
    "plain_path",
]

#: Every wire format, by name.
FORMATS: dict[str, Format] = {
    each.name: each for each in (OpenAIChat(), OpenAIResponses(), AnthropicMessages())
}


def format_of(name: WireFormat) -> Format:
    """Return a wire format."""
    return FORMATS[name]


def left_out_sampling(wire_format: WireFormat, sampling: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the sampling settings that a call in a wire format leaves out.

    ``sampling`` is as in ``ModelCall.sampling``; a value of ``None`` counts as absent.
    """
    places = FORMATS[wire_format].sampling
    return tuple(
        name for name, value in sampling.items() if value is not None and name not in places
    )


def guess_format(fields: ObjectText, headers: Mapping[str, str]) -> WireFormat | None:
    """Return the wire format that a body resembles, ``None`` for none."""
    # The plainest, which others resemble, is the first one.
    found = (each for each in reversed(FORMATS.values()) if each.resembles(fields, headers))
    return next((each.name for each in found), None)


def may_be(fields: ObjectText, found: WireFormat) -> tuple[WireFormat, ...]:
    """Return the wire formats that a body may be in, ``found`` first, which it resembles."""
    first = FORMATS[found]
    if not first.is_plain(fields):
        return (found,)
    similar = (each for each in FORMATS.values() if each.history_key == first.history_key)
    return tuple(dict.fromkeys((found, *(each.name for each in similar))))


def caller_format(path: str, headers: Mapping[str, str]) -> WireFormat:
    """Return the wire format whose error body a caller of an unknown path understands."""
    for each in reversed(FORMATS.values()):
        known = any(endpoint in path for endpoint in each.paths.values())
        if known or any(name in headers for name in each.needed_headers):
            return each.name
    return next(iter(FORMATS.values())).name


def plain_path(path: str) -> str:
    """Return a path without version and final slashes: ``/v1/models/`` is ``/models``.

    Clients have base URLs with and without ``/v1``, and some add one to it or have a prefix of
    their own; all reach the same place.
    """
    path = path.rstrip("/")
    for prefix in path_prefixes():
        path = _without(path, prefix)
    return _without(_without(path, "/v1"), "/v1")


def _without(path: str, prefix: str) -> str:
    cut = path == prefix or path.startswith(prefix + "/")
    return path[len(prefix) :] if cut else path


def endpoint_of(path: str) -> tuple[WireFormat, Endpoint] | None:
    """Return wire format and call of a path without query, ``None`` for other paths."""
    plain = plain_path(path)
    for wire_format in FORMATS.values():
        for endpoint, known in wire_format.paths.items():
            if plain == known:
                return wire_format.name, endpoint
    return None
