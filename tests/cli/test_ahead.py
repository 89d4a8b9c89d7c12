"""A child that gets ready while the command line is read: it does what a child forked later would do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial

import pytest

from mcveto import ahead
from mcveto.limits import End, ResourceLimits, Send, run_limited


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    left = ahead.taken()
    if left is not None:
        left.dismiss()


def whoami(told: str, send: Send) -> tuple[str, int]:
    send(told)
    return told, os.getpid()


def sleep(seconds: float, send: Send) -> None:
    time.sleep(seconds)


def test_the_child_that_is_ready_does_the_work() -> None:
    ahead.get_ready()
    assert ahead._ready is not None
    child = ahead._ready.child
    messages: list[str] = []
    finished = run_limited(partial(whoami, "hello"), ResourceLimits(20), messages.append)
    assert finished.result == ("hello", child)
    assert messages == ["hello"]


def test_it_does_one_work_only() -> None:
    ahead.get_ready()
    first = run_limited(partial(whoami, "one"), ResourceLimits(20)).result
    second = run_limited(partial(whoami, "two"), ResourceLimits(20)).result
    assert first is not None and second is not None
    assert second[0] == "two"
    assert first[1] != second[1]


def test_work_that_cannot_be_sent_is_done_by_a_fork() -> None:
    ahead.get_ready()
    assert run_limited(lambda send: os.getppid(), ResourceLimits(20)).result == os.getpid()
    assert ahead.taken() is None


def test_a_dead_child_is_replaced() -> None:
    ahead.get_ready()
    assert ahead._ready is not None
    child = ahead._ready.child
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    finished = run_limited(partial(whoami, "again"), ResourceLimits(20))
    assert finished.result is not None
    assert finished.result[1] != child


def test_limits_hold() -> None:
    ahead.get_ready()
    assert run_limited(partial(sleep, 60.0), ResourceLimits(0.5)).end is End.TIME_OUT


def test_a_child_that_is_given_nothing_ends() -> None:
    ahead.get_ready()
    ready = ahead.taken()
    assert ready is not None
    ready.give(b"")  # closes the pipe
    _, status = os.waitpid(ready.child, 0)
    os.close(ready.reader)
    assert os.waitstatus_to_exitcode(status) == 0
