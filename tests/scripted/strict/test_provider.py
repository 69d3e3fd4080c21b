"""The strict providers as a whole: their files, their errors, and any body at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.scripted import Fault, Player, Script, Scripted, Turn
from switchyard_core.scripted.strict import strict_names
from switchyard_core.scripted.strict.provider import strict_provider
from switchyard_core.wire import FORMATS
from tests.scripted.strict.broken import SCRIPT, ask, bare, player
from tests.scripted.strict.test_documented import RULES

#: Keys and words that lead deep into the rules.
_KEYS = st.sampled_from(
    [
        "model",
        "messages",
        "input",
        "system",
        "tools",
        "role",
        "content",
        "type",
        "id",
        "text",
        "thinking",
        "signature",
        "data",
        "tool_use_id",
        "tool_calls",
        "tool_call_id",
        "function",
        "name",
        "cache_control",
        "call_id",
        "encrypted_content",
        "reasoning",
        "effort",
        "output_config",
        "budget_tokens",
        "max_tokens",
        "temperature",
        "top_p",
        "stop",
        "strict",
        "input_schema",
        "extra_content",
        "google",
        "thought_signature",
        "reasoning_content",
        "prefix",
        "include",
        "stream",
    ]
)
_WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "tool",
        "system",
        "text",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "reasoning",
        "message",
        "enabled",
        "adaptive",
        "claude-opus-5-5",
        "claude-haiku-4-5",
        "gpt-5.5",
        "gpt-5.4",
        "kimi-k2.6",
        "deepseek-flash",
        "glm-5.3",
        "gemini-3.1-pro",
        "custom",
    ]
)
_LEAVES = st.one_of(
    _WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_KEYS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=40,
)
_BODIES = st.dictionaries(_KEYS, _TREES, max_size=8)
_PATHS = [path for each in FORMATS.values() for path in each.paths.values()]


@given(body=_BODIES, name=st.sampled_from(strict_names()), path=st.sampled_from(_PATHS))
def test_any_object_gets_an_answer(body: Any, name: str, path: str) -> None:
    reply = player(name).play("POST", f"/v1{path}", (), json.dumps(body).encode())

    assert reply.status in (200, 400, 404)
    if reply.status != 200:
        json.loads(b"".join(reply.chunks))


@pytest.mark.parametrize("name", strict_names())
def test_every_provider_refuses_a_wire_format_that_it_does_not_speak(name: str) -> None:
    provider = strict_provider(name)

    for wire_format in WIRE_FORMATS:
        status, told = ask(player(name), wire_format, bare(wire_format, "any/model"))
        if wire_format not in provider.formats:
            assert status == 404
            assert "no such endpoint" in json.dumps(told)


@pytest.mark.parametrize("name", strict_names())
def test_every_rule_of_a_provider_can_apply(name: str) -> None:
    provider = strict_provider(name)

    for rule in provider.refuse:
        assert set(rule.formats) <= set(provider.formats), rule
        assert bool(rule.check) != bool(rule.path), rule
        assert not rule.check or rule.check.startswith(("chat.", "messages.", "responses.", "unk"))


def test_error_bodies_have_the_shape_of_their_provider() -> None:
    wrong = bare("openai_chat", "no-such-model")
    told = {name: ask(player(name), "openai_chat", wrong)[1] for name in ("gemini", "grok", "glm")}
    chat = ask(player("openai"), "openai_chat", {**bare("openai_chat", "gpt-5"), "max_tokens": 9})
    status, messages = ask(player("anthropic"), "anthropic_messages", bare("openai_chat", "x"))

    assert told["gemini"][0]["error"]["code"] == 404
    assert told["grok"] == {
        "code": "Client specified an invalid argument",
        "error": "The model no-such-model does not exist or your team does not have access to it.",
    }
    assert told["glm"]["error"]["code"] == "1211"
    assert chat == (
        400,
        {
            "error": {
                "message": (
                    "Unsupported parameter: 'max_tokens' is not supported with this model. "
                    "Use 'max_completion_tokens' instead."
                ),
                "type": "invalid_request_error",
                "param": "max_tokens",
                "code": "unsupported_parameter",
            }
        },
    )
    assert (status, messages["type"], messages["error"]["type"]) == (
        404,
        "error",
        "not_found_error",
    )


def test_refused_place_is_the_param_of_the_error() -> None:
    body = bare("openai_responses", "gpt-5.4", reasoning={"effort": "max"})

    _, told = ask(player("openai"), "openai_responses", body)

    assert told["error"]["param"] == "reasoning.effort"
    assert told["error"]["message"].endswith(
        "'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'."
    )


def test_refused_request_plays_no_fault() -> None:
    script = Script(
        version=1,
        scripts=(Scripted(turns=(Turn(text="hi"),), faults=(Fault(status=529),)),),
    )
    provider = Player(script, lambda: 0.0, "anthropic")
    fine = bare("anthropic_messages", "claude-opus-5")

    statuses = [ask(provider, "anthropic_messages", body)[0] for body in ({**fine, "x": 1}, fine)]

    assert statuses == [400, 529]


@pytest.mark.parametrize(
    ("change", "status"),
    [({}, 200), ({"tool_choice": {"type": "any"}}, 400)],
    ids=["no_limit", "forced_choice"],
)
def test_token_count_is_refused_for_what_a_count_refuses(
    change: dict[str, Any], status: int
) -> None:
    body = bare("anthropic_messages", "claude-opus-5-5", max_tokens=None, **change)

    path = "/v1/messages/count_tokens"

    assert ask(player("anthropic"), "anthropic_messages", body, path=path)[0] == status


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"thinking": {"type": "enabled"}}, "thinking.enabled.budget_tokens: Field required"),
        (
            {"thinking": {"type": "disabled", "budget_tokens": 1024}},
            "thinking.budget_tokens: Extra inputs are not permitted",
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5},
            "`temperature` may only be set to 1 when thinking is enabled.",
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 1024}, "top_k": 5},
            "`top_k` must be unset when thinking is enabled.",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": " "}]}]},
            "messages: text content blocks must contain non-whitespace text",
        ),
        (
            {"messages": [{"role": "user", "content": ""}, {"role": "user", "content": "hi"}]},
            "messages.0: all messages must have non-empty content except",
        ),
        ({"max_tokens": 64_001}, "max_tokens: 64001 > 64000, which is the maximum allowed number"),
    ],
    ids=["no_budget", "stray_budget", "temperature", "top_k", "blank", "empty", "limit"],
)
def test_manual_thinking_texts_and_limits_are_checked(change: dict[str, Any], words: str) -> None:
    body = bare("anthropic_messages", "claude-haiku-4-5", **change)

    status, told = ask(player("anthropic"), "anthropic_messages", body)

    assert status == 400
    assert told["error"]["message"].startswith(words)


@pytest.mark.parametrize(
    ("name", "model", "size", "words"),
    [
        ("anthropic", "claude-haiku-4-5", 800_000, "prompt is too long: 200"),
        ("openai", "gpt-5", 1_088_000, "Your input exceeds the context window"),
        ("openai", "gpt-4o", 512_000, "Please reduce the length of the messages."),
        ("kimi", "kimi-k2.6", 1_048_600, "exceeded model token limit: 262144"),
        ("grok", "grok-4.7", 2_000_000, "maximum prompt length is 500000"),
    ],
)
def test_prompt_beyond_the_window_is_refused_but_can_be_counted(
    name: str, model: str, size: int, words: str
) -> None:
    wire_format = "anthropic_messages" if name == "anthropic" else "openai_chat"
    long, short = (
        bare(wire_format, model, messages=[{"role": "user", "content": "x" * length}])
        for length in (size, size - 1000)
    )

    status, told = ask(player(name), wire_format, long)

    assert (status, ask(player(name), wire_format, short)[0]) == (400, 200)
    assert words in json.dumps(told)
    if name == "anthropic":
        path = "/v1/messages/count_tokens"
        assert ask(player(name), wire_format, long, path=path)[0] == 200


@pytest.mark.parametrize("name", [*strict_names(), None])
def test_stream_is_refused_with_a_whole_body(name: str | None) -> None:
    provider = Player(SCRIPT, lambda: 0.0, name)
    body = json.dumps({"model": "?", "stream": True, "messages": [], "tools": 3}).encode()

    reply = provider.play("POST", "/v1/chat/completions", (), body)

    if reply.status != 200:
        assert dict(reply.headers)["content-type"] == "application/json"
        assert reply.stream


#: Phrases that no strict provider says, because it does not play what they are about.
_NOT_SAID = {
    "not_overflow": "about the rate of requests",
    "overloaded": "faults of a script say that",
    "overflow": "of providers without rules, or in other words for the same",
}


def test_documented_phrases_are_words_of_the_strict_providers() -> None:
    texts = [
        f"{rule.message} {rule.code or ''} {rule.type}".replace("{kind}", "function call").lower()
        for name in strict_names()
        for rule in strict_provider(name).refuse
    ]
    unsaid = {
        (phrase["kind"], words)
        for phrase in RULES["phrase"]
        for words in phrase["any"]
        if not any(all(part in text for part in words.split("|")) for text in texts)
    }

    assert {each for each in unsaid if each[0] not in _NOT_SAID} == {
        # Words of other providers, or of older versions.
        ("order", "roles must alternate"),
        ("parameter", "does not support parameter"),
        ("parameter", "invalid json payload received. unknown name"),
        ("parameter", "invalid_reasoning_effort"),
        ("parameter", "is unsupported|body."),
    }
    assert {kind for kind, _ in unsaid} >= set(_NOT_SAID)


def test_messages_of_the_system_have_their_places() -> None:
    user, system = {"role": "user", "content": "hi"}, {"role": "system", "content": "be brief"}
    said = {"role": "assistant", "content": "hello"}
    searched = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    effort = {"role": "system", "content": [], "output_config": {"effort": "low"}}
    table: list[tuple[list[Any], str]] = [
        ([user, system], ""),
        ([user, system, said, user], ""),
        ([user, {"role": "assistant", "content": [searched]}, system], ""),
        ([effort, user], ""),
        ([system, user], "messages.0: use the top-level 'system' parameter"),
        ([user, said, system], "messages.2: role 'system' must follow a 'user' message"),
        ([user, system, user], "messages.1: role 'system' must precede an 'assistant' message"),
        ([user, system, system], "messages.1: role 'system' must precede an 'assistant' message"),
    ]
    wrong = []
    for messages, words in table:
        body = bare("anthropic_messages", "claude-opus-4-8", messages=messages)
        status, told = ask(player("anthropic"), "anthropic_messages", body)
        if status != (400 if words else 200) or words not in json.dumps(told):
            wrong.append((messages, status, told))
    assert wrong == []
