"""Which wire format and which call a path stands for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from switchyard_core.declarations import WireFormat
from switchyard_core.request import Endpoint
from switchyard_core.wire.registry import FORMATS

__all__ = ["endpoint_of", "plain_path"]

_ENDPOINTS: Mapping[str, tuple[WireFormat, Endpoint]] = MappingProxyType(
    {
        path: (wire_format.name, endpoint)
        for wire_format in FORMATS.values()
        for endpoint, path in wire_format.paths.items()
    }
)


def plain_path(path: str) -> str:
    """Return a path without its version and without final slashes: ``/v1/models/`` is ``/models``.

    Clients are configured with and without ``/v1`` in their base URL; both reach the same place.
    """
    path = path.rstrip("/")
    if path == "/v1" or path.startswith("/v1/"):
        return path[len("/v1") :]
    return path


def endpoint_of(path: str) -> tuple[WireFormat, Endpoint] | None:
    """Return the wire format and the call of a path, ``None`` when it is no call to a model.

    Args:
        path: Path without query, such as ``/v1/messages/count_tokens``.
    """
    return _ENDPOINTS.get(plain_path(path))
