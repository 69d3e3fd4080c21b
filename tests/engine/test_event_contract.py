"""Events of answers: what cannot be written is the fault of the router that yields it."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core import DecisionWarning
from switchyard_core.answering import (
    Announced,
    Extension,
    Finished,
    ModelUsage,
    Progress,
    SectionFinished,
    SectionStarted,
    TextDelta,
    Usage,
)
from switchyard_core.engine.events import breach_of_event
from switchyard_core.testing import Harness
from switchyard_core.wire import WIRE_FORMATS
from tests.support.cases import each_of
from tests.support.telling import POLICY, Teller, request, section

HALF = "\ud83d"

BREACHES = {
    "fact_name": (Announced(facts={"A b": "x"}), "'A b'"),
    "fact_name_of_lines": (Announced(facts={"a\nb": "x"}), "no header can have"),
    "fact_name_is_no_text": (Announced(facts={3: "x"}), "no header can have"),
    "fact_of_lines": (Announced(facts={"a": "x\r\nset-cookie: y"}), "`a`"),
    "fact_with_space": (Announced(facts={"a": " x"}), "no header can hold"),
    "fact_beyond_ascii": (Announced(facts={"a": "\xe4"}), "no header can hold"),
    "fact_of_half": (Announced(facts={"a": HALF}), "no header can hold"),
    "fact_is_no_text": (Announced(facts={"a": 3}), "no header can hold"),
    "facts_are_none": (Announced(facts=None), "`facts` is not a mapping"),
    "phase": (Announced(phase=HALF), "`phase` is not text"),
    "warnings": (Announced(warnings=("late",)), "`warnings` is not a tuple"),
    "warning_of_half": (
        Announced(warnings=(DecisionWarning(code=HALF, detail=""),)),
        "`warnings` is not a tuple",
    ),
    "kind": (SectionStarted(kind=3), "`kind` is not a string"),
    "delta": (TextDelta(3), "`delta` is not a string"),
    "progress": (Progress(3), "`data` is not a mapping"),
    "extension": (Extension([1]), "`data` is not a mapping"),
    "usage": (Usage(3), "`usage` is not a ModelUsage"),
    "tokens": (Usage(ModelUsage(input_tokens="many")), "`usage` is not a ModelUsage"),
    "status": (Finished(3), "`status` is not text"),
    "status_of_half": (Finished(HALF), "`status` is not text"),
    "reserved": (Announced(facts={"request-id": "x"}), "a header that switchyard sets"),
    "other": ("text", "yields str, which is not an event"),
}


@each_of("case", BREACHES)
def test_what_cannot_be_written_is_a_breach_that_says_what(case):
    event, told = BREACHES[case]

    assert told in breach_of_event(event)


@each_of(
    "event",
    [
        Announced(),
        Announced(phase="läuft", facts={"plan-id": "p1", "empty": "", "words": "a b"}),
        Announced(warnings=(DecisionWarning(code="late", detail="d"),)),
        SectionStarted(kind="k"),
        TextDelta(f"half a character {HALF}"),
        SectionFinished(),
        Progress({}),
        Extension({}),
        Usage(ModelUsage()),
        Finished("completed"),
    ],
)
def test_what_can_be_written_is_none(event):
    assert breach_of_event(event) == ""


@given(
    st.text(max_size=5) | st.from_regex("[a-z0-9-]+", fullmatch=True),
    st.text() | st.text(st.characters(max_codepoint=127)),
)
def test_fact_is_refused_or_fits_into_a_header(name, value):
    if not breach_of_event(Announced(facts={name: value})):
        headers = [(f"x-switchyard-{name}".encode("latin-1"), value.encode("latin-1"))]
        h11.Response(status_code=200, headers=headers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_router_is_blamed_whatever_it_yields(wire_format, stream):
    answers = {}
    for case, (event, _) in BREACHES.items():
        told = [event, *section("text"), Finished("completed")]
        answers[case] = await answered(told, request(wire_format, stream=stream))

    blamed = {
        case
        for case, answer in answers.items()
        if answer.status == 500 and "the plugin `Teller` failed" in answer.message
    }
    assert blamed == set(BREACHES)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
async def test_half_a_character_of_a_model_reaches_the_caller(wire_format, stream):
    told = [*section(f"half {HALF}"), Finished("completed")]

    answer = await answered(told, request(wire_format, stream=stream))

    assert answer.status == 200
    assert rb"half \ud83d" in answer.answer


async def test_progress_that_is_no_json_is_the_routers_fault():
    told = [Progress({"no": object()}), Finished("completed")]

    answer = await answered(told, request(stream=True))

    assert b"the plugin `Teller` failed" in answer.answer


async def answered(events, asked):
    async def tell(context):
        for event in events:
            yield event

    return await Harness(POLICY, plugins=[Teller(tell)], door="http").ask(asked)
