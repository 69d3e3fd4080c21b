from __future__ import annotations

import json

import pytest

from switchyard_core.testing import Call, conversation
from switchyard_core.wire import WIRE_FORMATS

PROMPT = 'Plan "first".\nThen act.'


def planning(position: str = "prepend") -> tuple[str, dict[str, str]]:
    return ("insert_planning_prompt", {"text": PROMPT, "position": position})


# --- Chat --------------------------------------------------------------------------------


def test_chat_prepend_is_a_new_first_system_message(rewrite):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}

    out, reports = rewrite("openai_chat", body, planning())

    assert out["messages"] == [{"role": "system", "content": PROMPT}, *body["messages"]]
    assert reports[0].changes == ("added a system message as messages[0]",)


def test_chat_prepend_takes_the_role_of_the_callers_first_instruction(rewrite):
    body = {"messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": "u"}]}

    out, _ = rewrite("openai_chat", body, planning())

    assert out["messages"][0] == {"role": "developer", "content": PROMPT}
    assert out["messages"][1:] == body["messages"]


@pytest.mark.parametrize("role", [b'"developer"', b'"\\u0064eveloper"'], ids=["plain", "escaped"])
def test_chat_takes_the_role_of_an_instruction_that_stands_later(rewrite, role):
    body = b'{"messages": [{"role": "user", "content": "u"}, {"role": %s, "content": "d"}]}' % role

    out, _ = rewrite("openai_chat", body, planning())

    roles = [message["role"] for message in json.loads(out)["messages"]]
    assert roles == ["developer", "user", "developer"]


def test_chat_append_follows_the_last_leading_instruction(rewrite):
    body = {
        "messages": [
            {"role": "system", "content": "a"},
            {"role": "developer", "content": "b"},
            {"role": "user", "content": "u"},
            {"role": "system", "content": "late"},
        ]
    }

    out, _ = rewrite("openai_chat", body, planning("append"))

    assert [m["role"] for m in out["messages"]] == [
        "system",
        "developer",
        "system",
        "user",
        "system",
    ]
    assert out["messages"][2]["content"] == PROMPT


def test_chat_empty_history_gets_the_prompt_alone(rewrite):
    out, _ = rewrite("openai_chat", {"messages": []}, planning("append"))

    assert out["messages"] == [{"role": "system", "content": PROMPT}]


# --- Responses ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "expected"),
    [("prepend", f"{PROMPT}\n\ntheirs"), ("append", f"theirs\n\n{PROMPT}")],
)
def test_responses_instructions_string_keeps_its_text(rewrite, position, expected):
    body = {"instructions": "theirs", "input": "hi"}

    out, _ = rewrite("openai_responses", body, planning(position))

    assert out == {"instructions": expected, "input": "hi"}


def test_responses_instructions_keep_their_very_escapes(rewrite):
    body = rb'{"instructions":"caf\u00e9 \/ \ud83d","input":"hi"}'

    out, _ = rewrite("openai_responses", body, planning())

    assert rb'\n\ncaf\u00e9 \/ \ud83d","input"' in out


@pytest.mark.parametrize("absent", [{}, {"instructions": None}, {"instructions": ""}])
def test_responses_without_instructions_prompt_stands_alone(rewrite, absent):
    out, _ = rewrite("openai_responses", {"model": "m", **absent, "input": []}, planning())

    assert out == {"model": "m", "instructions": PROMPT, "input": []}
    assert list(out) == ["model", "instructions", "input"]


@pytest.mark.parametrize(("position", "place"), [("prepend", 0), ("append", 1)])
def test_responses_instructions_list_stays_a_list(rewrite, position, place):
    theirs = {"role": "developer", "content": "theirs"}
    ours = {"type": "message", "role": "developer", "content": PROMPT}

    out, _ = rewrite(
        "openai_responses", {"instructions": [theirs], "input": []}, planning(position)
    )

    assert out["instructions"].index(ours) == place
    assert len(out["instructions"]) == 2


def test_responses_append_without_instructions_follows_leading_developer_items(rewrite):
    lite = {"type": "additional_tools", "role": "developer", "tools": []}
    developer = {"type": "message", "role": "developer", "content": "d"}
    user = {"type": "message", "role": "user", "content": "u"}

    out, _ = rewrite("openai_responses", {"input": [lite, developer, user]}, planning("append"))

    assert [item["role"] for item in out["input"]] == [
        "developer",
        "developer",
        "developer",
        "user",
    ]
    assert out["input"][2]["content"] == PROMPT
    assert "instructions" not in out


# --- Messages ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "expected"),
    [("prepend", f"{PROMPT}\n\ntheirs"), ("append", f"theirs\n\n{PROMPT}")],
)
def test_messages_system_string_keeps_its_text(rewrite, position, expected):
    out, _ = rewrite("anthropic_messages", {"system": "theirs", "messages": []}, planning(position))

    assert out["system"] == expected


@pytest.mark.parametrize(("position", "place"), [("prepend", 0), ("append", 2)])
def test_messages_system_blocks_keep_their_marks_and_ours_has_none(rewrite, position, place):
    blocks = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"type": "text", "text": "b", "cache_control": {"type": "ephemeral"}},
    ]

    out, _ = rewrite("anthropic_messages", {"system": blocks, "messages": []}, planning(position))

    assert out["system"][place] == {"type": "text", "text": PROMPT}
    assert [block for block in out["system"] if "cache_control" in block] == blocks


def test_messages_without_system_gets_one_before_messages(rewrite):
    out, _ = rewrite("anthropic_messages", {"model": "m", "messages": []}, planning())

    assert list(out.items()) == [("model", "m"), ("system", PROMPT), ("messages", [])]


@pytest.mark.parametrize("position", ["prepend", "append"])
@pytest.mark.parametrize(
    "body",
    [
        ("anthropic_messages", {"system": "theirs", "messages": []}),
        ("anthropic_messages", {"system": [{"type": "text", "text": "theirs"}], "messages": []}),
        ("openai_responses", {"instructions": "theirs", "input": []}),
        ("openai_responses", {"instructions": [], "input": []}),
        ("openai_responses", {"input": []}),
        ("openai_chat", {"messages": [{"role": "system", "content": "theirs"}]}),
    ],
    ids=["system", "blocks", "instructions", "list", "none", "chat"],
)
def test_two_prompts_together_are_each_added_once(rewrite, body, position):
    wire_format, content = body

    out, _ = rewrite(
        wire_format, content, planning(position), ("insert_system_prompt", {"text": "target"})
    )

    assert str(out).count("target") == 1
    assert str(out).count("Then act.") == 1


def test_planning_prompt_stands_before_the_targets_own(rewrite):
    body = {"system": "theirs", "messages": []}

    out, _ = rewrite(
        "anthropic_messages", body, planning(), ("insert_system_prompt", {"text": "target"})
    )

    assert out["system"] == f"{PROMPT}\n\ntarget\n\ntheirs"


def test_chat_prompt_that_stands_there_as_a_part_is_not_added_again(rewrite):
    part = [{"type": "text", "text": PROMPT}]
    body = {"messages": [{"role": "system", "content": part}]}

    assert rewrite("openai_chat", body, planning())[0] == body


def test_chat_role_is_that_of_the_first_instruction_wherever_it_stands(rewrite):
    body = {"messages": [{"role": "user", "content": "u"}, {"role": "developer", "content": "d"}]}

    out, _ = rewrite("openai_chat", body, planning())

    assert [m["role"] for m in out["messages"]] == ["developer", "user", "developer"]


@pytest.mark.parametrize("value", [5, {}, False])
@pytest.mark.parametrize(
    ("wire_format", "key"), [("openai_responses", "instructions"), ("anthropic_messages", "system")]
)
def test_instructions_that_no_provider_takes_are_left_to_it(rewrite, wire_format, key, value):
    body = {key: value, "input": [], "messages": []}

    assert rewrite(wire_format, body, planning())[0] == body


# --- behind the results of a call --------------------------------------------------------------


def behind(number: int):
    return ("append_user_text", {"text": "Carry on.", "behind_call": number})


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_text_is_behind_the_results_of_a_call_whatever_follows(rewrite, wire_format):
    begun = conversation(wire_format).user("fix").reads("look", path="a")
    now = begun.parallel(Call(name="edit", arguments={}), Call(name="look", arguments={}))
    later = now.user("and then?").reads("look", path="b").says("Done.").user("thanks")

    at_once, _ = rewrite(wire_format, now.build(), behind(1))
    in_place, reports = rewrite(wire_format, later.build(), behind(1))
    plain, _ = rewrite(wire_format, now.user("and then?").build(), behind(1))

    key = "input" if wire_format == "openai_responses" else "messages"
    asked = plain[key]
    assert in_place[key][: len(asked)] == asked
    assert "Carry on." in str(at_once[key][-1])
    assert len(reports[0].changes) == 1
    assert str(in_place).count("Carry on.") == 1


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_text_waits_for_the_results_of_a_call(rewrite, wire_format):
    story = conversation(wire_format).user("fix")
    open_call = story.parallel(
        Call(name="edit", arguments={}), Call(name="look", arguments={}, answered=False)
    )
    for body, number in ((open_call.build(), 0), (story.build(), 0), (open_call.build(), 7)):
        out, reports = rewrite(wire_format, body, behind(number))

        assert (out, reports[0].changes) == (body, ())
