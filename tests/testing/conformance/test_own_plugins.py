"""The project's own plugins keep the contracts that strangers are held to."""

from __future__ import annotations

from types import MappingProxyType

import switchyard_demo_routers
import switchyard_plan_execute
from switchyard_core.testing import (
    MutationPackConformance,
    RewriteConformance,
    RouterConformance,
    call,
)


class TestPlanExecute(RouterConformance):
    plugins = (switchyard_plan_execute,)
    router_toml = """
type = "plan_execute"
capable_target = "strong"
efficient_target = "weak"
handoff_prompt = "Carry the plan out."
planner_reasoning_as_text = true
"""


class TestNoop(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = 'type = "noop"\ntarget = "strong"'


class TestPassthrough(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = 'type = "passthrough"\ntargets = ["strong", "weak"]'


class TestRandom(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = 'type = "random"\ntargets = { strong = 1, weak = 1 }'


class TestRules(RouterConformance):
    plugins = (switchyard_demo_routers,)
    router_toml = """
type = "rules"
default_target = "weak"
rules = [{ target = "strong", where = [{ path = "$.stream", equals = true }] }]
"""


# --- rewrites of the core ------------------------------------------------------------------

PLANNERS = MappingProxyType({"through_call": 0})


class TestReasoningAsText(RewriteConformance):
    rewrite = "reasoning_as_text"
    parameters = PLANNERS
    removes = ("reasoning",)


class TestDropOpaqueReasoning(RewriteConformance):
    rewrite = "drop_opaque_reasoning"
    parameters = PLANNERS
    removes = ("reasoning",)


class TestDropOriginBound(RewriteConformance):
    rewrite = "drop_origin_bound"
    parameters = PLANNERS


class TestDropReasoningCompanions(RewriteConformance):
    rewrite = "drop_reasoning_companions"


class TestRemapToolIds(RewriteConformance):
    rewrite = "remap_tool_ids"
    parameters = MappingProxyType({"style": "alphanumeric_9"})


class TestRepairToolPairs(RewriteConformance):
    rewrite = "repair_tool_pairs"


class TestDropEmptyContent(RewriteConformance):
    rewrite = "drop_empty_content"


class TestAppendUserText(RewriteConformance):
    rewrite = "append_user_text"
    parameters = MappingProxyType({"text": "Carry the plan out."})


class TestInsertSystemPrompt(RewriteConformance):
    rewrite = "insert_system_prompt"
    parameters = MappingProxyType({"text": "Be brief."})


class TestInsertPlanningPrompt(RewriteConformance):
    rewrite = "insert_planning_prompt"
    parameters = MappingProxyType({"text": "Plan first.", "position": "append"})


class TestLimitCacheMarks(RewriteConformance):
    rewrite = "limit_cache_marks"


class TestTargetParameters(RewriteConformance):
    rewrite = "target_parameters"
    parameters = MappingProxyType({"extra_body": {"top_p": 0.5}})


class TestReasoningEffort(RewriteConformance):
    rewrite = "reasoning_effort"
    parameters = MappingProxyType({"effort": "low"})


class TestEndWithUserTurn(RewriteConformance):
    rewrite = "end_with_user_turn"


class TestSetModel(RewriteConformance):
    rewrite = "set_model"
    parameters = MappingProxyType({"id": "provider/other"})


# --- packs of the core ---------------------------------------------------------------------


class TestCodingAgents(MutationPackConformance):
    pack = "coding_agents"
    examples = MappingProxyType(
        {
            "file_edit": (
                call("Edit", file_path="a.py", old_string="a", new_string="b"),
                call("bash", command="sed -i s/a/b/ a.py"),
            ),
            "read_only": (call("Read", file_path="a.py"), call("bash", command="git diff | head")),
        }
    )


class TestStrict(MutationPackConformance):
    pack = "strict"
    examples = MappingProxyType({"file_edit": (call("Edit", file_path="a.py"),)})


class TestTextEdits(MutationPackConformance):
    pack = "text_edits"
    examples = MappingProxyType(
        {
            "file_edit": (
                call("Edit", file_path="a.py"),
                "a.py\n<<<<<<< SEARCH\n=======\nx\n>>>>>>> REPLACE\n",
            ),
            "file_write_other": ("<write_to_file>\n<path>plan.md</path>\n</write_to_file>\n",),
            "read_only": (call("Read", file_path="a.py"), "Put `<<<<<<< SEARCH` above it."),
        }
    )


class TestReferenceCompatible(MutationPackConformance):
    pack = "reference_compatible"
    examples = MappingProxyType({"file_edit": (call("Edit", file_path="a.py"),)})
