from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from switchyard_core.identity import Headers, Identity, read_identity, read_mark

ROOT = "00000000-root"
THREAD = "00000000-thread"


def identify(
    headers: dict[str, str],
    *,
    user_id: object = None,
    wire_format: str = "anthropic_messages",
    body: dict[str, object] | None = None,
) -> Identity | None:
    found = Headers(headers)
    at = {"metadata.user_id": user_id, **(body or {})}
    return read_identity(found, read_mark(found), wire_format=wire_format, body=at.get)[0]


def codex(**metadata: object) -> str:
    return json.dumps({"session_id": ROOT, "thread_id": ROOT, "request_kind": "turn", **metadata})


@pytest.mark.parametrize(
    "header",
    [
        "x-switchyard-session-id",
        "x-claude-code-session-id",
        "x-nemo-relay-session-id",
        "x-session-id",
        "session-id",
        "session_id",
    ],
)
def test_session_header_alone_gives_the_root(header):
    identity = identify({header.upper(): f"  {ROOT} "})

    assert identity == Identity(session=ROOT, source=f"header:{header}")


def test_first_header_in_order_wins():
    identity = identify({"session_id": "late", "x-session-id": "early"})

    assert identity is not None
    assert (identity.session, identity.source) == ("early", "header:x-session-id")


def test_blank_header_is_passed_over():
    identity = identify({"x-switchyard-session-id": "  ", "session-id": "s"})

    assert identity is not None
    assert identity.session == "s"


def test_session_is_case_sensitive():
    assert identify({"session-id": "A"}) != identify({"session-id": "a"})


@pytest.mark.parametrize("value", ["é", "x" * 8193], ids=["not_ascii", "too_long"])
def test_unfit_session_is_no_identity_even_with_a_later_header(value):
    assert identify({"x-session-id": value, "session-id": "fine"}) is None


def test_codex_metadata_gives_session_and_root():
    identity = identify({"x-codex-turn-metadata": codex(), "thread-id": ROOT, "session-id": ROOT})

    assert identity == Identity(session=ROOT, source="header:x-codex-turn-metadata")


def test_codex_spawned_thread_is_a_subagent():
    metadata = codex(
        thread_id=THREAD,
        thread_source="subagent",
        parent_thread_id=ROOT,
        subagent_kind="thread_spawn",
    )
    identity = identify({"x-codex-turn-metadata": metadata, "x-openai-subagent": "collab_spawn"})

    assert identity is not None
    assert identity.key == (ROOT, THREAD)
    assert identity.agent_source == "header:x-codex-turn-metadata"


@pytest.mark.parametrize("kind", ["compact", "memory_consolidation"])
def test_codex_upkeep_counts_as_the_root(kind):
    identity = identify({"session-id": ROOT, "thread-id": THREAD, "x-openai-subagent": kind})

    assert identity is not None
    assert identity.agent is None


def test_codex_review_is_a_subagent():
    identity = identify({"session-id": ROOT, "thread-id": THREAD, "x-openai-subagent": "review"})

    assert identity is not None
    assert identity.agent == THREAD


def test_compaction_of_a_spawned_thread_stays_its_own():
    metadata = codex(
        thread_id=THREAD,
        request_kind="compaction",
        thread_source="subagent",
        parent_thread_id=ROOT,
        subagent_kind="thread_spawn",
    )
    headers = Headers({"x-codex-turn-metadata": metadata})
    mark = read_mark(headers)

    identity, _ = read_identity(headers, mark)

    assert not mark.of_root
    assert identity is not None
    assert identity.key == (ROOT, THREAD)


def test_thread_id_without_a_sign_is_the_root():
    identity = identify({"session-id": ROOT, "thread-id": THREAD})

    assert identity is not None
    assert identity.agent is None


def test_claude_agent_id_is_sign_and_id():
    identity = identify({"x-claude-code-session-id": ROOT, "x-claude-code-agent-id": "a1"})

    assert identity is not None
    assert identity.key == (ROOT, "a1")


def test_sign_without_an_agent_id_is_nobody():
    assert identify({"x-session-id": ROOT, "x-switchyard-is-subagent": "true"}) is None


def test_agent_without_a_session_is_nobody():
    assert identify({"x-claude-code-agent-id": "a1"}) is None


def test_explicit_no_wins_over_other_signs():
    identity = identify(
        {
            "x-claude-code-session-id": ROOT,
            "x-claude-code-agent-id": "a1",
            "x-switchyard-is-subagent": "false",
        }
    )

    assert identity is not None
    assert identity.agent is None


@pytest.mark.parametrize(
    ("user_id", "session"),
    [
        (json.dumps({"device_id": "d", "account_uuid": "", "session_id": "s-1"}), "s-1"),
        ("user_abc_account_0000_session_11-22", "11-22"),
        ("user_\ud800_account_0000_session_11-22", "11-22"),
        ("alice@example.com", None),
        (json.dumps({"id": "s-1"}), None),
        ("{broken", None),
        ("[" * 100_000, None),
    ],
    ids=["json", "joined", "half_an_emoji", "free", "other_json", "broken", "deep"],
)
def test_user_id_counts_only_in_the_two_forms_of_claude_code(user_id, session):
    identity = identify({}, user_id=user_id)

    assert (identity.session if identity else None) == session


def test_user_id_of_any_length_is_read_in_linear_time():
    hostile = "user_x" + "_account_" * 50_000 + "_session_" * 50_000 + "!"

    assert identify({}, user_id=hostile) is None


def test_own_sources_come_after_headers_and_before_user_id():
    headers = Headers({})
    identity, _ = read_identity(
        headers,
        read_mark(headers),
        body=lambda _path: "user_a_account_b_session_c",
        extra=[("body:$.x", lambda: None), ("body:$.y", lambda: "mine")],
    )

    assert identity == Identity(session="mine", source="body:$.y")


UUID = "0779bcdf-a361-43f0-885f-bd9ddfe7a0ab"
OPENCODE = "ses_dd579523fffeOtQyYcquDralb1"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-session-affinity", OPENCODE),
        ("x-opencode-session", OPENCODE),
        ("x-amp-thread-id", f"T-{UUID}"),
        ("x-litellm-session-id", "agent-run-abc123"),
    ],
)
def test_header_of_a_client_with_an_id_of_its_form_gives_the_root(header, value):
    assert identify({header: value}) == Identity(session=value, source=f"header:{header}")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("x-session-affinity", "backend-7"),
        ("x-session-affinity", f"{OPENCODE}; path=/"),
        ("x-opencode-session", "one-for-all"),
        ("x-amp-thread-id", "T-1"),
        ("x-amp-thread-id", UUID),
    ],
)
def test_header_of_a_client_with_anything_else_is_passed_over(header, value):
    late = identify({header: value, "session-id": "s"})

    assert identify({header: value}) is None
    assert late is not None
    assert late.source == "header:session-id"


def test_session_id_stands_before_the_affinity_that_repeats_it():
    identity = identify({"x-session-affinity": OPENCODE, "x-session-id": OPENCODE})

    assert identity is not None
    assert identity.source == "header:x-session-id"


@pytest.mark.parametrize("user_id", [{"session_id": UUID}, json.dumps({"session_id": UUID})])
def test_user_id_counts_as_an_object_too(user_id):
    assert identify({}, user_id=user_id) == Identity(session=UUID, source="body:$.metadata.user_id")


@pytest.mark.parametrize("user_id", [{"session_id": 5}, {"id": UUID}, [UUID], 7, {}])
def test_user_id_of_another_form_is_no_identity(user_id):
    assert identify({}, user_id=user_id) is None


def test_user_id_of_another_wire_format_is_not_read():
    assert identify({}, user_id={"session_id": UUID}, wire_format="openai_chat") is None


def codex_body(session: object, thread: object = None) -> Identity | None:
    body = {"client_metadata.session_id": session, "client_metadata.thread_id": thread}
    return identify({}, wire_format="openai_responses", body=body)


def test_client_metadata_gives_the_session_of_codex():
    place = "body:$.client_metadata.session_id"

    assert codex_body(UUID) == Identity(session=UUID, source=place)
    assert codex_body(UUID, UUID) == Identity(session=UUID, source=place)


def test_client_metadata_of_another_thread_is_a_subagent():
    thread = UUID.replace("0", "1")
    identity = codex_body(UUID, thread)

    assert identity is not None
    assert identity.key == (UUID, thread)
    assert identity.agent_source == "body:$.client_metadata.thread_id"


@pytest.mark.parametrize("session", ["team-a", UUID.upper(), 5, None, {"id": UUID}])
def test_client_metadata_of_another_form_is_no_identity(session):
    assert codex_body(session) is None


@pytest.mark.parametrize("word", ["true", "1", "yes", " ON "])
def test_flag_words_are_true_in_any_case(word):
    assert Headers({"X-Flag": word}).flag("x-flag") is True


def test_digest_shows_neither_session_nor_agent():
    identity = Identity(session="secret-session", agent="secret-agent")

    assert len(identity.digest) == 12
    assert "secret" not in identity.digest
    assert identity.digest != identity.root.digest


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "session-id",
                "x-codex-turn-metadata",
                "thread-id",
                "x-openai-subagent",
                "x-claude-code-agent-id",
                "x-switchyard-is-subagent",
            ]
        ),
        st.text(),
    )
)
def test_any_headers_give_an_identity_or_none(headers):
    identity = identify(headers)

    assert identity is None or (identity.session and identity.session.isascii())


@pytest.mark.parametrize(
    ("headers", "place"),
    [
        ({}, ""),
        ({"x-session-id": "s"}, ""),
        ({"x-session-id": "sess\u00e4"}, "header:x-session-id"),
        ({"session-id": "s" * 8193}, "header:session-id"),
        ({"session-id": "s" * 8192}, ""),
        ({"x-session-id": " ", "session-id": "\u00e4"}, "header:session-id"),
        ({"x-codex-turn-metadata": '{"session_id": "\u00e4"}'}, "header:x-codex-turn-metadata"),
        (
            {"x-session-id": "s", "x-claude-code-agent-id": "\u00e4"},
            "header:x-claude-code-agent-id",
        ),
        ({"x-session-id": "s", "x-switchyard-is-subagent": "1"}, ""),
    ],
    ids=["none", "fit", "not_ascii", "long", "longest", "after_blank", "metadata", "agent", "lost"],
)
def test_unfit_id_gives_the_header_that_is_no_identity(headers, place):
    given = Headers(headers)

    assert read_identity(given, read_mark(given))[1] == place


def test_unfit_id_gives_the_place_in_the_body():
    headers = Headers({})
    mark = read_mark(headers)

    own = read_identity(headers, mark, extra=[("body:$.meta.session", lambda: "\u00e4")])[1]
    text = json.dumps({"session_id": "\u00e4"})
    known = read_identity(
        headers, mark, wire_format="anthropic_messages", body={"metadata.user_id": text}.get
    )[1]

    assert (own, known) == ("body:$.meta.session", "body:$.metadata.user_id")
