"""JSONPath in policies: which values of a document are meant, at a bounded cost."""

from switchyard_core.jsonio.path import Path, PathError, compile_path
from switchyard_core.jsonio.path_steps import Location, Match

__all__ = ["Location", "Match", "Path", "PathError", "compile_path"]
