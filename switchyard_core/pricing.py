"""What models cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

__all__ = ["Price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, in US dollars per million tokens.

    Args:
        as_of: Day of the prices.
        input: Fresh input.
        output: Output.
        cached_input: Input read from a cache, ``None`` when not given.
        cache_write: Input written to a cache, ``None`` when not given.
    """

    as_of: date
    input: float
    output: float
    cached_input: float | None
    cache_write: float | None
