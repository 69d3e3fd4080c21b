"""Failures arrive as the typed errors of the SDKs, and are retried by them only where it helps."""

from __future__ import annotations

import anthropic
import pytest

from tests.sdk.apis import USER, Responses, edited, items, settled, through_helper
from tests.sdk.stand import PLANNER, UPSTREAM_KEY

HELLO = {"text": "hello there, " * 20}
# Retried at once: the SDKs read this header, and switchyard passes it on.
NOW = {"retry-after-ms": "1"}


def message_of(error) -> str:
    """Return what the person at the client reads."""
    body = error.body
    return body["error"]["message"] if "error" in body else body["message"]


def code_of(api, error) -> str:
    """Return the machine-readable word: OpenAI has a field for it, Anthropic has not."""
    if api.wire_format == "anthropic_messages":
        return message_of(error).rpartition("(")[2].rstrip(")")
    return error.code


async def test_full_store_is_a_bad_request_that_is_not_retried(api, connect, stand):
    to = stand(route="latch_capacity = 1")
    client = connect(to, max_retries=3)
    history = await edited(api, client)
    one, two = ({"x-switchyard-session-id": name} for name in ("one", "two"))
    await settled(api.endpoint(client).create(**api.ask(history, extra_headers=one)))
    before = len(to.asked), len(to.sent)

    with pytest.raises(api.sdk.BadRequestError) as caught:
        await settled(api.endpoint(client).create(**api.ask(history, extra_headers=two)))

    error = caught.value
    assert (len(to.asked), len(to.sent)) == (before[0] + 1, before[1])
    assert code_of(api, error) == "latch_capacity"
    assert "1" in message_of(error)
    assert "final" in message_of(error)
    assert error.response.headers["x-should-retry"] == "false"
    assert error.type == "invalid_request_error"
    assert error.request_id


async def test_full_store_refuses_a_stream_before_it_starts(api, connect, stand):
    to = stand(route="latch_capacity = 1")
    client = connect(to, max_retries=3)
    history = await edited(api, client)
    one, two = ({"x-switchyard-session-id": name} for name in ("one", "two"))
    await settled(api.endpoint(client).create(**api.ask(history, extra_headers=one)))
    before = len(to.asked)

    with pytest.raises(api.sdk.BadRequestError) as caught:
        await through_helper(api.helper(client, api.ask(history, extra_headers=two)), api.final)

    assert code_of(api, caught.value) == "latch_capacity"
    assert len(to.asked) == before + 1


async def test_unknown_model_is_not_found_and_lists_the_routes(api, connect, stand):
    to = stand()

    with pytest.raises(api.sdk.NotFoundError) as caught:
        await settled(
            api.endpoint(connect(to, max_retries=3)).create(**api.ask(USER, model="team/other"))
        )

    assert "team/other" in message_of(caught.value)
    assert f"team/{api.wire_format}" in message_of(caught.value)
    assert (len(to.asked), len(to.sent)) == (1, 0)


async def test_wrong_server_key_is_an_authentication_error(api, connect, stand):
    to = stand(options={"server_key": "the-servers-key"})

    with pytest.raises(api.sdk.AuthenticationError) as caught:
        await settled(api.endpoint(connect(to, max_retries=3)).create(**api.ask(USER)))

    assert code_of(api, caught.value) == "invalid_api_key"
    assert (len(to.asked), len(to.sent)) == (1, 0)


async def test_right_server_key_opens_and_stays_here(api, connect, stand):
    to = stand(options={"server_key": "the-servers-key"})

    await settled(api.endpoint(connect(to, api_key="the-servers-key")).create(**api.ask(USER)))

    sent = [value for _, value in to.sent[0].headers]
    assert not any("the-servers-key" in value for value in sent)
    assert any(UPSTREAM_KEY in value for value in sent)


async def test_callers_credential_goes_on_with_forward_auth(api, connect, stand):
    to = stand(client="forward_auth = true")

    client = connect(to, api_key="mine-1")

    await settled(api.endpoint(client).create(**api.ask(USER)))

    sent = {name: value for name, value in to.sent[0].headers if "mine-1" in value}
    # Which header it is depends on the SDK and its version.
    assert sent == {name.lower(): value for name, value in client.auth_headers.items()}
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "BadRequestError", "invalid_request_error"),
        (401, "AuthenticationError", "authentication_error"),
        (403, "PermissionDeniedError", "permission_error"),
        (404, "NotFoundError", "not_found_error"),
        (429, "RateLimitError", "rate_limit_error"),
        (500, "InternalServerError", "api_error"),
        (529, "InternalServerError", "overloaded_error"),
    ],
)
async def test_providers_error_keeps_its_status_and_words(api, connect, stand, status, name, kind):
    fault = {"status": status, "message": "the provider says no", "headers": {"retry-after": "7"}}
    to = stand(HELLO, faults=[fault])

    with pytest.raises(getattr(api.sdk, name)) as caught:
        await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    error = caught.value
    assert error.status_code == status
    assert message_of(error) == "the provider says no"
    assert error.response.headers["retry-after"] == "7"
    assert error.response.headers["x-switchyard-target"] == f"{api.wire_format}_planner"
    assert error.request_id == "req_failed"
    if api.wire_format == "anthropic_messages":
        assert error.type == kind
    assert (len(to.asked), len(to.sent)) == (1, 1)


async def test_overload_of_the_provider_is_the_sdks_own_class(stand):
    to = stand(HELLO, faults=[{"status": 529}])
    with (
        anthropic.Anthropic(base_url=to.url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic._exceptions.OverloadedError),
    ):
        client.messages.create(model="team/anthropic_messages", max_tokens=9, messages=USER)


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_sdk_retries_a_failure_that_passes(api, connect, stand, status):
    to = stand(HELLO, faults=[{"status": status, "times": 2, "headers": NOW}])

    answer = await settled(api.endpoint(connect(to, max_retries=2)).create(**api.ask(USER)))

    assert api.text(answer) == HELLO["text"]
    assert (len(to.asked), len(to.sent)) == (3, 3)
    # A retry is decided like the first try.
    assert to.models == [PLANNER] * 3
    assert len({record.body for record in to.sent}) == 1


async def test_switchyard_retries_where_the_sdk_need_not(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "drop"}], retries=1)

    answer = await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    assert api.text(answer) == HELLO["text"]
    assert (len(to.asked), len(to.sent)) == (1, 2)


async def test_sdk_gives_up_with_the_last_failure(api, connect, stand):
    to = stand(HELLO, faults=[{"status": 500, "times": 9, "headers": NOW, "message": "down"}])

    with pytest.raises(api.sdk.InternalServerError, match="down"):
        await settled(api.endpoint(connect(to, max_retries=1)).create(**api.ask(USER)))

    assert (len(to.asked), len(to.sent)) == (2, 2)


async def test_provider_that_hangs_up_is_a_server_error(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "drop"}])

    with pytest.raises(api.sdk.InternalServerError) as caught:
        await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    assert caught.value.status_code == 502
    assert code_of(api, caught.value) == "upstream_closed"


async def test_stream_of_a_provider_that_hangs_up_is_a_server_error(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "drop"}])

    with pytest.raises(api.sdk.InternalServerError) as caught:
        await items(api.endpoint(connect(to)).create(**api.ask(USER, stream=True)))

    assert code_of(api, caught.value) == "upstream_closed"


async def test_answer_that_is_cut_is_a_server_error_that_the_sdk_retries(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "cut"}])

    with pytest.raises(api.sdk.InternalServerError, match="connection lost") as caught:
        await settled(api.endpoint(connect(to)).create(**api.ask(USER)))

    assert code_of(api, caught.value) == "upstream_cut"
    again = stand(HELLO, faults=[{"kind": "cut"}])
    answer = await settled(api.endpoint(connect(again, max_retries=1)).create(**api.ask(USER)))
    assert api.text(answer) == HELLO["text"]


async def test_stream_that_is_cut_raises_in_its_middle(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "cut"}])

    seen: list[object] = []
    with pytest.raises(api.sdk.APIError, match="broke off"):
        await items(api.endpoint(connect(to)).create(**api.ask(USER, stream=True)), seen)

    assert len(seen) > 3
    assert to.sent[0].outcome == "broken"


async def test_stream_helper_does_not_take_a_cut_stream_for_a_whole_one(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "cut"}])

    # The helper of Responses says in words of its own that the end is missing.
    with pytest.raises((api.sdk.APIError, RuntimeError), match=r"broke off|response\.completed"):
        await through_helper(api.helper(connect(to), api.ask(USER)), api.final)


async def test_providers_error_inside_a_stream_reaches_the_caller(api, connect, stand):
    to = stand(HELLO, faults=[{"kind": "error_event", "message": "out of steam"}])
    client = connect(to, _strict_response_validation=False)

    if api.wire_format == "openai_responses":
        events = await items(api.endpoint(client).create(**api.ask(USER, stream=True)))
        assert events[-1].type == "response.failed"
        assert events[-1].response.error.message == "out of steam"
        assert [e.to_dict(mode="json")["sequence_number"] for e in events] == list(
            range(len(events))
        )
    else:
        with pytest.raises(api.sdk.APIError, match="out of steam"):
            await items(api.endpoint(client).create(**api.ask(USER, stream=True)))


def test_failed_response_of_the_scripted_provider_is_of_the_sdks_type(stand):
    to = stand(HELLO, faults=[{"kind": "error_event", "message": "out of steam"}])

    with Responses().client(to, blocking=True) as client:
        events = list(client.responses.create(**Responses().ask(USER, stream=True)))

    assert events[-1].type == "response.failed"
