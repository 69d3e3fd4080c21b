"""The contract of routers as tests that anybody's router inherits."""

from __future__ import annotations

from switchyard_core.declarations import WireFormat
from switchyard_core.testing.conformance import outgoing
from switchyard_core.testing.conformance.suite import RouteSuite

__all__ = ["RouterConformance"]


class RouterConformance(RouteSuite):
    r"""Inherit it in a test module, say which router, and pytest runs the contract's tests.

    Give either :attr:`router_toml` or :attr:`policy`, and :attr:`plugins`. The tests that
    take a wire format run for each one that the policy can be given.

    Example:
        >>> class TestSticky(RouterConformance):
        ...     plugins = (sticky,)                                        # doctest: +SKIP
        ...     router_toml = 'type = "sticky"\ntargets = ["strong", "weak"]'
    """

    # --- what is sent -------------------------------------------------------------------------

    def test_router_keeps_unknown_fields(self, wire_format: WireFormat) -> None:
        """What the router does not know is the caller's, to the byte."""
        self._run(wire_format, outgoing.check_unknown_fields)

    def test_router_keeps_the_key_order(self, wire_format: WireFormat) -> None:
        """Providers cache by prefix: another order costs a cache miss."""
        self._run(wire_format, outgoing.check_key_order)

    def test_router_rewrites_are_idempotent(self, wire_format: WireFormat) -> None:
        """Rewriting a rewritten body changes nothing."""
        self._run(wire_format, outgoing.check_idempotence)

    def test_router_sends_a_valid_body(self, wire_format: WireFormat) -> None:
        """A body that the provider accepts stays one; see ``assert_valid_for``."""
        self._run(wire_format, outgoing.check_validity)
