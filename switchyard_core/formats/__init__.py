"""The three wire formats: how each is read, and how each named rewrite changes it."""

from switchyard_core.formats.base import Format
from switchyard_core.formats.registry import FORMATS, format_of

__all__ = ["FORMATS", "Format", "format_of"]
