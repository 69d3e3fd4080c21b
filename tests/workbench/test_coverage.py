"""What no case exercised, with its place in the policy."""

from __future__ import annotations

PLAIN = '{ model = "main", messages = [] }'


def call(tool):
    function = f'{{ name = "{tool}", arguments = "{{}}" }}'
    called = f'{{ id = "c", type = "function", function = {function} }}'
    turn = f'{{ role = "assistant", tool_calls = [{called}] }}'
    result = '{ role = "tool", tool_call_id = "c", content = "" }'
    return f'{{ model = "main", messages = [{turn}, {result}] }}'


def test_coverage_lists_routes_and_own_rules_that_no_case_exercised(run):
    tests = f'[[cases]]\nname = "one"\nrequest = {PLAIN}\nexpect = {{ target = "planner" }}\n'

    coverage = run(tests).coverage

    assert (coverage.routes, coverage.rules) == (2, 2)
    assert [(part.kind, part.name) for part in coverage.uncovered] == [
        ("route", "judged"),
        ("rule", "own/publish"),
        ("rule", "own/rules[1]"),
    ]
    assert [part.where.rpartition("toml:")[2] for part in coverage.uncovered] == [
        "40:9",
        "23:22",
        "28:22",
    ]
    assert (coverage.missing("route"), coverage.missing("rule")) == (1, 2)


def test_rule_counts_when_it_decided_in_a_case_or_before_it(run):
    tests = (
        f'[[cases]]\nname = "one"\nrequest = {call("preview")}\n'
        f'before = [{{ request = {call("publish")} }}]\nexpect = {{ target = "planner" }}\n'
    )

    names = [part.name for part in run(tests).coverage.uncovered]

    assert names == ["judged"]


def test_route_that_refuses_or_asks_counts(run):
    tests = (
        '[[cases]]\nname = "refused"\nrequest = { model = "main", input = "x" }\n'
        'expect = { error = "wire_format_not_served" }\n'
        '[[cases]]\nname = "asks"\nexpect = { target = "planner" }\n'
        'request = { model = "judged", messages = [{ role = "user", content = "x" }] }\n'
    )
    result = run(tests)

    assert [case.state for case in result.cases] == ["PASS", "ERROR"]
    assert result.coverage.missing("route") == 0
