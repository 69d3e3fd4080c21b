from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import Request, RequestError
from switchyard_planner_executor.approval import (
    Approve,
    Fresh,
    Reject,
    Revise,
    RunPlan,
    read_intent,
)

DIGEST = "ab" * 32
APPROVE = {"approve": {"plan_id": "plan_1", "plan_digest": DIGEST}}
Make = Callable[..., Request]


def refusal(request: Request, *, by_text: bool = True) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_intent(request, by_text=by_text)
    return caught.value


def test_request_that_says_nothing_wants_a_new_plan(asked: Make) -> None:
    assert read_intent(asked(), by_text=True) == Fresh(hold=False)
    assert read_intent(asked(switchyard={}), by_text=True) == Fresh(hold=False)


@pytest.mark.parametrize(
    ("value", "intent"),
    [
        (f"approve plan_1 {DIGEST}", Approve(plan_id="plan_1", digest=DIGEST)),
        (f"  approve   plan_1\t{DIGEST} ", Approve(plan_id="plan_1", digest=DIGEST)),
        ("reject plan_1", Reject(plan_id="plan_1")),
        ("revise plan_1", Revise(plan_id="plan_1")),
    ],
)
@pytest.mark.parametrize("name", ["x-switchyard-plan", "X-Switchyard-Plan"])
def test_header_says_what_to_do(asked: Make, value: str, intent: object, name: str) -> None:
    assert read_intent(asked(headers={name: value}), by_text=False) == intent


@pytest.mark.parametrize(
    "value",
    [
        "",
        "  ",
        "yes",
        "Approve plan_1 x",
        "approve",
        "approve plan_1",
        f"approve plan_1 {DIGEST} now",
        "reject",
        "reject plan_1 plan_2",
        "revise",
        "run plan_1",
        "approve " + "x" * 300 + " y",
    ],
)
def test_header_that_says_it_otherwise_is_refused(asked: Make, value: str) -> None:
    error = refusal(asked(headers={"x-switchyard-plan": value}))

    assert (error.status, error.code) == (400, "approval_malformed")
    assert error.headers["x-should-retry"] == "false"
    assert "x-switchyard-plan: approve <plan_id> <plan_digest>" in error.message


def test_two_headers_that_disagree_are_refused(asked: Make) -> None:
    headers = [
        ("x-switchyard-plan", f"approve plan_1 {DIGEST}"),
        ("x-switchyard-plan", "reject plan_1"),
    ]

    assert refusal(asked(headers=headers)).code == "approval_malformed"


@pytest.mark.parametrize(
    ("body", "intent"),
    [
        (APPROVE, Approve(plan_id="plan_1", digest=DIGEST)),
        ({"reject": {"plan_id": "plan_1"}}, Reject(plan_id="plan_1")),
        ({"revise": {"plan_id": "plan_1"}}, Revise(plan_id="plan_1")),
        ({"plan": {"goal": "x", "steps": []}}, RunPlan(value={"goal": "x", "steps": []})),
        ({"plan": 3}, RunPlan(value=3)),
        ({"plan": {}, "approval": "always"}, RunPlan(value={}, hold=True)),
        ({"approval": "always"}, Fresh(hold=True)),
    ],
)
def test_body_says_what_to_do(asked: Make, body: dict[str, Any], intent: object) -> None:
    assert read_intent(asked(switchyard=body), by_text=False) == intent


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ("approve", "switchyard"),
        ([], "switchyard"),
        (True, "switchyard"),
        ({"approve": "plan_1"}, "switchyard.approve"),
        ({"approve": {"plan_id": "plan_1"}}, "switchyard.approve"),
        ({"approve": {**APPROVE["approve"], "force": True}}, "switchyard.approve"),
        ({"approve": {"plan_id": 1, "plan_digest": "x"}}, "switchyard.approve.plan_id"),
        ({"approve": {"plan_id": "p", "plan_digest": ""}}, "switchyard.approve.plan_digest"),
        ({"approve": {"plan_id": "p", "plan_digest": None}}, "switchyard.approve.plan_digest"),
        ({"reject": {"plan_id": "x" * 257}}, "switchyard.reject.plan_id"),
        ({"revise": {}}, "switchyard.revise"),
        ({**APPROVE, "reject": {"plan_id": "plan_1"}}, "switchyard"),
        ({**APPROVE, "plan": {}}, "switchyard"),
        ({**APPROVE, "approval": "always"}, "switchyard.approval"),
        ({"approval": "none"}, "switchyard.approval"),
        ({"approval": True}, "switchyard.approval"),
        ({"confirm": {}}, "switchyard.confirm"),
    ],
)
def test_body_that_says_it_otherwise_is_refused(asked: Make, body: Any, param: str) -> None:
    error = refusal(asked(switchyard=body))

    assert (error.code, error.param) == ("approval_malformed", param)
    assert '"approve": {"plan_id"' in error.message


def test_body_with_a_key_twice_is_refused(wire_format: Any) -> None:
    body = b'{"model": "m", "switchyard": {"plan": {"goal": "a", "goal": "b", "steps": []}}}'
    error = refusal(Request(wire_format=wire_format, body=body))

    assert error.code == "approval_malformed"
    assert "`goal` stands twice" in error.message


@pytest.mark.parametrize("wire_format", ["openai_chat", "openai_responses"], indirect=True)
def test_metadata_of_openai_formats_says_what_to_do(asked: Make) -> None:
    def meta(value: object) -> Request:
        return asked(metadata={"user": "x", "switchyard_plan": value})

    assert read_intent(meta(f"approve plan_1 {DIGEST}"), by_text=False) == Approve(
        plan_id="plan_1", digest=DIGEST
    )
    assert refusal(meta("yes")).param == "metadata.switchyard_plan"
    assert refusal(meta({"reject": "plan_1"})).param == "metadata.switchyard_plan"
    assert read_intent(asked(metadata={"user": "x"}), by_text=False) == Fresh()


@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
def test_metadata_of_messages_says_nothing(asked: Make) -> None:
    request = asked(metadata={"switchyard_plan": "reject plan_1"})

    assert read_intent(request, by_text=False) == Fresh()


def test_header_counts_before_body_and_body_before_metadata(asked: Make) -> None:
    header = {"x-switchyard-plan": "reject by_header"}
    body = {"reject": {"plan_id": "by_body"}}
    meta = {"switchyard_plan": "reject by_metadata"}

    everywhere = asked("approve by_text", headers=header, switchyard=body, metadata=meta)
    assert read_intent(everywhere, by_text=True) == Reject(plan_id="by_header")
    in_the_body = asked("approve by_text", switchyard=body, metadata=meta)
    assert read_intent(in_the_body, by_text=True) == Reject(plan_id="by_body")


def test_words_of_the_user_count_only_if_the_policy_says_so(asked: Make) -> None:
    assert read_intent(asked("approve plan_1"), by_text=False) == Fresh()
    assert read_intent(asked("approve plan_1"), by_text=True) == Approve(plan_id="plan_1")


@pytest.mark.parametrize(
    "text",
    [
        "yes, go",
        "yes",
        "approve",
        "Approve plan_1",
        "approve plan_1 please",
        "please approve plan_1",
        "reject plan_1",
        "`approve plan_1`",
    ],
)
def test_words_that_are_not_exactly_the_two_are_a_new_request(asked: Make, text: str) -> None:
    assert read_intent(asked(text), by_text=True) == Fresh()


@pytest.mark.parametrize(
    "turns",
    [
        [("user", "approve plan_1"), ("assistant", "Should I?")],
        [("user", "hello"), ("assistant", "approve plan_1")],
    ],
    ids=["said before the assistant's last words", "said by the assistant"],
)
def test_words_of_an_assistant_or_before_them_never_count(
    asked: Make, turns: list[tuple[str, str]]
) -> None:
    request = asked("approve plan_1", turns=turns)

    assert read_intent(request, by_text=True) == Fresh()


def test_words_beside_an_image_or_a_file_do_not_count(asked: Make) -> None:
    for more in ("image", "document"):
        parts = _parts(asked().wire_format, "approve plan_1", more)

        assert read_intent(asked(parts), by_text=True) == Fresh()


def _parts(wire_format: str, text: str, more: str) -> list[dict[str, Any]]:
    """Return a text with an image or a document beside it."""
    data = "data:image/png;base64,AAAA" if more == "image" else "data:application/pdf;base64,AAAA"
    if wire_format == "openai_chat":
        picture = {"type": "image_url", "image_url": {"url": data}}
        file = {"type": "file", "file": {"file_data": data, "filename": "a.pdf"}}
        return [{"type": "text", "text": text}, picture if more == "image" else file]
    if wire_format == "openai_responses":
        picture = {"type": "input_image", "image_url": data}
        file = {"type": "input_file", "file_data": data, "filename": "a.pdf"}
        return [{"type": "input_text", "text": text}, picture if more == "image" else file]
    kind, _, encoded = data.removeprefix("data:").partition(";base64,")
    source = {"type": "base64", "media_type": kind, "data": encoded}
    return [{"type": "text", "text": text}, {"type": more, "source": source}]


def test_words_of_a_tool_never_count() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "approve plan_1"},
        ],
    }
    request = Request(wire_format="openai_chat", body=body)

    assert read_intent(request, by_text=True) == Fresh()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["approve", "reject", "plan", "plan_id", "plan_digest", "approval"]),
            inner,
            max_size=3,
        )
    ),
)


def outcome(request: Request) -> object:
    """Return what a request wants, or the error that it gives."""
    try:
        return read_intent(request, by_text=False)
    except RequestError as error:
        return error


@given(json_values)
def test_any_member_of_the_body_is_understood_or_refused(value: Any) -> None:
    found = outcome(Request(wire_format="openai_chat", body={"model": "m", "switchyard": value}))

    if isinstance(found, RequestError):
        assert found.code == "approval_malformed"
    if isinstance(found, Approve):
        said = {"plan_id": found.plan_id, "plan_digest": found.digest}
        assert value == {"approve": said}


@given(st.text(max_size=60))
def test_any_header_is_understood_or_refused(value: str) -> None:
    headers = {"x-switchyard-plan": value}
    found = outcome(Request(wire_format="openai_chat", body={"model": "m"}, headers=headers))

    assert isinstance(found, RequestError | Approve | Reject | Revise)
    assert getattr(found, "code", "approval_malformed") == "approval_malformed"
