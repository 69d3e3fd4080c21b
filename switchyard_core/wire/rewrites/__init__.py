"""The built-in rewrites as declarations, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from switchyard_core.declarations import WIRE_FORMATS, RewriteFunction, RewriteType, WireFormat
from switchyard_core.wire.rewrites import additions, history

__all__ = ["CORE_REWRITES"]


def _rewrite(
    name: str,
    order: int,
    function: RewriteFunction,
    summary: str,
    parameters: type[BaseModel] | None = None,
    *,
    wire_formats: Sequence[WireFormat] = WIRE_FORMATS,
    switchable: bool = True,
) -> RewriteType:
    return RewriteType(
        name=name,
        order=order,
        functions=dict.fromkeys(wire_formats, function),
        summary=summary,
        parameters=parameters,
        switchable=switchable,
    )


#: Every built-in rewrite.
CORE_REWRITES: tuple[RewriteType, ...] = (
    _rewrite(
        "reasoning_as_text",
        100,
        history.reasoning_as_text,
        "turns the planner's visible reasoning into assistant text",
        history.TextParameters,
    ),
    _rewrite(
        "drop_opaque_reasoning",
        200,
        history.drop_opaque_reasoning,
        "removes the planner's reasoning, which another origin refuses",
        history.DropParameters,
    ),
    _rewrite(
        "drop_reasoning_companions",
        300,
        history.drop_reasoning_companions,
        "removes what refers to dropped reasoning",
        history.CompanionParameters,
    ),
    _rewrite(
        "remap_tool_ids",
        400,
        history.remap_tool_ids,
        "renames tool ids that the target refuses",
        history.RemapParameters,
    ),
    _rewrite(
        "repair_tool_pairs",
        500,
        history.repair_tool_pairs,
        "pairs every tool call with a result",
        history.WhenParameters,
    ),
    _rewrite(
        "drop_empty_content",
        600,
        history.drop_empty_content,
        "removes messages with nothing left in them",
        history.WhenParameters,
    ),
    _rewrite(
        "append_user_text",
        700,
        additions.append_user_text,
        "adds a user's text at the end of the history",
        additions.UserTextParameters,
    ),
    _rewrite(
        "insert_system_prompt",
        710,
        additions.insert_prompt,
        "adds the target's own instruction",
        additions.PromptParameters,
    ),
    _rewrite(
        "insert_planning_prompt",
        720,
        additions.insert_prompt,
        "adds the planning instruction",
        additions.PromptParameters,
    ),
    _rewrite(
        "limit_cache_marks",
        800,
        history.limit_cache_marks,
        "leaves at most four cache marks",
        history.WhenParameters,
        wire_formats=("anthropic_messages",),
    ),
    _rewrite(
        "target_parameters",
        900,
        additions.target_parameters,
        "fills the target's extra_body",
        additions.ExtraBodyParameters,
    ),
    _rewrite(
        "reasoning_effort",
        910,
        additions.reasoning_effort,
        "sets the target's reasoning effort",
        additions.EffortParameters,
    ),
    _rewrite(
        "end_with_user_turn",
        1000,
        additions.end_with_user_turn,
        "ends with a user turn for targets that refuse a prefill",
    ),
    _rewrite(
        "set_model",
        1200,
        additions.set_model,
        "sets the target's model id",
        additions.ModelParameters,
        switchable=False,
    ),
)
