"""The contract of every router; see the documentation of the test kit."""

from __future__ import annotations

from switchyard_core.testing import RouterConformance

from switchyard_budget import BudgetPlugin


class TestBudgetRouter(RouterConformance):
    plugins = (BudgetPlugin(),)
    # Without prices nothing would be spent.
    policy = """
schema_version = 1

[llm_clients.provider]
format = "{wire_format}"
base_url = "https://provider.example/v1"

[targets.strong]
id = "provider/strong"
llm_client = "provider"

[targets.weak]
id = "provider/weak"
llm_client = "provider"

[routes.main]
id = "switchyard/main"
type = "budget"
target = "strong"
cheap = "weak"
budget_usd = 0.5

[prices."provider/strong"]
as_of = 2026-11-30
input = 5.0
output = 25.0

[prices."provider/weak"]
as_of = 2026-11-30
input = 0.5
output = 2.5
"""
