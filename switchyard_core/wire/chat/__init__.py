"""OpenAI Chat Completions."""

from switchyard_core.wire.chat.answer import OpenAIChat

__all__ = ["OpenAIChat"]
