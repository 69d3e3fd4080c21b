"""Limits on what a caller may take of the server before its request is looked at."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Self

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on requests and connections; ``docs/server.md`` lists all limits of the server.

    The last three only apply to ``switchyard serve``: where the application is mounted, the host
    handles connections.

    Args:
        headers: Maximum number of headers in a request; more get 431.
        header_bytes: Maximum size of the request line and headers; more get 431.
        body_timeout_s: Seconds in which the next 1 KiB of a body must arrive; a slower one gets
            408.
        header_timeout_s: Seconds until the headers must be complete; then the connection is
            closed, with 408 if a part of them had arrived.
        connections: Maximum number of open connections; a new one gets 503.
        half_open: Maximum number of connections with incomplete headers; for a new one, the
            oldest is closed.

    Raises:
        ValueError: One of them is not a positive number.
    """

    headers: int = 100
    header_bytes: int = 64 * 1024
    body_timeout_s: float = 60.0
    header_timeout_s: float = 20.0
    connections: int = 1000
    half_open: int = 500

    def __post_init__(self) -> None:
        for name in _NAMES:
            value = getattr(self, name)
            if not 0 < value < math.inf:
                msg = f"the limit `{name}` must be a positive number, not {value:g}"
                raise ValueError(msg)

    @classmethod
    def from_words(cls, words: Iterable[str]) -> Self:
        """Return the limits that a command line gives.

        Args:
            words: ``NAME=NUMBER``, such as ``headers=200``; the names are those above.

        Raises:
            ValueError: One of them is not that.
        """
        found: dict[str, Any] = {}
        for word in words:
            name, _, number = word.partition("=")
            if name not in _NAMES:
                near = get_close_matches(name, _NAMES, n=1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                msg = f"unknown limit `{name}` (limits: {', '.join(_NAMES)}){hint}"
                raise ValueError(msg)
            default = getattr(cls(), name)
            try:
                found[name] = type(default)(number)
            except ValueError:
                kind = "whole number" if isinstance(default, int) else "number"
                msg = f"the limit `{name}` must be a {kind}, as in `{name}={default:g}`"
                raise ValueError(msg) from None
        return cls(**found)


_NAMES = tuple(field.name for field in fields(Limits))
