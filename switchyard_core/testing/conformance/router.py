"""The contract of routers, as tests that any router inherits."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, ClassVar, get_args

from pydantic import BaseModel

from switchyard_core.answering import ModelCall, ModelReply
from switchyard_core.decision import Decision, Failure, Latch, ReleaseAfterSuccess
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.policy import check_policy_text
from switchyard_core.request import Request
from switchyard_core.testing.conformance import samples
from switchyard_core.testing.conformance.bench import (
    Bench,
    Interview,
    Outcome,
    PerFormat,
    Trial,
    about,
    describe,
    each_trial,
    require,
    with_bench,
)
from switchyard_core.testing.conformance.watching import (
    Watch,
    blocks_loop,
    reads_clock,
    reads_randomness,
)
from switchyard_core.testing.harness import Harness, registry_of
from switchyard_core.testing.validity import validity_problems

__all__ = ["RouteSuite", "RouterConformance", "Watched", "require_free_loop", "require_unseen"]

#: Seconds for which a router may hold the event loop. Generous, since the machine may be busy;
#: what takes longer is tried twice.
LONGEST_STEP_S = 1.0
#: Runs the code of a router under a watch.
Watched = Callable[[Watch], Awaitable[object]]
_PLACE = "{wire_format}"
_WORD = re.compile(r"[a-z][a-z0-9_]*")
_STRANGE_OPTION = "no_option_has_this_name"
#: How often a router is asked with another state of the process's own randomness.
_ROUNDS = 8
#: Two seeds that put the members of a set in different orders.
_HASH_SEEDS = ("1", "2")
_PROCESS_TIMEOUT_S = 60
_FAILURES = (
    Failure(kind="transport", status=0, code="connect", body=b""),
    Failure(kind="status", status=429, code="rate_limit_error", body=b"{}"),
    Failure(kind="status", status=500, code="server_error", body=b""),
    Failure(
        kind="status",
        status=400,
        code="context_length_exceeded",
        body=b"no JSON",
        meaning="overflow",
    ),
    Failure(kind="content", status=200, code="overloaded_error", body=b"", meaning="overloaded"),
)
_REWRITES = "the router's rewrites"


class RouteSuite(PerFormat):
    """The tests of a router's ``route()`` that both suites share, and what a suite declares."""

    #: The keys of one route, for a policy of the kit's own, whose targets are ``strong`` and
    #: ``weak``, of one provider.
    router_toml: ClassVar[str] = ""
    #: A whole policy, as text or as a file; ``{wire_format}`` in it is replaced by each one.
    policy: ClassVar[str | os.PathLike[str]] = ""
    #: The plugins that the policy needs.
    plugins: ClassVar[Sequence[object]] = ()
    #: Name of the route under test; the policy's first one when empty.
    route: ClassVar[str] = ""
    #: Types of history items that its rewrites are there to remove, such as ``reasoning``.
    removes: ClassVar[Collection[str]] = ()

    def requests(self, wire_format: WireFormat, model: str) -> Mapping[str, Request]:
        """Return new requests to try, by name; override it to add what your router looks at."""
        return samples.sample_requests(wire_format, model)

    def reply(self, target: str, call: ModelCall) -> ModelReply:
        """Return what a model answers, for routers that ask one."""
        del call
        msg = f"the router asks `{target}`: say what it answers by overriding `reply`"
        raise AssertionError(msg)

    def policy_text(self, wire_format: WireFormat) -> str:
        """Return the policy for a wire format."""
        text = str(self.policy)
        if self.router_toml:
            require(not text, "give `router_toml` or `policy`, not both")
            shipped = files("switchyard_core.testing.conformance") / "policy.toml"
            text = shipped.read_text("utf-8").replace("{router_toml}", self.router_toml)
        elif "\n" not in text:
            require(text, "say which router is tested: give `router_toml` or `policy`")
            text = Path(text).read_text("utf-8")
        return text.replace(_PLACE, wire_format)

    def wire_formats(self) -> Sequence[WireFormat]:
        """Return the wire formats of the callers: all, as any route serves them."""
        if self.policy_text("openai_chat") == self.policy_text("openai_responses"):
            self.bench("openai_chat")  # one that is broken is told once
        return WIRE_FORMATS

    def bench(self, wire_format: WireFormat, targets: WireFormat | None = None) -> Bench:
        """Return the route on a new engine; by default targets speak the requests' wire format."""
        text, source = self.policy_text(targets or wire_format), str(self.policy)
        fixed = source and "\n" not in source and text == Path(source).read_text("utf-8")
        # A file that is taken as it is may name others beside it.
        harness = Harness(Path(source) if fixed else text, plugins=self.plugins)
        return Bench(self, harness, self.route or next(iter(harness.policy.routes)), wire_format)

    # --- options and processes ----------------------------------------------------------------

    def test_router_options_refuse_unknown_keys(self) -> None:
        """A misspelt option is an error on its line, with the nearest name."""
        text = self.policy_text(WIRE_FORMATS[0])
        policy = Harness(text, plugins=self.plugins).policy
        name = self.route or next(iter(policy.routes))
        model = type(policy.routes[name].options)
        advice = "inherit `switchyard_core.Options` and let nothing swallow unknown keys"
        for inner in _models(model):
            refuses = inner.model_config.get("extra") == "forbid"
            problem = f"`{inner.__name__}` of the options accepts unknown keys: {advice}"
            require(refuses, problem)
        # Shorter names are near to anything.
        near = {_misspelt(option): option for option in model.model_fields if len(option) > 3}
        for key, option in {_STRANGE_OPTION: "", **near}.items():
            if key in model.model_fields:
                continue
            header = re.compile(rf"^\[routes\.{re.escape(name)}\][^\n]*\n", re.MULTILINE)
            require(header.search(text), f"write the route as a table `[routes.{name}]`")
            changed = header.sub(rf"\g<0>{key} = true\n", text, count=1)
            found = check_policy_text(changed, "policy", registry_of(self.plugins)).findings
            told = [each.render() for each in found if each.path == f"routes.{name}.{key}"]
            require(told, f"the options accept the unknown key `{key}`: {advice}")
            offers = "\n".join(told)
            problem = f"`{key}` does not get the nearest name `{option}`: {offers}"
            require(not option or f"`{option}`" in offers, problem)

    def test_router_decides_the_same_in_another_process(self) -> None:
        """A decision does not depend on the hash seed of the process: on the order of a set."""
        file, suite = inspect.getfile(type(self)), type(self).__qualname__
        require(
            "<locals>" not in suite,
            f"`{suite}` is made inside a function: another process cannot find it there, so "
            "define the class at the top of its module",
        )
        first, second = (_decided_in_process(file, suite, seed) for seed in _HASH_SEEDS)
        for name, decision in first.items():
            require(
                decision == second.get(name),
                f"the router decides differently in another process ({name}): {decision}, then "
                f"{second.get(name)}; do not depend on `hash()` or on the order of a set",
            )

    # --- the same request, the same decision --------------------------------------------------

    @with_bench
    async def test_router_decides_the_same_for_the_same_request(self, bench: Bench) -> None:
        """A decision depends on request and context, not on what was asked before."""
        trials = bench.trials("usual")
        first = {name: describe(await trial.route()) for name, trial in trials.items()}
        # In another order: nothing may be left over from the requests before.
        for who in (bench, bench.another()):
            for name, trial in reversed(who.trials("usual").items()):
                again = describe(await trial.route())
                problem = (
                    "the router decides differently for the same request and context: "
                    f"{first[name]}, then {again}; keep nothing between requests but the latch "
                    f"record ({name})"
                )
                require(again == first[name], problem)

    @each_trial("usual")
    async def test_router_takes_randomness_from_its_context(self, trial: Trial) -> None:
        """Only ``context.random`` may draw, so that a decision can be replayed."""
        advice = "draw from `context.random`, which tests seed"
        await require_unseen(_watched(trial), reads_randomness, advice)
        found = set()
        state = random.getstate()
        try:
            for seed in range(_ROUNDS):
                random.seed(seed)
                found.add(describe(await trial.again().route()))
        finally:
            random.setstate(state)
        drawn = " or ".join(sorted(found))
        problem = f"the router draws by chance, though its context is the same: {drawn}; {advice}"
        require(len(found) == 1, problem)

    @each_trial("usual")
    async def test_router_takes_time_from_its_context(self, trial: Trial) -> None:
        """Only ``context.clock`` may tell the time, so that a decision can be replayed."""
        await require_unseen(_watched(trial), reads_clock, "ask `context.clock()`, which tests set")

    @each_trial("usual")
    async def test_router_does_not_block_the_event_loop(self, trial: Trial) -> None:
        """While it waits or computes without an ``await``, no other request is served."""
        await require_free_loop(_watched(trial))

    @each_trial("usual")
    async def test_router_does_not_change_the_request(self, trial: Trial) -> None:
        """What is to be changed goes into the decision's rewrites."""
        before = trial.again()
        await trial.route()
        changed = trial.changes(before)
        require(
            not changed,
            f"the router changed {changed} of the request: return rewrites in the decision "
            "instead, they run on a copy",
        )

    # --- what it decides ----------------------------------------------------------------------

    @each_trial("empty")
    async def test_router_survives_an_empty_history(self, trial: Trial) -> None:
        """There may be no message, and no text in one."""
        _require_declared(trial, await trial.route())

    @each_trial("huge")
    async def test_router_survives_a_huge_history(self, trial: Trial) -> None:
        """A thousand tool calls are a long session, not an error."""
        _require_declared(trial, await trial.route())

    @each_trial("usual", "empty")
    async def test_router_chooses_only_declared_targets(self, trial: Trial) -> None:
        """A target is one that the route's options name: the policy check knows no other."""
        decision = await trial.decision()
        _require_declared(trial, decision)
        for failure in _FAILURES:
            with about(f"after {failure.code}"):
                again = await trial.next(decision, failure) if decision is not None else None
                _require_declared(trial, again)
        strangers = sorted(trial.bench.asked - set(trial.bench.targets))
        problem = f"the router asked {strangers}, which its options do not name"
        require(not strangers, f"{problem}: {trial.bench.advice}")

    @each_trial("usual", "empty")
    async def test_router_gives_a_reason(self, trial: Trial) -> None:
        """The reason's code is a word for logs and headers."""
        decision = await trial.decision()
        if decision is not None:
            code, phase = decision.reason.code, decision.phase
            problem = f"the reason's code {code!r} is not a word: use snake_case, and put the "
            require(_WORD.fullmatch(code), f"{problem}sentence into `detail`")
            problem = f"the phase {phase!r} is not a word: use snake_case, or leave it out"
            require(not phase or _WORD.fullmatch(phase), problem)

    @each_trial("usual", "side")
    async def test_router_never_latches_for_housekeeping(self, trial: Trial) -> None:
        """A title or a token count moves no session."""
        decision = await trial.decision(housekeeping=True)
        require(
            decision is None or not any(isinstance(each, Latch) for each in decision.effects),
            "the router latches for a side call: give no `Latch` when `context.housekeeping` is "
            "true",
        )

    @each_trial("usual", "empty")
    async def test_router_effects_concern_the_requests_own_identity(self, trial: Trial) -> None:
        """No request latches, changes or frees another's session."""
        decision = await trial.decision()
        own, _ = trial.bench.runtime.sessions(trial.request)
        for effect in decision.effects if decision is not None else ():
            require(
                effect.identity == own,
                f"{type(effect).__name__} names {effect.identity}, and the request is of {own}: "
                "use `context.session.identity`",
            )

    @each_trial("usual", "empty")
    async def test_router_effects_have_a_latch_store(self, trial: Trial) -> None:
        """Without a store what a router latches or remembers is dropped."""
        decision = await trial.decision()
        for effect in decision.effects if decision is not None else ():
            # A release may concern the route of the sub-agents.
            stored = trial.bench.runtime.store is not None
            require(
                stored or isinstance(effect, ReleaseAfterSuccess),
                f"the effect `{type(effect).__name__}` needs a latch store, and the route has "
                "none: let the options inherit `switchyard_core.LatchOptions`",
            )

    @with_bench
    async def test_router_dry_run_has_no_effect(self, bench: Bench) -> None:
        """An explanation changes nothing: no latch, no memory in the router."""
        plain = bench.another().trials("usual")
        expected = {name: describe(await trial.decide()) for name, trial in plain.items()}
        for name, trial in bench.trials("usual").items():
            before = await trial.latches()
            await trial.decide(dry_run=True)
            after = await trial.latches()
            require(
                before == after,
                f"a dry run changed the latch store: {before}, then {after}; return effects in "
                f"the decision, the engine applies them ({name})",
            )
            found = describe(await trial.again().decide())
            require(
                found == expected[name],
                f"after a dry run the router decides differently: {expected[name]}, then {found}; "
                f"keep nothing in the router, a dry run is not to be seen ({name})",
            )


class RouterConformance(RouteSuite):
    r"""Inherit it in a test module, say which router, and pytest runs the contract's tests.

    Give either :attr:`router_toml` or :attr:`policy`, and :attr:`plugins`. The tests that
    take a wire format run for callers of each one, whatever the targets speak.

    Example:
        >>> class TestSticky(RouterConformance):
        ...     plugins = (sticky,)                                        # doctest: +SKIP
        ...     router_toml = 'type = "sticky"\ntargets = ["strong", "weak"]'
    """

    @each_trial("odd")
    async def test_router_keeps_unknown_fields(self, trial: Trial) -> None:
        """What the router does not know is the caller's, to the byte."""
        if (sent := await trial.sent()) is not None:
            samples.require_unknown_fields(trial.request, sent[1], _REWRITES, self.removes)

    @each_trial("odd")
    async def test_router_keeps_the_key_order(self, trial: Trial) -> None:
        """Providers cache by prefix: another order costs a cache miss."""
        if (sent := await trial.sent()) is not None:
            samples.require_key_order(trial.request, sent[1], _REWRITES)

    @each_trial("usual")
    async def test_router_rewrites_are_idempotent(self, trial: Trial) -> None:
        """Rewriting a rewritten body changes nothing."""
        if (sent := await trial.sent()) is not None:
            decision, body = sent
            request = trial.request
            once = Request(wire_format=request.wire_format, body=body, headers=request.headers)
            twice = Trial(trial.bench, once).rewritten(decision)
            require(
                twice == body,
                f"{_REWRITES} change a body that they have already rewritten: "
                f"{_difference(body, twice)}; look whether the change is there before you make it",
            )

    @each_trial("usual")
    async def test_router_sends_a_valid_body(self, trial: Trial) -> None:
        """A body that the provider accepts stays one; see ``assert_valid_for``."""
        sent, wire_format = await trial.sent(), trial.request.wire_format
        if sent is not None and not validity_problems(wire_format, trial.request.body):
            problems = "; ".join(validity_problems(wire_format, sent[1]))
            require(not problems, f"{_REWRITES} make a body that the provider refuses: {problems}")

    def test_router_sends_a_valid_body_in_any_wire_format(self, wire_format: WireFormat) -> None:
        """So it is for targets that speak another wire format than the caller."""
        texts = {self.policy_text(targets): targets for targets in WIRE_FORMATS}
        for targets in texts.values():
            for name, trial in self.bench(wire_format, targets).trials("usual").items():
                with about(f"{name}, targets speak {targets}"):
                    asyncio.run(_require_valid_across(trial))


async def _require_valid_across(trial: Trial) -> None:
    decision = await trial.decide(dry_run=True)
    if isinstance(decision, Decision) and not validity_problems(
        trial.request.wire_format, trial.request.body
    ):
        spoken = trial.spoken(decision)
        problems = "; ".join(validity_problems(spoken, trial.rewritten(decision)))
        message = f"{_REWRITES} make a body that a provider of {spoken} refuses: {problems}"
        require(not problems, message)


# --- how -------------------------------------------------------------------------------------


async def require_unseen(
    watched: Watched, names: Callable[[Any], str], advice: str, *, who: str = "the router"
) -> Watch:
    """Require that a router's own code calls no built-in of a kind; return the watch."""
    # The engine, which is part of an answer, measures how long tools take.
    watch = Watch(names, spared=("switchyard_core",) if who == "the answer" else ())
    await watched(watch)
    require(not watch.seen, f"{who} calls {'; '.join(watch.seen)}: {advice}")
    return watch


async def require_free_loop(watched: Watched, *, who: str = "the router") -> None:
    """Require that a router neither waits nor computes for long without an ``await``."""
    advice = (
        "no other request is served meanwhile; use an asynchronous client, `asyncio.sleep` or "
        "`asyncio.to_thread`"
    )
    watches = [await require_unseen(watched, blocks_loop, advice, who=who) for _ in range(2)]
    shorter_s = min(watch.longest_s for watch in watches)
    problem = f"{who} holds the event loop for {shorter_s:.1f} s: {advice}"
    require(shorter_s < LONGEST_STEP_S, problem)


def _watched(trial: Trial) -> Watched:
    return lambda watch: trial.again().route(watch=watch)


def _require_declared(trial: Trial, outcome: Outcome | None) -> None:
    if isinstance(outcome, Decision):
        problem = f"the router chose `{outcome.target}`, which its options do not name"
        require(outcome.target in trial.bench.targets, f"{problem}: {trial.bench.advice}")


def _misspelt(name: str) -> str:
    swapped = name[:-2] + name[-1] + name[-2]
    return swapped if swapped != name else f"{name}x"


def _models(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    seen: set[type[BaseModel]] = set()
    waiting: list[Any] = [model]
    while waiting:
        found = waiting.pop()
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            waiting += get_args(found)
        elif found not in seen:
            seen.add(found)
            yield found
            waiting += [field.annotation for field in found.model_fields.values()]


def _difference(before: bytes, after: bytes) -> str:
    """Return where two bodies part, with a little of what follows."""
    pairs = enumerate(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    start = next((number for number, (one, other) in pairs if one != other), shorter)
    cut = slice(max(0, start - 20), start + 60)
    one, other = (body[cut].decode(errors="replace") for body in (before, after))
    return f"…{one}… became …{other}…"


# --- another process -------------------------------------------------------------------------

_MODULE = "switchyard_conformance_suite"
_PROGRAM = f"import sys; from {__name__} import _print_decisions; _print_decisions(*sys.argv[1:])"


def _decided_in_process(file: str, suite: str, seed: str) -> dict[str, str]:
    done = subprocess.run(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-c", _PROGRAM, file, suite],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=_PROCESS_TIMEOUT_S,
        check=False,
    )
    require(done.returncode == 0, f"another process could not decide:\n{done.stderr}")
    decided: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return decided


def _print_decisions(file: str, suite: str) -> None:
    """Print the decisions of a suite's router as one line of JSON; run in the other process."""
    spec = spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"`{file}` is not a Python module")
    module = module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    found: Any = reduce(getattr, suite.split("."), module)
    print(json.dumps(asyncio.run(_decisions(found()))))  # noqa: T201  # read by the parent process


async def _decisions(suite: RouteSuite) -> dict[str, str]:
    decided = {}
    for wire_format in suite.wire_formats():
        for name, trial in suite.bench(wire_format).trials("usual").items():
            key = f"{wire_format}, {name}"
            decided[key] = describe(await trial.route())
            if trial.bench.runtime.answers:
                told = Interview(trial)
                await told.run()
                decided[key] += f" asks {told.calls}"
    return decided
