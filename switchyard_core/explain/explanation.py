"""Explains the decision about a request and the changes of its body, as data and as text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from switchyard_core.answering import (
    Announced,
    Ask,
    Extension,
    Finished,
    ModelCall,
    ModelReply,
    SectionFinished,
    TextDelta,
    WouldAsk,
)
from switchyard_core.decision import Decision, RewriteReport
from switchyard_core.engine.calling import request_url
from switchyard_core.engine.translating import endpoint_at
from switchyard_core.jsonio.printing import pretty
from switchyard_core.request import Request
from switchyard_core.wire.rewrites import order_rewrites

if TYPE_CHECKING:
    from switchyard_core.switchyard import Switchyard

__all__ = [
    "AnswerExplanation",
    "Explanation",
    "Question",
    "explain",
    "explain_or_ask",
    "explanation",
]

_RED, _GREEN, _CYAN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"
_CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision, what its rewrites changed, and the bodies before and after.

    Args:
        decision: The decision.
        model: Model id as the target's provider knows it.
        reports: What each rewrite changed, in the order in which they ran.
        parameters: Parameters of each rewrite, in the same order.
        path: Path that the request is sent to.
        url: URL that it is sent to, of a scripted client the path; ``""`` where nothing is sent,
            since tokens are estimated.
        before: The caller's body.
        after: The body that is sent.
    """

    decision: Decision
    model: str
    reports: tuple[RewriteReport, ...]
    parameters: tuple[Mapping[str, Any], ...]
    path: str
    url: str
    before: bytes
    after: bytes

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data; ``body`` is the outgoing body as text."""
        decision = self.decision
        return {
            "route": decision.route,
            "target": decision.target,
            "model": self.model,
            "phase": decision.phase,
            "reason": {
                "code": decision.reason.code,
                "detail": decision.reason.detail,
                "facts": dict(decision.reason.facts),
            },
            "identity": decision.trace.get("identity"),
            "warnings": [
                {"code": warning.code, "detail": warning.detail} for warning in decision.warnings
            ],
            "rewrites": [
                {
                    "name": report.name,
                    "parameters": dict(parameters),
                    "changes": list(report.changes),
                    "skipped": report.skipped,
                    "untouched": list(report.untouched),
                }
                for report, parameters in zip(self.reports, self.parameters, strict=True)
            ],
            "trace": dict(decision.trace),
            "path": self.path,
            "url": self.url,
            "body": self.after.decode("utf-8", "replace"),
        }

    def diff(self) -> list[str]:
        """Return a unified diff of the caller's body and the outgoing one, one member per line.

        Numbers, escapes and key order are those of the bytes.
        """
        before, after = pretty(self.before).split("\n"), pretty(self.after).split("\n")
        skipped = _equal_start(before, after)
        # Long histories are mostly equal; difflib is only given the part that differs.
        lines = list(
            unified_diff(
                before[skipped:],
                after[skipped:],
                "caller body",
                "outgoing body",
                n=_CONTEXT_LINES,
                lineterm="",
            )
        )
        return [_moved(line, skipped) for line in lines]

    def as_text(self, *, color: bool = False) -> str:
        """Return the explanation for people: the chain from the route to the outgoing body."""
        lines = [*self._story(), ""]
        diff = self.diff()
        lines += [_colored(line) if color else line for line in diff]
        if not diff:
            lines.append("the outgoing body equals the caller's")
        return "\n".join(lines) + "\n"

    def _story(self) -> Iterator[str]:
        decision, trace = self.decision, self.decision.trace
        kind = f" ({trace['route_type']})" if "route_type" in trace else ""
        yield f"route     {decision.route}{kind}"
        yield f"identity  {_identity(trace.get('identity'))}"
        if trace.get("housekeeping"):
            yield f"side call {trace['housekeeping']} ({trace['kind']})"
        yield from _workspace(trace.get("workspace"))
        yield from _calls(trace.get("calls"))
        for asked in trace.get("asked", ()):
            yield f"asked     {asked['target']}: {asked['reply']}"
        if "latched_before" in trace:
            states = ("latched" if trace[key] else "not latched" for key in _LATCH_KEYS)
            yield f"latch     {' -> '.join(states)}"
        phase = f", {decision.phase}" if decision.phase else ""
        yield f"target    {decision.target} ({self.model}){phase}"
        detail = f": {decision.reason.detail}" if decision.reason.detail else ""
        yield f"reason    {decision.reason.code}{detail}"
        for name, value in decision.reason.facts.items():
            yield f"          {name} = {value}"
        for warning in decision.warnings:
            yield f"warning   {warning.code}: {warning.detail}"
        for report in self.reports:
            idle = "" if report.changes else f": {report.skipped or 'nothing to change'}"
            yield f"rewrite   {report.name}{idle}"
            for line in (*report.changes, *report.untouched):
                yield f"          {line}"
        if self.url:
            yield f"sent to   POST {self.url}"
        else:
            yield "sent to   nobody: the number of tokens is estimated"


_LATCH_KEYS = ("latched_before", "latched_after")


def explanation(yard: Switchyard, request: Request, decision: Decision) -> Explanation:
    """Return the explanation of a decision that was made; nothing is called or changed."""
    outgoing = yard.rewrite(request, decision)
    ordered = order_rewrites(decision.rewrites, yard.registry.rewrites)
    target = yard.policy.targets[decision.target]
    called = endpoint_at(target.wire_format, request.endpoint)
    return Explanation(
        decision=decision,
        model=outgoing.model,
        reports=outgoing.reports,
        parameters=tuple(rewrite.parameters for rewrite in ordered),
        path=outgoing.path if called is not None else "",
        url=request_url(target.client, called) if called is not None else "",
        before=request.body,
        after=outgoing.body,
    )


async def explain(yard: Switchyard, request: Request) -> Explanation:
    """Decide a request without any effect and explain it."""
    return explanation(yard, request, await yard.decide(request, dry_run=True))


def _identity(identity: Mapping[str, Any] | None) -> str:
    if identity is None:
        return "none: nothing is stored for this request"
    text = f"session {identity['session']} from {identity['source']}"
    if identity.get("agent") is not None:
        text += f", agent {identity['agent']} from {identity['agent_source']}"
    return text


def _workspace(roots: list[Mapping[str, Any]] | None) -> Iterator[str]:
    if roots is not None:
        known = ", ".join(f"{root['path']} ({root['known_from']})" for root in roots)
        yield f"workspace {known or 'not known'}"


def _calls(calls: list[Mapping[str, Any]] | None) -> Iterator[str]:
    if calls is None:
        yield "calls     not read"
        return
    edits = sum("offset" in call for call in calls)
    texts = f"; edits in texts: {edits}" if edits else ""
    yield f"calls     {len(calls) - edits} in the history{texts}"
    for call in calls:
        place = f"{call['tool']} at {call['call']}"
        if "offset" in call:
            place = f"text at {call['call']}, character {call['offset']}"
        rule = f" by {call['rule_set']}/{call['rule']}" if call.get("rule") else ""
        word = f", word `{call['word']}`" if call.get("word") else ""
        detail = f": {call['detail']}" if call.get("detail") else ""
        yield f"          {place}: {call['label']}{rule}{word}{detail}"


def _equal_start(before: list[str], after: list[str]) -> int:
    pairs = enumerate(zip(before, after, strict=False))
    shorter = min(len(before), len(after))
    equal = next((number for number, (old, new) in pairs if old != new), shorter)
    return max(0, equal - _CONTEXT_LINES)


def _moved(line: str, by: int) -> str:
    """Return a line of a diff; line numbers count from the whole text."""
    if not line.startswith("@@") or not by:
        return line
    words = line.split(" ")
    for place in (1, 2):
        start, comma, length = words[place][1:].partition(",")
        words[place] = f"{words[place][0]}{int(start) + by}{comma}{length}"
    return " ".join(words)


def _colored(line: str) -> str:
    color = {"+": _GREEN, "-": _RED, "@": _CYAN}.get(line[:1])
    return f"{color}{line}{_PLAIN}" if color else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An explanation that ends where the router asks a model."""

    route: str
    route_type: str
    target: str  # that would be asked
    model: str  # model id as the target's provider knows it
    call: ModelCall  # what it would be asked
    #: How the target is made to follow the call's schema, ``""`` without one.
    structured_output: str = ""
    asked: tuple[Mapping[str, str], ...] = ()  # what was asked before, with the canned replies

    def as_json(self) -> dict[str, Any]:
        """Return the question as plain data."""
        return {
            "route": self.route,
            "trace": {"route_type": self.route_type, "asked": [dict(each) for each in self.asked]},
            "would_ask": {
                "target": self.target,
                "model": self.model,
                "instructions": self.call.instructions,
                "text": self.call.text,
                "items": [dict(item) for item in self.call.items],
                "schema": dict(self.call.schema) if self.call.schema is not None else None,
                "structured_output": self.structured_output or None,
            },
        }

    def as_text(self, *, color: bool = False) -> str:
        """Return the question for people; it has nothing to color."""
        del color
        lines = [f"route     {self.route} ({self.route_type})"]
        lines += [f"asked     {each['target']}: {each['reply']}" for each in self.asked]
        return "\n".join(lines) + "\n" + self.asks()

    def asks(self) -> str:
        """Return what would be asked, and how to give the reply."""
        lines = [f"would ask {self.target} ({self.model})", *_indented(self.call.instructions)]
        lines += _indented(self.call.text)
        if self.structured_output == "forced_tool":
            lines.append(f"          must answer with the tool {self.call.schema_name}")
        elif self.structured_output == "prompt":
            lines.append("          gets the schema of the answer in its instructions")
        lines.append(f"          give its reply: --reply {self.target}=FILE")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerExplanation(Explanation):
    """The explanation of a request to an answering route; its bodies are empty objects.

    Without canned replies it ends at the first question; its plan is not kept.
    """

    #: What would be asked next, ``None`` when canned replies carried it to the end.
    question: Question | None
    text: str  # the text of the answer so far
    extension: Mapping[str, Any]  # the answer's ``switchyard`` object, if the router gave one

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data, with ``would_ask`` or ``answer``."""
        found = Explanation.as_json(self)
        for absent in ("rewrites", "path", "url", "body"):
            del found[absent]
        if self.question is not None:
            found["would_ask"] = self.question.as_json()["would_ask"]
        else:
            found["answer"] = {"text": self.text, "switchyard": dict(self.extension)}
        return found

    def as_text(self, *, color: bool = False) -> str:
        """Return the explanation for people."""
        del color
        decision, trace = self.decision, self.decision.trace
        lines = [f"route     {decision.route} ({trace.get('route_type', '')})"]
        detail = f": {decision.reason.detail}" if decision.reason.detail else ""
        lines.append(f"reason    {decision.reason.code}{detail}")
        lines += [f"warning   {warning.code}: {warning.detail}" for warning in decision.warnings]
        lines += [f"asked     {each['target']}: {each['reply']}" for each in trace.get("asked", ())]
        if self.question is not None:
            return "\n".join(lines) + "\n" + self.question.asks()
        lines.append(f"phase     {decision.phase}")
        lines += ["answer", *_indented(self.text)]
        return "\n".join(lines) + "\n"


async def explain_or_ask(
    yard: Switchyard,
    request: Request,
    replies: Mapping[str, Sequence[str]] | None = None,
    *,
    dry_run: bool = True,
) -> Explanation | Question:
    """Explain a request without a call, or return the question that has no canned reply.

    Args:
        yard: What decides.
        request: The request.
        replies: Texts of replies by target, played in order; the last one repeats.
        dry_run: ``False`` keeps latches.
    """
    left = {name: list(texts) for name, texts in (replies or {}).items()}
    asked: list[Mapping[str, str]] = []

    async def answer(target: str, call: ModelCall) -> ModelReply:
        texts = left.get(target)
        if not texts:
            raise WouldAsk(target, call)
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        asked.append({"target": target, "text": call.text, "reply": text})
        return ModelReply(text=text, stop="stop")

    try:
        decision = await yard.decide(request, dry_run=dry_run, ask=answer)
    except WouldAsk as question:
        return _question(yard, request, question, asked)
    if yard.runtimes[decision.route].answers:
        return await _rehearsed(yard, request, decision, answer, asked)
    if asked:
        decision = decision.with_(trace={**decision.trace, "asked": [dict(e) for e in asked]})
    return explanation(yard, request, decision)


def _question(
    yard: Switchyard, request: Request, question: WouldAsk, asked: list[Mapping[str, str]]
) -> Question:
    route = yard.runtime_for(request).route
    target = yard.policy.targets[question.target]
    return Question(
        route=route.name,
        route_type=route.type.name,
        target=question.target,
        model=target.id,
        call=question.call,
        structured_output="" if question.call.schema is None else target.structured_output,
        asked=tuple(asked),
    )


async def _rehearsed(
    yard: Switchyard,
    request: Request,
    decision: Decision,
    answer: Ask,
    asked: list[Mapping[str, str]],
) -> AnswerExplanation:
    """Let an answering router answer with canned replies."""
    text, question = "", None
    phase, warnings, extension = decision.phase, list(decision.warnings), {}
    events = yard.rehearse(request, answer)
    try:
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, TextDelta):
                    text += event.delta
                elif isinstance(event, SectionFinished):
                    text = text.rstrip("\n") + "\n\n"
                elif isinstance(event, Extension):
                    extension = dict(event.data)
                elif isinstance(event, Announced):
                    phase = event.phase or phase
                    warnings += event.warnings
                elif isinstance(event, Finished):
                    phase = event.status
    except WouldAsk as error:
        question = _question(yard, request, error, asked)
    told = [dict(each) for each in asked]
    return AnswerExplanation(
        decision=decision.with_(
            phase=phase,
            warnings=tuple(warnings),
            trace={**decision.trace, **({"asked": told} if told else {})},
        ),
        model=yard.policy.targets[decision.target].id,
        reports=(),
        parameters=(),
        path="",
        url="",
        before=b"{}",
        after=b"{}",
        question=question,
        text=text,
        extension=extension,
    )


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"          | {line}".rstrip()
