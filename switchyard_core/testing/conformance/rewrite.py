"""The contract of named rewrites as tests that anybody's rewrite inherits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel

from switchyard_core.declarations import (
    WIRE_FORMATS,
    Rewrite,
    RewriteScope,
    RewriteType,
    WireFormat,
)
from switchyard_core.errors import PluginError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.request import Request
from switchyard_core.rewrites import RewriteReport, apply_rewrites
from switchyard_core.testing.conformance.bench import require
from switchyard_core.testing.conformance.bodies import require_key_order, require_unknown_fields
from switchyard_core.testing.conformance.samples import (
    empty_requests,
    odd_request,
    sample_requests,
)
from switchyard_core.testing.conformance.watching import Watch, reads_clock, reads_randomness
from switchyard_core.testing.harness import registry_of
from switchyard_core.testing.validity import validity_problems

__all__ = ["RewriteConformance"]

_MODEL = "provider/model"


class _Metafunc(Protocol):
    fixturenames: Sequence[str]

    def parametrize(self, name: str, values: Sequence[str], /) -> None: ...


class RewriteConformance:
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
        """Return the requests whose bodies are rewritten, by name.

        Override it to add what your rewrite changes.
        """
        return sample_requests(wire_format, _MODEL)

    def pytest_generate_tests(self, metafunc: _Metafunc) -> None:
        """Run the tests once per wire format that the rewrite knows; pytest calls this."""
        if "wire_format" in metafunc.fixturenames:
            try:
                known = self._type().wire_formats
            except (AssertionError, PluginError):
                known = ()  # the tests tell it better
            found = [name for name in WIRE_FORMATS if known is None or name in known]
            metafunc.parametrize("wire_format", found or WIRE_FORMATS[:1])

    def test_rewrite_refuses_unknown_parameters(self) -> None:
        """A misspelt parameter is an error where the decision is carried out."""
        model: type[BaseModel] | None = self._type().parameters
        require(
            model is None or model.model_config.get("extra") == "forbid",
            f"the parameters of `{self.rewrite}` accept unknown keys: give their model "
            '`extra="forbid"`',
        )

    def test_rewrite_is_idempotent(self, wire_format: WireFormat) -> None:
        """Running again on its own result changes nothing and tells no change."""
        apply = self._applying()
        for name, request in self.requests(wire_format).items():
            once, _ = apply(wire_format, request.body)
            twice, report = apply(wire_format, once)
            require(twice == once, f"`{self.rewrite}` changes its own result ({name})")
            told = "; ".join(report.changes)
            require(not told, f"`{self.rewrite}` changes nothing, and tells: {told} ({name})")

    def test_rewrite_tells_what_it_changed(self, wire_format: WireFormat) -> None:
        """There are changes in the report just when there are some in the body."""
        apply = self._applying()
        for name, request in self.requests(wire_format).items():
            body, report = apply(wire_format, request.body)
            require(
                bool(report.changes) == (body != request.body),
                f"`{self.rewrite}` tells {list(report.changes)}, and the body "
                f"{'changed' if body != request.body else 'did not change'} ({name})",
            )

    def test_rewrite_keeps_unknown_fields(self, wire_format: WireFormat) -> None:
        """What it does not know stays, to the byte."""
        apply = self._applying()
        for name, request in self.requests(wire_format).items():
            odd = odd_request(request)
            body, _ = apply(wire_format, odd.body)
            who = f"`{self.rewrite}`"
            require_unknown_fields(odd, body, what=name, who=who, removes=self.removes)

    def test_rewrite_keeps_the_key_order(self, wire_format: WireFormat) -> None:
        """The caller's keys that are left stand in the caller's order."""
        apply = self._applying()
        for name, request in self.requests(wire_format).items():
            odd = odd_request(request)
            body, _ = apply(wire_format, odd.body)
            require_key_order(odd, body, what=name, who=f"`{self.rewrite}`")

    def test_rewrite_survives_an_empty_history(self, wire_format: WireFormat) -> None:
        """There may be no message, and no text in one."""
        apply = self._applying()
        for name, request in empty_requests(wire_format, _MODEL).items():
            try:
                apply(wire_format, request.body)
            except PluginError as error:
                raise AssertionError(f"{error} ({name})") from error

    def test_rewrite_keeps_a_valid_body_valid(self, wire_format: WireFormat) -> None:
        """A body that the provider accepts stays one; see ``assert_valid_for``."""
        apply = self._applying()
        for name, request in self.requests(wire_format).items():
            if not validity_problems(wire_format, request.body):
                body, _ = apply(wire_format, request.body)
                problems = "; ".join(validity_problems(wire_format, body))
                require(not problems, f"`{self.rewrite}` makes a body invalid: {problems} ({name})")

    def test_rewrite_reads_no_clock_and_no_chance(self, wire_format: WireFormat) -> None:
        """A body is a function of the decision, so that it can be replayed."""
        kind, parameters = self._type(), self._parameters()
        for name, request in self.requests(wire_format).items():
            fields = ObjectText(request.body)
            scope = RewriteScope(wire_format=wire_format)
            with Watch(lambda f: reads_clock(f) or reads_randomness(f)) as watch:
                kind.function(fields, parameters, scope)
            require(
                not watch.seen,
                f"`{self.rewrite}` calls {'; '.join(watch.seen)} ({name}): put what varies "
                "into its parameters",
            )

    def _type(self) -> RewriteType:
        types = registry_of(self.plugins).rewrites
        known = ", ".join(sorted(types))
        require(self.rewrite in types, f"no given plugin has `{self.rewrite}`; known: {known}")
        return types[self.rewrite]

    def _parameters(self) -> BaseModel | None:
        model = self._type().parameters
        return model.model_validate(dict(self.parameters)) if model is not None else None

    def _applying(self) -> Callable[[WireFormat, bytes], tuple[bytes, RewriteReport]]:
        rewrite = Rewrite(name=self.rewrite, parameters=self.parameters)
        types = {self.rewrite: self._type()}

        def apply(wire_format: WireFormat, body: bytes) -> tuple[bytes, RewriteReport]:
            rewritten, (report,) = apply_rewrites(ObjectText(body), [rewrite], types, wire_format)
            return rewritten, report

        return apply
