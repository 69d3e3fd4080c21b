"""Finds plugins, checks what they declare, and keeps record of conflicts and broken ones."""

from __future__ import annotations

from switchyard_core.plugins.loading import Kind, PluginInfo
from switchyard_core.plugins.registry import Conflict, PluginRegistry

__all__ = ["Conflict", "Kind", "PluginInfo", "PluginRegistry"]
