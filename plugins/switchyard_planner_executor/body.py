"""Reading single members of a caller's body."""

from __future__ import annotations

from typing import Any

from switchyard_core import Request, RequestError

__all__ = ["member"]


def member(request: Request, key: str) -> Any:
    """Return the value of a top-level member, ``None`` when it is absent or null.

    Raises:
        RequestError: 400 ``invalid_json``: the value cannot be read.
    """
    try:
        return request.fields.value(key)
    except ValueError as error:  # a number of thousands of digits is JSON, and Python refuses it
        raise RequestError(
            message=f"`{key}` cannot be read: {error}",
            code="invalid_json",
            param=key,
            headers={"x-should-retry": "false"},
        ) from None
