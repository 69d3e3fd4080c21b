"""OpenAI Responses."""

from switchyard_core.wire.responses.answer import OpenAIResponses

__all__ = ["OpenAIResponses"]
