"""The contract of named rewrites as tests that any rewrite inherits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel

from switchyard_core.decision import Rewrite, RewriteReport, RewriteScope
from switchyard_core.declarations import WIRE_FORMATS, RewriteType, WireFormat
from switchyard_core.errors import PluginError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.request import Request
from switchyard_core.testing.conformance.bench import PerFormat, about, named_like, require
from switchyard_core.testing.conformance.samples import (
    empty_requests,
    odd_request,
    require_key_order,
    require_unknown_fields,
    sample_requests,
)
from switchyard_core.testing.conformance.watching import Watch, reads_clock, reads_randomness
from switchyard_core.testing.harness import registry_of
from switchyard_core.testing.validity import validity_problems
from switchyard_core.wire.rewrites import apply_rewrites

__all__ = ["RewriteConformance"]

_MODEL = "provider/model"


def _each_request(check: Callable[[Any, Request], None]) -> Callable[[Any, WireFormat], None]:
    """Make a test of a check: it runs for every request, whose name ends a failure's message."""

    def test(self: Any, wire_format: WireFormat) -> None:
        for name, request in self.requests(wire_format).items():
            with about(name):
                check(self, request)

    return named_like(check, test)


class RewriteConformance(PerFormat):
    """Inherit it in a test module, name a rewrite, and pytest runs the contract's tests.

    The tests run for each wire format that the rewrite knows.

    Example:
        >>> class TestShorten(RewriteConformance):
        ...     plugins = (shortener,)                                     # doctest: +SKIP
        ...     rewrite = "shorten"
        ...     parameters = {"keep": 3}
    """

    #: Name of the rewrite.
    rewrite: ClassVar[str] = ""
    #: Its parameters.
    parameters: ClassVar[Mapping[str, Any]] = {}
    #: The plugins that give it; none for a rewrite of the core.
    plugins: ClassVar[Sequence[object]] = ()
    #: Types of history items that it is there to remove, such as ``reasoning``.
    removes: ClassVar[Collection[str]] = ()

    def requests(self, wire_format: WireFormat) -> Mapping[str, Request]:
        """Return the requests to rewrite, by name; override it to add what your rewrite changes."""
        return sample_requests(wire_format, _MODEL)

    def wire_formats(self) -> Sequence[WireFormat]:
        """Return those that the rewrite knows."""
        known = self._type().wire_formats
        return [name for name in WIRE_FORMATS if known is None or name in known]

    def test_rewrite_refuses_unknown_parameters(self) -> None:
        """A misspelt parameter is an error where the decision is carried out."""
        model: type[BaseModel] | None = self._type().parameters
        require(
            model is None or model.model_config.get("extra") == "forbid",
            f"the parameters of `{self.rewrite}` accept unknown keys: give their model "
            '`extra="forbid"`',
        )

    @_each_request
    def test_rewrite_is_idempotent(self, request: Request) -> None:
        """Running again on its own result changes nothing and tells no change."""
        once, _ = self._rewritten(request)
        twice, report = self._rewritten(Request(wire_format=request.wire_format, body=once))
        require(twice == once, f"`{self.rewrite}` changes its own result")
        told = "; ".join(report.changes)
        require(not told, f"`{self.rewrite}` changes nothing, and tells: {told}")

    @_each_request
    def test_rewrite_tells_what_it_changed(self, request: Request) -> None:
        """There are changes in the report just when there are some in the body."""
        body, report = self._rewritten(request)
        changed = "did not change" if body == request.body else "changed"
        problem = f"`{self.rewrite}` tells {list(report.changes)}, and the body {changed}"
        require(bool(report.changes) == (body != request.body), problem)

    @_each_request
    def test_rewrite_keeps_unknown_fields(self, request: Request) -> None:
        """What it does not know stays, to the byte."""
        odd = odd_request(request)
        who = f"`{self.rewrite}`"
        require_unknown_fields(odd, self._rewritten(odd)[0], who, self.removes)

    @_each_request
    def test_rewrite_keeps_the_key_order(self, request: Request) -> None:
        """The caller's keys that are left have the caller's order."""
        odd = odd_request(request)
        require_key_order(odd, self._rewritten(odd)[0], f"`{self.rewrite}`")

    def test_rewrite_survives_an_empty_history(self, wire_format: WireFormat) -> None:
        """There may be no message, and no text in one."""
        for name, request in empty_requests(wire_format, _MODEL).items():
            try:
                self._rewritten(request)
            except PluginError as error:
                raise AssertionError(f"{error} ({name})") from error

    @_each_request
    def test_rewrite_keeps_a_valid_body_valid(self, request: Request) -> None:
        """A body that the provider accepts stays one; see ``assert_valid_for``."""
        if not validity_problems(request.wire_format, request.body):
            body, _ = self._rewritten(request)
            problems = "; ".join(validity_problems(request.wire_format, body))
            require(not problems, f"`{self.rewrite}` makes a body invalid: {problems}")

    @_each_request
    def test_rewrite_reads_no_clock_and_no_chance(self, request: Request) -> None:
        """A body is a function of the decision, so that it can be replayed."""
        kind = self._type()
        model = kind.parameters
        parameters = model.model_validate(dict(self.parameters)) if model is not None else None
        fields, scope = ObjectText(request.body), RewriteScope(wire_format=request.wire_format)
        with Watch(lambda function: reads_clock(function) or reads_randomness(function)) as watch:
            kind.function(fields, parameters, scope)
        calls = "; ".join(watch.seen)
        problem = f"`{self.rewrite}` calls {calls}: put what varies into its parameters"
        require(not calls, problem)

    def _type(self) -> RewriteType:
        types = registry_of(self.plugins).rewrites
        names = ", ".join(sorted(types))
        require(self.rewrite in types, f"no given plugin has `{self.rewrite}`; known: {names}")
        return types[self.rewrite]

    def _rewritten(self, request: Request) -> tuple[bytes, RewriteReport]:
        rewrite = Rewrite(name=self.rewrite, parameters=self.parameters)
        types, fields = {self.rewrite: self._type()}, ObjectText(request.body)
        body, (report,) = apply_rewrites(fields, [rewrite], types, request.wire_format)
        return body, report
