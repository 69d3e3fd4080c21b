"""The rule that would have avoided a provider's refusal, for a person to paste."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import tomli
from pydantic import ValidationError

from switchyard_core.declarations import WireFormat
from switchyard_core.models.schema import Rule
from switchyard_core.patterns import linear

__all__ = ["suggest_rule"]

#: Largest body of an error that is looked at, in bytes.
_LARGEST = 64 * 1024
#: Where a word begins within a name such as `presencePenalty`.
_WORD = re.compile(r"(?<=[a-z])([A-Z])")
#: Codes of errors about a parameter that is not there, or about the model.
_OTHERS = re.compile(r"missing|not_found|required|context_length|too_long|array_above")


def suggest_rule(body: bytes, wire_format: WireFormat) -> str | None:
    """Return the rule for ``[[targets.x.fit]]`` that a provider's 400 asks for, as an inline table.

    Args:
        body: The body of the error.
        wire_format: Wire format that it answers.

    Returns:
        The rule as TOML, ``None`` when the error names nothing that a rule can change. It is a
        suggestion: nothing is learned from it.
    """
    message, param, code = _said(body)
    for pattern, template in _suggestions():
        if pattern is None:
            field = param if param and not _OTHERS.search(code) else ""
            groups = {"path": field} if field else None
        else:
            found = pattern.search(message)
            groups = found.groupdict() if found is not None else None
        if groups is not None:
            rule = _filled(template, groups)
            if _is_rule(rule) and _is_for(rule, wire_format):
                return rule
    return None


def _said(body: bytes) -> tuple[str, str, str]:
    """Return message, field and code of an error."""
    try:
        tree: Any = json.loads(body[:_LARGEST])
    except (ValueError, RecursionError):
        return body[:_LARGEST].decode("utf-8", "replace"), "", ""
    error = tree.get("error", tree) if isinstance(tree, dict) else tree
    if not isinstance(error, dict):
        return str(error), "", ""
    told = [error.get(key) for key in ("message", "param", "code")]
    message, param, code = (value if isinstance(value, str) else "" for value in told)
    return message or json.dumps(error), param, code


@cache
def _suggestions() -> tuple[tuple[Any, str], ...]:
    text = (files(__package__) / "suggestions.toml").read_text("utf-8")
    return tuple(
        (linear(one["match"], ignore_case=True) if "match" in one else None, one["rule"])
        for one in tomli.loads(text)["suggestion"]
    )


def _filled(template: str, groups: Mapping[str, str | None]) -> str:
    """Return a rule with the words of an error; some name a field as their own code does."""
    named = {key: _WORD.sub(r"_\1", value or "").lower() for key, value in groups.items()}
    return re.sub(r"\{(\w+)\}", lambda match: named.get(match[1], ""), template)


def _is_rule(text: str) -> bool:
    try:
        Rule.model_validate_json(json.dumps(tomli.loads(f"rule = {text}")["rule"]))
    except (ValueError, ValidationError):
        return False
    return True


def _is_for(text: str, wire_format: WireFormat) -> bool:
    """Return whether a rule is about a history that the format has."""
    return wire_format != "openai_responses" or '"messages"' not in text
