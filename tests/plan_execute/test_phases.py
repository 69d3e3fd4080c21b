"""Phases: which requests plan and which execute."""

from __future__ import annotations

import json

import pytest

from switchyard_core.testing import Call, call, conversation
from tests.support.policies import EXECUTOR, PLANNER, PLANNING_PROMPT, ROUTE

EDIT = {"path": "src/app.py", "old_string": "a", "new_string": "b"}


def without_model(body: dict) -> dict:
    return {key: value for key, value in body.items() if key != "model"}


# --- planning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tell",
    [
        lambda s: s,
        lambda s: s.reads("read_file", path="a.py").reads("grep", pattern="x"),
        lambda s: s.calls("update_plan", {"plan": []}).calls("TodoWrite", {"todos": []}),
        lambda s: s.runs("cat src/app.py | head -3 2>/dev/null").runs("git status"),
        lambda s: s.says("I would edit src/app.py").user("go on"),
    ],
    ids=["first", "reads", "plans", "shell_reads", "talk"],
)
async def test_without_an_edit_the_planner_gets_it_with_the_instruction(world, story, tell):
    served = await world().ask(tell(story).request(session="s"))

    assert (served.target, served.phase, served.reason) == ("planner", "planning", "no_mutation")
    assert served.tree["model"] == PLANNER
    assert served.outgoing.body.count(PLANNING_PROMPT.encode()) == 1


# --- executing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tell",
    [
        lambda s: s.edits("edit_file", **EDIT),
        lambda s: s.edits("edit_file", fails=True, **EDIT),
        lambda s: s.edits("edit_file", answered=False, **EDIT),
        lambda s: s.parallel(
            call("read_file", path="a"), call("write_file", path="b.py", content="")
        ),
        lambda s: (
            s.calls("edit_file", "{broken")
            if s.wire_format != "anthropic_messages"
            else s.calls("edit_file", {})
        ),
        lambda s: (
            s.edits("edit_file", **EDIT).says("done").user("more").reads("read_file", path="a")
        ),
        lambda s: s.runs("sed -i s/a/b/ src/app.py"),
        lambda s: s.runs(
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n*** End Patch\nEOF"
        ),
    ],
    ids=["edit", "failed", "open", "parallel", "broken", "old", "shell", "patch_in_shell"],
)
async def test_any_edit_of_the_assistant_moves_the_whole_history(world, story, tell):
    told = tell(story)

    served = await world().ask(told.request())

    assert (served.target, served.phase) == ("executor", "executing")
    assert served.reason == "mutation_in_history"
    assert served.tree["model"] == EXECUTOR
    assert without_model(served.tree) == without_model(told.build())


# --- what is not an edit -----------------------------------------------------------------------


async def test_declared_tools_and_quoted_calls_are_not_edits(world, story):
    told = story.offers("edit_file", "write_file", "apply_patch")
    told = told.reads("read_file", result='{"name": "edit_file"} apply_patch <<EOF', path="a.py")
    told = told.says("I call edit_file(path='a') now: *** Begin Patch").user(
        "write_file a.py please"
    )

    served = await world().ask(told.request())

    assert served.phase == "planning"


async def test_call_in_a_user_message_is_not_an_edit(world, story, wire_format):
    bodies = {
        "openai_chat": {
            "role": "user",
            "content": "x",
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "edit_file", "arguments": "{}"},
                }
            ],
        },
        "openai_responses": {
            "type": "message",
            "role": "user",
            "content": "function_call edit_file",
        },
        "anthropic_messages": {
            "role": "user",
            "content": [{"type": "tool_use", "id": "c", "name": "edit_file", "input": {}}],
        },
    }

    served = await world().ask(story.item(bodies[wire_format]).request())

    assert served.phase == "planning"


async def test_result_without_its_call_is_not_an_edit(world, story, wire_format):
    bodies = {
        "openai_chat": {"role": "tool", "tool_call_id": "edit_file", "content": "ok"},
        "openai_responses": {
            "type": "function_call_output",
            "call_id": "edit_file",
            "output": "ok",
        },
        "anthropic_messages": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "edit_file", "content": "ok"}],
        },
    }

    served = await world().ask(story.item(bodies[wire_format]).request())

    assert served.phase == "planning"


@pytest.mark.parametrize(
    "item",
    [
        {"role": "function", "name": "edit_file", "content": "ok"},
        {"role": "tool", "name": "edit_file", "tool_call_id": "gone", "content": "ok"},
    ],
    ids=["function", "tool"],
)
@pytest.mark.parametrize("wire_format", ["openai_chat"], indirect=True)
async def test_chat_result_that_names_its_tool_counts(world, story, item):
    served = await world().ask(story.item(item).request())

    assert served.phase == "executing"


# --- one call ----------------------------------------------------------------------------------


async def test_one_request_is_one_call_to_the_provider(world, story):
    for told in (story, story.edits("edit_file", **EDIT)):
        served = await world().ask(told.request(session="s"))

        assert len(served.sent) == 1


# --- latched -----------------------------------------------------------------------------------


async def test_latched_session_stays_after_compaction(world, story):
    w = world()
    await w.ask(story.edits("edit_file", **EDIT).request(session="s"))

    compacted = await w.ask(story.user("summary of what was done").request(session="s"))
    stranger = await w.ask(story.request(session="t"))

    assert (compacted.target, compacted.phase, compacted.reason) == (
        "executor",
        "executing",
        "latched",
    )
    assert PLANNING_PROMPT.encode() not in compacted.outgoing.body
    assert stranger.phase == "planning"


# --- sub-agents --------------------------------------------------------------------------------

SUBAGENT = {"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "a"}


async def test_root_and_subagent_are_latched_apart(world, story):
    w = world()
    await w.ask(story.edits("edit_file", **EDIT).request(session="s", headers=SUBAGENT))

    root = await w.ask(story.request(session="s"))
    again = await w.ask(story.request(session="s", headers=SUBAGENT))
    other = await w.ask(
        story.request(session="s", headers=SUBAGENT | {"x-switchyard-agent-id": "b"})
    )

    assert [served.phase for served in (root, again, other)] == [
        "planning",
        "executing",
        "planning",
    ]


@pytest.mark.parametrize("tool", ["Agent", "task", "spawn_agent"])
async def test_starting_a_subagent_is_no_edit_unless_the_policy_says_so(world, story, tool):
    told = story.calls(tool, {"prompt": "edit the file"})
    options = (
        'mutation_rules = ["mine"]\n[mutation_rules.mine]\nextends = ["coding_agents"]\n'
        '[[mutation_rules.mine.rules]]\nname = "delegates"\nlabel = "file_edit"\n'
        'match = ["Agent", "task", "spawn_agent"]'
    )

    assert (await world().ask(told.request())).phase == "planning"
    assert (await world(options=options).ask(told.request())).phase == "executing"


# --- without a session -------------------------------------------------------------------------


async def test_without_a_session_the_history_decides_each_time(world, story):
    w = world()

    first = await w.ask(story.edits("edit_file", **EDIT).request())
    compacted = await w.ask(story.request())

    assert [first.phase, compacted.phase] == ["executing", "planning"]
    assert await w.latched() == 0


# --- shapes of calls ---------------------------------------------------------------------------

PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** End Patch\n"
SHAPES = {
    "function": (
        "openai_chat openai_responses anthropic_messages",
        Call(name="edit_file", arguments=EDIT),
    ),
    "custom": (
        "openai_chat openai_responses anthropic_messages",
        Call(name="apply_patch", arguments=PATCH, shape="custom"),
    ),
    "legacy": ("openai_chat", Call(name="write_file", arguments={"path": "a.py"}, shape="legacy")),
    "local_shell": (
        "openai_responses",
        Call(
            name="",
            arguments={"type": "exec", "command": ["bash", "-lc", "sed -i s/a/b/ a.py"], "env": {}},
            shape="local_shell_call",
        ),
    ),
    "shell": (
        "openai_responses",
        Call(name="", arguments={"commands": ["ls", "echo x > a.py"]}, shape="shell_call"),
    ),
    "apply_patch": (
        "openai_responses",
        Call(
            name="",
            arguments={"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"},
            shape="apply_patch_call",
        ),
    ),
    "mcp": (
        "openai_responses anthropic_messages",
        Call(
            name="write_file",
            arguments={"path": "a.py", "content": ""},
            server="files",
            shape="mcp",
        ),
    ),
    "namespaced": (
        "openai_responses",
        Call(name="write_file", arguments={"path": "a.py"}, namespace="functions"),
    ),
    "code_mode": (
        "openai_responses",
        Call(
            name="exec",
            arguments=f"await tools.apply_patch({json.dumps(PATCH)});",
            namespace="functions",
            shape="custom",
        ),
    ),
}


PAIRS = [
    pytest.param(wire_format, shape, id=f"{wire_format}-{shape}")
    for shape, (formats, _) in SHAPES.items()
    for wire_format in formats.split()
]


@pytest.mark.parametrize(("wire_format", "shape"), PAIRS, indirect=["wire_format"])
async def test_every_call_shape_counts(world, story, shape):
    served = await world().ask(story.parallel(SHAPES[shape][1]).request())

    assert (served.phase, served.reason) == ("executing", "mutation_in_history")


@pytest.mark.parametrize("wire_format", ["openai_responses"], indirect=True)
async def test_lite_shape_plans_and_executes(world, story):
    told = story.lite().offers("exec")
    edit = told.calls(
        "exec", f"await tools.apply_patch({json.dumps(PATCH)})", custom=True, namespace="functions"
    )

    planning, executing = await world().ask(told.request()), await world().ask(edit.request())

    assert [planning.phase, executing.phase] == ["planning", "executing"]
    assert without_model(executing.tree) == without_model(edit.build())


@pytest.mark.parametrize("wire_format", ["anthropic_messages"], indirect=True)
async def test_server_tools_run_at_the_provider(world, story):
    block = {
        "type": "server_tool_use",
        "id": "s",
        "name": "text_editor_code_execution",
        "input": {"command": "create"},
    }
    item = {"role": "assistant", "content": [block]}

    assert (await world().ask(story.item(item).request())).phase == "planning"


def test_route_id_is_the_model_that_the_builder_asks_for():
    assert conversation("openai_chat").build()["model"] == ROUTE
