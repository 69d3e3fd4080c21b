"""Profiles against the strict providers: what these refuse is repaired, what they take stays.

Both are written from documents, apart from each other.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from switchyard_core import Request, Switchyard
from switchyard_core.decision import Outgoing
from tests.scripted.strict.broken import CASES, Body, Case, ask, bare, player

#: Where each provider is; what has no host of its own is named by its profile.
HOSTS = {
    "anthropic": "api.anthropic.com",
    "bedrock": "bedrock-runtime.us-east-1.amazonaws.com",
    "deepseek": "api.deepseek.com",
    "gateway": "gateway.example",
    "gemini": "generativelanguage.googleapis.com",
    "glm": "api.z.ai",
    "grok": "api.x.ai",
    "kimi": "api.moonshot.ai",
    "lmstudio": "lmstudio.example",
    "minimax": "api.minimax.io",
    "mistral": "api.mistral.ai",
    "openai": "api.openai.com",
    "opencode_go": "opencode.example",
    "openrouter": "openrouter.ai",
    "qwen": "dashscope.aliyuncs.com",
    "sglang": "sglang.example",
    "vertex": "us-east5-aiplatform.googleapis.com",
    "vllm": "vllm.example",
}
_HISTORY = "the history's structure: the rewrites of a handoff repair it, and not a profile"
_OWN = "what its client sent is broken: no act can say what was meant"
_BETA = "depends on a header of the request, which no test of `when` reads"
_SOURCE = "the only source of the fact is not public"
_LENGTH = "no verb cuts a list, since which items can go is the caller's to say"
#: Rules that no profile keeps, with the reason; a profile that does so later has to go from here.
LEFT_OUT: Mapping[tuple[str, str], str] = {
    ("claude (all)", "max_tokens, model"): _OWN,
    ("claude (all)", "no empty text blocks"): _HISTORY,
    ("claude (all)", "tool_use.id / tool_use_id"): _HISTORY,
    ("claude (all)", "at most 4 blocks"): _HISTORY,
    ("claude (all)", "every tool_use answered"): _HISTORY,
    ("claude (all)", "thinking blocks of the LATEST"): _HISTORY,
    ("claude (all)", "request body <= 32 MB"): _OWN,
    ("claude (all)", "at most 20 tools"): _LENGTH,
    ("claude (all)", "<any unknown field>"): _OWN,
    ("claude (all)", "context_management"): _BETA,
    ("claude (all)", "tools[].defer_loading"): _BETA,
    ("claude (all)", "thinking.block_binding"): _BETA,
    ("claude (all)", "tools[].type"): _OWN,
    ("claude with prefix check (preserved thinking)", "system, tools and all messages"): _HISTORY,
    ("claude with prefix check (preserved thinking)", "messages[].content[thinking]"): _HISTORY,
    ("claude-sonnet-5-5", "thinking.type=between_tools"): (
        "one of its cases has an effort in single messages, which nobody documents"
    ),
    ("openai reasoning models", "tools (gpt-6-astra"): "`refuse`: nothing is sent",
    ("openai reasoning models", "tools (> 128"): _LENGTH,
    ("openai responses", "reasoning item id begins 'rs'"): _HISTORY,
    ("openai responses", "reasoning item directly followed"): _HISTORY,
    ("openai responses", "reasoning.content empty"): _HISTORY,
    ("openai responses", "every function_call"): _HISTORY,
    ("openai responses", "input[type=reasoning].encrypted_content"): _HISTORY,
    ("codex tools elsewhere", "tools[type=custom]"): (
        "a custom tool needs its inverse on the answer, which only a translation has"
    ),
    ("codex tools elsewhere", "tools[type=web_search].search_content_types"): (
        "known of some hosts only; the profile names those"
    ),
    ("codex tools elsewhere", "tools[type=namespace|web_search|tool_search]"): (
        "known of some hosts only; the profile names those"
    ),
    ("kimi-k3", "stop"): _LENGTH,
    ("qwen on DashScope", "content type=file"): "what is in the file would be lost",
    ("qwen on DashScope", "max_tokens"): "the limit of each model is not documented",
    ("gemini 3.x via OpenAI-compatible endpoint", "tool_calls without"): (
        "one of its cases has a wrong signature: the rewrites of a handoff drop it"
    ),
    ("grok", "reasoning_effort=none"): _SOURCE,
    ("grok", "reasoning_effort"): _SOURCE,
    ("minimax", "messages order"): _HISTORY,
    ("vllm / sglang", "<unknown fields>"): "which fields an older server knows is not documented",
    (
        "vllm / sglang",
        "function_call.status",
    ): "of versions before a fix, which a host does not tell",
    ("openrouter", "reasoning none|disabled"): _SOURCE,
    ("glm-4.5 .. 5.2", "thinking + reasoning_effort together"): (
        "of hosts that profiles know by the model only"
    ),
}
#: Bodies that a provider takes and that are changed all the same, with the reason.
CHANGED: Mapping[tuple[str, str], str] = {
    ("deepseek", "tools[].function.strict"): "legal below /beta only, and a host tells no path",
    (
        "mistral",
        "last message user or tool",
    ): "`prefix` continues a text, which `end_with_user_turn` does not know",
}
EACH = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{n}-{case.id}") for n, case in enumerate(CASES)],
)


def sent(case: Case, changes: Body, headers: Body) -> tuple[Body, Outgoing]:
    """Return a body, and what a target with the body's model makes of it."""
    body = bare(case.format, case.model, **changes)
    yard = Switchyard.from_policy_text(f"""
        schema_version = 1
        [llm_clients.provider]
        format = "{case.format}"
        base_url = "https://{HOSTS[case.provider]}/v1"
        [targets.model]
        id = "{body["model"]}"
        llm_client = "provider"
        [routes.route]
        id = "route"
        type = "passthrough"
        targets = ["model"]
    """)
    request = Request(
        wire_format=case.format,
        body=json.dumps({**body, "model": "route"}).encode(),
        headers={name: str(value) for name, value in headers.items()},
    )
    return body, yard.rewrite(request, asyncio.run(yard.decide(request)))


@EACH
def test_refused_body_is_taken_once_it_fits(case: Case) -> None:
    if case.rule in LEFT_OUT:
        return  # `test_rules_left_out_are_told` counts these
    _, outgoing = sent(case, case.broken, case.headers)
    fitted = json.loads(outgoing.body)

    status, told = ask(
        player(case.provider), case.format, fitted, dict(outgoing.headers), case.path
    )

    assert status == 200, told


@EACH
def test_body_that_keeps_the_rules_is_untouched(case: Case) -> None:
    if case.rule in CHANGED:
        return
    headers = case.headers if case.kept_headers is None else case.kept_headers
    body, outgoing = sent(case, case.kept, headers)

    changes = [c for r in outgoing.reports if r.name == "fit_model" for c in r.changes]
    assert (changes, outgoing.body) == ([], json.dumps(body).encode())


_CALLED: Body = {
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}],
}
#: Bodies in which one repair makes another one necessary.
CHAINED = [
    ("openai", "openai_chat", "gpt-5-mini", {"reasoning_effort": "none", "temperature": 0.3}),
    ("openai", "openai_chat", "o3", {"reasoning_effort": "none", "top_p": 0.3}),
    ("openai", "openai_responses", "o3", {"reasoning": {"effort": "none"}, "temperature": 0.3}),
    ("kimi", "openai_chat", "kimi-k2.7-code", {"thinking": {"type": "disabled"}, **_CALLED}),
    ("kimi", "openai_chat", "kimi-k2.6", {"reasoning_effort": "none", **_CALLED}),
    ("kimi", "openai_chat", "kimi-k2.6", {"tool_choice": "required", **_CALLED}),
    ("deepseek", "openai_chat", "deepseek-flash", {"reasoning_effort": "none", **_CALLED}),
    ("anthropic", "anthropic_messages", "claude-opus-5-5", {"temperature": 1, "top_p": 0.99}),
]


@pytest.mark.parametrize(
    ("provider", "wire_format", "model", "changes"),
    [pytest.param(*each, id=f"{each[2]}-{next(iter(each[3]))}") for each in CHAINED],
)
def test_body_that_needs_several_repairs_is_taken_and_stays(
    provider: str, wire_format: str, model: str, changes: Body
) -> None:
    case = Case(("", ""), provider, wire_format, model, changes)
    _, outgoing = sent(case, changes, {})

    status, told = ask(player(provider), wire_format, json.loads(outgoing.body))
    again = sent(case, json.loads(outgoing.body), {})[1]

    assert status == 200, told
    assert json.loads(again.body) == json.loads(outgoing.body)


def test_rules_left_out_are_told() -> None:
    known = {case.rule for case in CASES}

    assert {*LEFT_OUT, *CHANGED} <= known
    print(f"{len(known)} rules, {len(LEFT_OUT)} of them kept by no profile")
