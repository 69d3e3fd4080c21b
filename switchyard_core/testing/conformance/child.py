"""Another process: prints what a router decides, to be compared with what a third one prints."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import reduce
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from switchyard_core.testing.conformance.bench import describe
from switchyard_core.testing.conformance.interview import Interview

__all__ = ["main"]

_MODULE = "switchyard_conformance_suite"


def main(file: str, suite: str) -> None:
    """Print the decisions of a router as one line of JSON, by wire format and request.

    Args:
        file: Module that defines a :class:`~switchyard_core.testing.RouterConformance`.
        suite: Qualified name of that class.
    """
    spec = spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"`{file}` is no Python module")
    module = module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    found: Any = reduce(getattr, suite.split("."), module)
    print(json.dumps(asyncio.run(_decide(found()))))  # noqa: T201  # read by the parent process


async def _decide(suite: Any) -> dict[str, str]:
    decided = {}
    for wire_format in suite.wire_formats():
        bench = suite.bench(wire_format)
        for name, request in suite.requests(wire_format, bench.runtime.route.id).items():
            outcome = await bench.route(request, what=name)
            decided[f"{wire_format}, {name}"] = describe(outcome)
            if bench.runtime.answers:
                told = Interview(bench, request, what=name)
                await told.run()
                decided[f"{wire_format}, {name}"] += f" asks {told.calls}"
    return decided


if __name__ == "__main__":
    main(*sys.argv[1:])
