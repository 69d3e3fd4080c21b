"""Writes a story as a body of OpenAI Chat Completions."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.testing.story import Call, Item, Said, Story, Thought, Turn

__all__ = ["chat_body"]


def chat_body(story: Story) -> dict[str, Any]:
    """Return ``messages`` and ``tools`` of a story.

    Raises:
        ValueError: The story has a call that the format cannot express.
    """
    messages: list[Any] = []
    for step in story.steps:
        if isinstance(step, Item):
            messages.append(step.value)
        elif isinstance(step, Turn):
            messages.append(_assistant(step))
            messages += [_result(call) for call in step.calls if call.answered]
        else:
            messages.append({"role": step.role, "content": step.text})
    body: dict[str, Any] = {"messages": messages}
    for key, shapes in (("tools", {"function", "custom"}), ("functions", {"legacy"})):
        tools = [_tool(call) for call in story.tools() if call.shape in shapes]
        if tools:
            body[key] = tools
    return body


def _assistant(turn: Turn) -> dict[str, Any]:
    texts = [part.text for part in turn.parts if isinstance(part, Said)]
    thoughts = [part for part in turn.parts if isinstance(part, Thought)]
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thought.text for thought in thoughts)
    details = [
        {"type": "reasoning.encrypted", "data": thought.encrypted}
        for thought in thoughts
        if thought.encrypted is not None
    ]
    if details:
        message["reasoning_details"] = details
    for call in turn.calls:
        if call.shape == "legacy":
            message["function_call"] = {"name": call.name, "arguments": _arguments(call)}
        else:
            message.setdefault("tool_calls", []).append(_call(call))
    return message


def _call(call: Call) -> dict[str, Any]:
    if call.shape == "custom":
        text = call.arguments if isinstance(call.arguments, str) else _arguments(call)
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": text}}
    if call.shape != "function" or call.namespace is not None:
        what = "a namespace" if call.namespace is not None else f"`{call.shape}`"
        msg = f"openai_chat has no {what}: call `{call.name}` cannot be written"
        raise ValueError(msg)
    function = {"name": call.name, "arguments": _arguments(call)}
    return {"id": call.id, "type": "function", "function": function}


def _arguments(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _result(call: Call) -> dict[str, Any]:
    if call.shape == "legacy":
        return {"role": "function", "name": call.name, "content": call.output}
    return {"role": "tool", "tool_call_id": call.id, "content": call.output}


def _tool(call: Call) -> dict[str, Any]:
    described = {"name": call.name, "parameters": {"type": "object", "properties": {}}}
    if call.shape == "legacy":
        return described
    if call.shape == "custom":
        return {"type": "custom", "custom": {"name": call.name}}
    return {"type": "function", "function": described}
