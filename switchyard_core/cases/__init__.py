"""Policy tests: ``<name>.test.toml`` beside ``<name>.toml``, read, run and reported."""

from switchyard_core.cases.file import SUFFIX, case_file_of, check_cases, read_cases
from switchyard_core.cases.report import as_json, as_junit, as_text, exit_code
from switchyard_core.cases.run import CaseResult, FileResult, Mismatch, State, run_cases, run_file

__all__ = [
    "SUFFIX",
    "CaseResult",
    "FileResult",
    "Mismatch",
    "State",
    "as_json",
    "as_junit",
    "as_text",
    "case_file_of",
    "check_cases",
    "exit_code",
    "read_cases",
    "run_cases",
    "run_file",
]
