"""The contract of routers that answer by themselves, as tests that anybody's router inherits."""

from __future__ import annotations

import asyncio

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.testing.conformance import answers, asking
from switchyard_core.testing.conformance.suite import RouteSuite

__all__ = ["AnsweringConformance"]


class AnsweringConformance(RouteSuite):
    r"""Inherit it in a test module, say which router and what models reply, and pytest tests it.

    For route types of ``kind="answers"``. Give either :attr:`router_toml` or :attr:`policy`, and
    :attr:`plugins`; override :meth:`reply`. The tests run with callers of each wire format; with
    :attr:`router_toml`, or ``{wire_format}`` in the policy, the targets speak the caller's.

    Example:
        >>> class TestEnsemble(AnsweringConformance):
        ...     plugins = (ensemble,)                                      # doctest: +SKIP
        ...     router_toml = 'type = "ensemble"\ntargets = ["strong", "weak"]'
        ...
        ...     def reply(self, target, call):
        ...         return ModelReply(text="1")
    """

    # --- what it says -----------------------------------------------------------------------

    def test_answer_is_made_of_legal_events(self, wire_format: WireFormat) -> None:
        """Sections open and close, nothing stands outside, and the last event is ``Finished``."""
        self._run(wire_format, answers.check_events)

    def test_answer_is_written_in_every_wire_format(self, wire_format: WireFormat) -> None:
        """Whole or streamed, callers of all wire formats read the same text."""
        self._run(wire_format, answers.check_writing)

    def test_answer_survives_a_failed_call(self, wire_format: WireFormat) -> None:
        """Before the first event it may refuse; after it the text has to say what went wrong."""
        self._run(wire_format, answers.check_failures)

    def test_answer_survives_an_empty_history(self, wire_format: WireFormat) -> None:
        """There may be no message, and no text in one: an answer, or a refusal."""
        self._run(wire_format, answers.check_empty)

    def test_answer_survives_a_huge_history(self, wire_format: WireFormat) -> None:
        """A thousand tool calls are a long session, not an error."""
        self._run(wire_format, answers.check_huge)

    # --- what it asks -----------------------------------------------------------------------

    def test_answer_asks_the_same_for_the_same_request(self, wire_format: WireFormat) -> None:
        """Nothing random or dated enters an outgoing body, so that calls can be replayed."""
        self._run(wire_format, asking.check_calls)

    def test_answer_asks_only_declared_targets(self, wire_format: WireFormat) -> None:
        """A target is one that the route's options name: the policy check knows no other."""
        self._run(wire_format, asking.check_targets)

    def test_answer_asks_with_valid_bodies(self, wire_format: WireFormat) -> None:
        """Whatever the caller speaks, each target is asked in its own wire format."""
        texts = {targets: self.policy_text(targets) for targets in WIRE_FORMATS}
        # A policy without the place has the same targets each time.
        for targets in {text: targets for targets, text in texts.items()}.values():
            asyncio.run(asking.check_bodies(self.trial(wire_format, targets)))

    def test_router_asks_nobody_while_it_routes(self, wire_format: WireFormat) -> None:
        """``route()`` is also run for explanations, in which nothing may be sent."""
        self._run(wire_format, asking.check_silence)

    # --- how --------------------------------------------------------------------------------

    def test_answer_takes_randomness_from_its_context(self, wire_format: WireFormat) -> None:
        """Only ``context.random`` and ``context.new_id`` may draw."""
        self._run(wire_format, asking.check_randomness)

    def test_answer_takes_time_from_its_context(self, wire_format: WireFormat) -> None:
        """Only ``context.clock`` may tell the time; timeouts of asyncio are no clock."""
        self._run(wire_format, asking.check_clock)

    def test_answer_does_not_change_the_request(self, wire_format: WireFormat) -> None:
        """Body, headers and every view are after an answer what they were before."""
        self._run(wire_format, answers.check_request)

    def test_answer_that_is_closed_early_ends_its_calls(self, wire_format: WireFormat) -> None:
        """When a client leaves, the call that runs is cancelled and no other begins."""
        self._run(wire_format, asking.check_closing)
