"""The three wire formats: how each is read, and how each named rewrite changes it."""

from switchyard_core.wire.format import Format
from switchyard_core.wire.registry import FORMATS, format_of

__all__ = ["FORMATS", "Format", "format_of"]
