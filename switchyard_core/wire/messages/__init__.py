"""Anthropic Messages."""

from switchyard_core.wire.messages.answer import AnthropicMessages

__all__ = ["AnthropicMessages"]
