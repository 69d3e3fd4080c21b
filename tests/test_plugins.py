"""The plugin registry: no silent winner, and one broken plugin never stops the others."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import DistributionFinder, EntryPoint, MetadataPathFinder
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from switchyard_core import hookspecs
from switchyard_core.declarations import (
    LatchStoreType,
    LintRule,
    ModelProfiles,
    MutationPack,
    Options,
    PlanStoreType,
    RewriteType,
    RouteType,
    Tool,
)
from switchyard_core.errors import PluginError
from switchyard_core.hookspecs import hookimpl
from switchyard_core.plugins import PluginRegistry
from tests.support.cases import each_of

#: A text with one profile.
PROFILE = """
[[profile]]
id = "m"
match = ["m-*"]
source = "example.com"
as_of = 2026-01-01
sure = "doc"
rules = [{ path = "x", do = "drop" }]
"""


class Nothing(Options):
    """No options."""


def route_type(name: str = "r", options: type[BaseModel] = Nothing) -> RouteType:
    return RouteType(name=name, options=options, router=lambda o: o, summary="s")


def nothing(*_: object) -> tuple[str, ...]:
    return ()


def tool(name: str = "t", **changes: Any) -> Tool:
    declared: dict[str, Any] = {"description": "d", "parameters": Nothing, "function": str}
    return Tool(name=name, **{**declared, **changes})


def plugin(**hooks: Callable[..., Any]) -> object:
    """A plugin object whose marked functions are given by name, without ``switchyard_``."""

    class Plugin:
        pass

    made = Plugin()
    for name, function in hooks.items():
        setattr(made, f"switchyard_{name}", hookimpl(function))
    return made


# --- entry points ------------------------------------------------------------------------------

Install = Callable[..., list[EntryPoint]]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Write a distribution with one plugin module, return the entry points of all so far."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(
        distribution: str,
        name: str,
        source: str,
        *,
        module: str,
        version: str = "1.0",
        folder: str = "",
        needs: tuple[str, ...] = (),
    ) -> list[EntryPoint]:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{folder or distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(
            "\n".join(
                [
                    "Metadata-Version: 2.1",
                    f"Name: {distribution}",
                    f"Version: {version}",
                    *needs,
                    "",
                ]
            )
        )
        with (info / "entry_points.txt").open("a") as file:
            file.write(f"[switchyard]\n{name} = {module}\n")
        importlib.invalidate_caches()
        context = DistributionFinder.Context(path=[str(tmp_path)])
        return [
            point
            for found in MetadataPathFinder.find_distributions(context)
            for point in found.entry_points
        ]

    yield write
    for module in set(sys.modules) - before:
        del sys.modules[module]


GIVES = """
from switchyard_core.declarations import Options, RouteType
from switchyard_core.hookspecs import hookimpl

@hookimpl
def switchyard_route_types():
    return [RouteType(name="{name}", options=Options, router=lambda o: o, summary="s")]
"""


def test_entry_point_of_a_distribution_is_loaded_with_name_and_version(install: Install) -> None:
    points = install("dist-a", "one", GIVES.format(name="alpha"), module="swy_a", version="2.1")
    registry = PluginRegistry.from_entry_points(entry_points=points)
    (info,) = registry.plugins
    assert (info.name, info.distribution, info.version, info.state) == (
        "one",
        "dist-a",
        "2.1",
        "ok",
    )
    assert info.gives == {"route_type": ("alpha",)}
    assert info.hooks == ("switchyard_route_types",)
    assert info.label == "`one` (dist-a 2.1)"
    assert list(registry.route_types) == ["alpha"]


def test_name_claimed_by_two_distributions_is_an_error_naming_both(install: Install) -> None:
    install("dist-a", "same", GIVES.format(name="alpha"), module="swy_a")
    points = install("dist-b", "same", GIVES.format(name="beta"), module="swy_b")
    registry = PluginRegistry.from_entry_points(entry_points=points)
    assert dict(registry.route_types) == {}
    assert [(info.distribution, info.code) for info in registry.broken] == [
        ("dist-a", "SY502"),
        ("dist-b", "SY502"),
    ]
    assert registry.broken[0].error == (
        "plugin `same` (dist-a 1.0) is not used: its name is also claimed by `same` (dist-b 1.0)"
    )
    assert not {"swy_a", "swy_b"} & set(sys.modules)


def test_same_entry_point_listed_twice_is_loaded_once(install: Install) -> None:
    points = install("dist-a", "one", GIVES.format(name="alpha"), module="swy_a")
    registry = PluginRegistry.from_entry_points(entry_points=[*points, *points])
    assert registry.broken == ()
    assert len(registry.plugins) == 1


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        pytest.param("import no_such_module_xyz", "ModuleNotFoundError", id="import_error"),
        pytest.param("raise SystemExit(3)", "SystemExit: 3", id="exit"),
        pytest.param("x = (", "SyntaxError", id="syntax"),
        pytest.param("raise ValueError('a\\n\\n  b\\r\\nc')", "ValueError: a b c", id="lines"),
    ],
)
def test_plugin_that_fails_to_import_is_broken_and_the_rest_load(
    source: str, reason: str, install: Install
) -> None:
    install("dist-a", "bad", source, module="swy_a")
    points = install("dist-b", "good", GIVES.format(name="beta"), module="swy_b")
    registry = PluginRegistry.from_entry_points(entry_points=points)
    assert list(registry.route_types) == ["beta"]
    (broken,) = registry.broken
    assert (broken.name, broken.code) == ("bad", "SY501")
    assert broken.error.startswith(f"plugin `bad` (dist-a 1.0) could not be imported: {reason}")
    assert "\n" not in broken.error
    with pytest.raises(PluginError, match="could not be imported") as caught:
        registry.raise_broken()
    error = caught.value
    assert (error.plugin, error.distribution, error.version) == ("bad", "dist-a", "1.0")


@pytest.mark.parametrize("error", [SystemExit(3), ValueError("a\nb")])
def test_hook_that_raises_makes_its_plugin_broken(error: BaseException) -> None:
    def fails() -> Any:
        raise error

    (broken,) = PluginRegistry([("bad", plugin(route_types=fails))]).broken

    told = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    assert broken.error.startswith(f"plugin `bad` failed in `switchyard_route_types`: {told} at ")
    assert "\n" not in broken.error


@pytest.mark.parametrize("folder", ["~ist_a", "~st_a", "~-st_a", "~dist_a"])
@pytest.mark.parametrize("beside", [True, False], ids=["beside_the_new_one", "alone"])
def test_what_pip_left_behind_is_ignored(
    folder: str, beside: bool, install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    points = install(
        "dist-a", "one", "import no_such_module_xyz", module="swy_old", version="0.9", folder=folder
    )
    assert points, "the metadata are found"
    if beside:
        points = install("dist-a", "one", GIVES.format(name="alpha"), module="swy_a")
    with caplog.at_level(logging.INFO):
        registry = PluginRegistry.from_entry_points(entry_points=points)
    assert [(info.version, info.state) for info in registry.plugins] == [("1.0", "ok")] * beside
    assert caplog.text == ""


PYTHON = ".".join(map(str, sys.version_info[:3]))
_PYDANTIC = importlib.metadata.version("pydantic")
#: What a distribution needs, and what is said of it, ``""`` when it has all of that.
NEEDS = {
    "nothing": ((), ""),
    "this_python": (("Requires-Python: >=3.9",), ""),
    "a_later_python": (
        ("Requires-Python: >=3.99",),
        (
            f"it needs Python >=3.99, and this is Python {PYTHON}: run switchyard with such a "
            "Python, or install a version of dist-a for this one"
        ),
    ),
    "an_earlier_python": (("Requires-Python: <3.9,>=3.7",), "it needs Python <3.9,>=3.7, and "),
    "odd_python": (("Requires-Python: three",), ""),
    "this_core": (("Requires-Dist: switchyard-core>=0.0.1",), ""),
    "a_later_core": (
        ("Requires-Dist: switchyard-core>=2",),
        (
            f"it needs `switchyard-core>=2`, and {hookspecs.VERSION} is installed: run `pip "
            "install 'switchyard-core>=2'`, or install another version of dist-a"
        ),
    ),
    "the_core_in_other_words": (
        ("Requires-Dist: Switchyard_Core[testing] (<0.0.1)",),
        "it needs `Switchyard_Core<0.0.1`, and ",
    ),
    "another_library": (
        ("Requires-Dist: pydantic<2",),
        f"it needs `pydantic<2`, and {_PYDANTIC} is installed",
    ),
    "a_missing_library": (
        ("Requires-Dist: no-such-library-xyz>=1",),
        (
            "it needs `no-such-library-xyz>=1`, and it is not installed: run `pip install "
            "'no-such-library-xyz>=1'`"
        ),
    ),
    "an_extra": (('Requires-Dist: no-such-library-xyz; extra == "test"',), ""),
    "another_platform": (('Requires-Dist: no-such-library-xyz; os_name == "none"',), ""),
    "this_python_alone": (
        ('Requires-Dist: no-such-library-xyz; python_version >= "3.9" and extra != "test"',),
        "it needs `no-such-library-xyz`, and it is not installed",
    ),
    "no_requirement": (("Requires-Dist: ???",), ""),
    "two": (
        ("Requires-Python: >=3.99", "Requires-Dist: switchyard-core>=2"),
        "or install a version of dist-a for this one; it needs `switchyard-core>=2`, and ",
    ),
}


def test_plugin_whose_needs_are_not_met_says_what_is_missing_and_is_not_imported(
    install: Install,
) -> None:
    wrong = []
    for name, (needs, said) in NEEDS.items():
        # A module of its own each: whether it was imported is seen.
        module = f"swy_{name}"
        source = GIVES.format(name="alpha")
        points = install("dist-a", "one", source, module=module, folder=name, needs=needs)
        (info,) = PluginRegistry.from_entry_points(
            entry_points=[point for point in points if point.value == module]
        ).plugins
        state = ("broken", "SY510") if said else ("ok", "")
        begins = "plugin `one` (dist-a 1.0) is not loaded: " if said else ""
        if (info.state, info.code) != state or said not in info.error:
            wrong.append((name, info))
        if not info.error.startswith(begins) or (module in sys.modules) is bool(said):
            wrong.append((name, info))
    assert wrong == []


def test_module_is_imported_once_by_one_registry(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    monkeypatch.setattr(sys, "swy_counted", counted, raising=False)
    source = "import sys\nsys.swy_counted.append(1)\n" + GIVES.format(name="alpha")
    points = install("dist-a", "one", source, module="swy_a")
    PluginRegistry.from_entry_points(entry_points=points)
    assert counted == [1]


def test_two_names_for_one_module_leave_the_second_broken(install: Install) -> None:
    source = GIVES.format(name="alpha")
    install("dist-a", "one", source, module="swy_a")
    points = install("dist-a", "two", source, module="swy_a")
    assert len(points) == 2
    registry = PluginRegistry.from_entry_points(entry_points=points)
    assert [info.name for info in registry.broken] == ["two"]
    assert list(registry.route_types) == ["alpha"]


def test_entry_points_of_an_unused_group_give_an_empty_registry() -> None:
    registry = PluginRegistry.from_entry_points(group="no_such_group_xyz")
    assert registry.plugins == ()
    registry.raise_broken()


# --- the hook contract --------------------------------------------------------------------------


def test_misspelt_hook_is_broken_naming_the_nearest() -> None:
    registry = PluginRegistry([("typo", plugin(rout_types=lambda: [route_type()]))])
    (broken,) = registry.broken
    assert broken.code == "SY504"
    assert "there is no hook `switchyard_rout_types`" in broken.error
    assert "did you mean `switchyard_route_types`?" in broken.error


def test_hook_like_none_of_ours_lists_the_hooks() -> None:
    registry = PluginRegistry([("typo", plugin(qqq=lambda: [route_type()]))])
    assert "hooks: switchyard_decision_made, " in registry.broken[0].error


def test_misspelt_hook_does_not_break_a_plugin_loaded_later() -> None:
    given = [
        ("a", plugin(rout_types=lambda: [route_type()])),
        ("b", plugin(route_types=lambda: [route_type()])),
    ]
    registry = PluginRegistry(given)
    assert [info.state for info in registry.plugins] == ["broken", "ok"]


def print_verdict(verdict: object) -> None:
    print(verdict)


def test_hook_with_an_unknown_argument_is_broken() -> None:
    registry = PluginRegistry([("arg", plugin(decision_made=print_verdict))])
    assert registry.broken[0].code == "SY504"
    assert "verdict" in registry.broken[0].error


def test_hook_without_its_marker_is_broken() -> None:
    class Unmarked:
        def switchyard_route_types(self) -> list[RouteType]:
            return [route_type()]

    registry = PluginRegistry([("unmarked", Unmarked())])
    assert "`switchyard_route_types` is not marked with `@hookimpl`" in registry.broken[0].error


def test_async_hook_is_broken() -> None:
    async def observe(decision: object) -> None:
        del decision

    registry = PluginRegistry([("late", plugin(decision_made=observe))])
    assert "`switchyard_decision_made` must not be async" in registry.broken[0].error


def test_wrapper_is_broken() -> None:
    class Wraps:
        @hookimpl(wrapper=True)
        def switchyard_route_types(self) -> Any:
            return (yield)

    registry = PluginRegistry([("wraps", Wraps())])
    assert "cannot be wrapped" in registry.broken[0].error


def test_hook_under_another_function_name_is_found_by_its_specname() -> None:
    class Named:
        @hookimpl(specname="switchyard_route_types")
        def my_types(self) -> list[RouteType]:
            return [route_type("named")]

    assert list(PluginRegistry([("named", Named())]).route_types) == ["named"]


class Lax(BaseModel):
    """Options that accept unknown keys."""


class HoldsLax(Options):
    inner: Lax


@each_of(
    ("hook", "given", "reason"),
    [
        pytest.param("route_types", [3], "returns `int` from", id="no_declaration"),
        pytest.param("route_types", [LintRule], "returns `type` from", id="class"),
        pytest.param("route_types", 3, "TypeError: 'int' object is not iterable", id="no_iterable"),
        pytest.param("route_types", [route_type("A b")], "not snake_case: 'A b'", id="name"),
        pytest.param(
            "route_types",
            [route_type(), route_type()],
            "gives the route type `r` twice",
            id="twice",
        ),
        pytest.param("route_types", [route_type(options=Lax)], "accept unknown keys", id="lax"),
        pytest.param(
            "route_types",
            [RouteType(name="r", options=dict, router=dict, summary="")],  # type: ignore[arg-type]
            "not a pydantic model",
            id="options",
        ),
        pytest.param(
            "route_types",
            [RouteType(name="r", options=Nothing, router=3, summary="")],  # type: ignore[arg-type]
            "a router that cannot be called",
            id="router",
        ),
        pytest.param(
            "latch_stores",
            [LatchStoreType(name="s", factory=3, summary="")],  # type: ignore[arg-type]
            "a factory that cannot be called",
            id="factory",
        ),
        pytest.param(
            "plan_stores",
            [PlanStoreType(name="s", factory=3, summary="")],  # type: ignore[arg-type]
            "gives plan store `s` a factory that cannot be called",
            id="plan_factory",
        ),
        pytest.param("tools", [tool("Search it")], "not snake_case: 'Search it'", id="tool_name"),
        pytest.param(
            "tools", [tool("t" * 65)], "a name of more than 64 characters", id="long_tool_name"
        ),
        pytest.param(
            "tools",
            [tool(description=" \n")],
            "gives tool `t` a description that is blank or not text",
            id="tool_description",
        ),
        pytest.param(
            "tools", [tool(description=None)], "a description that is blank", id="no_description"
        ),
        pytest.param(
            "tools",
            [tool(parameters=dict)],
            "parameters that are not a pydantic model",
            id="tool_dict",
        ),
        pytest.param(
            "tools",
            [tool(parameters=Lax)],
            "gives tool `t` parameters that accept unknown keys; inherit",
            id="tool_lax",
        ),
        pytest.param(
            "tools",
            [tool(parameters=HoldsLax)],
            "parameters that accept unknown keys in `Lax`",
            id="tool_nested_lax",
        ),
        pytest.param(
            "tools", [tool(function=3)], "a function that cannot be called", id="tool_function"
        ),
        *(
            pytest.param(
                "tools",
                [tool(timeout_s=seconds)],
                f"the `timeout_s` {seconds!r}",
                id=f"tool_{seconds}",
            )
            for seconds in (0, -1.0, float("inf"), float("nan"))
        ),
        *(
            pytest.param(
                "tools",
                [tool(timeout_s=seconds)],
                "`timeout_s` that is not a number",
                id=f"tool_{seconds}_s",
            )
            for seconds in (True, "30", None)
        ),
        pytest.param(
            "tools",
            [tool(side_effects="no")],
            "`side_effects` that are neither true nor false",
            id="tool_side_effects",
        ),
        pytest.param(
            "rewrites",
            [RewriteType(name="w", order=1, function=nothing, summary="", wire_formats=("chat",))],  # type: ignore[arg-type]
            "unknown wire formats: chat",
            id="wire_format",
        ),
        pytest.param(
            "rewrites",
            [RewriteType(name="w", order=1, function=3, summary="")],  # type: ignore[arg-type]
            "a function that cannot be called",
            id="rewrite_function",
        ),
        pytest.param(
            "mutation_packs",
            [MutationPack(name="p", text="x = ", source="p.toml")],
            "gives mutation pack `p` (p.toml) that is not TOML",
            id="pack_no_toml",
        ),
        pytest.param(
            "mutation_packs",
            [MutationPack(name="p", text="[[rules]]\nmath = 3")],
            "that is not a rule set: rules.0.math",
            id="pack_no_rule_set",
        ),
        pytest.param(
            "mutation_packs",
            [MutationPack(name="p", text=b"")],  # type: ignore[arg-type]
            "a text that is not a string",
            id="pack_no_text",
        ),
        pytest.param(
            "model_profiles",
            [ModelProfiles(text="x = ", source="p.toml")],
            "gives model profiles (p.toml) that are not TOML",
            id="profiles_no_toml",
        ),
        pytest.param(
            "model_profiles",
            [ModelProfiles(text=PROFILE.replace("drop", "dorp"))],
            "gives wrong model profiles: profile.0.rules.0.do",
            id="profiles_wrong_rule",
        ),
        pytest.param(
            "model_profiles",
            [ModelProfiles(text=PROFILE), ModelProfiles(text=PROFILE)],
            "gives the model profile `m` twice",
            id="profiles_twice",
        ),
        pytest.param(
            "model_profiles", [PROFILE], "which wants `ModelProfiles`", id="profiles_text"
        ),
        pytest.param(
            "lint_rules",
            [LintRule(code="SY999", name="n", check=list, summary="")],
            "the prefix SY belongs to switchyard",
            id="lint_prefix",
        ),
        pytest.param(
            "lint_rules",
            [LintRule(code="abc", name="n", check=list, summary="")],
            "which is not like",
            id="lint_code",
        ),
        pytest.param(
            "lint_rules",
            [LintRule(code="ABC100", name="n", check=3, summary="")],  # type: ignore[arg-type]
            "a check that cannot be called",
            id="lint_check",
        ),
    ],
)
def test_plugin_that_declares_something_wrong_is_broken(hook: str, given: Any, reason: str) -> None:
    def hooked() -> Any:
        return given

    good = plugin(route_types=lambda: [route_type("good")])
    registry = PluginRegistry([("bad", plugin(**{hook: hooked})), ("good", good)])
    (broken,) = registry.broken
    assert (broken.name, broken.code) == ("bad", "SY506")
    assert reason in broken.error
    assert broken.gives == {}
    assert list(registry.route_types) == ["good"]


def test_hook_that_raises_is_told_with_its_place() -> None:
    def fails() -> Any:
        raise ValueError("no config")

    registry = PluginRegistry([("bad", plugin(latch_stores=fails))])
    assert registry.broken[0].error.startswith(
        "plugin `bad` failed in `switchyard_latch_stores`: ValueError: no config at "
        f"{Path(__file__)}:"
    )


# --- what is given ------------------------------------------------------------------------------


def test_registry_lists_every_kind_of_declaration() -> None:
    lint = LintRule(code="ABC001", name="n", check=list, summary="")
    pack = MutationPack(name="p", text='[[rules]]\nlabel = "file_edit"\nmatch = ["x"]')
    store = LatchStoreType(name="s", factory=lambda _capacity: None, summary="")
    rewrite = RewriteType(name="w", order=1, function=nothing, summary="")
    plans = PlanStoreType(name="l", factory=lambda *_limits: None, summary="")
    given = plugin(
        route_types=lambda: [route_type()],
        plan_stores=lambda: [plans],
        tools=lambda: (tool(),),
        mutation_packs=lambda: (pack,),
        latch_stores=lambda: iter([store]),
        rewrites=lambda: [rewrite],
        lint_rules=lambda: [lint],
        model_profiles=lambda: [ModelProfiles(text=PROFILE)],
    )
    registry = PluginRegistry([("all", given)])
    assert list(registry.route_types) == ["r"]
    assert registry.packs == {"p": pack}
    assert registry.rule_sets["p"].rules[0].match == ["x"]
    assert registry.latch_stores == {"s": store}
    assert registry.plan_stores == {"l": plans}
    assert registry.tools == {"t": tool()}
    assert registry.rewrites == {"w": rewrite}
    assert registry.lint_rules == (lint,)
    assert [entry.id for entry in registry.profiles] == ["m"]
    assert registry.plugins[0].gives == {
        "route_type": ("r",),
        "mutation_pack": ("p",),
        "model_profile": ("m",),
        "latch_store": ("s",),
        "plan_store": ("l",),
        "tool": ("t",),
        "rewrite": ("w",),
        "lint_rule": ("ABC001",),
    }


def test_name_that_two_plugins_give_belongs_to_neither() -> None:
    first = plugin(route_types=lambda: [route_type("same"), route_type("a")])
    second = plugin(route_types=lambda: [route_type("same"), route_type("b")])
    registry = PluginRegistry([("one", first), ("two", second)])
    assert sorted(registry.route_types) == ["a", "b"]
    (conflict,) = registry.conflicts
    assert conflict.message == "route type `same` is given by `one` and by `two`"
    assert registry.conflict("route_type", "same") is conflict
    assert registry.conflict("rewrite", "same") is None
    with pytest.raises(PluginError, match="`one` and by `two`"):
        registry.raise_broken()


def test_same_name_given_directly_twice_leaves_both_broken() -> None:
    registry = PluginRegistry([("x", plugin()), ("x", plugin())])
    assert [info.code for info in registry.broken] == ["SY502", "SY502"]


def test_registries_do_not_share_anything() -> None:
    one = PluginRegistry([("x", plugin(route_types=lambda: [route_type("a")]))])
    two = PluginRegistry()
    assert (list(one.route_types), list(two.route_types)) == (["a"], [])


# --- events -------------------------------------------------------------------------------------


class Observer:
    """Notes what it is told, with each hook taking only some of the arguments."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    @hookimpl
    def switchyard_decision_made(self, request: object, decision: object) -> None:
        self.seen.append((decision, request))

    @hookimpl
    def switchyard_request_finished(self, outcome: object) -> None:
        self.seen.append(outcome)


def test_events_pass_the_arguments_that_an_observer_asks_for() -> None:
    observer, calls = Observer(), []
    no_arguments = plugin(decision_made=lambda: calls.append(1))
    registry = PluginRegistry([("observer", observer), ("none", no_arguments)])
    registry.notify_decision("d", "r")
    registry.notify_finished("d", "o")
    assert observer.seen == [("d", "r"), "o"]
    assert calls == [1]


def test_observer_that_raises_is_logged_and_the_others_are_called(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observer = Observer()

    def fails(decision: object) -> None:
        raise RuntimeError(decision)

    registry = PluginRegistry(
        [
            ("a_bad", plugin(decision_made=fails)),
            ("b_good", observer),
        ]
    )
    with caplog.at_level(logging.ERROR):
        registry.notify_decision("d", "r")
    assert observer.seen == [("d", "r")]
    assert "plugin a_bad failed in switchyard_decision_made" in caplog.text


def test_event_without_observers_is_one_shared_empty_function() -> None:
    registry = PluginRegistry([("x", plugin())])
    assert registry.notify_decision is registry.notify_finished


def test_command_hooks_are_kept_with_their_plugin() -> None:
    registry = PluginRegistry([("cmd", plugin(register_commands=lambda cli: cli.append(1)))])
    ((label, hook),) = registry.command_hooks
    called: list[int] = []
    hook(called)
    assert (label, called) == ("`cmd`", [1])


# --- the specs ----------------------------------------------------------------------------------

HOOKS = [name for name in hookspecs.__all__ if name.startswith("switchyard_")]


@pytest.mark.parametrize("name", HOOKS)
def test_hook_documents_when_it_fires_what_its_result_does_and_errors(name: str) -> None:
    text = getattr(hookspecs, name).__doc__
    for heading in ("When:", "Result:", "On error:", "versionadded:: 0.1.0"):
        assert heading in text


@pytest.mark.parametrize("name", HOOKS)
def test_hook_has_its_page_in_the_docs(name: str) -> None:
    docs = Path(__file__).parents[1] / "docs"

    assert f"# `{name}" in (docs / "hooks" / f"{name}.md").read_text()
    assert f"(hooks/{name}.md)" in (docs / "plugin_hooks.md").read_text()
