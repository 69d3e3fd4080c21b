"""The data about coding agents: readable, complete in its README, and as the engine reads it."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import msgspec

from switchyard_core.clients import (
    Client,
    clients,
    forwarded,
    identity_headers,
    is_small_model,
    path_prefixes,
    side_call_kinds,
)
from switchyard_core.patterns import compile_pattern
from switchyard_core.wire import WIRE_FORMATS

ROOM = files("switchyard_core.clients")


def test_every_file_is_a_client_with_a_place_of_its_own() -> None:
    found = clients()

    assert len(found) == sum(entry.name.endswith(".toml") for entry in ROOM.iterdir())
    assert len({client.order for client in found}) == len({client.name for client in found})
    assert [client.order for client in found] == sorted(client.order for client in found)
    assert found[0].name == "switchyard"


def test_readme_has_every_key_and_no_other() -> None:
    text = (ROOM / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    keys = [key for row in rows for key in re.findall(r"\w+", row)]

    assert sorted(keys) == sorted(field.name for field in msgspec.structs.fields(Client))


def test_names_are_written_as_they_are_looked_up() -> None:
    for client in clients():
        names = [name for mark in client.side_calls for name in mark.headers]
        names += [name for headers in client.forward.values() for name in headers]
        names += [client.turn.header, client.turn.kind_header] if client.turn else []
        assert [name for name in (*names, *identity_headers()) if name != name.lower()] == []
        assert set(client.forward) <= set(WIRE_FORMATS), client.name
        for mark in client.side_calls:
            assert mark.wire_format in ("", *WIRE_FORMATS), mark.name
            assert re.fullmatch(r"[a-z][a-z0-9_]*", mark.kind), mark.name
        for source in (*client.session, *client.agent):
            assert bool(source.header) != bool(source.body), client.name
            assert (source.wire_format in WIRE_FORMATS) is bool(source.body), client.name


def test_every_mark_tests_something() -> None:
    marks = [mark for client in clients() for mark in client.side_calls]
    tested = [
        mark.headers or mark.metadata or mark.subagent or mark.body or mark.system or mark.user
        for mark in marks
    ]

    assert all(tested)
    assert len({mark.name for mark in marks}) == len(marks)


def test_kinds_are_those_that_the_documentation_lists() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text("utf-8")

    assert [kind for kind in side_call_kinds() if f"`{kind}`" not in page] == []


def test_headers_of_codex_go_to_every_responses_target_and_to_no_other() -> None:
    assert forwarded("openai_responses") == ("x-openai-internal-codex-responses-lite",)
    assert forwarded("openai_chat") == forwarded("anthropic_messages") == ()
    assert path_prefixes() == ("/backend-api/codex",)


def test_small_models_are_told_by_their_whole_id() -> None:
    small = ["claude-haiku-4-5-20251001", "claude-3-5-haiku-latest", "gpt-5.4-nano", "gpt-5-mini"]

    assert [model for model in small if not is_small_model(model)] == []
    others = ["claude-opus-4-8", "x/claude-haiku-4-5", "gpt-5.4", "gpt-4o-mini", ""]
    assert [model for model in others if is_small_model(model)] == []


def test_words_that_clients_retry_on_find_a_lost_connection() -> None:
    words = [
        client.retries.words for client in clients() if client.retries and client.retries.words
    ]

    assert words
    for pattern in words:
        retried = compile_pattern(pattern, ignore_case=True)
        assert retried("connection lost in the middle of an answer")
        assert not retried("the session is at capacity")
