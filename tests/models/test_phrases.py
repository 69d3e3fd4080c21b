"""What a failed answer means: every phrase of the table, and what the table must not confuse."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
import tomli

import switchyard_core.models
from switchyard_core.models.phrases import meaning_of

TABLE = tomli.loads((files(switchyard_core.models) / "phrases.toml").read_text("utf-8"))
PHRASES = [(row["kind"], text) for row in TABLE["phrase"] for text in row["any"]]
#: A phrase of two rows; the other one counts.
BEATEN = {("not_overflow", "string_above_max_length"): "parameter"}


def said(text: str) -> bytes:
    """Return an error body with a text, escaped as JSON escapes it."""
    return json.dumps({"error": {"type": "invalid", "message": text}}).encode()


@pytest.mark.parametrize(("kind", "text"), PHRASES)
def test_every_phrase_gives_its_kind_whatever_is_around_it(kind, text):
    wanted = BEATEN.get((kind, text), kind)
    text = f"Oops: {text.replace('|', ' (req 7) ').upper()} at 12"

    assert meaning_of(text, 400) == wanted
    assert meaning_of(said(text), 400) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 212345 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
        "Your input exceeds the context window of this model.",
        "This model's maximum context length is 128000 tokens. However, you requested 130000.",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "Please reduce the length of the messages or completion.",
        "prompt token count of 130000 exceeds the limit of 128000",
        "the request exceeds the available context size, try increasing it",
        "tokens to keep from the initial prompt is greater than the context length",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)",
        "Input is too long for requested model.",
    ],
)
def test_common_overflow_texts_are_overflows(text):
    assert meaning_of(said(text), 400) == "overflow"


@pytest.mark.parametrize("status", TABLE["beside_the_request"])
def test_limit_of_requests_is_not_an_overflow(status):
    assert meaning_of(said("token limit exceeded"), status) == ""


def test_words_of_a_rate_limit_beat_those_of_an_overflow():
    text = "Rate limit reached: token limit exceeded"

    assert meaning_of(said(text), 400) == "not_overflow"


def test_adaptive_thinking_is_a_parameter_and_not_a_signature():
    assert meaning_of(said("adaptive thinking is not supported on this model"), 400) == "parameter"


def test_reasoning_of_another_model_beats_the_code_of_a_parameter():
    text = "Expected an array with maximum length 0 (array_above_max_length)"

    assert meaning_of(said(text), 400) == "signature"


@pytest.mark.parametrize(
    "body",
    [
        rb'{"error":"is not supported for this model. use \"thinking.type.adaptive\""}',
        rb'{"raw":"{\"m\":\"is deprecated: unsupported value: \\\"x\\\"\"}"}',
        rb'{"error":"is not supported for this model. Use \u0022thinking.type.adaptive\u0022"}',
    ],
    ids=["escaped", "quoted_twice", "by_number"],
)
def test_escaped_quotes_of_a_body_do_not_hide_a_phrase(body):
    assert meaning_of(body, 400) == "parameter"


@pytest.mark.parametrize("status", [200, 400, 529])
def test_overload_is_told_by_its_word_with_any_status(status):
    assert meaning_of(b'{"type":"error","error":{"type":"overloaded_error"}}', status) == (
        "overloaded"
    )


@pytest.mark.parametrize("body", [b"", b"\xff\x00", b"{}", b"upstream error"])
def test_unknown_answer_means_nothing(body):
    assert meaning_of(body, 500) == ""


def test_refusal_is_told_by_its_word():
    assert meaning_of(b'{"stop_reason": "refusal"}', 200) == "refusal"
