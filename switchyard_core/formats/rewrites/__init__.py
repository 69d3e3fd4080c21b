"""The built-in rewrites: one module per subject, the three wire formats side by side."""

from switchyard_core.formats.rewrites.catalogue import CORE_REWRITES

__all__ = ["CORE_REWRITES"]
