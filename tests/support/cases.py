"""One test that looks at every row of a table and tells all that fail."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import pytest


def each_of(arguments: str | Sequence[str], values: Iterable[Any]) -> Callable[[Any], Any]:
    """Run a test for every value, as one case, where `pytest.mark.parametrize` makes one of each.

    For tables whose rows differ in data alone. Function-scoped fixtures are shared by the rows.

    Args:
        arguments: Name of the test's argument, or the names of several.
        values: What it is given: a value, a tuple for several arguments, a `pytest.param`.
    """
    names = (arguments,) if isinstance(arguments, str) else tuple(arguments)
    rows = [_row(names, value) for value in values]

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            with _Misses() as misses:
                for name, row in rows:
                    with misses.noted(name):
                        test(**fixtures, **row)

        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            with _Misses() as misses:
                for name, row in rows:
                    with misses.noted(name):
                        await test(**fixtures, **row)

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        left = [each for each in signature.parameters.values() if each.name not in names]
        made.__signature__ = signature.replace(parameters=left)
        return made

    return decorate


def _row(names: tuple[str, ...], value: Any) -> tuple[str, Mapping[str, Any]]:
    name = getattr(value, "id", None)
    values = getattr(value, "values", None) if name is not None else None
    if not isinstance(values, tuple):
        name, values = None, value if len(names) > 1 else (value,)
    row = dict(zip(names, values, strict=True))
    return str(name) if name else ", ".join(f"{key}={each!r}" for key, each in row.items()), row


class _Misses:
    def __init__(self) -> None:
        self._errors: list[BaseException] = []

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        try:
            yield
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # told at the end
            error.add_note(f"in the case {name[:300]}")
            self._errors.append(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if exc_info[0] is None and self._errors:
            message = f"{len(self._errors)} cases fail"
            raise BaseExceptionGroup(message, self._errors)
