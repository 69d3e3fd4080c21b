"""The contract of rewrites catches rewrites that are wrong in one way."""

from __future__ import annotations

import inspect
import random
import time

import pytest
from pydantic import BaseModel

from switchyard_core import PluginError, RewriteType, hookimpl
from switchyard_core.testing import RewriteConformance
from switchyard_core.wire import WIRE_FORMATS


def right(body, _parameters, _scope):
    if body.text("user") == "x":
        return []
    body.set("user", b'"x"')
    return ["set user"]


def again(body, _parameters, _scope):
    body.set("count", str((body.value("count") or 0) + 1).encode())
    return ["counted"]


def silent(body, parameters, scope):
    right(body, parameters, scope)
    return []


def boastful(_body, _parameters, _scope):
    return ["nothing at all"]


def dropping(body, _parameters, _scope):
    return ["dropped"] if body.delete("x-middle") else []


def moving(body, _parameters, _scope):
    raw = body.raw("model")
    if body.keys()[-1] == "model":
        return []
    body.delete("model")
    body.set("model", raw)
    return ["moved"]


def history_needed(body, _parameters, _scope):
    items = body.array("messages")
    return [] if items.raw(0) else ["never"]


def emptying(body, _parameters, _scope):
    for key in ("messages", "input"):
        if body.raw(key) not in (None, b"[]"):
            body.set(key, b"[]")
            return ["emptied"]
    return []


def timed(_body, _parameters, _scope):
    return [] if time.time() else ["never"]


def by_chance(_body, _parameters, _scope):
    return [] if random.random() < 2 else ["never"]


class Lax(BaseModel):
    """Parameters that take anything."""


def suite(function, parameters=None):
    class Plugin:
        @hookimpl
        def switchyard_rewrites(self):
            return [
                RewriteType(
                    name="mine",
                    order=1,
                    function=function,
                    summary="x",
                    parameters=parameters,
                )
            ]

    return type("TestMine", (RewriteConformance,), {"plugins": (Plugin(),), "rewrite": "mine"})()


def failures(made, wire_format="openai_chat"):
    found = {}
    for name, test in inspect.getmembers(made, inspect.ismethod):
        if name.startswith("test_"):
            given = [wire_format] if "wire_format" in inspect.signature(test).parameters else []
            try:
                test(*given)
            except (AssertionError, PluginError) as error:
                found[name.removeprefix("test_rewrite_")] = str(error)
    return found


@pytest.mark.parametrize(
    ("function", "test", "message"),
    [
        (again, "is_idempotent", "changes its own result"),
        (silent, "tells_what_it_changed", "tells [], and the body changed"),
        (boastful, "is_idempotent", "changes nothing, and tells: nothing at all"),
        (boastful, "tells_what_it_changed", "and the body did not change"),
        (dropping, "keeps_unknown_fields", "`x-middle` of the body is lost"),
        (moving, "keeps_the_key_order", "are in another order"),
        (history_needed, "survives_an_empty_history", "IndexError"),
        (emptying, "keeps_a_valid_body_valid", "must not be empty"),
        (timed, "reads_no_clock_and_no_chance", "calls time.time at"),
        (by_chance, "reads_no_clock_and_no_chance", "calls random.random at"),
    ],
)
def test_wrong_rewrite_is_caught(function, test, message):
    assert message in failures(suite(function))[test]


def test_parameters_that_accept_unknown_keys_are_caught():
    assert list(failures(suite(right, Lax))) == ["refuses_unknown_parameters"]


@pytest.mark.parametrize("wire_format", WIRE_FORMATS)
def test_right_rewrite_passes(wire_format):
    # `user` is a field of Chat and Responses; Messages has none of that name and ignores it.
    assert failures(suite(right), wire_format) == {}


def test_unknown_rewrite_names_the_known_ones():
    made = type("TestMine", (RewriteConformance,), {"rewrite": "mine"})()

    assert "known: append_user_text, " in failures(made)["refuses_unknown_parameters"]
