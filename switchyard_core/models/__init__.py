"""What is known about models and the endpoints that serve them, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a model at an endpoint accepts.

    Args:
        prefix_bound: Whether it refuses thinking that was made behind another prefix: other
            instructions, tools or earlier messages.
        reads: Globs of the ids of further models whose thinking it can read.
    """

    prefix_bound: bool = False
    reads: tuple[str, ...] = ()
