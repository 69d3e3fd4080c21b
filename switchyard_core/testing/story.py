"""A conversation as it is told, and the body that it is in each wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from switchyard_core.declarations import WireFormat

__all__ = ["Call", "CallShape", "Item", "Said", "Story", "Thought", "Words", "body_of", "call"]

#: The form of a call on the wire. ``function`` exists everywhere, ``custom`` on Chat and
#: Responses (elsewhere it is a function with one argument ``input``), ``legacy`` only on Chat,
#: ``mcp`` on Responses and Messages, the other three only on Responses.
CallShape = Literal[
    "function", "custom", "legacy", "mcp", "local_shell_call", "shell_call", "apply_patch_call"
]
#: Messages demands a limit of output tokens; any value serves a test.
_MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of the assistant, and what came of it."""

    name: str  # Tool name; not used by the built-in shapes
    #: Arguments of a function; a string is sent as it is (broken JSON, for example), and for
    #: `custom` it is the free text. For the built-in shapes the `action` or `operation`
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    result: str | None = None  # Text of the result, `None` for a default
    fails: bool = False  # Whether the result says that the call failed
    answered: bool = True  # Whether there is a result at all
    namespace: str | None = None  # Namespace of the tool, on Responses
    server: str = ""  # MCP server of the tool
    shape: CallShape = "function"  # Its form on the wire
    id: str = ""  # Call id; made up from the number of the call when empty

    @property
    def output(self) -> str:
        """Text of the result."""
        if self.result is not None:
            return self.result
        return "error: it did not work" if self.fails else "ok"

    @property
    def text(self) -> str:
        """The arguments as text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


def call(name: str, /, *, fails: bool = False, answered: bool = True, **arguments: Any) -> Call:
    """Return a function call for :meth:`~.ConversationBuilder.parallel`."""
    return Call(name=name, arguments=arguments, fails=fails, answered=answered)


@dataclass(frozen=True, slots=True)
class Said:
    """Text of the assistant."""

    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning of the assistant: readable text, and its opaque form if there is one."""

    text: str
    encrypted: str | None = None


@dataclass(frozen=True, slots=True)
class Words:
    """Text of the user, or instructions; ``cached`` puts a cache mark on it (Messages)."""

    role: Literal["system", "developer", "user"]
    text: str
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An item of the wire format itself, put into the history as it is."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A whole conversation."""

    wire_format: WireFormat  # Wire format of the body
    #: In order; a tuple is what the assistant made at once, whose results follow it
    steps: tuple[Words | Item | tuple[Said | Thought | Call, ...], ...] = ()
    offered: tuple[str, ...] = ()  # Names of tools that are offered though nobody calls them
    #: Whether the tools are in the first item of the history (Responses)
    tools_in_history: bool = False

    @property
    def made_calls(self) -> tuple[Call, ...]:
        """Every call, in order."""
        turns = (step for step in self.steps if isinstance(step, tuple))
        return tuple(call for turn in turns for call in _calls(turn))

    def offered_tools(self) -> Iterator[Call]:
        """Yield one call per tool that must be offered: those called, then the others."""
        seen: set[tuple[str, str | None, str]] = set()
        for each in (*self.made_calls, *(Call(name=name) for name in self.offered)):
            key = (each.name, each.namespace, each.shape)
            if key not in seen:
                seen.add(key)
                yield each


def body_of(story: Story) -> dict[str, Any]:
    """Return the body of a story without its model; ValueError if the format lacks a call."""
    return _WRITERS[story.wire_format](story)


def _calls(turn: tuple[Said | Thought | Call, ...]) -> list[Call]:
    return [part for part in turn if isinstance(part, Call)]


def _no_parameters() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def _not_there(wire_format: WireFormat, call: Call) -> ValueError:
    what = "namespaces" if call.shape in ("function", "custom") else f"`{call.shape}`"
    return ValueError(f"{wire_format} has no {what}: call `{call.name}` cannot be written")


# --- Chat ------------------------------------------------------------------------------------


def _chat_body(story: Story) -> dict[str, Any]:
    messages: list[Any] = []
    for step in story.steps:
        if isinstance(step, Item):
            messages.append(step.value)
        elif isinstance(step, Words):
            messages.append({"role": step.role, "content": step.text})
        else:
            messages.append(_chat_message(step))
            messages += [_chat_result(call) for call in _calls(step) if call.answered]
    body: dict[str, Any] = {"messages": messages}
    for key, shapes in (("tools", {"function", "custom"}), ("functions", {"legacy"})):
        tools = [_chat_tool(call) for call in story.offered_tools() if call.shape in shapes]
        if tools:
            body[key] = tools
    return body


def _chat_message(turn: tuple[Said | Thought | Call, ...]) -> dict[str, Any]:
    texts = [part.text for part in turn if isinstance(part, Said)]
    thoughts = [part for part in turn if isinstance(part, Thought)]
    message: dict[str, Any] = {"role": "assistant", "content": "\n\n".join(texts) or None}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thought.text for thought in thoughts)
    opaque = [thought.encrypted for thought in thoughts if thought.encrypted is not None]
    if opaque:
        details = [{"type": "reasoning.encrypted", "data": data} for data in opaque]
        message["reasoning_details"] = details
    for call in _calls(turn):
        if call.shape == "legacy":
            message["function_call"] = {"name": call.name, "arguments": call.text}
        else:
            message.setdefault("tool_calls", []).append(_chat_call(call))
    return message


def _chat_call(call: Call) -> dict[str, Any]:
    if call.shape == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    if call.shape != "function" or call.namespace is not None:
        raise _not_there("openai_chat", call)
    function = {"name": call.name, "arguments": call.text}
    return {"id": call.id, "type": "function", "function": function}


def _chat_result(call: Call) -> dict[str, Any]:
    if call.shape == "legacy":
        return {"role": "function", "name": call.name, "content": call.output}
    return {"role": "tool", "tool_call_id": call.id, "content": call.output}


def _chat_tool(call: Call) -> dict[str, Any]:
    if call.shape == "custom":
        return {"type": "custom", "custom": {"name": call.name}}
    described = {"name": call.name, "parameters": _no_parameters()}
    return described if call.shape == "legacy" else {"type": "function", "function": described}


# --- Responses -------------------------------------------------------------------------------

#: Beginning of the id of an item, by the shape of the call that it is.
_ITEM_IDS: Mapping[str, str] = {
    "function": "fc",
    "custom": "ctc",
    "mcp": "mcp",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
}


def _responses_body(story: Story) -> dict[str, Any]:
    body: dict[str, Any] = {}
    items: list[Any] = []
    tools = _responses_tools(story)
    if story.tools_in_history and tools:
        items.append({"type": "additional_tools", "role": "developer", "tools": tools})
    thoughts = 0
    for step in story.steps:
        if isinstance(step, Item):
            items.append(step.value)
        elif isinstance(step, tuple):
            for part in step:
                thoughts += isinstance(part, Thought)
                items.append(_responses_item(part, len(items), thoughts))
            # The result of an MCP call is in the call.
            answered = (call for call in _calls(step) if call.answered and call.shape != "mcp")
            items += map(_responses_result, answered)
        elif step.role == "system" and "instructions" not in body:
            body["instructions"] = step.text
        else:
            content = [{"type": "input_text", "text": step.text}]
            items.append({"type": "message", "role": step.role, "content": content})
    body["input"] = items
    if tools and not story.tools_in_history:
        body["tools"] = tools
    if any(isinstance(item, dict) and item.get("encrypted_content") for item in items):
        body |= {"include": ["reasoning.encrypted_content"], "store": False}
    return body


def _responses_item(part: Said | Thought | Call, number: int, thoughts: int) -> dict[str, Any]:
    if isinstance(part, Call):
        return _responses_call(part)
    if isinstance(part, Said):
        content = [{"type": "output_text", "text": part.text, "annotations": []}]
        head = {"type": "message", "id": f"msg_{number:04}", "role": "assistant"}
        return {**head, "status": "completed", "content": content}
    summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    item = {"type": "reasoning", "id": f"rs_{thoughts:04}", "summary": summary}
    return item if part.encrypted is None else {**item, "encrypted_content": part.encrypted}


def _responses_call(call: Call) -> dict[str, Any]:
    if call.shape == "legacy":
        raise _not_there("openai_responses", call)
    item_id = f"{_ITEM_IDS[call.shape]}_{call.id.removeprefix('call_')}"
    if call.shape == "mcp":
        head = {"type": "mcp_call", "id": item_id, "server_label": call.server}
        return {**head, "name": call.name, "arguments": call.text, "output": call.output}
    if call.shape in ("function", "custom"):
        function = call.shape == "function"
        kind, key = ("function_call", "arguments") if function else ("custom_tool_call", "input")
        head = {"type": kind, "id": item_id, "call_id": call.id}
        if function and call.namespace is not None:
            head["namespace"] = call.namespace
        return {**head, "name": call.name, key: call.text, "status": "completed"}
    key = "operation" if call.shape == "apply_patch_call" else "action"
    head = {"type": call.shape, "id": item_id, "call_id": call.id}
    return {**head, "status": "completed", key: call.arguments}


def _responses_result(call: Call) -> dict[str, Any]:
    kind = f"{call.shape}_output"
    if call.shape == "local_shell_call":
        # The API refers to this call by the id of its item.
        return {"type": kind, "id": f"lsh_{call.id.removeprefix('call_')}", "output": call.output}
    if call.shape == "shell_call":
        outcome = {"type": "exit", "exit_code": int(call.fails)}
        chunk = {"stdout": call.output, "stderr": "", "outcome": outcome}
        return {"type": kind, "call_id": call.id, "output": [chunk]}
    if call.shape == "apply_patch_call":
        status = "failed" if call.fails else "completed"
        return {"type": kind, "call_id": call.id, "status": status, "output": call.output}
    kind = "custom_tool_call_output" if call.shape == "custom" else "function_call_output"
    return {"type": kind, "call_id": call.id, "output": call.output}


def _responses_tools(story: Story) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    spaces: dict[str, list[dict[str, Any]]] = {}
    for call in story.offered_tools():
        if call.namespace is None:
            tools.append(_responses_tool(call))
            continue
        if call.namespace not in spaces:
            inner = spaces[call.namespace] = []
            tools.append({"type": "namespace", "name": call.namespace, "tools": inner})
        spaces[call.namespace].append(_responses_tool(call))
    return tools


def _responses_tool(call: Call) -> dict[str, Any]:
    if call.shape == "custom":
        return {"type": "custom", "name": call.name}
    if call.shape == "mcp":
        url = f"https://{call.server}.example/mcp"
        return {"type": "mcp", "server_label": call.server, "server_url": url}
    if call.shape != "function":
        return {"type": call.shape.removesuffix("_call")}
    head = {"type": "function", "name": call.name}
    return {**head, "parameters": _no_parameters(), "strict": False}


# --- Messages --------------------------------------------------------------------------------


def _messages_body(story: Story) -> dict[str, Any]:
    system: list[dict[str, Any]] = []
    messages: list[Any] = []
    for step in story.steps:
        if isinstance(step, Item):
            messages.append(step.value)
        elif isinstance(step, tuple):
            _add(messages, "assistant", [block for part in step for block in _blocks(part)])
            answered = (call for call in _calls(step) if call.answered and call.shape != "mcp")
            _add(messages, "user", [_messages_result(call) for call in answered])
        elif step.role == "user":
            _add(messages, "user", [_text_block(step)])
        else:
            system.append(_text_block(step))
    body: dict[str, Any] = {"max_tokens": _MAX_TOKENS}
    if system:
        alone = len(system) == 1 and "cache_control" not in system[0]
        body["system"] = system[0]["text"] if alone else system
    body["messages"] = [_shortened(message) for message in messages]
    tools = [
        {"name": call.name, "input_schema": _no_parameters()}
        for call in story.offered_tools()
        if call.shape != "mcp"
    ]
    if tools:
        body["tools"] = tools
    servers = {call.server: None for call in story.made_calls if call.shape == "mcp"}
    if servers:
        body["mcp_servers"] = [
            {"type": "url", "name": name, "url": f"https://{name}.example/mcp"} for name in servers
        ]
    return body


def _text_block(words: Words) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": words.text}
    return {**block, "cache_control": {"type": "ephemeral"}} if words.cached else block


def _add(messages: list[Any], role: str, blocks: list[dict[str, Any]]) -> None:
    """Add blocks to the last message if it has the same role: roles alternate."""
    last = messages[-1] if messages else None
    if not blocks:
        return
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
    # Arguments are an object here; text that is not one is what a client makes of broken JSON.
    given = {"input": part.arguments} if isinstance(part.arguments, str) else part.arguments
    if part.shape == "mcp":
        head = {"type": "mcp_tool_use", "id": part.id, "name": part.name}
        use = {**head, "server_name": part.server, "input": given}
        # The server ran it: call and result are in the same message.
        content = [{"type": "text", "text": part.output}]
        result = {"type": "mcp_tool_result", "tool_use_id": part.id, "is_error": part.fails}
        return [use, {**result, "content": content}] if part.answered else [use]
    if part.shape not in ("function", "custom") or part.namespace is not None:
        raise _not_there("anthropic_messages", part)
    return [{"type": "tool_use", "id": part.id, "name": part.name, "input": given}]


def _messages_result(call: Call) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": call.output}
    return {**block, "is_error": True} if call.fails else block


_WRITERS: Mapping[WireFormat, Callable[[Story], dict[str, Any]]] = {
    "openai_chat": _chat_body,
    "openai_responses": _responses_body,
    "anthropic_messages": _messages_body,
}
