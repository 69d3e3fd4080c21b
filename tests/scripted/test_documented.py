"""The page about scripts says what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from switchyard_core.scripted import (
    Call,
    Fault,
    Script,
    Scripted,
    Turn,
    UsageCount,
    When,
    check_script,
)

PAGE = (Path(__file__).parents[2] / "docs" / "scripted_provider.md").read_text(encoding="utf-8")


def test_script_on_the_page_is_valid() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)

    script, findings = check_script(text)

    assert findings == ()
    assert script is not None


def test_python_on_the_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    for block in blocks:
        exec(compile(block, "scripted_provider.md", "exec"), {})
    assert blocks


@pytest.mark.parametrize("model", [Call, Fault, Script, Scripted, Turn, UsageCount, When])
def test_every_key_is_on_the_page(model: type[BaseModel]) -> None:
    missing = [key for key in model.model_fields if not re.search(rf"\b{key}\b", PAGE)]

    assert missing == []
