"""Which recording is nearest, and how a difference is shown."""

from __future__ import annotations

import json
from pathlib import Path

from switchyard_core.replay.nearest import MOST_LINES, WIDEST, difference, nearest
from switchyard_core.replay.recording import Recording

FIELDS = ("model", "messages", "instructions")


def recording(name, path="/v1/chat/completions", **body):
    return Recording(
        file=Path(name),
        key_fields=FIELDS,
        method="POST",
        path=path,
        body=json.dumps(body).encode(),
        answers=(),
    )


def found(recordings, **body):
    near = nearest(recordings, "POST", "/v1/chat/completions", json.dumps(body).encode(), FIELDS)
    return near.file.name if near is not None else None


def test_the_longest_common_beginning_of_the_conversation_is_nearest():
    recordings = [
        recording("model", model="m", messages=["z"], instructions="same"),
        recording("one", model="n", messages=["a"], instructions="other"),
        recording("two", model="n", messages=["a", "b", "x", "y"], instructions="far"),
    ]

    assert found(recordings, model="m", messages=["a", "b", "c"], instructions="same") == "two"


def test_the_fewest_differences_decide_between_equal_conversations():
    recordings = [
        recording("far", model="n", messages=["a"], instructions="x"),
        recording("near", model="m", messages=["a"], instructions="x"),
    ]

    assert found(recordings, model="m", messages=["a"], instructions="y") == "near"


def test_a_recording_of_another_path_is_never_nearest():
    assert found([recording("x", path="/v1/messages", messages=["a"])], messages=["a"]) is None
    assert found([], messages=["a"]) is None


def test_a_difference_shows_only_what_counts():
    near = recording("x", model="m", messages=["a"], temperature=1)

    lines = difference(near, b'{"temperature":2,"messages":["b"],"model":"m"}', FIELDS)

    assert [line for line in lines if line[0] in "+-"] == ['-  "a"', '+  "b"']


def test_a_difference_is_short_and_narrow():
    near = recording("x", messages=[str(number) for number in range(500)])
    body = json.dumps({"messages": [f"{number} {'x' * 999}" for number in range(500)]}).encode()

    lines = difference(near, body, FIELDS)

    assert len(lines) == MOST_LINES + 1
    assert lines[-1] == "… (and more)"
    assert max(map(len, lines)) <= WIDEST + 1


def test_a_change_deep_in_a_long_prompt_is_shown_where_it_is():
    prompt = "\n".join(f"Rule {number}: {'be kind ' * 20}" for number in range(40))
    near = recording("x", instructions=prompt)
    body = json.dumps({"instructions": prompt.replace("Rule 33", "Rule XX")}).encode()

    changed = [line[:12] for line in difference(near, body, FIELDS) if line[0] in "+-"]

    assert changed == ["-Rule 33: be", "+Rule XX: be"]


def test_a_difference_hides_credentials():
    key = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3
    lines = difference(
        recording("x", messages=["a"]), json.dumps({"messages": [key]}).encode(), FIELDS
    )

    assert key not in "\n".join(lines)
    assert "+ (hidden: looks like a credential)" in lines


def test_bodies_that_are_no_objects_are_compared_as_text():
    near = Recording(
        file=Path("x"), key_fields=FIELDS, method="POST", path="/", body=b"one", answers=()
    )

    assert difference(near, b"\xfftwo", FIELDS) == ["-one", "+\ufffdtwo"]


def test_a_very_long_history_is_compared_only_where_it_begins_to_differ():
    messages = [f"{number % 7} line" for number in range(50_000)]
    near = recording("x", messages=[*messages, "old", *messages])
    body = json.dumps({"messages": [*messages, "new", *messages]}).encode()

    lines = difference(near, body, FIELDS)

    assert '-  "old",' in lines
    assert '+  "new",' in lines
    assert lines[-1] == "… (and more)"
