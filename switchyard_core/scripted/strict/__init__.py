"""Strict providers: what a real API refuses, refused with its own status, code and words.

The rules are data where they are data (``providers/*.toml``, one file per provider) and code where
they are about a structure. They come from the providers' documents and never from what switchyard
itself believes of a model.
"""

from switchyard_core.scripted.strict.names import check_strict, strict_names

__all__ = ["check_strict", "strict_names"]
