"""An agent of pydantic-ai."""

from __future__ import annotations

import sys

import tools
from pydantic_ai import Agent

provider = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
agent = Agent(
    f"{provider[sys.argv[1]]}:plan-execute",
    instructions="Fix what is asked.",
    tools=list(tools.TOOLS.values()),
)
print(agent.run_sync(sys.argv[2]).output)
