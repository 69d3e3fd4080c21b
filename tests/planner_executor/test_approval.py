"""What a request says about plans: understood, or refused, and never inferred."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import Request, RequestError, WireFormat
from switchyard_core.testing import Call, conversation
from switchyard_core.wire import WIRE_FORMATS
from switchyard_planner_executor.approval import Intent, read_intent
from tests.planner_executor.shop import ROUTE, readable

DIGEST = "ab" * 32
APPROVE = {"plan_id": "plan_1", "plan_digest": DIGEST}
MAKE = Intent(verb="make")
APPROVED = Intent(verb="approve", plan_id="plan_1", digest=DIGEST)
REJECTED = Intent(verb="reject", plan_id="plan_1")
REVISED = Intent(verb="revise", plan_id="plan_1")
DATA = "data:image/png;base64,AAAA"


def asked(wire_format: WireFormat = "openai_chat", text: str = "a gift", **more: Any) -> Request:
    return readable(conversation(wire_format).user(text).request(ROUTE, **more))


def refusal(request: Request) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_intent(request, by_text=True)
    error = caught.value
    assert (error.status, error.code) == (400, "approval_malformed")
    assert error.headers["x-should-retry"] == "false"
    assert "x-switchyard-plan: approve <plan_id> <plan_digest>" in error.message
    return error


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_request_that_says_nothing_wants_a_new_plan(wire_format: WireFormat) -> None:
    for said in ({}, {"switchyard": {}}, {"switchyard": None}, {"metadata": {"user": "x"}}):
        assert read_intent(asked(wire_format, **said), by_text=True) == MAKE


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_header_says_what_to_do(wire_format: WireFormat) -> None:
    for value, intent in (
        (f"approve plan_1 {DIGEST}", APPROVED),
        (f"  approve   plan_1\t{DIGEST} ", APPROVED),
        ("reject plan_1", REJECTED),
        ("revise plan_1", REVISED),
    ):
        for name in ("x-switchyard-plan", "X-Switchyard-Plan"):
            request = asked(wire_format, headers={name: value})
            assert read_intent(request, by_text=False) == intent


def test_header_that_says_it_otherwise_is_refused() -> None:
    for value in (
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
    ):
        refusal(asked(headers={"x-switchyard-plan": value}))
    # Two that disagree say nothing.
    words = (f"approve plan_1 {DIGEST}", "reject plan_1")
    refusal(asked(headers=[("x-switchyard-plan", word) for word in words]))


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_body_says_what_to_do(wire_format: WireFormat) -> None:
    plan = {"goal": "x", "steps": []}
    for body, intent in (
        ({"approve": APPROVE}, APPROVED),
        ({"reject": {"plan_id": "plan_1"}}, REJECTED),
        ({"revise": {"plan_id": "plan_1"}}, REVISED),
        ({"plan": plan}, Intent(verb="run", value=plan)),
        ({"plan": 3}, Intent(verb="run", value=3)),
        ({"plan": {}, "approval": "always"}, Intent(verb="run", value={}, hold=True)),
        ({"approval": "always"}, Intent(verb="make", hold=True)),
    ):
        assert read_intent(asked(wire_format, switchyard=body), by_text=False) == intent


def test_body_that_says_it_otherwise_is_refused_at_its_member() -> None:
    for body, param in (
        ("approve", "switchyard"),
        ([], "switchyard"),
        (True, "switchyard"),
        ({"approve": "plan_1"}, "switchyard.approve"),
        ({"approve": {"plan_id": "plan_1"}}, "switchyard.approve"),
        ({"approve": {**APPROVE, "force": True}}, "switchyard.approve"),
        ({"approve": {"plan_id": 1, "plan_digest": "x"}}, "switchyard.approve.plan_id"),
        ({"approve": {"plan_id": "p", "plan_digest": ""}}, "switchyard.approve.plan_digest"),
        ({"approve": {"plan_id": "p", "plan_digest": None}}, "switchyard.approve.plan_digest"),
        ({"reject": {"plan_id": "x" * 257}}, "switchyard.reject.plan_id"),
        ({"revise": {}}, "switchyard.revise"),
        ({"approve": APPROVE, "reject": {"plan_id": "plan_1"}}, "switchyard"),
        ({"approve": APPROVE, "plan": {}}, "switchyard"),
        ({"approve": APPROVE, "approval": "always"}, "switchyard.approval"),
        ({"approval": "none"}, "switchyard.approval"),
        ({"approval": True}, "switchyard.approval"),
        ({"confirm": {}}, "switchyard.confirm"),
    ):
        assert refusal(asked(switchyard=body)).param == param, body
    twice = b'{"model": "m", "switchyard": {"plan": {"goal": "a", "goal": "b", "steps": []}}}'
    assert "key `goal` twice" in refusal(Request(wire_format="openai_chat", body=twice)).message


def test_metadata_says_what_to_do_in_openai_formats_only() -> None:
    for wire_format in WIRE_FORMATS:

        def meta(value: object, wire_format: WireFormat = wire_format) -> Request:
            return asked(wire_format, metadata={"user": "x", "switchyard_plan": value})

        if wire_format == "anthropic_messages":
            assert read_intent(meta("reject plan_1"), by_text=False) == MAKE
            continue
        assert read_intent(meta(f"approve plan_1 {DIGEST}"), by_text=False) == APPROVED
        for value in ("yes", {"reject": "plan_1"}):
            assert refusal(meta(value)).param == "metadata.switchyard_plan"


def test_header_counts_before_body_before_metadata_before_text() -> None:
    said: list[dict[str, Any]] = [
        {"headers": {"x-switchyard-plan": "reject header"}},
        {"switchyard": {"reject": {"plan_id": "body"}}},
        {"metadata": {"switchyard_plan": "reject metadata"}},
    ]
    for first, name in enumerate(("header", "body", "metadata")):
        more = {key: value for each in said[first:] for key, value in each.items()}
        request = asked(text="approve text", **more)
        assert read_intent(request, by_text=True) == Intent(verb="reject", plan_id=name)


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_text_counts_only_if_the_policy_says_so_and_it_is_exactly_two_words(
    wire_format: WireFormat,
) -> None:
    request = asked(wire_format, "approve plan_1")
    assert read_intent(request, by_text=False) == MAKE
    assert read_intent(request, by_text=True) == Intent(verb="approve", plan_id="plan_1")
    for text in (
        "yes, go",
        "yes",
        "approve",
        "Approve plan_1",
        "approve plan_1 please",
        "please approve plan_1",
        "reject plan_1",
        "`approve plan_1`",
    ):
        assert read_intent(asked(wire_format, text), by_text=True) == MAKE


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_text_that_is_not_the_users_last_never_counts(wire_format: WireFormat) -> None:
    said = "approve plan_1"
    user = conversation(wire_format).user("hello")
    for told in (
        conversation(wire_format).user(said).says("Should I?"),
        user.says(said),
        user.parallel(Call(name="look", result=said)),
    ):
        request = readable(told.request(ROUTE))
        assert read_intent(request, by_text=True) == MAKE


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_text_beside_an_image_or_a_file_does_not_count(wire_format: WireFormat) -> None:
    pdf = DATA.replace("image/png", "application/pdf")
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    file = {"file_data": pdf, "filename": "a.pdf"}
    text, others = {
        "openai_chat": (
            "text",
            [
                {"type": "image_url", "image_url": {"url": DATA}},
                {"type": "file", "file": file},
            ],
        ),
        "openai_responses": (
            "input_text",
            [{"type": "input_image", "image_url": DATA}, {"type": "input_file", **file}],
        ),
        "anthropic_messages": (
            "text",
            [
                {"type": "image", "source": source},
                {"type": "document", "source": {**source, "media_type": "application/pdf"}},
            ],
        ),
    }[wire_format]
    key = "input" if wire_format == "openai_responses" else "messages"
    for other in others:
        content = [{"type": text, "text": "approve plan_1"}, other]
        request = asked(wire_format, **{key: [{"role": "user", "content": content}]})

        assert read_intent(request, by_text=True) == MAKE


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


@given(json_values, st.text(max_size=60))
def test_any_member_of_the_body_and_any_header_is_understood_or_refused(
    value: Any, header: str
) -> None:
    for request in (
        Request(wire_format="openai_chat", body=json.dumps({"switchyard": value}).encode()),
        Request(wire_format="openai_chat", body=b"{}", headers={"x-switchyard-plan": header}),
    ):
        try:
            found = read_intent(request, by_text=False)
        except RequestError as error:
            found = Intent(verb=error.code, plan_id="none")
        assert found.verb in ("make", "run", "approve", "reject", "revise", "approval_malformed")
        if found.verb == "approve" and "x-switchyard-plan" not in request.headers:
            assert value == {"approve": {"plan_id": found.plan_id, "plan_digest": found.digest}}
        assert found.plan_id or found.verb in ("make", "run")
