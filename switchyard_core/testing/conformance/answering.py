"""The contract of routers that write answers, as tests that any such router inherits."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.testing.answers import Answered, streamed_text, whole_text
from switchyard_core.testing.conformance.bench import (
    Bench,
    Interview,
    Trial,
    about,
    each_trial,
    require,
    with_bench,
)
from switchyard_core.testing.conformance.router import (
    RouteSuite,
    Watched,
    require_free_loop,
    require_unseen,
)
from switchyard_core.testing.conformance.watching import reads_clock, reads_randomness
from switchyard_core.testing.validity import validity_problems

__all__ = ["AnsweringConformance"]

#: Most calls of one answer that are made to fail, or are held back, one after the other.
_CALLS = 8
#: Turns of the event loop in which what was left running would show itself.
_LOOP_TURNS = 5
#: Seconds after which an answer that was closed and did not end is given up.
_PATIENCE_S = 5.0


class AnsweringConformance(RouteSuite):
    r"""Inherit it in a test module, say which router and what models reply, and pytest tests it.

    For route types of ``kind="answers"``. Give either :attr:`router_toml` or :attr:`policy`, and
    :attr:`plugins`; override :meth:`reply`. The tests run with callers of each wire format; with
    :attr:`router_toml`, or ``{wire_format}`` in the policy, the targets speak the caller's.

    Example:
        >>> class TestEnsemble(AnsweringConformance):
        ...     plugins = (ensemble,)                                      # doctest: +SKIP
        ...     router_toml = 'type = "ensemble"\ntargets = ["strong", "weak"]'
        ...
        ...     def reply(self, target, call):
        ...         return ModelReply(text="1")
    """

    # --- what it says -----------------------------------------------------------------------

    @each_trial("usual", "empty")
    async def test_answer_is_made_of_legal_events(self, trial: Trial) -> None:
        """Sections open and close, nothing is outside, and the last event is ``Finished``."""
        told = Interview(trial)
        await told.run()
        _text_of(told)

    @with_bench
    async def test_answer_is_written_in_every_wire_format(self, bench: Bench) -> None:
        """Whole or streamed, callers of all wire formats read the same text."""
        answered = 0
        for name, trial in bench.trials("usual").items():
            told = Interview(trial)
            await told.run()
            if told.refusal is None:
                answered += 1
                with about(name):
                    _require_written(Answered(model="m", events=tuple(told.events)))
        problem = "the router refuses every request of the suite"
        require(answered, f"{problem}: override `requests` with some that it answers")

    @each_trial("usual")
    async def test_answer_survives_a_failed_call(self, trial: Trial) -> None:
        """Before the first event it may refuse; after it the text has to say what went wrong."""
        for number in range(_CALLS):
            told = Interview(trial.again(), fail=number)
            with about(f"when call {number + 1} fails"):
                await told.run()
                problem = "the answer says nothing: tell the caller what went wrong"
                require(told.refusal is not None or _text_of(told).strip(), problem)
            if len(told.asked) <= number:
                break

    @each_trial("empty")
    async def test_answer_survives_an_empty_history(self, trial: Trial) -> None:
        """There may be no message, and no text in one: an answer, or a refusal."""
        await Interview(trial).run()

    @each_trial("huge")
    async def test_answer_survives_a_huge_history(self, trial: Trial) -> None:
        """A thousand tool calls are a long session, not an error."""
        await Interview(trial).run()

    # --- what it asks -----------------------------------------------------------------------

    @with_bench
    async def test_answer_asks_the_same_for_the_same_request(self, bench: Bench) -> None:
        """Nothing random or dated enters an outgoing body, so that calls can be replayed."""
        first: dict[str, list[tuple[str, bytes]]] = {}
        state = random.getstate()
        try:
            # Another clock, other randomness, the process's own too, and another order, since
            # nothing may be left over from the requests before.
            for setting, who in enumerate((bench, bench, bench.another())):
                trials = list(who.trials("usual").items())
                for name, trial in reversed(trials) if setting else trials:
                    random.seed(setting)
                    told = Interview(trial, setting=setting)
                    await told.run()
                    with about(name):
                        _require_same_calls(first.setdefault(name, told.calls), told.calls)
        finally:
            random.setstate(state)

    @each_trial("usual", "empty")
    async def test_answer_asks_only_declared_targets(self, trial: Trial) -> None:
        """A target is one that the route's options name: the policy check knows no other."""
        told = Interview(trial)
        try:
            await told.run()
        except AssertionError:
            if not told.strangers:
                raise
        problem = f"the router asked {sorted(set(told.strangers))}, which its options do not name"
        require(not told.strangers, f"{problem}: {trial.bench.advice}")

    def test_answer_asks_with_valid_bodies(self, wire_format: WireFormat) -> None:
        """Whatever the caller speaks, each target is asked in its own wire format."""
        texts = {targets: self.policy_text(targets) for targets in WIRE_FORMATS}
        # A policy without the place has the same targets each time.
        for targets in {text: targets for targets, text in texts.items()}.values():
            asyncio.run(_require_valid_calls(self.bench(wire_format, targets)))

    @each_trial("usual", "empty")
    async def test_router_asks_nobody_while_it_routes(self, trial: Trial) -> None:
        """``route()`` is also run for explanations, in which nothing may be sent."""
        Interview(trial)
        try:
            await trial.route()
        except AssertionError:
            if not trial.bench.asked:
                raise
        require(
            not trial.bench.asked,
            f"`route` asks {sorted(trial.bench.asked)}: it says which target `answer` asks first "
            "and why, and only `answer` may ask",
        )

    # --- how --------------------------------------------------------------------------------

    @each_trial("usual")
    async def test_answer_takes_randomness_from_its_context(self, trial: Trial) -> None:
        """Only ``context.random`` and ``context.new_id`` may draw."""
        advice = "draw from `context.random`, and make ids with `context.new_id`"
        await require_unseen(_watched(trial), reads_randomness, advice, who="the answer")

    @each_trial("usual")
    async def test_answer_takes_time_from_its_context(self, trial: Trial) -> None:
        """Only ``context.clock`` may tell the time; timeouts of asyncio are no clock."""
        advice = "ask `context.clock()`, which tests set; `asyncio.timeout` may be used"
        await require_unseen(_watched(trial), reads_clock, advice, who="the answer")

    @each_trial("usual")
    async def test_answer_does_not_block_the_event_loop(self, trial: Trial) -> None:
        """While it waits or computes without an ``await``, no other request is served."""
        await require_free_loop(_watched(trial), who="the answer")

    @each_trial("usual")
    async def test_answer_does_not_change_the_request(self, trial: Trial) -> None:
        """Body, headers and every view are after an answer what they were before."""
        before = trial.again()
        try:
            await Interview(trial).run()
        except AssertionError:
            if not trial.changes(before):
                raise
        changed = trial.changes(before)
        require(
            not changed,
            f"the answer changed {changed} of the request: build calls of its parts, and leave it "
            "as it is",
        )

    @with_bench
    async def test_answer_that_is_closed_early_ends_its_calls(self, bench: Bench) -> None:
        """When a client leaves, the call that runs is cancelled and no other begins."""
        closed: set[tuple[str, ...]] = set()
        for name, trial in bench.trials("usual").items():
            with about(name):
                async for when, told in _closed(trial, closed):
                    await _require_ended(told, when)


def _watched(trial: Trial) -> Watched:
    return lambda watch: Interview(trial.again()).run(watch=watch)


def _text_of(told: Interview) -> str:
    try:
        return Answered(model="m", events=tuple(told.events)).text
    except ValueError as error:
        raise AssertionError(f"the answer is illegal: {error}") from error


def _require_written(answer: Answered) -> None:
    for wire_format in WIRE_FORMATS:
        try:
            whole = whole_text(wire_format, answer.whole(wire_format))
            streamed = streamed_text(wire_format, answer.stream(wire_format))
        except ValueError as error:
            message = f"the answer cannot be written for {wire_format}: {error}"
            raise AssertionError(message) from error
        require(
            whole.strip(),
            "the answer says nothing: yield a section with text, for clients read no "
            "`switchyard` object",
        )
        require(
            whole == streamed == answer.text,
            f"the texts of {wire_format} differ: {whole!r}, streamed {streamed!r}",
        )


def _require_same_calls(before: list[tuple[str, bytes]], after: list[tuple[str, bytes]]) -> None:
    targets = [[target for target, _ in calls] for calls in (before, after)]
    advice = (
        "nothing random or dated, no id, and nothing of another request may decide or be in a "
        "call, or it cannot be replayed"
    )
    require(
        targets[0] == targets[1],
        f"the router asks differently for the same request and replies: "
        f"{targets[0]}, then {targets[1]}; {advice}",
    )
    for (target, one), (_, other) in zip(before, after, strict=True):
        require(
            one == other,
            f"the router asks `{target}` differently for the same request and replies: "
            f"{one.decode(errors='replace')}, then {other.decode(errors='replace')}; {advice}",
        )


async def _require_valid_calls(bench: Bench) -> None:
    for name, trial in bench.trials("usual").items():
        if validity_problems(bench.wire_format, trial.request.body):
            continue
        told = Interview(trial)
        await told.run()
        for sent in told.asked:
            problems = "; ".join(validity_problems(sent.wire_format, sent.body))
            problem = (
                f"the router asks `{sent.target}`, which speaks {sent.wire_format}, with a body "
                f"that its provider refuses: {problems}; keep a conversation in a `Transcript` of "
                f"the target's wire format ({name})"
            )
            require(not problems, problem)


async def _require_ended(told: Interview, when: str) -> None:
    begun = len(told.asked)
    for _ in range(_LOOP_TURNS):
        await asyncio.sleep(0)
    require(
        not told.open and len(told.asked) == begun,
        f"a call continues after the answer was closed, {when}: await calls in `answer`, "
        "and several at once in an `asyncio.TaskGroup`, which ends them",
    )


async def _closed(
    trial: Trial, closed: set[tuple[str, ...]]
) -> AsyncIterator[tuple[str, Interview]]:
    """Yield answers to a request that were closed: at each of their calls, after each event.

    An answer that took the same steps to an event as one that was ``closed`` there is spared.
    """
    ways: list[tuple[str, ...]] = []
    for number in range(_CALLS):
        told = Interview(trial.again(), hold=number)
        running = asyncio.ensure_future(told.run())
        held = asyncio.ensure_future(told.held.wait())
        await asyncio.wait((running, held), return_when=asyncio.FIRST_COMPLETED)
        held.cancel()
        if running.done():
            running.result()
            ways = told.ways
            break
        running.cancel()
        done, _ = await asyncio.wait((running,), timeout=_PATIENCE_S)
        require(
            done,
            f"the answer does not end when it is closed, in call {number + 1}: let "
            "`CancelledError` pass, and wait for nothing on the way",
        )
        yield f"in call {number + 1}", told
    for taken, way in enumerate(ways[:-1], 1):
        if way in closed:
            continue
        closed.add(way)
        told = Interview(trial.again())
        await told.run(stop=taken)
        yield f"after {taken} events", told
