"""A strict provider: its rules from its file, what it refuses, and the thinking that it makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Literal

import tomli
from pydantic import BaseModel, ConfigDict

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.scripted.answer import Answer
from switchyard_core.scripted.select import Asked
from switchyard_core.scripted.strict import chat, messages, responses, thinking
from switchyard_core.scripted.strict.names import PROVIDERS, check_strict
from switchyard_core.scripted.strict.places import Sent, found
from switchyard_core.scripted.strict.rules import Known, Refusal, Rule, chosen, filled, spelt

__all__ = ["StrictProvider", "strict_provider"]

_CHECKS: dict[str, Callable[[Sent, Any], Iterator[dict[str, Any]]]] = {
    **chat.CHECKS,
    **messages.CHECKS,
    **responses.CHECKS,
}


def _sealed(answer: Answer, opaque: str) -> Answer:
    # A script that gives an opaque form wants one sent; which one, only the provider can say.
    return replace(answer, sealed=opaque, encrypted=opaque if answer.encrypted else "")


#: How a maker seals an answer: its thinking, or its calls.
_DRESSES: dict[str, Callable[[Sent, Answer], Answer]] = {
    "anthropic": lambda sent, answer: _sealed(answer, thinking.signature(sent, answer.reasoning)),
    "openai": lambda sent, answer: _sealed(answer, responses.encrypted(sent)),
    "gemini": lambda sent, answer: replace(answer, signed=chat.thought_signature(sent)),
}


class _Unreadable(BaseModel):
    """Models that cannot read the thinking of others."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    models: tuple[str, ...]
    of: tuple[str, ...]


class _Seals(BaseModel):
    """How a provider seals its thinking in one wire format."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: WireFormat
    maker: Literal["anthropic", "openai", "gemini"]


class StrictProvider(BaseModel):
    """One provider as its file describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))

    title: str
    formats: tuple[WireFormat, ...]
    extends: str = ""
    places: Literal["dots", "brackets"] = "dots"
    #: Bodies of its errors by wire format; the first one for all others.
    errors: dict[str, Any]
    #: What it says of a parameter where the sources have no words.
    invalid: str
    seals: tuple[_Seals, ...] = ()
    known: tuple[Known, ...] = ()
    unreadable: tuple[_Unreadable, ...] = ()
    prefix_bound: tuple[str, ...] = ()
    #: Regular expression of what may be before a model's name in an id.
    model_prefix: str = ""
    refuse: tuple[Rule, ...]

    def sent(self, asked: Asked, path: str, endpoint: Endpoint) -> Sent:
        """Return a request as this provider gets it."""
        model = re.sub(f"^(?:{self.model_prefix})", "", asked.model)
        return Sent(asked=asked, path=path, endpoint=endpoint, model=model)

    def refusal(self, sent: Sent) -> Refusal | None:
        """Return how the provider refuses a request, ``None`` when it answers it."""
        if sent.asked.format.name not in self.formats:
            told = f"{self.title} has no such endpoint"
            return self._refused(sent, Rule(status=404, message=told), {})
        for rule in self.refuse:
            if rule.concerns(sent):
                facts = next(self._found(rule, sent), None)
                if facts is not None:
                    return self._refused(sent, rule, facts)
        return None

    def dressed(self, sent: Sent, answer: Answer) -> Answer:
        """Return an answer with the opaque forms that the provider gives its own thinking."""
        for seals in self.seals:
            if seals.format == sent.asked.format.name:
                return _DRESSES[seals.maker](sent, answer)
        return answer

    @cached_property
    def _reading(self) -> thinking.Reading:
        pairs = [(chosen(each.models), chosen(each.of)) for each in self.unreadable]
        is_bound = chosen(self.prefix_bound) if self.prefix_bound else lambda _model: False

        def reads(model: str, maker: str) -> bool:
            return model == maker or not any(by(model) and of(maker) for by, of in pairs)

        return thinking.Reading(reads=reads, is_bound=is_bound)

    def _found(self, rule: Rule, sent: Sent) -> Iterator[dict[str, Any]]:
        if rule.check == "unknown_keys":
            return self._unknown(sent)
        if rule.check:
            return _CHECKS[rule.check](sent, self._reading)
        # A rule without a place is about the whole request.
        return rule.hits(sent) if rule.path else iter(({},))

    def _unknown(self, sent: Sent) -> Iterator[dict[str, Any]]:
        for known in self.known:
            if known.formats and sent.asked.format.name not in known.formats:
                continue
            objects = found(sent, known.at) if known.at else [((), sent.asked.body)]
            for at, holder in objects:
                for key in holder if isinstance(holder, dict) else ():
                    if key not in known.keys:
                        tag = (known.tag,) if known.tag else ()
                        yield {"place": (*at, *tag, key), "key": key}

    def _refused(self, sent: Sent, rule: Rule, facts: dict[str, Any]) -> Refusal:
        place = spelt(facts.get("place", ()), self.places)
        told = {**facts, "place": place, "model": sent.asked.model}
        words = {
            "message": str(filled(rule.message or self.invalid, told)),
            "type": rule.type or "invalid_request_error",
            "code": rule.code,
            "param": filled(rule.param, told),
            "status": rule.status,
        }
        body = self.errors.get(sent.asked.format.name) or next(iter(self.errors.values()))
        return Refusal(status=rule.status, body=filled(body, words))


@cache
def strict_provider(name: str) -> StrictProvider:
    """Return a strict provider; a ``ValueError`` for an unknown name says the nearest one."""
    if fix := check_strict(name):
        msg = f"`{name}` is not a strict provider: {fix}"
        raise ValueError(msg)
    data = tomli.loads((PROVIDERS / f"{name}.toml").read_text(encoding="utf-8"))
    provider = StrictProvider.model_validate(data)
    if not provider.extends:
        return provider
    base = strict_provider(provider.extends)
    more = {
        "refuse": (*provider.refuse, *base.refuse),
        "known": provider.known or base.known,
        "unreadable": provider.unreadable or base.unreadable,
        "prefix_bound": provider.prefix_bound or base.prefix_bound,
        "seals": provider.seals or base.seals,
    }
    return provider.model_copy(update=more)
