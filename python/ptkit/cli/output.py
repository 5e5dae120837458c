"""What the verbs print: rows with errors and gaps at their place, and how far the work is."""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING

from ptkit.cli.plain import say, say_lines
from ptkit.table import Table
from ptkit.trace import Trace

if TYPE_CHECKING:
    from ptkit.capture import recording

PROGRESS_DELAY = 0.5  # seconds before the first line of progress
PROGRESS_INTERVAL = 0.1
RECORDING_DELAY = 1.0
RECORDING_INTERVAL = 1.0
_PLACES = {"errors": "offset", "gaps": "begin"}
_KINDS = {"errors": "error", "gaps": "gap"}


def sides(part: Table) -> Iterator[Table]:
    """The errors and gaps of a part."""
    for side in (part.errors, part.gaps):
        if side is not None and len(side):
            yield side


class Budget:
    """Rows that may still be printed, of all streams together.

    Parameters
    ----------
    limit : int or None
        None: as many as there are.
    """

    def __init__(self, limit: int | None) -> None:
        self.left = limit

    @property
    def spent(self) -> bool:
        """Nothing more is to be printed."""
        return self.left == 0

    def cut(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Pass parts with a column ``offset`` on until the budget is spent."""
        if self.spent:
            return
        for part in parts:
            if self.left is None or len(part) < self.left:
                if self.left is not None:
                    self.left -= len(part)
                yield part
                continue
            yield _first_rows(part, self.left)
            self.left = 0
            return


def _first_rows(part: Table, count: int) -> Table:
    """The first rows, with those errors and gaps that stand before the first row that is left out."""
    if count == len(part):
        return part
    cut = part[:count]
    end = part["offset"][count]
    cut.errors, cut.gaps = part.errors, part.gaps
    if part.errors is not None:
        cut.errors = part.errors[part.errors["offset"] < end]
    if part.gaps is not None:
        cut.gaps = part.gaps[part.gaps["begin"] < end]
    return cut


def counted(count: int, noun: str) -> str:
    """A number and what it counts: ``"1 error"``, ``"0 gaps"``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Losses:
    """Counts the errors and gaps that come up while parts are read."""

    def __init__(self) -> None:
        self.errors = 0
        self.gaps = 0

    def count(self, part: Table) -> Table:
        """Count those of a part, and return it."""
        self.errors += len(part.errors) if part.errors is not None else 0
        self.gaps += len(part.gaps) if part.gaps is not None else 0
        return part

    def counted(self, parts: Iterable[Table]) -> Iterator[Table]:
        """Pass parts on, counting."""
        return map(self.count, parts)

    def report(self, source: str) -> None:
        """Say on standard error what was not decoded: nothing is lost in silence."""
        if self.errors or self.gaps:
            text = f"{counted(self.errors, 'error')} and {counted(self.gaps, 'gap')}"
            hint = f"ptkit info --decode {source} shows them"
            say(f"ptkit: warning: {text}: not everything could be decoded ({hint})", errors=True)


def placed(part: Table, lines: Callable[[Table], list[str]]) -> list[tuple[int, str]]:
    """Errors and gaps of a part as lines, with the stream offset where each stands, in order."""
    notes: list[tuple[int, str]] = []
    for side in sides(part):
        notes += zip(side[_PLACES[side.name]].tolist(), lines(side), strict=True)
    notes.sort(key=lambda note: note[0])
    return notes


def side_lines(part: Table) -> list[tuple[int, str]]:
    """The same in words: ``[error: ...]``, ``[gap: ...]``."""
    return placed(part, lambda side: [f"[{_KINDS[side.name]}: {text}]" for text in side.messages()])


def print_rows(offsets: Sequence[int], lines: Sequence[str | None], notes: Iterable[tuple[int, str]]) -> None:
    """Print rows with notes between them: behind the rows that the packet at the note's offset decided.

    Rows that are None are left out.
    """
    out: list[str | None] = []
    done = 0
    for offset, text in notes:
        place = bisect_right(offsets, offset, lo=done)
        out += lines[done:place]
        out.append(text)
        done = place
    out += lines[done:]
    shown = [line for line in out if line is not None]
    if shown:
        say_lines(shown)


class Progress:
    """A line on standard error that tells how far the work is.

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
        if _is_raw(sys.stderr.fileno()):
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
    """Show on a terminal's standard error what is being done.

    Yields a function that takes a few words; they are gone in the end.
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


def _is_raw(terminal: int) -> bool:
    """Whether a program has taken the terminal for itself, as editors do."""
    import termios

    local_modes: int = termios.tcgetattr(terminal)[3]
    return not local_modes & termios.ICANON


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
    """Pass parts with a column ``offset`` on, telling how far they are in the stream."""
    for part in parts:
        if len(part):
            at(before + int(part["offset"][-1]))
        yield part
