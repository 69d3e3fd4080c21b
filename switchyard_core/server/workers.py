"""Several processes that serve one listening socket."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Semaphore

from switchyard_core.server.app import SwitchyardApp
from switchyard_core.server.reload import Reloader
from switchyard_core.server.run import DRAIN_S, run

__all__ = ["run_workers"]

_POLL_S = 0.1
#: A worker that is not gone this long after its drain is killed.
_GRACE_S = 5


def run_workers(
    build: Callable[[], tuple[SwitchyardApp, Reloader | None]],
    listener: socket.socket,
    count: int,
    *,
    ready: Callable[[], None],
    drain_s: int = DRAIN_S,
) -> bool:
    """Serve with several processes until SIGTERM or SIGINT; call it in the main thread.

    ``build`` must be picklable: each process makes its application, and what reads its policy
    again, with it. A SIGHUP is handed on to each process. Return whether the end was asked for:
    a process that ends on its own ends the others too.
    """
    context = multiprocessing.get_context("spawn")
    started = context.Semaphore(0)
    workers = [
        context.Process(target=_work, args=(build, listener, started, drain_s))
        for _ in range(count)
    ]
    stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    def reload(number: int, _frame: object) -> None:
        # A process that is not ready yet has read the policy just now, or is about to.
        for worker in workers if not waiting else ():
            if worker.pid is not None and worker.is_alive():
                os.kill(worker.pid, number)

    waiting = count
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, stop) for number in numbers}
    if hasattr(signal, "SIGHUP"):
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, reload)
    try:
        for worker in workers:
            worker.start()
        while not stopping and all(worker.is_alive() for worker in workers):
            if waiting and started.acquire(timeout=_POLL_S):
                waiting -= 1
                if not waiting:
                    ready()
            elif not waiting:
                wait([worker.sentinel for worker in workers], timeout=_POLL_S)
        return stopping
    finally:
        _end(workers, drain_s)
        listener.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _work(
    build: Callable[[], tuple[SwitchyardApp, Reloader | None]],
    listener: socket.socket,
    started: Semaphore,
    drain_s: int,
) -> None:
    app, reloader = build()
    # Each scrape reaches one process or another: their counters must not be taken for one.
    app.metrics.worker = str(os.getpid())
    run(app, listener, ready=started.release, drain_s=drain_s, reloader=reloader)


def _end(workers: Sequence[SpawnProcess], drain_s: int) -> None:
    for worker in workers:
        if worker.is_alive():
            worker.terminate()
    for worker in workers:
        if worker.pid is not None:
            worker.join(drain_s + _GRACE_S)
            if worker.is_alive():
                worker.kill()
                worker.join()
