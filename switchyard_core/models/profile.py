"""What one target accepts: the entries that match it, put together in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from switchyard_core.declarations import WireFormat
from switchyard_core.models.schema import Entry, Reasoning, Rule, glob_test

__all__ = ["DEFAULTS", "Profile", "is_known", "profile_of"]

#: The facts that are defaults for keys of a target of the same names.
DEFAULTS = (
    "context_window",
    "max_output",
    "tool_id_style",
    "accepts_prefill",
    "structured_output",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a model at an endpoint accepts; ``None`` and empty values mean unknown.

    Args:
        entries: Ids of the profile entries that it is made from.
        rules: What is refused or demanded, each with who says so, in order.
        context_window: Tokens.
        max_output: Tokens.
        tool_id_style: As the key of a target.
        accepts_prefill: As the key of a target.
        structured_output: As the key of a target.
        prefix_bound: Whether thinking is valid only behind the history that it was made in.
        system_rows: Whether instructions may come within the history, in the format's own role.
        reads: Globs on the models whose thinking it reads.
        reasoning: How it reasons.
        facts: The entries themselves, with source and day.
    """

    entries: tuple[str, ...] = ()
    rules: tuple[tuple[str, Rule], ...] = ()
    context_window: int | None = None
    max_output: int | None = None
    tool_id_style: str | None = None
    accepts_prefill: bool | None = None
    structured_output: str | None = None
    prefix_bound: bool = False
    system_rows: bool = False
    reads: tuple[str, ...] = ()
    reasoning: Reasoning = field(default_factory=Reasoning)
    facts: tuple[Entry, ...] = field(default=(), repr=False)

    def reads_from(self, model: str) -> bool:
        """Return whether it is known to read the thinking of a model."""
        return bool(self.reads) and _test(self.reads)(model)


@lru_cache(maxsize=1024)
def _test(globs: tuple[str, ...]) -> Callable[[str], bool]:
    return glob_test(globs)


def is_known(entries: Iterable[Entry], name: str) -> bool:
    """Return whether a name is an entry's, or a model id that an entry is about."""
    return any(entry.id == name or _is_about(entry, name) for entry in entries)


def _is_about(entry: Entry, model: str) -> bool:
    """Return whether an entry is about a model and not about all of a vendor or a host.

    Globs on models have a version in them; those without would take any misspelt name.
    """
    return _test(entry.match)(model) and any(
        any(map(str.isdigit, glob)) and _test((glob,))(model)
        for glob in entry.match
        if not glob.startswith("!")
    )


def profile_of(
    entries: Sequence[Entry],
    *,
    model: str,
    wire_format: WireFormat,
    host: str,
    name: str | bool | None = None,
    fit: Sequence[Rule] = (),
) -> Profile:
    """Return what a model accepts.

    Args:
        entries: All known ones, in the order in which they apply.
        model: Model id of the target.
        wire_format: Wire format of its client.
        host: Host of its client, ``""`` for none.
        name: What the policy says: an entry, or a model id to match in place of the target's;
            ``False`` for no entry.
        fit: Rules of the policy, which come last.
    """
    wanted = name if isinstance(name, str) else model
    found = [
        entry
        for entry in entries
        if (entry.id == name or (name is not False and _test(entry.match)(wanted)))
        and (not entry.wire_formats or wire_format in entry.wire_formats)
        and (entry.host is None or entry.id == name or (host and _test(entry.host)(host)))
    ]
    rules = [(entry.id, rule) for entry in found for rule in entry.rules]
    return Profile(
        entries=tuple(entry.id for entry in found),
        rules=(*rules, *(("fit", rule) for rule in fit)),
        reasoning=_reasoning(found),
        facts=tuple(found),
        **_last(found),
    )


def _last(found: Sequence[Entry]) -> dict[str, Any]:
    """Return each fact as the last entry that knows it says."""
    return {
        name: value
        for entry in found
        for name in (*DEFAULTS, "prefix_bound", "system_rows", "reads")
        if (value := getattr(entry, name)) is not None
    }


def _reasoning(found: Sequence[Entry]) -> Reasoning:
    told = {
        key: value
        for entry in found
        for key, value in entry.reasoning.model_dump(exclude_none=True).items()
    }
    return Reasoning.model_validate(told)
