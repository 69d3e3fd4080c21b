"""Writing an answer of our own in a caller's wire format, whole or as a stream."""

from switchyard_core.formats.answer.sections import (
    WRITERS,
    AnswerWriter,
    answer_id,
    answer_writer,
)
from switchyard_core.formats.answer.sse import comment
from switchyard_core.formats.answer.writer import Frame, Part, PartWriter

__all__ = [
    "WRITERS",
    "AnswerWriter",
    "Frame",
    "Part",
    "PartWriter",
    "answer_id",
    "answer_writer",
    "comment",
]
