"""Carrying out named rewrites on a copy of the caller's body.

What a rewrite does is declared by a :class:`RewriteType`; which ones run on a request is data
of its decision. Here they are put in order, switched off where a target says so, and run on
one lossless tree; the caller's bytes are never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from switchyard_core.declarations import Rewrite, RewriteScope, RewriteType, WireFormat
from switchyard_core.errors import BodyError, PluginError
from switchyard_core.jsonio.tree import JsonTextError, ObjectText

__all__ = ["RewriteReport", "apply_rewrites", "order_rewrites"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteReport:
    """What one rewrite did to one body.

    Args:
        name: Name of the rewrite.
        changes: One line per change; empty when nothing had to change.
        skipped: Why it did not run, ``""`` when it did.
    """

    name: str
    changes: tuple[str, ...] = ()
    skipped: str = ""


def _fault(name: str, what: str) -> PluginError:
    return PluginError(f"the rewrite `{name}` {what}")


def order_rewrites(
    rewrites: Sequence[Rewrite], types: Mapping[str, RewriteType]
) -> tuple[Rewrite, ...]:
    """Return rewrites in the order in which they run; equal orders keep their places."""
    for rewrite in rewrites:
        if rewrite.name not in types:
            known = ", ".join(sorted(types))
            msg = f"no installed plugin gives the rewrite `{rewrite.name}`; known: {known}"
            raise PluginError(msg)
    return tuple(sorted(rewrites, key=lambda rewrite: types[rewrite.name].order))


def apply_rewrites(
    body: ObjectText,
    rewrites: Sequence[Rewrite],
    types: Mapping[str, RewriteType],
    wire_format: WireFormat,
    switches: Mapping[str, bool] | None = None,
    fault: Callable[[str, str], PluginError] = _fault,
) -> tuple[bytes, tuple[RewriteReport, ...]]:
    """Run rewrites on a body, which changes; return its bytes and a report per rewrite.

    ``switches`` is the target's ``rewrites`` table. ``fault`` makes the error for a rewrite that
    fails.
    """
    scope = RewriteScope(wire_format=wire_format)
    reports = []
    for rewrite in order_rewrites(rewrites, types):
        kind = types[rewrite.name]
        if kind.switchable and (switches or {}).get(rewrite.name) is False:
            reports.append(RewriteReport(name=rewrite.name, skipped="switched off by the target"))
            continue
        if kind.wire_formats is not None and wire_format not in kind.wire_formats:
            reports.append(RewriteReport(name=rewrite.name, skipped=f"not for {wire_format}"))
            continue
        try:
            parameters = (
                kind.parameters.model_validate(dict(rewrite.parameters))
                if kind.parameters is not None
                else None
            )
        except ValidationError as error:
            raise fault(rewrite.name, f"was given wrong parameters: {error}") from error
        try:
            changes = tuple(kind.function(body, parameters, scope))
        except JsonTextError as error:
            message = f"the body cannot be rewritten: {error.message}"
            raise BodyError(message=message, code="invalid_json") from None
        except Exception as error:
            raise fault(rewrite.name, f"failed: {type(error).__name__}: {error}") from error
        reports.append(RewriteReport(name=rewrite.name, changes=changes))
    return body.dump(), tuple(reports)
