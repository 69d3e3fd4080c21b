"""The version, in one place; the build reads it from here."""

__all__ = ["VERSION"]

VERSION = "0.1.0"
