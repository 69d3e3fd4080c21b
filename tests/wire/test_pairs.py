from __future__ import annotations

import re

import pytest

REMAP = ("remap_tool_ids", {"when": "always"})
REPAIR = ("repair_tool_pairs", {"when": "always"})
EMPTY = ("drop_empty_content", {"when": "always"})
LOST = "[no result was recorded for this tool call]"


def chat_call(call_id: str) -> dict:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def use(call_id: str) -> dict:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def result(call_id: str, content: object = "ok") -> dict:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


# --- ids ---------------------------------------------------------------------------------


def test_messages_illegal_id_is_hashed_alike_in_call_and_result(rewrite):
    body = {
        "messages": [
            {"role": "assistant", "content": [use("call|1"), use("legal_1")]},
            {"role": "user", "content": [result("call|1"), result("legal_1")]},
        ]
    }

    out, reports = rewrite("anthropic_messages", body, REMAP)

    (first, second), (answer, other) = (m["content"] for m in out["messages"])
    assert first["id"] == answer["tool_use_id"] != "call|1"
    assert re.fullmatch(r"[a-zA-Z0-9_-]+", first["id"])
    assert second["id"] == other["tool_use_id"] == "legal_1"
    assert reports[0].changes == ("renamed 1 tool ids",)


@pytest.mark.parametrize(("length", "kept"), [(40, True), (41, False)])
def test_chat_ids_are_legal_up_to_forty_characters(rewrite, length, kept):
    call_id = "x" * length
    body = {
        "messages": [
            {"role": "assistant", "content": None, "tool_calls": [chat_call(call_id)]},
            {"role": "tool", "tool_call_id": call_id, "content": "ok"},
        ]
    }

    out, _ = rewrite("openai_chat", body, REMAP)

    new = out["messages"][0]["tool_calls"][0]["id"]
    assert out["messages"][1]["tool_call_id"] == new
    assert (new == call_id) is kept
    assert len(new) <= 40


def test_responses_ids_with_a_common_start_do_not_collide(rewrite):
    ids = ["x" * 70 + "a", "x" * 70 + "b"]
    body = {
        "input": [
            {"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"} for i in ids
        ]
    }

    out, _ = rewrite("openai_responses", body, REMAP)

    new = [item["call_id"] for item in out["input"]]
    assert len(set(new)) == 2
    assert all(len(i) <= 64 for i in new)


def test_style_of_nine_characters(rewrite):
    body = {
        "messages": [{"role": "assistant", "content": None, "tool_calls": [chat_call("call_1")]}]
    }

    out, _ = rewrite(
        "openai_chat", body, ("remap_tool_ids", {"when": "always", "style": "alphanumeric_9"})
    )

    assert re.fullmatch(r"[a-zA-Z0-9]{9}", out["messages"][0]["tool_calls"][0]["id"])


# --- pairs -------------------------------------------------------------------------------


def test_responses_orphan_output_goes_and_open_call_gets_one(rewrite):
    body = {
        "input": [
            {"type": "function_call_output", "call_id": "gone", "output": "x"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "f", "input": ""},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "x"},
            {"role": "user", "content": "go on"},
            {"type": "function_call", "call_id": "c3", "name": "f", "arguments": "{}"},
        ]
    }

    out, reports = rewrite("openai_responses", body, REPAIR)

    assert out["input"][0] == body["input"][1]
    assert out["input"][1] == {"type": "function_call_output", "call_id": "c1", "output": LOST}
    assert out["input"][2:] == body["input"][2:]
    assert len(reports[0].changes) == 2


def test_responses_outputs_of_a_stored_history_stay(rewrite):
    body = {
        "previous_response_id": "r",
        "input": [{"type": "function_call_output", "call_id": "there", "output": "x"}],
    }

    out, _ = rewrite("openai_responses", body, REPAIR)

    assert out == body


def test_chat_orphan_result_goes_and_open_call_gets_one_behind_its_neighbours(rewrite):
    body = {
        "messages": [
            {"role": "tool", "tool_call_id": "gone", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [chat_call("c1"), chat_call("c2")],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "x"},
            {"role": "user", "content": "go on"},
            {"role": "assistant", "content": None, "tool_calls": [chat_call("c3")]},
        ]
    }

    out, _ = rewrite("openai_chat", body, REPAIR)

    assert [m.get("tool_call_id") for m in out["messages"]] == [None, "c1", "c2", None, None]
    assert out["messages"][2]["content"] == LOST
    assert out["messages"][3:] == body["messages"][3:]


@pytest.mark.parametrize(
    "follower",
    [
        {"role": "user", "content": "go on"},
        {"role": "user", "content": [{"type": "text", "text": "go on"}]},
    ],
    ids=["text", "blocks"],
)
def test_messages_open_call_gets_a_result_first_in_the_next_user_message(rewrite, follower):
    body = {"messages": [{"role": "assistant", "content": [use("c1")]}, follower]}

    out, _ = rewrite("anthropic_messages", body, REPAIR)

    after = out["messages"][1]
    assert after["role"] == "user"
    assert after["content"][0] == result("c1", LOST)
    assert "go on" in str(after)


def test_messages_orphan_result_goes_and_its_neighbours_stay(rewrite):
    text = {"type": "text", "text": "and this"}
    body = {
        "messages": [
            {"role": "assistant", "content": [use("c1")]},
            {"role": "user", "content": [result("gone"), result("c1"), text]},
        ]
    }

    out, _ = rewrite("anthropic_messages", body, REPAIR)

    assert out["messages"][1]["content"] == [result("c1"), text]


def test_messages_last_turn_may_be_open(rewrite):
    body = {
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [use("c")]}]
    }

    assert rewrite("anthropic_messages", body, REPAIR)[0] == body


def assistant(*blocks: dict) -> dict:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict) -> dict:
    return {"role": "user", "content": list(blocks)}


SAID = {"type": "text", "text": "hm"}


@pytest.mark.parametrize(
    "history",
    [
        [assistant(use("a"), use("b")), user(result("a")), user(result("b"))],
        [assistant(use("a")), assistant(use("b")), user(result("a"), result("b"))],
        [assistant(use("a")), user(SAID), user(result("a"))],
        [assistant(use("a")), {"role": "system", "content": "s"}, user(result("a"))],
    ],
    ids=["results_apart", "calls_apart", "text_first", "system_between"],
)
def test_messages_neighbours_of_one_role_are_one_turn(rewrite, history):
    body = {"messages": [{"role": "user", "content": "x"}, *history]}

    assert rewrite("anthropic_messages", body, REPAIR)[0] == body


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        (
            [assistant(use("a")), assistant(SAID), user(SAID), assistant(SAID), user(result("a"))],
            [
                assistant(use("a")),
                assistant(SAID),
                user(result("a", LOST), SAID),
                assistant(SAID),
                user(),
            ],
        ),
        (
            [assistant(use("a")), user(result("a"), result("a"))],
            [assistant(use("a")), user(result("a"))],
        ),
        (
            [assistant(use("a")), {"role": "system", "content": "s"}, assistant(SAID)],
            [
                assistant(use("a")),
                user(result("a", LOST)),
                {"role": "system", "content": "s"},
                assistant(SAID),
            ],
        ),
    ],
    ids=["late", "twice", "no_user_turn"],
)
def test_messages_result_in_another_place_is_as_good_as_none(rewrite, history, expected):
    body = {"messages": [{"role": "user", "content": "x"}, *history]}

    out, _ = rewrite("anthropic_messages", body, REPAIR)

    assert out["messages"][1:] == expected


def test_chat_late_and_repeated_results_are_mended(rewrite):
    call, ok = chat_call("c1"), {"role": "tool", "tool_call_id": "c1", "content": "ok"}
    made = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"messages": [made, {"role": "user", "content": "x"}, ok, made, ok, ok, made]}

    out, _ = rewrite("openai_chat", body, REPAIR)

    lost = {"role": "tool", "tool_call_id": "c1", "content": LOST}
    assert out["messages"] == [made, lost, {"role": "user", "content": "x"}, made, ok, made]


def test_chat_legacy_call_gets_a_result_of_its_own_role(rewrite):
    made = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    body = {"messages": [made, {"role": "user", "content": "x"}]}

    out, _ = rewrite("openai_chat", body, REPAIR)

    assert out["messages"][1] == {"role": "function", "name": "f", "content": LOST}


@pytest.mark.parametrize(
    ("call", "key", "output"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""}, "output", LOST),
        ({"type": "apply_patch_call", "call_id": "c", "operation": {}}, "output", LOST),
        (
            {"type": "local_shell_call", "id": "i", "call_id": "c", "action": {}},
            "output",
            LOST,
        ),
        (
            {"type": "shell_call", "call_id": "c", "action": {"commands": []}},
            "output",
            [{"stdout": "", "stderr": LOST, "outcome": {"type": "exit", "exit_code": 1}}],
        ),
    ],
    ids=["custom", "patch", "local_shell", "shell"],
)
def test_responses_call_of_every_kind_gets_an_output_of_its_kind(rewrite, call, key, output):
    body = {"input": [call, {"role": "user", "content": "x"}]}

    out, _ = rewrite("openai_responses", body, REPAIR)

    assert out["input"][1]["type"] == f"{call['type']}_output"
    assert out["input"][1][key] == output


@pytest.mark.parametrize("kind", ["computer_call_output", "tool_search_output"])
def test_responses_orphan_output_of_any_kind_goes(rewrite, kind):
    body = {"input": [{"type": kind, "call_id": "gone", "output": {}}]}

    assert rewrite("openai_responses", body, REPAIR)[0] == {"input": []}


def test_responses_mcp_call_has_its_output_in_itself(rewrite):
    call = {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": "x"}
    body = {"input": [call, {"role": "user", "content": "x"}]}

    assert rewrite("openai_responses", body, REPAIR)[0] == body


# --- empties -----------------------------------------------------------------------------


def test_messages_empty_parts_go_and_neighbours_merge(rewrite):
    body = {
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": " "}]},
            {"role": "user", "content": [result("c", ""), {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": ""},
        ]
    }

    out, _ = rewrite("anthropic_messages", body, EMPTY)

    assert [m["role"] for m in out["messages"]] == ["user"]
    assert out["messages"][0]["content"] == [
        {"type": "text", "text": "a"},
        result("c", "[the tool returned nothing]"),
        {"type": "text", "text": "b"},
    ]


def test_chat_empty_assistant_goes_and_empty_result_gets_text(rewrite):
    body = {
        "messages": [
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": None, "tool_calls": [chat_call("c")]},
            {"role": "tool", "tool_call_id": "c", "content": ""},
            {"role": "user", "content": ""},
        ]
    }

    out, _ = rewrite("openai_chat", body, EMPTY)

    assert [m["role"] for m in out["messages"]] == ["assistant", "tool"]
    assert out["messages"][1]["content"] == "[the tool returned nothing]"


def test_responses_empty_assistant_goes_and_empty_output_gets_text(rewrite):
    body = {
        "input": [
            {"role": "assistant", "content": []},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": ""},
        ]
    }

    out, _ = rewrite("openai_responses", body, EMPTY)

    assert [item["type"] for item in out["input"]] == ["function_call", "function_call_output"]
    assert out["input"][1]["output"] == "[the tool returned nothing]"


INPUT = "input_text"
SAID = {"role": "user", "content": "go"}
BEGINNING = "[an earlier part of this conversation is missing]"
IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
DIRECTIVE = {"role": "system", "content": [], "output_config": {"effort": "low"}}
ASKS = {"role": "assistant", "content": "what?"}


def message(*texts: str, role: str = "user", kind: str = "text", **more):
    return {"role": role, "content": [{"type": kind, "text": text} for text in texts], **more}


@pytest.mark.parametrize(
    ("wire_format", "before", "after"),
    [
        ("openai_chat", [{"role": "user", "content": ""}, ASKS, SAID], [ASKS, SAID]),
        ("openai_chat", [SAID, ASKS, {"role": "user", "content": " \n"}], [SAID, ASKS]),
        ("openai_chat", [{"role": "system", "content": " "}, SAID], [SAID]),
        ("openai_chat", [message("", " ", role="developer"), SAID], [SAID]),
        ("openai_chat", [message("", "a"), SAID], [message("a"), SAID]),
        (
            "openai_chat",
            [{"role": "user", "content": [{"type": "text", "text": ""}, IMAGE]}],
            [{"role": "user", "content": [IMAGE]}],
        ),
        (
            "openai_chat",
            [{"role": "system", "content": "be"}, message("")],
            [{"role": "system", "content": "be"}, {"role": "user", "content": BEGINNING}],
        ),
        ("openai_responses", [message("", kind=INPUT), SAID], [SAID]),
        (
            "openai_responses",
            [message("", "a", kind=INPUT)],
            [message("a", kind=INPUT)],
        ),
        ("openai_responses", [{"type": "message", **SAID, "content": ""}, SAID], [SAID]),
        (
            "openai_responses",
            [message(" ", kind=INPUT)],
            [{"type": "message", "role": "user", "content": BEGINNING}],
        ),
        ("anthropic_messages", [SAID, DIRECTIVE, ASKS], [SAID, DIRECTIVE, ASKS]),
        (
            "anthropic_messages",
            [SAID, {**DIRECTIVE, "content": [{"type": "text", "text": " "}]}, ASKS],
            [SAID, DIRECTIVE, ASKS],
        ),
        ("anthropic_messages", [SAID, {**DIRECTIVE, "output_config": {}}, ASKS], [SAID, ASKS]),
    ],
)
def test_blank_words_go_and_what_says_something_stays(rewrite, wire_format, before, after):
    key = "input" if wire_format == "openai_responses" else "messages"

    out, (report,) = rewrite(wire_format, {key: before}, EMPTY)

    assert out[key] == after
    assert bool(report.changes) is (before != after)


KEPT = [
    ("openai_chat", {"role": "assistant", "content": None, "refusal": "no"}),
    ("openai_chat", {"role": "assistant", "content": "", "audio": {"id": "a"}}),
    ("openai_chat", {"role": "assistant", "content": "", "tool_calls": {"id": "c"}}),
    ("openai_chat", {"role": "user", "content": [{"type": "text", "text": 5}]}),
    ("anthropic_messages", {"role": "user", "content": [{"type": "text", "text": []}]}),
    ("anthropic_messages", {"role": "system", "output_config": {"effort": "low"}}),
    ("anthropic_messages", {"role": 5, "content": "a"}, {"role": [5], "content": "b"}),
]


def test_what_is_not_empty_or_of_a_wrong_type_is_kept(rewrite):
    for wire_format, *kept in KEPT:
        body = {"messages": [SAID, ASKS, *kept]}
        assert rewrite(wire_format, body, EMPTY)[0] == body, kept


@pytest.mark.parametrize(
    "name", ["remap_tool_ids", "repair_tool_pairs", "drop_empty_content", "limit_cache_marks"]
)
@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses", "anthropic_messages"])
def test_without_dropped_reasoning_nothing_is_touched(rewrite, name, wire_format):
    key = "input" if wire_format == "openai_responses" else "messages"
    body = {
        key: [
            {"role": "assistant", "content": ""},
            {"role": "user", "content": [result("a|b", "")]},
        ]
    }

    assert rewrite(wire_format, body, (name, {"when": "dropped"}))[0] == body


def test_messages_history_that_lost_its_beginning_still_begins_with_the_user(rewrite):
    body = {"messages": [user(result("gone")), assistant(SAID), user(SAID)]}

    out, _ = rewrite("anthropic_messages", body, REPAIR, EMPTY)

    first = {"role": "user", "content": "[an earlier part of this conversation is missing]"}
    assert out["messages"] == [first, *body["messages"][1:]]


@pytest.mark.parametrize("content", ["  ", [{"type": "text", "text": ""}], []])
def test_messages_with_blank_content_of_any_form_go(rewrite, content):
    body = {"messages": [user(SAID), {"role": "assistant", "content": content}]}

    assert rewrite("anthropic_messages", body, EMPTY)[0] == {"messages": [user(SAID)]}


@pytest.mark.parametrize(
    ("wire_format", "item", "key"),
    [
        ("openai_chat", {"role": "tool", "tool_call_id": "c"}, "content"),
        ("openai_responses", {"type": "function_call_output", "call_id": "c"}, "output"),
    ],
)
def test_result_that_is_a_list_of_nothing_gets_a_text(rewrite, wire_format, item, key):
    history = "input" if wire_format == "openai_responses" else "messages"
    kind = "input_text" if wire_format == "openai_responses" else "text"
    body = {history: [item | {key: [{"type": kind, "text": " "}]}]}

    out, _ = rewrite(wire_format, body, EMPTY)

    assert out[history][0][key] == "[the tool returned nothing]"
