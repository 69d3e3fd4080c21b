from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel, ConfigDict

from switchyard_core import (
    Finding,
    Policy,
    PluginRegistry,
    RouteType,
    Tool,
    hookimpl,
    load_policy_text,
)
from switchyard_core.policy.document import parse_document
from switchyard_core.policy.rules.same_model_on_both_sides import SameModelOnBothSides
from switchyard_core.policy.validation import validate
from switchyard_planner_executor import PlannerExecutorOptions, switchyard_lint_rules
from switchyard_planner_executor.lint import LINT_RULES
