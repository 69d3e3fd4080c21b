"""Latch stores: which identities have been handed off."""

from switchyard_core.stores.latches.base import LatchStore, capacity_error
from switchyard_core.stores.latches.memory import MemoryLatchStore

__all__ = ["LatchStore", "MemoryLatchStore", "capacity_error"]
