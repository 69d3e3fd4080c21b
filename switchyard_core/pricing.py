"""What models cost."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Price"]

_Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Price(BaseModel):
    """``[prices."<target id>"]``: US dollars per million tokens, dated by whoever wrote them.

    Args:
        as_of: Day of the prices.
        input: Fresh input.
        output: Output.
        cached_input: Input read from a cache.
        cache_write: Input written to a cache.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    as_of: date
    input: _Dollars
    output: _Dollars
    cached_input: _Dollars | None = None
    cache_write: _Dollars | None = None
