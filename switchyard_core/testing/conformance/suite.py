"""What the contracts of both kinds of routers have in common: the route, and its ``route()``."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Protocol

from switchyard_core.answering import ModelCall, ModelReply
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import PluginError, PolicyError
from switchyard_core.request import Request
from switchyard_core.testing.conformance import options, purity, safety
from switchyard_core.testing.conformance.bench import Bench, Trial, require
from switchyard_core.testing.conformance.samples import sample_requests
from switchyard_core.testing.harness import Harness

__all__ = ["RouteSuite"]

_PLACE = "{wire_format}"


class _Metafunc(Protocol):
    fixturenames: Sequence[str]

    def parametrize(self, name: str, values: Sequence[str], /) -> None: ...


class RouteSuite:
    """The tests of a router's ``route()``, and what a suite says of its route.

    Inherited by :class:`.RouterConformance` and :class:`.AnsweringConformance`.
    """

    #: The keys of one route, for a policy of the kit's own, whose targets are ``strong`` and
    #: ``weak``, of one provider.
    router_toml: ClassVar[str] = ""
    #: A whole policy, as text or as a file; ``{wire_format}`` in it is replaced by each one.
    policy: ClassVar[str | os.PathLike[str]] = ""
    #: The plugins that the policy needs.
    plugins: ClassVar[Sequence[object]] = ()
    #: Name of the route under test; the policy's first one when empty.
    route: ClassVar[str] = ""
    #: Types of history items that its rewrites are there to remove, such as ``reasoning``.
    removes: ClassVar[Collection[str]] = ()

    # --- what a subclass may say besides ----------------------------------------------------

    def requests(self, wire_format: WireFormat, model: str) -> Mapping[str, Request]:
        """Return the requests that the router is tried with, new ones at each call, by name.

        Override it to add what your router looks at.
        """
        return sample_requests(wire_format, model)

    def reply(self, target: str, call: ModelCall) -> ModelReply:
        """Return what a model answers, for routers that ask one.

        Raises:
            AssertionError: Nobody has said what it answers.
        """
        del call
        msg = f"the router asks `{target}`: say what it answers by overriding `reply`"
        raise AssertionError(msg)

    def policy_text(self, wire_format: WireFormat) -> str:
        """Return the policy for a wire format."""
        text = str(self.policy)
        if self.router_toml:
            require(not text, "give `router_toml` or `policy`, not both")
            shipped = files("switchyard_core.testing.conformance") / "policy.toml"
            text = shipped.read_text("utf-8").replace("{router_toml}", self.router_toml)
        elif "\n" not in text:
            require(text, "say which router is tested: give `router_toml` or `policy`")
            text = Path(text).read_text("utf-8")
        return text.replace(_PLACE, wire_format)

    def wire_formats(self) -> Sequence[WireFormat]:
        """Return the wire formats that the policy can be given: those of a fixed one's route."""
        if self.policy_text("openai_chat") != self.policy_text("openai_responses"):
            return WIRE_FORMATS
        served = self.bench("openai_chat").runtime.route.wire_format
        return WIRE_FORMATS if served is None else (served,)

    def pytest_generate_tests(self, metafunc: _Metafunc) -> None:
        """Run the tests of the class once per wire format; pytest calls this."""
        if "wire_format" in metafunc.fixturenames:
            try:
                found = self.wire_formats()
            except (PolicyError, PluginError):
                found = WIRE_FORMATS[:1]  # the tests tell it better
            metafunc.parametrize("wire_format", found)

    # --- options ----------------------------------------------------------------------------

    def test_router_options_refuse_unknown_keys(self) -> None:
        """A misspelt option is an error on its line, with the nearest name."""
        text = self.policy_text(WIRE_FORMATS[0])
        options.check_unknown_keys(text, self.plugins, self.route)

    # --- the same request, the same decision --------------------------------------------------

    def test_router_decides_the_same_for_the_same_request(self, wire_format: WireFormat) -> None:
        """A decision depends on request and context, not on what was asked before."""
        self._run(wire_format, purity.check_repeats)

    def test_router_decides_the_same_in_another_process(self) -> None:
        """A decision does not depend on the hash seed of the process: on the order of a set."""
        purity.check_processes(Path(inspect.getfile(type(self))), type(self).__qualname__)

    def test_router_takes_randomness_from_its_context(self, wire_format: WireFormat) -> None:
        """Only ``context.random`` may draw, so that a decision can be replayed."""
        self._run(wire_format, purity.check_randomness)

    def test_router_takes_time_from_its_context(self, wire_format: WireFormat) -> None:
        """Only ``context.clock`` may tell the time, so that a decision can be replayed."""
        self._run(wire_format, purity.check_clock)

    def test_router_does_not_change_the_request(self, wire_format: WireFormat) -> None:
        """What is to be changed goes into the decision's rewrites."""
        self._run(wire_format, purity.check_request)

    # --- what it decides ----------------------------------------------------------------------

    def test_router_survives_an_empty_history(self, wire_format: WireFormat) -> None:
        """There may be no message, and no text in one."""
        self._run(wire_format, safety.check_empty)

    def test_router_survives_a_huge_history(self, wire_format: WireFormat) -> None:
        """A thousand tool calls are a long session, not an error."""
        self._run(wire_format, safety.check_huge)

    def test_router_chooses_only_declared_targets(self, wire_format: WireFormat) -> None:
        """A target is one that the route's options name: the policy check knows no other."""
        self._run(wire_format, safety.check_targets)

    def test_router_gives_a_reason(self, wire_format: WireFormat) -> None:
        """The reason's code is a word for logs and headers."""
        self._run(wire_format, safety.check_reason)

    def test_router_never_latches_for_housekeeping(self, wire_format: WireFormat) -> None:
        """A title or a token count moves no session."""
        self._run(wire_format, safety.check_housekeeping)

    def test_router_effects_concern_the_requests_own_identity(
        self, wire_format: WireFormat
    ) -> None:
        """No request latches, changes or frees another's session."""
        self._run(wire_format, safety.check_effects)

    def test_router_dry_run_has_no_effect(self, wire_format: WireFormat) -> None:
        """An explanation changes nothing: no latch, no memory in the router."""
        self._run(wire_format, safety.check_dry_run)

    # --- how ----------------------------------------------------------------------------------

    def bench(self, wire_format: WireFormat) -> Bench:
        """Return the route on an engine of its own, for checks of one's own."""
        text, source = self.policy_text(wire_format), str(self.policy)
        fixed = source and "\n" not in source and text == Path(source).read_text("utf-8")
        # A file that is taken as it is may name others beside it.
        harness = Harness(Path(source) if fixed else text, plugins=self.plugins)
        return Bench(harness, self.route or next(iter(harness.policy.routes)), self.reply)

    def trial(self, wire_format: WireFormat, targets: WireFormat | None = None) -> Trial:
        """Return what a check works with.

        Args:
            wire_format: Of the requests.
            targets: Of the targets, that of the requests when absent.
        """
        return Trial(
            wire_format=wire_format,
            bench=lambda: self.bench(targets or wire_format),
            requests=lambda model: self.requests(wire_format, model),
            removes=self.removes,
        )

    def _run(
        self, wire_format: WireFormat, check: Callable[[Trial], Coroutine[Any, Any, None]]
    ) -> None:
        asyncio.run(check(self.trial(wire_format)))
