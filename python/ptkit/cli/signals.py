"""Signals that end a recording and keep what was recorded."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ptkit.support.system import CLOSING_SIGNAL

__all__ = ["ending_signals"]


@contextmanager
def ending_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP (SIGBREAK on Windows) end a recording as Ctrl-C does.

    SIGINT is taken as well where it is inherited as ignored (background jobs of scripts), as `perf record`
    takes it. SIGHUP that is ignored (nohup) stays ignored.
    """

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(CLOSING_SIGNAL) is not signal.SIG_IGN:
        numbers.append(CLOSING_SIGNAL)
    before = [(number, signal.signal(number, interrupt)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)
