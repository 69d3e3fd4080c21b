"""Model lists and token counts through the SDKs, and the identity that headers bring."""

from __future__ import annotations

import contextlib

import anthropic
import openai
import pytest

from switchyard_core.wire import WIRE_FORMATS
from tests.sdk.apis import USER, Chat, Messages, Responses, closed, edited, settled
from tests.sdk.stand import EXECUTOR, PLANNER, route_id

ROUTES = [route_id(name) for name in WIRE_FORMATS]
SESSION = {"x-switchyard-session-id": "sdk-1"}


@pytest.fixture(params=[Chat(), Messages()], ids=["openai", "anthropic"])
def sdk(request):
    return request.param


@contextlib.asynccontextmanager
async def client_of(api, to, blocking, **options):
    client = api.client(to, blocking=blocking, **options)
    try:
        yield client
    finally:
        await closed(client)


async def test_models_are_the_routes(sdk, blocking, stand):
    to = stand()

    async with client_of(sdk, to, blocking) as client:
        page = client.models.list()
        found = list(page) if blocking else [model async for model in page]

    assert [model.id for model in found] == ROUTES
    assert to.sent == []


async def test_models_are_paged_as_anthropic_does(blocking, stand):
    to = stand()

    async with client_of(Messages(), to, blocking) as client:
        page = client.models.list(limit=1)
        found = list(page) if blocking else [model async for model in page]

    assert [model.id for model in found] == ROUTES
    assert len(to.asked) == len(ROUTES)


async def test_model_with_a_slash_in_its_id_is_found(sdk, blocking, stand):
    to = stand()

    async with client_of(sdk, to, blocking) as client:
        model = await settled(client.models.retrieve("team/openai_chat"))

    assert model.id == "team/openai_chat"
    assert to.sent == []


async def test_unknown_model_is_not_found(sdk, blocking, stand):
    to = stand()

    async with client_of(sdk, to, blocking) as client:
        with pytest.raises(sdk.sdk.NotFoundError) as caught:
            await settled(client.models.retrieve("team/other"))

    assert "team/openai_chat" in str(caught.value)


async def test_count_tokens_goes_where_the_session_is(blocking, stand):
    to = stand()
    api = Messages()

    async with client_of(api, to, blocking) as client:
        arguments = {"model": route_id(api.wire_format), "messages": USER}
        first = await settled(client.messages.count_tokens(**arguments, extra_headers=SESSION))
        history = await edited(api, client)
        await settled(client.messages.create(**api.ask(history, extra_headers=SESSION)))
        second = await settled(client.messages.count_tokens(**arguments, extra_headers=SESSION))

    assert first.input_tokens > 0
    assert second.input_tokens > 0
    counted = [record.model for record in to.sent if record.path.endswith("/count_tokens")]
    assert counted == [PLANNER, EXECUTOR]


async def test_input_tokens_go_where_the_session_is(blocking, stand):
    to = stand()
    api = Responses()

    async with client_of(api, to, blocking) as client:
        arguments = {"model": route_id(api.wire_format), "input": USER}
        count = client.responses.input_tokens.count
        first = await settled(count(**arguments, extra_headers=SESSION))
        history = await edited(api, client)
        await settled(client.responses.create(**api.ask(history, extra_headers=SESSION)))
        await settled(count(**arguments, extra_headers=SESSION))

    assert first.object == "response.input_tokens"
    assert first.input_tokens > 0
    counted = [record.model for record in to.sent if record.path.endswith("/input_tokens")]
    assert counted == [PLANNER, EXECUTOR]


async def test_compaction_latches_nothing(blocking, stand):
    to = stand()
    api = Responses()

    # The SDK's own type has no place for the user's messages that its description promises.
    lenient = {"_strict_response_validation": False}
    async with client_of(api, to, blocking, **lenient) as client:
        history = await edited(api, client)
        model = route_id(api.wire_format)
        compacted = await settled(
            client.responses.compact(model=model, input=history, extra_headers=SESSION)
        )

    assert compacted.object == "response.compaction"
    assert to.models[-1] == EXECUTOR
    assert await to.latched(api.wire_format) == 0


async def test_continuation_by_id_is_warned_of(blocking, stand):
    to = stand()
    api = Responses()

    async with client_of(api, to, blocking) as client:
        raw = await settled(
            client.responses.with_raw_response.create(
                model=route_id(api.wire_format), input="go on", previous_response_id="resp_1"
            )
        )

    assert raw.headers["x-switchyard-warning"] == "history_missing"
    assert to.sent[0].json()["previous_response_id"] == "resp_1"


async def test_continuation_by_id_is_refused_where_the_policy_says_so(blocking, stand):
    to = stand(route='on_missing_history = "reject"')
    api = Responses()

    async with client_of(api, to, blocking, max_retries=3) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await settled(
                client.responses.create(
                    model=route_id(api.wire_format), input="go on", previous_response_id="resp_1"
                )
            )

    assert caught.value.code == "history_required"
    assert caught.value.param == "previous_response_id"
    assert (len(to.asked), len(to.sent)) == (1, 0)


def test_custom_tool_with_a_patch_hands_off(stand):
    patch = "*** Begin Patch\n*** Update File: calc.py\n@@\n-a - b\n+a + b\n*** End Patch\n"
    to = stand({"calls": [{"name": "apply_patch", "input": patch}]}, {"text": "Done."})
    arguments = {
        "model": route_id("openai_responses"),
        "tools": [{"type": "custom", "name": "apply_patch"}],
    }

    with Responses().client(to, blocking=True) as client:
        first = client.responses.create(input=USER, **arguments)
        call = first.output[-1]
        result = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
        second = client.responses.create(input=[*USER, call.to_dict(), result], **arguments)

    assert (call.type, call.input) == ("custom_tool_call", patch)
    assert second.output_text == "Done."
    assert to.models == [PLANNER, EXECUTOR]


def test_continuation_by_thread_is_warned_of(stand):
    """Messages has it too: the server holds the history, the body only the new turn."""
    to = stand()
    thread = {"type": "continue", "previous_message_id": "msg_1"}

    with Messages().client(to, blocking=True) as client:
        raw = client.messages.with_raw_response.create(
            **Messages().ask(USER, extra_body={"thread": thread})
        )

    assert raw.headers.get("x-switchyard-warning") == "history_missing"
    assert to.sent[0].json()["thread"] == thread


def test_anthropics_own_tool_runner_plans_then_executes(stand):
    """The runner makes the calls itself, each with the whole history when it has no thread."""
    to = stand()
    done = []

    @anthropic.beta_tool
    def read_file(path: str) -> str:
        """Read a file."""
        done.append(("read", path))
        return "return a - b"

    @anthropic.beta_tool
    def edit_file(path: str, old_text: str, new_text: str) -> str:
        """Edit a file."""
        done.append(("edit", path, old_text, new_text))
        return "edited"

    with Messages().client(to, blocking=True) as client:
        last = client.beta.messages.tool_runner(
            model=route_id("anthropic_messages"),
            max_tokens=99,
            messages=USER,
            tools=[read_file, edit_file],
            thread=False,
            extra_headers=SESSION,
        ).until_done()

    assert done == [("read", "calc.py"), ("edit", "calc.py", "a - b", "a + b")]
    assert last.content[-1].text == "Done: the sum is right."
    assert to.models == [PLANNER, PLANNER, EXECUTOR]
    assert all(record.header("anthropic-version") for record in to.sent)


def test_anthropics_own_tool_runner_works_at_targets_of_another_format(stand):
    """It holds the history in a thread, and sends all of it where it learns that none is kept."""
    to = stand()
    done = []

    @anthropic.beta_tool
    def read_file(path: str) -> str:
        """Read a file."""
        done.append(("read", path))
        return "return a - b"

    @anthropic.beta_tool
    def edit_file(path: str, old_text: str, new_text: str) -> str:
        """Edit a file."""
        done.append(("edit", path, old_text, new_text))
        return "edited"

    with Messages().client(to, blocking=True) as client:
        last = client.beta.messages.tool_runner(
            model=route_id("openai_chat"),
            max_tokens=99,
            messages=USER,
            tools=[read_file, edit_file],
            extra_headers=SESSION,
        ).until_done()

    assert done == [("read", "calc.py"), ("edit", "calc.py", "a - b", "a + b")]
    assert last.content[-1].text == "Done: the sum is right."
    assert to.models == [PLANNER, PLANNER, EXECUTOR]
    assert not any("thread" in record.json() for record in to.sent)
