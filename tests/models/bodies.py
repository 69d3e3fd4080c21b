"""Bodies that a rule changes, made from the rule itself."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.models import Entry, Rule, ValueTest

#: The least of a body in each wire format.
PLAIN: Mapping[WireFormat, Mapping[str, Any]] = {
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": "hello"}],
    },
    "openai_chat": {"model": "m", "messages": [{"role": "user", "content": "hello"}]},
    "openai_responses": {"model": "m", "input": [{"role": "user", "content": "hello"}]},
}
TOOLS: Mapping[WireFormat, Any] = {
    "anthropic_messages": {"name": "look", "input_schema": {"type": "object"}},
    "openai_chat": {"type": "function", "function": {"name": "look", "parameters": {}}},
    "openai_responses": {"type": "function", "name": "look", "parameters": {}},
}
_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
_CHAT_LOOP = [
    {"role": "user", "content": "hello"},
    {"role": "assistant", "content": None, "tool_calls": [_CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]
#: A body for each repair, and what must be in the result.
REPAIRED: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "adaptive_to_budget": (
        {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}},
        {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    "budget_to_adaptive": (
        {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        {"thinking": {"type": "adaptive"}},
    ),
    "fit_budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 9000}},
        {"thinking": {"type": "enabled", "budget_tokens": 4096}},
    ),
    "drop_unsigned_thinking": (
        {
            "messages": [
                {"role": "user", "content": "a"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "b", "signature": ""},
                        {"type": "text", "text": "c"},
                    ],
                },
                {"role": "user", "content": "d"},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [{"type": "text", "text": "c"}]},
                {"role": "user", "content": "d"},
            ]
        },
    ),
    "system_row_to_user": (
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "system", "content": "b"},
                {"role": "user", "content": "c"},
            ]
        },
        {
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "user", "content": "b"},
                {"role": "user", "content": "c"},
            ]
        },
    ),
    "effort_to_native": (
        {"reasoning": {"effort": "high"}},
        {"reasoning_effort": "high"},
    ),
    "developer_to_system": (
        {"messages": [{"role": "developer", "content": "be brief"}]},
        {"messages": [{"role": "system", "content": "be brief"}]},
    ),
    "merge_system": (
        {"messages": [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]},
        {"messages": [{"role": "system", "content": "a\n\nb"}]},
    ),
    "image_to_text": (
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:,"}}],
                }
            ]
        },
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "text",
                            "text": "[an image was left out: this model takes text only]",
                        }
                    ],
                }
            ]
        },
    ),
    "bridge_assistant": (
        {"messages": [*_CHAT_LOOP, {"role": "user", "content": "and?"}]},
        {
            "messages": [
                *_CHAT_LOOP,
                {"role": "assistant", "content": "Understood."},
                {"role": "user", "content": "and?"},
            ]
        },
    ),
    "pull_tool_results_up": (
        {"messages": [*_CHAT_LOOP[:2], {"role": "user", "content": "wait"}, _CHAT_LOOP[2]]},
        {"messages": [*_CHAT_LOOP, {"role": "user", "content": "wait"}]},
    ),
    "reasoning_placeholder": ({"messages": _CHAT_LOOP}, {}),
    "signature_placeholder": ({"messages": _CHAT_LOOP}, {}),
}


def triggering(
    entry: Entry, rule: Rule, wire_format: WireFormat
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a body and headers that a rule of an entry changes."""
    body: dict[str, Any] = copy.deepcopy(dict(PLAIN[wire_format]))
    headers: dict[str, str] = {}
    if rule.do == "convert":
        body |= copy.deepcopy(dict(REPAIRED[rule.to or ""][0]))
        if rule.to == "effort_to_native" and rule.path == "reasoning_effort":
            del body["reasoning"]
            body["reasoning_effort"] = "high"
    for key, wanted in rule.when.items():
        _satisfy(body, key, wanted, wire_format)
    if rule.header is not None:
        headers[rule.header] = f"other-beta,{_example((rule.members or ('*',))[0])}"
    elif rule.do != "convert" and rule.path is not None and rule.path not in rule.when:
        _put(body, rule.path, _offending(rule), absent=rule.do != "map")
    return body, headers


def _satisfy(body: dict[str, Any], key: str, wanted: Any, wire_format: WireFormat) -> None:
    if key == "has_tools":
        if wanted:
            body["tools"] = [copy.deepcopy(TOOLS[wire_format])]
        return
    if key == "thinking_on":
        if wanted and wire_format == "openai_responses":
            body["reasoning"] = {"effort": "high"}
        elif wanted:
            body["reasoning_effort"] = "high"
        return
    test = wanted if isinstance(wanted, ValueTest) else ValueTest(equals=wanted)
    if test.present:
        _put(body, key, "x", absent=True)
    elif test.in_ is not None:
        _put(body, key, test.in_[0])
    elif test.not_in is not None:
        is_text = any(isinstance(value, str) for value in test.not_in)
        is_switch = any(isinstance(value, bool) for value in test.not_in)
        _put(body, key, "other" if is_text else True if is_switch else 0.123)
    elif test.gt is not None:
        _put(body, key, test.gt + 1)
    else:
        _put(body, key, test.equals)


def _offending(rule: Rule) -> Any:
    if rule.do == "map":
        return next((old for old, new in (rule.values or {}).items() if old != new), "other")
    if rule.do == "keep_only":
        return _example((rule.members or ("",))[0].removeprefix("!"))
    if rule.do in ("cap", "floor"):
        return rule.value + (1 if rule.do == "cap" else -1)
    return "something else"


def _example(glob: str) -> str:
    return glob.replace("*", "20260101")


def _put(body: dict[str, Any], path: str, value: Any, *, absent: bool = False) -> None:
    """Set a value at a path, in the only item of each array; ``absent`` keeps what is there."""
    holder: Any = body
    *keys, last = path.split(".")
    for key in keys:
        name = key.removesuffix("[]")
        empty: Any = [{}] if key.endswith("[]") else {}
        inner = holder.get(name)
        if not isinstance(inner, list if key.endswith("[]") else dict) or not inner:
            inner = holder[name] = empty
        holder = inner[0] if key.endswith("[]") else inner
    if last in holder and absent:
        return
    holder[last] = [value] if path == "include" else value
