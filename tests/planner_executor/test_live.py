"""With a real model: asked for with `-m integration`, and skipped without a key.

SWITCHYARD_LIVE_KEY, SWITCHYARD_LIVE_MODEL and SWITCHYARD_LIVE_URL (such as
``https://api.openai.com/v1``) say whom to ask, SWITCHYARD_LIVE_FORMAT its wire format
(``openai_responses`` unless set).
"""

from __future__ import annotations

import json
import os
import re

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.testing import registry_of
from tests.planner_executor.shop import PLUGINS, RECORDED_TASK

NEEDED = ("SWITCHYARD_LIVE_KEY", "SWITCHYARD_LIVE_MODEL", "SWITCHYARD_LIVE_URL")

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def live():
    """Return the settings of a real provider, or skip."""
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        pytest.skip(f"needs a real provider: set {', '.join(missing)}")
    return {name.rpartition("_")[2].lower(): os.environ[name] for name in NEEDED}


@pytest.fixture
async def answer(live):
    """Ask the real model once; return the machine-readable part of its answer."""
    kind = os.environ.get("SWITCHYARD_LIVE_FORMAT", "openai_responses")
    policy = f"""
schema_version = 1

[llm_clients.live]
format = "{kind}"
base_url = "{live["url"]}"
api_key_env = "SWITCHYARD_LIVE_KEY"

[targets.both]
id = "{live["model"]}"
llm_client = "live"

[routes.shop]
id = "team/shop"
type = "planner_executor"
planner_target = "both"
executor_target = "both"
tools = ["search_products"]
"""
    yard = Switchyard.from_policy_text(policy, registry=registry_of(PLUGINS))
    body = {"model": "team/shop", "messages": [{"role": "user", "content": RECORDED_TASK}]}
    try:
        request = Request(wire_format="openai_chat", body=body)
        async with await yard.handle(request) as response:
            return json.loads(await response.read())["switchyard"]
    finally:
        await yard.aclose()


async def test_real_plan_has_two_steps_or_more_numbered_from_one(answer):
    numbers = [step["step"] for step in answer["plan"]["steps"]]

    assert len(numbers) >= 2
    assert numbers == list(range(1, len(numbers) + 1))


async def test_every_real_step_says_something_and_one_shows_a_price(answer):
    results = [step["result"] for step in answer["steps"]]

    assert answer["status"] == "completed"
    assert all(text.strip() for text in results)
    assert any(re.search(r"\$\s?\d", text) for text in results)
