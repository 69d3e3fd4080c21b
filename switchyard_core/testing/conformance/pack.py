"""The contract of mutation packs as tests that any pack inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from switchyard_core.declarations import WireFormat
from switchyard_core.mutation import LABELS, MutationRules, Verdict, check_rule_set, compile_rules
from switchyard_core.testing.conformance.bench import PerFormat, require
from switchyard_core.testing.conversation import conversation
from switchyard_core.testing.harness import registry_of
from switchyard_core.testing.story import Call

__all__ = ["MutationPackConformance"]

T = TypeVar("T", Call, str)

_ODD: tuple[Mapping[str, Any] | str, ...] = (
    {},
    "",
    '{"path": ',
    "[1]",
    {"command": None, "path": 7, "file_path": ["a", {"b": 1}]},
    {"command": "echo 'never closed", "path": "\x00", "patch": "*** Begin Patch"},
    {"command": "x" * 20_000},
)


class MutationPackConformance(PerFormat):
    """Inherit it in a test module, name a pack, and pytest runs the contract's tests.

    Example:
        >>> class TestMyAgent(MutationPackConformance):
        ...     plugins = (my_agent,)                                      # doctest: +SKIP
        ...     pack = "my_agent"
        ...     examples = {"file_edit": [call("write", path="a.py")]}
    """

    #: Name of the pack.
    pack: ClassVar[str] = ""
    #: The plugins that give it; none for a pack of the core.
    plugins: ClassVar[Sequence[object]] = ()
    #: Calls, and texts of the assistant, by the label that each must get. A text without an edit
    #: is ``read_only``.
    examples: ClassVar[Mapping[str, Sequence[Call | str]]] = {}

    def test_pack_is_a_clean_rule_set(self) -> None:
        """What a policy check would say of it: no rule is wrong or can never match."""
        self._rules()

    def test_pack_labels_its_examples(self, wire_format: WireFormat) -> None:
        """Every example gets its label, in every wire format that can express it."""
        require(self.examples, "give `examples`: calls or texts by the label that each must get")
        for label in self.examples:
            require(label in LABELS, f"`{label}` is not a label; labels: {', '.join(LABELS)}")
        rules = self._rules()
        for label, call in self._examples(Call):
            for verdict in _verdicts(rules, wire_format, call):
                require(
                    verdict.label == label,
                    f"`{call.name}` with {call.arguments!r} is `{verdict.label}` "
                    f"({verdict.rule_set} {verdict.rule}), not `{label}`",
                )
        for label, text in self._examples(str):
            told = conversation(wire_format).user("go").says(text).request("m")
            found = {verdict.label for verdict in rules.scan(told.conversation)} or {"read_only"}
            labels = ", ".join(sorted(found))
            require(found == {label}, f"the text {text!r} is `{labels}`, not `{label}`")

    def test_pack_labels_a_failed_call_like_any(self, wire_format: WireFormat) -> None:
        """A failed edit is an edit: the label depends on the call, not on its result."""
        rules = self._rules()
        for label, call in self._examples(Call):
            failed = Call(name=call.name, arguments=call.arguments, fails=True)
            for verdict in _verdicts(rules, wire_format, failed):
                problem = f"`{call.name}` is `{verdict.label}` when it fails, not `{label}`"
                require(verdict.label == label, problem)

    def test_pack_survives_odd_arguments(self, wire_format: WireFormat) -> None:
        """Models write broken JSON, and values of any type; each still gets a label."""
        rules = self._rules()
        for name in sorted({call.name for _, call in self._examples(Call)} or {"bash"}):
            for arguments in _ODD:
                for verdict in _verdicts(rules, wire_format, Call(name=name, arguments=arguments)):
                    problem = (
                        f"`{name}` with {arguments!r} is `{verdict.label}`, which is not a label"
                    )
                    require(verdict.label in LABELS, problem)

    def _examples(self, kind: type[T]) -> Iterator[tuple[str, T]]:
        for label, examples in self.examples.items():
            yield from ((label, each) for each in examples if isinstance(each, kind))

    def _rules(self) -> MutationRules:
        sets = registry_of(self.plugins).rule_sets
        names = ", ".join(sorted(sets))
        require(self.pack in sets, f"no given plugin has the pack `{self.pack}`; known: {names}")
        problems = check_rule_set(self.pack, sets[self.pack], sets)
        require(not problems, "; ".join(f"{each.code} {each.message}" for each in problems))
        return compile_rules((self.pack,), sets)


def _verdicts(rules: MutationRules, wire_format: WireFormat, call: Call) -> tuple[Verdict, ...]:
    try:
        request = conversation(wire_format).user("go").parallel(call).request("m")
    except ValueError:
        return ()  # the wire format has no such call
    return rules.scan(request.conversation, body=request.tree, wire_format=wire_format)
