"""The contract of every router; see the documentation of the test kit."""

from __future__ import annotations

from switchyard_core.testing import RouterConformance

import switchyard_sticky


class TestStickyRouter(RouterConformance):
    plugins = (switchyard_sticky,)
    # The targets of the kit's own policy are called `strong` and `weak`.
    router_toml = """
type = "sticky"
targets = ["strong", "weak"]
default = "weak"
"""
