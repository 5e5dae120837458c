"""The calls of all threads around a time, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.cli import selection
from ptkit.cli.frames import FRAME_COLUMNS, Smallest, frame_names
from ptkit.cli.output.durations import Durations
from ptkit.cli.output.json_rows import JsonRows, json_columns
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.output.terminal import print_text
from ptkit.cli.stacks import fit, indentation, line_width, note
from ptkit.errors import ConfigError
from ptkit.support.text import counted, shortened
from ptkit.table import Table
from ptkit.trace import Trace
from ptkit.trace.stacks_at import overlap_others

__all__ = ["print_around"]

_ROWS = 65536
_DEFAULT_WINDOW = ("1", "us")
_DEFAULT_TICKS = 1000  # where the clock is not known
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_LEAST_COLUMN = 28  # of a thread
_MOST_THREADS = 8
_TIME_COLUMN = 14
_LAST_TSC = 2**64 - 1
_MOST_OPEN = 40  # open frames of a thread that are printed


@dataclass
class _Moment:
    """Frame, open frames and calls of one stream, to be printed.

    Attributes
    ----------
    stream : int
    at : Table
        Its row of ``at_times``.
    open : list of str
        Functions that were open, outermost first.
    base : int or None
        Depth of the outermost of them.
    frames : Table or None
        Calls that began or ended within the window, those next to the time; None: there are none.
    count : int
        How many there are.
    """

    stream: int
    at: Table
    open: list[str]
    base: int | None
    frames: Table | None
    count: int


@dataclass(frozen=True)
class _Line:
    """A begin or an end of a call within the window."""

    low: int  # TSC ticks
    error: int
    column: int
    begins: bool
    name: str
    depth: int


def print_around(trace: Trace, options: argparse.Namespace, chosen: dict[str, Any], losses: Losses) -> int:
    """Print the open functions of each thread at a time, and the calls around it; how many threads."""
    time = _time(trace, options)
    window = _window(trace, options.window)
    low, high = max(time - window, 0), min(time + window, _LAST_TSC - 1)
    trace.open_parts.times.check(low, high + 1, "--around takes s, ms, us, ns and %, too: --around 10ms")
    owners = {name: chosen[name] for name in ("stream", "cpu", "tid", "pid") if name in chosen}
    streams = selection.chosen_streams(trace, options)
    at = trace.at_times([time], clock="tsc", **owners)
    limit = None if options.all else options.limit
    columns = json_columns("calls") if options.json else []
    moments = _moments(trace, at, streams, (low, high), limit, columns, losses, options)
    if not moments:
        note(options, f"no call is open at TSC {time:,}, and none begins or ends near it")
    if options.json:
        _print_json(trace, moments)
    elif moments:
        _print_side_by_side(trace, moments, time, (low, high), options, limit)
    return len(moments)


def _time(trace: Trace, options: argparse.Namespace) -> int:
    """The time in ticks, by the clock that it is given by."""
    if options.clock is None:
        return selection.tick(trace, options.around, "--around")
    number, unit = options.around
    if unit == "%":
        raise ConfigError(f"--clock {options.clock}: {number}% is no time of a clock: give s, ms, us or ns")
    try:
        ns = int(Decimal(number.replace(",", "")) * _NANOSECONDS[unit or "ns"])
    except InvalidOperation:
        raise ConfigError(f"--around {number}: times of --clock {options.clock} are decimal") from None
    first, _ = trace.open_parts.clocks.intervals([ns], options.clock)
    return int(first[0])


def _window(trace: Trace, moment: selection.Moment) -> int:
    """Half the length of the window in ticks."""
    if moment is None:
        if not trace.open_parts.times.knows_seconds:
            return _DEFAULT_TICKS
        moment = _DEFAULT_WINDOW
    return selection.length(trace, moment, "--window")


def _moments(
    trace: Trace,
    at: Table,
    streams: Sequence[int],
    window: tuple[int, int],
    limit: int | None,
    columns: list[str],
    losses: Losses,
    options: argparse.Namespace,
) -> list[_Moment]:
    """Read the calls of the window, in one pass over all streams."""
    rows = {int(stream): at[row : row + 1] for row, stream in enumerate(at["stream"].tolist())}
    chains = {stream: _Chain(row.named("frame")[0], options) for stream, row in rows.items()}
    kept = {stream: Smallest(limit) for stream in rows}
    columns = list(dict.fromkeys([*FRAME_COLUMNS, *columns]))
    low, high = window
    with decoding(trace, streams=streams):
        query = {"stream": list(streams), "columns": columns, "time": (low, high + 1)}
        parts = trace.iter_calls(rows=_ROWS, whole_calls=True, **query)  # type: ignore[arg-type]
        for part in losses.counted(parts):
            if not len(part):  # errors and gaps alone
                continue
            order = np.argsort(part["id"], kind="stable")
            for stream in np.unique(part["stream"]).tolist():
                if stream in rows:
                    chains[stream].follow(part, order)
                    _keep(kept[stream], part[part["stream"] == stream], window)
    found = []
    for stream, row in rows.items():
        frames = kept[stream].rows()
        if frames is not None or chains[stream].frames:
            chain = chains[stream]
            found.append(_Moment(stream, row, chain.names(), chain.base, frames, kept[stream].count))
    return found


class _Chain:
    """The open frames of a stream, found as they end: innermost first."""

    def __init__(self, innermost: int | None, options: argparse.Namespace) -> None:
        self._next = innermost
        self._options = options
        self.frames: list[Table] = []

    def follow(self, part: Table, order: NDArray[np.intp]) -> None:
        """Find frames in a part, of which `order` has the rows by number."""
        numbers = np.asarray(part["id"])[order]
        while self._next is not None:
            position = int(np.searchsorted(numbers, self._next))
            if position == len(numbers) or numbers[position] != self._next:
                return
            row = int(order[position])
            frame = part[row : row + 1]
            self.frames.append(frame)
            self._next = frame.named("parent")[0] if len(self.frames) < _MOST_OPEN else None

    @property
    def base(self) -> int | None:
        """Depth of the outermost frame that was found."""
        return int(self.frames[-1]["depth"][0]) if self.frames else None

    def names(self) -> list[str]:
        """Functions, outermost first; of deep stacks, how many are left out."""
        names = [name for frame in reversed(self.frames) for name in frame_names(frame, self._options)]
        left_out = (self.base or 0) if len(self.frames) == _MOST_OPEN else 0
        return [f"[{counted(left_out, 'more frame')}]", *names] if left_out > 0 else names


def _keep(kept: Smallest, frames: Table, window: tuple[int, int]) -> None:
    """Keep calls that begin or end in the window, those next to its middle first."""
    middle = np.uint64((window[0] + window[1]) // 2)
    never = np.uint64(_LAST_TSC)
    far = []
    for name, known in (("tsc", "time_known"), ("end_tsc", "end_time_known")):
        times = np.asarray(frames[name])
        inside = np.asarray(frames[known])
        inside = inside & (times >= np.uint64(window[0])) & (times <= np.uint64(window[1]))
        distance = np.where(times < middle, middle - times, times - middle)
        far.append(np.where(inside, distance, never))
    nearest = np.minimum(*far)
    inside = nearest < never
    if inside.any():
        kept.add(frames[inside], nearest[inside])


def _print_json(trace: Trace, moments: list[_Moment]) -> None:
    """Print a row of ``at_times`` for each thread, and its calls."""
    JsonRows(trace, "calls").print_header()
    stacks, calls = JsonRows(trace, "at_times"), JsonRows(trace, "calls")
    for one in moments:
        stacks.print_lines(one.at, [])
        if one.frames is not None:
            shown = one.frames[json_columns("calls")]
            calls.print_lines(shown[np.argsort(shown["id"], kind="stable")], [])


def _print_side_by_side(
    trace: Trace,
    moments: list[_Moment],
    time: int,
    window: tuple[int, int],
    options: argparse.Namespace,
    limit: int | None,
) -> None:
    width = line_width(options)
    fitting = _MOST_THREADS if width is None else max((width - _TIME_COLUMN) // (_LEAST_COLUMN + 3), 1)
    # Those that did something come first where not all fit.
    active = sorted(moments, key=lambda one: (one.count == 0, one.stream))[:fitting]
    shown = sorted(active, key=lambda one: (trace.streams[one.stream].tid or 0, one.stream))
    column = None if width is None else (width - _TIME_COLUMN) // max(len(shown), 1) - 3
    table = _Columns(None if column is None else column * len(shown))
    table.add("", [_title(trace, one) for one in shown])
    for level in range(max((len(one.open) for one in shown), default=0)):
        cells = [_open_cell(one, level, column) for one in shown]
        table.add("open" if level == 0 else "", cells)
    lines = _lines(shown, window, options)
    nearest = sorted(range(len(lines)), key=lambda row: abs(lines[row].low - time))[:limit]
    durations = Durations(trace)
    for line, unordered in _in_order([lines[row] for row in sorted(nearest)]):
        offset = durations.text(abs(line.low - time))
        sign = "-" if line.low < time else "+"
        cells = [""] * len(shown)
        indent = _indent(line.depth, column)
        cells[line.column] = f"{indent}{'>' if line.begins else '<'} {line.name}"
        table.add(f"{'~' if unordered else ''}{sign}{offset}", cells)
    table.print()
    if len(nearest) < len(lines) or any(
        one.frames is not None and len(one.frames) < one.count for one in shown
    ):
        note(
            options, "calls that are further from the time are left out: --limit N prints N lines, --all all"
        )
    if len(shown) < len(moments):
        left_out = counted(len(moments) - len(shown), "more thread")
        note(options, f"{left_out}: choose by --tid, --pid or --stream")


def _title(trace: Trace, one: _Moment) -> str:
    tid = one.at.named("tid")[0]
    name = shortened(trace.streams[one.stream].name) or f"stream {one.stream}"
    return name if tid is None or str(tid) in name else f"{name}, tid {tid}"


def _open_cell(one: _Moment, level: int, column: int | None) -> str:
    """An open function; the innermost one has "?" if others may have been open above it."""
    if level >= len(one.open):
        return ""
    is_last = level + 1 == len(one.open)
    mark = " ?" if is_last and not one.at["innermost"][0] else ""
    return f"{_indent(level, column)}{one.open[level]}{mark}"


def _indent(level: int, column: int | None) -> str:
    """Blanks before a name: half as many in a narrow column, so that more is left of names."""
    blanks = indentation(level, 0, column)
    if column is None or column >= 2 * _LEAST_COLUMN:
        return blanks
    return blanks.lstrip().rjust(len(blanks) // 2)


def _lines(shown: list[_Moment], window: tuple[int, int], options: argparse.Namespace) -> list[_Line]:
    """Begins and ends of calls within the window, those of one thread in order."""
    lines = []
    for column, one in enumerate(shown):
        if one.frames is None:
            continue
        names = ("tsc", "tsc_error", "end_tsc", "end_tsc_error", "tid", "id", "depth")
        rows = list(zip(*map(one.frames.named, names), frame_names(one.frames, options), strict=True))
        lowest = min(row[6] for row in rows) if one.base is None else one.base
        for tid in dict.fromkeys(row[4] for row in rows):
            lines += _of_thread([row for row in rows if row[4] == tid], column, lowest)
    return [line for line in lines if line.low is not None and window[0] <= line.low <= window[1]]


def _of_thread(rows: list[tuple[Any, ...]], column: int, lowest: int) -> list[_Line]:
    """A call ends before the next one that is no callee of it begins."""
    lines: list[_Line] = []
    stack: list[tuple[Any, ...]] = []

    def end(row: tuple[Any, ...]) -> None:
        lines.append(_Line(row[2], row[3], column, False, row[7], max(row[6] - lowest, 0)))

    # Frames below the first one became known last.
    for row in sorted(rows, key=lambda row: (row[6] >= 0, row[6] if row[6] < 0 else row[5])):
        while stack and stack[-1][6] >= row[6]:
            end(stack.pop())
        lines.append(_Line(row[0], row[1], column, True, row[7], max(row[6] - lowest, 0)))
        stack.append(row)
    while stack:
        end(stack.pop())
    return lines


def _in_order(lines: list[_Line]) -> list[tuple[_Line, bool]]:
    """Lines by time, and whether a line of another thread may come first."""
    ordered = sorted(lines, key=lambda line: line.low)
    low = np.array([line.low for line in ordered], np.uint64)
    error = np.array([line.error for line in ordered], np.uint64)
    columns = np.array([line.column for line in ordered], np.uint32)
    return list(zip(ordered, overlap_others(low, low + error, columns).tolist(), strict=True))


class _Columns:
    """Prints lines of columns; `width`: what they may have together, None: names are whole."""

    def __init__(self, width: int | None) -> None:
        self._width = width
        self._lines: list[tuple[str, list[str]]] = []

    def add(self, head: str, cells: list[str]) -> None:
        """Add a line."""
        self._lines.append((head, cells))

    def print(self) -> None:
        """Print the lines; columns are as wide as their widest cell, and the widest ones are cut."""
        widths = [max(map(len, column)) for column in zip(*(cells for _, cells in self._lines), strict=True)]
        if self._width is not None:
            widths = _within(widths, self._width)
        for head, cells in self._lines:
            texts = [fit(cell, 0, width).ljust(width) for cell, width in zip(cells, widths, strict=True)]
            print_text(f"{head:>{_TIME_COLUMN}} | {' | '.join(texts)}".rstrip())


def _within(widths: Sequence[int], most: int) -> list[int]:
    """Widths of columns that are `most` together; what narrow ones do not need is left to the others."""
    found = list(widths)
    left = most
    for count, column in zip(
        range(len(found), 0, -1), sorted(range(len(found)), key=found.__getitem__), strict=True
    ):
        found[column] = min(found[column], left // count)
        left -= found[column]
    return found
