from __future__ import annotations

import json

import pytest

from switchyard_core.wire.answers import comment, sse


def test_event_is_one_line_for_every_client_that_cuts_lines():
    data = {"text": "a\nb\r\u2028c\u2029d\x85e\x1cf\ud83d"}

    event = sse(data, "message_delta")

    assert event.startswith(b"event: message_delta\ndata: {")
    assert event.endswith(b"}\n\n")
    assert len(event.decode().splitlines()) == 3
    assert json.loads(event.splitlines()[1].removeprefix(b"data: ")) == data


def test_event_without_a_name_has_data_alone():
    assert sse({"a": "é"}) == 'data: {"a":"é"}\n\n'.encode()


def test_comment_is_a_sign_of_life_or_one_line_of_json():
    assert comment(None) == b": ping\n\n"
    assert comment({"event": "step\nstarted"}) == b': {"event":"step\\nstarted"}\n\n'


def test_comment_of_what_is_no_json_is_refused():
    with pytest.raises(ValueError, match="comment is not JSON"):
        comment({"x": object()})
