"""Settings of a Responses request: read, and written."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.testing import validity_problems
from switchyard_core.wire.neutral import NeutralRequest, Schema, Turn, Words
from tests.wire.responses.bodies import FUNCTION, read, refused, written

HI = (Turn(role="user", parts=(Words(text="hi"),)),)


def test_settings_with_a_counterpart_keep_their_json() -> None:
    request = read(
        temperature=0.5,
        top_p=1,
        top_logprobs=3,
        user="u",
        metadata={"a": "b"},
        service_tier="flex",
        store=True,
        prompt_cache_key="k",
        safety_identifier="s",
        include=["message.output_text.logprobs"],
        text={"verbosity": "low"},
    )

    assert request.settings == {
        "temperature": b"0.5",
        "top_p": b"1",
        "top_logprobs": b"3",
        "user": b'"u"',
        "metadata": b'{"a":"b"}',
        "service_tier": b'"flex"',
        "store": b"true",
        "cache_key": b'"k"',
        "safety_identifier": b'"s"',
        "logprobs": b"true",
        "verbosity": b'"low"',
    }
    assert request.told.lines == []


def test_what_a_request_asks_of_its_model_is_read() -> None:
    request = read(
        tools=[FUNCTION],
        parallel_tool_calls=False,
        reasoning={"effort": "high"},
        max_output_tokens=64,
        stream=True,
    )

    asked = request.model, request.parallel, request.effort, request.limit, request.stream
    assert asked == ("gpt-5.5", False, "high", 64, True)
    assert request.told.lines == []


def test_each_form_of_an_answer_is_read() -> None:
    schema = {"type": "object"}
    named = {"type": "json_schema", "name": "n", "schema": schema}
    cases: dict[str, tuple[Any, Schema | None]] = {
        "text": ({"type": "text"}, None),
        "object": ({"type": "json_object"}, Schema(schema=b"")),
        "schema": (
            {**named, "strict": True, "description": "d"},
            Schema(schema=b'{"type":"object"}', name="n", description="d", strict=True),
        ),
        "loose": (named, Schema(schema=b'{"type":"object"}', name="n")),
    }
    found = {name: read(text={"format": form}).schema for name, (form, _) in cases.items()}

    assert found == {name: wanted for name, (_, wanted) in cases.items()}


def test_settings_without_a_counterpart_are_named() -> None:
    request = read(
        client_metadata={"a": "b"},
        truncation="auto",
        background=True,
        max_tool_calls=3,
        stream_options={"include_obfuscation": False},
        reasoning={"effort": "low", "summary": "auto", "context": "all_turns"},
        include=["reasoning.encrypted_content"],
        text={"format": {"type": "grammar", "name": "g"}, "other": 1},
    )

    assert request.told.lost == []
    assert sorted(request.told.left_out) == [
        "background",
        "client_metadata",
        "include (reasoning.encrypted_content)",
        "max_tool_calls",
        "reasoning.context",
        "reasoning.summary",
        "stream_options",
        "text.format (grammar)",
        "text.other",
        "truncation",
    ]


def test_what_asks_for_nothing_is_not_worth_a_word() -> None:
    request = read(
        truncation="disabled",
        background=False,
        metadata={},
        include=[],
        previous_response_id=None,
        store=None,
        max_tool_calls=None,
        reasoning={"effort": None, "summary": None},
        text={},
    )

    assert (request.told.lines, request.settings, request.effort) == ([], {}, "")


def test_settings_of_a_wrong_type_are_named_and_left_out() -> None:
    cases: dict[str, Any] = {
        "temperature": "warm",
        "metadata": [1],
        "store": 1,
        "include": "all",
        "text": "json",
        "reasoning": "high",
        "max_output_tokens": "64",
        "stream": "yes",
        "user": 7,
        "parallel_tool_calls": 1,
        "prompt_cache_key": {"a": 1},
    }
    wrong = {}
    odd = read(max_output_tokens=0.5).told.left_out
    assert odd == ["max_output_tokens, which is not a whole number"]
    for key, value in cases.items():
        request = read(**{key: value})
        lines, others = request.told.left_out, read()
        request.told.left_out = []
        if len(lines) != 1 or not lines[0].startswith(f"{key}, which is not") or request != others:
            wrong[key] = lines
    assert wrong == {}


# --- writing -----------------------------------------------------------------------------


def body_of(**asked: Any) -> tuple[dict[str, Any], list[str]]:
    request = NeutralRequest(**{"model": "gpt-5.5", "turns": HI, **asked})
    body = written(request)
    assert validity_problems("openai_responses", body, sdk=True) == []
    return body, request.told.lines


def test_a_bare_request_says_no_more_than_that_nothing_is_to_be_kept() -> None:
    body, told = body_of()

    content = [{"type": "input_text", "text": "hi"}]
    assert list(body) == ["model", "input", "store"]
    assert body["input"] == [{"type": "message", "role": "user", "content": content}]
    assert (body["store"], told) == (False, [])


def test_settings_are_written_under_their_keys() -> None:
    body, told = body_of(
        instructions=(Words(text="Be brief."), Words(text="Be kind.")),
        effort="high",
        limit=64,
        stream=True,
        schema=Schema(schema=b'{"type": "object"}', name="n", description="d", strict=False),
        settings={
            "temperature": b"1.10",
            "cache_key": b'"k"',
            "verbosity": b'"low"',
            "logprobs": b"true",
            "top_logprobs": b"2",
            "store": b"true",
            "service_tier": b'"standard_only"',
            "metadata": b'{"a":"b"}',
        },
    )

    del body["model"], body["input"]
    form = {"type": "json_schema", "name": "n", "description": "d", "strict": False}
    assert body == {
        "instructions": "Be brief.\n\nBe kind.",
        "text": {"format": {**form, "schema": {"type": "object"}}, "verbosity": "low"},
        "reasoning": {"effort": "high"},
        "max_output_tokens": 64,
        "include": ["message.output_text.logprobs"],
        "temperature": 1.1,
        "top_logprobs": 2,
        "metadata": {"a": "b"},
        "prompt_cache_key": "k",
        "service_tier": "default",
        "store": True,
        "stream": True,
    }
    assert told == []


def test_any_json_object_may_be_asked_for() -> None:
    body, _ = body_of(schema=Schema(schema=b""))

    assert body["text"] == {"format": {"type": "json_object"}}


def test_what_has_no_place_is_named() -> None:
    body, told = body_of(
        stop=("END", "STOP"),
        settings={
            "top_k": b"4",
            "seed": b"1",
            "frequency_penalty": b"0.5",
            "presence_penalty": b"1",
            "service_tier": b'"batch"',
            **dict.fromkeys(("safety_identifier", "user", "cache_key"), b'"%s"' % (b"x" * 65)),
            "metadata": b'{"session": 7}',
        },
    )

    assert refused(json.dumps(body).encode()) == []
    assert told == [
        "left out user, which is longer than 64 characters",
        "left out metadata, of which some values are not texts",
        "left out service_tier (batch)",
        "left out prompt_cache_key, which is longer than 64 characters",
        "left out safety_identifier, which is longer than 64 characters",
        "left out stop",
        "left out top_k",
        "left out seed",
        "left out frequency_penalty",
        "left out presence_penalty",
    ]


def test_a_limit_below_the_least_is_raised() -> None:
    body, told = body_of(limit=1)

    assert refused(json.dumps(body).encode()) == []
    assert body["max_output_tokens"] == 16
    assert told == ["raised the limit of 1 tokens to 16, the least"]


def test_instructions_alone_are_the_history() -> None:
    body, _ = body_of(turns=(), instructions=(Words(text="Write a poem."),))

    content = [{"type": "input_text", "text": "Write a poem."}]
    assert body["input"] == [{"type": "message", "role": "developer", "content": content}]
    assert "instructions" not in body
