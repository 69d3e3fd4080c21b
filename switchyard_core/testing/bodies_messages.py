"""Writes a story as a body of Anthropic Messages."""

from __future__ import annotations

from typing import Any

from switchyard_core.testing.story import Call, Item, Said, Story, Thought, Turn, Words

__all__ = ["messages_body"]

#: The API requires a limit; any value serves a test.
MAX_TOKENS = 4096


def messages_body(story: Story) -> dict[str, Any]:
    """Return ``max_tokens``, ``system``, ``messages`` and ``tools`` of a story.

    Raises:
        ValueError: The story has a call that the format cannot express.
    """
    system = [_text(step) for step in story.steps if _instructs(step)]
    messages: list[Any] = []
    for step in story.steps:
        if isinstance(step, Item):
            messages.append(step.value)
        elif isinstance(step, Turn):
            _add(messages, "assistant", [block for part in step.parts for block in _blocks(part)])
            results = [_result(call) for call in step.calls if call.answered]
            _add(messages, "user", [block for block in results if block])
        elif step.role == "user":
            _add(messages, "user", [_text(step)])
    body: dict[str, Any] = {"max_tokens": MAX_TOKENS}
    if len(system) == 1 and "cache_control" not in system[0]:
        body["system"] = system[0]["text"]
    elif system:
        body["system"] = system
    body["messages"] = [_shortened(message) for message in messages]
    tools = [_tool(call) for call in story.tools() if call.shape != "mcp"]
    if tools:
        body["tools"] = tools
    servers = {call.server: None for call in story.calls if call.shape == "mcp"}
    if servers:
        body["mcp_servers"] = [
            {"type": "url", "name": name, "url": f"https://{name}.example/mcp"} for name in servers
        ]
    return body


def _instructs(step: object) -> bool:
    return isinstance(step, Words) and step.role != "user"


def _text(words: Any) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": words.text}
    if words.cached:
        block["cache_control"] = {"type": "ephemeral"}
    return block


def _add(messages: list[Any], role: str, blocks: list[dict[str, Any]]) -> None:
    """Add blocks to the last message if it has the same role: roles alternate."""
    if not blocks:
        return
    last = messages[-1] if messages else None
    if isinstance(last, dict) and last.get("role") == role and isinstance(last["content"], list):
        messages[-1] = {"role": role, "content": [*last["content"], *blocks]}
    else:
        messages.append({"role": role, "content": blocks})


def _shortened(message: Any) -> Any:
    """Write a message of one plain text as a string, as clients do."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list) and len(content) == 1 and set(content[0]) == {"type", "text"}:
        return {**message, "content": content[0]["text"]}
    return message


def _blocks(part: Said | Thought | Call) -> list[dict[str, Any]]:
    if isinstance(part, Said):
        return [{"type": "text", "text": part.text}]
    if isinstance(part, Thought):
        if not part.text and part.encrypted is not None:
            return [{"type": "redacted_thinking", "data": part.encrypted}]
        signature = part.encrypted if part.encrypted is not None else "c2lnbmF0dXJl"
        return [{"type": "thinking", "thinking": part.text, "signature": signature}]
    if part.shape == "mcp":
        head = {"type": "mcp_tool_use", "id": part.id, "name": part.name}
        use = {**head, "server_name": part.server, "input": _input(part)}
        # The server ran it: call and result stand in the same message.
        result = {
            "type": "mcp_tool_result",
            "tool_use_id": part.id,
            "is_error": part.fails,
            "content": [{"type": "text", "text": part.output}],
        }
        return [use, result] if part.answered else [use]
    if part.shape not in ("function", "custom") or part.namespace is not None:
        what = "a namespace" if part.namespace is not None else f"`{part.shape}`"
        msg = f"anthropic_messages has no {what}: call `{part.name}` cannot be written"
        raise ValueError(msg)
    return [{"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part)}]


def _input(call: Call) -> Any:
    # Arguments are an object here; text that is none is what a client makes of broken JSON.
    return {"input": call.arguments} if isinstance(call.arguments, str) else call.arguments


def _result(call: Call) -> dict[str, Any]:
    if call.shape == "mcp":
        return {}
    block = {"type": "tool_result", "tool_use_id": call.id, "content": call.output}
    return {**block, "is_error": True} if call.fails else block


def _tool(call: Call) -> dict[str, Any]:
    return {"name": call.name, "input_schema": {"type": "object", "properties": {}}}
