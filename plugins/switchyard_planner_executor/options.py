"""The keys of a ``planner_executor`` route."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from switchyard_core import OptionError, Options, PlanStoreName, Prompt, TargetName, ToolName
from switchyard_planner_executor.modes import DEFAULT_MODE, MODES, RESERVED, reserved_sentence

__all__ = ["PlannerExecutorOptions"]


def _not_reserved(value: Any) -> Any:
    """Refuse the names that mean another thing; what is no mode at all is the type's matter."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        msg = "must not be blank"
        raise OptionError(
            msg, fix=f'remove the key for "{DEFAULT_MODE}", or write a mode', code="SY108"
        )
    if value in RESERVED:
        msg = f"{reserved_sentence(value)}; modes: {', '.join(MODES)}"
        raise OptionError(
            msg, fix='"replan" plans again after a failed step; or remove the key', code="SY315"
        )
    return value


Mode = Annotated[Literal["plan_then_execute", "replan"], BeforeValidator(_not_reserved)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
Dollars = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1)]


class PlannerExecutorOptions(Options):
    """Options of ``type = "planner_executor"``.

    Args:
        planner_target: Makes the plan.
        executor_target: Carries the steps out; may be the planner.
        tools: Tools that the executor is offered on every step.
        query_tool: Tool that a step with a query is told to use; the only one if there is one.
        planner_prompt: Replaces the built-in instruction of the planner.
        executor_prompt: Replaces the built-in instruction of the executor.
        mode: ``replan`` plans the rest again after a step that failed or is blocked.
        planner_sees: Whether the planner gets earlier text of the conversation too.
        planner_output: ``lenient`` takes one code fence off a plan.
        planner_retries: How often a plan that cannot be used is sent back, 0 to 2.
        planner_max_tokens: Limit of the planner's answer in tokens.
        executor_max_tokens: Limit of each of the executor's answers in tokens.
        caller_instructions: Whether the executor gets the caller's instructions.
        caller_tools: Whether a request with tools is refused or answered with a warning.
        approval: ``always`` stops at the plan; ``over_cost`` does when it may cost more than
            ``approval_over_usd``.
        approval_over_usd: High estimate in US dollars above which a plan waits.
        approval_by_text: Whether a user's text that is exactly ``approve <plan id>`` counts.
        allow_caller_plans: Whether callers may bring plans though ``approval`` is ``always``.
        plan_store: Where plans wait.
        plan_capacity: Most plans kept at once.
        plan_ttl_s: Seconds after which a plan that waits expires.
        max_steps: Most steps of a plan; one with more is refused.
        max_tool_rounds: Most answers of one step that call tools.
        max_tool_output_chars: Longer outputs of tools are cut.
        planner_timeout_s: Seconds for the plan.
        step_timeout_s: Seconds for one step with its tools.
        run_timeout_s: Seconds for all steps.
        on_step_error: Whether the steps after a failed one run.
        max_replans: Most plans for a rest, in ``replan``.
        replan_approval: Whether such a plan waits again, or the first approval covers it.
        answer: ``last_step`` answers with the text of the last step only.
        progress_events: Whether streams carry the events of a run as comments.
        keepalive_s: Seconds of silence after which a stream carries a ping.
        estimate_output_tokens: Assumed length of an answer of the executor in tokens.
        max_cost_usd: High estimate in US dollars above which nothing runs.
    """

    planner_target: TargetName
    executor_target: TargetName
    tools: list[ToolName] = Field(default=[])
    query_tool: str | None = None
    planner_prompt: Prompt | None = None
    executor_prompt: Prompt | None = None
    mode: Mode = "plan_then_execute"
    planner_sees: Literal["request", "conversation"] = "request"
    planner_output: Literal["strict", "lenient"] = "strict"
    planner_retries: int = Field(default=0, ge=0, le=2)
    planner_max_tokens: Tokens = 4096
    executor_max_tokens: Tokens = 4096
    caller_instructions: Literal["drop", "executor"] = "drop"
    caller_tools: Literal["reject", "ignore"] = "reject"
    approval: Literal["none", "always", "over_cost"] = "none"
    approval_over_usd: Dollars | None = Field(default=None, validate_default=True)
    approval_by_text: bool = False
    allow_caller_plans: bool = False
    plan_store: PlanStoreName = "memory"
    plan_capacity: int = Field(default=4096, ge=1)
    plan_ttl_s: float = Field(default=3600, gt=0, allow_inf_nan=False)
    max_steps: int = Field(default=12, ge=1, le=1000)
    max_tool_rounds: int = Field(default=8, ge=1, le=1000)
    max_tool_output_chars: int = Field(default=20_000, ge=100)
    planner_timeout_s: Seconds = 120
    step_timeout_s: Seconds = 120
    run_timeout_s: Seconds = 900
    on_step_error: Literal["stop", "continue"] = "stop"
    max_replans: int = Field(default=2, ge=1, le=100)
    replan_approval: Literal["again", "inherit"] = "again"
    answer: Literal["steps", "last_step"] = "steps"
    progress_events: bool = False
    keepalive_s: Seconds = 10
    estimate_output_tokens: Tokens = 300
    max_cost_usd: Dollars | None = None

    @property
    def hinted_tool(self) -> str | None:
        """The tool that a step with a query is told to use, ``None`` when none is known."""
        if self.query_tool is not None:
            return self.query_tool
        return self.tools[0] if len(self.tools) == 1 else None

    @field_validator("tools")
    @classmethod
    def _listed_once(cls, names: list[str]) -> list[str]:
        for name in names:
            if names.count(name) > 1:
                msg = f"the tool `{name}` is listed twice"
                raise OptionError(msg, fix="list it once")
        return names

    @field_validator("query_tool")
    @classmethod
    def _is_offered(cls, name: str | None, info: ValidationInfo) -> str | None:
        tools = info.data.get("tools")
        if name is not None and tools is not None and name not in tools:
            msg = f"`{name}` is not among the `tools` of this route"
            near = get_close_matches(name, tools, n=1)
            fix = f"did you mean `{near[0]}`?" if near else "add it to `tools`, or name one of them"
            raise OptionError(msg, fix=fix)
        return name

    @field_validator("approval_over_usd")
    @classmethod
    def _goes_with_over_cost(cls, limit: float | None, info: ValidationInfo) -> float | None:
        approval = info.data.get("approval")
        if approval == "over_cost" and limit is None:
            msg = 'missing key `approval_over_usd`, which `approval = "over_cost"` needs'
            raise OptionError(msg, fix="add `approval_over_usd = ...`, in US dollars", code="SY105")
        if approval in ("none", "always") and limit is not None:
            msg = f'`approval_over_usd` has no meaning with `approval = "{approval}"`'
            raise OptionError(msg, fix='write `approval = "over_cost"`, or remove the key')
        return limit
