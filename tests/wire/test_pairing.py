"""Calls and their results, put together for a provider."""

from __future__ import annotations

from typing import Any

from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    Call,
    NeutralPart,
    Result,
    Told,
    ToolName,
    Turn,
    Words,
)
from switchyard_core.wire.pairing import paired

MESSAGES, RESPONSES = FORMATS["anthropic_messages"], FORMATS["openai_responses"]


def turn(role: Any, *parts: NeutralPart) -> Turn:
    return Turn(role=role, parts=parts)


def call(call_id: str, *, custom: bool = False) -> Call:
    return Call(id=call_id, tool=ToolName(name="read"), custom=custom)


def result(call_id: str, text: str) -> Result:
    return Result(call_id=call_id, parts=(Words(text=text),))


def shown(*turns: Turn, target: Any = RESPONSES) -> tuple[list[tuple[str, list[str]]], Told]:
    """Return who says what: ids of calls, id and text of results, texts."""
    told = Told()
    made = [
        (
            each.role,
            [
                part.id
                if isinstance(part, Call)
                else f"{part.call_id}={part.parts[0].text}"  # type: ignore[union-attr]
                if isinstance(part, Result)
                else part.text  # type: ignore[union-attr]
                for part in each.parts
            ],
        )
        for each in paired(turns, target, told)
    ]
    return made, told


def test_results_follow_their_turn_in_the_order_of_its_calls() -> None:
    found, told = shown(
        turn("assistant", call("a"), Words(text="and"), call("b")),
        turn("tool", result("b", "2")),
        turn("user", Words(text="wait")),
        turn("tool", result("a", "1")),
        turn("user", Words(text="go on")),
    )

    assert found == [
        ("assistant", ["a", "and", "b"]),
        ("tool", ["a=1", "b=2"]),
        ("user", ["wait", "go on"]),
    ]
    assert told.lines == []


def test_calls_without_a_result_get_one_that_says_so() -> None:
    found, told = shown(turn("assistant", call("a"), call("b")), turn("tool", result("b", "2")))

    lost = "[no result was recorded for this tool call]"
    assert found[1] == ("tool", [f"a={lost}", "b=2"])
    assert told.changed == ["answered the call of `read`, which has no result"]


def test_results_without_a_call_are_named_and_their_neighbours_join() -> None:
    found, told = shown(
        turn("tool", result("x", "0")),
        turn("user", Words(text="a")),
        turn("tool", result("early", "1")),
        turn("user", Words(text="b")),
        turn("assistant", call("early")),
        turn("tool", result("early", "2"), result("early", "3")),
    )

    assert found == [
        ("user", ["a", "b"]),
        ("assistant", ["early"]),
        ("tool", ["early=2"]),
    ]
    assert told.lost == [
        "the result of the call `x`, which is missing",
        "the result of the call `early`, which is missing",
        "the result of the call `early`, which is missing",
    ]


def test_calls_without_an_id_get_the_same_one_each_time() -> None:
    begin = (
        turn("assistant", call(""), call("")),
        turn("tool", result("", "1"), result("", "2")),
    )
    short, _ = shown(*begin)
    longer, _ = shown(*begin, turn("assistant", call("c")), turn("tool", result("c", "3")))

    first, second = short[0][1]
    assert first != second
    assert short[1][1] == [f"{first}=1", f"{second}=2"]
    assert longer[:2] == short


def test_an_id_that_is_used_again_becomes_another_one() -> None:
    found, _ = shown(
        turn("assistant", call("a")),
        turn("tool", result("a", "1")),
        turn("assistant", call("a")),
        turn("tool", result("a", "2")),
    )

    again = found[2][1][0]
    assert again not in ("a", "")
    assert found[3] == ("tool", [f"{again}=2"])


def test_ids_are_legal_at_the_target() -> None:
    long = "x" * 70
    found, _ = shown(
        turn("assistant", call("functions.edit:0"), call(long + "1"), call(long + "2")),
        turn(
            "tool", *(result(each, "ok") for each in (long + "2", "functions.edit:0", long + "1"))
        ),
        target=MESSAGES,
    )

    ids = found[0][1]
    assert all(MESSAGES.legal_id.fullmatch(each) for each in ids)
    assert len(set(ids)) == 3
    assert found[1][1] == [f"{each}=ok" for each in ids]


def test_results_are_of_the_sort_of_their_call() -> None:
    turns = paired(
        (turn("assistant", call("a", custom=True)), turn("tool", result("a", "1"))),
        RESPONSES,
        Told(),
    )

    assert turns[1].parts == (Result(call_id="a", parts=(Words(text="1"),), custom=True),)
