"""The table of what pairs of formats lose says what their translations report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchyard_core import Request, WireFormat
from switchyard_core.decision import RewriteScope
from switchyard_core.wire import WIRE_FORMATS
from switchyard_core.wire.losses import losses, pairs
from switchyard_core.wire.rewrites.translate import TranslateParameters, translate

CHAT, RESPONSES, MESSAGES = WIRE_FORMATS
PNG = "data:image/png;base64,iVBORw0KGgo="
ADDRESS = "https://example.com/a.pdf"


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def marked(**more: Any) -> dict[str, Any]:
    return {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, **more}


def seen(*blocks: Any) -> dict[str, Any]:
    return {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [*blocks, {"type": "text", "text": "yes"}]},
            {"role": "user", "content": "go on"},
        ]
    }


#: What a request must say, by row and caller, for the translation to report the loss.
SAYS: Mapping[str, Mapping[WireFormat, dict[str, Any]]] = {
    "tools that run at the provider": {
        CHAT: {"web_search_options": {"search_context_size": "low"}},
        RESPONSES: {"tools": [{"type": "web_search"}]},
        MESSAGES: {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    },
    "compactions, and files that are at the provider": {
        RESPONSES: {
            "input": [
                {"type": "compaction", "encrypted_content": "x"},
                {"role": "user", "content": "hi"},
            ]
        },
        MESSAGES: {
            "messages": [
                user(
                    {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
                    {"type": "text", "text": "hi"},
                )
            ]
        },
    },
    "signatures and encrypted forms of reasoning": {
        RESPONSES: {
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
                {"role": "assistant", "content": "yes"},
                {"role": "user", "content": "go on"},
            ]
        },
        MESSAGES: seen({"type": "thinking", "thinking": "hm", "signature": "x"}),
    },
    "audio": {
        CHAT: {
            "messages": [
                user(
                    {"type": "text", "text": "hi"},
                    {"type": "input_audio", "input_audio": {"data": "aa", "format": "wav"}},
                )
            ]
        }
    },
    "files that are given by an address": {
        RESPONSES: {"input": [user({"type": "input_file", "file_url": ADDRESS})]},
        MESSAGES: {
            "messages": [user({"type": "document", "source": {"type": "url", "url": ADDRESS}})]
        },
    },
    "cache marks": {
        CHAT: {"messages": [user(marked())]},
        MESSAGES: {"messages": [user(marked())]},
    },
    "JSON mode without a schema": {
        CHAT: {"response_format": {"type": "json_object"}},
        RESPONSES: {"text": {"format": {"type": "json_object"}}},
    },
    "stop texts": {CHAT: {"stop": ["END"]}, MESSAGES: {"stop_sequences": ["END"]}},
    "seed, penalties and logit bias": {
        CHAT: {"seed": 7, "frequency_penalty": 0.5, "logit_bias": {"7": 1}}
    },
    "log probabilities, verbosity, metadata, prompt cache keys": {
        CHAT: {"logprobs": True, "verbosity": "low", "prompt_cache_key": "k"},
        RESPONSES: {"text": {"verbosity": "low"}, "metadata": {"a": "b"}, "prompt_cache_key": "k"},
    },
    "how closely to look at images": {
        CHAT: {
            "messages": [user({"type": "image_url", "image_url": {"url": PNG, "detail": "high"}})]
        },
        RESPONSES: {"input": [user({"type": "input_image", "image_url": PNG, "detail": "high"})]},
    },
    "`top_k`, context edits, citations": {
        MESSAGES: {
            "top_k": 5,
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
        }
    },
}
PLAIN: Mapping[WireFormat, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}]},
    RESPONSES: {"input": "hi"},
    MESSAGES: {"max_tokens": 99, "messages": [{"role": "user", "content": "hi"}]},
}


def told(caller: WireFormat, target: WireFormat, body: dict[str, Any]) -> set[str]:
    fields = Request(wire_format=caller, body={"model": "m", **PLAIN[caller], **body}).fields.copy()
    parameters = TranslateParameters(wire_format=target)
    return set(translate(fields, parameters, RewriteScope(wire_format=caller)))


def test_every_loss_is_reported_by_its_translation() -> None:
    missed = []
    for caller, target in pairs(WIRE_FORMATS):
        plain = told(caller, target, {})
        for what in losses(caller, target):
            said = SAYS[what][caller]
            if told(caller, target, said) <= plain:
                missed.append((caller, target, what))

    assert missed == []


def test_every_example_is_of_a_row() -> None:
    rows = {what for caller, target in pairs(WIRE_FORMATS) for what in losses(caller, target)}

    assert rows == set(SAYS)


def test_plain_request_loses_nothing() -> None:
    for caller, target in pairs(WIRE_FORMATS):
        assert told(caller, target, {}) == {f"translated from {caller} to {target}"}
        assert losses(caller, caller) == ()
