from __future__ import annotations

import asyncio
import logging
import socket
import threading

import pytest
import uvicorn

from switchyard_core import UpstreamError
from switchyard_core.server.run import _BrokenAnswers, _Server, bind, url_of


def test_bind_takes_a_free_port_and_url_names_it():
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of(listener) == f"http://127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", port)):
            pass


def test_bind_refuses_a_taken_port():
    with bind("127.0.0.1", 0) as listener, pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", listener.getsockname()[1])


def test_url_of_an_ipv6_address_has_brackets():
    class Listener:
        family = socket.AF_INET6

        def getsockname(self):
            return ("::1", 4000, 0, 0)

    assert url_of(Listener()) == "http://[::1]:4000"


def test_server_in_another_thread_leaves_the_signals_alone():
    server = _Server(uvicorn.Config(app=None, log_config=None), ready=lambda: None, drain_s=1)
    entered = []

    def enter():
        with server.capture_signals():
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [True]


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (UpstreamError("cut"), False),
        (asyncio.CancelledError(), False),
        (ValueError("bug"), True),
        (None, True),
    ],
)
def test_answers_that_were_broken_off_on_purpose_are_not_reported_twice(error, worth):
    info = (type(error), error, None) if error else None
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "", 0, "m", None, info)
    assert _BrokenAnswers().filter(record) is worth
