"""A tiny route type that answers by itself: it runs a tool and keeps a plan, and asks nobody."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from switchyard_core import (
    Decision,
    Options,
    PlanStoreName,
    Reason,
    RouteType,
    TargetName,
    ToolName,
    hookimpl,
)
from switchyard_core.answering import (
    Finished,
    RequestedCall,
    SectionFinished,
    SectionStarted,
    TextDelta,
)


class ToolRouteOptions(Options):
    target: TargetName
    other_target: TargetName | None = None
    tools: tuple[ToolName, ...] = ()
    plan_store: PlanStoreName = "memory"
    plan_capacity: Annotated[int, Field(ge=1)] = 8
    plan_ttl_s: Annotated[float, Field(gt=0)] = 60.0


class ToolRouter:
    def __init__(self, options: ToolRouteOptions) -> None:
        self.options = options

    async def route(self, request, context):
        return Decision(target=self.options.target, reason=Reason(code="asks", detail="asks it"))

    async def answer(self, request, context):
        calls = [RequestedCall(id="c", name=name, arguments="{}") for name in self.options.tools]
        yield SectionStarted(kind="answer")
        for output in await context.tools.run(calls):
            yield TextDelta(output.text)
        yield SectionFinished()
        yield Finished("completed")


class ToolRoutePlugin:
    """Gives the route type, and tools if wanted."""

    def __init__(self, *tools) -> None:
        self.tools = tools

    @hookimpl
    def switchyard_route_types(self):
        return [
            RouteType(
                name="tool_route",
                options=ToolRouteOptions,
                router=ToolRouter,
                summary="runs tools",
                kind="answers",
            )
        ]

    @hookimpl
    def switchyard_tools(self):
        return self.tools


#: Two targets that speak different wire formats, and a route of the type.
POLICY = """\
schema_version = 1

[llm_clients.chat]
format = "openai_chat"
base_url = "https://chat.test/v1"

[llm_clients.messages]
format = "anthropic_messages"
base_url = "https://messages.test/v1"

[targets.one]
id = "provider/one"
llm_client = "chat"

[targets.two]
id = "provider/two"
llm_client = "messages"

[prices."provider/one"]
as_of = 2026-01-31
input = 1.0
output = 2.0

[routes.main]
id = "main"
type = "tool_route"
target = "one"
other_target = "two"
"""
