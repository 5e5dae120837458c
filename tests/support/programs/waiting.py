"""Waiting for what another process or thread does, without a fixed sleep."""

from __future__ import annotations

import time
from collections.abc import Callable

import ptkit

_POLL = 0.01  # seconds


def wait_for(condition: Callable[[], object], seconds: float = 60) -> bool:
    """Whether `condition()` became true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def runs_on(recorder: ptkit.Recorder, instructions: int) -> None:
    """Wait until the program has executed so many instructions more."""
    goal = recorder.progress.instructions + instructions
    assert wait_for(lambda: recorder.progress.instructions > goal)


def settles(recorder: ptkit.Recorder) -> int:
    """Wait until the number of executed instructions stays the same; returns it."""
    seen = [-1]

    def same() -> bool:
        seen.append(recorder.progress.instructions)
        time.sleep(5 * _POLL)
        return seen[-1] == seen[-2] > 0

    assert wait_for(same)
    return seen[-1]
