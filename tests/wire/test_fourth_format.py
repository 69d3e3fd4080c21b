"""A fourth wire format is a folder and one line: it is read, patched, routed, answered, played."""

from __future__ import annotations

import json

import pytest

from switchyard_core import (
    Decision,
    Options,
    Reason,
    Request,
    RouteType,
    Switchyard,
    TargetName,
    hookimpl,
)
from switchyard_core.answering import (
    Finished,
    ModelCall,
    ModelUsage,
    SectionFinished,
    SectionStarted,
    TextDelta,
)
from switchyard_core.decision import Outgoing, Rewrite
from switchyard_core.jsonio.tree import ObjectText, encode
from switchyard_core.plugins import PluginRegistry
from switchyard_core.scripted import ScriptedUpstream
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS, WIRE_FORMATS, endpoint_of
from switchyard_core.wire.answers import AnswerPart, Frame, stream_bytes
from switchyard_core.wire.neutral import Facts
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites
from switchyard_core.wire.translation import AnswerTranslation
from tests.upstream.loopback import script_of
from tests.wire.toy_format import Toy

BODY = (
    b'{"model": "echo", "setup": "Be brief.", "talk": [\n'
    b'  {"by": "me", "say": "fix it", "sure": 1.10},\n'
    b'  {"by": "bot", "think": "hm. ", "say": "", "does": "edit", "no": "n 1"},\n'
    b'  {"by": "tool", "no": "n 1", "say": ""},\n'
    b'  {"by": "bot", "say": ""},\n'
    b'  {"by": "bot", "say": "Now this.", "does": "look", "no": "n2"},\n'
    b'  {"by": "me", "say": "and?"}\n'
    b"]}"
)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the one line."""
    monkeypatch.setitem(FORMATS, "toy", Toy())


def request(body: bytes = BODY) -> Request:
    return Request(wire_format="toy", body=body)


def test_its_requests_are_read() -> None:
    made = request()

    assert endpoint_of("/v1/talk") == ("toy", "create")
    assert [m.role for m in made.conversation.messages] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert [call.name for call in made.conversation.calls] == ["edit", "look"]
    assert made.user_message.text == "and?"
    assert made.instructions == "Be brief."


def test_every_core_rewrite_patches_it() -> None:
    given = {
        "reasoning_as_text": {"through_call": 0},
        "drop_opaque_reasoning": {"through_call": 0},
        "drop_origin_bound": {"through_call": 0},
        "insert_system_prompt": {"text": "Test it."},
        "insert_planning_prompt": {"text": "Plan it.", "position": "append"},
        "append_user_text": {"text": "Go on."},
        "target_parameters": {"extra_body": {"zeal_for": "tests"}},
        "reasoning_effort": {"effort": "high"},
        "set_model": {"id": "real"},
    }
    types = {kind.name: kind for kind in CORE_REWRITES}
    # What translates it is tested below.
    names = [name for name in types if name != "translate"]
    rewrites = [Rewrite(name=name, parameters=given.get(name, {})) for name in names]

    body, reports = apply_rewrites(ObjectText(BODY), rewrites, types, "toy")
    again, _ = apply_rewrites(ObjectText(body), rewrites, types, "toy")

    assert again == body
    skipped = {report.name for report in reports if report.skipped}
    assert skipped == {"limit_cache_marks"}  # the one that is for a single format
    assert b'{"by": "me", "say": "fix it", "sure": 1.10}' in body
    made = json.loads(body)
    call, lost = made["talk"][1]["no"], made["talk"][4]
    assert (made["model"], made["zeal"]) == ("real", "high")
    assert made["setup"] == "Test it.\n\nBe brief.\n\nPlan it."
    assert made["talk"][1]["say"] == "hm. "
    assert call.startswith("call_")
    assert made["talk"][2] == {
        "by": "tool", "no": call, "say": "[the tool returned nothing]",
    }  # fmt: skip
    assert lost == {"by": "tool", "no": "n2", "say": "[no result was recorded for this tool call]"}
    assert made["talk"][-1] == {"by": "me", "say": "Go on."}


class EchoOptions(Options):
    target: TargetName


class Echo:
    def __init__(self, options: EchoOptions) -> None:
        self.options = options

    async def answer(self, request, context):
        yield SectionStarted(kind="echo")
        yield TextDelta(request.user_message.text)
        yield SectionFinished()
        yield Finished("done")

    async def route(self, request, context):
        return Decision(target=self.options.target, reason=Reason(code="echo"))


class EchoPlugin:
    @hookimpl
    def switchyard_route_types(self):
        return [
            RouteType(name="echo", options=EchoOptions, router=Echo, summary="x", kind="answers")
        ]


POLICY = """
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://provider.test"
[targets.t]
id = "m"
llm_client = "p"
[routes.echo]
id = "echo"
type = "echo"
target = "t"
"""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_it_is_routed_and_answered(stream: bool) -> None:
    yard = Switchyard.from_policy_text(POLICY, registry=PluginRegistry([("echo", EchoPlugin())]))
    body = BODY.replace(b"{", b'{"stream": true, ' if stream else b"{", 1)

    async with await yard.handle(request(body)) as response:
        answer = await response.read()

    assert response.decision.route == "echo"
    if stream:
        events = [json.loads(line[6:]) for line in answer.decode().split("\n\n") if line]
        assert events[0]["begin"].startswith("toy_")
        assert events[1:3] == [{"text": "and?"}, {"text": "\n\n"}]
        assert events[-1]["end"] == "over"
    else:
        assert Toy().read_reply(answer).text == "and?\n\n"


async def test_the_scripted_provider_plays_it() -> None:
    provider = ScriptedUpstream(script_of({"text": "no"}, {"text": "one"}, {"text": "two"}), "toy")
    asked = Toy().compose(ModelCall(text="hello"), "m")
    sent = {"wire_format": "toy", "path": "/v1/talk", "headers": (), "stream": False}

    played = await provider.send(Outgoing(**sent, body=BODY, target="t", model="m"))
    first = await provider.send(Outgoing(**sent, body=asked, target="t", model="m"))

    assert Toy().read_reply(await played.read()).text == "two"
    assert Toy().read_reply(await first.read()).text == "no"


CALLED = (
    b'{"model": "m", "setup": "Be brief.", "tools": ["look", "edit"], "talk": ['
    b'{"by": "me", "say": "fix it"},'
    b'{"by": "bot", "say": "I look."},'
    b'{"by": "bot", "say": "", "does": "look", "no": "n1", "with": "{\\"path\\": 1.10}"},'
    b'{"by": "tool", "no": "n1", "say": "print(1)"},'
    b'{"by": "me", "say": "and?"}]}'
)


@pytest.mark.parametrize("other", WIRE_FORMATS)
def test_its_requests_are_translated_and_back(other: str) -> None:
    translation = Rewrite(name="translate", parameters={"wire_format": other})
    types = {kind.name: kind for kind in CORE_REWRITES}
    there, _ = apply_rewrites(ObjectText(CALLED), [translation], types, "toy")
    back = Toy().write(FORMATS[other].neutral(ObjectText(there)), Facts())

    assert validity_problems(other, there) == []
    assert json.loads(back) == json.loads(CALLED)


@pytest.mark.parametrize("other", WIRE_FORMATS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_its_answers_are_translated_and_back(other: str, stream: bool) -> None:
    reply = [
        (AnswerPart(kind="text"), "I look."),
        (AnswerPart(kind="call", id="n1", name="look"), '{"path": 1}'),
    ]
    asked = FORMATS[other].write(Toy().neutral(ObjectText(CALLED)), Facts())
    there = retold(answer_of("toy", reply, stream), "toy", other, asked, stream)
    back = retold(there, other, "toy", CALLED, stream)

    if stream:
        events = [json.loads(line[6:]) for line in back.decode().split("\n\n") if line]
        assert "".join(event.get("text", "") for event in events) == "I look."
        assert "".join(event.get("call", "") for event in events) == '{"path": 1}'
        assert [event["does"] for event in events if "does" in event] == ["look"]
        assert events[-1]["end"] == "doing"
    else:
        said = json.loads(back)
        assert said["says"][0]["text"] == "I look."
        assert json.loads(said["says"][1]["call"]) == {"path": 1}
        assert (said["says"][1]["does"], said["end"]) == ("look", "doing")


def answer_of(name: str, parts: list[tuple[AnswerPart, str]], stream: bool) -> bytes:
    frame = Frame(id="a", model="m", created_s=1, request=ObjectText(CALLED), stop="calls")
    writer, usage = FORMATS[name].writer(frame), ModelUsage(input_tokens=3, output_tokens=2)
    sent = list(writer.begin(usage))
    for part, text in parts:
        sent += [*writer.open(part), *writer.more(text), *writer.close()]
    if not stream:
        return encode(writer.whole(usage, {}))
    return stream_bytes([*sent, *writer.end(usage, {})])


def retold(answer: bytes, source: str, caller: str, asked: bytes, stream: bool) -> bytes:
    translation = AnswerTranslation(
        source=FORMATS[source],
        caller=FORMATS[caller],
        request=ObjectText(asked),
        model="m",
        answer_model="requested",
        new_id=lambda prefix: f"{prefix}_1",
        created_s=1,
    )
    if stream:
        return translation.feed(answer) + translation.end()
    return translation.whole(answer)
