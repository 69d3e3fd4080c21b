"""The built-in rewrites as declarations, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel

from switchyard_core.declarations import RewriteFunction, RewriteType, WireFormat
from switchyard_core.formats.rewrites import (
    companions,
    empties,
    marks,
    pairs,
    parameters,
    prompts,
    reasoning,
    tool_ids,
    user_text,
)

__all__ = ["CORE_REWRITES"]


def _three(
    chat: RewriteFunction, responses: RewriteFunction, messages: RewriteFunction
) -> Mapping[WireFormat, RewriteFunction]:
    return {"openai_chat": chat, "openai_responses": responses, "anthropic_messages": messages}


def _same(function: RewriteFunction) -> Mapping[WireFormat, RewriteFunction]:
    return _three(function, function, function)


def _rewrite(
    name: str,
    order: int,
    functions: Mapping[WireFormat, RewriteFunction],
    summary: str,
    model: type[BaseModel] | None = None,
    *,
    switchable: bool = True,
) -> RewriteType:
    return RewriteType(
        name=name,
        order=order,
        functions=functions,
        summary=summary,
        parameters=model,
        switchable=switchable,
    )


_PROMPTS = _three(prompts.into_chat, prompts.into_responses, prompts.into_messages)

#: Every built-in rewrite.
CORE_REWRITES: tuple[RewriteType, ...] = (
    _rewrite(
        "reasoning_as_text",
        100,
        _three(reasoning.text_in_chat, reasoning.text_in_responses, reasoning.text_in_messages),
        "turns the planner's visible reasoning into assistant text",
        reasoning.TextParameters,
    ),
    _rewrite(
        "drop_opaque_reasoning",
        200,
        _three(
            reasoning.drop_from_chat, reasoning.drop_from_responses, reasoning.drop_from_messages
        ),
        "removes the planner's reasoning, which another origin refuses",
        reasoning.DropParameters,
    ),
    _rewrite(
        "drop_reasoning_companions",
        300,
        _three(companions.in_chat, companions.in_responses, companions.in_messages),
        "removes what refers to dropped reasoning",
        companions.CompanionParameters,
    ),
    _rewrite(
        "remap_tool_ids",
        400,
        _same(tool_ids.remap_ids),
        "renames tool ids that the target refuses",
        tool_ids.RemapParameters,
    ),
    _rewrite(
        "repair_tool_pairs",
        500,
        _three(pairs.repair_chat, pairs.repair_responses, pairs.repair_messages),
        "pairs every tool call with a result",
        pairs.RepairParameters,
    ),
    _rewrite(
        "drop_empty_content",
        600,
        _three(empties.drop_from_chat, empties.drop_from_responses, empties.drop_from_messages),
        "removes messages with nothing left in them",
        pairs.RepairParameters,
    ),
    _rewrite(
        "append_user_text",
        700,
        _three(
            user_text.append_to_chat, user_text.append_to_responses, user_text.append_to_messages
        ),
        "adds a user's text at the end of the history",
        user_text.UserTextParameters,
    ),
    _rewrite(
        "insert_system_prompt",
        710,
        _PROMPTS,
        "adds the target's own instruction",
        prompts.PromptParameters,
    ),
    _rewrite(
        "insert_planning_prompt",
        720,
        _PROMPTS,
        "adds the planning instruction",
        prompts.PromptParameters,
    ),
    _rewrite(
        "limit_cache_marks",
        800,
        {"anthropic_messages": marks.limit_marks},
        "leaves at most four cache marks",
        pairs.RepairParameters,
    ),
    _rewrite(
        "target_parameters",
        900,
        _same(parameters.fill_extra_body),
        "fills the target's extra_body",
        parameters.ExtraBodyParameters,
    ),
    _rewrite(
        "reasoning_effort",
        910,
        _same(parameters.set_effort),
        "sets the target's reasoning effort",
        parameters.EffortParameters,
    ),
    _rewrite(
        "end_with_user_turn",
        1000,
        _same(user_text.end_with_user),
        "ends with a user turn for targets that refuse a prefill",
    ),
    _rewrite(
        "set_model",
        1200,
        _same(parameters.set_model),
        "sets the target's model id",
        parameters.ModelParameters,
        switchable=False,
    ),
)
