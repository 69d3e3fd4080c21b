"""The built-in rewrites as declarations, in the order in which they run."""

from __future__ import annotations

from switchyard_core.declarations import RewriteType
from switchyard_core.wire.rewrites import additions, history

__all__ = ["CORE_REWRITES"]


#: Every built-in rewrite.
CORE_REWRITES: tuple[RewriteType, ...] = (
    RewriteType(
        name="reasoning_as_text",
        order=100,
        function=history.reasoning_as_text,
        summary="turns the planner's visible reasoning into assistant text",
        parameters=history.TextParameters,
    ),
    RewriteType(
        name="drop_opaque_reasoning",
        order=200,
        function=history.drop_opaque_reasoning,
        summary="removes the planner's reasoning, which another origin refuses",
        parameters=history.DropParameters,
    ),
    RewriteType(
        name="drop_reasoning_companions",
        order=300,
        function=history.drop_reasoning_companions,
        summary="removes what refers to dropped reasoning",
        parameters=history.CompanionParameters,
    ),
    RewriteType(
        name="remap_tool_ids",
        order=400,
        function=history.remap_tool_ids,
        summary="renames tool ids that the target refuses",
        parameters=history.RemapParameters,
    ),
    RewriteType(
        name="repair_tool_pairs",
        order=500,
        function=history.repair_tool_pairs,
        summary="pairs every tool call with a result",
        parameters=history.WhenParameters,
    ),
    RewriteType(
        name="drop_empty_content",
        order=600,
        function=history.drop_empty_content,
        summary="removes messages with nothing left in them",
        parameters=history.WhenParameters,
    ),
    RewriteType(
        name="append_user_text",
        order=700,
        function=additions.append_user_text,
        summary="adds a user's text at the end of the history",
        parameters=additions.UserTextParameters,
    ),
    RewriteType(
        name="insert_system_prompt",
        order=710,
        function=additions.insert_prompt,
        summary="adds the target's own instruction",
        parameters=additions.PromptParameters,
    ),
    RewriteType(
        name="insert_planning_prompt",
        order=720,
        function=additions.insert_prompt,
        summary="adds the planning instruction",
        parameters=additions.PromptParameters,
    ),
    RewriteType(
        name="limit_cache_marks",
        order=800,
        function=history.limit_cache_marks,
        summary="leaves at most four cache marks",
        parameters=history.WhenParameters,
        wire_formats=("anthropic_messages",),
    ),
    RewriteType(
        name="target_parameters",
        order=900,
        function=additions.target_parameters,
        summary="fills the target's extra_body",
        parameters=additions.ExtraBodyParameters,
    ),
    RewriteType(
        name="reasoning_effort",
        order=910,
        function=additions.reasoning_effort,
        summary="sets the target's reasoning effort",
        parameters=additions.EffortParameters,
    ),
    RewriteType(
        name="end_with_user_turn",
        order=1000,
        function=additions.end_with_user_turn,
        summary="ends with a user turn for targets that refuse a prefill",
    ),
    RewriteType(
        name="set_model",
        order=1200,
        function=additions.set_model,
        summary="sets the target's model id",
        parameters=additions.ModelParameters,
        switchable=False,
    ),
)
