"""The contract of mutation packs as tests that any pack inherits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from switchyard_core.declarations import WireFormat
from switchyard_core.mutation import LABELS, MutationRules, Verdict, check_rule_set, compile_rules
from switchyard_core.testing.conformance.bench import PerFormat, require
from switchyard_core.testing.conversation import conversation
from switchyard_core.testing.harness import registry_of
from switchyard_core.testing.story import Call

__all__ = ["MutationPackConformance"]

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
    #: Calls by the label that each must get.
    examples: ClassVar[Mapping[str, Sequence[Call]]] = {}

    def test_pack_is_a_clean_rule_set(self) -> None:
        """What a policy check would say of it: no rule is wrong or can never match."""
        self._rules()

    def test_pack_labels_its_examples(self, wire_format: WireFormat) -> None:
        """Every example gets its label, in every wire format that can express it."""
        require(self.examples, "give `examples`: calls by the label that each must get")
        for label in self.examples:
            require(label in LABELS, f"`{label}` is not a label; labels: {', '.join(LABELS)}")
        rules = self._rules()
        for label, call in self._calls():
            for verdict in _verdicts(rules, wire_format, call):
                require(
                    verdict.label == label,
                    f"`{call.name}` with {call.arguments!r} is `{verdict.label}` "
                    f"({verdict.rule_set} {verdict.rule}), not `{label}`",
                )

    def test_pack_labels_a_failed_call_like_any(self, wire_format: WireFormat) -> None:
        """A failed edit is an edit: the label depends on the call, not on its result."""
        rules = self._rules()
        for label, call in self._calls():
            failed = Call(name=call.name, arguments=call.arguments, fails=True)
            for verdict in _verdicts(rules, wire_format, failed):
                problem = f"`{call.name}` is `{verdict.label}` when it fails, not `{label}`"
                require(verdict.label == label, problem)

    def test_pack_survives_odd_arguments(self, wire_format: WireFormat) -> None:
        """Models write broken JSON, and values of any type; each still gets a label."""
        rules = self._rules()
        for name in sorted({call.name for _, call in self._calls()} or {"bash"}):
            for arguments in _ODD:
                for verdict in _verdicts(rules, wire_format, Call(name=name, arguments=arguments)):
                    problem = (
                        f"`{name}` with {arguments!r} is `{verdict.label}`, which is not a label"
                    )
                    require(verdict.label in LABELS, problem)

    def _calls(self) -> Iterator[tuple[str, Call]]:
        for label, calls in self.examples.items():
            yield from ((label, call) for call in calls)

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
