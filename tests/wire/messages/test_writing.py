"""Settings of a neutral request in a Messages one; and bodies that the provider takes."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

from hypothesis import given, settings

from switchyard_core.decision import Rewrite
from switchyard_core.jsonio.tree import ObjectText
from switchyard_core.models import core_profiles, profile_of, read_profiles
from switchyard_core.testing import validity_problems
from switchyard_core.wire import FORMATS
from switchyard_core.wire.neutral import (
    AskedTool,
    Call,
    Choice,
    Facts,
    Media,
    NeutralRequest,
    Result,
    Schema,
    Told,
    ToolName,
    Turn,
    Words,
)
from switchyard_core.wire.rewrites import CORE_REWRITES, apply_rewrites
from switchyard_core.wire.rewrites.fit import Rules
from tests.scripted.strict.broken import player
from tests.support.neutral import FACTS, requests

MESSAGES = FORMATS["anthropic_messages"]
TYPES = {rewrite.name: rewrite for rewrite in CORE_REWRITES}
ENTRIES = [entry for declared in core_profiles() for entry in read_profiles(declared)]
PROVIDER = player("anthropic")
USER = Turn(role="user", parts=(Words(text="go"),))
OPEN = b'{"type":"object","properties":{}}'
#: What reading a body gives, besides reports.
SAID = [field.name for field in fields(NeutralRequest) if field.name != "told"]
ANY_JSON = "left out JSON mode, which Messages has with a schema only"


def written(facts: Facts | None = None, **members: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the members besides the usual ones, and what was told; a wrong body fails."""
    request = NeutralRequest(**{"model": "m", "turns": (USER,), **members})
    raw = MESSAGES.write(request, facts or Facts())
    assert raw.startswith(b'{"model":"m","max_tokens":')
    assert validity_problems("anthropic_messages", raw, sdk=True) == []
    usual = ("model", "max_tokens", "messages")
    more = {key: value for key, value in json.loads(raw).items() if key not in usual}
    return more, request.told.lines


#: Members of a request, those of the body, and what is told.
TABLE: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    ({}, {}, []),
    ({"stream": True}, {"stream": True}, []),
    ({"instructions": (Words(text="Be kind."),)}, {"system": "Be kind."}, []),
    (
        {"instructions": (Words(text="a", cache=b'{"type":"ephemeral"}'),)},
        {"system": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
        [],
    ),
    ({"stop": ("END", " \n", "")}, {"stop_sequences": ["END"]},
     ["left out blank texts at which the answer ends"]),
    (
        {"effort": "minimal"},
        {"output_config": {"effort": "low"}},
        ["said the effort `minimal` as `low`"],
    ),
    ({"effort": "xhigh"}, {"output_config": {"effort": "xhigh"}}, []),
    ({"effort": "none"}, {"thinking": {"type": "disabled"}}, []),
    ({"effort": "huge"}, {}, ["left out the effort `huge`"]),
    (
        {"schema": Schema(schema=OPEN[:-1] + b',"additionalProperties":false}', name="x")},
        {"output_config": {"format": {"type": "json_schema",
                                      "schema": {**json.loads(OPEN),
                                                 "additionalProperties": False}}}},
        [],
    ),
    ({"schema": Schema(schema=b"")}, {}, [ANY_JSON]),
    ({"settings": {"temperature": b"0.50"}}, {"temperature": 0.5}, []),
    ({"settings": {"temperature": b"1.7"}}, {"temperature": 1},
     ["lowered `temperature` to 1, the most that Messages takes"]),
    ({"settings": {"temperature": b"0.2", "top_p": b"0.9"}}, {"temperature": 0.2},
     ["left out `top_p`, for only one of `temperature` and `top_p` may be set"]),
    ({"settings": {"temperature": b"1", "top_p": b"0.9"}}, {"top_p": 0.9},
     ["left out `temperature`, for only one of `temperature` and `top_p` may be set"]),
    ({"settings": {"top_k": b"40"}}, {"top_k": 40}, []),
    ({"settings": {"temperature": b'"hot"'}}, {}, []),
    ({"settings": {"user": b'"u"'}}, {"metadata": {"user_id": "u"}}, []),
    ({"settings": {"safety_identifier": b'"s"'}}, {"metadata": {"user_id": "s"}}, []),
    ({"settings": {"user": b'"u"', "safety_identifier": b'"s"'}}, {"metadata": {"user_id": "u"}},
     ["left out `safety_identifier`"]),
    ({"settings": {"user": b'"' + b"u" * 257 + b'"'}}, {},
     ["left out the user, whose id has over 256 characters"]),
    ({"settings": {"service_tier": b'"default"'}}, {"service_tier": "standard_only"}, []),
    ({"settings": {"service_tier": b'"auto"'}}, {"service_tier": "auto"}, []),
    ({"settings": {"service_tier": b'"flex"'}}, {}, ["left out the service tier `flex`"]),
    ({"settings": {"store": b"false", "logprobs": b"false", "presence_penalty": b"0"}}, {}, []),
    ({"settings": {"store": b"true", "seed": b"7", "cache_key": b'"k"'}}, {},
     ["left out `store`", "left out `seed`", "left out `cache_key`"]),
]  # fmt: skip


def test_settings_have_a_place_or_are_named() -> None:
    wrong = []
    for members, body, lines in TABLE:
        if (found := written(**members)) != (body, lines):
            wrong.append((members, found))
    assert wrong == []


def test_limit_is_the_requests_the_models_or_the_usual_one() -> None:
    def limit(asked: int | None, most: int | None) -> int:
        request = NeutralRequest(model="m", turns=(USER,), limit=asked)
        return int(json.loads(MESSAGES.write(request, Facts(max_output=most)))["max_tokens"])

    assert [limit(7, 64000), limit(None, 64000), limit(None, None)] == [7, 64000, 4096]


def test_models_that_think_are_asked_to_and_sampling_that_thinking_refuses_goes() -> None:
    sampling = {"temperature": b"0.2", "top_k": b"40", "top_p": b"0.5"}
    body, told = written(Facts(thinks=True), effort="high", settings=sampling)
    assert body == {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    assert told == [
        f"left out `{key}`, which thinking does not go with"
        for key in ("temperature", "top_p", "top_k")
    ]
    body, told = written(Facts(thinks=True), effort="", settings={"temperature": b"0.2"})
    assert (body, told) == ({"temperature": 0.2}, [])
    kept = {"temperature": b"1.0"}
    assert written(Facts(thinks=True), effort="low", settings=kept)[0]["temperature"] == 1


MARK = b'{"type":"ephemeral"}'
CALL = Call(id="toolu_1", tool=ToolName(name="read"), arguments='{"n":1.10}', cache=MARK)
RESULT = Result(
    call_id="toolu_1",
    parts=(Words(text="no"), Media(kind="image", url="data:image/png;base64,iVBO", cache=MARK)),
    failed=True,
)
FILE = Media(kind="file", url="data:application/pdf;base64,JVBE", name="paper.pdf")
WHOLE = NeutralRequest(
    model="m",
    instructions=(Words(text="a"), Words(text="b", cache=MARK)),
    turns=(
        Turn(
            role="user", parts=(Words(text="go"), FILE, Media(kind="image", url="https://x/a.png"))
        ),
        Turn(role="assistant", parts=(Words(text="I look."), CALL, Words(text="So."))),
        Turn(role="tool", parts=(RESULT,)),
        Turn(role="user", parts=(Words(text="and?"),)),
        Turn(role="system", parts=(Words(text="Be brief."),)),
    ),
    tools=(
        AskedTool(
            tool=ToolName(name="read"),
            description="Reads.",
            parameters=OPEN[:-1] + b',"additionalProperties":false}',
            strict=True,
            cache=MARK,
        ),
        AskedTool(tool=ToolName(name="edit"), parameters=OPEN),
    ),
    choice=Choice(mode="required", allowed=(ToolName(name="read"),)),
    parallel=False,
    schema=Schema(schema=OPEN[:-1] + b',"additionalProperties":false}'),
    effort="high",
    limit=99,
    stop=("END",),
    stream=True,
    settings={"temperature": b"0.50", "top_k": b"7", "user": b'"u"', "service_tier": b'"auto"'},
)


def test_all_that_messages_can_say_is_read_back() -> None:
    body = MESSAGES.write(WHOLE, Facts(system_rows=True))
    assert WHOLE.told.lines == []
    assert validity_problems("anthropic_messages", body, sdk=True) == []
    read = MESSAGES.neutral(ObjectText(body))
    assert read.told.lines == []
    for name in SAID:
        assert getattr(read, name) == getattr(WHOLE, name)


# --- what holds for every request ------------------------------------------------------------

MODELS = ("claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5", "claude-opus-5-5",
          "claude-sonnet-5", "claude-sonnet-5-5")  # fmt: skip


def fitted(request: NeutralRequest, facts: Facts, model: str) -> bytes:
    """Return the body that a model of Anthropic gets."""
    profile = profile_of(
        ENTRIES, model=model, wire_format="anthropic_messages", host="api.anthropic.com"
    )
    known = replace(
        facts,
        system_rows=profile.system_rows,
        thinks=profile.reasoning.default is not None,
        max_output=profile.max_output,
    )
    body = MESSAGES.write(request, known)
    rules = {"rules": Rules.of(profile.rules), "max_output": profile.max_output}
    rewrites = [
        Rewrite(
            name="fit_model", parameters={**rules, "thinks": profile.reasoning.default == "on"}
        ),
        Rewrite(name="set_model", parameters={"id": model}),
    ]
    return apply_rewrites(ObjectText(body), rewrites, TYPES, "anthropic_messages", headers={})[0]


@settings(max_examples=100, deadline=None)
@given(requests(), FACTS)
def test_every_request_is_written_as_one_that_the_provider_takes(
    request: NeutralRequest, facts: Facts
) -> None:
    body = MESSAGES.write(request, facts)
    assert validity_problems("anthropic_messages", body) == []
    for model in MODELS:
        sent = fitted(request, facts, model)
        reply = PROVIDER.play("POST", "/v1/messages", [], sent)
        assert reply.status == 200, (model, b"".join(reply.chunks), sent)


@settings(max_examples=200, deadline=None)
@given(requests(), FACTS)
def test_what_messages_can_say_is_read_back_as_it_was(
    request: NeutralRequest, facts: Facts
) -> None:
    # A tool that stands for a schema is read back as a tool.
    facts = replace(facts, forced_schema=False)
    body = MESSAGES.write(request, facts)
    once = MESSAGES.neutral(ObjectText(body))
    assert once.told.lost == []
    again = MESSAGES.write(replace(once, told=Told()), facts)
    twice = MESSAGES.neutral(ObjectText(again))
    assert {key: getattr(once, key) for key in SAID} == {key: getattr(twice, key) for key in SAID}
    assert once.model == request.model
    assert once.instructions == request.instructions or facts.cache_marks
    assert len(once.tools) >= len(request.tools) or request.choice is not None
