"""An agent of pydantic-ai that continues its session where there is one."""

from __future__ import annotations

import sys
from pathlib import Path

import tools
from pydantic_ai import Agent, ModelMessagesTypeAdapter

provider = {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}
agent = Agent(
    f"{provider[sys.argv[1]]}:plan-execute",
    instructions="Fix what is asked.",
    tools=list(tools.TOOLS.values()),
)
kept = Path.home() / "session.json"
before = ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() else None
result = agent.run_sync(sys.argv[2], message_history=before)
kept.write_bytes(result.all_messages_json())
print(result.output)
