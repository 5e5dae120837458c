"""Frames that are printed: the first ones by entry, or those with most instructions, in bounded memory."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit._core import CallKind
from ptkit.cli import common
from ptkit.cli.outer_frames import OUTER, OuterFrames
from ptkit.cli.output.progress import decoding
from ptkit.cli.output.rows import Losses
from ptkit.cli.stacks import entry_names
from ptkit.decode import Query
from ptkit.errors import ConfigError
from ptkit.support.text import is_memory
from ptkit.table import Table
from ptkit.table.table import concatenate
from ptkit.trace import Trace

__all__ = [
    "FRAME_COLUMNS",
    "Smallest",
    "Window",
    "first_frames",
    "frame_names",
    "frames_of_call",
    "slowest_frames",
]

#: Columns that a printed call is made of.
FRAME_COLUMNS = [
    "id",
    "parent",
    "entry_ip",
    "import_ip",
    "depth",
    "how",
    "end_how",
    "flags",
    "instructions",
    "tsc",
    "tsc_error",
    "end_tsc",
    "end_tsc_error",
    "stream",
    "tid",
    "space",
]
_ROWS = 65536
# Frames that are kept for a line: lines stand for many calls that did the same.
_FRAMES_PER_LINE = 256
_ANONYMOUS = "(anonymous namespace)"
_UNNAMED = {CallKind.SYSCALL: "[syscall]", CallKind.INTERRUPT: "[interrupt]"}


@dataclass
class Window:
    """Frames of a stream in the order of entry.

    Attributes
    ----------
    frames : Table
        The first ones.
    count : int
        How many there are.
    counted : bool
        False: there may be more.
    """

    frames: Table
    count: int
    counted: bool


class Smallest:
    """Keeps the rows with the smallest keys of parts that come one after the other."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._parts: list[tuple[Table, NDArray[Any]]] = []
        self._kept = 0
        self.count = 0

    def add(self, part: Table, keys: NDArray[Any]) -> None:
        """Add rows; memory holds twice as many as are kept, and a part."""
        self.count += len(part)
        self._parts.append((part, keys))
        self._kept += len(part)
        if self._most is not None and self._kept > 2 * max(self._most, _ROWS):
            self._parts = [self._cut()]
            self._kept = len(self._parts[0][0])

    def rows(self) -> Table | None:
        """The rows in the order of their keys."""
        return self._cut()[0] if self._parts else None

    def _cut(self) -> tuple[Table, NDArray[Any]]:
        keys = np.concatenate([keys for _, keys in self._parts])
        order = np.argsort(keys, kind="stable")[: self._most]
        return concatenate([part for part, _ in self._parts])[order], keys[order]


def slowest_frames(
    trace: Trace, most: int, columns: list[str], chosen: dict[str, Any], losses: Losses
) -> Table:
    """The frames with most instructions, of all streams, in that order; counts what was not decoded."""
    kept = Smallest(most)
    for part in losses.counted(_parts(trace, columns, chosen)):
        keys = ~np.asarray(part["instructions"])
        first = np.argsort(keys, kind="stable")[:most]
        kept.add(part[first], keys[first])
    rows = kept.rows()
    return _no_frames(trace, columns, chosen) if rows is None else rows


def first_frames(
    trace: Trace,
    lines: int | None,
    columns: list[str],
    chosen: dict[str, Any],
    *,
    depth: int | None,
    folds: bool,
    losses: Losses,
) -> Window:
    """The first frames of a stream by entry.

    Parameters
    ----------
    trace : Trace
    lines : int or None
        Lines that they are for; None: all frames.
    columns : list of str
    chosen : dict
        The selection, with one stream. Above frames that are selected by address, all frames are.
    depth : int or None
        Levels of frames: from the first frame of the trace, or from the selected ones.
    folds : bool
        A line may stand for many frames.
    losses : Losses
        Counts what was not decoded.
    """
    most = None if lines is None else lines * (_FRAMES_PER_LINE if folds else 1)
    kept, counted = Smallest(most), True
    if not any(chosen.get(name) for name in OUTER):
        for part in losses.counted(_parts(trace, columns, chosen)):
            found = part if depth is None else part[np.asarray(part["depth"]) < depth]
            kept.add(found, np.asarray(found["id"]))
    else:
        tops = OuterFrames(None if most is None else max(most, _ROWS))
        for part in losses.counted(_parts(trace, ["id", "depth", "tid"], chosen)):
            tops.add(part)
        counted = not tops.left_out
        above = {name: value for name, value in chosen.items() if name not in OUTER}
        for part in tops.with_those_above(_parts(trace, columns, above), depth):
            kept.add(part, np.asarray(part["id"]))
    return _window(trace, kept, columns, chosen, counted=counted)


def frames_of_call(
    trace: Trace,
    number: int,
    lines: int | None,
    columns: list[str],
    chosen: dict[str, Any],
    *,
    depth: int | None,
    folds: bool,
    losses: Losses,
) -> tuple[int, Window]:
    """A call with all that it called, and its stream.

    Parameters
    ----------
    number : int
        Of the call in ``trace.calls()`` of the chosen streams and threads.
    trace, lines, columns, chosen, depth, folds, losses
        As for `first_frames`; `chosen` selects no functions.

    Raises
    ------
    ConfigError
        If there is no such call.
    """
    most = None if lines is None else lines * (_FRAMES_PER_LINE if folds else 1)
    before = 0  # numbers of the streams before; of calls outside a window, there are no rows
    for stream in trace.open_parts.scope.streams(Query(**chosen)):  # type: ignore[typeddict-item]
        here = chosen | {"stream": stream}
        tops, count = OuterFrames(1), 0
        for part in losses.counted(_parts(trace, ["id", "depth", "tid"], here)):
            count = max(count, int(part["id"].max()) + 1) if len(part) else count
            found = part[np.asarray(part["id"]) == number - before]
            if len(found):
                tops.add(found)
                kept = Smallest(most)
                for above in tops.with_those_above(_parts(trace, columns, here), depth):
                    kept.add(above, np.asarray(above["id"]))
                return stream, _window(trace, kept, columns, here, counted=True)
        before += count
    there_are = f"they are 0 to {before - 1:,}" if before else "there are none"
    cut = [f"--{name}" for name in ("time", "instructions") if chosen.get(name) is not None]
    if cut and before:
        there_are += f", and not all are within {cut[0]}"
    raise ConfigError(f"no call has the number {number:,}: {there_are}")


def _window(
    trace: Trace, kept: Smallest, columns: list[str], chosen: dict[str, Any], *, counted: bool
) -> Window:
    rows = kept.rows()
    return Window(_no_frames(trace, columns, chosen) if rows is None else rows, kept.count, counted)


def _no_frames(trace: Trace, columns: list[str], chosen: dict[str, Any]) -> Table:
    """A table without rows: of a time before the trace."""
    return trace.calls(columns=columns, **chosen)[:0]


def _parts(trace: Trace, columns: list[str], chosen: dict[str, Any]) -> Iterator[Table]:
    """Selected frames in the order in which they end, with progress."""
    streams = list(trace.open_parts.scope.streams(Query(**chosen)))  # type: ignore[typeddict-item]
    with decoding(trace, streams=streams):
        for stream in streams:
            here = chosen | {"stream": stream}
            if "frames" in chosen:
                names = list(dict.fromkeys([*columns, "id", "parent", "depth", "flags"]))
                yield _in_order_of_ends(trace.calls(columns=names, **here))
            else:
                yield from trace.iter_calls(rows=_ROWS, columns=columns, **here)


def _in_order_of_ends(calls: Table) -> Table:
    """A frame that is above another one ends before it; those above it have numbers above its own."""
    numbers, depths = np.asarray(calls["id"]), np.asarray(calls["depth"])
    last = numbers.copy()  # number of the last frame above each, or its own
    below = np.searchsorted(numbers, np.asarray(calls["parent"]))
    below = np.where(np.asarray(calls["parent_known"]) & (below < len(numbers)), below, len(numbers))
    for row in range(len(numbers) - 1, -1, -1):
        parent = below[row]
        if parent < row and last[parent] < last[row]:
            last[parent] = last[row]
    return calls[np.lexsort((-depths, last))]


def frame_names(frames: Table, options: argparse.Namespace) -> list[str]:
    """Function of each frame: its name, ``file!RVA`` without a symbol, or words for code that is not seen.

    With ``--rva``, module and RVA of each come first.
    """
    functions = common.function_names(options, frames, "entry_symbol")
    columns = ("entry_ip", "entry_module", "entry_module_offset", "how", "entry_known")
    values = zip(functions, *(frames[name].tolist() for name in columns), strict=True)
    names = [_name(*value) for value in values]
    return entry_names(names, frames) if options.rva else names


def _name(symbol: str | None, ip: int, module: str | None, rva: int, how: int, known: bool) -> str:
    if symbol is not None:
        return symbol if "(" in symbol.replace(_ANONYMOUS, "") else f"{symbol}()"
    if not known:
        return _UNNAMED.get(CallKind(how), "[unknown]")
    return f"{ip:#x}()" if module is None or is_memory(module) else f"{_core.generated_name(module, rva)}()"
