"""The conformance suite catches each wrong router by the test that is named for its fault."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from switchyard_core import Failure, PluginError, RefusedError
from switchyard_core.answering import AskError, ModelReply
from switchyard_core.testing import RouterConformance
from switchyard_core.testing.conformance import router, watching
from switchyard_core.wire import WIRE_FORMATS
from tests.testing.conformance import wrong_routers as wrong

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent


PROCESSES = "test_router_decides_the_same_in_another_process"


def failures(suite, wire_format="openai_chat", *, but=(PROCESSES,)):
    """Run the tests of a suite; return the messages of those that fail, by name."""
    found = {}
    for name, test in inspect.getmembers(suite, inspect.ismethod):
        if name.startswith("test_") and name not in but:
            given = [wire_format] if "wire_format" in inspect.signature(test).parameters else []
            try:
                test(*given)
            except (AssertionError, PluginError) as error:
                found[name.removeprefix("test_router_")] = str(error)
    return found


#: The router, the test that must catch it, and what its message says.
WRONG = {
    "changes_fields": ("does_not_change_the_request", "changed `request.fields`"),
    "changes_tree": ("does_not_change_the_request", r"changed `request.tree\(\)`"),
    "drops_unknown_fields": ("keeps_unknown_fields", "`x-first` .* is lost"),
    "rounds_numbers": ("keeps_unknown_fields", "`x-last` .* became"),
    "sorts_keys": ("keeps_the_key_order", "are in another order"),
    "counts_up": ("rewrites_are_idempotent", "already rewritten"),
    "global_random": ("takes_randomness_from_its_context", r"calls random\.\w+ at .*\.py:\d+"),
    "own_random": ("takes_randomness_from_its_context", "draws by chance"),
    "clock": ("takes_time_from_its_context", r"calls time\.time at .*ask `context.clock\(\)`"),
    "calendar": ("takes_time_from_its_context", r"calls datetime\.now at"),
    "sleeps": ("does_not_block_the_event_loop", r"time\.sleep at .*wrong_routers.py:\d+: no other"),
    "connects": ("does_not_block_the_event_loop", r"socket\.connect at .*wrong_routers.py:\d+"),
    "starts_a_process": ("does_not_block_the_event_loop", r"subprocess at .*wrong_routers.py:\d+"),
    "undeclared": ("chooses_only_declared_targets", "`strongest`.*declared here: strong, weak"),
    "needs_history": ("survives_an_empty_history", "raised IndexError"),
    "needs_few": ("survives_a_huge_history", "MemoryError: too much"),
    "remembers": ("decides_the_same_for_the_same_request", "keep nothing between requests"),
    "latches_always": ("never_latches_for_housekeeping", "`context.housekeeping`"),
    "latches_another": ("effects_concern_the_requests_own_identity", "session='else'"),
    "latches_in_vain": ("effects_have_a_latch_store", "`Latch` needs .*`switchyard_core.LatchOpt"),
    "remembers_in_vain": ("effects_have_a_latch_store", "`Remember` needs a latch store"),
    "sentence": ("gives_a_reason", "'Because of the edit.' is not a word"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_router_is_caught_by_the_test_named_for_its_fault(fault):
    test, message = WRONG[fault]
    suite = wrong.suite(getattr(wrong, fault))

    with pytest.raises(AssertionError, match=message):
        getattr(suite, f"test_router_{test}")("openai_chat")


def test_router_that_computes_for_too_long_is_caught(monkeypatch):
    monkeypatch.setattr(router, "LONGEST_STEP_S", 0.0)

    found = failures(wrong.suite(wrong.right))

    assert list(found) == ["does_not_block_the_event_loop"]
    message = found["does_not_block_the_event_loop"]
    assert_matches(r"holds the event loop for 0\.\d s: .*`asyncio.to_thread` \(", message)


def test_one_slow_step_alone_is_the_machines(monkeypatch):
    times = iter([0.0, 9.0])
    monkeypatch.setattr(watching.time, "perf_counter", lambda: next(times, 9.0))

    wrong.suite(wrong.right).test_router_does_not_block_the_event_loop("openai_chat")


def assert_matches(pattern, text):
    with pytest.raises(AssertionError, match=pattern):
        raise AssertionError(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (wrong.Swallowing, "accept the unknown key `no_option_has_this_name`"),
        (wrong.Nested, "`Inner` of the opt"),
    ],
    ids=["swallowed", "nested"],
)
def test_options_that_accept_unknown_keys_are_caught_alone(options, message):
    found = failures(wrong.suite(wrong.right, options))

    assert list(found) == ["options_refuse_unknown_keys"]
    assert message in found["options_refuse_unknown_keys"]


def test_options_model_that_allows_more_breaks_the_plugin_in_every_test():
    found = failures(wrong.suite(wrong.right, wrong.Lax))

    assert "options_refuse_unknown_keys" in found
    assert all("options that accept unknown keys" in message for message in found.values())


def test_order_of_a_process_is_caught_by_the_test_of_processes():
    with pytest.raises(AssertionError, match=r"in another process .*do not depend on `hash"):
        wrong.HashSuite().test_router_decides_the_same_in_another_process()


def test_suite_made_inside_a_function_cannot_be_found_by_another_process():
    suite = type("Local", (wrong.Wrong,), {"__qualname__": "f.<locals>.Local"})()

    with pytest.raises(AssertionError, match="at the top of its module"):
        suite.test_router_decides_the_same_in_another_process()


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
@pytest.mark.parametrize("decide", [wrong.right, wrong.by_chance], ids=["right", "by_chance"])
def test_right_router_passes(decide, wire_format):
    assert failures(wrong.suite(decide), wire_format) == {}


def test_right_router_decides_the_same_in_another_process():
    wrong.RightSuite().test_router_decides_the_same_in_another_process()


# --- what a suite may say ------------------------------------------------------------------


class Asking(wrong.Wrong):
    def __init__(self, answer):
        self.answer = answer

    def reply(self, target, call):
        return self.answer(target, call)


def asks(target):
    class Router:
        def __init__(self, options):
            pass

        async def route(self, _request, context):
            call = wrong.RewriteType and None
            reply = await context.ask(target, call)
            return wrong.to("weak" if reply.text == "easy" else "strong")

    return Router


def asking_suite(target, answer):
    router = asks(target)

    class Plugin:
        @wrong.hookimpl
        def switchyard_route_types(self):
            return [wrong.RouteType(name="wrong", options=wrong.Two, router=router, summary="asks")]

    return type("TestAsking", (Asking,), {"plugins": (Plugin(),)})(answer)


def test_router_that_asks_gets_the_replies_of_its_suite():
    assert failures(asking_suite("weak", lambda *_: ModelReply(text="easy"))) == {}


def test_router_that_asks_without_a_reply_is_told_to_give_one():
    suite = asking_suite("weak", lambda *args: RouterConformance.reply(suite, *args))

    found = failures(suite)

    assert "overriding `reply`" in found["gives_a_reason"]


def test_router_that_asks_an_undeclared_target_is_caught():
    found = failures(asking_suite("other", lambda *_: ModelReply()))

    assert "asked ['other']" in found["chooses_only_declared_targets"]


def test_router_that_does_not_expect_a_failed_question_is_caught():
    def fails(*_args):
        raise AskError("no answer", Failure(kind="status", status=500, code="", body=b""))

    assert "AskError: no answer" in failures(asking_suite("weak", fails))["gives_a_reason"]


def test_suite_without_a_router_says_what_is_missing():
    with pytest.raises(AssertionError, match="give `router_toml` or `policy`"):
        RouterConformance().policy_text("openai_chat")


def test_fixed_policy_is_tried_with_callers_of_every_wire_format():
    text = wrong.RightSuite().policy_text("anthropic_messages")
    fixed = type(
        "Fixed", (RouterConformance,), {"policy": text, "plugins": wrong.RightSuite.plugins}
    )

    assert fixed().wire_formats() == WIRE_FORMATS
    assert wrong.RightSuite().wire_formats() == WIRE_FORMATS


def test_policy_file_is_read(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(wrong.RightSuite().policy_text("openai_chat"))
    fixed = type(
        "Fixed", (RouterConformance,), {"policy": path, "plugins": wrong.RightSuite.plugins}
    )

    assert failures(fixed()) == {}


# --- routers of other kinds ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (lambda: wrong.to("strongest"), r"`strongest`, which its options do not name.*\(after "),
        (lambda: "weak", r"`next` returned str: .* \(after connect\) \(first turn\)"),
        (lambda: 1 / 0, "raised ZeroDivisionError"),
    ],
    ids=["undeclared", "no_decision", "raises"],
)
def test_next_try_is_held_to_the_same_contract(again, message):
    found = failures(retrying_suite(again))

    assert list(found) == ["chooses_only_declared_targets"]
    assert_matches(message, found["chooses_only_declared_targets"])


def test_router_with_a_next_try_passes():
    assert failures(retrying_suite(lambda: wrong.to("weak"))) == {}
    assert failures(retrying_suite(lambda: None)) == {}


def retrying_suite(again):
    class Router:
        def __init__(self, options):
            pass

        async def route(self, _request, _context):
            return wrong.to()

        async def next(self, _request, _failed, _failure, _context):
            return again()

    class Plugin:
        @wrong.hookimpl
        def switchyard_route_types(self):
            return [wrong.RouteType(name="wrong", options=wrong.Two, router=Router, summary="x")]

    return type("TestRetrying", (wrong.Wrong,), {"plugins": (Plugin(),)})()


def test_router_that_returns_no_decision_is_told_to():
    found = failures(wrong.suite(lambda *_: "strong"))

    assert "returned str: return a `Decision` (first turn)" in found["gives_a_reason"]


def test_router_that_refuses_some_requests_passes():
    def refuses(_router, request, _context):
        if len(request.body) % 2:
            raise RefusedError("not today", code="not_today")
        return wrong.to()

    assert failures(wrong.suite(refuses)) == {}


def test_rewrite_that_raises_is_named():
    suite = wrong.suite(lambda *_: wrong.to(rewrites=(wrong.Rewrite(name="no_such"),)))

    assert (
        "asked for the rewrite `no_such`, which no installed plugin gives"
        in failures(suite)["keeps_the_key_order"]
    )


def test_broken_policy_is_told_by_the_tests_and_not_while_they_are_collected():
    class Metafunc:
        fixturenames = ("wire_format",)
        given: list[object] = []  # noqa: RUF012

        def parametrize(self, *given):
            self.given.append(given)

    broken = type("Broken", (RouterConformance,), {"policy": "schema_version = 1\nroutes = 3\n"})
    metafunc = Metafunc()

    broken().pytest_generate_tests(metafunc)

    assert metafunc.given == [("wire_format", ("openai_chat",))]


# --- under pytest --------------------------------------------------------------------------

MODULE = """
from switchyard_core.testing import RouterConformance
from switchyard_core.testing.conformance import router, watching
from tests.testing.conformance import wrong_routers as wrong
from wrong_routers import plugin, undeclared

class TestWrong(RouterConformance):
    plugins = (plugin(undeclared),)
    router_toml = 'type = "wrong"\\nstrong = "strong"\\nweak = "weak"'
"""


def test_suite_under_pytest_runs_once_per_wire_format(pytester):
    pytester.makepyfile(wrong_routers=(HERE / "wrong_routers.py").read_text())
    pytester.makepyfile(test_wrong=MODULE)

    result = pytester.runpytest_inprocess(
        "-p", "no:randomly", "-p", "no:cacheprovider", "-k", "declared_targets or options"
    )

    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(
        [f"*test_router_chooses_only_declared_targets?{name}?*" for name in WIRE_FORMATS]
    )
