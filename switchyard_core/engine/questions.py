"""Explaining routers that ask a model: canned replies, and what they would ask without one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from switchyard_core.answers import (
    Announced,
    Extension,
    Finished,
    SectionFinished,
    TextDelta,
)
from switchyard_core.asking import Ask, ModelCall, ModelReply, WouldAsk
from switchyard_core.decision import Decision
from switchyard_core.engine.core import Engine
from switchyard_core.engine.explanation import Explanation, explanation
from switchyard_core.request import Request

__all__ = ["AnswerExplanation", "Question", "explain_or_ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An explanation that ends where the router asks a model.

    Args:
        route: Name of the route.
        route_type: Its type.
        target: Name of the target that would be asked.
        model: Model id as the target's provider knows it.
        call: What it would be asked.
        structured_output: How the target is made to follow the call's schema, ``""`` without one.
        asked: What was asked before, with the canned replies.
    """

    route: str
    route_type: str
    target: str
    model: str
    call: ModelCall
    structured_output: str = ""
    asked: tuple[Mapping[str, str], ...] = ()

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
            lines.append(f"          made to answer by the tool {self.call.schema_name}")
        elif self.structured_output == "prompt":
            lines.append("          told the schema of the answer in its instructions")
        lines.append(f"          give its reply: --reply {self.target}=FILE")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerExplanation(Explanation):
    """The explanation of a request to a route that answers by itself.

    No body of the caller's is sent on: ``before`` and ``after`` are empty objects. Without canned
    replies it ends at the first question; a plan that would be kept is forgotten.

    Args:
        question: What would be asked next, ``None`` when canned replies carried it to the end.
        text: The text of the answer so far.
        extension: The answer's ``switchyard`` object, if the router gave one.
    """

    question: Question | None
    text: str
    extension: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as plain data, with ``would_ask`` or ``answer``."""
        found = Explanation.as_json(self)
        for absent in ("rewrites", "path", "body"):
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
    engine: Engine,
    request: Request,
    replies: Mapping[str, Sequence[str]] | None = None,
    *,
    dry_run: bool = True,
) -> Explanation | Question:
    """Explain a request without any call or effect, as far as canned replies carry it.

    Args:
        engine: What decides.
        request: The request.
        replies: Texts of replies by target, played in order, the last one again and again.
        dry_run: ``False`` latches what the decision latches, for an engine of one's own.

    Returns:
        The explanation, with ``asked`` in its trace if anything was; or the question at which
        it ends, when a target is asked that has no reply.

    Raises:
        RequestError: The request would be refused.
        PluginError: The router broke its contract.
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
        decision = await engine.decide(request, dry_run=dry_run, ask=answer)
    except WouldAsk as question:
        return _question(engine, request, question, asked)
    if engine.runtimes[decision.route].answers:
        return await _rehearsed(engine, request, decision, answer, asked)
    if asked:
        decision = decision.with_(trace={**decision.trace, "asked": [dict(e) for e in asked]})
    return explanation(engine, request, decision)


def _question(
    engine: Engine, request: Request, question: WouldAsk, asked: list[Mapping[str, str]]
) -> Question:
    route = engine.runtime_for(request).route
    target = engine.policy.targets[question.target]
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
    engine: Engine,
    request: Request,
    decision: Decision,
    answer: Ask,
    asked: list[Mapping[str, str]],
) -> AnswerExplanation:
    """Let an answering router answer with canned replies, as far as they go."""
    text, question = "", None
    phase, warnings, extension = decision.phase, list(decision.warnings), {}
    events = engine.answers.rehearse(request, decision, answer)
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
        question = _question(engine, request, error, asked)
    told = [dict(each) for each in asked]
    return AnswerExplanation(
        decision=decision.with_(
            phase=phase,
            warnings=tuple(warnings),
            trace={**decision.trace, **({"asked": told} if told else {})},
        ),
        model=engine.policy.targets[decision.target].id,
        reports=(),
        parameters=(),
        path="",
        before=b"{}",
        after=b"{}",
        question=question,
        text=text,
        extension=extension,
    )


def _indented(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield f"          | {line}".rstrip()
