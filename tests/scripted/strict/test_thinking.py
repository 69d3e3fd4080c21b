"""Thinking that comes back: whose it is, whether it was changed, and what is before it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from switchyard_core.scripted import Player, Script, Scripted, Turn
from switchyard_core.scripted.script import Call
from tests.scripted.strict.broken import SCRIPT, ask, bare, player

MESSAGES, RESPONSES, CHAT = "anthropic_messages", "openai_responses", "openai_chat"
BOUND = ("claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5")
DROP = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
BETA = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
ENCRYPTED = {"include": ["reasoning.encrypted_content"]}
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]


def session(model: str, turns: int, **more: Any) -> dict[str, Any]:
    """Return the body that follows after some turns of one model."""
    provider = player("anthropic")
    body = bare(MESSAGES, model, system="Fix it.", tools=TOOLS, **more)
    for _ in range(turns):
        body = after(provider, body)
    return body


def after(provider: Player, body: dict[str, Any], model: str = "") -> dict[str, Any]:
    """Return the next body of a client that sends back what it got."""
    status, answer = ask(provider, MESSAGES, {**body, "model": model or body["model"]})
    assert status == 200, answer
    use = answer["content"][-1]["id"]
    result = {"type": "tool_result", "tool_use_id": use, "content": f"result of {use}"}
    said = {"role": "assistant", "content": answer["content"]}
    return {**body, "messages": [*body["messages"], said, {"role": "user", "content": [result]}]}


def refusal(body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
    """Return the words of the refusal, ``""`` for an answer."""
    status, told = ask(player("anthropic"), MESSAGES, body, headers)
    return "" if status == 200 else str(told["error"]["message"])


def without_thinking(body: dict[str, Any], *numbers: int) -> dict[str, Any]:
    """Return a body without the thinking of some turns, by number from 0."""
    copy: dict[str, Any] = json.loads(json.dumps(body))
    turns = [m for m in copy["messages"] if m["role"] == "assistant"]
    for number in numbers:
        content = turns[number]["content"]
        turns[number]["content"] = [b for b in content if b["type"] != "thinking"]
    return copy


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-8", *BOUND])
def test_session_that_keeps_its_history_is_answered_for_thirty_turns(model: str) -> None:
    assert refusal(session(model, 30)) == ""


def test_signature_follows_from_the_conversation_alone() -> None:
    first, again = session("claude-opus-5-5", 2), session("claude-opus-5-5", 2)
    warmer, other = session("claude-opus-5-5", 1, temperature=1), session("claude-opus-4-8", 1)

    assert signatures(first) == signatures(again)
    assert len(set(signatures(first))) == 2
    assert signatures(warmer) == signatures(first)[:1]
    assert signatures(other) != signatures(first)[:1]


def signatures(body: dict[str, Any]) -> list[str]:
    return [m["content"][0]["signature"] for m in body["messages"] if m["role"] == "assistant"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: {**body, "system": "Fix it. Plan first."}, id="system"),
        pytest.param(lambda body: {**body, "tools": []}, id="tools"),
        pytest.param(
            lambda body: {**body, "messages": [said("wait"), *body["messages"]]}, id="inserted"
        ),
        pytest.param(
            lambda body: {**body, "messages": [said("so far"), *body["messages"][3:]]},
            id="cut_off",
        ),
        pytest.param(
            lambda body: {
                **body,
                "messages": [said("hi", "Plan first."), *body["messages"][1:]],
            },
            id="text_added",
        ),
        pytest.param(
            lambda body: {**body, "messages": [said("hello"), *body["messages"][1:]]},
            id="text_changed",
        ),
    ],
)
@pytest.mark.parametrize("model", BOUND)
def test_changed_conversation_before_bound_thinking_is_refused(
    model: str, change: Callable[[Any], Any]
) -> None:
    body = change(session(model, 2))

    assert "the block is bound to a different conversation" in refusal(body)
    assert refusal({**body, "thinking": DROP}, BETA) == ""
    assert refusal({**body, "model": "claude-opus-4-8"}) == ""


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: {**body, "max_tokens": 99}, id="max_tokens"),
        pytest.param(lambda body: {**body, "output_config": {"effort": "low"}}, id="effort"),
        pytest.param(lambda body: {**body, "tool_choice": {"type": "none"}}, id="tool_choice"),
        pytest.param(lambda body: {**body, "metadata": {"user_id": "u"}}, id="metadata"),
        pytest.param(lambda body: {**body, "system": [marked("Fix it.")]}, id="cache_mark_system"),
        pytest.param(
            lambda body: {
                **body,
                "messages": [{"role": "user", "content": [marked("hi")]}, *body["messages"][1:]],
            },
            id="cache_mark_message",
        ),
        pytest.param(
            lambda body: {**body, "messages": [*body["messages"], said("go on")]}, id="later_text"
        ),
        pytest.param(lambda body: without_thinking(body, 0), id="oldest_thinking_dropped"),
        pytest.param(lambda body: without_thinking(body, 0, 1, 2), id="all_thinking_dropped"),
    ],
)
@pytest.mark.parametrize("model", BOUND)
def test_what_is_not_in_the_prefix_may_change(model: str, change: Callable[[Any], Any]) -> None:
    assert refusal(change(session(model, 3))) == ""


def test_system_text_in_the_history_stays_where_it_was_inserted() -> None:
    provider = player("anthropic")
    body = after(provider, bare(MESSAGES, "claude-opus-5-5"))
    body["messages"].append({"role": "system", "content": "Now execute."})
    kept = after(provider, body)
    moved = json.loads(json.dumps(kept))
    moved["messages"].append(moved["messages"].pop(3))

    assert refusal(kept) == ""
    assert "bound to a different conversation" in refusal(moved)


def test_thinking_missing_in_the_middle_is_refused() -> None:
    assert "cannot be modified" in refusal(without_thinking(session("claude-opus-4-8", 3), 1))


def test_changed_text_of_thinking_is_refused() -> None:
    body = session("claude-opus-4-8", 1)
    body["messages"][1]["content"][0]["thinking"] = "Another thought."

    assert "blocks in the latest assistant message cannot be modified" in refusal(body)


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-8", "claude-haiku-5-5"])
@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": "x", "signature": base64.b64encode(b"foreign").decode()},
        {"type": "thinking", "thinking": "x", "signature": ""},
        {"type": "thinking", "thinking": "x", "signature": "EqMC+/=="},
    ],
    ids=["base64", "empty", "no_base64"],
)
def test_foreign_signature_is_always_refused(model: str, block: dict[str, Any]) -> None:
    history = [said("hi"), {"role": "assistant", "content": [block]}, said("go on")]

    told = refusal(bare(MESSAGES, model, messages=history))

    assert told == "messages.1.content.0: Invalid `signature` in `thinking` block"


def test_foreign_redacted_thinking_is_refused() -> None:
    block = {"type": "redacted_thinking", "data": "eA=="}
    history = [said("hi"), {"role": "assistant", "content": [block]}, said("go on")]

    told = refusal(bare(MESSAGES, "claude-opus-4-8", messages=history))

    assert told == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"


@pytest.mark.parametrize(
    ("maker", "asked", "reads"),
    [
        ("claude-opus-5-5", "claude-haiku-4-5", False),
        ("claude-opus-5-5", "claude-sonnet-5-5", False),
        ("claude-opus-5", "claude-sonnet-5-5", False),
        ("claude-opus-4-8", "claude-haiku-5-5", False),
        ("claude-fable-5-1", "claude-opus-5-5", False),
        ("claude-opus-5-5", "claude-fable-5-1", True),
        ("claude-haiku-4-5", "claude-opus-5-5", True),
        ("claude-haiku-5-5", "claude-opus-4-8", True),
    ],
)
def test_thinking_that_the_asked_model_cannot_read_is_left_out_silently(
    maker: str, asked: str, *, reads: bool
) -> None:
    body = {**session(maker, 1), "model": asked}
    # What is left out is not looked at; what is read may not be changed.
    body["messages"][1]["content"][0]["thinking"] = "Another thought."

    assert bool(refusal(body)) is reads


def test_thinking_of_the_first_model_is_readable_again_on_return() -> None:
    provider = player("anthropic")
    body = session("claude-opus-5-5", 2)
    for _ in range(3):
        body = after(provider, body, "claude-haiku-4-5")

    assert refusal(body) == ""
    assert "bound" in refusal({**body, "system": "else"})
    # Clients delete the thinking of the other model; that does not count as missing.
    assert refusal(without_thinking(body, 2, 3, 4)) == ""


def test_strict_provider_makes_the_signature_even_where_the_script_gives_one() -> None:
    turn = Turn(reasoning="Look.", encrypted="literal", text="hi")
    script = Script(version=1, scripts=(Scripted(turns=(turn,)),))
    plain, strict = Player(script, lambda: 0.0), Player(script, lambda: 0.0, "anthropic")
    body = bare(MESSAGES, "claude-opus-4-8")

    made = [ask(each, MESSAGES, body)[1]["content"][0]["signature"] for each in (plain, strict)]

    assert made[0] == "literal"
    assert made[1] not in ("literal", "")


# --- OpenAI


def responses_session(provider: Player, headers: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the body that follows the first answer on Responses."""
    body = bare(RESPONSES, "gpt-5.5", **ENCRYPTED)
    _, answer = ask(provider, RESPONSES, body, headers)
    call = answer["output"][-1]
    done = {"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}
    return {**body, "input": [*body["input"], *answer["output"], done]}


@pytest.mark.parametrize(
    ("model", "key", "status"),
    [("gpt-5.5", "Bearer a", 200), ("gpt-5.5", "Bearer b", 400), ("gpt-5.4", "Bearer a", 400)],
    ids=["same", "other_account", "other_model"],
)
def test_encrypted_reasoning_is_read_by_its_model_and_account_only(
    model: str, key: str, status: int
) -> None:
    body = responses_session(player("openai"), {"authorization": "Bearer a"})

    got, told = ask(player("openai"), RESPONSES, {**body, "model": model}, {"authorization": key})

    assert got == status, told
    if status == 400:
        assert told["error"]["code"] == "invalid_encrypted_content"


def test_encrypted_reasoning_is_sent_only_where_it_is_asked_for() -> None:
    _, plain = ask(player("openai"), RESPONSES, bare(RESPONSES, "gpt-5.5"))
    _, asked = ask(player("openai"), RESPONSES, bare(RESPONSES, "gpt-5.5", **ENCRYPTED))

    assert "encrypted_content" not in plain["output"][0]
    assert asked["output"][0]["encrypted_content"]


def test_compaction_of_the_provider_comes_back_and_that_of_another_does_not() -> None:
    body = bare(RESPONSES, "gpt-5.5")
    _, own = ask(player("openai"), RESPONSES, body, path="/v1/responses/compact")
    plain = Player(SCRIPT, lambda: 0.0)
    _, foreign = ask(plain, RESPONSES, body, path="/v1/responses/compact")

    answers = [
        ask(player("openai"), RESPONSES, {**body, "input": each["output"]})[0]
        for each in (own, foreign)
    ]

    assert answers == [200, 400]


# --- Gemini


@pytest.mark.parametrize("stream", [False, True])
def test_first_call_of_gemini_is_signed_and_is_taken_back(*, stream: bool) -> None:
    turn = Turn(calls=(Call(name="a"), Call(name="b")))
    script = Script(version=1, scripts=(Scripted(turns=(turn,)),))
    provider = Player(script, lambda: 0.0, "gemini")
    body = bare(CHAT, "gemini-3.1-pro", stream=stream)
    raw = json.dumps(body).encode()
    reply = provider.play("POST", "/v1/chat/completions", (), raw)

    calls = called(reply.chunks, stream=stream)

    assert "extra_content" in calls[0]
    assert "extra_content" not in calls[1]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    history = [*body["messages"], message, *results]
    again = bare(CHAT, "gemini-3.1-pro", messages=history)
    assert ask(provider, CHAT, again)[0] == 200
    calls[0].pop("extra_content")
    assert ask(provider, CHAT, again)[0] == 400


def called(chunks: tuple[bytes, ...], *, stream: bool) -> list[dict[str, Any]]:
    """Return the calls of an answer on Chat as a client keeps them."""
    if not stream:
        message = json.loads(b"".join(chunks))["choices"][0]["message"]
        return list(message["tool_calls"])
    events = [json.loads(c[6:]) for c in chunks if c.startswith(b"data: {")]
    deltas = [d for e in events for d in e["choices"][0]["delta"].get("tool_calls", ())]
    calls = [dict(delta) for delta in deltas if "id" in delta]
    for call in calls:
        del call["index"]
        call["function"]["arguments"] = "{}"
    return calls


def said(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def marked(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
