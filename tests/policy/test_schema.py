"""The JSON Schema of policies: true to the check, true to what is installed, usable by editors."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ConfigDict
from pydantic_core import to_json

import switchyard_demo_catalog
from switchyard_core import Options, RouteType, TargetName, hookimpl
from switchyard_core.plugins import PluginRegistry, builtins
from switchyard_core.policy import check_policy_text
from switchyard_core.policy.schema import policy_schema
from tests.support.policies import PLUGINS
from tests.support.tool_route import ToolRoutePlugin
from tests.test_docs import Block, by_place, policies

ROOT = Path(__file__).parents[2]
POLICIES = sorted(p for p in (ROOT / "policies").glob("*.toml") if ".test." not in p.name)
#: Policies that no schema lies beside: of the demo and of the documentation.
OTHERS = [
    ROOT / "switchyard_core" / "cli" / "demo" / "demo.toml",
    *sorted(
        path
        for path in (ROOT / "docs").rglob("*.toml")
        if ".test." not in path.name and "schema_version" in path.read_text()
    ),
]
SHIPPED = ROOT / "policies" / "switchyard.schema.json"

CORE_TABLES = ("client", "target", "identity", "housekeeping", "price", "replay", "rule_set")

FULL = """\
schema_version = 1
default_route = "r"
fallback_client = "c"

[llm_clients.c]
format = "openai_chat"
base_url = "https://example.com/v1"
api_key_env = "KEY"
max_retries = 2

[targets.a]
id = "model-a"
llm_client = "c"
rewrites = { remap_tool_ids = false }

[targets.a.extra_body]
provider = { order = ["x"], weight = 1.5 }

[targets.b]
id = "model-b"
llm_client = "c"
context_window = 1000
on_overflow = "reject"

[routes.r]
id = "r"
type = "plan_execute"
capable_target = "a"
efficient_target = "b"
handoff_on = ["file_edit"]
mutation_rules = ["mine", "coding_agents"]
unmatched = "unknown"

[routes.s]
id = "s"
type = "rules"
default_target = "a"
rules = [{ target = "b", where = [{ header = "x-fast", exists = true }] }]

[mutation_rules.mine]
extends = ["strict"]

[[mutation_rules.mine.rules]]
label = "file_edit"
match = ["publish"]
where = [{ path = "$.arguments.a", in = ["b"], not = true }]

[identity]
session = ["header:x-mine"]

[[housekeeping]]
header = "x-purpose"
in = ["title", 1]

[prices.model-a]
as_of = 2026-01-01
input = 1
output = 2.5

[replay]
key_fields = ["model", "text.format"]
"""


def registry_of(*plugins: object) -> PluginRegistry:
    return PluginRegistry([("core", builtins), *((str(i), p) for i, p in enumerate(plugins))])


@pytest.fixture(scope="module")
def registry() -> PluginRegistry:
    return registry_of(*PLUGINS)


@pytest.fixture(scope="module")
def schema(registry: PluginRegistry) -> dict[str, Any]:
    return policy_schema(registry)


@pytest.fixture(scope="module")
def refusals(schema: dict[str, Any]) -> Callable[[Any], list[str]]:
    validator = Draft202012Validator(schema)
    return lambda values: [error.message for error in validator.iter_errors(plain(values))]


def plain(values: Any) -> Any:
    """Return what TOML gave as JSON has it: dates are text."""
    return json.loads(to_json(values))


def test_schema_is_a_json_schema(schema: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(schema)

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_reference_of_the_schema_leads_somewhere(schema: dict[str, Any]) -> None:
    text = json.dumps(schema)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}

    assert references
    assert references <= schema["$defs"].keys()
    assert "x-reference" not in text
    assert '{"type": "null"}' not in text


def test_schema_beside_the_policies_is_the_one_of_this_version(schema: dict[str, Any]) -> None:
    stale = "run `switchyard schema --output policies/switchyard.schema.json`"

    assert json.loads(SHIPPED.read_text()) == schema, stale


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in POLICIES])
def test_policy_of_the_repository_names_the_schema_and_satisfies_it(
    path: Path, refusals: Callable[[Any], list[str]]
) -> None:
    text = path.read_text()

    assert text.splitlines()[0] == "#:schema switchyard.schema.json"
    assert refusals(tomli.loads(text)) == []


@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in OTHERS])
def test_policy_without_a_schema_line_satisfies_the_schema(
    path: Path, refusals: Callable[[Any], list[str]]
) -> None:
    assert refusals(tomli.loads(path.read_text())) == []


@pytest.mark.parametrize(
    "block", by_place([block for block in policies() if "broken" not in block.mark])
)
def test_policy_in_the_docs_satisfies_the_schema(
    block: Block, refusals: Callable[[Any], list[str]]
) -> None:
    assert refusals(tomli.loads(block.text)) == []


def test_policy_of_the_example_plugin_satisfies_the_schema_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = ROOT / "examples" / "switchyard_sticky_router"
    monkeypatch.syspath_prepend(folder)
    values = plain(tomli.loads((folder / "policy.toml").read_text()))

    schema = policy_schema(registry_of(import_module("switchyard_sticky")))
    # Whatever asks for that package after this test finds none, as before it.
    for name in [name for name in sys.modules if name.partition(".")[0] == "switchyard_sticky"]:
        del sys.modules[name]

    assert Draft202012Validator(schema).is_valid(values)
    del values["routes"]["sticky"]["targets"]
    assert not Draft202012Validator(schema).is_valid(values)


def test_policy_with_every_table_satisfies_schema_and_check(
    registry: PluginRegistry, refusals: Callable[[Any], list[str]]
) -> None:
    assert refusals(tomli.loads(FULL)) == []
    assert check_policy_text(FULL, "p", registry).errors == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        pytest.param("schema_version = 1", "schema_version = 2", "1 was expected", id="version"),
        pytest.param("[identity]", "[identify]", "'identify' was unexpected", id="table"),
        pytest.param('base_url = "', 'base_ulr = "', "'base_ulr' was unexpected", id="client_key"),
        pytest.param('"openai_chat"', '"openai"', "'openai' is not one of", id="format"),
        pytest.param('"openai_chat"', '"scripted"', "'script' is a required", id="scripted"),
        pytest.param('_env = "KEY"', '_env = "sk-12 3"', "does not match", id="variable"),
        pytest.param(
            "max_retries", "forward_auth = true\nmax_retries", "should not be valid", id="two_keys"
        ),
        pytest.param("max_retries = 2", "max_retries = 11", "maximum of 10", id="range"),
        pytest.param("remap_tool_ids", "remap_tools", "'remap_tools' was", id="rewrite"),
        pytest.param('"plan_execute"', '"plan_exec"', "'plan_exec' is not one of", id="type"),
        pytest.param("efficient_target", "efficient_targt", "required", id="option_missing"),
        pytest.param(
            "handoff_on", "handoff_off", "'handoff_off' was unexpected", id="option_unknown"
        ),
        pytest.param('["file_edit"]', '["file_edits"]', "'file_edits' is not one", id="label"),
        pytest.param('"unknown"', '"unsure"', "'unsure' is not one of", id="label_of_a_route"),
        pytest.param(
            'label = "file_edit"', 'label = "edit"', "'edit' is not one of", id="label_of_a_rule"
        ),
        pytest.param('label = "file_edit"\n', "", "not valid under any", id="rule_without_a_label"),
        pytest.param("rules.mine", "rules.strict", "should not be valid", id="name_of_a_pack"),
        pytest.param("2026-01-01", "1", "is not of type 'string'", id="date"),
        pytest.param(
            'default_target = "a"', 'defalt_target = "a"', "'default_target' is", id="other_type"
        ),
        pytest.param("exists = true", "exits = true", "'exits' was", id="nested_model"),
    ],
)
def test_broken_policy_is_refused_by_schema_and_check(
    old: str,
    new: str,
    said: str,
    registry: PluginRegistry,
    refusals: Callable[[Any], list[str]],
) -> None:
    assert old in FULL
    text = FULL.replace(old, new)

    assert said in "\n".join(refusals(tomli.loads(text)))
    assert check_policy_text(text, "p", registry).errors


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [place] if place else []
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            found += _places(item, (*place, key))
    return found


_WHOLE = plain(tomli.loads(FULL))


@settings(max_examples=150)
@given(
    place=st.sampled_from(_places({k: v for k, v in _WHOLE.items() if k != "prices"})),
    new=st.sampled_from(
        [None, "", " ", "a", "x y", 0, -1, 1.5, True, [], ["a"], [1], {}, {"q": 1}]
    ),
)
def test_whatever_the_schema_refuses_the_check_refuses_too(
    place: tuple[Any, ...], new: Any, registry: PluginRegistry, refusals: Callable[[Any], list[str]]
) -> None:
    values = copy.deepcopy(_WHOLE)
    del values["prices"]
    holder = values
    for part in place[:-1]:
        holder = holder[part]
    if new is None:
        del holder[place[-1]]
    else:
        holder[place[-1]] = new
    refused = refusals(values)

    # JSON's scalars and arrays are TOML's; only tables are written otherwise.
    text = "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in values.items())
    errors = check_policy_text(text, "p", registry).errors
    assert not refused or errors, refused


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {_inline(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def test_keys_are_described_by_the_docstrings_of_their_models(schema: dict[str, Any]) -> None:
    options = schema["$defs"]["route.plan_execute"]["properties"]

    assert options["latch_capacity"]["description"] == (
        "Most sessions remembered at once, 1 or more."
    )
    # A text of two lines, with code.
    assert options["opaque_reasoning"]["description"] == (
        "Whether the planner's opaque reasoning is sent to the executor; `auto` keeps it where "
        "both share an origin."
    )
    condition = schema["$defs"]["housekeeping"]["properties"]["in"]
    assert condition["description"] == "The value is one of these (key `in`)."


def test_every_key_of_the_core_is_described(schema: dict[str, Any]) -> None:
    tables = {name: schema["$defs"][name] for name in CORE_TABLES} | {"": schema}
    bare = [
        f"{name}.{key}"
        for name, table in tables.items()
        for key, value in table["properties"].items()
        if "description" not in value
    ]

    assert bare == []


def test_names_that_are_installed_are_proposed(schema: dict[str, Any]) -> None:
    options = schema["$defs"]["route.plan_execute"]["properties"]

    assert options["latch_store"]["enum"] == ["memory"]
    assert options["mutation_rules"]["items"]["anyOf"] == [
        {"enum": ["coding_agents", "reference_compatible", "strict", "text_edits"]},
        {"type": "string"},
    ]


def test_tools_and_plan_stores_that_are_installed_are_proposed() -> None:
    schema = policy_schema(registry_of(ToolRoutePlugin(), switchyard_demo_catalog))
    options = schema["$defs"]["route.tool_route"]["properties"]

    assert options["tools"]["items"]["enum"] == ["search_products"]
    assert options["plan_store"]["enum"] == ["memory"]


def test_route_proposes_the_options_of_all_types_to_editors(schema: dict[str, Any]) -> None:
    assert {"capable_target", "judge_target", "rules"} <= schema["$defs"]["route"][
        "properties"
    ].keys()


class Thing:
    """A type that only its plugin knows."""


class Loose(Options):
    """Options of a type of a stranger.

    Args:
        target: Serves everything.
        other: With a default that JSON cannot hold.
    """

    target: TargetName
    other: Any = Thing()


class Odd(Options):
    """Options with a value that no JSON Schema can say."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    thing: Thing | None = None


class Router:
    """Built by no test here."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def route(self, request: object, context: object) -> object:
        raise AssertionError


class Stranger:
    @hookimpl
    def switchyard_route_types(self) -> list[RouteType]:
        return [
            RouteType(name="loose", options=Loose, router=Router, summary="sends everything"),
            RouteType(name="odd", options=Odd, router=Router, summary="odd"),
        ]


def test_schema_without_any_plugin_takes_policies_without_routes() -> None:
    schema = policy_schema(PluginRegistry())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)

    assert validator.is_valid({"schema_version": 1, "targets": {}, "routes": {}})
    assert not validator.is_valid({"schema_version": 1, "targets": {}, "routes": {"a": {}}})


def test_plugin_of_a_stranger_gets_its_options_into_the_schema() -> None:
    schema = policy_schema(registry_of(Stranger()))

    assert schema["$defs"]["route"]["properties"]["type"]["enum"] == ["loose", "odd"]
    assert schema["$defs"]["route.loose"]["properties"]["target"] == {
        "description": "Serves everything.",
        "type": "string",
    }
    assert schema["$defs"]["route.loose"]["properties"]["other"] == {
        "description": "With a default that JSON cannot hold."
    }
    assert schema["$defs"]["route.loose"]["additionalProperties"] is False


def test_option_that_no_schema_can_say_is_left_to_the_check() -> None:
    schema = policy_schema(registry_of(Stranger()))
    Draft202012Validator.check_schema(schema)

    assert schema["$defs"]["route.odd"]["properties"]["thing"] == {}


def _taplo() -> str:
    found = shutil.which("taplo", path=str(Path(sys.executable).parent)) or shutil.which("taplo")
    assert found, "taplo is a development dependency: pip install taplo"
    return found


def _linted(*arguments: Path | str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [_taplo(), "lint", "--no-auto-config", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def test_taplo_accepts_every_policy_of_the_repository() -> None:
    done = _linted(*POLICIES)
    others = _linted(f"--schema={SHIPPED.as_uri()}", *OTHERS)

    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    assert (others.returncode, "error" in others.stderr) == (0, False), others.stderr


def test_taplo_refuses_a_broken_policy_by_its_schema_line(tmp_path: Path) -> None:
    shutil.copy(SHIPPED, tmp_path)
    text = (ROOT / "policies" / "codex.toml").read_text()
    (tmp_path / "broken.toml").write_text(text.replace("capable_target", "capable_tarket"))

    done = _linted(tmp_path / "broken.toml")

    assert done.returncode != 0
    assert "'capable_tarket' was unexpected" in done.stderr
