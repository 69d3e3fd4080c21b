"""The outgoing body of every handoff scenario, in three wire formats, through both doors.

A snapshot is a JSON file with every token as it was sent: read it before you commit it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from switchyard_core.models import Profile
from switchyard_core.testing import ConversationBuilder, RequestBodySnapshot, call, conversation
from switchyard_core.wire import WIRE_FORMATS
from tests.support.policies import accepts, plan_execute_harness

EDIT = {"path": "src/app.py", "old_string": "a - b", "new_string": "a + b"}
PATCH = "*** Begin Patch\n*** Update File: src/app.py\n@@\n-a - b\n+a + b\n*** End Patch\n"
HANDOFF = 'handoff_prompt = "Carry the plan out."'

Tell = Callable[[ConversationBuilder], ConversationBuilder]


def begun(story: ConversationBuilder) -> ConversationBuilder:
    return story.system("house rules").user("fix add in src/app.py")


def looked(story: ConversationBuilder) -> ConversationBuilder:
    return begun(story).says("I will look.").reads("read_file", path="src/app.py")


def edited(story: ConversationBuilder) -> ConversationBuilder:
    return looked(story).edits("edit_file", **EDIT)


def reasoned(story: ConversationBuilder) -> ConversationBuilder:
    told = begun(story).reasoning("Look first.", encrypted="OPAQUE-1")
    told = told.reads("read_file", path="src/app.py").reasoning("Now edit.", encrypted="OPAQUE-2")
    told = told.edits("edit_file", **EDIT).reasoning("Executor's own.", encrypted="OPAQUE-3")
    return told.reads("run_tests", command="pytest")


def reasoned_at_length(story: ConversationBuilder) -> ConversationBuilder:
    told = begun(story).reasoning("A long thought of which the beginning has to go.", encrypted="E")
    told = told.reads("read_file", path="src/app.py").reasoning("Now edit.", encrypted="F")
    return told.edits("edit_file", **EDIT)


def compacted(story: ConversationBuilder) -> ConversationBuilder:
    return begun(story).user("Summary: add was fixed in src/app.py.")


SEALS = {
    "openai_chat": (
        {"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]},
        {"role": "assistant", "content": "I see.", "reasoning_signature": "SEAL"},
    ),
    "openai_responses": (
        {"type": "compaction", "encrypted_content": "SEAL"},
        {"type": "image_generation_call", "id": "ig_1", "result": "SEAL", "status": "completed"},
    ),
    "anthropic_messages": (
        {"role": "user", "content": [{"type": "container_upload", "file_id": "file-1"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I see."},
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            ],
        },
    ),
}


def sealed(story: ConversationBuilder) -> ConversationBuilder:
    told = begun(story)
    for item in SEALS[story.wire_format]:
        told = told.item(item)
    return told.user("go on").edits("edit_file", **EDIT)


@dataclass(frozen=True)
class Scenario:
    """Requests of one session, the last of which is pinned."""

    tells: tuple[Tell, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    session: str | None = "s"
    headers: dict[str, str] = field(default_factory=dict)
    final: bool = False
    only: tuple[str, ...] = WIRE_FORMATS
    profiles: dict[str, Profile] = field(default_factory=dict)


SCENARIOS = {
    "first_plan_turn": Scenario((begun,)),
    "plan_turn_appended": Scenario((begun,), {"options": 'planning_prompt_position = "append"'}),
    "read_only_turns": Scenario((lambda s: looked(s).runs("git diff | head"),)),
    "first_edit": Scenario((edited,)),
    "failed_edit": Scenario((lambda s: looked(s).edits("edit_file", fails=True, **EDIT),)),
    "parallel_edit": Scenario(
        (lambda s: begun(s).parallel(call("read_file", path="a.py"), call("edit_file", **EDIT)),)
    ),
    "latched_after_compaction": Scenario((edited, compacted)),
    "final": Scenario((edited, lambda s: edited(s).says("Done.").user("thanks")), final=True),
    "subagent": Scenario(
        (edited,),
        headers={"x-switchyard-is-subagent": "true", "x-switchyard-agent-id": "worker"},
    ),
    "handoff_prompt": Scenario((edited,), {"options": HANDOFF}),
    "handoff_prompt_after_handoff": Scenario(
        (edited, lambda s: edited(s).reads("read_file", path="b.py")), {"options": HANDOFF}
    ),
    "reasoning_as_text": Scenario((reasoned,), {"options": "planner_reasoning_as_text = true"}),
    "reasoning_as_text_capped": Scenario(
        (reasoned_at_length,),
        {"options": "planner_reasoning_as_text = true\nreasoning_text_max_chars = 50"},
    ),
    "opaque_reasoning_kept": Scenario((reasoned,)),
    "opaque_reasoning_dropped": Scenario((reasoned,), {"other_origin": True}),
    "cache_marks": Scenario(
        (lambda s: s.system("house rules", cached=True).user("fix it", cached=True),),
        only=("anthropic_messages",),
    ),
    "cache_marks_handoff": Scenario(
        (
            lambda s: (
                s.system("house rules", cached=True)
                .user("fix it", cached=True)
                .edits("edit_file", **EDIT)
            ),
        ),
        {"options": HANDOFF},
        only=("anthropic_messages",),
    ),
    "lite_plan_turn": Scenario(
        (lambda s: begun(s).lite().offers("exec"),), only=("openai_responses",)
    ),
    "lite_first_edit": Scenario(
        (
            lambda s: (
                begun(s)
                .lite()
                .calls(
                    "exec",
                    f"await tools.apply_patch({json.dumps(PATCH)})",
                    custom=True,
                    namespace="functions",
                )
            ),
        ),
        only=("openai_responses",),
    ),
    "window_stay_latched": Scenario(
        (edited, lambda s: edited(s).reads("read_file", result="x" * 900, path="b.py")),
        {"executor": 'context_window = 400\non_overflow = "stay"'},
    ),
    "origin_bound_dropped": Scenario(
        (sealed,), {"other_origin": True, "options": 'on_origin_bound = "drop"'}
    ),
    "origin_bound_stay": Scenario((sealed,), {"other_origin": True}),
    "prefix_bound_handoff_prompt": Scenario(
        (lambda s: edited(s).reads("read_file", path="b.py").says("Done.").user("thanks"),),
        {"options": HANDOFF},
        profiles={"executor": Profile(prefix_bound=True)},
    ),
    "prefix_bound_family": Scenario(
        (reasoned,), profiles={"executor": Profile(prefix_bound=True, reads=("provider/*",))}
    ),
    "prefix_bound_side_call": Scenario(
        (lambda s: begun(s).reasoning("Look.", encrypted="OPAQUE-1").says("Hm.").user("Sum up."),),
        headers={"x-codex-turn-metadata": '{"request_kind": "compaction"}'},
        profiles={"planner": Profile(prefix_bound=True)},
    ),
    "no_session": Scenario((edited,), {"options": HANDOFF}, session=None),
}
CASES = [
    pytest.param(wire_format, name, id=f"{wire_format}-{name}")
    for name, scenario in SCENARIOS.items()
    for wire_format in scenario.only
]


@pytest.mark.parametrize(("wire_format", "name"), CASES)
async def test_outgoing_body(snapshot, wire_format, name):
    scenario = SCENARIOS[name]
    bodies = []
    for door in ("library", "http"):
        world = plan_execute_harness(wire_format, door, **scenario.settings)
        accepts(world, **scenario.profiles)
        for tell in scenario.tells:
            told = tell(conversation(wire_format))
            last = tell is scenario.tells[-1]
            served = await world.ask(
                told.request(
                    session=scenario.session,
                    headers=scenario.headers,
                    final=scenario.final and last,
                )
            )
        bodies.append(served.outgoing.body)

    assert bodies[0] == bodies[1]
    assert bodies[0] == snapshot.use_extension(RequestBodySnapshot)
