from __future__ import annotations

import pytest

from switchyard_core import Switchyard
from switchyard_core.server.pages import model_list, models_of
from tests.server.servers import policy

MODELS = {name: {"id": name} for name in "abcd"}


@pytest.mark.parametrize(
    ("query", "ids", "more"),
    [
        ("", "abcd", False),
        ("limit=1000", "abcd", False),
        ("limit=4", "abcd", False),
        ("limit=2", "ab", True),
        ("limit=2&after_id=b", "cd", False),
        ("limit=1&after_id=b", "c", True),
        ("limit=2&before_id=d", "bc", True),
        ("before_id=b", "a", False),
        ("after_id=zz", "abcd", False),
        ("limit=0", "abcd", False),
        ("limit=x", "abcd", False),
        ("limit=99999999999999", "abcd", False),
        ("after_id=d", "", False),
        ("before_id=a", "", False),
    ],
)
def test_model_list_pages_like_anthropic(query, ids, more):
    page = model_list(MODELS, query)
    assert [model["id"] for model in page["data"]] == list(ids)
    assert page["has_more"] is more
    assert page["first_id"] == (ids[0] if ids else None)
    assert page["last_id"] == (ids[-1] if ids else None)


def test_models_of_lists_aliases_and_what_a_route_declares():
    text = policy("openai_chat", "http://x", route="context_window = 9\ntool_calling = true")
    models = models_of(Switchyard.from_policy_text(text).policy)
    assert list(models) == ["coder", "team/coder"]
    assert models["team/coder"]["context_window"] == 9
    assert models["coder"]["tool_calling"] is True
    assert "reasoning" not in models["coder"]


def test_model_list_of_codex_has_the_key_that_it_reads():
    page = model_list(MODELS, "client_version=0.171.0")

    assert page["models"] == []
    assert [model["id"] for model in page["data"]] == list("abcd")
    assert "models" not in model_list(MODELS, "")


def test_models_of_leaves_globs_out():
    text = policy("openai_chat", "http://x").replace('"team/coder"', '"team/coder", "small-*"')
    assert list(models_of(Switchyard.from_policy_text(text).policy)) == ["coder", "team/coder"]
