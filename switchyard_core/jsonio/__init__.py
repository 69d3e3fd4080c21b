"""JSON: the lossless tree over bytes, one reader, the printer, and JSONPath."""

from switchyard_core.jsonio.path import Path as JSONPath
from switchyard_core.jsonio.path import PathError, compile_path
from switchyard_core.jsonio.tree import ArrayText, JsonTextError, ObjectText

__all__ = ["ArrayText", "JSONPath", "JsonTextError", "ObjectText", "PathError", "compile_path"]
