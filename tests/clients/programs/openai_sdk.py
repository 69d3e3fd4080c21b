"""A loop over the openai SDK: streamed Chat Completions, or Responses."""

from __future__ import annotations

import sys

from openai import OpenAI
from tools import SCHEMAS, TOOLS, call

client = OpenAI()
MODEL = "plan-execute"


def chat(prompt: str) -> str:
    messages = [
        {"role": "system", "content": "Fix what is asked."},
        {"role": "user", "content": prompt},
    ]
    tools = [
        {
            "type": "function",
            "function": {"name": n, "description": TOOLS[n].__doc__, "parameters": s},
        }
        for n, s in SCHEMAS.items()
    ]
    while True:
        with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
            message = stream.get_final_completion().choices[0].message
        calls = message.tool_calls or []
        if not calls:
            return message.content
        asked = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": c.function.name, "arguments": c.function.arguments},
            }
            for c in calls
        ]
        messages.append({"role": "assistant", "content": message.content, "tool_calls": asked})
        messages += [
            {
                "role": "tool",
                "tool_call_id": c.id,
                "content": call(c.function.name, c.function.arguments),
            }
            for c in calls
        ]


def responses(prompt: str) -> str:
    history = [{"role": "user", "content": prompt}]
    tools = [
        {
            "type": "function",
            "name": n,
            "description": TOOLS[n].__doc__,
            "parameters": s,
            "strict": True,
        }
        for n, s in SCHEMAS.items()
    ]
    while True:
        with client.responses.stream(
            model=MODEL,
            instructions="Fix what is asked.",
            input=history,
            tools=tools,
            store=False,
            include=["reasoning.encrypted_content"],
        ) as stream:
            answer = stream.get_final_response()
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        history += [item.to_dict() for item in answer.output]
        history += [
            {
                "type": "function_call_output",
                "call_id": c.call_id,
                "output": call(c.name, c.arguments),
            }
            for c in calls
        ]


print({"chat": chat, "responses": responses}[sys.argv[1]](sys.argv[2]))
