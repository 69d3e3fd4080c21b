"""Text rules: the labels of edits that the assistant wrote as text, in the order of the history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from switchyard_core.conversation import Conversation, Message, Text
from switchyard_core.mutation.labels import Verdict
from switchyard_core.mutation.memory import Memo, brief
from switchyard_core.mutation.paths import PathClasses
from switchyard_core.mutation.rule import NO_RULE
from switchyard_core.mutation.schema import TEXT_PATH, RuleSetModel, TextRuleModel
from switchyard_core.mutation.text_edits import TextEdit, text_edits
from switchyard_core.patterns import compile_pattern

__all__ = ["TextHistory", "TextRules", "compile_text_rules"]

#: Texts that are remembered.
_MEMO = 16384
_Found = tuple[TextEdit, ...]
_Test = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class _TextRule:
    """One text rule, ready to run."""

    model: TextRuleModel
    verdict: Verdict  # for its edits, without label and place
    instructions: _Test | None  # what the client's instructions must pass


@dataclass(frozen=True, slots=True, kw_only=True)
class TextHistory:
    """A request's history as the rules need it.

    Args:
        conversation: The history.
        instructions: Gives the client's instructions; ``None`` when nobody knows them.
        instructions_source: JSON of those that are not in the history.
        key: The body's key of the history.
    """

    conversation: Conversation
    instructions: Callable[[], str] | None = None
    instructions_source: bytes = b""
    key: str = "messages"

    def path(self, message: Message) -> str:
        """Return the wire path of a turn: an item, or a slice."""
        first, last = message.first, message.last
        return f"$.{self.key}[{first}]" if first == last else f"$.{self.key}[{first}:{last + 1}]"


def compile_text_rules(sets: Sequence[tuple[str, RuleSetModel]]) -> TextRules:
    """Compile the text rules of named rule sets, which are tried in order."""
    rules = [
        _TextRule(
            model=model,
            verdict=msgspec.structs.replace(
                NO_RULE, rule_set=name, rule=model.name or f"text[{place}]", jsonpath=TEXT_PATH
            ),
            instructions=None
            if model.instructions is None
            else compile_pattern(model.instructions),
        )
        for name, each in sets
        for place, model in enumerate(each.text)
    ]
    ends = [compile_pattern(pattern) for _, each in sets for pattern in each.examples_end]
    return TextRules(rules, ends)


class TextRules:
    """The text rules of a route; safe to share between threads."""

    def __init__(self, rules: Sequence[_TextRule], ends: Sequence[_Test]) -> None:
        self._rules, self._ends = tuple(rules), tuple(ends)
        self._found: Memo[str | bytes, _Found] = Memo(_MEMO)
        self._are_ends: Memo[str | bytes, bool] = Memo(_MEMO)

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._rules)

    def label(self, text: str, classes: PathClasses) -> tuple[Verdict, ...]:
        """Return a verdict per edit in a text, as if its client's instructions asked for each."""
        return tuple(self._verdicts(text_edits(text), None, classes))

    def labeller(
        self, history: TextHistory, classes: Callable[[], PathClasses]
    ) -> Callable[[int, Text], Iterator[Verdict]]:
        """Return what yields the verdicts on a text of the assistant, by index of its message.

        Whether a rule applies, where a client's examples end and what paths mean in the history's
        workspace is found out at the first edit.
        """
        messages = history.conversation.messages
        rules: Sequence[_TextRule] | None = None
        begin = -1

        def label(number: int, part: Text) -> Iterator[Verdict]:
            nonlocal rules, begin
            key = brief(part.source)
            found = self._found.get(key)
            if found is None:
                found = self._found.keep(key, tuple(text_edits(part.text)))
            if found and rules is None:
                rules, begin = self._applying(history), self._examples_end(history.conversation)
            if found and number > begin:
                path = history.path(messages[number])
                for verdict in self._verdicts(found, rules, classes()):
                    yield msgspec.structs.replace(verdict, message=number, call_path=path)

        return label

    def _applying(self, history: TextHistory) -> Sequence[_TextRule]:
        given = history.instructions
        if given is None or all(rule.instructions is None for rule in self._rules):
            return self._rules
        text = given()
        return [r for r in self._rules if r.instructions is None or r.instructions(text)]

    def _examples_end(self, conversation: Conversation) -> int:
        """Return the index of the user's message that ends a client's examples, -1 without one."""
        for number, message in enumerate(conversation.messages if self._ends else ()):
            if message.role == "user" and any(
                self._is_end(part) for part in message.content if isinstance(part, Text)
            ):
                return number
        return -1

    def _is_end(self, part: Text) -> bool:
        key = brief(part.source)
        known = self._are_ends.get(key)
        if known is None:
            known = self._are_ends.keep(key, any(test(part.text) for test in self._ends))
        return known

    def _verdicts(
        self, edits: Iterable[TextEdit], rules: Sequence[_TextRule] | None, classes: PathClasses
    ) -> Iterator[Verdict]:
        for edit in edits:
            for rule in self._rules if rules is None else rules:
                if rule.model.reader == edit.form:
                    yield _verdict(edit, rule, classes)
                    break


def _verdict(edit: TextEdit, rule: _TextRule, classes: PathClasses) -> Verdict:
    reading = classes.target_label(edit.path, scratch=rule.model.scratch)
    own = rule.model.label if reading.label == "file_edit" else None
    return msgspec.structs.replace(
        rule.verdict,
        label=own or reading.label,
        word=reading.word,
        detail=reading.detail,
        offset=edit.offset,
    )
