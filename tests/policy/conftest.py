"""A registry with one small route type, and a short way to check a policy text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from switchyard_core.declarations import (
    LabelName,
    LatchOptions,
    LatchStoreType,
    MutationPack,
    Options,
    PlanStoreName,
    PlanStoreType,
    Prompt,
    Reference,
    RewriteType,
    RouteType,
    RuleSetName,
    TargetName,
    Tool,
    ToolName,
)
from switchyard_core.errors import Finding
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, check_policy_text
from switchyard_core.stores import MemoryLatchStore, MemoryPlanStore

PACK = """
[[rules]]
name = "edits"
label = "file_edit"
match = ["edit"]
"""


class TwoSides(LatchOptions):
    """Options shaped like those of the route type of the specification."""

    capable_target: TargetName
    efficient_target: TargetName
    planning_prompt: Prompt | None = None
    handoff_on: tuple[LabelName, ...] = ("file_edit",)
    mutation_rules: list[RuleSetName] = Field(default_factory=lambda: ["coding_agents"])
    on_missing_history: Literal["warn", "reject"] = "warn"


class Choice(Options):
    target: TargetName
    weight: float = 1.0


class Spread(Options):
    """Options that name targets in nested tables, in table keys and in unions."""

    choices: list[Choice] = Field(default_factory=list)
    weights: dict[TargetName, int] = Field(default_factory=dict)
    fallback: Annotated[str | None, Reference("target")] = None
    either: Choice | dict[str, TargetName] | None = None


class Open(Options):
    text: str | None = None


class Talking(Options):
    """Options of a route type that answers by itself."""

    target: TargetName | None = None
    other: TargetName | None = None
    tools: tuple[ToolName, ...] = ()
    plan_store: PlanStoreName = "memory"
    mutation_rules: tuple[RuleSetName, ...] = ()


def _nothing(*_: object) -> tuple[str, ...]:
    return ()


class Nothing(Options):
    """Arguments of a tool."""


class Router:
    """Built, and never asked in these tests."""

    def __init__(self, options: BaseModel) -> None:
        self.options = options

    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Talker(Router):
    """Answers by itself."""

    async def answer(self, request: object, context: object) -> AsyncIterator[object]:
        raise AssertionError
        yield


class Plugin:
    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [
            RouteType(name="plan_execute", options=TwoSides, router=Router, summary="two sides"),
            RouteType(name="spread", options=Spread, router=Router, summary="many targets"),
            RouteType(name="open", options=Open, router=Router, summary="no target"),
            RouteType(
                name="talker", options=Talking, router=Talker, summary="answers", kind="answers"
            ),
        ]

    @hookimpl
    def switchyard_mutation_packs(self) -> list[MutationPack]:
        return [MutationPack(name="coding_agents", text=PACK)]

    @hookimpl
    def switchyard_latch_stores(self) -> list[LatchStoreType]:
        return [LatchStoreType(name="memory", factory=MemoryLatchStore, summary="memory")]

    @hookimpl
    def switchyard_plan_stores(self) -> list[PlanStoreType]:
        return [PlanStoreType(name="memory", factory=MemoryPlanStore, summary="memory")]

    @hookimpl
    def switchyard_tools(self) -> list[Tool]:
        return [
            Tool(name=name, description="does it", parameters=Nothing, function=str)
            for name in ("search_products", "send_mail")
        ]

    @hookimpl
    def switchyard_rewrites(self) -> list[RewriteType]:
        return [
            RewriteType(name="remap_tool_ids", order=400, function=_nothing, summary="ids"),
            RewriteType(
                name="set_model", order=1300, function=_nothing, summary="", switchable=False
            ),
        ]


SPEC = """\
schema_version = 1

[llm_clients.provider]
format = "openai_responses"
base_url = "https://example.com/v1"
api_key_env = "OPENAI_API_KEY"

[targets.planner]
id = "provider/capable-model"
llm_client = "provider"

[targets.executor]
id = "provider/efficient-model"
llm_client = "provider"

[routes.plan_execute]
id = "switchyard/plan-execute"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""


@pytest.fixture(scope="session")
def registry() -> PluginRegistry:
    return PluginRegistry([("test_plugin", Plugin())])


@pytest.fixture(scope="session")
def installed() -> PluginRegistry:
    """What is installed here, read once."""
    return PluginRegistry.from_entry_points()


@pytest.fixture(scope="session")
def spec() -> str:
    """The policy of the specification of plan_execute."""
    return SPEC


Check = Callable[..., CheckResult]


@pytest.fixture
def check(registry: PluginRegistry) -> Check:
    def run(
        text: str | bytes, environ: Mapping[str, str] | None = None, **more: Any
    ) -> CheckResult:
        return check_policy_text(text, "p.toml", registry, environ=environ, **more)

    return run


@pytest.fixture
def places() -> Callable[[CheckResult], list[str]]:
    """Findings as ``line:column code path``."""

    def listed(result: CheckResult) -> list[str]:
        return [_place(finding) for finding in result.findings]

    return listed


def _place(finding: Finding) -> str:
    return f"{finding.line}:{finding.column} {finding.code} {finding.path}".rstrip()
