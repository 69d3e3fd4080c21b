"""An agent of the OpenAI Agents SDK."""

from __future__ import annotations

import sys

import tools
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

set_tracing_disabled(disabled=True)
kind = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[sys.argv[1]]
agent = Agent(
    name="fixer",
    instructions="Fix what is asked.",
    model=kind(model="plan-execute", openai_client=AsyncOpenAI()),
    model_settings=ModelSettings(store=False),
    tools=[function_tool(tool) for tool in tools.TOOLS.values()],
)
print(Runner.run_sync(agent, sys.argv[2]).final_output)
