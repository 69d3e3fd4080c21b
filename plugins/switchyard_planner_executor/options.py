"""The keys of a ``planner_executor`` route, its modes, and what a policy check says about them."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from switchyard_core import (
    Finding,
    LintRule,
    OptionError,
    Options,
    PlanStoreName,
    Policy,
    Prompt,
    SwitchyardError,
    TargetName,
    ToolName,
)

__all__ = ["LINT_RULES", "MODES", "PlannerExecutorOptions", "UnknownModeError", "get_mode"]

#: The modes, the default first.
MODES = ("plan_then_execute", "replan")
#: Reserved names, and what they stand for elsewhere.
_RESERVED = {"magentic": "orchestration with a task ledger, stall counting and several workers"}


# --- modes ---------------------------------------------------------------------------------------


class UnknownModeError(SwitchyardError, ValueError):
    """There is no mode called ``name``; the message lists the modes."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        self.message = message
        super().__init__(message)


def get_mode(name: str | None) -> str:
    """Return a mode by its name; ``None`` and ``""`` give the default."""
    if name in (None, ""):
        return MODES[0]
    if name in MODES:
        return str(name)
    shown = str(name)[:200]
    near = get_close_matches(shown, MODES, n=1)
    guess = f"; did you mean `{near[0]}`?" if near else ""
    what = _reserved(shown) or f"there is no mode `{shown}`"
    raise UnknownModeError(str(name), f"{what}; modes: {', '.join(MODES)}{guess}")


def _reserved(name: str) -> str:
    """Return what a reserved name is reserved for, ``""`` for any other name."""
    meaning = _RESERVED.get(name)
    return f"the mode `{name}` is reserved for {meaning}, and is not implemented" if meaning else ""


def _not_reserved(value: Any) -> Any:
    """Refuse blank and reserved names; the type of the option refuses the others."""
    if isinstance(value, str) and not value.strip():
        fix = f'remove the key for "{MODES[0]}", or write a mode'
        raise OptionError("must not be blank", fix=fix, code="SY108")
    if isinstance(value, str) and _reserved(value):
        fix = '"replan" plans again after a failed step; or remove the key'
        raise OptionError(f"{_reserved(value)}; modes: {', '.join(MODES)}", fix=fix, code="SY315")
    return value


# --- options -------------------------------------------------------------------------------------

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
        planner_output: ``lenient`` takes the plan out of the answer's only code fence.
        planner_retries: How often an unusable plan is sent back, 0 to 2.
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
        plan_capacity: Maximum number of plans kept at once.
        plan_ttl_s: Seconds after which a waiting plan expires.
        max_steps: Maximum number of steps of a plan; a longer one is refused.
        max_tool_rounds: Maximum number of answers of one step that call tools.
        max_tool_output_chars: Longer outputs of tools are cut.
        planner_timeout_s: Seconds for the plan.
        step_timeout_s: Seconds for one step with its tools.
        run_timeout_s: Seconds for all steps.
        on_step_error: Whether the steps after a failed one run.
        max_replans: Maximum number of plans for the rest, in ``replan``.
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
        """The tool that a step with a query is told to use, ``None`` when there is none."""
        if self.query_tool is not None:
            return self.query_tool
        return self.tools[0] if len(self.tools) == 1 else None

    @property
    def searchable(self) -> bool:
        """Whether a step may have a query."""
        return self.hinted_tool is not None

    @property
    def waits_again(self) -> bool:
        """Whether a new plan for the rest may have to wait for approval."""
        return self.mode == "replan" and self.approval != "none" and self.replan_approval == "again"

    @field_validator("tools")
    @classmethod
    def _listed_once(cls, names: list[str]) -> list[str]:
        for name in names:
            if names.count(name) > 1:
                raise OptionError(f"the tool `{name}` is listed twice", fix="list it once")
        return names

    @field_validator("query_tool")
    @classmethod
    def _is_offered(cls, name: str | None, info: ValidationInfo) -> str | None:
        tools = info.data.get("tools")
        if name is not None and tools is not None and name not in tools:
            near = get_close_matches(name, tools, n=1)
            fix = f"did you mean `{near[0]}`?" if near else "add it to `tools`, or name one of them"
            raise OptionError(f"`{name}` is not among the `tools` of this route", fix=fix)
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


# --- the policy check ----------------------------------------------------------------------------


def _routes(policy: Policy) -> Iterator[tuple[str, PlannerExecutorOptions]]:
    for name, route in policy.routes.items():
        if isinstance(route.options, PlannerExecutorOptions):
            yield name, route.options


def _unguarded_side_effects(policy: Policy) -> Iterator[Finding]:
    """Yield tools that change something on a route where no person has seen what will run.

    An approved plan that never changes cannot be made to do more by what a tool returns.
    Without approval it is unseen; with ``replan`` the next plan is made after tool results were
    read.
    """
    for route, options in _routes(policy):
        why, fix = "", 'write `approval = "always"`'
        if options.mode == "replan":
            why = 'with `mode = "replan"`, where what a tool returns can add steps'
            fix = 'use `mode = "plan_then_execute"`, or leave the tool out'
        elif options.approval != "always":
            why = f'with `approval = "{options.approval}"`, where plans run that nobody has seen'
        for index, name in enumerate(options.tools if why else ()):
            tool = policy.tools.get(name)
            if tool is not None and tool.side_effects:
                yield policy.finding(
                    "PLEX001",
                    f"the tool `{name}` has side effects and is offered {why}",
                    ("routes", route, "tools", index),
                    fix=fix,
                )


def _without_effect(policy: Policy) -> Iterator[Finding]:
    """Yield keys that are set and change nothing, because of the value of another key."""
    replan, approval = '`mode = "replan"`', 'an `approval` other than "none"'
    for route, options in _routes(policy):
        steady, free = options.mode != "replan", options.approval == "none"
        for key, idle, needs in (
            ("max_replans", steady, replan),
            ("replan_approval", steady, replan),
            ("replan_approval", free and not steady, approval),
            ("allow_caller_plans", options.approval != "always", '`approval = "always"`'),
        ):
            if idle and key in options.model_fields_set:
                yield policy.finding(
                    "PLEX002",
                    f"`{key}` has no effect without {needs}",
                    ("routes", route, key),
                    fix=f"remove `{key}`, or write {needs}",
                )


def _unpriced_targets(policy: Policy) -> Iterator[Finding]:
    """Yield executors without a price on routes that compare what a plan may cost with a limit."""
    for route, options in _routes(policy):
        key = "approval" if options.approval == "over_cost" else "max_cost_usd"
        target = policy.targets[options.executor_target]
        limited = key == "approval" or options.max_cost_usd is not None
        if limited and target.id not in policy.prices:
            yield policy.finding(
                "SY316",
                f"`{key}` compares costs, and the target `{target.name}` has no price",
                ("routes", route, "executor_target"),
                severity="error",
                fix=f'add `[prices."{target.id}"]` with `as_of`, `input` and `output`, '
                f"or remove `{key}`",
            )


#: The rules of this plugin. The error has its own code, so that no comment in a policy can
#: switch it off.
LINT_RULES = (
    LintRule(
        code="PLEX001",
        name="unguarded-side-effects",
        check=_unguarded_side_effects,
        summary="finds tools with side effects on routes without a fixed, approved plan",
    ),
    LintRule(
        code="PLEX002",
        name="setting-without-effect",
        check=_without_effect,
        summary="finds keys that another key of the route makes idle",
    ),
    LintRule(
        code="PLEX003",
        name="unpriced-target",
        check=_unpriced_targets,
        summary="finds executors without a price on routes that compare costs (SY316)",
        severity="error",
    ),
)
