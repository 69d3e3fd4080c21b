"""Whether a provider would accept a body: its documented rules, and the official SDK's types.

The rules of each wire format are one function here; docs/testing.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.jsonio.tree import JsonTextError, encode, loads
from switchyard_core.wire.responses.view import OUTPUT_TYPES

__all__ = ["assert_valid_for", "validity_problems"]

#: An object of the body with its wire path.
_Placed = tuple[str, dict[str, Any]]


def assert_valid_for(
    wire_format: WireFormat, body: bytes | str | Mapping[str, Any], *, sdk: bool | None = None
) -> None:
    """Fail unless a provider of a wire format would accept a body; name every problem.

    Args:
        wire_format: Wire format of the body.
        body: The body: bytes, text, or a tree.
        sdk: Whether the request types of the official SDK must accept it too; ``None`` asks
            them when the SDK (``openai``, ``anthropic``) is installed.

    Example:
        >>> assert_valid_for("openai_chat", {"model": "m", "messages": []})
        Traceback (most recent call last):
            ...
        AssertionError: not a valid body of openai_chat:
          messages: must not be empty
    """
    problems = validity_problems(wire_format, body, sdk=sdk)
    if problems:
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise AssertionError(f"not a valid body of {wire_format}:{lines}")


def validity_problems(
    wire_format: WireFormat, body: bytes | str | Mapping[str, Any], *, sdk: bool | None = None
) -> list[str]:
    """Return what a provider would refuse in a body; the SDK is asked if the rules find nothing."""
    if wire_format not in WIRE_FORMATS:
        raise ValueError(f"unknown wire format `{wire_format}`; known: {', '.join(WIRE_FORMATS)}")
    try:
        raw = body.encode() if isinstance(body, str) else body
        tree = loads(raw if isinstance(raw, bytes) else encode(dict(raw)))
    except JsonTextError as error:
        return [f"the body is not JSON: {error.message}"]
    if not isinstance(tree, dict):
        return ["the body is not a JSON object"]
    problems = _Problems()
    model = tree.get("model")
    problems.require(isinstance(model, str) and model, "model", "must be a string")
    _RULES[wire_format](tree, problems)
    return problems.found or _sdk_problems(wire_format, tree, required=sdk)


class _Problems:
    """Collects what is wrong, each with the wire path of its place."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._ids: set[str] = set()

    def require(self, condition: object, path: str, problem: str) -> bool:
        if not condition:
            self.found.append(f"{path}: {problem}")
        return bool(condition)

    def text(self, value: Any, path: str) -> None:
        self.require(isinstance(value, str) and value.strip(), path, "must not be empty")

    def string(self, value: Any, path: str) -> None:
        self.require(isinstance(value, str), path, "must be a string")

    def texts(self, parts: Iterable[_Placed], *kinds: str) -> None:
        for path, part in parts:
            if part.get("type") in kinds:
                self.text(part.get("text"), f"{path}.text")

    def name(self, value: Any, path: str) -> None:
        legal = isinstance(value, str) and re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", value)
        self.require(legal, path, f"is not a tool name: {value!r} (letters, digits, `_`, `-`)")

    def id(self, value: Any, path: str, legal: str) -> None:
        """Require a call id that matches a pattern and is new."""
        fits = isinstance(value, str) and re.fullmatch(legal, value)
        if self.require(fits, path, f"is not a legal id: {value!r} ({legal})"):
            self.require(value not in self._ids, path, f"the id `{value}` is used twice")
            self._ids.add(value)

    def objects(self, value: Any, path: str) -> Iterator[_Placed]:
        """Yield the objects of an array; anything else is a problem."""
        if self.require(isinstance(value, list), path, "must be an array"):
            self.require(value, path, "must not be empty")
            for index, item in enumerate(value):
                place = f"{path}[{index}]"
                if self.require(isinstance(item, dict), place, "must be an object"):
                    yield place, item


# --- OpenAI Chat Completions -----------------------------------------------------------------

_CHAT_ROLES = ("developer", "system", "user", "assistant", "tool", "function")
_CHAT_ID = r"[\s\S]{1,40}"
#: A message of the assistant without content must have one of these.
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")


def _chat(body: dict[str, Any], problems: _Problems) -> None:
    open_calls: dict[str, str] = {}
    for path, message in problems.objects(body.get("messages"), "messages"):
        role = message.get("role")
        if not problems.require(role in _CHAT_ROLES, f"{path}.role", f"unknown role {role!r}"):
            continue
        if role == "tool":
            _chat_result(message, path, open_calls, problems)
            continue
        _chat_unanswered(open_calls, problems)
        if role == "assistant" and message.get("tool_calls") is not None:
            open_calls = _chat_calls(message, path, problems)
        _chat_content(message, f"{path}.content", problems)
    _chat_unanswered(open_calls, problems)
    if "tools" not in body:
        problems.require("tool_choice" not in body, "tool_choice", "needs `tools`")
        return
    for path, tool in problems.objects(body["tools"], "tools"):
        kind = tool.get("type")
        if kind in ("function", "custom") and isinstance(tool.get(kind), dict):
            problems.name(tool[kind].get("name"), f"{path}.{kind}.name")


def _chat_result(
    message: dict[str, Any], path: str, open_calls: dict[str, str], problems: _Problems
) -> None:
    asked = message.get("tool_call_id")
    problems.require(
        isinstance(asked, str) and open_calls.pop(asked, None) is not None,
        f"{path}.tool_call_id",
        f"answers no call of the assistant message before it: {asked!r}",
    )
    content = message.get("content")
    problems.require(isinstance(content, str | list), f"{path}.content", "must be text or parts")


def _chat_unanswered(open_calls: dict[str, str], problems: _Problems) -> None:
    for call, path in open_calls.items():
        problems.require(False, path, f"the call `{call}` has no result right after its message")
    open_calls.clear()


def _chat_calls(message: dict[str, Any], path: str, problems: _Problems) -> dict[str, str]:
    found = {}
    for place, call in problems.objects(message["tool_calls"], f"{path}.tool_calls"):
        problems.id(call.get("id"), f"{place}.id", _CHAT_ID)
        kind = call.get("type")
        inner = call.get(kind) if kind in ("function", "custom") else None
        if not isinstance(inner, dict):
            problems.require(False, place, "is neither function nor custom")
        else:
            key = "arguments" if kind == "function" else "input"
            problems.name(inner.get("name"), f"{place}.{kind}.name")
            problems.string(inner.get(key), f"{place}.{kind}.{key}")
        if isinstance(call.get("id"), str):
            found[call["id"]] = place
    return found


def _chat_content(message: dict[str, Any], path: str, problems: _Problems) -> None:
    content = message.get("content")
    if isinstance(content, list):
        problems.texts(problems.objects(content, path), "text")
    elif message["role"] == "assistant" and any(message.get(key) for key in _INSTEAD_OF_CONTENT):
        problems.require(content is None or isinstance(content, str), path, "must be text")
    elif message["role"] != "function":
        problems.text(content, path)


# --- OpenAI Responses ------------------------------------------------------------------------

_RESPONSES_ROLES = ("user", "assistant", "system", "developer")
_RESPONSES_ID = r"[\s\S]{1,64}"
#: Ids of items begin with the kind of the item.
_PREFIXES: Mapping[str, str] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
#: Calls that a client answers, by the type of the result.
_CALL_OF: Mapping[str, str] = {
    f"{call}_output": call
    for call in ("function_call", "custom_tool_call", "shell_call", "apply_patch_call")
}


def _responses(body: dict[str, Any], problems: _Problems) -> None:
    history = body.get("input")
    # A history that continues by id may have calls and results elsewhere.
    continued = "previous_response_id" in body or "conversation" in body
    if history is None or isinstance(history, str):
        if not continued and "prompt" not in body:
            problems.text(history, "input")
        return
    items = list(problems.objects(history, "input"))
    _responses_pairs(items, problems, continued=continued)
    for number, (path, item) in enumerate(items):
        kind = item.get("type", "message")
        item_id, prefix = item.get("id"), _PREFIXES.get(str(kind))
        if item_id is not None and prefix is not None:
            fits = isinstance(item_id, str) and item_id.startswith(prefix)
            problems.require(fits, f"{path}.id", f"must begin with `{prefix}`: {item_id!r}")
        if kind == "message":
            _responses_message(item, path, problems)
        elif kind == "reasoning":
            _responses_reasoning(items, number, problems)
        elif kind in ("function_call", "custom_tool_call"):
            key = "arguments" if kind == "function_call" else "input"
            problems.name(item.get("name"), f"{path}.name")
            problems.string(item.get(key), f"{path}.{key}")


def _responses_message(item: dict[str, Any], path: str, problems: _Problems) -> None:
    role, content = item.get("role"), item.get("content")
    problems.require(role in _RESPONSES_ROLES, f"{path}.role", f"unknown role {role!r}")
    if isinstance(content, str):
        problems.text(content, f"{path}.content")
        return
    kind = "output_text" if role == "assistant" else "input_text"
    for place, part in problems.objects(content, f"{path}.content"):
        given = part.get("type")
        if given in ("input_text", "output_text"):
            # A message of the assistant without an id may be an example that the client made.
            fits = given == kind or (role == "assistant" and "id" not in item)
            problems.require(fits, f"{place}.type", f"a {role} says `{kind}`, not `{given}`")
            problems.text(part.get("text"), f"{place}.text")


def _responses_reasoning(items: list[_Placed], number: int, problems: _Problems) -> None:
    path, item = items[number]
    problems.require(isinstance(item.get("summary"), list), f"{path}.summary", "must be an array")
    rest = (later for _, later in items[number + 1 :] if later.get("type") != "reasoning")
    following = next(rest, {})
    kind = following.get("type", "message")
    made = kind == "message" and following.get("role") == "assistant"
    alone = str(kind) in OUTPUT_TYPES or (kind == "message" and not made)
    if alone and item.get("id") is not None:
        problems.require(False, path, "a reasoning item needs what was made of it")


def _responses_pairs(items: list[_Placed], problems: _Problems, *, continued: bool) -> None:
    open_calls: dict[tuple[str, str], str] = {}
    for path, item in items:
        kind, call = str(item.get("type")), item.get("call_id")
        if kind in _CALL_OF.values():
            problems.id(call, f"{path}.call_id", _RESPONSES_ID)
            open_calls[kind, str(call)] = path
        elif kind in _CALL_OF:
            paired = open_calls.pop((_CALL_OF[kind], str(call)), None) is not None
            problem = f"answers no earlier call: {call!r}"
            problems.require(paired or continued, f"{path}.call_id", problem)
            if kind != "apply_patch_call_output":
                problems.require("output" in item, f"{path}.output", "is missing")
    for (_, call), path in open_calls.items():
        problems.require(False, path, f"the call `{call}` has no result")


# --- Anthropic Messages ----------------------------------------------------------------------

_MOST_CACHE_MARKS = 4
#: Claude Code sends reminders as ``system`` messages between the others.
_MESSAGES_ROLES = ("user", "assistant", "system")
_MESSAGES_ID = r"[a-zA-Z0-9_-]{1,64}"
_THINKING = ("thinking", "redacted_thinking")

#: Wire path, role and blocks of a message.
_Message = tuple[str, str, list[_Placed]]


def _messages(body: dict[str, Any], problems: _Problems) -> None:
    limit = body.get("max_tokens")
    fits = isinstance(limit, int) and limit > 0
    problems.require(fits, "max_tokens", "must be a whole number above 0")
    messages: list[_Message] = []
    if problems.require("messages" in body, "messages", "is missing"):
        placed = problems.objects(body["messages"], "messages")
        messages = [_message(message, path, problems) for path, message in placed]
    if messages:
        path, role, _ = messages[0]
        problems.require(role == "user", f"{path}.role", "the first message is the user's")
        _prefill(messages[-1], problems)
    system = body.get("system")
    if isinstance(system, list) and system:
        for path, block in problems.objects(system, "system"):
            problems.text(block.get("text"), f"{path}.text")
    elif system is not None:
        problems.require(isinstance(system, str | list), "system", "must be text or blocks")
    merged = _merged(messages)
    _messages_pairs(merged, problems)
    _cache_marks(body, problems)
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        _last_loop(merged, problems)
    for path, tool in problems.objects(body["tools"], "tools") if body.get("tools") else ():
        problems.name(tool.get("name", ""), f"{path}.name")


def _message(message: dict[str, Any], path: str, problems: _Problems) -> _Message:
    role, content = message.get("role"), message.get("content")
    problems.require(role in _MESSAGES_ROLES, f"{path}.role", f"unknown role {role!r}")
    place = f"{path}.content"
    if isinstance(content, str):
        problems.text(content, place)
        return path, str(role), [(place, {"type": "text", "text": content})]
    blocks = list(problems.objects(content, place))
    for where, block in blocks:
        _block(block, where, str(role), problems)
    return path, str(role), blocks


def _block(block: dict[str, Any], path: str, role: str, problems: _Problems) -> None:
    kind = block.get("type")
    if kind == "text":
        problems.text(block.get("text"), f"{path}.text")
    elif kind == "tool_use":
        problems.require(role == "assistant", path, "only the assistant calls a tool")
        problems.name(block.get("name"), f"{path}.name")
        problems.require(isinstance(block.get("input"), dict), f"{path}.input", "must be an object")
    elif kind == "tool_result":
        problems.require(role == "user", path, "only the user gives a result")
        if isinstance(block.get("content"), list):
            problems.texts(problems.objects(block["content"], f"{path}.content"), "text")
    elif kind == "thinking":
        signature = block.get("signature")
        signed = isinstance(signature, str) and signature
        problems.require(signed, f"{path}.signature", "thinking must be signed")


def _prefill(message: _Message, problems: _Problems) -> None:
    _, role, blocks = message
    if role == "assistant" and blocks and blocks[-1][1].get("type") == "text":
        path, block = blocks[-1]
        text = str(block.get("text", ""))
        problems.require(text == text.rstrip(), path, "a prefill must not end with a space")


def _merged(messages: list[_Message]) -> list[_Message]:
    """Join neighbours of one role, as the API does; reminders do not part them."""
    found: list[_Message] = []
    for path, role, blocks in messages:
        if role == "system":
            continue
        if found and found[-1][1] == role:
            found[-1] = (found[-1][0], role, [*found[-1][2], *blocks])
        else:
            found.append((path, role, list(blocks)))
    return found


def _messages_pairs(merged: list[_Message], problems: _Problems) -> None:
    turns: list[list[_Placed]] = [blocks for _, _, blocks in merged]
    for before, blocks, after in zip([[], *turns], turns, [*turns[1:], []], strict=False):
        calls = [(path, b.get("id")) for path, b in blocks if b.get("type") == "tool_use"]
        for path, call in calls:
            problems.id(call, f"{path}.id", _MESSAGES_ID)
        answered = [b.get("tool_use_id") for _, b in after if b.get("type") == "tool_result"]
        for path, call in calls:
            problem = f"the call `{call}` has no result in the next message"
            problems.require(call in answered, path, problem)
        called = [b.get("id") for _, b in before if b.get("type") == "tool_use"]
        others = False
        for path, block in blocks:
            if block.get("type") != "tool_result":
                others = True
                continue
            asked = block.get("tool_use_id")
            problem = f"answers no call of the message before it: {asked!r}"
            problems.require(asked in called, path, problem)
            problems.require(not (called and others), path, "results come before anything else")


def _cache_marks(body: dict[str, Any], problems: _Problems) -> None:
    marked = list(_marked(body, ""))
    most = _MOST_CACHE_MARKS
    problem = f"{len(marked)} cache marks, of which {most} are allowed"
    problems.require(len(marked) <= most, "cache_control", problem)
    for path, block in marked:
        kind = block.get("type")
        problems.require(kind not in _THINKING, path, "no cache mark may be on thinking")
        empty = kind == "text" and not str(block.get("text", "")).strip()
        problems.require(not empty, path, "no cache mark may be on an empty text")


def _marked(value: Any, path: str) -> Iterator[_Placed]:
    """Yield blocks with a cache mark where the API looks for one: never inside arguments."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _marked(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if value.get("cache_control") is not None:
            yield path, value
        for key in ("tools", "system", "messages", "content"):
            yield from _marked(value.get(key), f"{path}.{key}".lstrip("."))


def _last_loop(merged: list[_Message], problems: _Problems) -> None:
    """Require thinking at the start of the assistant's part of a tool loop that is under way."""
    if len(merged) < 2 or merged[-1][1] != "user":
        return
    path, _, blocks = merged[-2]
    results = all(block.get("type") == "tool_result" for _, block in merged[-1][2])
    calls = any(block.get("type") == "tool_use" for _, block in blocks)
    problem = "with thinking on, the message of the last tool loop begins with thinking"
    if results and calls:
        problems.require(blocks[0][1].get("type") in _THINKING, path, problem)


_RULES: Mapping[WireFormat, Callable[[dict[str, Any], _Problems], None]] = {
    "openai_chat": _chat,
    "openai_responses": _responses,
    "anthropic_messages": _messages,
}

# --- the request types of the official SDKs --------------------------------------------------

#: Module and name of the type of each wire format's request, streamed or not.
_TYPES: Mapping[WireFormat, tuple[str, str]] = {
    "openai_chat": ("openai.types.chat.completion_create_params", "CompletionCreateParams"),
    "openai_responses": ("openai.types.responses.response_create_params", "ResponseCreateParams"),
    "anthropic_messages": ("anthropic.types.beta.message_create_params", "MessageCreateParams"),
}
#: Most problems that are told; a union's branches give one each.
_MOST_PROBLEMS = 6


def _sdk_problems(
    wire_format: WireFormat, body: dict[str, Any], *, required: bool | None
) -> list[str]:
    """Return what the SDK's request type refuses; unknown keys are the provider's business."""
    if required is False:
        return []
    try:
        adapter = _adapter(wire_format)
    except ImportError:
        if required:
            raise
        return []
    try:
        _read(adapter.validate_python(_as_typed(wire_format, body), strict=True))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False)
        lines = [f"{_wire_path(each['loc'])}: {each['msg']} (official SDK)" for each in found]
        return list(dict.fromkeys(lines))[:_MOST_PROBLEMS]
    return []


@cache
def _adapter(wire_format: WireFormat) -> TypeAdapter[Any]:
    # It must outlive what it validates: pydantic's iterators refer to it. Making one is slow.
    module, name = _TYPES[wire_format]
    return TypeAdapter(getattr(import_module(module), name))


def _as_typed(wire_format: WireFormat, body: dict[str, Any]) -> dict[str, Any]:
    """Write a body as the SDK's types want it where the provider takes more than they say."""
    items = body.get("input")
    if wire_format != "openai_responses" or not isinstance(items, list):
        return body
    typed = [_item_as_typed(item) for item in items if item.get("type") != "additional_tools"]
    return {**body, "input": typed}


def _item_as_typed(item: dict[str, Any]) -> dict[str, Any]:
    # Codex sends a null content, and items that were never stored have no id.
    kind = item.get("type", "message")
    if kind == "reasoning":
        return {"id": "rs_", **{key: value for key, value in item.items() if value is not None}}
    content = item.get("content")
    if kind == "message" and item.get("role") == "assistant" and isinstance(content, list):
        parts = [{"annotations": [], **part} for part in content]
        made = {"type": "message", "id": "msg_", "status": "completed"}
        return {**made, **item, "content": parts}
    return item


def _read(value: Any) -> None:
    """Read iterables to their end: pydantic checks what is in them only then."""
    if isinstance(value, Mapping):
        for inner in value.values():
            _read(inner)
    elif isinstance(value, list | tuple | Iterator):
        for inner in value:
            _read(inner)


def _wire_path(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location if not re.search(r"[A-Z\[]", str(part)))
