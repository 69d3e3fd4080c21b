"""What comes from outside of a process: its environment, chance, time, and new ids."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

__all__ = ["World", "fresh_id"]


def fresh_id(prefix: str) -> str:
    """Return an id that cannot be guessed: the prefix, ``_``, 24 hexadecimal digits."""
    return f"{prefix}_{secrets.token_hex(12)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything besides requests and policy that a switchyard depends on; tests give another.

    Args:
        environ: Where API keys are; read when a call is made.
        random: Source of randomness for routers.
        clock: Seconds since the epoch.
        monotonic: A monotonic clock in seconds, for durations.
        new_id: Makes ids of plans and answers from a prefix.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    random: Random = field(default_factory=Random)
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    new_id: Callable[[str], str] = fresh_id
