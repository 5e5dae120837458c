"""How far the work is, as a line on a terminal's standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING

from ptkit.system import is_raw
from ptkit.table import Table
from ptkit.trace import Trace

if TYPE_CHECKING:
    from ptkit.capture import recording

PROGRESS_DELAY = 0.5  # seconds before the first line of progress
PROGRESS_INTERVAL = 0.1
RECORDING_DELAY = 1.0
RECORDING_INTERVAL = 1.0


class Progress:
    """A line on standard error that says how far the work is.

    Parameters
    ----------
    what : str
        Begins the line.
    size : int
        Bytes of the streams.
    passes : int
        How often they are gone through.
    """

    def __init__(self, what: str, size: int, passes: int) -> None:
        self._what = f"{what} ({size / 1e6:,.1f} MB)"
        self._total = max(size * passes, 1)
        self._begin = time.monotonic()
        self._next = self._begin + PROGRESS_DELAY
        self.shown = False

    def at(self, done: int) -> None:
        """Say how many bytes are done; draws a few times a second only."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_INTERVAL
        self.shown = True
        share = min(done / self._total, 1)
        text = f"{self._what}: {share:.0%}, {now - self._begin:,.0f} s"
        _draw(text)

    def clear(self) -> None:
        """Remove the line."""
        if self.shown:
            _draw("")


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
    trace: Trace, what: str, *, streams: Sequence[int], passes: int = 1, prints_rows: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show on a terminal's standard error how far decoding is, if it takes long.

    Yields a function that takes the number of bytes that are done, over all passes through the streams.
    Verbs that print rows show nothing if the rows go to a terminal too.
    """
    if not sys.stderr.isatty() or (prints_rows and sys.stdout.isatty()):
        yield lambda done: None
        return
    size = sum(trace.streams[stream].size for stream in streams)
    line = Progress(f"{what} {PurePath(trace.source).name or trace.source}", size, passes)
    try:
        yield line.at
    finally:
        line.clear()


def watched(parts: Iterable[Table], at: Callable[[int], None], before: int = 0) -> Iterator[Table]:
    """Pass parts with a column ``offset`` on, and report how far they are in the stream."""
    for part in parts:
        if len(part):
            at(before + int(part["offset"][-1]))
        yield part
