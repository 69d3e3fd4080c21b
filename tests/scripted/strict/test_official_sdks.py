"""The official SDKs read the refusals of the strict providers as those of the real ones."""

from __future__ import annotations

from collections.abc import Callable

import anthropic
import openai
import pytest

from switchyard_core.scripted import Script
from tests.upstream.loopback import Provider, script_of

pytestmark = pytest.mark.anyio

Provide = Callable[[Script], Provider]


def strict(provider: str) -> Script:
    return script_of({"text": "hi"}).model_copy(update={"strict": provider})


async def test_anthropic_sdk_raises_the_refusal(provide: Provide) -> None:
    url = provide(strict("anthropic")).url
    client = anthropic.AsyncAnthropic(api_key="k", base_url=url, max_retries=0)

    async with client:
        with pytest.raises(anthropic.BadRequestError) as refused:
            await client.messages.create(
                model="claude-haiku-4-5",
                max_tokens=9,
                messages=[{"role": "user", "content": "hi"}],
                thinking={"type": "adaptive"},
            )

    assert "adaptive thinking is not supported on this model" in refused.value.message
    assert refused.value.body == {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "adaptive thinking is not supported on this model",
        },
        "request_id": "req_scripted",
    }


@pytest.mark.parametrize(
    ("provider", "model", "code", "words"),
    [
        ("openai", "o3", "unsupported_parameter", "'max_tokens' is not supported"),
        ("glm", "glm-5.3", "1210", "not in the valid range"),
        ("minimax", "MiniMax-M3", None, "use max_completion_tokens"),
        ("qwen", "qwen3-max", "invalid_parameter_error", "Range of max_tokens"),
    ],
)
async def test_openai_sdk_raises_the_refusal(
    provide: Provide, provider: str, model: str, code: str | None, words: str
) -> None:
    url = provide(strict(provider)).url
    client = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)

    async with client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(
                model=model, max_tokens=200_000, messages=[{"role": "user", "content": "hi"}]
            )

    assert (refused.value.code, words in refused.value.message) == (code, True)
