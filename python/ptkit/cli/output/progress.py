"""How far the work is, as a line on a terminal's standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from ptkit.support.system import is_raw
from ptkit.trace import Trace

if TYPE_CHECKING:
    from ptkit import _core
    from ptkit.capture import recording

PROGRESS_DELAY = 0.5  # seconds before the first line of progress
PROGRESS_INTERVAL = 0.1
RECORDING_DELAY = 1.0
RECORDING_INTERVAL = 1.0
_LEAST_SHARE = 0.01  # from which on the time left is estimated


class Progress:
    """A line on standard error that says how far the work is.

    Parameters
    ----------
    activity : str
        Begins the line.
    size : int
        Bytes of the streams.
    passes : int
        How often they are gone through.
    """

    def __init__(self, activity: str, size: int, passes: int) -> None:
        self._text = f"{activity} ({size / 1e6:,.1f} MB)"
        self._total = max(size * passes, 1)
        self._begin = time.monotonic()
        self._next = self._begin + PROGRESS_DELAY
        self._lock = Lock()  # rows and the line share a terminal
        self._ended = False
        self.shown = False

    def at(self, done: int) -> None:
        """Say how many bytes are done; draws a few times a second only."""
        now = time.monotonic()
        with self._lock:
            if now < self._next or self._ended:
                return
            self._next = now + PROGRESS_INTERVAL
            self.shown = True
            _draw(f"{self._text}: {_how_far(min(done / self._total, 1), now - self._begin)}")

    def end(self) -> None:
        """Remove the line, and draw none any more."""
        with self._lock:
            self._ended = True
            if self.shown:
                _draw("")
                self.shown = False


def _how_far(share: float, seconds: float) -> str:
    left = f", {seconds / share * (1 - share):,.0f} s left" if share >= _LEAST_SHARE else ""
    return f"{share:.0%}, {seconds:,.0f} s{left}"


@contextmanager
def _followed(session: _core.Session, line: Progress) -> Iterator[None]:
    """Draw a line while the core decodes, which may take long without a row."""
    begin, stop = session.decoded_bytes, Event()

    def follow() -> None:
        while not stop.wait(PROGRESS_INTERVAL):
            line.at(session.decoded_bytes - begin)

    thread = Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        line.end()


class RecordingLine:
    """The line about a recording that takes long, on the terminal that standard error is.

    Parameters
    ----------
    enabled : bool
        False: nothing is shown.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled and sys.stderr.isatty()
        self._next = RECORDING_DELAY
        self._shown = False

    def at(self, progress: recording.Progress) -> None:
        """Say how far the recording is; draws once a second, and not over a program that draws itself."""
        if not self._enabled or progress.seconds < self._next:
            return
        self._next = progress.seconds + RECORDING_INTERVAL
        if is_raw(sys.stderr.fileno()):
            return
        self._shown = True
        trace = f"{progress.trace_bytes / 1e6:,.1f} MB of trace, " if progress.trace_bytes else ""
        _draw(f"recording: {progress.instructions:,} instructions, {trace}{progress.seconds:,.0f} s")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            _draw("")


@contextmanager
def notices() -> Iterator[Callable[[str], None]]:
    """Show on a terminal's standard error which step runs.

    Yields a function that takes a few words; they are removed at the end.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        yield _draw
    finally:
        _draw("")


def _draw(text: str) -> None:
    """Write a line over the one on the terminal."""
    width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    print(f"\r{text[: width - 1]}\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def progress(
    trace: Trace, activity: str, *, streams: Sequence[int], passes: int = 1
) -> Iterator[Callable[[int], None]]:
    """Show on a terminal's standard error how far work is that the core does not count, if it takes long.

    Yields a function that takes the number of bytes that are done, over all passes through the streams.
    """
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    line = _line(trace, activity, streams, passes)
    try:
        yield line.at
    finally:
        line.end()


@contextmanager
def decoding(
    trace: Trace, *, activity: str = "decoding", streams: Sequence[int] | None = None, passes: int = 1
) -> Iterator[Callable[[], None]]:
    """Show there how far the core's decoding of streams is, by default of all; also where no row comes.

    Yields a function to call before rows are printed: the line ends there if they go to the same terminal.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    line = _line(trace, activity, range(len(trace.streams)) if streams is None else streams, passes)
    with _followed(trace.opened.session, line):
        yield line.end if sys.stdout.isatty() else lambda: None


def _line(trace: Trace, activity: str, streams: Sequence[int], passes: int) -> Progress:
    size = sum(trace.streams[stream].size for stream in streams)
    return Progress(f"{activity} {PurePath(trace.source).name or trace.source}", size, passes)
