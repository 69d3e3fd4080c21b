"""Kinds of failure: what of a provider's answer is worth another target."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import tomli

from switchyard_core import Failure, Reasoning, Request

__all__ = ["FailureKind", "failure_kinds", "refuses_reasoning"]

#: The words of the option ``on``.
FailureKind = Literal["transport", "rate_limit", "server_error", "context_length"]


@cache
def _words() -> dict[str, tuple[bytes, ...]]:
    text = (files("switchyard_demo_routers") / "failures.toml").read_text("utf-8")
    words: dict[str, list[str]] = tomli.loads(text)
    return {name: tuple(word.encode() for word in listed) for name, listed in words.items()}


def _says(failure: Failure, name: str) -> bool:
    body = failure.body.lower()
    return any(word in body for word in _words()[name])


def failure_kinds(failure: Failure) -> frozenset[FailureKind]:
    """Return the kinds of a failure, none when another target would fail like this one."""
    if failure.kind == "transport" or failure.status == 408:
        return frozenset({"transport"})
    if failure.status == 429:
        return frozenset({"rate_limit"})
    if failure.status >= 500:
        return frozenset({"server_error"})
    if failure.status in (400, 413) and _says(failure, "context_length"):
        return frozenset({"context_length"})
    return frozenset()


def refuses_reasoning(request: Request, failure: Failure) -> bool:
    """Return whether a provider says that it cannot read the reasoning of a history."""
    if failure.status not in (400, 404, 422) or not _says(failure, "reasoning"):
        return False
    parts = request.conversation.parts()
    return not _says(failure, "parameter") and any(isinstance(p, Reasoning) for _, p in parts)
