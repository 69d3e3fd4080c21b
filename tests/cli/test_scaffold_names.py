"""One word gives all names of a plugin; a word that cannot gets the nearest that can."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from switchyard_core.cli.scaffold import PluginNames, nearest_name, plugin_names
from tests.support.cases import each_of


@each_of(
    ("name", "names"),
    [
        ("sticky", ("sticky", "switchyard-sticky", "switchyard_sticky", "Sticky")),
        ("by-hour", ("by_hour", "switchyard-by-hour", "switchyard_by_hour", "ByHour")),
        ("by_hour", ("by_hour", "switchyard-by-hour", "switchyard_by_hour", "ByHour")),
        ("my-router", ("my_router", "switchyard-my-router", "switchyard_my_router", "My")),
        ("router", ("router", "switchyard-router", "switchyard_router", "Router")),
        ("v2", ("v2", "switchyard-v2", "switchyard_v2", "V2")),
        ("class", ("class", "switchyard-class", "switchyard_class", "Class")),
    ],
)
def test_plugin_names_follow_from_the_word(name: str, names: tuple[str, ...]) -> None:
    keys = ("type", "distribution", "module", "class_prefix")

    assert plugin_names(name) == PluginNames(**dict(zip(keys, names, strict=True)))


@each_of(
    ("name", "nearest"),
    [
        ("Sticky", "sticky"),
        ("sticky router", "sticky-router"),
        ("switchyard-sticky", "sticky"),
        ("switchyard_sticky", "sticky"),
        ("2fast", "fast"),
        ("sticky-", "sticky"),
        ("a--b", "a-b"),
        ("Käse!", "kase"),
        ("../../etc", "etc"),
        ("", "my-router"),
        ("路由", "my-router"),
        ("switchyard", "my-router"),
        ("x" * 41, "x" * 40),
    ],
)
def test_plugin_names_of_an_illegal_word_offer_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(ValueError, match="is not a valid name for a plugin") as caught:
        plugin_names(name)

    assert str(caught.value).endswith(f"did you mean `{nearest}`?")
    assert plugin_names(nearest)


@given(st.text())
@example("switchyard-switchyard-a")
@example("x" * 39 + "-y")
def test_nearest_name_is_always_legal(text: str) -> None:
    assert plugin_names(nearest_name(text))


@given(st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,6}){0,3}", fullmatch=True))
def test_nearest_name_of_a_legal_one_is_itself(name: str) -> None:
    assert name.startswith("switchyard") or nearest_name(name) == name
