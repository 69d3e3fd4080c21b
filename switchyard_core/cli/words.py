"""Values of options that say what was meant when they are misspelt."""

from __future__ import annotations

from typing import Any

import click

from switchyard_core.errors import nearest

__all__ = ["Choice", "Number", "meant"]


def meant(name: str, known: Any) -> str:
    """Return a question with the nearest known name, to append to a message."""
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near is not None else ""


class Choice(click.Choice[str]):
    """One of several words."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """Return click's message with the nearest word."""
        message = super().get_invalid_choice_message(value, ctx)
        hint = meant(str(value), self.choices)
        return message.removesuffix(".") + hint if hint else message


class Number(click.IntRange):
    """A whole number within a range."""

    name = "whole number"
