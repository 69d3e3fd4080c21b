"""Checks that what a router answers is legal, can be written, and is said whatever happens."""

from __future__ import annotations

from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.testing.answered import Answered, streamed_text, whole_text
from switchyard_core.testing.conformance.bench import Trial, require
from switchyard_core.testing.conformance.interview import Interview, every_request
from switchyard_core.testing.conformance.purity import Untouched
from switchyard_core.testing.conformance.samples import empty_requests, huge_request
from switchyard_core.wire.answers import Sections

__all__ = [
    "check_empty",
    "check_events",
    "check_failures",
    "check_huge",
    "check_request",
    "check_writing",
]

#: Most calls of one answer that are made to fail, one after the other.
_CALLS = 8


async def check_events(trial: Trial) -> None:
    """Require legal events, the last of which is ``Finished``, and headers that can be sent.

    The engine refuses most of what is illegal when it hears it, facts that no header can hold
    among it.

    Raises:
        AssertionError: Names the event, or the header.
    """
    bench = trial.bench()
    for name, request in every_request(trial, bench).items():
        told = Interview(bench, request, what=name)
        await told.run()
        sections = Sections()
        for event in told.events:
            try:
                sections.take(event)
            except ValueError as error:
                raise AssertionError(f"the answer is illegal ({name}): {error}") from error


async def check_writing(trial: Trial) -> None:
    """Require the same text in each wire format, whole and as a stream.

    Raises:
        AssertionError: Names the wire format and both texts.
    """
    bench = trial.bench()
    answered = 0
    for name, request in trial.requests(bench.runtime.route.id).items():
        told = Interview(bench, request, what=name)
        await told.run()
        if told.refusal is None:
            answered += 1
            _require_written(Answered(model="m", events=tuple(told.events), calls=()), name)
    require(
        answered,
        "the router refuses every request of the suite: override `requests` with some that it "
        "answers",
    )


def _require_written(answer: Answered, name: str) -> None:
    for wire_format in WIRE_FORMATS:
        try:
            whole = whole_text(wire_format, answer.whole(wire_format))
            streamed = streamed_text(wire_format, answer.stream(wire_format))
        except ValueError as error:
            message = f"the answer cannot be written for {wire_format} ({name}): {error}"
            raise AssertionError(message) from error
        require(
            whole.strip(),
            f"the answer says nothing ({name}): yield a section with text, for clients read no "
            "`switchyard` object",
        )
        require(
            whole == streamed == answer.text,
            f"the texts of {wire_format} differ ({name}): {whole!r}, streamed {streamed!r}",
        )


async def check_failures(trial: Trial) -> None:
    """Require that a failed call is told in the answer, or refuses it before its first event.

    Raises:
        AssertionError: Names the request and the call.
    """
    bench = trial.bench()
    model = bench.runtime.route.id
    for name in trial.requests(model):
        for number in range(_CALLS):
            what = f"{name}, when call {number + 1} fails"
            told = Interview(bench, trial.requests(model)[name], what=what, fail=number)
            await told.run()
            if told.refusal is None:
                _legal(told, what)
            if len(told.asked) <= number:
                break


def _legal(told: Interview, what: str) -> None:
    answer = Answered(model="m", events=tuple(told.events), calls=())
    try:
        text = answer.text
    except ValueError as error:
        raise AssertionError(f"the answer is illegal ({what}): {error}") from error
    require(text.strip(), f"the answer says nothing ({what}): tell the caller what went wrong")


async def check_empty(trial: Trial) -> None:
    """Require an answer or a refusal for requests with next to nothing in them.

    Raises:
        AssertionError: Names the history and what was raised.
    """
    bench = trial.bench()
    for name, request in empty_requests(trial.wire_format, bench.runtime.route.id).items():
        await Interview(bench, request, what=f"a request with {name}").run()


async def check_huge(trial: Trial) -> None:
    """Require an answer or a refusal for a request of two megabytes.

    Raises:
        AssertionError: Names what was raised.
    """
    bench = trial.bench()
    request = huge_request(trial.wire_format, bench.runtime.route.id)
    await Interview(bench, request, what="a request with a thousand tool calls").run()


async def check_request(trial: Trial) -> None:
    """Require that a request is after its answer what it was before.

    Raises:
        AssertionError: Names what changed.
    """
    bench = trial.bench()
    for name, request in trial.requests(bench.runtime.route.id).items():
        untouched = Untouched(request)
        told = Interview(bench, request, what=name)
        try:
            await told.run()
        except AssertionError:
            if not untouched.changed():
                raise
        changed = untouched.changed()
        require(
            not changed,
            f"the answer changed {', '.join(changed)} of the request ({name}): build calls of "
            "its parts, and leave it as it is",
        )
