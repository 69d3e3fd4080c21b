"""A turn made ready for a request."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.answering import ModelUsage
from switchyard_core.scripted.answer import Answer, as_bytes, make_answer, pieces
from switchyard_core.scripted.select import Asked
from switchyard_core.wire import format_of
from tests.upstream.loopback import script_of


def answer(turn: dict[str, Any], **body: Any) -> Answer:
    (made,) = script_of(turn).scripts[0].turns
    asked = Asked(
        format=format_of("openai_responses"), body=body, raw=json.dumps(body).encode(), headers={}
    )
    return make_answer(made, asked, 7)


def calls(turn: dict[str, Any], **body: Any) -> list[dict[str, Any]]:
    """Return the tool calls of a whole answer in Chat Completions."""
    (made,) = script_of(turn).scripts[0].turns
    asked = Asked(
        format=format_of("openai_chat"), body=body, raw=json.dumps(body).encode(), headers={}
    )
    message = make_answer(made, asked, 7).whole(asked)["choices"][0]["message"]
    return list(message["tool_calls"])


def test_ids_follow_from_the_body_alone() -> None:
    turn = {"calls": [{"name": "a"}, {"name": "b"}]}

    first, again, other = answer(turn, n=1), answer(turn, n=1), answer(turn, n=2)

    assert first == again
    assert first.key != other.key
    assert len({call["id"] for n in (1, 2) for call in calls(turn, n=n)}) == 4


def test_call_id_of_the_script_is_kept_without_a_prefix() -> None:
    given, made = calls({"calls": [{"name": "a", "id": "mine"}, {"name": "b"}]})

    assert given["id"] == "mine"
    assert made["id"].startswith("call_")


def test_arguments_are_text_in_every_case() -> None:
    made = calls(
        {
            "calls": [
                {"name": "a", "arguments": {"ü": [1, 2.5]}},
                {"name": "a", "arguments": "{not json"},
                {"name": "a", "input": "free\ntext"},
                {"name": "a"},
            ]
        }
    )

    assert [call["function"]["arguments"] for call in made] == [
        '{"ü":[1,2.5]}', "{not json", '{"input":"free\\ntext"}', "{}",
    ]  # fmt: skip


def test_any_of_takes_the_first_that_is_offered_or_else_the_last() -> None:
    options = [
        {"name": "read"},
        {"name": "x", "namespace": "mcp"},
        {"any_of": [{"name": "deep"}, {"name": "last"}]},
    ]
    turn = {"calls": [{"any_of": options}]}

    def picked(*tools: dict[str, Any]) -> str:
        return answer(turn, tools=list(tools)).calls[0].name

    assert picked({"name": "other"}, {"name": "read"}) == "read"
    assert picked({"type": "namespace", "name": "mcp", "tools": [{"name": "x"}]}) == "x"
    assert picked({"name": "deep"}) == "deep"
    assert picked({"name": "x"}) == "last"


def test_usage_is_estimated_unless_given() -> None:
    estimated = answer({"text": "x" * 40}, pad="y" * 400)
    given_ = answer({"text": "x", "usage": {"input": 0, "output": 9, "cached": 3}})

    assert estimated.usage == ModelUsage(input_tokens=102, output_tokens=10)
    assert given_.usage == ModelUsage(output_tokens=9, cached_tokens=3)


def test_stop_follows_from_the_calls_unless_given_in_any_formats_word() -> None:
    call = {"calls": [{"name": "a"}]}

    assert answer({}).stop == "stop"
    assert answer(call).stop == "calls"
    assert answer({**call, "stop": "max_tokens"}).stop == "length"
    assert answer({"stop": "pause_turn"}).stop == "pause_turn"


@given(st.text())
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_words_and_half_characters_are_written_as_they_are() -> None:
    assert as_bytes("[DONE]") == b"[DONE]"
    assert as_bytes({"é": "\ud800\u2028"}) == '{"é":"\\ud800\u2028"}'.encode()
