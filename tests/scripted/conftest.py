"""Fixtures for the tests of this folder."""

from tests.upstream.conftest import anyio_backend, provide

__all__ = ["anyio_backend", "provide"]
