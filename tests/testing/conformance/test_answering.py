"""The conformance suite catches each wrong answering router by the test named for its fault."""

from __future__ import annotations

import inspect

import pytest

from switchyard_core.testing import AnsweringConformance
from switchyard_core.testing.conformance import answering
from switchyard_core.testing.conformance.router import RouteSuite
from switchyard_core.wire import WIRE_FORMATS
from tests.testing.conformance import wrong_answers as wrong
from tests.testing.conformance.wrong_routers import RightSuite as SendingSuite

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)


#: The tests of ``route()``, which both kinds share, are tried by test_router.py.
OF_ROUTES = {name for name in vars(RouteSuite) if name.startswith("test_")}


def failures(suite, wire_format="openai_chat"):
    """Run the tests of a suite; return the messages of those that fail, by name."""
    found = {}
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_") and name not in OF_ROUTES:
            given = [wire_format] if "wire_format" in inspect.signature(test).parameters else []
            try:
                test(*given)
            except AssertionError as error:
                found[name.removeprefix("test_")] = str(error)
    return found


#: The router, the test that must catch it, what its message says, and whether no other test may.
WRONG = [
    (wrong.unfinished, "answer_is_made_of_legal_events", "without `Finished`", False),
    (wrong.outside, "answer_is_made_of_legal_events", "`TextDelta` outside of a section", False),
    (
        wrong.odd_fact,
        "answer_is_made_of_legal_events",
        "'Plan Id' has a name that no header",
        False,
    ),
    (
        wrong.odd_value,
        "answer_is_made_of_legal_events",
        "`plan-id` has a value that no header",
        False,
    ),
    (wrong.no_json, "answer_is_made_of_legal_events", "not a JSON object", False),
    (wrong.silent, "answer_is_written_in_every_wire_format", "the answer says nothing", False),
    (wrong.refuses_all, "answer_is_written_in_every_wire_format", "override `requests`", True),
    (wrong.lets_fail, "answer_survives_a_failed_call", "catch `AskError`", True),
    (wrong.refuses_late, "answer_survives_a_failed_call", "after it had begun", True),
    (wrong.fails_silently, "answer_survives_a_failed_call", "tell the caller", True),
    (wrong.needs_history, "answer_survives_an_empty_history", "IndexError", False),
    (wrong.needs_few, "answer_survives_a_huge_history", "MemoryError: too much", True),
    (wrong.dated, "answer_asks_the_same_for_the_same_request", "nothing random or dated", True),
    (wrong.by_chance, "answer_asks_the_same_for_the_same_request", "asks `strong` diff", True),
    (wrong.with_id, "answer_asks_the_same_for_the_same_request", "task_0", True),
    (wrong.another_target, "answer_asks_the_same_for_the_same_request", "asks differently", True),
    (wrong.remembers, "answer_asks_the_same_for_the_same_request", "of another request", True),
    (wrong.undeclared, "answer_asks_only_declared_targets", "declared here: strong, weak", False),
    (wrong.undeclared_unsaid, "answer_asks_only_declared_targets", r"\['strongest'\]", True),
    (wrong.foreign_items, "answer_asks_with_valid_bodies", "`Transcript` of the target's", True),
    (wrong.own_clock, "answer_takes_time_from_its_context", r"calls time\.time at", True),
    (wrong.own_chance, "answer_takes_randomness_from_its_context", r"random\.random at", True),
    (wrong.own_id, "answer_takes_randomness_from_its_context", r"`context\.new_id`", True),
    (wrong.sleeps, "answer_does_not_block_the_event_loop", r"answer calls time\.sleep at", True),
    (wrong.changes_request, "answer_does_not_change_the_request", r"request\.tree\(\)", True),
    (wrong.leaves_task, "answer_that_is_closed_early_ends_its_calls", "in call 1", True),
    (wrong.begins_late, "answer_that_is_closed_early_ends_its_calls", "after 4 events", False),
]


@pytest.mark.parametrize(
    ("answer", "test", "message", "alone"), WRONG, ids=[each[0].__name__ for each in WRONG]
)
def test_wrong_router_is_caught_by_the_test_named_for_its_fault(answer, test, message, alone):
    found = failures(wrong.suite(answer))

    with pytest.raises(AssertionError, match=message):
        raise AssertionError(found[test])
    assert not alone or list(found) == [test]


def test_stream_that_says_something_else_is_caught(monkeypatch):
    monkeypatch.setattr(answering, "streamed_text", lambda *_: "another text")

    with pytest.raises(AssertionError, match=r"the texts of openai_chat differ: .*'another text'"):
        wrong.RightSuite().test_answer_is_written_in_every_wire_format("openai_chat")


def test_answer_that_does_not_end_when_it_is_closed_is_given_up(monkeypatch):
    monkeypatch.setattr(answering, "_PATIENCE_S", 0.01)

    with pytest.raises(AssertionError, match="in call 1: let `CancelledError` pass"):
        wrong.suite(wrong.holds_on).test_answer_that_is_closed_early_ends_its_calls("openai_chat")


def test_router_that_asks_while_it_routes_is_caught():
    found = failures(wrong.suite(wrong.refusing, route=wrong.asks_in_route))

    assert "only `answer` may ask" in found["router_asks_nobody_while_it_routes"]


def test_order_of_a_process_in_a_call_is_caught_by_the_test_of_processes():
    with pytest.raises(AssertionError, match=r"in another process .*do not depend on `hash"):
        wrong.HashSuite().test_router_decides_the_same_in_another_process()


@each_format
@pytest.mark.parametrize("answer", [wrong.right, wrong.refusing], ids=["right", "refusing"])
def test_right_router_passes(answer, wire_format):
    assert failures(wrong.suite(answer), wire_format) == {}


def test_right_router_asks_the_same_in_another_process():
    wrong.RightSuite().test_router_decides_the_same_in_another_process()


def test_router_of_the_other_kind_is_told_its_own_contract():
    sending = type(
        "Sending",
        (AnsweringConformance,),
        {"plugins": SendingSuite.plugins, "router_toml": SendingSuite.router_toml},
    )

    with pytest.raises(AssertionError, match="its contract is `RouterConformance`"):
        sending().test_answer_is_made_of_legal_events("openai_chat")


def test_suite_without_a_reply_is_told_to_give_one():
    silent = type("Silent", (wrong.RightSuite,), {"reply": AnsweringConformance.reply})

    with pytest.raises(AssertionError, match="overriding `reply`"):
        silent().test_answer_is_made_of_legal_events("openai_chat")


def test_suite_has_no_test_of_what_is_sent_on():
    assert not hasattr(AnsweringConformance, "test_router_keeps_unknown_fields")
