"""The table ``[replay]``: which fields tell recorded calls apart."""

from __future__ import annotations

import pytest

from switchyard_core.plugins import PluginRegistry
from switchyard_core.policy import check_policy_text
from switchyard_core.policy.recordings import default_key_fields

HEAD = "schema_version = 1\n[targets]\n[routes]\n[replay]\n"


def checked(table):
    return check_policy_text(HEAD + table, "policy", PluginRegistry(), environ=None)


def test_the_default_covers_everything_that_a_model_answers_to():
    assert {"model", "messages", "input", "instructions", "system", "tools"} <= set(
        default_key_fields()
    )
    assert "temperature" not in default_key_fields()


def test_without_a_list_the_built_in_one_is_used():
    assert checked("").policy.replay.key_fields is None


def test_a_list_is_kept_in_its_order_and_may_name_a_providers_own_field():
    policy = checked('key_fields = ["messages", "model", "x_vendor", "text.format"]').policy

    assert policy.replay.key_fields == ("messages", "model", "x_vendor", "text.format")


@pytest.mark.parametrize(
    ("table", "expected", "fix"),
    [
        pytest.param("key_field = []", "5:1 SY104", "did you mean `key_fields`?", id="key"),
        pytest.param("key_fields = 3", "5:14 SY106", "", id="type"),
        pytest.param("key_fields = [3]", "5:15 SY106", "", id="item"),
        pytest.param("key_fields = []", "5:14 SY114", "list at least", id="empty"),
        pytest.param(
            'key_fields = ["model", "mesages"]', "5:24 SY114", "did you mean `messages`?", id="near"
        ),
        pytest.param('key_fields = ["model", "model"]', "5:24 SY114", "remove one", id="twice"),
        pytest.param('key_fields = ["a b"]', "5:15 SY114", "write a key", id="no_name"),
        pytest.param('key_fields = [""]', "5:15 SY114", "write a key", id="blank"),
        pytest.param('key_fields = ["text."]', "5:15 SY114", "write a key", id="half_a_path"),
    ],
)
def test_a_wrong_list_is_reported_with_place_and_fix(table, expected, fix):
    result = checked(table)

    assert result.policy is None
    places = [f"{f.line}:{f.column} {f.code}" for f in result.findings]
    assert places == [expected]
    assert fix in result.findings[0].fix
