"""Fields of the wire formats are named in the room of the wire formats alone."""

from __future__ import annotations

import ast

from tests.architecture.sources import CORE, modules

#: Names that mean a field, or a kind of item, of a wire format and nothing else.
FIELDS = frozenset(
    {
        "cache_control",
        "choices",
        "completion_tokens",
        "content_block",
        "encrypted_content",
        "finish_reason",
        "function_call",
        "function_call_output",
        "image_url",
        "input_text",
        "max_completion_tokens",
        "max_output_tokens",
        "message_stop",
        "output_text",
        "previous_response_id",
        "prompt_tokens",
        "reasoning_content",
        "redacted_thinking",
        "response_format",
        "stop_reason",
        "system_fingerprint",
        "tool_call_id",
        "tool_calls",
        "tool_choice",
        "tool_result",
        "tool_use",
        "tool_use_id",
    }
)
#: What may name some of them all the same, and why.
ALLOWED = {
    f"{CORE}.wire": "the room itself",
    f"{CORE}.testing": "writes and checks bodies as clients do, and must not share their bugs",
    f"{CORE}.answering": "the provider's own words for a reply that was cut",
    f"{CORE}.conversation": "the types of parts in the conversation document",
    f"{CORE}.scripted.answer": "a script may say in any format's word why an answer stops",
    f"{CORE}.scripted.strict": "checks bodies as providers do, and must not share their reader",
    "switchyard_planner_executor.events": "its own records of tool calls",
}


def test_fields_of_a_wire_format_are_named_in_its_room_alone() -> None:
    found = {
        f"{module.name}:{node.lineno} {node.value!r}": module.name
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and word(node.value) in FIELDS
    }
    used = {place for place in ALLOWED for name in found.values() if is_in(name, place)}

    assert [at for at, name in found.items() if not any(is_in(name, p) for p in ALLOWED)] == []
    assert sorted(set(ALLOWED) - used) == [], "these need no exception any more"


def word(value: object) -> object:
    """Return the word that a literal means: JSON of it, as bytes too, names it as well."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.strip('"') if isinstance(text, str) else text


def is_in(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")
