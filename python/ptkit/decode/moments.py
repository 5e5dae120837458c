"""Streams at positions and times: PTWRITEs with their frames, frames at times, rows around a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.calls import call_query, frames_too_large
from ptkit.decode.merge import sorted_by_time
from ptkit.decode.plan import Plan
from ptkit.decode.read import iterate, read
from ptkit.errors import ConfigError
from ptkit.support import memory
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table
from ptkit.table.cells import read_only
from ptkit.table.table import concatenate, from_core

__all__ = ["overlapping", "read_ptwrites", "read_times"]

_FRAME = ("frame", "entry_ip", "import_ip", "depth")
_FRAME_FLAGS = _core.StackFlag.FRAME_KNOWN | _core.StackFlag.ENTRY_KNOWN | _core.StackFlag.INNERMOST
_FRAME_FLAGS |= _core.StackFlag.SYSCALL | _core.StackFlag.INTERRUPT | _core.StackFlag.IMPORT
_EVENT = ("ip", "payload", "payload2", "flags", "tsc", "tsc_error", "tsc_source", "offset", "instruction")
# Columns of PTWRITEs that need no frames.
_OWN = frozenset(
    {"value", "size", "ip_known", "time_known", "time_ns", "symbol", "module", *_EVENT} - {"flags"}
)
_OWN |= {"stream", "cpu", "pid", "tid", "space", "cpu_known", "tid_known", "symbol_offset", "module_offset"}
_PART_ROWS = 1 << 16
_NO_LIMIT = 2**32 - 1  # of `tsc_error`
_ALL_TIMES = 2**64 - 1


# PTWRITEs.


def read_ptwrites(plan: Plan) -> Table:
    """Read the PTWRITE events, with the frames that enclose them.

    Raises
    ------
    OutOfMemoryError, DecodeError
        As for other tables.
    """
    wanted = {"offset", "instruction", *_EVENT}
    names = tuple(name for name in schema_of("events").names("stored") if name in wanted)
    selection = {**plan.selection, "event_kinds": 1 << _core.EventKind.PTWRITE}
    events = read(
        replace(plan, table="events", stored=names, shown=names, selection=selection, by_time=False)
    )
    arrays = _values(events)
    if not _OWN.issuperset(plan.shown):
        frames = _frames_of(plan, events)
        for name in _FRAME:
            arrays[name] = frames[name]
        flags = frames["flags"]
        if not plan.context.annotated:
            # Without code, other branches can come between the packet and the PTWRITE.
            flags = np.where(events["ip_known"], flags, flags & ~np.uint16(_core.StackFlag.INNERMOST))
        arrays["flags"] = arrays["flags"] | flags
    stored = {name: read_only(arrays[name]) for name in plan.stored}
    data = Columns(schema_of("ptwrites"), len(events), stored, events.data.runs, plan.context)
    table = Table(data, columns=plan.shown, errors=events.errors, gaps=events.gaps)
    return sorted_by_time(table) if plan.merges else table


def _values(events: Table) -> dict[str, NDArray[Any]]:
    flag = _core.StackFlag
    arrays = {name: np.array(events[name]) for name in _EVENT[4:]}
    arrays["ip"] = np.array(events["ip"])
    arrays["value"] = np.array(events["payload"])
    arrays["size"] = events["payload2"].astype(np.uint8)
    arrays["flags"] = np.where(events["ip_known"], np.uint16(flag.IP_KNOWN), np.uint16(0))
    arrays["flags"] |= np.where(events["time_known"], np.uint16(flag.TIME_KNOWN), np.uint16(0))
    return arrays


def _frames_of(plan: Plan, events: Table) -> dict[str, NDArray[Any]]:
    """Frames at the top at events, which are ordered by stream."""
    streams = events["stream"]
    positions = []
    for stream in plan.streams:
        of_stream = np.flatnonzero(np.asarray(streams) == stream)
        rows = slice(of_stream[0], of_stream[-1] + 1) if len(of_stream) else slice(0, 0)
        positions.append(
            (events["instruction"][rows].astype(np.uint64), np.array(events["offset"][rows]) + np.uint64(1))
        )
    frames = replace(plan, table="calls", stored=(), selection={}, time=False, raises=False)
    query = call_query(frames)
    try:
        _, arrays, _ = query.frames_at(positions)
    except MemoryError:
        raise frames_too_large(plan, query) from None
    return arrays


# Times.


def read_times(plan: Plan, least: NDArray[np.uint64], most: NDArray[np.uint64]) -> Table:
    """Read what each stream did at times in [least, most], in any order.

    Returns
    -------
    Table
        Rows of ``at_times``, ordered by time as given, then by stream.

    Raises
    ------
    ConfigError
        If rows are selected by what times do not have.
    OutOfMemoryError
        If there are too many.
    """
    others = set(plan.selection) - {"tids", "pids"}
    if others or plan.limits:
        raise ConfigError("at_times: times are given; select streams, processors, threads and processes")
    rows = len(least) * len(plan.streams)
    memory.require_memory(
        f"at_times: {rows:,} rows", 3 * rows * plan.row_bytes, "give fewer times, or one stream"
    )
    query = call_query(replace(plan, table="calls", stored=("tsc",), time=True, selection={}, raises=False))
    order = np.argsort(least, kind="stable")
    # Both have to ascend: of times that are alike, the later end is that of both.
    try:
        count, arrays, runs = query.moments(least[order], np.maximum.accumulate(most[order]))
    except MemoryError:
        raise frames_too_large(plan, query) from None
    plan.after()
    arrays["time"] = read_only(order.astype(np.uint64)[arrays["time"].astype(np.int64)])
    table = from_core("at_times", (count, arrays, runs), columns=plan.shown, context=plan.context)
    kept = table[_of_threads(table, plan.selection)] if plan.selection else table
    return kept[np.argsort(kept.data.arrays["time"], kind="stable")]


def _of_threads(table: Table, selection: dict[str, Any]) -> NDArray[np.bool_]:
    """Rows of some threads or processes."""
    kept = np.ones(len(table), np.bool_)
    for name, wanted in (("tid", selection.get("tids")), ("pid", selection.get("pids"))):
        if wanted is not None:
            known = table.known(name)
            kept &= np.isin(table[name], wanted) & (True if known is None else known)
    return kept


# Rows around a time.


def overlapping(plan: Plan, low: int, high: int) -> Table:
    """Read the rows with a time interval that overlaps [low, high], ordered by stream.

    Raises
    ------
    OutOfMemoryError
        If they do not fit into memory.
    """
    found = [part for stream in plan.streams for part in _of_stream(plan, stream, low, high)]
    if found:
        return concatenate(found)
    nothing = replace(plan, selection={**plan.selection, "time": (low, low)}, by_time=False)
    return read(nothing)


def _of_stream(plan: Plan, stream: int, low: int, high: int) -> list[Table]:
    # Rows that begin before `low` can reach into the interval. An index finds those that are not far before;
    # a row that ends before `low` says that there are no others.
    far = plan.settings.index is not None
    back = max(high - low, _PART_ROWS) if far else low
    while True:
        begin = max(low - back, 0)
        kept, ends_before = _between(plan, stream, (begin, min(high + 1, _ALL_TIMES)), low)
        if begin == 0 or ends_before:
            return kept
        back = min(back * 16, low)


def _between(plan: Plan, stream: int, time: tuple[int, int], low: int) -> tuple[list[Table], bool]:
    """Rows of an interval that do not end before `low`, and whether one does."""
    one = replace(plan, streams=(stream,), selection={**plan.selection, "time": time}, by_time=False)
    kept: list[Table] = []
    ends_before = False
    for part in _parts(one):
        mask = _reaches(part, low)
        ends_before = ends_before or not mask.all()
        rows = part[mask]
        rows.errors, rows.gaps = (
            None if side is None else side[_reaches(side, low)] for side in (part.errors, part.gaps)
        )
        if len(rows) or rows.errors or rows.gaps:
            kept.append(rows)
    return kept, ends_before


def _reaches(table: Table, low: int) -> NDArray[np.bool_]:
    """Rows with a time that do not end before `low`."""
    error = table.data.arrays["tsc_error"]
    ends = table.data.arrays["tsc"] + error.astype(np.uint64)
    known = table.known("tsc")
    reaches = (ends >= np.uint64(low)) | (error == _NO_LIMIT)
    return np.asarray(reaches if known is None else reaches & known)


def _parts(plan: Plan) -> Iterator[Table]:
    return iterate(plan, _PART_ROWS, True)
