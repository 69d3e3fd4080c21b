"""Places, conditions and texts of the rules of a strict provider."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from switchyard_core.scripted.select import Asked
from switchyard_core.scripted.strict import strict_names
from switchyard_core.scripted.strict.places import Sent, found
from switchyard_core.scripted.strict.provider import strict_provider
from switchyard_core.scripted.strict.rules import Condition, Rule, chosen, filled, spelt
from switchyard_core.scripted.strict.sealing import digest, seal, unseal
from switchyard_core.wire import FORMATS

ROOT = Path(__file__).parents[3]
BODY = {
    "model": "m-1",
    "n": 2,
    "flag": False,
    "none": None,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image"}]},
        {"role": "assistant", "calls": [{"id": "a"}, {"id": "b"}]},
    ],
}


def sent(body: Any = None, headers: dict[str, str] | None = None) -> Sent:
    body = BODY if body is None else body
    asked = Asked(
        format=FORMATS["openai_chat"],
        body=body,
        raw=json.dumps(body).encode(),
        headers=headers or {},
    )
    return Sent(asked=asked, path="/beta/x", endpoint="create", model="m-1")


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("model", ["m-1"]),
        ("flag", [False]),
        ("none", []),
        ("no.such[].place", []),
        ("n.below", []),
        ("n[]", []),
        ("messages[].role", ["user", "assistant"]),
        ("messages[-1].role", ["assistant"]),
        ("messages[role=assistant].calls[].id", ["a", "b"]),
        ("messages[role=user|assistant].role", ["user", "assistant"]),
        ("messages[role=a*].role", ["assistant"]),
        ("messages[calls].role", ["assistant"]),
        ("messages[role=user,calls].role", []),
        ("messages[].content[type=text].text", [""]),
        ("n | model | none", [2, "m-1"]),
        ("@path", ["/beta/x"]),
        ("@header.x-list", ["a", "b"]),
        ("@header.x-none", []),
    ],
)
def test_place_finds_its_values(place: str, values: list[Any]) -> None:
    assert [value for _, value in found(sent(headers={"x-list": "a, b,"}), place)] == values


def test_size_of_a_request_is_a_place() -> None:
    size = len(json.dumps(BODY).encode())

    assert [v for p in ("@bytes", "@tokens") for _, v in found(sent(), p)] == [size, size // 4]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"path": "n"}, True),
        ({"path": "n", "equals": 2.0}, True),
        ({"path": "n", "equals": "2"}, False),
        ({"path": "flag", "equals": 0}, False),
        ({"path": "flag", "equals": False}, True),
        ({"path": "n", "in": [1, 2]}, True),
        ({"path": "n", "not_in": [1, 2]}, False),
        ({"path": "model", "in": ["m-*"]}, True),
        ({"path": "n", "above": 1, "below": 3}, True),
        ({"path": "n", "above": 2}, False),
        ({"path": "flag", "below": 1}, False),
        ({"path": "model", "longer": 2}, True),
        ({"path": "messages", "longer": 2}, False),
        ({"path": "messages[]", "more_than": 1}, True),
        ({"path": "messages[]", "more_than": 2}, False),
        ({"path": "model", "like": "^m"}, True),
        ({"path": "model", "unlike": "^m"}, False),
        ({"path": "n", "unlike": "^m"}, False),
        ({"path": "no", "missing": True}, True),
        ({"path": "none", "missing": True}, True),
        ({"path": "messages[].calls", "missing": True}, True),
        ({"path": "messages[role=assistant].calls", "missing": True}, False),
        ({"path": "no.place", "missing": True}, False),
        ({"path": "no", "not_in": ["x"]}, False),
        ({"path": "no", "not_in": ["x"], "default": "y"}, True),
    ],
)
def test_condition_holds(condition: dict[str, Any], *, holds: bool) -> None:
    assert Condition.model_validate(condition).holds(sent()) is holds


def test_rule_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValidationError, match="mesage"):
        Rule.model_validate({"path": "n", "mesage": "no"})


@pytest.mark.parametrize(
    ("globs", "model", "is_chosen"),
    [
        ((), "any", True),
        (("gpt-5*",), "gpt-5.5", True),
        (("gpt-5*", "!*-chat*"), "gpt-5-chat-latest", False),
        (("!gpt-6*",), "gpt-5.5", True),
        (("gpt-5",), "gpt-5.5", False),
        (("MiniMax-*",), "minimax-m3", True),
    ],
)
def test_globs_choose_models(globs: tuple[str, ...], model: str, *, is_chosen: bool) -> None:
    assert chosen(globs)(model) is is_chosen


def test_template_is_filled_and_keeps_the_type_of_a_whole_name() -> None:
    template = {"code": "{status}", "text": "{a} is {flag}", "list": [{"x": "{none}"}], "n": 1}
    facts = {"status": 400, "a": "{b}", "flag": True, "none": None}

    assert filled(template, facts) == {
        "code": 400,
        "text": "{b} is true",
        "list": [{"x": None}],
        "n": 1,
    }


def test_place_is_spelt_as_its_provider_spells_it() -> None:
    place = ("messages", 1, "content", 0, "id")

    assert spelt(place, "dots") == "messages.1.content.0.id"
    assert spelt(place, "brackets") == "messages[1].content[0].id"


@pytest.mark.parametrize(
    "opaque", ["", "x", "eA==", "e30=", 5, None, ["a"], "é", seal("other", {"a": 1})]
)
def test_only_the_maker_reads_a_seal(opaque: Any) -> None:
    assert unseal("maker", opaque) is None


def test_seal_keeps_its_facts_and_cannot_be_changed() -> None:
    made = seal("maker", {"m": "x", "t": "y"})
    changed = seal("maker", {"m": "x", "t": "z"})

    assert unseal("maker", made) == {"m": "x", "t": "y"}
    assert unseal("maker", made[:20] + changed[20:]) is None


def test_digest_leaves_out_key_order_and_null() -> None:
    assert digest({"a": 1, "b": [{"c": None}]}) == digest({"b": [{}], "a": 1, "d": None})
    assert digest({"a": 1}) != digest({"a": 2})


def test_page_lists_every_provider_with_its_wire_formats() -> None:
    page = (ROOT / "docs" / "scripted_provider.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## Strict providers")
    section, _, _ = section.partition("\n## ")
    rows = re.findall(r"^\| (`[^|]+) \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
    words = {
        "openai_chat": "Chat",
        "openai_responses": "Responses",
        "anthropic_messages": "Messages",
    }

    listed = {name: told for names, told in rows for name in re.findall(r"`(\w+)`", names)}

    assert sorted(listed) == sorted(strict_names())
    for name, told in listed.items():
        for wire_format, word in words.items():
            speaks = wire_format in strict_provider(name).formats
            assert speaks is (word in told and f"{word} (not `{name}`)" not in told), name
