"""Responses requests, read and written."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.scripted.select import Asked
from switchyard_core.scripted.strict.provider import strict_provider
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import Facts, NeutralPart, NeutralRequest

RESPONSES = FORMATS["openai_responses"]
CALL = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": '{"p":1}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
FUNCTION = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}}


def read(input: Any = "hi", **others: Any) -> NeutralRequest:  # noqa: A002  # the body's own key
    """Return what a request says; its body stays as it is."""
    raw = encode({"model": "gpt-5.5", "input": input, **others})
    fields = ObjectText(raw)
    request = RESPONSES.neutral(fields)
    assert fields.dump() == raw
    return request


def written(request: NeutralRequest) -> dict[str, Any]:
    """Return the body that says a request, valid for provider and SDK."""
    body: dict[str, Any] = json.loads(RESPONSES.write(request, Facts()))
    return body


def parts(request: NeutralRequest) -> list[NeutralPart]:
    """Return all parts of the history."""
    return [part for turn in request.turns for part in turn.parts]


def refused(raw: bytes) -> list[str]:
    """Return what OpenAI would refuse in a body, or the types of its SDK."""
    problems = validity_problems("openai_responses", raw, sdk=True)
    openai = strict_provider("openai")
    asked = Asked(format=RESPONSES, body=json.loads(raw), raw=raw, headers={})
    refusal = openai.refusal(openai.sent(asked, "/v1/responses", "create"))
    return problems if refusal is None else [*problems, str(refusal.body)]
