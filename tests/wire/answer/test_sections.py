"""Which order of events an answer may have, and how the texts of its sections end."""

from __future__ import annotations

import pytest

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
from switchyard_core.wire.answers import Closed, More, Opened, Sections
from tests.support.cases import each_of

PLAN = SectionStarted(kind="plan")
END = SectionFinished()


def taken(*events):
    """Return the sections and what all events write."""
    sections = Sections()
    return sections, [piece for event in events for piece in sections.take(event)]


@each_of(
    ("events", "message"),
    [
        ([TextDelta("x")], "`TextDelta` outside of a section"),
        ([PLAN, END, TextDelta("x")], "`TextDelta` outside of a section"),
        ([PLAN, SectionStarted(kind="step")], "section `step` starts while the section `plan` is"),
        ([END], "`SectionFinished` without a section"),
        ([PLAN, END, END], "`SectionFinished` without a section"),
        ([PLAN, Finished("completed")], "`Finished` while the section `plan` is open"),
        ([Finished("completed"), Usage(ModelUsage())], "`Usage` after `Finished`"),
        ([Finished("completed"), Finished("completed")], "`Finished` after `Finished`"),
        ([PLAN, TextDelta(None)], "must be text, not NoneType"),
        ([PLAN, "text"], "`str` is not an event of an answer"),
        ([Extension({"when": object()})], "`Extension` is not a JSON object"),
    ],
)
def test_event_out_of_order_is_refused_and_named(events, message):
    sections, _ = taken(*events[:-1])

    with pytest.raises(ValueError, match=message):
        sections.take(events[-1])


@each_of(
    ("deltas", "text"),
    [
        (["Plan"], "Plan\n\n"),
        (["Plan\n"], "Plan\n\n"),
        (["Plan\n\n"], "Plan\n\n"),
        (["Plan", "\n", " \r\n", "\n\n\n"], "Plan\n\n"),
        (["a\n", "\nb", "  ", "c "], "a\n\nb  c\n\n"),
        (["", "  ", "x"], "  x\n\n"),
    ],
)
def test_text_ends_with_one_blank_line_whatever_the_router_wrote(deltas, text):
    sections, pieces = taken(PLAN, *map(TextDelta, deltas), END)

    assert sections.texts == [text]
    assert pieces[0] == Opened(0)
    assert pieces[-1] == Closed(0, text)
    assert "".join(piece.delta for piece in pieces if isinstance(piece, More)) == text


@pytest.mark.parametrize("deltas", [[], [""], [" ", "\n"]])
def test_section_without_a_visible_character_is_not_written_and_not_counted(deltas):
    sections, pieces = taken(PLAN, *map(TextDelta, deltas), END, PLAN, TextDelta("x"), END)

    assert sections.texts == ["x\n\n"]
    assert pieces == [Opened(0), More(0, "x"), More(0, "\n\n"), Closed(0, "x\n\n")]


def test_usage_is_summed_the_last_extension_counts_and_the_rest_writes_nothing():
    data = {"plan": {"steps": [1]}}
    sections, pieces = taken(
        Announced(phase="running"),
        Usage(ModelUsage(input_tokens=3, output_tokens=1, cached_tokens=2)),
        Extension({"old": True}),
        Progress({"event": "tool"}),
        Usage(ModelUsage(input_tokens=4)),
        Extension(data),
        Finished("failed"),
    )
    data["plan"]["steps"].append(2)

    assert pieces == []
    assert sections.usage == ModelUsage(input_tokens=7, output_tokens=1, cached_tokens=2)
    assert sections.extension == {"plan": {"steps": [1]}}
    assert sections.status == "failed"
