"""The builder: one story, three bodies that the readers of the core understand alike."""

import json

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

from switchyard_core.testing import call, conversation
from switchyard_core.wire import WIRE_FORMATS

each_format = pytest.mark.parametrize("wire_format", WIRE_FORMATS)

PARAMETERS = {
    "openai_chat": CompletionCreateParamsNonStreaming,
    "openai_responses": ResponseCreateParamsNonStreaming,
    "anthropic_messages": MessageCreateParamsNonStreaming,
}


def told(wire_format):
    return (
        conversation(wire_format)
        .system("Be brief.")
        .user("fix it")
        .reasoning("Look first.", encrypted="b3BhcXVl")
        .says("I will look.")
        .reads("read_file", path="a.py")
        .parallel(call("grep", pattern="x"), call("edit_file", fails=True, path="a.py"))
        .says("Done.")
        .user("thanks")
    )


def view(story):
    request = story.request()
    return request.conversation


@each_format
def test_story_reads_as_the_same_conversation_in_every_format(wire_format):
    conversation_ = view(told(wire_format))

    assert [m.role for m in conversation_.messages if m.role != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert [(c.name, c.arguments) for c in conversation_.calls] == [
        ("read_file", {"path": "a.py"}),
        ("grep", {"pattern": "x"}),
        ("edit_file", {"path": "a.py"}),
    ]
    assert conversation_.result_ids == {c.id for c in conversation_.calls}
    assert conversation_.tools == ("read_file", "grep", "edit_file")


@each_format
def test_body_is_valid_for_the_parameter_types_of_the_official_sdk(wire_format):
    adapter = TypeAdapter(PARAMETERS[wire_format])
    body = told(wire_format).offers("write").build("m")
    # Not in OpenAI's own types: providers of Chat return reasoning under this key.
    for message in body.get("messages", []):
        message.pop("reasoning_content", None)
        message.pop("reasoning_details", None)

    adapter.validate_python(body)


@each_format
def test_builder_is_not_changed_by_what_is_told_later(wire_format):
    start = conversation(wire_format).user("fix it").says("Hm.")
    before = start.build()
    start.reads("read", path="a").user("more").build()["model"] = "other"

    assert start.build() == before


@each_format
def test_unanswered_call_has_no_result(wire_format):
    story = conversation(wire_format).user("go").edits("edit", answered=False, path="a")

    assert view(story).ends_with_open_call
    assert not view(story).result_ids


@each_format
def test_item_stands_in_the_history_as_it_is(wire_format):
    item = {"role": "user", "content": "raw", "x-unknown": 1}
    body = conversation(wire_format).item(item).build()

    assert body["input" if wire_format == "openai_responses" else "messages"] == [item]


@each_format
def test_further_fields_come_last_and_win(wire_format):
    body = conversation(wire_format).user("a").build("m", stream=True, model_note=None)

    assert list(body)[-2:] == ["stream", "model_note"]
    assert json.loads(conversation(wire_format).user("a").body("m"))["model"] == "m"


@each_format
def test_request_carries_session_and_final_mark(wire_format):
    request = conversation(wire_format).user("a").request(session="s", final=True)

    assert request.headers["x-switchyard-session-id"] == "s"
    assert request.session_final


@each_format
def test_broken_arguments_are_sent_as_they_are(wire_format):
    (broken,) = view(conversation(wire_format).user("a").calls("write", '{"path": ')).calls

    expected = (
        {"input": '{"path": '} if wire_format == "anthropic_messages" else {"_raw": '{"path": '}
    )
    assert broken.arguments == expected


def test_custom_call_is_free_form_where_the_format_has_it():
    patch = "*** Begin Patch\n*** End Patch\n"
    kinds = {
        wire_format: view(conversation(wire_format).user("a").calls("p", patch, custom=True)).calls
        for wire_format in WIRE_FORMATS
    }

    assert {name: call.kind for name, (call,) in kinds.items()} == {
        "openai_chat": "custom",
        "openai_responses": "custom",
        "anthropic_messages": "function",
    }
    assert all(call.arguments == {"input": patch} for (call,) in kinds.values())


@pytest.mark.parametrize("shape", ["local_shell_call", "shell_call"])
def test_built_in_shell_calls_are_answered_in_their_own_shape(shape):
    conversation_ = view(conversation("openai_responses").user("a").runs("ls", shape=shape))

    (made,) = conversation_.calls
    assert (made.name, made.kind) == (shape, "builtin")
    assert "ls" in str(made.arguments)
    assert conversation_.result_ids == {made.id}


def test_apply_patch_call_carries_its_operation():
    operation = {"type": "update_file", "path": "a.py", "diff": "@@"}
    story = conversation("openai_responses").user("a")
    body = story.calls("", operation, shape="apply_patch_call", fails=True).build()

    assert body["input"][1]["operation"] == operation
    assert body["input"][2]["status"] == "failed"
    assert body["tools"] == [{"type": "apply_patch"}]


def test_namespaced_calls_are_offered_in_their_namespace():
    story = conversation("openai_responses").user("a")
    for name in ("edit", "read"):
        story = story.calls(name, {}, namespace="files")

    assert [call.namespace for call in view(story).calls] == ["files", "files"]
    (space,) = story.build()["tools"]
    assert [tool["name"] for tool in space["tools"]] == ["edit", "read"]


@pytest.mark.parametrize("wire_format", ["openai_responses", "anthropic_messages"])
def test_mcp_call_brings_its_own_result(wire_format):
    story = conversation(wire_format).user("a").calls("edit", {}, server="fs", shape="mcp")

    (made,) = view(story).calls
    assert (made.kind, made.server) == ("mcp", "fs")
    assert view(story).result_ids == {made.id}


def test_legacy_function_call_is_written_on_chat():
    body = conversation("openai_chat").user("a").calls("edit", {"p": 1}, shape="legacy").build()

    assert body["messages"][1]["function_call"] == {"name": "edit", "arguments": '{"p": 1}'}
    assert body["messages"][2]["role"] == "function"
    assert body["functions"][0]["name"] == "edit"


@pytest.mark.parametrize(
    ("wire_format", "shape", "namespace"),
    [
        ("openai_chat", "mcp", None),
        ("openai_chat", "function", "files"),
        ("openai_responses", "legacy", None),
        ("anthropic_messages", "shell_call", None),
        ("anthropic_messages", "function", "files"),
    ],
)
def test_shape_that_the_format_lacks_is_an_error(wire_format, shape, namespace):
    story = conversation(wire_format).user("a").calls("x", shape=shape, namespace=namespace)

    with pytest.raises(ValueError, match=f"{wire_format} has no"):
        story.build()


def test_lite_shape_offers_tools_in_the_first_item():
    story = conversation("openai_responses").lite().user("a").reads("read", path="a")

    assert "tools" not in story.build()
    assert story.build()["input"][0]["type"] == "additional_tools"
    assert view(story).tools == ("read",)


def test_lite_shape_exists_only_on_responses():
    with pytest.raises(ValueError, match="no tools inside the history"):
        conversation("openai_chat").lite()


def test_unknown_wire_format_is_an_error():
    with pytest.raises(ValueError, match="unknown wire format"):
        conversation("grpc")


def test_cache_marks_stand_on_their_blocks():
    story = conversation("anthropic_messages").system("a", cached=True).user("b", cached=True)
    mark = {"type": "ephemeral"}

    assert story.build()["system"] == [{"type": "text", "text": "a", "cache_control": mark}]
    assert story.build()["messages"][0]["content"][0]["cache_control"] == mark


def test_messages_alternate_roles():
    story = conversation("anthropic_messages").user("a").reads("read").user("b").user("c")

    assert [m["role"] for m in story.build()["messages"]] == ["user", "assistant", "user"]


def test_second_instructions_become_messages_on_responses():
    body = conversation("openai_responses").system("a").system("b").developer("c").build()

    assert body["instructions"] == "a"
    assert [item["role"] for item in body["input"]] == ["system", "developer"]


def test_redacted_thinking_has_no_text():
    story = conversation("anthropic_messages").user("a").reasoning(encrypted="zzz").reads("read")

    assert story.build()["messages"][1]["content"][0] == {
        "type": "redacted_thinking",
        "data": "zzz",
    }
