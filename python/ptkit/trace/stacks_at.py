"""Frames and rows of streams at one moment, and at the times of a log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.schema import Column, schema_of
from ptkit.table import Columns, Table
from ptkit.table.cells import read_only

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.trace.open_parts import OpenParts

__all__ = ["StacksAt", "overlap_others"]

_TABLES = ("branches", "blocks", "instructions", "events")
_NO_LIMIT = 2**32 - 1
_UNORDERED = Column(
    "unordered",
    np.dtype(np.bool_),
    "",
    "its order with the rows of another stream is not known: their intervals overlap",
)


class StacksAt(ABC):
    """Methods of `Trace` about moments; docs/moments.md has the rules."""

    _open: OpenParts

    @abstractmethod
    def _plan(self, table: str, query: Query, bound: Query | None = None, **more: Any) -> _decode.Plan: ...

    def ptwrites(self, **query: Unpack[Query]) -> Table:
        """Every PTWRITE: the value, where and when it was written, and the frame that wrote it.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`; ``kind`` and ``taken`` select nothing here.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``value`` (uint64, the operand), ``size`` (uint8, bytes of the operand: 4 or 8), ``ip`` (uint64,
            address of the instruction; see ``ip_known``), ``frame`` (uint64, ``id`` of the enclosing frame in
            `calls` of the same streams; see ``frame_known``), ``entry_ip`` (uint64, address of the enclosing
            function; see ``entry_known``), ``import_ip`` (uint64, address: of the branch through the import
            slot of an imported function; see ``is_import``), ``depth`` (int32, of that frame), ``flags``
            (uint16, `ptkit.StackFlag`), ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks),
            ``tsc_source`` (uint8, `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that
            reports it), ``instruction`` (int64, instructions of the stream before it). On access
            ``function``, the name of the enclosing function.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        The rows are the events of kind PTWRITE. Annotations of DRAKVUF (docs/formats.md) are among them; they
        have no ``ip``. A packet without an IP (FUPonPTW was 0) is that of the next PTWRITE instruction on the
        path. Frames take a second pass; name other columns to do without. Intel SDM vol. 3, "Intel Processor
        Trace": "PTWRITE".

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.open(bytes.fromhex("0282" * 8 + "0223 0232 2a00000000000000"), cpu="6/158/10")
        >>> trace.ptwrites()["value"].tolist()
        [42]
        """
        return _decode.read_ptwrites(self._plan("ptwrites", query))

    def around(  # type: ignore[misc]  # `time` is that of no query
        self,
        time: float,
        window: float,
        *,
        clock: str = "tsc",
        table: str = "branches",
        **query: Unpack[Query],
    ) -> Table:
        """Rows of all streams around a time: those that can have happened then, in the order of time.

        Parameters
        ----------
        time : int or float
            The time.
        window : int or float
            Rows are given if they can have happened in [time - window, time + window].
        clock : str
            Of both: ``"tsc"``, TSC ticks; ``"seconds"`` from the start of the trace; ``"ns"``, nanoseconds of
            the recorder's clock, as in column ``time_ns``; ``"percent"`` of the span of the trace;
            ``"monotonic"`` and ``"realtime"``, nanoseconds of CLOCK_MONOTONIC and CLOCK_REALTIME.
        table : str
            ``"branches"``, ``"blocks"``, ``"instructions"`` or ``"events"``.
        **query
            See `ptkit.decode.Query`; ``offset``, ``instructions`` and ``order`` cannot be given.

        Returns
        -------
        Table
            Rows of that table of which the interval [``tsc``, ``tsc`` + ``tsc_error``] overlaps the window,
            ordered by ``tsc``, those of one stream in its order. One more column, ``unordered`` (bool): the
            row's interval overlaps that of a row of another stream, so that which came first is not known.
            Between two rows of different streams of which one has ``unordered`` False, the order is that of
            the table. Its ``errors`` and ``gaps`` are those of the window.

        Raises
        ------
        ConfigError
            If the window lies outside the trace, or the trace cannot convert the clock.
        SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Memory holds the rows of the window. Where the trace has an index (`index`), only the parts that may
        have such rows are decoded.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> rows = trace.around(50, 10, clock="percent", columns=["to_symbol", "tid"])
        >>> int(rows["unordered"].sum())
        0
        """
        check_choice("table", table, _TABLES)
        if any(query.get(name) is not None for name in ("offset", "instructions", "order")):
            raise ConfigError(
                "around() has no offset=, instructions= and order=: rows are those of the window, by time"
            )
        if not window >= 0:
            raise ConfigError(f"window={window!r} must not be negative")
        (low,), (high,) = (
            ends.tolist() for ends in self._open.clocks.intervals([time], clock, window, window)
        )
        window_of = Query(time=(low, min(high + 1, LAST_ADDRESS)))
        plan = self._plan(table, query, window_of)  # type: ignore[arg-type]
        schema = schema_of(table)
        stored = {*plan.stored, "tsc", "tsc_error", "flags"}
        names = tuple(name for name in schema.names("stored", "on demand") if name in stored)
        rows = _decode.overlapping(replace(plan, stored=names, time=True), low, high)
        return _marked(_decode.sorted_by_time(rows))

    def at_times(
        self, times: ArrayLike, *, clock: str = "monotonic", resolution: float = 0, **query: Unpack[Query]
    ) -> Table:
        """Frame and rows of each stream at times, as those of the lines of a log.

        Parameters
        ----------
        times : array_like of int or float, shape (n,)
            The times, in any order.
        clock : str
            As for `around`: ``"monotonic"``, ``"realtime"``, ``"tsc"``, ``"ns"``, ``"seconds"`` or
            ``"percent"``.
        resolution : int or float
            Of the times, by the same clock: the true times are in [time, time + resolution]. Times that a log
            has in milliseconds, as nanoseconds, have 999,999.
        **query
            Of `ptkit.decode.Query`: ``columns``, ``stream``, ``cpu``, ``tid``, ``pid``, ``threads``.

        Returns
        -------
        Table
            A row for each time and stream, ordered by time as given, then by stream; with ``tid`` or ``pid``,
            rows at which that thread or process was executed. Columns of shape (rows,):
            ``time`` (uint64, index in `times`), ``tsc`` (uint64, TSC ticks) and ``tsc_error`` (uint32, TSC
            ticks: the time is in [tsc, tsc + tsc_error]), ``frame`` (uint64, ``id`` of the enclosing frame in
            `calls` of the same streams; see ``frame_known``), ``entry_ip`` (uint64, address of its function;
            see ``entry_known``), ``import_ip`` (uint64, address: of the branch through the import slot of an
            imported function; see ``is_import``), ``depth`` (int32, of that frame), ``flags`` (uint16,
            `ptkit.StackFlag`),
            ``branch`` and ``end_branch`` (int64: so many branches of the stream certainly, and at most, came
            before the time), ``instruction`` and ``end_instruction`` (int64, the same of instructions),
            ``offset`` and ``end_offset`` (uint64, stream bytes: the packets of the last branch before and of
            the first one after). On access ``function``, the name of the enclosing function.

        Raises
        ------
        ConfigError
            If the trace cannot convert the clock; the message says what to do. If rows are selected by what
            times do not have.
        ColumnError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        The frame is the innermost one that was certainly open. ``innermost`` is True if no frame above it can
        have been open; else the rows ``branches(stream=...)[branch:end_branch]`` may have happened before or
        after the time, and call functions. Before the first and after the last time of a stream, ``covered``
        is False and there is no frame. A thread that waits is in the system call or function that waits.
        docs/moments.md says how exact clocks are.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> middle = trace.at_times([50.0], clock="percent")
        >>> len(middle) == len(trace.streams)
        True
        """
        if not resolution >= 0:
            raise ConfigError(f"resolution={resolution!r} must not be negative")
        least, most = self._open.clocks.intervals(times, clock, 0, resolution)
        if len(least) and int((most - least).max()) >= _NO_LIMIT:
            raise ConfigError(f"resolution={resolution!r} is too coarse: 2**32 TSC ticks at most")
        return _decode.read_times(self._plan("at_times", query), least, most)


def _marked(table: Table) -> Table:
    """Add the column ``unordered`` to rows that are ordered by time."""
    low = np.asarray(table.data.arrays["tsc"])
    error = table.data.arrays["tsc_error"]
    high = np.where(error == _NO_LIMIT, np.uint64(2**64 - 1), low + error.astype(np.uint64))
    arrays = dict(table.data.arrays)
    arrays["unordered"] = read_only(overlap_others(low, high, np.asarray(table["stream"])))
    schema = replace(table.data.schema, columns={**table.data.schema.columns, "unordered": _UNORDERED})
    data = Columns(schema, len(table), arrays, table.data.runs, table.data.context)
    return Table(data, columns=(*table.columns, "unordered"), errors=table.errors, gaps=table.gaps)


def overlap_others(
    low: NDArray[np.uint64], high: NDArray[np.uint64], streams: NDArray[np.uint32]
) -> NDArray[np.bool_]:
    """Which intervals overlap that of a row of another stream; rows ascend by `low`."""
    found = np.zeros(len(low), np.bool_)
    for stream in np.unique(streams).tolist():
        own, others = np.flatnonzero(streams == stream), np.flatnonzero(streams != stream)
        if not len(others):
            return found
        # Of the rows of other streams: those before, of which the latest end counts, and the next one.
        before = np.searchsorted(others, own)
        ends = np.maximum.accumulate(high[others])
        found[own] = (before > 0) & (ends[np.maximum(before, 1) - 1] >= low[own])
        starts = low[others[np.minimum(before, len(others) - 1)]]
        found[own] |= (before < len(others)) & (starts <= high[own])
    return found
