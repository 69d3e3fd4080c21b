"""The shipped profiles: each rule does what it says to a body that breaks it, and nothing else."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import Any

import pytest

from scripts.write_profiles_page import PAGE, tables
from switchyard_core.decision import Rewrite
from switchyard_core.declarations import WIRE_FORMATS, WireFormat
from switchyard_core.errors import RefusedError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.models import Entry, Rule, core_profiles, profile_of, read_profiles
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites
from switchyard_core.wire.rewrites.fit import Rules
from tests.models.bodies import PLAIN, REPAIRED, triggering

TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES}
ENTRIES = [entry for declared in core_profiles() for entry in read_profiles(declared)]
ROWS = [
    pytest.param(entry, rule, wire_format, id=f"{entry.id}-{number}-{wire_format}")
    for entry in ENTRIES
    for number, rule in enumerate(entry.rules)
    for wire_format in (entry.wire_formats or WIRE_FORMATS)
    if not (wire_format == "openai_responses" and rule.path in ("reasoning_effort", "stop"))
    if not (wire_format == "openai_chat" and rule.path == "reasoning.effort")
]


def fitted(
    body: bytes, entry: Entry, wire_format: WireFormat, headers: dict[str, str], rule: Rule
) -> tuple[bytes, tuple[str, ...]]:
    parameters = {"rules": Rules.of([(entry.id, rule)])}
    rewrite = Rewrite(name="fit_model", parameters=parameters)
    sent, (report,) = apply_rewrites(
        ObjectText(body), [rewrite], TYPES, wire_format, headers=headers
    )
    return sent, report.changes


@pytest.mark.parametrize(("entry", "rule", "wire_format"), ROWS)
def test_rule_changes_what_breaks_it_as_it_says_and_once(
    entry: Entry, rule: Rule, wire_format: WireFormat
) -> None:
    tree, headers = triggering(entry, rule, wire_format)
    body = json.dumps(tree).encode()
    if rule.do == "refuse":
        with pytest.raises(RefusedError, match=re.escape(rule.why)):
            fitted(body, entry, wire_format, headers, rule)
        return

    sent, changes = fitted(body, entry, wire_format, headers, rule)

    assert changes, f"nothing changed in {tree}"
    assert all(change.endswith(f"({entry.id})") for change in changes)
    check(rule, json.loads(sent), headers)
    again, more = fitted(sent, entry, wire_format, headers, rule)
    assert (again, more) == (sent, ())


@pytest.mark.parametrize(("entry", "rule", "wire_format"), ROWS)
def test_rule_leaves_a_body_that_keeps_it_byte_for_byte(
    entry: Entry, rule: Rule, wire_format: WireFormat
) -> None:
    text = json.dumps(PLAIN[wire_format], indent=1).replace("}", ' ,"odd":1.10,"é":1e400}', 1)
    body = text.encode()

    sent, changes = fitted(body, entry, wire_format, {"user-agent": "x"}, rule)

    assert (sent, changes) == (body, ())


def check(rule: Rule, tree: dict[str, Any], headers: dict[str, str]) -> None:
    """Look at the place that a rule is about."""
    if rule.header is not None:
        assert headers[rule.header] == "other-beta"
        return
    if rule.do == "convert":
        told = REPAIRED[rule.to or ""][1]
        for key in told if rule.path != "reasoning_effort" else ():
            assert tree[key] == told[key]
        return
    found = values(tree, (rule.path or "").split("."))
    if rule.do == "drop":
        assert found == []
    elif rule.do == "rename":
        assert found == []
        assert rule.to in tree
    elif rule.do == "set":
        assert found == [rule.value]
    elif rule.do == "map":
        assert found[0] in [*(rule.values or {}).values(), rule.else_]
    elif rule.do == "keep_only":
        assert found == []
    else:
        pytest.fail(f"no shipped rule had the verb {rule.do} before: say what it does")


def values(node: Any, keys: list[str]) -> list[Any]:
    if not keys:
        return [node]
    name = keys[0].removesuffix("[]")
    if not isinstance(node, dict) or name not in node:
        return []
    inner = node[name] if keys[0].endswith("[]") else [node[name]]
    return [value for each in inner for value in values(each, keys[1:])]


def test_tables_of_the_page_are_those_of_the_data() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.endswith(tables()), "run: python scripts/write_profiles_page.py"


# --- the data -----------------------------------------------------------------------------------


def test_sources_are_public_and_days_are_not_in_the_future() -> None:
    public = re.compile(r"github\.com/[\w.-]+/[\w.-]+|[\w-]+(?:\.[\w-]+)+/?")
    assert [e.id for e in ENTRIES if not public.match(e.source)] == []
    assert [e.id for e in ENTRIES if e.as_of > date(2026, 11, 30)] == []


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in ENTRIES]
    assert sorted(set(ids)) == sorted(ids)


REACH = {
    ("claude-haiku-4-5", "anthropic_messages"): [
        "claude",
        "claude-unsigned-thinking",
        "claude-forced-tool",
        "claude-one-sampler",
        "claude-system-first",
        "claude-haiku-4-5",
    ],
    ("claude-opus-4-8", "anthropic_messages"): [
        "claude",
        "claude-unsigned-thinking",
        "claude-forced-tool",
        "claude-one-sampler",
        "claude-system-rows",
        "claude-no-prefill",
        "claude-adaptive-only",
        "claude-opus-4-late",
    ],
    ("claude-opus-5-5", "anthropic_messages"): [
        "claude",
        "claude-unsigned-thinking",
        "claude-forced-tool",
        "claude-one-sampler",
        "claude-system-rows",
        "claude-no-prefill",
        "claude-adaptive-only",
        "claude-prefix-bound",
        "claude-opus-5-5",
        "claude-opus-5-5-tools",
    ],
    ("claude-sonnet-5", "anthropic_messages"): [
        "claude",
        "claude-unsigned-thinking",
        "claude-forced-tool",
        "claude-one-sampler",
        "claude-system-rows",
        "claude-no-prefill",
        "claude-adaptive-only",
        "claude-sonnet-5",
    ],
    ("claude-haiku-4-5", "openai_chat"): [],
    ("gpt-5.4-nano", "openai_responses"): [
        "openai-responses-sampling",
        "openai-encrypted-reasoning",
        "openai-reasoning-mode",
        "openai-configuration-update",
        "gpt-5.4",
        "gpt-5.4-small",
    ],
    ("gpt-5.5", "openai_chat"): [
        "openai-limit-key",
        "openai-chat-effort",
        "openai-sampling",
        "gpt-5.5",
    ],
    ("deepseek-v4-pro", "openai_chat"): [
        "deepseek",
        "deepseek-forced-tool",
        "deepseek-v4-pro",
        "deepseek-strict",
        "deepseek-limit-key",
    ],
    ("glm-5.2", "openai_chat"): ["glm-4.5-to-5.2", "glm-one-switch"],
    ("kimi-k2.7-code", "openai_chat"): [
        "kimi-k2",
        "kimi-k2-thinking",
        "kimi-k2-strict",
        "kimi-k2.7-code",
    ],
    ("provider/capable-model", "openai_chat"): [],
}


def test_entries_reach_the_models_that_they_are_about_and_no_other() -> None:
    hosts = {"anthropic_messages": "api.anthropic.com", "openai_responses": "api.openai.com"}
    found = {
        (model, wire_format): list(
            profile_of(
                ENTRIES,
                model=model,
                wire_format=wire_format,  # type: ignore[arg-type]
                host=hosts.get(wire_format, "x"),
            ).entries
        )
        for model, wire_format in REACH
    }
    assert found == REACH
