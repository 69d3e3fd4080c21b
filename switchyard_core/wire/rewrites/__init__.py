"""Named rewrites: running them on a copy of the caller's body, and the built-in ones.

A :class:`RewriteType` declares a rewrite; a decision lists the rewrites of a request. They run in
order on one lossless tree, without those that the target switches off; the caller's bytes stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from switchyard_core.decision import Rewrite, RewriteReport, RewriteScope
from switchyard_core.declarations import RewriteFunction, RewriteType, WireFormat
from switchyard_core.errors import BodyError, PluginError, RefusedError, with_place
from switchyard_core.jsonio.tree import JsonTextError, ObjectText, encode
from switchyard_core.wire import FORMATS
from switchyard_core.wire.history import fixed_text
from switchyard_core.wire.rewrites import history
from switchyard_core.wire.rewrites.fit import FitParameters, fit_model
from switchyard_core.wire.rewrites.translate import TranslateParameters, translate
from switchyard_core.wire.shapes import still_untouched, untouched

__all__ = ["CORE_REWRITES", "apply_rewrites", "order_rewrites"]


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
    headers: dict[str, str] | None = None,
) -> tuple[bytes, tuple[RewriteReport, ...]]:
    """Run rewrites on a body, which changes; return its bytes and a report per rewrite.

    ``switches`` is the target's ``rewrites`` table. ``fault`` makes the error for a rewrite that
    fails. ``headers`` are those of the request, by lower-case name; a rewrite may change them.
    """
    scope = RewriteScope(wire_format=wire_format, headers={} if headers is None else headers)
    reports = []
    for rewrite in order_rewrites(rewrites, types):
        kind = types[rewrite.name]
        if kind.switchable and (switches or {}).get(rewrite.name) is False:
            reports.append(RewriteReport(name=rewrite.name, skipped="switched off by the target"))
            continue
        if kind.wire_formats is not None and scope.wire_format not in kind.wire_formats:
            skipped = f"not for {scope.wire_format}"
            reports.append(RewriteReport(name=rewrite.name, skipped=skipped))
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
        except RefusedError:
            raise
        except Exception as error:
            raise fault(rewrite.name, f"failed: {with_place(error)}") from error
        left, scope.untouched = tuple(dict.fromkeys(scope.untouched)), []
        why, scope.skipped = scope.skipped, ""
        report = RewriteReport(name=rewrite.name, changes=changes, skipped=why, untouched=left)
        reports.append(report)
    return body.dump(), tuple(_of_what_was_sent(body, reports))


def _of_what_was_sent(
    body: ObjectText, reports: Sequence[RewriteReport]
) -> Sequence[RewriteReport]:
    """Leave out of the reports what a later rewrite removed or replaced after all."""
    told = [line for report in reports for line in report.untouched]
    if not told:
        return reports
    kept = still_untouched(body, told)
    return [
        replace(report, untouched=tuple([line for line in report.untouched if line in kept]))
        for report in reports
    ]


# --- rewrites that add a text, or set what the target declares ---------------------------------


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class UserTextParameters(_Parameters):
    """The text to add; not blank."""

    text: str
    #: Number of the call behind whose results the text is; ``None`` puts it at the end.
    behind_call: int | None = None


class PromptParameters(_Parameters):
    """An instruction, not blank, and its place relative to the caller's own."""

    text: str
    position: Literal["prepend", "append"] = "prepend"


class ModelParameters(_Parameters):
    """The target's model id."""

    id: str


class ExtraBodyParameters(_Parameters):
    """Top-level keys that fill what the request does not set."""

    extra_body: Mapping[str, Any]


class EffortParameters(_Parameters):
    """The reasoning effort that the target asks for."""

    effort: str


def append_user_text(
    body: ObjectText, parameters: UserTextParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add a user's words behind the results of a call or at the end, unless a call is open."""
    view, end = history.view_of(body, scope), None
    conversation = history.read_history(view, scope)
    if conversation is None:
        return ()
    if parameters.behind_call is not None:
        end = conversation.end_behind(parameters.behind_call)
        if end is None:
            scope.skipped = "the call has no result that the text can be put behind"
            return ()
    elif conversation.ends_with_open_call:
        scope.skipped = "a call at the end waits for its result"
        return ()
    return _told(view.append_user_text(parameters.text, end))


def insert_prompt(
    body: ObjectText, parameters: PromptParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add an instruction before or after the caller's own."""
    append = parameters.position == "append"
    view = FORMATS[scope.wire_format].view(body, scope.untouched)
    return _told(view.add_instruction(parameters.text, append=append))


def end_with_user_turn(body: ObjectText, parameters: None, scope: RewriteScope) -> Sequence[str]:
    """Add a short user turn when the history ends with assistant text; an open call stays."""
    del parameters
    view = history.view_of(body, scope)
    conversation = history.read_history(view, scope)
    if conversation is None or view.items is None:
        return ()
    ends = conversation.messages[-1:]
    if not ends or ends[0].role != "assistant" or conversation.ends_with_open_call:
        return ()
    view.items.append(view.user_item(fixed_text("go_on")))
    return (f"added a user message as {view.key}[{len(view.items) - 1}]",)


def target_parameters(
    body: ObjectText, parameters: ExtraBodyParameters, scope: RewriteScope
) -> Sequence[str]:
    """Add the keys that the request does not set."""
    del scope
    changes = []
    for key, value in parameters.extra_body.items():
        if key not in body:
            body.set(key, encode(value))
            changes.append(f"set {key}")
    return changes


def reasoning_effort(
    body: ObjectText, parameters: EffortParameters, scope: RewriteScope
) -> Sequence[str]:
    """Set the reasoning effort where the wire format keeps it; its neighbours stay."""
    keys, holder = FORMATS[scope.wire_format].effort, body
    for number, key in enumerate(keys[:-1], 1):
        raw = holder.raw(key) or b"null"
        if raw == b"null":
            holder.set(key, b"{}")
        inner = holder.object(key)
        if inner is None:
            scope.untouched.append(untouched(".".join(keys[:number]), raw, "object"))
            return ()
        holder = inner
    value = encode(parameters.effort)
    if holder.raw(keys[-1]) == value:
        return ()
    holder.set(keys[-1], value)
    return (f"set {'.'.join(keys)} to {parameters.effort}",)


def set_model(body: ObjectText, parameters: ModelParameters, scope: RewriteScope) -> Sequence[str]:
    """Set ``model``."""
    del scope
    if body.text("model") == parameters.id:
        return ()
    body.set("model", encode(parameters.id))
    return (f"set model to {parameters.id}",)


def _told(change: str) -> Sequence[str]:
    return (change,) if change else ()


def _built_in(
    order: int,
    function: RewriteFunction,
    summary: str,
    parameters: type[BaseModel] | None,
    **more: Any,
) -> RewriteType:
    name = more.pop("name", None) or getattr(function, "__name__", "")
    return RewriteType(
        name=name, order=order, function=function, summary=summary, parameters=parameters, **more
    )


_WHEN = history.WhenParameters
#: Every built-in rewrite.
CORE_REWRITES: tuple[RewriteType, ...] = (
    _built_in(
        100,
        history.reasoning_as_text,
        "turns the planner's visible reasoning into assistant text",
        history.TextParameters,
    ),
    _built_in(
        200,
        history.drop_opaque_reasoning,
        "removes the planner's reasoning, which another origin refuses",
        history.DropParameters,
    ),
    _built_in(
        250,
        history.drop_origin_bound,
        "removes what only the planner's provider can read",
        history.OriginParameters,
    ),
    _built_in(
        300,
        history.drop_reasoning_companions,
        "removes what refers to dropped reasoning",
        history.CompanionParameters,
    ),
    _built_in(
        400,
        history.remap_tool_ids,
        "renames tool ids that the target refuses",
        history.RemapParameters,
    ),
    _built_in(500, history.repair_tool_pairs, "pairs every tool call with a result", _WHEN),
    _built_in(600, history.drop_empty_content, "removes messages with nothing left in them", _WHEN),
    _built_in(
        700, append_user_text, "adds a user's text at the end of the history", UserTextParameters
    ),
    _built_in(
        710,
        insert_prompt,
        "adds the target's own instruction",
        PromptParameters,
        name="insert_system_prompt",
    ),
    _built_in(
        720,
        insert_prompt,
        "adds the planning instruction",
        PromptParameters,
        name="insert_planning_prompt",
    ),
    _built_in(
        730, end_with_user_turn, "ends with a user turn for targets that refuse a prefill", None
    ),
    _built_in(
        750,
        translate,
        "says the request in the target's wire format",
        TranslateParameters,
        switchable=False,
    ),
    _built_in(
        800,
        history.limit_cache_marks,
        "leaves at most four cache marks",
        _WHEN,
        wire_formats=("anthropic_messages",),
    ),
    _built_in(900, target_parameters, "fills the target's extra_body", ExtraBodyParameters),
    _built_in(910, reasoning_effort, "sets the target's reasoning effort", EffortParameters),
    _built_in(1150, fit_model, "makes the body one that the target's model accepts", FitParameters),
    _built_in(1200, set_model, "sets the target's model id", ModelParameters, switchable=False),
)
