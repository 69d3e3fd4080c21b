"""The route type keeps the contract that strangers' answering routers are held to."""

from __future__ import annotations

import json

import switchyard_demo_catalog
import switchyard_planner_executor
from switchyard_core.answering import ModelReply, RequestedCall
from switchyard_core.testing import AnsweringConformance

PLAN = json.dumps(
    {
        "goal": "find a present",
        "steps": [
            {"step": 1, "action": "look for tripods", "query": "tripod"},
            {"step": 2, "action": "name the best one", "query": None},
        ],
    }
)
SEARCH = RequestedCall(id="call_1", name="search_products", arguments='{"query": "tripod"}')


class Played(AnsweringConformance):
    """The sample requests offer a coding agent's tools, which the route refuses unless told."""

    plugins = (switchyard_planner_executor, switchyard_demo_catalog)

    def reply(self, target, call):
        if call.role == "planner":
            return ModelReply(text=PLAN)
        searched = "call_1" in json.dumps([dict(item) for item in call.items])
        return ModelReply(text="The tripod.") if searched else ModelReply(calls=(SEARCH,))


class TestPlanThenExecute(Played):
    router_toml = """
type = "planner_executor"
planner_target = "strong"
executor_target = "weak"
tools = ["search_products"]
caller_tools = "ignore"
"""


class TestReplan(Played):
    router_toml = TestPlanThenExecute.router_toml + 'mode = "replan"\nplanner_sees = "conversation"'


class TestApproval(Played):
    router_toml = TestPlanThenExecute.router_toml + 'approval = "always"'
