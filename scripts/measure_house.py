"""Prints how big the house is and how far one small request walks through it, beside the goals.

    python scripts/measure_house.py

Lines are lines of files: code, docstrings, comments and blank ones. Beside them stand those of
"code and docstrings" in the literal sense: neither blank nor only a comment. A "function-level
import" is an import inside a function; one whose line gives a reason (`# noqa: PLC0415 # why`) is
counted apart. A circle is a set of modules that import each other, whether at their top or inside
functions. Of a request its second decision is traced: what is remembered is remembered then.
"""

from __future__ import annotations

import ast
import asyncio
import statistics
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CORE = "switchyard_core"
POLICY = """
schema_version = 1
[llm_clients.p]
format = "openai_chat"
base_url = "https://provider.example/v1"
[targets.planner]
id = "capable"
llm_client = "p"
[targets.executor]
id = "efficient"
llm_client = "p"
[routes.r]
id = "r"
type = "plan_execute"
capable_target = "planner"
efficient_target = "executor"
"""
BODY = (
    b'{"model":"r","messages":[{"role":"user","content":"hello"},'
    b'{"role":"assistant","content":"hello"},{"role":"user","content":"fix the bug"}]}'
)


@dataclass(frozen=True)
class Module:
    """One module of the project: its name, its lines and its tree."""

    name: str
    path: Path
    lines: list[str]
    tree: ast.Module

    @property
    def filled(self) -> int:
        """How many lines are neither blank nor only a comment."""
        return sum(1 for line in self.lines if line.strip() and line.strip()[0] != "#")


def main() -> None:
    """Print everything."""
    modules = {module.name: module for module in read_modules()}
    rooms(modules.values())
    sizes(modules.values())
    imports(modules)
    public_names()
    asyncio.run(small_request())


def row(what: str, value: object, goal: str = "") -> None:
    """Print one figure with its goal."""
    print(f"{what:<58} {value!s:>9}  {goal and 'goal ' + goal}".rstrip())


def read_modules() -> Iterator[Module]:
    """Yield the modules of the core, of the plugins, and of the pytest plugin."""
    packages = [ROOT / CORE, ROOT / "switchyard_pytest"]
    packages += sorted(path.parent for path in (ROOT / "plugins").glob("*/__init__.py"))
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text("utf-8")
            yield Module(name, path, text.splitlines(), ast.parse(text))


# --- sizes -----------------------------------------------------------------------------------


def rooms(modules: Collection[Module]) -> None:
    """Print lines and modules of each room, and in total."""
    lines: Counter[str] = Counter()
    filled: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for module in modules:
        package, _, rest = module.name.partition(".")
        inner = (ROOT / CORE / rest.partition(".")[0]).is_dir()
        room = (
            f"{package}/{rest.partition('.')[0]}"
            if package == CORE and rest and inner
            else (f"{package} (modules of its own)" if package == CORE else package)
        )
        lines[room] += len(module.lines)
        filled[room] += module.filled
        count[room] += 1
    print(f"{'room':<44} {'lines':>7} {'filled':>7} {'modules':>8}")
    for room in sorted(lines):
        print(f"{room:<44} {lines[room]:>7} {filled[room]:>7} {count[room]:>8}")
    print()
    row("lines in total", lines.total(), "≤ 34000")
    row("  of them neither blank nor only a comment", filled.total())
    row("modules in total", count.total(), "≤ 300")
    entries = [path for path in (ROOT / CORE).iterdir() if path.name not in _NO_ENTRIES]
    row(f"entries in {CORE}/", len(entries), "≤ 30")


_NO_ENTRIES = {"__init__.py", "__pycache__", "py.typed"}


def sizes(modules: Collection[Module]) -> None:
    """Print how long modules and functions are."""
    print()
    lengths = sorted(len(module.lines) for module in modules)
    row("lines of a module: median, p90, max", spread(lengths), "≤ 700, or a reason in line 1")
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [
        node.end_lineno - node.lineno + 1
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, kinds) and node.end_lineno is not None
    ]
    row("lines of a function: median, p90, max", spread(sorted(functions)), "p90 ≤ 30")


def spread(ordered: list[int]) -> str:
    """Return median, 90th percentile and maximum."""
    return f"{statistics.median(ordered):.0f} {ordered[len(ordered) * 9 // 10]} {ordered[-1]}"


# --- imports ---------------------------------------------------------------------------------


def imports(modules: Mapping[str, Module]) -> None:
    """Print who has one importer, who imports each other, and what is imported inside functions."""
    print()
    edges = {name: imported_by(module, modules) for name, module in modules.items()}
    importers: Counter[str] = Counter(
        name for importer, names in edges.items() for name in names if name != importer
    )
    single = [name for name in modules if importers[name] == 1 and not is_package(modules[name])]
    share = sum(len(modules[name].lines) for name in single)
    total = sum(len(module.lines) for module in modules.values())
    row("modules with one importer", len(single))
    row("  their share of all lines", f"{100 * share / total:.0f} %")
    found = circles(edges)
    row("import circles", len(found), "0")
    for circle in found:
        print(f"  {', '.join(sorted(circle))}")
    inside = [place for module in modules.values() for place in function_imports(module)]
    row("imports inside functions", len(inside))
    without = [place for place, reason in inside if not reason]
    row("  of them without a reason", len(without), "0")
    for place in without:
        print(f"  {place}")


def imported_by(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """Return the project's modules that a module imports when it runs."""
    found: set[str] = set()
    for node in running(module.tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in modules else str(node.module))
    return found


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node but those that only type checkers see."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from running(child)


def is_package(module: Module) -> bool:
    """Say whether a module is a package: its importers want what it gathers."""
    return module.path.name == "__init__.py"


def circles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules each of which reaches all others of its set."""
    reach: dict[str, set[str]] = {}
    for name in edges:
        seen: set[str] = set()
        waiting = list(edges[name])
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                waiting += edges[found]
        reach[name] = seen
    found_circles: list[set[str]] = []
    for name, reached in reach.items():
        circle = {other for other in reached if name in reach[other]}
        if name in circle and len(circle) > 1 and circle not in found_circles:
            found_circles.append(circle)
    return found_circles


def function_imports(module: Module) -> Iterator[tuple[str, bool]]:
    """Yield place of each import inside a function, and whether its line gives a reason."""
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    comment = module.lines[node.lineno - 1].rpartition("# noqa: PLC0415")[2]
                    yield f"{module.path.relative_to(ROOT)}:{node.lineno}", "#" in comment


def public_names() -> None:
    """Print how many names the core promises."""
    print()
    import switchyard_core  # noqa: PLC0415  # the figures above need no working core

    row(f"names in {CORE}.__all__", len(switchyard_core.__all__), "≤ 70")


# --- one request -----------------------------------------------------------------------------


async def small_request() -> None:
    """Print how many modules and calls one small request passes."""
    for what, passed, goals in await walks():
        row(f"modules passed by one small request, {what}", len(passed), f"≤ {goals[0]}")
        row(f"calls into the project, {what}", passed.total(), f"≤ {goals[1]}")


async def walks() -> list[tuple[str, Counter[str], tuple[int, int]]]:
    """Return the walks of one small request: what it is, its calls by module, and their goals."""
    from switchyard_core import Request, Switchyard  # noqa: PLC0415  # as above

    yard = Switchyard.from_policy_text(POLICY, connect=lambda _client: Fake())

    def request() -> Request:
        headers = {"x-switchyard-session-id": "s"}
        return Request(wire_format="openai_chat", body=BODY, headers=headers)

    async def decide() -> None:
        asked = request()
        yard.rewrite(asked, await yard.decide(asked))

    async def handle() -> None:
        async with await yard.handle(request()) as response:
            await response.read()

    found = []
    for what, run, goals in (
        ("decide + rewrite", decide, (18, 150)),
        ("with the provider's answer", handle, (28, 260)),
    ):
        await run()
        found.append((what, await traced(run), goals))
    await yard.aclose()
    return found


async def traced(run: Callable[[], Any]) -> Counter[str]:
    """Return how often Python code of each module of the project was called."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.partition(".")[0].startswith("switchyard_"):
            calls[name] += 1

    sys.setprofile(note)
    try:
        await run()
    finally:
        sys.setprofile(None)
    return calls


class Fake:
    """A provider inside this process that answers everything with `{}`."""

    async def send(self, _outgoing: Any) -> Any:
        """Answer."""
        from switchyard_core.upstream import UpstreamResponse  # noqa: PLC0415  # as above

        async def body() -> AsyncIterator[bytes]:
            yield b'{"choices": [{"message": {"role": "assistant", "content": "hello"}}]}'

        return UpstreamResponse(200, (("content-type", "application/json"),), body())

    async def aclose(self) -> None:
        """Do nothing."""


if __name__ == "__main__":
    main()
