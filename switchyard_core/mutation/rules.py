"""Mutation rules: which tool calls and texts change files, decided by the policy's rule sets.

The rules of all sets form one order; the first that matches a call decides its label. Names are
looked up in a dictionary, and a shell command is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from switchyard_core.conversation import Conversation, Text, ToolCall
from switchyard_core.jsonio.path_steps import Location
from switchyard_core.mutation.arguments import files_in
from switchyard_core.mutation.hints import read_hint
from switchyard_core.mutation.index import RuleIndex
from switchyard_core.mutation.labels import LABELS, Reading, Verdict, strongest
from switchyard_core.mutation.memory import Memo, brief
from switchyard_core.mutation.patch import MOST_FILES
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.readers import NOT_JSON, CallReader, Cost, read_whole
from switchyard_core.mutation.roots import Root, RootFinder
from switchyard_core.mutation.rule import NO_RULE, CallView, CompiledRule, compile_rule
from switchyard_core.mutation.schema import RuleSetModel
from switchyard_core.mutation.shell.session import TOO_MUCH, Budget
from switchyard_core.mutation.tables import load_table
from switchyard_core.mutation.text_rules import TextHistory, TextRules, compile_text_rules

__all__ = ["MutationRules", "compile_rules"]

#: Lists of rule sets whose compiled rules are kept.
_COMPILED = 32
#: Distinct tools and commands, and calls, that are remembered.
_MEMO = 4096
_MAX_CALLS = 16384
#: Maximum depth of wrappers.
_DEPTH = 5
#: Steps to find the rules on a call inside a wrapper.
_INNER = 12
_WIRE_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
# Tuples are the fastest for `isinstance`, with the dictionary first.
_TEXTS = (str, bytes)
_OBJECTS = (dict, Mapping)


def compile_rules(
    names: Sequence[str],
    available: Mapping[str, RuleSetModel],
    *,
    unmatched: str | None = None,
    workspace: Sequence[str] = (),
) -> MutationRules:
    """Compile rule sets into one ordered list of rules.

    Args:
        names: Rule sets in the order in which they are tried.
        available: Every pack and rule set by name, without problems.
        unmatched: Label of a call that no rule decides; ``None`` takes the first set's.
        workspace: Roots of the workspace, besides those that a client's prompt names.
    """
    order: list[str] = []

    def add(name: str, trail: tuple[str, ...]) -> None:
        if name not in order and name not in trail:
            order.append(name)
            for parent in available[name].extends:
                add(parent, (*trail, name))

    for name in names:
        add(name, ())
    sets = _Sets(tuple((name, available[name]) for name in order))
    return _compiled(sets, unmatched, tuple(workspace))


class _Sets(tuple[tuple[str, RuleSetModel], ...]):  # noqa: SLOT001 - a tuple has no room for any
    """Rule sets in order; only the very same ones are equal."""

    def __hash__(self) -> int:
        return hash(tuple(id(model) for _, model in self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Sets) and [(name, id(model)) for name, model in self] == [
            (name, id(model)) for name, model in other
        ]


@lru_cache(maxsize=_COMPILED)
def _compiled(sets: _Sets, unmatched: str | None, workspace: tuple[str, ...]) -> MutationRules:
    """Compile rule sets; routes and policies with the same ones share what they remember."""
    rules: list[CompiledRule] = []
    for name, model in sets:
        for place, rule in enumerate(model.rules):
            rules.append(
                compile_rule(rule, index=len(rules), rule_set=name, place=place, fold=model.fold)
            )
    models = [model for _, model in sets]
    declared = [model.unmatched for model in models if model.unmatched is not None]
    hints = [model.argument_hint for model in models if model.argument_hint is not None]
    classes = PathClasses(
        scratch=tuple(glob for model in models for glob in model.scratch_paths),
        artifact=tuple(glob for model in models for glob in model.artifact_paths),
        plan=tuple(glob for model in models for glob in model.plan_paths),
        workspace=workspace,
    )
    return MutationRules(
        rules,
        classes=classes,
        text=compile_text_rules(sets),
        unmatched=unmatched or (declared[0] if declared else "read_only"),
        hint=bool(hints and hints[0]),
    )


class _Tool(msgspec.Struct, frozen=True, eq=False):
    """What all calls of one tool have in common."""

    indices: tuple[int, ...]  # the rules on its name, in order
    verdict: Verdict | None  # the verdict, when the name alone decides
    uses_id: bool  # whether a rule may tell calls apart by their ids


class MutationRules:
    """A compiled list of rules; safe to share between threads."""

    def __init__(
        self,
        rules: Sequence[CompiledRule],
        *,
        classes: PathClasses,
        text: TextRules,
        unmatched: str,
        hint: bool = False,
    ) -> None:
        self._rules = tuple(rules)
        self._text = text
        #: Whether a rule reads texts, too, and not calls alone.
        self.reads_text = bool(text)
        self._classes = classes
        self._unmatched = unmatched
        #: Whether the arguments of a call that no rule decides may hint at an edit.
        self._hint = hint and unmatched != LABELS[0]
        self._custom = [rule for rule in self._rules if rule.path is not None]
        self._index = RuleIndex(self._rules)
        self._directories = frozenset(load_table("arguments")["directory"])
        self._tools: Memo[tuple[str, str | None, str | None, str], _Tool] = Memo(_MEMO)
        self._commands: Memo[tuple[PathClasses, str, str | bytes], Cost] = Memo(_MEMO)
        #: Verdicts by workspace, tool, arguments and, if it matters, the id of the call.
        self._verdicts: Memo[tuple[PathClasses, Hashable, str | bytes, str], Verdict] = Memo(
            _MAX_CALLS
        )
        self._roots = RootFinder(classes)
        #: What paths mean, by further roots of the workspace and where a call starts.
        self._workspaces: Memo[tuple[tuple[str, ...], str], PathClasses] = Memo(_MEMO)

    def label(self, call: ToolCall, *, workspace: Sequence[str] = ()) -> Verdict:
        """Return the verdict on one call, from the rules on its name.

        Rules with their own ``path`` need the whole conversation: see :meth:`scan`. ``workspace``
        has roots besides those that the rules were compiled with.
        """
        return self._label(call, self._in(tuple(workspace)))

    def label_text(self, text: str, *, workspace: Sequence[str] = ()) -> tuple[Verdict, ...]:
        """Return a verdict per edit in a text of the assistant.

        Rules for clients with certain instructions apply too, since nobody knows the client.
        """
        return self._text.label(text, self._in(tuple(workspace)))

    def roots(self, history: TextHistory) -> tuple[Root, ...]:
        """Return where the workspace of a history is, as far as the policy or the prompt says."""
        return self._roots.of(history)

    def scan(
        self,
        conversation: Conversation,
        *,
        body: Callable[[], Any] | None = None,
        wire_format: str | None = None,
    ) -> tuple[Verdict, ...]:
        """Return every verdict on a history; see :meth:`iterate`."""
        history = TextHistory(conversation=conversation)
        return tuple(self.iterate(history, body=body, wire_format=wire_format))

    def iterate(
        self,
        history: TextHistory,
        *,
        body: Callable[[], Any] | None = None,
        wire_format: str | None = None,
    ) -> Iterator[Verdict]:
        """Yield a verdict per tool call and per edit in a text, in order, on demand.

        The conversation document is built only for rules with their own path; ``body``, which gives
        the raw body tree, is called at most once and only for rules on bodies of ``wire_format``.
        """
        conversation = history.conversation
        found: PathClasses | None = None

        def classes() -> PathClasses:
            nonlocal found
            if found is None:
                found = self._in(tuple(root.path for root in self._roots.of(history)))
            return found

        verdicts = self._calls(conversation, body, wire_format, classes)
        if not self.reads_text:
            yield from verdicts
            return
        label, calls = self._text.labeller(history, classes), iter(conversation.calls)
        awaited = next(calls, None)
        for number, message in enumerate(conversation.messages):
            for part in message.content:
                if part is awaited:
                    yield next(verdicts)
                    awaited = next(calls, None)
                elif message.role == "assistant" and isinstance(part, Text):
                    yield from label(number, part)

    def _in(self, workspace: tuple[str, ...], directory: str = "") -> PathClasses:
        """Return what paths mean in a workspace, for a call that starts in a directory."""
        if not (workspace or directory):
            return self._classes
        key = (workspace, directory)
        known = self._workspaces.get(key)
        if known is None:
            known = self._classes.within(workspace).starting_in(directory)
            self._workspaces.keep(key, known)
        return known

    def _calls(
        self,
        conversation: Conversation,
        body: Callable[[], Any] | None,
        wire_format: str | None,
        classes: Callable[[], PathClasses],
    ) -> Iterator[Verdict]:
        """Yield one verdict per call of ``conversation.calls``."""
        calls = conversation.calls
        if not self._custom or not calls:
            known = self._tools.get
            for call in calls:
                key = (call.name, call.namespace, call.server, call.kind)
                tool = known(key) or self._tool(call)
                yield _placed(tool.verdict or self._remembered(tool, call, classes()), call)
            return
        found: list[set[int]] = [set() for _ in calls]
        for rule, places, document in self._documents(conversation, body, wire_format):
            longest = max(map(len, places), default=0)
            for location, value in rule.path.matches(document) if rule.path is not None else ():
                number = _owner(location[:longest], places)
                if number is not None and self._index.is_named(rule, value):
                    found[number].add(rule.index)
        for call, extra in zip(calls, found, strict=True):
            if extra:
                indices = sorted({*self._tool(call).indices, *extra})
                yield _placed(self._decide(CallView(call), indices, classes()), call)
            else:
                yield self._label(call, classes())

    def _documents(
        self, conversation: Conversation, body: Callable[[], Any] | None, wire_format: str | None
    ) -> Iterator[tuple[CompiledRule, Mapping[Location, int], Any]]:
        """Yield rules with their own path, the locations of calls, and what the path runs on."""
        tree: Any = None
        for rule in self._custom:
            if rule.model.document == "conversation":
                yield rule, _places(conversation), conversation.document()
            elif body is not None and rule.model.format == wire_format:
                tree = body() if tree is None else tree
                calls = enumerate(conversation.calls)
                yield rule, {_wire_location(call.path): n for n, call in calls}, tree

    def _tool(self, call: ToolCall) -> _Tool:
        key = (call.name, call.namespace, call.server, call.kind)
        return self._tools.get(key) or self._tools.keep(key, self._new_tool(call))

    def _new_tool(self, call: ToolCall) -> _Tool:
        indices = self._index.rules_on(call.name, call.server or call.namespace or "")
        fixed = self._rules[indices[0]].fixed if indices else not self._hint
        return _Tool(
            indices=indices,
            verdict=self._decide(CallView(call), indices, self._classes) if fixed else None,
            uses_id=any(self._rules[index].uses_id for index in indices),
        )

    def _label(self, call: ToolCall, classes: PathClasses) -> Verdict:
        tool = self._tool(call)
        return _placed(tool.verdict or self._remembered(tool, call, classes), call)

    def _remembered(self, tool: _Tool, call: ToolCall, classes: PathClasses) -> Verdict:
        source = call.source
        if not isinstance(source, _TEXTS):
            return self._decide(CallView(call), tool.indices, classes)
        key = (classes, tool, brief(source), call.id if tool.uses_id else "")
        return self._verdicts.get(key) or self._verdicts.keep(
            key, self._decide(CallView(call), tool.indices, classes)
        )

    def _decide(
        self,
        view: CallView,
        indices: Sequence[int],
        classes: PathClasses,
        *,
        depth: int = 0,
        budget: Budget | None = None,
    ) -> Verdict:
        """Return the verdict of the first rule that applies to a call, wherever the call is."""
        budget = budget or Budget()
        unreadable: CompiledRule | None = None
        broken = view.broken
        given = view.arguments if isinstance(view.arguments, _OBJECTS) else {}
        for index in indices:
            rule = self._rules[index]
            if broken and rule.reads_arguments:
                unreadable = unreadable or rule
            # An edit tool has a rule for each possible name of its path: most are absent.
            elif not rule.conditions or (
                (rule.needs is None or rule.needs in given) and rule.applies(view)
            ):
                reading = self._reading(view, rule, classes, depth=depth, budget=budget)
                if reading.label == "file_edit" and rule.label is not None:
                    # The rule decides the label of an edit.
                    reading = Reading(label=rule.label, word=reading.word, detail=reading.detail)
                return _verdict(rule.verdict, reading)
        if unreadable is not None:
            return _verdict(unreadable.verdict, NOT_JSON)
        reading = Reading(label=self._unmatched)
        if self._hint:
            reader = self._reader(view, classes, depth=depth, budget=budget)
            reading = strongest([reading, read_hint(reader, given)])
        return _verdict(NO_RULE, reading)

    def _reading(
        self,
        view: CallView,
        rule: CompiledRule,
        classes: PathClasses,
        *,
        depth: int,
        budget: Budget,
    ) -> Reading:
        if rule.reader is not None:
            dialect = rule.model.dialect or "auto"
            reader = self._reader(view, classes, dialect, depth=depth, budget=budget)
            values = [view.arguments] if rule.command is None else view.values(rule.command)
            # The reader decides what a path without value means.
            if len(values) == 1:
                return reader.read(rule.reader, values[0])
            return strongest(reader.read(rule.reader, value) for value in values or [None])
        if rule.target is None:
            return Reading(label=rule.label or "file_edit")
        paths = files_in(view.values(rule.target), MOST_FILES + 1)
        label, scratch = classes.target_label, rule.model.scratch
        if len(paths) == 1:
            return label(paths[0], scratch=scratch)
        reading = strongest(label(path, scratch=scratch) for path in paths[:MOST_FILES])
        if not paths or (len(paths) > MOST_FILES and reading.label != "file_edit"):
            detail = "names too many files" if paths else "names no file"
            return Reading(label="file_edit", detail=detail)
        return reading

    def _reader(
        self,
        view: CallView,
        classes: PathClasses,
        dialect: str = "auto",
        *,
        depth: int,
        budget: Budget,
    ) -> CallReader:
        """Return what reads the arguments of a call."""
        classes = self._from(classes, view.arguments)
        return CallReader(
            classes=classes,
            dialect=dialect,
            tool=view.call.name,
            broken=view.broken,
            read_command=self._read_command,
            budget=budget,
            label_inner=lambda *inner: self._inner(classes, *inner, depth=depth + 1, budget=budget),
        )

    def _from(self, classes: PathClasses, arguments: Any) -> PathClasses:
        """Return the classes for a call whose arguments may say where it starts."""
        if not isinstance(arguments, _OBJECTS) or self._directories.isdisjoint(arguments):
            return classes
        named = (arguments.get(key) for key in load_table("arguments")["directory"])
        directory = next((each for each in named if isinstance(each, str) and each), "")
        return self._in(classes.workspace, directory) if directory else classes

    def _inner(
        self,
        classes: PathClasses,
        name: str,
        arguments: Any,
        server: str | None = None,
        *,
        depth: int,
        budget: Budget,
    ) -> Reading:
        if depth > _DEPTH:
            return Reading(label="unknown", word=name, detail="wrapped too deeply")
        if not budget.spend(_INNER):
            return Reading(label="unknown", word=name, detail=TOO_MUCH)
        source = arguments if isinstance(arguments, Mapping | str) else {"input": arguments}
        custom = isinstance(source, str) and not source.lstrip().startswith("{")
        kind: Any = "custom" if custom else "function"
        call = ToolCall(id="", name=name, source=source, kind=kind, server=server)
        indices = self._tool(call).indices
        verdict = self._decide(CallView(call), indices, classes, depth=depth, budget=budget)
        detail = f"{name}: {verdict.detail}" if verdict.detail else name
        return Reading(label=verdict.label, word=verdict.word or name, detail=detail)

    def _read_command(self, command: str, dialect: str, classes: PathClasses) -> Cost:
        key = (classes, dialect, brief(command))
        return self._commands.get(key) or self._commands.keep(
            key, read_whole(command, classes, dialect)
        )


def _verdict(base: Verdict, reading: Reading) -> Verdict:
    return msgspec.structs.replace(
        base, label=reading.label, word=reading.word, detail=reading.detail
    )


def _placed(verdict: Verdict, call: ToolCall) -> Verdict:
    return msgspec.structs.replace(
        verdict, tool=call.name, call_path=call.path, message=call.message
    )


def _places(conversation: Conversation) -> Mapping[Location, int]:
    """Return the number of each call by its location in the conversation document."""
    numbers = {id(call): number for number, call in enumerate(conversation.calls)}
    return {
        ("messages", i, "content", j): numbers[id(part)]
        for i, message in enumerate(conversation.messages)
        for j, part in enumerate(message.content)
        if id(part) in numbers
    }


def _wire_location(path: str) -> Location:
    """Return the location of a wire path such as ``$.input[6]``."""
    return tuple(int(index) if index else name for name, index in _WIRE_STEP.findall(path))


def _owner(location: Location, places: Mapping[Location, int]) -> int | None:
    owners = (places.get(location[:end]) for end in range(len(location), 0, -1))
    return next((number for number in owners if number is not None), None)
