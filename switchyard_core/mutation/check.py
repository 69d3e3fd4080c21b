"""Finds everything that is wrong with a rule set before it is compiled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.errors import nearest
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.readers import READERS
from switchyard_core.mutation.rule import is_glob
from switchyard_core.mutation.schema import (
    DEFAULT_PATH,
    ConditionModel,
    RuleModel,
    RuleSetModel,
    TextRuleModel,
)
from switchyard_core.mutation.text_edits import FORMS
from switchyard_core.patterns import PatternError, compile_pattern, name_glob, path_glob

__all__ = ["DIALECTS", "DOCUMENTS", "RuleProblem", "check_rule_set", "extends_cycle"]

#: How the shell reader takes a command.
DIALECTS: tuple[str, ...] = ("bash", "powershell", "cmd", "auto")
#: What the path of a rule runs on.
DOCUMENTS: tuple[str, ...] = ("conversation", "body")

_Place = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A problem in a rule set; the policy check turns it into a finding."""

    code: str  # ``SY4xx``
    message: str  # one sentence, lower case, no final stop, user input in back-ticks
    location: _Place  # keys and indices inside the rule-set table
    fix: str  # what to do about it
    column: int | None = None  # 0-based column inside the string at that place, if one is known
    notes: tuple[str, ...] = ()  # further lines


def check_rule_set(
    name: str,
    model: RuleSetModel,
    available: Mapping[str, RuleSetModel],
    *,
    reserved: Collection[str] = (),
) -> list[RuleProblem]:
    """Return every problem of one rule set, in the order of the document.

    ``available`` has every pack and rule set; ``reserved`` are names that only packs may have.
    """
    problems: list[RuleProblem] = []
    if name in reserved or available.get(name, model) is not model:
        message = f"`{name}` is the name of a shipped pack"
        fix = "rename the rule set and list the pack in `extends`"
        problems.append(RuleProblem("SY407", message, (), fix))
    problems += _check_extends(name, model, available)
    if model.unmatched is not None:
        problems += _one_of("label", model.unmatched, LABELS, ("unmatched",), "SY410")
    for key in ("scratch_paths", "artifact_paths", "plan_paths"):
        for place, glob in enumerate(getattr(model, key)):
            problems += _glob(partial(path_glob, [glob]), glob, (key, place))
    for place, rule in enumerate(model.rules):
        problems += _check_rule(rule, ("rules", place))
    for place, text in enumerate(model.text):
        problems += _check_text(text, ("text", place))
    for place, pattern in enumerate(model.examples_end):
        problems += _regex(pattern, ("examples_end", place))
    return problems


def _check_extends(
    name: str, model: RuleSetModel, available: Mapping[str, RuleSetModel]
) -> Iterator[RuleProblem]:
    names = sorted({*available, name})
    for place, parent in enumerate(model.extends):
        where: _Place = ("extends", place)
        if parent != name and parent not in available:
            message = f"unknown rule set `{parent}`"
            notes = (f"known rule sets: {', '.join(names)}",)
            yield RuleProblem("SY404", message, where, _nearest(parent, names), notes=notes)
        elif trail := extends_cycle(name, parent, available):
            message = f"rule set `{name}` extends itself: {' -> '.join(trail)}"
            yield RuleProblem("SY405", message, where, "remove one of these `extends`")


def extends_cycle(name: str, parent: str, available: Mapping[str, RuleSetModel]) -> tuple[str, ...]:
    """Return a shortest chain of ``extends`` from a rule set by a parent back to it, or nothing."""
    trails: list[tuple[str, ...]] = [(name, parent)]
    seen: set[str] = set()
    for trail in trails:
        last = trail[-1]
        if last == name:
            return trail
        if last in available and last not in seen:
            seen.add(last)
            trails += [(*trail, following) for following in available[last].extends]
    return ()


def _check_rule(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _check_match(rule, where)
    for key in ("path", "target", "command"):
        expression = getattr(rule, key)
        if expression is not None and key in rule.model_fields_set:
            yield from _path(expression, (*where, key))
    for place, condition in enumerate(rule.where):
        yield from _check_condition(condition, (*where, "where", place))
    if rule.label is not None:
        yield from _one_of("label", rule.label, LABELS, (*where, "label"), "SY410")
    elif rule.target is None and rule.reader is None:
        fix = f"add `label`, one of {', '.join(LABELS)}; or `target`, or `reader`"
        yield RuleProblem("SY406", "the rule has no `label`", where, fix)
    yield from _check_reader(rule, where)
    yield from _check_document(rule, where)


def _check_text(rule: TextRuleModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _one_of("reader of texts", rule.reader, FORMS, (*where, "reader"), "SY408")
    if rule.label is not None:
        yield from _one_of("label", rule.label, LABELS, (*where, "label"), "SY410")
    if rule.instructions is not None:
        yield from _regex(rule.instructions, (*where, "instructions"))


def _check_match(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    if not rule.match and rule.path == DEFAULT_PATH:
        at = (*where, "match") if "match" in rule.model_fields_set else where
        fix = 'add `match`, for every tool `match = ["*"]`'
        yield RuleProblem("SY413", "the rule matches no name", at, fix)
    for place, entry in enumerate(rule.match):
        at = (*where, "match", place)
        if not entry.strip():
            yield RuleProblem("SY413", "a blank name matches nothing", at, "remove it")
        elif entry.startswith("re:"):
            yield from _regex(entry[3:], at, shift=3)
        elif is_glob(entry):
            yield from _glob(partial(name_glob, entry), entry, at)


def _check_condition(condition: ConditionModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _path(condition.path, (*where, "path"))
    tests = {"equals", "in_", "not_in", "matches", "exists"} & condition.model_fields_set
    if len(tests) != 1:
        message = "a condition has several tests" if tests else "a condition has no test"
        fix = "give exactly one of equals, in, not_in, matches, exists"
        yield RuleProblem("SY414", message, where, fix)
    if condition.matches is not None:
        yield from _regex(condition.matches, (*where, "matches"))


def _check_reader(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    if rule.reader is not None:
        yield from _one_of("reader", rule.reader, READERS, (*where, "reader"), "SY408")
    if rule.reader == "shell" and rule.command is None:
        fix = 'add its location, such as `command = "$.arguments.command"`'
        message = "the shell reader has no `command`"
        yield RuleProblem("SY411", message, (*where, "reader"), fix)
    if rule.dialect is not None:
        yield from _one_of("dialect", rule.dialect, DIALECTS, (*where, "dialect"), "SY409")
    if rule.command is not None and rule.reader is None:
        yield _no_effect("command", "a `reader`", where)
    if rule.dialect is not None and rule.reader != "shell":
        yield _no_effect("dialect", '`reader = "shell"`', where)


def _check_document(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _one_of("document", rule.document, DOCUMENTS, (*where, "document"), "SY415")
    if rule.document != "body":
        if rule.format is not None:
            yield _no_effect("format", '`document = "body"`', where)
        return
    at = (*where, "document")
    if rule.format is None:
        message = "a rule on the body has no `format`"
        yield RuleProblem("SY412", message, at, f"add `format`, one of {', '.join(WIRE_FORMATS)}")
    else:
        yield from _one_of("wire format", rule.format, WIRE_FORMATS, (*where, "format"), "SY412")
    if rule.path == DEFAULT_PATH:
        message = "the default `path` is for the conversation document, not for a body"
        fix = "add a `path` into the body, such as `$.input[*].name`"
        yield RuleProblem("SY412", message, at, fix)


def _no_effect(key: str, needed: str, where: _Place) -> RuleProblem:
    message = f"`{key}` has no effect without {needed}"
    return RuleProblem("SY416", message, (*where, key), f"add {needed} or remove `{key}`")


def _path(expression: str, where: _Place) -> Iterator[RuleProblem]:
    try:
        compile_path(expression)
    except PathError as error:
        message = f"bad JSONPath: {error.message}"
        yield RuleProblem("SY401", message, where, "correct the path", error.column)


def _regex(text: str, where: _Place, *, shift: int = 0) -> Iterator[RuleProblem]:
    try:
        compile_pattern(text, dot_all=True)
    except PatternError as error:
        fix = "RE2 syntax applies: no look-around, no back-references"
        message = f"bad regular expression `{text}`: {error}"
        yield RuleProblem("SY402", message, where, fix, shift + error.column)


def _glob(compile_: Callable[[], object], text: str, where: _Place) -> Iterator[RuleProblem]:
    try:
        compile_()
    except PatternError as error:
        message, fix = f"bad glob `{text}`: {error}", "close the bracket"
        yield RuleProblem("SY403", message, where, fix, error.column)


def _one_of(
    kind: str, value: str, allowed: Iterable[str], where: _Place, code: str
) -> Iterator[RuleProblem]:
    names = tuple(allowed)
    if value not in names:
        message, notes = f"unknown {kind} `{value}`", (f"known: {', '.join(names)}",)
        yield RuleProblem(code, message, where, _nearest(value, names), notes=notes)


def _nearest(value: str, names: Iterable[str]) -> str:
    near = nearest(value, names)
    return f"did you mean `{near}`?" if near else "use one of the known names"
