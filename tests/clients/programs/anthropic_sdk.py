"""A loop over the anthropic SDK, streamed."""

from __future__ import annotations

import sys

from anthropic import Anthropic
from tools import SCHEMAS, TOOLS, call

client = Anthropic()
messages = [{"role": "user", "content": sys.argv[2]}]
tools = [
    {"name": n, "description": TOOLS[n].__doc__, "input_schema": s} for n, s in SCHEMAS.items()
]
while True:
    with client.messages.stream(
        model="plan-execute",
        max_tokens=8000,
        system="Fix what is asked.",
        messages=messages,
        tools=tools,
    ) as stream:
        answer = stream.get_final_message()
    calls = [block for block in answer.content if block.type == "tool_use"]
    if not calls:
        break
    messages.append({"role": "assistant", "content": [b.to_dict() for b in answer.content]})
    results = [
        {"type": "tool_result", "tool_use_id": c.id, "content": call(c.name, c.input)}
        for c in calls
    ]
    messages.append({"role": "user", "content": results})
print("".join(block.text for block in answer.content if block.type == "text"))
