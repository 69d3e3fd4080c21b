"""Where a request goes: the path below a provider's base URL."""

from __future__ import annotations

import re
from collections.abc import Collection

from switchyard_core.declarations import WireFormat
from switchyard_core.wire import format_of

__all__ = ["path_below"]

_VERSION = re.compile(r"v\d+\w*")
_OURS = "/v1"


def path_below(base: str, path: str, wire_format: WireFormat, exact: Collection[str] = ()) -> str:
    """Return the path of a request, that of the base URL included.

    Our paths begin with a version. A base URL without a path has none, so it is kept. Any other
    path is what its provider's documentation gives to an SDK: those of OpenAI add only the name of
    the call, Anthropic's adds a version unless there is one. Paths that are ``exact`` follow as
    they are.
    """
    base = base.rstrip("/")
    if not base or path in exact or not (path + "/").startswith(_OURS + "/"):
        return base + path
    versioned = _VERSION.fullmatch(base.rpartition("/")[2]) is not None
    if versioned or not format_of(wire_format).version_follows_base:
        path = path[len(_OURS) :]
    return base + path
