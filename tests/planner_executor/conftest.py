from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from switchyard_core import WIRE_FORMATS, Request, UserMessage
from switchyard_core.formats.registry import format_of


@pytest.fixture(params=WIRE_FORMATS)
def wire_format(request: pytest.FixtureRequest) -> str:
    return request.param


class Asked(Request):
    """A request whose last words and instructions are given with it."""

    user_message: UserMessage = UserMessage(text="")
    instructions: str = ""


def body_of(wire_format: str, turns: list[tuple[str, str]]) -> dict[str, Any]:
    """Return a body that says some turns, in the wire format's own way."""
    items = [{"role": role, "content": text} for role, text in turns]
    if wire_format == "openai_responses":
        return {"model": "switchyard/shop", "input": items}
    body: dict[str, Any] = {"model": "switchyard/shop", "messages": items}
    return body | ({"max_tokens": 500} if wire_format == "anthropic_messages" else {})


@pytest.fixture
def asked(wire_format: str) -> Callable[..., Asked]:
    """Make a request of the wire format; keys of the body by name, `None` removes one."""

    def make(
        text: str = "a gift under $200",
        /,
        *,
        turns: list[tuple[str, str]] | None = None,
        headers: Mapping[str, str] | list[tuple[str, str]] = (),
        instructions: str = "",
        message: UserMessage | None = None,
        **body: Any,
    ) -> Asked:
        whole = body_of(wire_format, [("user", text)] if turns is None else turns) | body
        whole = {key: value for key, value in whole.items() if value is not None}
        request = Asked(wire_format=wire_format, body=whole, headers=headers)
        request.attach(format_of(wire_format))
        request.user_message = message or UserMessage(text=text)
        request.instructions = instructions
        return request

    return make
