"""What a finding tells people to write: the literal, not only its type."""

from __future__ import annotations

import pytest

from switchyard_core.errors import Finding
from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text

_HEAD = (
    'schema_version = 1\n[llm_clients.c]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:1"\n'
)
_TARGET = _HEAD + '[targets.t]\nid = "m"\nllm_client = "c"\n'
_ROUTE = _TARGET + '[routes.r]\nid = "r"\ntype = "plan_execute"\n'
_SIDES = 'capable_target = "t"\nefficient_target = "t"\n'
_END = "[targets]\n[routes]\n"
_RULES = _TARGET + "[routes]\n"

#: A policy, its wrong line, the path, and what message, notes and fix must say.
_WRONG = {
    "no_version": (_END, "", "missing key `schema_version`", "add `schema_version = 1`"),
    "version_in_quotes": (
        'schema_version = "1"\n' + _END,
        "schema_version",
        "must be an integer",
        "write `1`",
    ),
    "no_type": (
        _TARGET + '[routes.r]\nid = "r"\n',
        "routes.r",
        "installed route types: fallback, llm_classifier, noop, passthrough, plan_execute",
        'add `type = "..."`',
    ),
    "no_format": (
        'schema_version = 1\n[llm_clients.c]\nbase_url = "http://127.0.0.1:1"\n' + _END,
        "llm_clients.c",
        "allowed: openai_chat, openai_responses, anthropic_messages, scripted",
        'add `format = "..."`',
    ),
    "no_client": (
        _HEAD + '[targets.t]\nid = "m"\n[routes]\n',
        "targets.t",
        "declared clients: c",
        'add `llm_client = "..."`',
    ),
    "table_for_array_of_tables": (
        _RULES + '[mutation_rules.x.rules]\nmatch = ["a"]\nlabel = "read_only"\n',
        "mutation_rules.x.rules",
        "must be an array, not a table",
        "write `[[mutation_rules.x.rules]]`",
    ),
    "inline_table_for_array_of_tables": (
        _RULES + '[mutation_rules.x]\nrules = { match = ["a"], label = "read_only" }\n',
        "mutation_rules.x.rules",
        "must be an array, not a table",
        "write an array, `[{ ... }]`",
    ),
    "array_of_tables_for_table": (
        _TARGET + '[[routes.r]]\nid = "r"\n',
        "routes.r",
        "must be a table, not an array",
        "write `[routes.r]`, in single brackets",
    ),
    "array_of_tables_for_all": (
        _HEAD + '[[targets]]\nid = "m"\n[routes]\n',
        "targets",
        "must be a table, not an array",
        "write `[targets.NAME]`, in single brackets",
    ),
    "text_for_array": (
        _RULES + '[[mutation_rules.x.rules]]\nmatch = "x"\nlabel = "read_only"\n',
        "mutation_rules.x.rules[0].match",
        "must be an array, not a string",
        'write `["x"]`',
    ),
    "array_for_text": (
        'default_route = ["r"]\n' + _ROUTE + _SIDES,
        "default_route",
        "must be a string, not an array",
        'write `"r"`',
    ),
    "number_for_text": (
        _HEAD + '[targets.t]\nid = 5\nllm_client = "c"\n[routes]\n',
        "targets.t.id",
        "must be a string, not an integer",
        'write `"5"`',
    ),
    "text_for_number": (
        _TARGET + 'context_window = "200000"\n[routes]\n',
        "targets.t.context_window",
        "must be an integer, not a string",
        "write `200000`",
    ),
    "yes_for_true": (
        _HEAD + 'forward_auth = "yes"\n' + _END,
        "llm_clients.c.forward_auth",
        "must be true or false, not a string",
        "write `true`",
    ),
    "capacity_of_nothing": (
        _ROUTE + _SIDES + "latch_capacity = 0\n",
        "routes.r.latch_capacity",
        "must be 1 or more, not 0",
        "write a number, 1 or more, or remove the key for the default, 4096",
    ),
    "retries": (
        _HEAD + "max_retries = 11\n" + _END,
        "llm_clients.c.max_retries",
        "must be from 0 to 10, not 11",
        "the default, 1",
    ),
    "timeout": (
        _HEAD + "timeout_ms = 0\n" + _END,
        "llm_clients.c.timeout_ms",
        "must be from 1 to 86400000, not 0",
        "the default, 600000",
    ),
    "option_of_another_type": (
        _ROUTE + _SIDES + 'planner_target = "t"\n',
        "routes.r.planner_target",
        "a key of route type `planner_executor` of plugin `planner_executor` (switchyard-core ",
        "remove the key, or set the `type` that has it",
    ),
    "far_option_of_another_type": (
        _ROUTE + _SIDES + "max_replans = 3\n",
        "routes.r.max_replans",
        "`max_replans` is a key of route type `planner_executor` of plugin",
        "remove the key, or set the `type` that has it",
    ),
    "point_in_a_name": (
        _HEAD + '[targets.gpt-5.1]\nid = "m"\nllm_client = "c"\n[routes]\n',
        "targets.gpt-5.1",
        "unknown key `1`",
        'write `[targets."gpt-5.1"]`, in quotes',
    ),
    "point_in_the_name_of_a_route": (
        _TARGET + '[routes.plan.execute]\nid = "r"\ntype = "plan_execute"\n' + _SIDES,
        "routes.plan.execute",
        "unknown key `execute`",
        'write `[routes."plan.execute"]`, in quotes',
    ),
    "not_a_number": (
        _HEAD + "timeout_ms = nan\n[targets]\n[routes]\n",
        "llm_clients.c.timeout_ms",
        "must be an integer, not `nan`",
        "write an integer",
    ),
    "space_in_an_id": (
        _HEAD + '[targets.u]\nid = "a b"\nllm_client = "c"\n[routes]\n',
        "targets.u.id",
        "without spaces",
        "use letters, digits and punctuation",
    ),
    "blank_name_of_a_rule": (
        _RULES + '[[mutation_rules.x.rules]]\nname = ""\nlabel = "file_edit"\nmatch = ["a"]\n',
        "mutation_rules.x.rules[0].name",
        "the name of this rule is blank",
        "or remove the key",
    ),
    "padded_name_of_a_rule": (
        _RULES + '[[mutation_rules.x.rules]]\nname = " a"\nlabel = "file_edit"\nmatch = ["a"]\n',
        "mutation_rules.x.rules[0].name",
        "blank, padded, or holds",
        "or remove the key",
    ),
    "two_rules_of_one_name": (
        _RULES + '[[mutation_rules.x.rules]]\nname = "a"\nlabel = "file_edit"\nmatch = ["a"]\n'
        '[[mutation_rules.x.rules]]\nname = "a"\nlabel = "file_edit"\nmatch = ["b"]\n',
        "mutation_rules.x.rules[1].name",
        "two rules of this set have the name `a`",
        "rename one",
    ),
    "price_of_a_day_in_quotes": (
        _TARGET + '[routes]\n[prices.m]\nas_of = "2026-01-01"\ninput = 1.0\noutput = 1.0\n',
        "prices.m.as_of",
        "must be a date such as",
        "without quotes",
    ),
    "blank_name": (
        _HEAD + '[targets.""]\nid = "m"\nllm_client = "c"\n[routes]\n',
        'targets.""',
        "the name of this table is blank",
        "write a name, `[targets.NAME]`",
    ),
    "padded_name": (
        _TARGET + '[routes." r "]\nid = "r"\ntype = "plan_execute"\n' + _SIDES,
        'routes." r "',
        "begins or ends with a space",
        "write `[routes.r]`",
    ),
    "control_in_name": (
        _HEAD + '[targets."a\\u0007b"]\nid = "m"\nllm_client = "c"\n[routes]\n',
        'targets."a\\u0007b"',
        "holds U+0007, which cannot be seen",
        "write `[targets.ab]`",
    ),
    "invisible_in_name": (
        _RULES + '[mutation_rules."x\\u200b"]\nrules = []\n',
        'mutation_rules."x\\u200b"',
        "holds U+200B, which cannot be seen",
        "write `[mutation_rules.x]`",
    ),
    "blank_name_of_a_client": (
        'schema_version = 1\n[llm_clients." "]\nformat = "openai_chat"\n'
        'base_url = "http://127.0.0.1:1"\n' + _END,
        'llm_clients." "',
        "the name of this table is blank",
        "write a name",
    ),
}


@pytest.fixture(scope="module")
def registry() -> PluginRegistry:
    return PluginRegistry.from_entry_points()


@pytest.mark.parametrize(("text", "path", "said", "fix"), _WRONG.values(), ids=_WRONG)
def test_finding_says_what_to_write(
    registry: PluginRegistry, text: str, path: str, said: str, fix: str
) -> None:
    found = check_policy_text(text, "p.toml", registry).findings
    finding = next((one for one in found if (one.path, one.severity) == (path, "error")), None)
    assert isinstance(finding, Finding), [one.render() for one in found]
    assert said in "\n".join((finding.message, *finding.notes))
    assert fix in finding.fix
    assert finding.line


def test_value_that_looks_like_a_credential_is_not_in_the_fix(registry: PluginRegistry) -> None:
    secret = "sk-proj-abcdefghijklmnop1234"
    text = f'{_RULES}[[mutation_rules.x.rules]]\nmatch = "{secret}"\nlabel = "read_only"\n'
    found = check_policy_text(text, "p.toml", registry).findings
    assert any(one.path.endswith("match") for one in found)
    assert all(secret not in one.render() for one in found)
