from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from switchyard_core import WIRE_FORMATS, Request


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> str:
    return request.param


def body_of(wire_format: str, turns: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a body that says some turns, in the wire format's own way."""
    items = [{"role": role, "content": text} for role, text in turns]
    if wire_format == "openai_responses":
        return {"model": "switchyard/shop", "input": items}
    body: dict[str, Any] = {"model": "switchyard/shop", "messages": items}
    return body | ({"max_tokens": 500} if wire_format == "anthropic_messages" else {})


@pytest.fixture
def asked(wire_format: str) -> Callable[..., Request]:
    """Make a request that says a text or some turns, with further keys of its body by name."""

    def make(
        text: Any = "a gift under $200",
        /,
        *,
        turns: list[tuple[str, Any]] | None = None,
        headers: Mapping[str, str] | list[tuple[str, str]] = (),
        **body: Any,
    ) -> Request:
        whole = body_of(wire_format, [("user", text)] if turns is None else turns) | body
        return Request(wire_format=wire_format, body=whole, headers=headers)

    return make
