"""Our own errors in the shape of each wire format."""

from __future__ import annotations

import json

import pytest

from switchyard_core.declarations import WIRE_FORMATS
from switchyard_core.errors import RequestError
from switchyard_core.wire import FORMATS


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_details_stand_in_the_error_object_and_replace_nothing(wire_format):
    details = {"reason": "not_json", "raw_text": "1. search", "message": "x", "type": "y"}
    error = RequestError("no plan", code="plan_unusable", status=502, details=details)

    body = json.loads(FORMATS[wire_format].error_body(error, "req_1"))["error"]
    plain = json.loads(
        FORMATS[wire_format].error_body(
            RequestError("no plan", code="plan_unusable", status=502), "req_1"
        )
    )["error"]

    assert body == plain | {"reason": "not_json", "raw_text": "1. search"}
    assert "no plan" in body["message"]
