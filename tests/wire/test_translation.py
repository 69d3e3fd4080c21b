"""Answers told in another wire format: whole, and as streams."""

from __future__ import annotations

import json
from typing import Any

from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.wire import FORMATS
from switchyard_core.wire.translation import AnswerTranslation

STREAM = b"""event: response.created
data: {"type":"response.created","response":{"id":"resp_1","model":"deep","created_at":7}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call",\
"call_id":"call_7","name":"read","arguments":"{\\"path\\":1}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],\
"usage":{"input_tokens":9,"output_tokens":2}}}

"""
REQUEST = {"model": "wise", "input": "go", "tools": [{"type": "function", "name": "read"}]}


def translation(caller: str, request: Any) -> AnswerTranslation:
    return AnswerTranslation(
        source=FORMATS["openai_responses"],
        caller=FORMATS[caller],
        request=ObjectText(json.dumps(request).encode()),
        model="wise",
        answer_model="requested",
        new_id="{}_new".format,
        created_s=1,
    )


def test_text_and_a_call() -> None:
    told = translation("openai_responses", REQUEST)
    sent = told.feed(STREAM) + told.end()
    last = json.loads(sent.split(b"data: ")[-1])["response"]

    assert last["model"] == "wise"
    assert last["output"][0]["content"][0]["text"] == "Hi."
    assert last["output"][1]["arguments"] == '{"path":1}'
    assert told.usage is not None
    assert told.usage.input_tokens == 9
