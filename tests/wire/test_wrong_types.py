"""Values of a wrong type: a rewrite leaves them as they are, and says so."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchyard_core.decision import Rewrite, RewriteReport
from switchyard_core.declarations import WireFormat
from switchyard_core.jsonio.tree import ArrayText, ObjectText
from switchyard_core.models import core_profiles, profile_of, read_profiles
from switchyard_core.wire import FORMATS
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites
from switchyard_core.wire.rewrites.fit import Rules
from switchyard_core.wire.rewrites.repairs import REPAIRS
from switchyard_core.wire.shapes import odd_values
from tests.support.mutated import broken_bodies

#: All that patch a body: `translate` writes another one, see test_round_trips.py.
TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES if rewrite.name != "translate"}
TIMES = int(os.environ.get("SWITCHYARD_STRESS_TIMES", "1"))
EXAMPLES = 500 * TIMES
pytestmark = pytest.mark.timeout(60 * TIMES)
ENTRIES = [entry for declared in core_profiles() for entry in read_profiles(declared)]
MODELS: dict[str, tuple[str, ...]] = {
    "openai_chat": (
        "gpt-6-sol",
        "deepseek-v4-pro",
        "kimi-k2.6",
        "gemini-3.1-pro",
        "glm-5",
        "grok-4",
    ),
    "openai_responses": ("gpt-6-sol", "gpt-4o", "grok-4"),
    "anthropic_messages": ("claude-haiku-4-5", "claude-opus-5", "claude-fable-5-1"),
}
PLACE = re.compile(r"\b([a-z_]+(?:\[\d*\]|\.[a-z_]+)*(?:\[\d*\])(?:\.[a-z_]+)*)")
BARE = re.compile(
    r"^(?:removed|set|lowered|raised|renamed|put the text (?:before|after)) ([a-z_.]+)"
)
Place = tuple[str | int, ...]

# --- what a rewrite may change --------------------------------------------------------------------


def parsed(path: str) -> Place:
    return tuple(
        int(n) if n else key for key, n in re.findall(r"([a-z_]+)|(\d+)", path) if key or n
    )


def named(changes: Sequence[str]) -> set[Place]:
    """Return the places that a report names."""
    found = {parsed(path) for change in changes for path in PLACE.findall(change)}
    found |= {parsed(match[1]) for change in changes if (match := BARE.match(change))}
    if any("context edit" in change for change in changes):
        found.add(("context_management",))
    if "removed thinking" in changes:
        found.add(("thinking",))
    return found


def originals(changes: Sequence[str], key: str, count: int) -> set[Place]:
    """Return the first numbers of items that were merged when others had gone."""
    gone = {int(n) for c in changes for n in re.findall(rf"^removed the empty {key}\[(\d+)\]$", c)}
    left: list[int | None] = [n for n in range(count) if n not in gone]
    if f"added a user message as {key}[0]" in changes:
        left.insert(0, None)
    merges = [re.match(rf"merged {key}\[(\d+)\] into {key}\[(\d+)\]", c) for c in changes]
    numbers = [left[int(m[n])] for m in merges if m for n in (1, 2)]
    return {(key, number) for number in numbers if number is not None}


def behind_calls(changes: Sequence[str], history: Sequence[Any]) -> set[Place]:
    """Return the messages behind calls that got a result: one of them may hold it."""
    found: set[Place] = set()
    for change in changes:
        if match := re.match(r"added a result for (messages)\[(\d+)\]", change):
            for number in range(int(match[2]) + 1, len(history)):
                said = history[number]
                if isinstance(said, dict) and said.get("role") == "assistant":
                    break
                found.add((match[1], number))
    return found


def only_named(before: bytes, after: bytes, names: set[Place], where: str = "") -> None:
    """Check that nothing differs but what is named."""
    if before == after or () in names or (before == b"null" and names):
        return  # A null is what is not there, and may get members.
    assert names, f"{where or 'the body'} was changed, and no report names it"
    if before[:1] == after[:1] == b"{":
        old, new = ObjectText(before), ObjectText(after)
        for key in {*old.keys(), *new.keys()}:
            inner = {place[1:] for place in names if place[0] == key}
            was, now = old.raw(key), new.raw(key)
            assert inner or was == now, f"{where}.{key} was changed, and no report names it"
            if was is not None and now is not None:
                only_named(was, now, inner, f"{where}.{key}")
        return
    if before[:1] == b'"' and after[:1] == b"[":
        assert before in after or not json.loads(before).strip()
        return  # A text became the first of some items.
    assert before[:1] == after[:1] == b"[", f"{where} got another type, and no report names it"
    ours, theirs = ArrayText(before), ArrayText(after)
    in_place = len(ours) == len(theirs) and all(len(place) > 1 for place in names)
    rest = iter([theirs.raw(n) for n in range(len(theirs))])
    for number in range(len(ours)):
        inner = {place[1:] for place in names if place[0] == number}
        if not inner:
            assert ours.raw(number) in rest, f"{where}[{number}] is not as it was"
        elif in_place:
            only_named(ours.raw(number), theirs.raw(number), inner, f"{where}[{number}]")
            next(rest, None)


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif value is not None:
        yield json.dumps(value)


def under(tree: Any, place: Place) -> Iterator[str]:
    for key in place:
        try:
            tree = tree[key]
        except (KeyError, IndexError, TypeError):
            return
    yield from leaves(tree)


ADDS = ("added", "merged", "put the text")


def nothing_lost(before: Any, after: Any, changes: Sequence[str]) -> None:
    """Check that every scalar that went was in what a report says is removed or replaced."""
    lost = Counter(leaves(before)) - Counter(leaves(after))
    losing = [change for change in changes if not change.startswith(ADDS)]
    for place in named(losing):
        lost -= Counter(under(before, place))
    joined = "\n".join(leaves(after))
    kept = [leaf for leaf in lost if leaf.startswith('"') and leaf[1:-1] in joined]
    gone = {leaf for leaf in lost if leaf not in kept and json.loads(leaf) != ""}
    assert not gone, f"{gone} went, and no report says so: {changes}"


def of_type(value: Any) -> str:
    named = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else named.get(type(value), "a number")


def sort_of(line: str) -> str:
    return re.sub(r"\[\d+\]", "[]", line.partition(", not ")[0])


def sorts(value: Any, place: str = "") -> Iterator[str]:
    """Yield place without numbers, and type, of every value, as a report names them."""
    yield f"{place} is {of_type(value)}"
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from sorts(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for inner in value:
            yield from sorts(inner, f"{place}[]")


IDS = ("id", "call_id", "tool_call_id", "tool_use_id")


def odd_kept(
    wire_format: WireFormat, before: bytes, after: Any, reports: Sequence[RewriteReport]
) -> None:
    """Check that values of a wrong type went only within what is removed whole, and no lone id."""
    there, changes = Counter(sorts(after)), [c for report in reports for c in report.changes]
    told = {line for report in reports for line in report.untouched if " is null" not in line}
    gone = Counter(map(sort_of, told)) - there
    assert not gone, f"{gone} went, and a report says that it was sent untouched: {changes}"
    odd = odd_values(ObjectText(before), FORMATS[wire_format].view.shape)
    lost = Counter(map(sort_of, odd)) - there
    whole = [c for c in changes if re.match(r"(?:removed|turned into)(?! (?!the file).* of )", c)]
    parts = named(whole)
    allowed: Counter[str] = Counter()
    for line in odd if lost else ():
        place = parsed(line.partition(" is ")[0])
        inside = any(place[: len(part)] == part != place for part in parts)
        lone = place[-1] in IDS and any("its call is missing" in change for change in whole)
        allowed[sort_of(line)] += inside and not lone
    assert not lost - allowed, f"{lost - allowed} went, and no report says so: {changes}"


# --- the rewrites ---------------------------------------------------------------------------------


def profile(wire_format: WireFormat, number: int) -> Rewrite:
    """Return the rewrite for one of the models that the format knows rules of."""
    model = MODELS[wire_format][number % len(MODELS[wire_format])]
    rules = profile_of(ENTRIES, model=model, wire_format=wire_format, host="").rules
    kept = [(who, rule) for who, rule in rules if rule.do != "refuse"]
    assert kept
    return Rewrite(name="fit_model", parameters={"rules": Rules.of(kept), "max_output": 4096})


#: Every rule that ships and every repair, each as the only rule of a model.
RULES = [
    *(Rules.of([(e.id, r)]) for e in ENTRIES for r in e.rules if r.do != "refuse"),
    *(
        Rules([{"do": "convert", "path": path, "to": name, "value": "reasoning_effort"}])
        for name in REPAIRS
        for path in ("messages", "input", "model")
    ),
]


def options(through: int) -> dict[str, list[dict[str, Any]]]:
    place, whens = {"through_call": through}, [{"when": "always"}, {"when": "dropped"}]
    message = {"through_message": through}
    return {
        "reasoning_as_text": [{**place, "max_chars": n} for n in (0, 5, 100)],
        "drop_opaque_reasoning": [place, message, {"spans": [[0, through]]}],
        "drop_origin_bound": [{**place, "context": flag} for flag in (True, False)],
        "drop_reasoning_companions": [{"when": "always", "drop_continuation": True}, *whens],
        "remap_tool_ids": [{"style": "format"}, {"style": "alphanumeric_9"}],
        "repair_tool_pairs": whens,
        "drop_empty_content": whens,
        "append_user_text": [{"text": "Do it."}, {"text": "Do it.", "behind_call": through}],
        "insert_system_prompt": [{"text": "Sys."}, {"text": "Sys.", "position": "append"}],
        "insert_planning_prompt": [{"text": "Plan."}, {"text": "Plan.", "position": "append"}],
        "limit_cache_marks": whens,
        "target_parameters": [{"extra_body": {"x": {"y": 1}, "temperature": 0.1}}],
        "reasoning_effort": [{"effort": "low"}],
        "end_with_user_turn": [{}],
        "set_model": [{"id": "m"}],
    }


def run(
    data: bytes, rewrites: Sequence[Rewrite], wire_format: WireFormat
) -> tuple[bytes, tuple[RewriteReport, ...]]:
    return apply_rewrites(ObjectText(data), rewrites, TYPES, wire_format)


def test_every_rewrite_is_tried():
    assert {*options(0), "fit_model"} == set(TYPES)


USERS = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
DROP, MARKS = ("drop_empty_content", {}), ("limit_cache_marks", {})
PAIRS, SYSTEM = ("repair_tool_pairs", {}), ("insert_system_prompt", {"text": "Sys."})
WORDS, GO_ON = ("append_user_text", {"text": "Do it."}), ("end_with_user_turn", {})
EFFORT, SEALS = (
    ("reasoning_effort", {"effort": "low"}),
    ("drop_origin_bound", {"through_message": 9}),
)
LEFT = ": it was sent untouched"
TEXT = ("reasoning_as_text", {"through_message": 9})
MESSAGES, CHAT, RESPONSES = "anthropic_messages", "openai_chat", "openai_responses"


def users(content: Any) -> dict[str, Any]:
    return {"messages": [{**each, "content": content} for each in USERS]}


@pytest.mark.parametrize(
    ("wire_format", "rewrite", "body", "lines"),
    [
        (MESSAGES, DROP, users(123), ["messages[0].content is a number", 2]),
        (MESSAGES, DROP, users({"a": 1}), ["messages[0].content is an object", 2]),
        (MESSAGES, DROP, users(True), ["messages[0].content is a boolean", 2]),
        (MESSAGES, MARKS, users({"a": 1}), ["messages[0].content is an object", 2]),
        (MESSAGES, PAIRS, users(5), ["messages[0].content is a number", 2]),
        (MESSAGES, PAIRS, users(["x", 5]), ["messages[0].content[0] is a string", 4]),
        (
            MESSAGES,
            WORDS,
            users(5),
            ["messages[1].content is a number, not a string or an array", 1],
        ),
        (MESSAGES, WORDS, users(False), ["messages[1].content is a boolean", 1]),
        (MESSAGES, SYSTEM, {"system": 5}, ["system is a number, not a string or an array", 1]),
        (MESSAGES, SYSTEM, {"system": {}}, ["system is an object, not a string or an array", 1]),
        (
            MESSAGES,
            MARKS,
            {"messages": [], "tools": [7]},
            ["tools[0] is a number, not an object", 1],
        ),
        (MESSAGES, WORDS, {"messages": {}}, ["messages is an object, not an array", 1]),
        (MESSAGES, EFFORT, {"output_config": 5}, ["output_config is a number, not an object", 1]),
        (CHAT, SYSTEM, {"messages": {}}, ["messages is an object, not an array", 1]),
        (CHAT, GO_ON, {"messages": "hi"}, ["messages is a string, not an array", 1]),
        (CHAT, DROP, users(5), ["messages[0].content is a number, not a string or an array", 2]),
        (CHAT, PAIRS, {"messages": [5]}, ["messages[0] is a number, not an object", 1]),
        (
            CHAT,
            PAIRS,
            {"messages": [{"role": "assistant", "tool_calls": {"id": "c"}}]},
            ["messages[0].tool_calls is an object, not an array", 1],
        ),
        (RESPONSES, SYSTEM, {"instructions": 5}, ["instructions is a number", 1]),
        (RESPONSES, WORDS, {"input": 5}, ["input is a number, not a string or an array", 1]),
        (RESPONSES, EFFORT, {"reasoning": "x"}, ["reasoning is a string, not an object", 1]),
        (
            RESPONSES,
            TEXT,
            {"input": [{"type": "reasoning", "id": [], "summary": [{"text": "x"}]}]},
            ["input[0].id is an array, not a string", 1],
        ),
        (
            RESPONSES,
            SEALS,
            {"input": [{"type": "mcp_call", "id": "m", "name": "n", "arguments": {"a": 1}}]},
            ["input[0].arguments is an object, not a string", 1],
        ),
    ],
)
def test_wrong_type_goes_on_untouched_and_is_reported(
    wire_format: WireFormat,
    rewrite: tuple[str, dict[str, Any]],
    body: dict[str, Any],
    lines: list[Any],
) -> None:
    name, parameters = rewrite
    data = json.dumps({"model": "m", **body}).encode()

    after, (report,) = run(data, [Rewrite(name=name, parameters=parameters)], wire_format)

    first, count = lines
    assert after == data
    assert report.changes == ()
    assert len(report.untouched) == count
    assert report.untouched[0].startswith(first)
    assert all(line.endswith(": it was sent untouched") for line in report.untouched)


# --- ids: what may be a pair stays --------------------------------------------------------------

NO_IDS: tuple[Any, ...] = (5, 0, 1.5, True, False, None, {}, {"a": 1}, [], ["c1"])
LAST = {"role": "user", "content": "Go on."}


def chat_pair(call: Any, result: Any) -> dict[str, Any]:
    made = {"id": call, "type": "function", "function": {"name": "edit_file", "arguments": "{}"}}
    answer = {"role": "tool", "tool_call_id": result, "content": "IMPORTANT"}
    return {"messages": [{"role": "assistant", "tool_calls": [made]}, answer, LAST]}


def named_pair(call: Any, result: Any) -> dict[str, Any]:
    made = {"role": "assistant", "function_call": {"name": call, "arguments": "{}"}}
    answer = {"role": "function", "name": result, "content": "IMPORTANT"}
    return {"messages": [made, answer, LAST]}


def messages_pair(call: Any, result: Any) -> dict[str, Any]:
    made = {"type": "tool_use", "id": call, "name": "Edit", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": result, "content": "IMPORTANT"}
    said = [("assistant", [made]), ("user", [answer]), ("assistant", "Done."), ("user", "Go on.")]
    return {"messages": [{"role": role, "content": content} for role, content in said]}


def responses_pair(call: Any, result: Any, kind: str = "function_call") -> dict[str, Any]:
    made = {"type": kind, "call_id": call, "name": "edit_file", "arguments": "{}"}
    answer = {"type": f"{kind}_output", "call_id": result, "output": "IMPORTANT"}
    return {"input": [made, answer, LAST]}


PAIRED = [
    (CHAT, chat_pair, "messages[0].tool_calls[0].id", "messages[1].tool_call_id"),
    (CHAT, named_pair, "messages[0].function_call.name", "messages[1].name"),
    (MESSAGES, messages_pair, "messages[0].content[0].id", "messages[1].content[0].tool_use_id"),
    (RESPONSES, responses_pair, "input[0].call_id", "input[1].call_id"),
]


@pytest.mark.parametrize(("wire_format", "pair", "call", "result"), PAIRED)
def test_pair_with_an_id_of_a_wrong_type_stays_and_is_reported(
    wire_format: WireFormat, pair: Any, call: str, result: str
) -> None:
    misses = []
    rewrites = [Rewrite(name=name, parameters=parameters) for name, parameters in (PAIRS, DROP)]
    for odd in NO_IDS:
        for ids, places in (
            (("c1", odd), [result]),
            ((odd, "c1"), [call]),
            ((odd, odd), [call, result]),
        ):
            data = json.dumps({"model": "m", **pair(*ids)}).encode()
            after, (report, _) = run(data, rewrites, wire_format)
            told = [line.partition(" is ")[0] for line in report.untouched]
            if after != data or report.changes or sorted(told) != sorted(places):
                misses.append((ids, report))
    assert misses == []


def test_holder_of_calls_of_a_wrong_type_leaves_their_results() -> None:
    answer = chat_pair("c1", "c1")["messages"][1]
    uses = messages_pair("c1", "c1")["messages"]
    asked = uses[0]["content"][0]
    item, output, _ = responses_pair("c1", "c1")["input"]
    bodies: list[tuple[WireFormat, str, list[Any]]] = [
        (CHAT, "messages", [{"role": "assistant", "tool_calls": "x"}, answer]),
        (CHAT, "messages", [{"role": "assistant", "tool_calls": ["x"]}, answer]),
        (CHAT, "messages", [{"role": "assistant", "function_call": 5}, answer]),
        (CHAT, "messages", [{"role": 5, "tool_calls": []}, answer]),
        (CHAT, "messages", [7, answer]),
        (CHAT, "messages", [*chat_pair("c1", "c1")["messages"][:1], {**answer, "role": 5}, LAST]),
        (MESSAGES, "messages", [{"role": "assistant", "content": 5}, uses[1]]),
        (MESSAGES, "messages", [{"role": "assistant", "content": {"a": 1}}, *uses[1:]]),
        (MESSAGES, "messages", [{"role": "assistant", "content": [5]}, *uses[1:]]),
        (MESSAGES, "messages", [{"role": 5, "content": [asked]}, *uses[1:]]),
        (MESSAGES, "messages", [uses[0], {"role": 5, "content": uses[1]["content"]}, *uses[2:]]),
        (MESSAGES, "messages", [uses[0], {"role": "user", "content": {"a": 1}}, *uses[2:]]),
        (MESSAGES, "messages", [{"role": "assistant", "content": [{**asked, "type": 5}]}, uses[1]]),
        (RESPONSES, "input", [{**item, "type": 5}, output]),
        (RESPONSES, "input", [item, {**output, "type": 5}, LAST]),
        (RESPONSES, "input", ["x", output]),
    ]
    misses = []
    for wire_format, key, history in bodies:
        data = json.dumps({"model": "m", key: history}).encode()
        after, (report,) = run(data, [Rewrite(name=PAIRS[0])], wire_format)
        if after != data or not report.untouched:
            misses.append((history, report))
    assert misses == []


@pytest.mark.parametrize("odd", [7, False, None, {}])
def test_text_of_the_user_is_added_or_its_report_says_why_not(odd: Any) -> None:
    call, result, _ = chat_pair(odd, "c1")["messages"]
    tail = {"role": "assistant", "content": "tail"}
    misses = []
    for history in ([call, result, tail], [call, result], [call, tail], [call], [tail, call]):
        data = json.dumps({"model": "m", "messages": history}).encode()
        for place in ({}, {"behind_call": 0}, {"behind_call": 1}):
            text = Rewrite(name="append_user_text", parameters={"text": "Do it.", **place})
            after, (_, report) = run(data, [Rewrite(name=PAIRS[0]), text], CHAT)
            if (b"Do it." in after) is bool(report.skipped) or bool(report.changes) is bool(
                report.skipped
            ):
                misses.append((history, place, report))
    assert misses == []


@pytest.mark.parametrize("odd", [123, True, {"a": 1}, 1.5])
def test_reasoning_does_not_become_text_over_a_content_of_a_wrong_type(odd: Any) -> None:
    call = chat_pair("c1", "c1")["messages"][0]
    said = {**call, "content": odd, "reasoning_content": "THINK"}
    data = json.dumps({"model": "m", "messages": [said]}).encode()

    after, (report,) = run(data, [Rewrite(name=TEXT[0], parameters=TEXT[1])], CHAT)

    assert after == data
    assert report.changes == ()
    assert report.untouched[0].startswith("messages[0].content is a")


def test_number_or_word_of_a_wrong_type_is_not_fitted_but_reported() -> None:
    effort = {"do": "map", "path": "effort", "values": {"low": "low"}, "else": "max"}
    rules = Rules([{"do": "floor", "path": "temperature", "value": 0.1}, effort])
    fit = Rewrite(name="fit_model", parameters={"rules": rules, "max_output": 4096})
    body = {"model": "m", "max_tokens": "many", "temperature": [1], "effort": 5}
    data = json.dumps(body).encode()

    after, (report,) = run(data, [fit], MESSAGES)

    assert after == data
    assert [line.partition(":")[0] for line in report.untouched] == [
        "max_tokens is a string, not a number",
        "temperature is an array, not a number",
        "effort is a number, not a string",
    ]


def test_report_does_not_tell_of_what_a_later_rewrite_removed() -> None:
    thinking = {"type": "thinking", "thinking": "a", "signature": "s", "text": 5}
    said = [{"role": "assistant", "content": [thinking]}, {"role": "user", "content": 5}]
    data = json.dumps({"model": "m", "messages": said}).encode()
    mark = Rewrite(name="limit_cache_marks", parameters={})
    drop = Rewrite(name="drop_opaque_reasoning", parameters={"through_message": 0})

    _, reports = run(data, [drop, mark], MESSAGES)

    told = [line for report in reports for line in report.untouched]
    assert told == ["messages[1].content is a number, not a string or an array" + LEFT]


def test_report_tells_of_the_value_that_is_left_at_its_place() -> None:
    file, odd = {"type": [], "file": {"file_id": "f"}}, {"type": [], "text": "a"}
    said = [{"role": "user", "content": [odd, file]}, {"role": "assistant", "content": "b"}]
    data = json.dumps({"model": "m", "messages": said}).encode()
    drop = Rewrite(name="drop_origin_bound", parameters={"through_message": 9, "context": True})

    after, (report,) = run(data, [drop], CHAT)

    assert b"file_id" not in after
    assert [line.partition(" is ")[0] for line in report.untouched] == [
        "messages[0].content[0].type"
    ]


ALONE = st.sampled_from(sorted(set(TYPES) - {"fit_model"}))


@settings(max_examples=EXAMPLES)
@given(broken_bodies(), ALONE, st.integers(0, 5), st.integers(0, 2))
def test_rewrite_of_a_body_with_any_node_changes_only_what_it_names(
    broken: tuple[WireFormat, bytes, bytes], name: str, through: int, choice: int
) -> None:
    changes_only_what_it_names(broken, name, through, choice)


@settings(max_examples=EXAMPLES // 5)
@given(broken_bodies(3), ALONE, st.integers(0, 5), st.integers(0, 2))
def test_rewrite_of_a_body_with_any_three_nodes_changes_only_what_it_names(
    broken: tuple[WireFormat, bytes, bytes], name: str, through: int, choice: int
) -> None:
    changes_only_what_it_names(broken, name, through, choice)


def changes_only_what_it_names(
    broken: tuple[WireFormat, bytes, bytes], name: str, through: int, choice: int
) -> None:
    wire_format, _, data = broken
    given_options = options(through)[name]
    rewrite = Rewrite(name=name, parameters=given_options[choice % len(given_options)])

    once, (report,) = run(data, [rewrite], wire_format)
    again, _ = run(once, [rewrite], wire_format)

    assert again == once
    assert bool(report.changes) == (once != data)
    names, key = named(report.changes), "input" if wire_format == "openai_responses" else "messages"
    before, after = json.loads(data), json.loads(once)
    history = before[key] if isinstance(before[key], list) else []
    if name == "remap_tool_ids":
        names |= {(key, n) for n in range(len(history))} if report.changes else set()
    names |= originals(report.changes, key, len(history)) | behind_calls(report.changes, history)
    only_named(data, once, names)
    if name != "remap_tool_ids" and name not in ("reasoning_effort", "set_model"):
        nothing_lost(before, after, report.changes)
    odd_kept(wire_format, data, after, [report])
    if name == "append_user_text" and not isinstance(before[key], str):
        assert report.changes or report.skipped or report.untouched or "Do it." in str(history)


@settings(max_examples=EXAMPLES // 5)
@given(broken_bodies(), st.sampled_from(RULES), st.booleans(), st.integers(0, 9))
def test_model_is_fitted_whatever_a_node_is(
    broken: tuple[WireFormat, bytes, bytes], rule: Rules, alone: bool, number: int
) -> None:
    wire_format, _, data = broken
    rewrite = Rewrite(name="fit_model", parameters={"rules": rule})
    if not alone:
        rewrite = profile(wire_format, number)

    once, (report,) = run(data, [rewrite], wire_format)
    again, _ = run(once, [rewrite], wire_format)

    assert again == once
    assert bool(report.changes) == (once != data)
    words = {word for change in report.changes for word in re.findall(r"[a-z_]+", change)}
    old, new = ObjectText(data), ObjectText(once)
    changed = {key for key in {*old.keys(), *new.keys()} if old.raw(key) != new.raw(key)}
    assert changed - words <= {"messages", "input", "context_management"}


@settings(max_examples=EXAMPLES // 5)
@given(broken_bodies(2), st.integers(0, 5), st.integers(0, 9), st.integers(0, 2))
def test_all_rewrites_in_their_order_take_any_body(
    broken: tuple[WireFormat, bytes, bytes], through: int, model: int, choice: int
) -> None:
    wire_format, _, data = broken
    rewrites = [
        Rewrite(name=name, parameters=given_options[choice % len(given_options)])
        for name, given_options in options(through).items()
    ]

    once, reports = run(data, [*rewrites, profile(wire_format, model)], wire_format)

    assert json.loads(once)["model"] == "m"
    told = {line for report in reports for line in report.untouched if " is null" not in line}
    assert not Counter(map(sort_of, told)) - Counter(sorts(json.loads(once)))
    assert len(reports) == len(TYPES)
