"""Writing an answer of our own in a caller's wire format, whole or as a stream."""

from switchyard_core.wire.answer.writer import AnswerWriter, answer_id, answer_writer
from switchyard_core.wire.sse import comment

__all__ = ["AnswerWriter", "answer_id", "answer_writer", "comment"]
