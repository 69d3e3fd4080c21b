"""Finds everything that is wrong with a rule set before it is compiled."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.mutation.compiled import is_glob
from switchyard_core.mutation.labels import LABELS
from switchyard_core.mutation.schema import DEFAULT_PATH, ConditionModel, RuleModel, RuleSetModel
from switchyard_core.mutation.verdict import RuleProblem
from switchyard_core.patterns import PatternError, compile_pattern, name_glob, path_glob

__all__ = ["DIALECTS", "DOCUMENTS", "READERS", "check_rule_set"]

#: What reads the arguments of a call.
READERS: tuple[str, ...] = ("shell", "recurse", "code", "patch")
#: How the shell reader takes a command.
DIALECTS: tuple[str, ...] = ("bash", "powershell", "cmd", "auto")
#: What the path of a rule runs on.
DOCUMENTS: tuple[str, ...] = ("conversation", "body")

_Place = tuple[str | int, ...]


def check_rule_set(
    name: str,
    model: RuleSetModel,
    available: Mapping[str, RuleSetModel],
    *,
    reserved: Collection[str] = (),
) -> list[RuleProblem]:
    """Return every problem of one rule set, in the order of the document.

    Args:
        name: Its name in the policy.
        model: The rule set.
        available: Every pack and rule set by name, with or without this one.
        reserved: Names of packs, which a policy's own rule set must not take.
    """
    problems: list[RuleProblem] = []
    if name in reserved or available.get(name, model) is not model:
        problems.append(
            RuleProblem(
                code="SY407",
                message=f"`{name}` is the name of a shipped pack",
                location=(),
                fix="give the rule set a name of its own and list the pack in `extends`",
            )
        )
    problems += _check_extends(name, model, available)
    if model.unmatched is not None:
        problems += _one_of("label", model.unmatched, LABELS, ("unmatched",), "SY410")
    for key in ("scratch_paths", "artifact_paths", "plan_paths"):
        for place, glob in enumerate(getattr(model, key)):
            problems += _pattern(partial(path_glob, [glob]), "SY403", "glob", glob, (key, place))
    for place, rule in enumerate(model.rules):
        problems += _check_rule(rule, ("rules", place))
    return problems


def _check_extends(
    name: str, model: RuleSetModel, available: Mapping[str, RuleSetModel]
) -> Iterator[RuleProblem]:
    known = sorted({*available, name})
    for place, parent in enumerate(model.extends):
        where: _Place = ("extends", place)
        if parent != name and parent not in available:
            yield RuleProblem(
                code="SY404",
                message=f"unknown rule set `{parent}`",
                location=where,
                fix=_nearest(parent, known),
                notes=(f"known rule sets: {', '.join(known)}",),
            )
        elif (trail := _cycle(name, parent, available)) is not None:
            yield RuleProblem(
                code="SY405",
                message=f"rule set `{name}` extends itself: {' -> '.join(trail)}",
                location=where,
                fix="remove one of these `extends`",
            )


def _cycle(name: str, parent: str, available: Mapping[str, RuleSetModel]) -> tuple[str, ...] | None:
    """Return the way from a rule set through one parent back to itself."""
    stack: list[tuple[str, ...]] = [(name, parent)]
    seen: set[str] = set()
    while stack:
        trail = stack.pop()
        if trail[-1] == name:
            return trail
        if trail[-1] in seen or trail[-1] not in available:
            continue
        seen.add(trail[-1])
        stack += [(*trail, following) for following in available[trail[-1]].extends]
    return None


def _check_rule(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _check_match(rule, where)
    yield from _check_paths(rule, where)
    for place, condition in enumerate(rule.where):
        yield from _check_condition(condition, (*where, "where", place))
    if rule.label is not None:
        yield from _one_of("label", rule.label, LABELS, (*where, "label"), "SY410")
    elif rule.target is None and rule.reader is None:
        yield RuleProblem(
            code="SY406",
            message="the rule has no `label`",
            location=where,
            fix=f"add `label`, one of {', '.join(LABELS)}; or `target`, or `reader`",
        )
    yield from _check_reader(rule, where)
    yield from _check_document(rule, where)


def _check_match(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    if not rule.match and rule.path == DEFAULT_PATH:
        yield RuleProblem(
            code="SY413",
            message="the rule matches no name",
            location=(*where, "match") if "match" in rule.model_fields_set else where,
            fix='add `match`, for every tool `match = ["*"]`',
        )
    for place, entry in enumerate(rule.match):
        at = (*where, "match", place)
        if not entry.strip():
            yield RuleProblem(
                code="SY413", message="a blank name matches nothing", location=at, fix="remove it"
            )
        elif entry.startswith("re:"):
            yield from _pattern(
                partial(compile_pattern, entry[3:], dot_all=True),
                "SY402",
                "regular expression",
                entry[3:],
                at,
                shift=3,
            )
        elif is_glob(entry):
            yield from _pattern(partial(name_glob, entry), "SY403", "glob", entry, at)


def _check_paths(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    for key in ("path", "target", "command"):
        expression = getattr(rule, key)
        if expression is not None and key in rule.model_fields_set:
            yield from _path(expression, (*where, key))


def _check_condition(condition: ConditionModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _path(condition.path, (*where, "path"))
    tests = {"equals", "in_", "not_in", "matches", "exists"} & condition.model_fields_set
    if len(tests) != 1:
        yield RuleProblem(
            code="SY414",
            message="a condition has no test" if not tests else "a condition has several tests",
            location=where,
            fix="give exactly one of equals, in, not_in, matches, exists",
        )
    if condition.matches is not None:
        pattern = condition.matches
        yield from _pattern(
            partial(compile_pattern, pattern, dot_all=True),
            "SY402",
            "regular expression",
            pattern,
            (*where, "matches"),
        )


def _check_reader(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    if rule.reader is not None:
        yield from _one_of("reader", rule.reader, READERS, (*where, "reader"), "SY408")
    if rule.reader == "shell" and rule.command is None:
        yield RuleProblem(
            code="SY411",
            message="the shell reader has no `command`",
            location=(*where, "reader"),
            fix='add the place of the command, such as `command = "$.arguments.command"`',
        )
    if rule.dialect is not None:
        yield from _one_of("dialect", rule.dialect, DIALECTS, (*where, "dialect"), "SY409")
    for key, needed in (("command", rule.reader), ("dialect", rule.reader == "shell")):
        if getattr(rule, key) is not None and not needed:
            reader = "a `reader`" if key == "command" else '`reader = "shell"`'
            yield RuleProblem(
                code="SY416",
                message=f"`{key}` has no effect without {reader}",
                location=(*where, key),
                fix=f"add {reader} or remove `{key}`",
            )


def _check_document(rule: RuleModel, where: _Place) -> Iterator[RuleProblem]:
    yield from _one_of("document", rule.document, DOCUMENTS, (*where, "document"), "SY415")
    if rule.document == "body":
        if rule.format is None:
            yield RuleProblem(
                code="SY412",
                message="a rule on the body does not say which wire format it is for",
                location=(*where, "document"),
                fix=f"add `format`, one of {', '.join(WIRE_FORMATS)}",
            )
        else:
            yield from _one_of(
                "wire format", rule.format, WIRE_FORMATS, (*where, "format"), "SY412"
            )
        if rule.path == DEFAULT_PATH:
            yield RuleProblem(
                code="SY412",
                message="the default `path` is for the conversation document, not for a body",
                location=(*where, "document"),
                fix="add a `path` into the body, such as `$.input[*].name`",
            )
    elif rule.format is not None:
        yield RuleProblem(
            code="SY416",
            message='`format` has no effect without `document = "body"`',
            location=(*where, "format"),
            fix='add `document = "body"` or remove `format`',
        )


def _path(expression: str, where: _Place) -> Iterator[RuleProblem]:
    try:
        compile_path(expression)
    except PathError as error:
        yield RuleProblem(
            code="SY401",
            message=f"bad JSONPath: {error.message}",
            location=where,
            column=error.column,
            fix="correct the path",
        )


def _pattern(
    compile_: Callable[[], object],
    code: str,
    kind: str,
    text: str,
    where: _Place,
    *,
    shift: int = 0,
) -> Iterator[RuleProblem]:
    try:
        compile_()
    except PatternError as error:
        yield RuleProblem(
            code=code,
            message=f"bad {kind} `{text}`: {error}",
            location=where,
            column=shift + error.column,
            fix="RE2 syntax applies: no look-around, no back-references"
            if code == "SY402"
            else "close the bracket",
        )


def _one_of(
    kind: str, value: str, allowed: Iterable[str], where: _Place, code: str
) -> Iterator[RuleProblem]:
    names = tuple(allowed)
    if value not in names:
        yield RuleProblem(
            code=code,
            message=f"unknown {kind} `{value}`",
            location=where,
            fix=_nearest(value, names),
            notes=(f"known: {', '.join(names)}",),
        )


def _nearest(value: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(value, list(names), n=1)
    return f"did you mean `{near[0]}`?" if near else "use one of the known names"
