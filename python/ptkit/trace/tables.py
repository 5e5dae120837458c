"""The tables of a trace, or of a part of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.errors import ConfigError
from ptkit.table import Table
from ptkit.trace.parts import Parts, with_targets
from ptkit.trace.phases import in_bins

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Unpack


class Tables(Parts):
    """Tables of `Trace` as a whole: one method for every table."""

    _sides: tuple[Table, Table] | None = None

    def packets(self, **query: Unpack[Query]) -> Table:
        """Every packet from the first PSB of each stream on; opened with ``sync=False``, from its begin.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``offset`` (uint64, bytes), ``size`` (uint32, bytes), ``kind`` (uint8, `ptkit.PacketKind`),
            ``flags`` (uint8, `ptkit.PacketFlag`), ``ip`` (uint64, address, rebuilt; see ``ip_known``),
            ``payload`` and ``payload2`` (uint64, by kind: docs/tables.md), ``tsc`` (uint64, TSC ticks),
            ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8, `ptkit.TimeSource`). A run of PAD is one
            row. Bytes that are no packet are rows of ``.errors``.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Packet Definitions"; for times, "Timing".
        """
        return _decode.read(self._plan("packets", query))

    def branches(self, **query: Unpack[Query]) -> Table:
        """Every branch, and every conditional that fell through (its ``to_ip`` is the next instruction).

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``from_ip``, ``to_ip`` (uint64, address; see ``from_known``, ``to_known``), ``kind`` (uint8,
            `ptkit.BranchKind`), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks, earliest possible), ``tsc_error`` (uint32, TSC ticks: the true time
            lies in [tsc, tsc + tsc_error]), ``tsc_source`` (uint8, `ptkit.TimeSource`),
            ``offset`` (uint64, stream bytes: the packet that decided it).
            On demand: ``instruction`` and ``number`` (int64, instructions and branches of the stream before
            it), ``tsc_estimate`` (uint64, TSC ticks: a likely time within the interval).

        Raises
        ------
        ConfigError, SymbolError, ColumnError
            If an argument is out of range, or there is no such symbol or column.
        DecodeError
            With ``errors="raise"``: the first error.
        OutOfMemoryError
            If the rows take more memory than this process may take; use `iter_branches`, or fewer columns.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Return Compression", "Deferred TIPs".
        Times of branches in a TNT packet are wider than those of packets: docs/time.md.
        """
        return _decode.read(self._plan("branches", query))

    def blocks(self, **query: Unpack[Query]) -> Table:
        """Runs of instructions that were executed one after the other, each ended by a branch or an event.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``ip`` (uint64, address of the first instruction), ``size`` (uint32, bytes), ``instructions``
            (int32), ``mode`` (uint8, bits: 16, 32 or 64), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that decided how it ends).
            On demand: ``instruction`` (int64, instructions of the stream before it), ``tsc_estimate``
            (uint64, TSC ticks: a likely time within the interval).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Mode Packets" (for ``mode`` and
        ``in_tx``). Instructions after the last packet are not given: they may not have been executed.
        """
        return _decode.read(self._plan("blocks", query))

    def instructions(self, **query: Unpack[Query]) -> Table:
        """Every instruction that was executed.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``ip`` (uint64, address), ``size`` (uint8, bytes), ``cls`` (uint8, `ptkit.InsnClass`), ``mode``
            (uint8, bits: 16, 32 or 64), ``flags`` (uint8, `ptkit.RowFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that decided how its block
            ends).
            On demand: ``instruction`` (int64, instructions of the stream before it), ``tsc_estimate``
            (uint64, TSC ticks: a likely time within the interval).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "TNT Packet", "Mode Packets".
        """
        return _decode.read(self._plan("instructions", query))

    def events(self, *, ticks: bool = False, **query: Unpack[Query]) -> Table:
        """Every event: tracing enabled and disabled, interrupts, transactions, PTWRITE, ...

        Parameters
        ----------
        ticks : bool
            Also a row for every timing packet.
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``kind`` (uint8, `ptkit.EventKind`), ``ip`` (uint64, address; see ``ip_known``), ``payload``,
            ``payload2``, ``payload3`` (uint64, by kind: docs/tables.md), ``flags`` (uint16,
            `ptkit.EventFlag`),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``offset`` (uint64, stream bytes: the packet that reports the event),
            ``instruction`` (int64, instructions of the stream before the event), ``order`` (uint64, position
            among events, errors and gaps of the stream). On demand: ``tsc_estimate`` (uint64, TSC ticks: a
            likely time within the interval).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Mode Packets", "Event Trace", "PTWRITE", "PEBS",
        "Power Event Tracing".
        """
        return _decode.read(self._plan("events", query, ticks=ticks))

    def edges(
        self, *, by: str | None = None, bins: int | Sequence[int] | None = None, **query: Unpack[Query]
    ) -> Table:
        """Every edge: how often a branch went from its source to its target; address spaces are never merged.

        Parameters
        ----------
        by : str, optional
            Count the edges of each phase of the trace, or of the selected time, in one pass: ``"time"``, or
            ``"instructions"``, the number of instructions that the stream retired before the branch (column
            ``instruction`` of `branches`).
        bins : int or sequence of int, optional
            Number of phases, which are equally long, or their limits: ascending TSC ticks or numbers of
            instructions, one more than there are phases.
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            Columns of shape (rows,):
            ``from_ip``, ``to_ip`` (uint64, address), ``kind`` (uint8, `ptkit.BranchKind`), ``count``
            (int64), ``space`` (uint32, index in ``trace.info.spaces``), ordered by space, from, to and
            kind; ``flags`` (uint8, `ptkit.RowFlag`). Branches of which an end is not known are not counted,
            but for calls and jumps through import slots (``to_known`` is False): ``to_symbol`` is the name of
            the function that the slot is for. With ``by``, also ``bin`` (uint32, number of the phase), which
            comes first in the order.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Counts of the rows of `branches`, in memory that grows with distinct edges only.

        By time, a branch is counted once, in the phase that has its ``tsc``, the earliest time of its
        interval [``tsc``, ``tsc`` + ``tsc_error``]: also if the interval reaches into the next phase. So
        phase i has the rows of ``between(limits[i], limits[i + 1]).edges()``. Branches without a known time
        are in none.

        By instructions, each stream counts from its own begin, without instructions that were not decoded
        (gaps), also in a part of the trace (`Trace.between`). So phase 0 of several streams has the first
        instructions of each, and the last phase those of the longest. No times are needed. If ``bins`` is a
        number, the instructions are counted first, by one more pass on all threads.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> phases = trace.edges(by="instructions", bins=4)
        >>> sorted(set(phases["bin"].tolist())) == [0, 1, 2, 3]
        True
        """
        plan = self._plan("edges", query)
        branches = partial(self._plan, "branches", Query(columns=["instruction"]))
        plan = replace(plan, selection=plan.selection | _decode.ALL_EDGES)
        return with_targets(_decode.read(in_bins(plan, by, bins, self._span, branches)))

    @property
    def errors(self) -> Table:
        """Errors of all streams: what could not be decoded. Decoded when first asked for, then kept.

        Returns
        -------
        Table
            Columns of shape (rows,): ``code`` (uint8, `ptkit.ErrorCode`), ``offset`` (uint64, stream bytes),
            ``ip`` (uint64, address; see ``ip_known``), ``flags`` (uint8, `ptkit.ErrorFlag`), ``argument``,
            ``argument2`` (uint64, by code: docs/tables.md), ``file`` (int32, index in ``trace.info.files``;
            see ``file_known``),
            ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source`` (uint8,
            `ptkit.TimeSource`), ``instruction`` (int64), ``order`` (uint64; both as for `events`).
            ``errors.messages()`` has a sentence with a remedy per row.

        Notes
        -----
        Errors of a trace are never exceptions, unless ``errors="raise"`` is given. Intel SDM vol. 3,
        "Intel Processor Trace": "Packet Definitions", "Internal Buffer Overflow".
        """
        return self._side_tables()[0]

    @property
    def gaps(self) -> Table:
        """Gaps of all streams: where control flow is not known. Decoded when first asked for, then kept.

        Returns
        -------
        Table
            Columns of shape (rows,): ``cause`` (uint8, `ptkit.GapCause`), ``code`` (uint8,
            `ptkit.ErrorCode`, 0 if no error began it), ``begin``, ``end`` (uint64, stream bytes),
            ``from_ip``, ``to_ip`` (uint64, address; see ``from_known``, ``to_known``), ``lost_bytes``
            (int64, bytes that are missing from the stream, as far as that is known), ``flags`` (uint8,
            `ptkit.RowFlag`), ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks), ``tsc_source``
            (uint8, `ptkit.TimeSource`), ``instruction`` (int64), ``order`` (uint64; both as for `events`).
            ``gaps.messages()`` has a sentence per row.

        Notes
        -----
        Intel SDM vol. 3, "Intel Processor Trace": "Internal Buffer Overflow", "TraceStop".
        """
        return self._side_tables()[1]

    @abstractmethod
    def _span(self) -> tuple[int, int] | None:
        """First and last time of the trace in TSC ticks."""

    def _side_tables(self) -> tuple[Table, Table]:
        if self._sides is None:
            plan = self._plan("errors", Query())
            errors = _decode.read(replace(plan, raises=False))
            assert errors.gaps is not None
            self._sides = errors, errors.gaps
        return self._sides

    # Tables of other packages.

    def to_pandas(
        self,
        table: str = "branches",
        *,
        copy: bool = False,
        dtype_backend: str = "numpy_nullable",
        **query: Unpack[Query],
    ) -> pandas.DataFrame:
        """Return a table as a pandas DataFrame; see `Table.to_pandas`."""
        from ptkit.table.frames import frame_bytes

        plan = self._plan(self._table(table), query)
        found = _decode.read(plan, frame_bytes(plan.table, plan.shown, copy=copy))
        return found.to_pandas(copy=copy, dtype_backend=dtype_backend)

    def to_arrow(self, table: str = "branches", **query: Unpack[Query]) -> pyarrow.Table:
        """Return a table as a pyarrow Table; see `Table.to_arrow`."""
        return _decode.read(self._plan(self._table(table), query)).to_arrow()

    @staticmethod
    def _table(name: str) -> str:
        from ptkit.support.schema import row_tables

        if not isinstance(name, str) or name not in row_tables():
            raise ConfigError(f"there is no table {name!r}; there are {', '.join(row_tables())}")
        return name
