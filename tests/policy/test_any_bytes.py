"""Whatever a file holds, a check ends soon with findings or with a policy."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import CheckResult, check_policy_text
from switchyard_core.policy.document import MAX_BYTES
from switchyard_core.policy.lint import RULES
from tests.policy.lint.pages import POLICY as HEAD
from tests.policy.lint.pages import example

ROOT = Path(__file__).parents[2]
SHIPPED = [path.read_bytes() for path in sorted((ROOT / "policies").glob("*.toml"))]
#: Shipped policies, and one for each lint rule.
SOURCES = [*SHIPPED, *(example(rule.name).encode() for rule in RULES)]
#: Environment variables of the policies above.
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
#: Seconds that a check may take, of a processor: a busy machine is not its fault.
# Coverage doubles the time.
LIMIT = 2.0 if sys.gettrace() is None else 4.0
#: What a slip of the finger or an editor leaves behind.
SNIPPETS = st.sampled_from(
    [b'"', b"'", b'"""', b"[", b"]]", b"{", b"}", b"=", b".", b",", b"\n", b"\r", b"\t", b"\xff",
     b"\xef\xbb\xbf", b"\x00", b"#", b"# switchyard: allow ", b" -- ", b"true", b"1e999", b"-1",
     b"9" * 40, b"1979-05-27", b"nan", b"$.", b"re:(", b"[[mutation_rules.own.rules]]\n", b"\\u",
     b'extends = ["own"]\n', b"\xf0\x9f\x98\x80", b'include = ["."]\n']
)  # fmt: skip


def checked(data: bytes, registry: PluginRegistry) -> CheckResult:
    """Check a policy, and that what comes out is sound."""
    before = time.process_time()
    result = check_policy_text(data, "p.toml", registry, environ=KEYS, base_dir=ROOT / "policies")
    assert time.process_time() - before < LIMIT
    assert (result.policy is None) is bool(result.errors)
    assert "SY901" not in {finding.code for finding in result.findings}
    for finding in result.findings:
        assert finding.render()
    return result


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A policy with pieces deleted, doubled, moved or replaced."""
    data = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        piece = draw(st.one_of(SNIPPETS, st.binary(max_size=4), st.just(data[start:end] * 2)))
        data = data[:start] + piece + data[end:]
    return data


@st.composite
def lines_of_policies(draw: st.DrawFn) -> bytes:
    """Lines of several policies in another order: more of them is TOML."""
    lines = st.sampled_from(sorted({line for data in SOURCES for line in data.splitlines()}))
    return b"\n".join(draw(st.lists(lines, max_size=25)))


@settings(max_examples=150, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_give_findings_or_a_policy(data: bytes, installed: PluginRegistry) -> None:
    checked(data, installed)


@settings(max_examples=300, deadline=None)
@given(data=mutated())
def test_mutated_policy_gives_findings_or_a_policy(data: bytes, installed: PluginRegistry) -> None:
    checked(data, installed)


@settings(max_examples=150, deadline=None)
@given(data=lines_of_policies())
def test_shuffled_policies_give_findings_or_a_policy(
    data: bytes, installed: PluginRegistry
) -> None:
    checked(data, installed)


def test_policy_that_is_cut_anywhere_gives_findings_or_a_policy(installed: PluginRegistry) -> None:
    for data in SHIPPED:
        for end in range(0, len(data), max(1, len(data) // 40)):
            checked(data[:end], installed)


MANY: dict[str, Callable[[int], str]] = {
    "quotes": lambda size: '"' * size,
    "brackets": lambda size: "[" * size,
    "dotted_keys": lambda size: "a." * (size // 2),
    "suppressions": lambda size: HEAD + "# switchyard: allow unused-targt -- x\n" * (size // 40),
    "unused_suppressions": lambda size: (
        HEAD + "# switchyard: allow unused-target -- x\n" * (size // 40)
    ),
    "unused_targets": lambda size: (
        HEAD
        + "".join(
            f'[targets.t{n}]\nid = "m"\nllm_client = "provider"\n' for n in range(size // 200)
        )
    ),
    "long_comment": lambda size: HEAD + "#" * size,
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MANY.items()])
def test_largest_policy_is_checked_in_time(
    make: Callable[[int], str], installed: PluginRegistry
) -> None:
    data = make(MAX_BYTES - len(HEAD)).encode()
    assert len(data) > MAX_BYTES // 6
    assert checked(data, installed).findings or data.endswith(b"##")


RULE_LISTS = {
    "names_of_its_own": '{{ label = "file_edit", match = ["cms_{n}"] }},\n',
    "one_name_in_common": '{{ label = "file_edit", match = ["a", "cms_{n}"] }},\n',
    "patterns": '{{ label = "file_edit", match = ["cms_{n}_*"] }},\n',
    "almost_known_names": '{{ label = "file_edit", match = ["apply_pach{n}"] }},\n',
}


@pytest.mark.parametrize("rule", list(RULE_LISTS.values()), ids=list(RULE_LISTS))
def test_policy_with_a_thousand_rules_is_checked_in_time(
    rule: str, installed: PluginRegistry
) -> None:
    rules = "".join(rule.format(n=n) for n in range(1000))
    text = f"{HEAD}mutation_rules = ['own']\n[mutation_rules.own]\nrules = [\n{rules}]\n"
    assert checked(text.encode(), installed).policy is not None
