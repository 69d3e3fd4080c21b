"""The route type ``random``: lots are drawn."""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Literal

from pydantic import Field

from switchyard_core import Decision, Options, Reason, Request, RouteContext, TargetName

__all__ = ["RandomOptions", "RandomRouter"]

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]

_BITS = 64


class RandomOptions(Options):
    """Options of ``type = "random"``.

    Args:
        targets: Weight, more than 0, by target; only their ratio counts.
        seed: Makes every draw a function of this number and the request, so that a run can
            be repeated and a client's retry gets the same target.
        sticky: ``session`` draws once for each session or sub-agent (a request without one
            is drawn for on its own); ``none`` draws for every request.
    """

    targets: dict[TargetName, Weight] = Field(min_length=1)
    seed: int | None = None
    sticky: Literal["session", "none"] = "session"


class RandomRouter:
    """Draws a target by weights; a session's draw depends on its id and the seed alone."""

    def __init__(self, options: RandomOptions) -> None:
        self._targets = tuple(options.targets.items())
        self._total = sum(options.targets.values())
        self._seed = options.seed
        self._sticky = options.sticky == "session"

    async def route(self, request: Request, context: RouteContext) -> Decision:
        """Return the target that is drawn."""
        identity = context.session.identity if self._sticky else None
        if identity is not None:
            source, lot = "session", self._lot(f"{identity.session}\0{identity.agent or ''}")
        elif self._seed is not None:
            source, lot = "seed", self._lot(request.history_digest.hex())
        else:
            source, lot = "chance", context.random.random()
        target = self._at(lot)
        reason = Reason(
            code=f"drawn_by_{source}",
            detail=f"`{target}` was drawn",
            facts={"lot": f"{lot:.6f}", "of": source},
        )
        return Decision(target=target, reason=reason)

    def _lot(self, key: str) -> float:
        """Return a number of at least 0 and less than 1 that depends on seed and key alone."""
        text = f"{self._seed}\0{key}"
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=_BITS // 8).digest()
        # 53 bits are what a float holds; more could round up to 1.
        return (int.from_bytes(digest) >> (_BITS - 53)) / 2**53

    def _at(self, lot: float) -> str:
        rest = lot * self._total
        for target, weight in self._targets:
            rest -= weight
            if rest < 0:
                return target
        return self._targets[-1][0]  # the sum of the weights was rounded
