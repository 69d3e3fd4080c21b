"""Rules of a strict provider: conditions on a request, and the refusal that follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from switchyard_core.declarations import Endpoint, WireFormat
from switchyard_core.patterns import compile_pattern, name_glob
from switchyard_core.scripted.strict.places import Place, Sent, alike, found, parents

__all__ = ["Condition", "Known", "Refusal", "Rule", "chosen", "filled", "spelt"]

_MOST_SHOWN = 200


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a provider answers instead of a turn."""

    status: int
    body: Any


class Condition(_Data):
    """Something at a place; without a test it must only be there."""

    path: str = ""
    missing: bool = False  # the last key of the path is not in an object that could have it
    equals: Any = None
    one_of: Annotated[tuple[Any, ...], Field(alias="in")] = ()
    none_of: Annotated[tuple[Any, ...], Field(alias="not_in")] = ()
    above: float | None = None
    below: float | None = None
    longer: int | None = None  # a text or list has more items than this
    more_than: int | None = None  # the place has more values than this
    like: str | None = None  # regular expression that the text matches
    unlike: str | None = None  # regular expression that the text does not match
    default: Any = None  # the value when there is none

    @cached_property
    def _pattern(self) -> Any:
        return compile_pattern(self.like or self.unlike or "")

    def hits(self, sent: Sent) -> Iterator[dict[str, Any]]:
        """Yield place and value wherever the condition holds."""
        if self.missing:
            for at, holder, key in parents(sent, self.path):
                if holder.get(key) is None:
                    yield {"place": (*at, key), "value": None}
            return
        values = list(found(sent, self.path))
        if not values and self.default is not None:
            values = [((self.path,), self.default)]
        if self.more_than is not None and len(values) <= self.more_than:
            return
        for at, value in values:
            if self._is(value):
                yield {"place": at, "value": value, "count": len(values), "allowed": self._allowed}

    def holds(self, sent: Sent) -> bool:
        """Return whether it holds anywhere."""
        return next(self.hits(sent), None) is not None

    @cached_property
    def _allowed(self) -> str:
        """The values that are taken, as a sentence lists them."""
        words = [f"'{each}'" for each in self.none_of]
        return ", ".join(words[:-1]) + f", and {words[-1]}" if words[1:] else "".join(words)

    def _is(self, value: Any) -> bool:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        checks = (
            (self.equals is not None, lambda: alike(value, self.equals)),
            (self.one_of, lambda: any(alike(value, each) for each in self.one_of)),
            (self.none_of, lambda: not any(alike(value, each) for each in self.none_of)),
            (self.above is not None, lambda: number is not None and number > (self.above or 0)),
            (self.below is not None, lambda: number is not None and number < (self.below or 0)),
            (self.longer is not None, lambda: _length(value) > (self.longer or 0)),
            (self.like is not None, lambda: isinstance(value, str) and self._pattern(value)),
            (self.unlike is not None, lambda: isinstance(value, str) and not self._pattern(value)),
        )
        return all(test() for wanted, test in checks if wanted)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | list) else 0


class Rule(Condition):
    """One refusal: when it comes, and what it says.

    ``message`` may hold ``{model}``, ``{place}``, ``{value}``, ``{count}`` and what the ``check``
    finds.
    """

    message: str = ""  # the provider's own words for a wrong parameter when empty
    check: str = ""  # name of a check in code, in place of a condition
    models: tuple[str, ...] = ()  # globs on the model id, `!` before those that are left out
    formats: tuple[WireFormat, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    when: tuple[Condition, ...] = ()  # all of them must hold
    unless: tuple[Condition, ...] = ()  # none of them may hold
    status: int = 400
    type: str = ""
    code: str | int | None = None
    param: str | None = None

    @cached_property
    def _chosen(self) -> Any:
        return chosen(self.models)

    def concerns(self, sent: Sent) -> bool:
        """Return whether the rule is about such a request at all."""
        asked = sent.asked
        return (
            (not self.formats or asked.format.name in self.formats)
            and (not self.endpoints or sent.endpoint in self.endpoints)
            and self._chosen(sent.model)
            and all(each.holds(sent) for each in self.when)
            and not any(each.holds(sent) for each in self.unless)
        )


class Known(_Data):
    """The keys that the objects at a place may have."""

    at: str = ""  # the body itself when empty
    keys: tuple[str, ...]
    tag: str = ""  # what the provider puts between the place and the key
    formats: tuple[WireFormat, ...] = ()


def chosen(globs: tuple[str, ...]) -> Any:
    """Return the test whether a model id matches globs; those with ``!`` leave out."""
    wanted = [name_glob(glob) for glob in globs if not glob.startswith("!")]
    left_out = [name_glob(glob[1:]) for glob in globs if glob.startswith("!")]

    def test(model: str) -> bool:
        if wanted and not any(each(model) for each in wanted):
            return False
        return not any(each(model) for each in left_out)

    return test


def spelt(place: Place, style: Literal["dots", "brackets"]) -> str:
    """Return a place as a provider spells it: ``input.1.id`` or ``input[1].id``."""
    text = ""
    for step in place:
        if isinstance(step, int) and style == "brackets":
            text += f"[{step}]"
        else:
            text += f".{step}" if text else str(step)
    return text


def filled(template: Any, facts: Mapping[str, Any]) -> Any:
    """Return a template with ``{name}`` filled in; a text that is one name becomes its value."""
    if isinstance(template, dict):
        return {key: filled(value, facts) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, facts) for value in template]
    if not isinstance(template, str):
        return template
    if template[:1] == "{" and template[-1:] == "}" and template[1:-1] in facts:
        return facts[template[1:-1]]
    for name, value in facts.items():
        template = template.replace("{" + name + "}", _shown(value))
    return template


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:_MOST_SHOWN]
