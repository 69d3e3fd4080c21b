"""Writes a story as a body of OpenAI Responses."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.testing.story import Call, Item, Said, Story, Thought, Turn, Words

__all__ = ["responses_body"]


def responses_body(story: Story) -> dict[str, Any]:
    """Return ``instructions``, ``input``, ``tools`` and ``include`` of a story.

    Raises:
        ValueError: The story has a call that the format cannot express.
    """
    body: dict[str, Any] = {}
    items: list[Any] = []
    tools = _tools(story)
    if story.lite and tools:
        items.append({"type": "additional_tools", "role": "developer", "tools": tools})
    thoughts = 0
    for step in story.steps:
        if isinstance(step, Item):
            items.append(step.value)
        elif isinstance(step, Turn):
            for part in step.parts:
                if isinstance(part, Thought):
                    thoughts += 1
                    items.append(_reasoning(part, thoughts))
                else:
                    items.append(_made(part, len(items)))
            items += [_output(call) for call in step.calls if call.answered and _has_output(call)]
        elif step.role == "system" and "instructions" not in body:
            body["instructions"] = step.text
        else:
            items.append(_message(step))
    body["input"] = items
    if tools and not story.lite:
        body["tools"] = tools
    if any(isinstance(item, dict) and item.get("encrypted_content") for item in items):
        body["include"] = ["reasoning.encrypted_content"]
        body["store"] = False
    return body


def _message(words: Words) -> dict[str, Any]:
    content = [{"type": "input_text", "text": words.text}]
    return {"type": "message", "role": words.role, "content": content}


def _reasoning(thought: Thought, number: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": thought.text}] if thought.text else []
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{number:04}", "summary": summary}
    if thought.encrypted is not None:
        item["encrypted_content"] = thought.encrypted
    return item


def _made(part: Said | Call, number: int) -> dict[str, Any]:
    if isinstance(part, Call):
        return _call(part)
    return {
        "type": "message",
        "id": f"msg_{number:04}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": part.text, "annotations": []}],
    }


def _call(call: Call) -> dict[str, Any]:
    tail = call.id.removeprefix("call_")
    if call.shape == "function":
        item = {"type": "function_call", "id": f"fc_{tail}", "call_id": call.id}
        if call.namespace is not None:
            item["namespace"] = call.namespace
        return {**item, "name": call.name, "arguments": _text(call), "status": "completed"}
    if call.shape == "custom":
        item = {"type": "custom_tool_call", "id": f"ctc_{tail}", "call_id": call.id}
        return {**item, "name": call.name, "input": _text(call), "status": "completed"}
    if call.shape == "mcp":
        item = {"type": "mcp_call", "id": f"mcp_{tail}", "server_label": call.server}
        return {**item, "name": call.name, "arguments": _text(call), "output": call.output}
    if call.shape == "legacy":
        msg = f"openai_responses has no `legacy`: call `{call.name}` cannot be written"
        raise ValueError(msg)
    key = "operation" if call.shape == "apply_patch_call" else "action"
    short = {"local_shell_call": "lsh", "shell_call": "sh", "apply_patch_call": "apc"}[call.shape]
    return {
        "type": call.shape,
        "id": f"{short}_{tail}",
        "call_id": call.id,
        "status": "completed",
        key: call.arguments,
    }


def _text(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _has_output(call: Call) -> bool:
    # The result of an MCP call stands in the call.
    return call.shape != "mcp"


def _output(call: Call) -> dict[str, Any]:
    if call.shape == "local_shell_call":
        # The API refers to this call by the id of its item.
        number = call.id.removeprefix("call_")
        return {"type": "local_shell_call_output", "id": f"lsh_{number}", "output": call.output}
    head = {"call_id": call.id}
    if call.shape == "shell_call":
        outcome = {"type": "exit", "exit_code": int(call.fails)}
        chunk = {"stdout": call.output, "stderr": "", "outcome": outcome}
        return {"type": "shell_call_output", **head, "output": [chunk]}
    if call.shape == "apply_patch_call":
        status = "failed" if call.fails else "completed"
        return {"type": "apply_patch_call_output", **head, "status": status, "output": call.output}
    kind = "custom_tool_call_output" if call.shape == "custom" else "function_call_output"
    return {"type": kind, **head, "output": call.output}


def _tools(story: Story) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    spaces: dict[str, list[dict[str, Any]]] = {}
    for call in story.tools():
        if call.namespace is None:
            tools.append(_tool(call))
            continue
        if call.namespace not in spaces:
            inner = spaces[call.namespace] = []
            tools.append({"type": "namespace", "name": call.namespace, "tools": inner})
        spaces[call.namespace].append(_tool(call))
    return tools


def _tool(call: Call) -> dict[str, Any]:
    if call.shape == "custom":
        return {"type": "custom", "name": call.name}
    if call.shape == "mcp":
        url = f"https://{call.server}.example/mcp"
        return {"type": "mcp", "server_label": call.server, "server_url": url}
    if call.shape != "function":
        return {"type": call.shape.removesuffix("_call")}
    parameters = {"type": "object", "properties": {}}
    return {"type": "function", "name": call.name, "parameters": parameters, "strict": False}
