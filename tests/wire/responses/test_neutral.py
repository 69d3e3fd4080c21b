"""Reading Responses requests as neutral ones, and writing them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given

from switchyard_core.errors import BodyError
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.testing import validity_problems
from switchyard_core.wire.neutral import Facts
from tests.support.mutated import broken_bodies
from tests.wire.responses.bodies import RESPONSES, refused

CAPTURES = Path(__file__).parents[2] / "data" / "captures"

#: What of the clients' own requests nobody but their provider can serve.
HOSTED = ("tool_search", "web_search", "previous_response_id")


def captured() -> dict[str, dict[str, Any]]:
    """Return the bodies of all captured Responses requests."""
    found = {}
    for path in sorted(CAPTURES.glob("*.json")):
        request = json.loads(path.read_text("utf-8"))["request"]
        if "/responses" in request["path"]:
            found[path.stem] = request["body"]
    return found


def test_captured_requests_lose_only_what_their_provider_runs() -> None:
    lost = {}
    for name, body in captured().items():
        raw = json.dumps(body).encode()
        fields = ObjectText(raw)
        told = RESPONSES.neutral(fields).told
        assert fields.dump() == raw
        assert not fields.changed
        lost[name] = [line for line in told.lost if not any(each in line for each in HOSTED)]
    assert len(lost) > 10
    assert {name: lines for name, lines in lost.items() if lines} == {}


def test_captured_requests_are_written_as_openai_accepts_them() -> None:
    problems = {}
    for name, body in captured().items():
        request = RESPONSES.neutral(ObjectText(json.dumps({**body, "model": "gpt-5.5"}).encode()))
        written = RESPONSES.write(request, Facts())
        assert written.startswith(b'{"model":')
        problems[name] = refused(written)
    assert {name: found for name, found in problems.items() if found} == {}


@given(broken_bodies(2).filter(lambda made: made[0] == "openai_responses"))
def test_whatever_a_body_holds_what_is_written_is_legal(made: tuple[str, bytes, bytes]) -> None:
    fields = ObjectText(made[2])
    before = fields.dump()
    try:
        request = RESPONSES.neutral(fields)
    except BodyError:  # `input` itself
        return
    problems = validity_problems("openai_responses", RESPONSES.write(request, Facts()), sdk=False)

    assert fields.dump() == before
    # The caller's own: a model that is none, and a history with nothing in it.
    assert [each for each in problems if not each.startswith(("model:", "input: must"))] == []
