"""One history of each wire format with everything that another provider refuses.

Text that must arrive is ``T-…``, arguments ``A-…``, results ``R-…``; what only the provider that
made it can read is ``SEAL-…``.
"""

from __future__ import annotations

from typing import Any

from switchyard_core.declarations import WireFormat

__all__ = ["AWKWARD", "IMAGES", "PICTURES"]

#: A pixel in two colours: each must arrive once.
IMAGES = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYPj/HwADAgH/eSYZvAAAAABJRU5ErkJggg==",
)
PICTURES = tuple(f"data:image/png;base64,{image}" for image in IMAGES)
_MARK = {"type": "ephemeral"}
#: Ids that no format, or only some, take: a foreign one, and two with the same first 64 characters.
_IDS = ("functions.edit:0", "x" * 64 + "aaaaaa", "x" * 64 + "bbbbbb")
_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
_TOOLS = ("read_file", "run_tests", "edit_file")


def _chat() -> dict[str, Any]:
    def called(call_id: str, name: str, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    def result(call_id: str, content: Any) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    seal = [{"type": "reasoning.encrypted", "data": "SEAL-details"}]
    return {
        "tools": [
            {"type": "function", "function": {"name": name, "parameters": _SCHEMA}}
            for name in _TOOLS
        ],
        "messages": [
            {"role": "system", "content": "T-system"},
            {"role": "developer", "content": "T-developer"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "T-ask"},
                    {"type": "text", "text": " "},
                    {"type": "image_url", "image_url": {"url": PICTURES[0]}},
                ],
            },
            {
                "role": "assistant",
                "content": "T-look",
                "reasoning_content": "SEAL-plain",
                "reasoning_details": seal,
                "tool_calls": [
                    called(_IDS[0], "read_file", '{"path": "A-one"}'),
                    called(_IDS[1], "run_tests", ""),
                    {
                        **called(_IDS[2], "read_file", '{"path": "A-two"}'),
                        "extra_content": {"google": {"thought_signature": "SEAL-call"}},
                    },
                ],
            },
            result(_IDS[2], [{"type": "text", "text": "R-two"}]),
            result(_IDS[0], "R-one"),
            result(_IDS[1], ""),
            result("call_nobody", "nobody asked"),
            {"role": "assistant", "content": ""},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURES[1]}}]},
            {"role": "assistant", "tool_calls": [called("call_lost", "run_tests", "{}")]},
            {"role": "user", "content": "T-again"},
            {
                "role": "assistant",
                "content": None,
                "thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "SEAL-t"}],
                "tool_calls": [called("call_edit", "edit_file", '{"path": "A-edit"}')],
            },
            result("call_edit", "R-edit"),
            {"role": "assistant", "content": "T-trailing"},
        ],
    }


def _responses() -> dict[str, Any]:
    def called(call_id: str, name: str, arguments: str, **more: Any) -> dict[str, Any]:
        head = {"type": "function_call", "id": f"fc_{name}_{call_id[-3:]}", "call_id": call_id}
        return {**head, "name": name, "arguments": arguments, "status": "completed", **more}

    def result(call_id: str, output: Any) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": output}

    def said(text: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        head = {"type": "message", "role": "assistant", "id": f"msg_{text}"}
        return {**head, "status": "completed", "content": content}

    def thought(number: int, **seal: str) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": "SEAL-summary"}]
        return {"type": "reasoning", "id": f"rs_{number}", "summary": summary, **seal}

    picture = {"type": "input_image", "image_url": PICTURES[1], "detail": "auto"}
    return {
        "instructions": "T-system",
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "tools": [
            *({"type": "function", "name": name, "parameters": _SCHEMA, "strict": False}
              for name in _TOOLS),
            {"type": "web_search"},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": "T-developer"},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "T-ask"},
                    {"type": "input_text", "text": " "},
                    {"type": "input_image", "image_url": PICTURES[0], "detail": "auto"},
                ],
            },
            thought(1, encrypted_content="SEAL-encrypted"),
            said("T-look"),
            {
                "type": "web_search_call",
                "id": "ws_SEAL-search",
                "status": "completed",
                "action": {"type": "search", "query": "q"},
            },
            called(_IDS[0], "read_file", '{"path": "A-one"}'),
            called(_IDS[1], "run_tests", ""),
            called(_IDS[2], "read_file", '{"path": "A-two"}'),
            result(_IDS[2], [{"type": "input_text", "text": "R-two"}, picture]),
            result(_IDS[0], "R-one"),
            result(_IDS[1], ""),
            result("call_nobody", "nobody asked"),
            {"role": "assistant", "content": []},
            called("call_lost", "run_tests", "{}"),
            {"role": "user", "content": "T-again"},
            thought(2),
            called("call_edit", "edit_file", '{"path": "A-edit"}'),
            result("call_edit", "R-edit"),
            said("T-trailing"),
        ],
    }  # fmt: skip


def _messages() -> dict[str, Any]:
    def called(call_id: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": call_id, "name": name, "input": given}

    def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}

    def picture(number: int) -> dict[str, Any]:
        source = {"type": "base64", "media_type": "image/png", "data": IMAGES[number]}
        return {"type": "image", "source": source}

    return {
        "max_tokens": 32000,
        "thinking": {"type": "adaptive"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "system": [
            {"type": "text", "text": "T-system", "cache_control": _MARK},
            {"type": "text", "text": "T-developer", "cache_control": _MARK},
        ],
        "tools": [
            *({"name": name, "input_schema": _SCHEMA} for name in _TOOLS),
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "T-ask", "cache_control": _MARK},
                    {"type": "text", "text": " "},
                    picture(0),
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "SEAL-thinking", "signature": "SEAL-signed"},
                    {"type": "redacted_thinking", "data": "SEAL-redacted"},
                    {"type": "text", "text": "T-look"},
                    {
                        "type": "server_tool_use",
                        "id": "srvtoolu_SEAL",
                        "name": "web_search",
                        "input": {"query": "q"},
                    },
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "srvtoolu_SEAL",
                        "content": [
                            {
                                "type": "web_search_result",
                                "url": "https://example.org",
                                "title": "t",
                                "encrypted_content": "SEAL-search",
                            }
                        ],
                    },
                    called(_IDS[0], "read_file", {"path": "A-one"}),
                    called(_IDS[1], "run_tests", {}),
                    called(_IDS[2], "read_file", {"path": "A-two"}),
                ],
            },
            {
                "role": "user",
                "content": [
                    result(_IDS[2], [{"type": "text", "text": "R-two"}, picture(1)]),
                    result(_IDS[0], "R-one", is_error=True, cache_control=_MARK),
                    result(_IDS[1], ""),
                    result("toolu_nobody", "nobody asked"),
                ],
            },
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": [called("toolu_lost", "run_tests", {})]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "T-again", "cache_control": _MARK}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "SEAL-again", "signature": "SEAL-signed2"},
                    called("toolu_edit", "edit_file", {"path": "A-edit"}),
                ],
            },
            {"role": "user", "content": [result("toolu_edit", "R-edit")]},
            {"role": "assistant", "content": "T-trailing"},
        ],
    }  # fmt: skip


def _continued() -> dict[str, Any]:
    """Return the one of Responses with the id of the planner's response, which made the edit.

    A result without a call would be of a history that is elsewhere, and the text at the end may be
    the executor's.
    """
    body = _responses()
    items = [item for item in body["input"][:-1] if item.get("call_id") != "call_nobody"]
    return {**body, "previous_response_id": "resp_SEAL-previous", "input": items}


#: Planners' histories by name: wire format, and body without a model.
AWKWARD: dict[str, tuple[WireFormat, dict[str, Any]]] = {
    "chat": ("openai_chat", _chat()),
    "responses": ("openai_responses", _responses()),
    "responses_continued": ("openai_responses", _continued()),
    "messages": ("anthropic_messages", _messages()),
}
