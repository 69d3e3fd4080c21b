"""A Chat Completions request as a neutral one, and back."""

from __future__ import annotations

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire.format import Format
from switchyard_core.wire.neutral import Facts, NeutralRequest

__all__ = ["read_request", "write_request"]


def read_request(fields: ObjectText) -> NeutralRequest:
    """Return what a request says."""
    raise NotImplementedError


def write_request(request: NeutralRequest, facts: Facts, target: Format) -> bytes:
    """Return the body that says the same."""
    raise NotImplementedError
