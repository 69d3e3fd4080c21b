"""What sessions took, and what that costs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from switchyard_core import Price
from switchyard_core.answering import ModelUsage

__all__ = ["Ledger", "cost_usd"]

_MILLION = 1_000_000


class Ledger:
    """The tokens that sessions took, by target; sessions that were quiet for longest are forgotten.

    Args:
        capacity: Most sessions that are remembered.
    """

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._taken: OrderedDict[tuple[str, str], dict[str, ModelUsage]] = OrderedDict()

    def add(self, route: str, session: str, usage_by_target: Mapping[str, ModelUsage]) -> None:
        """Add what one answer took."""
        taken = self._taken.setdefault((route, session), {})
        self._taken.move_to_end((route, session))
        for target, usage in usage_by_target.items():
            taken[target] = taken.get(target, ModelUsage()) + usage
        while len(self._taken) > self._capacity:
            self._taken.popitem(last=False)

    def of(self, route: str, session: str) -> Mapping[str, ModelUsage]:
        """Return what a session took so far, by target."""
        return self._taken.get((route, session), {})


def cost_usd(usage: ModelUsage, price: Price | None) -> float:
    """Return what tokens cost, 0 where the policy states no price."""
    if price is None:
        return 0.0
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    parts = (
        (usage.input_tokens - cached - written, price.input),
        (cached, price.input if price.cached_input is None else price.cached_input),
        (written, price.input if price.cache_write is None else price.cache_write),
        (usage.output_tokens, price.output),
    )
    return sum(tokens * rate for tokens, rate in parts) / _MILLION
