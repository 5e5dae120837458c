"""A user's selection of a table: columns, rows and their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

__all__ = ["Query"]


class Query(TypedDict, total=False):
    """Which columns and rows of a table, in which order.

    Attributes
    ----------
    columns : sequence of str
        Columns to compute; by default all stored ones. Columns made on access (``taken``, ``tid``,
        ``time_ns``, ``from_symbol``, ...) and columns on demand (``instruction``, ``tsc_estimate``,
        ``time_ns_estimate``) may be among them. Other columns are not computed, unless these need them.
    stream : int or sequence of int
        Indices in ``trace.streams``.
    tid, pid : int or sequence of int
        Threads and processes.
    space : int or sequence of int
        Address spaces: indices in ``trace.info.spaces``.
    cr3 : int or sequence of int
        Address spaces by their CR3: its low 12 bits (PCID) do not matter.
    cpu : int or sequence of int
        Numbers of the processors that streams were recorded on.
    time : tuple of int
        ``(t0, t1)`` in TSC ticks: rows with a known ``tsc`` in [t0, t1). None leaves an end open.
        `Trace.between` takes other units.
    instructions : tuple of int
        ``(first, end)``: what the thread did from this number of its instructions on, before the end, counted
        from its begin in its stream. None leaves an end open. See `Trace.between`.
    offset : tuple of int
        ``(first, end)``: rows that packets in [first, end) of their stream decided (column ``offset``), and
        gaps that meet it. None leaves an end open. Not for edges.
    ip : int, tuple of int, or sequence of these
        Addresses, and ranges [low, high); two integers are one range. A branch or gap is selected if one of
        its ends lies inside, a block if it overlaps.
    symbol : str or sequence of str
        Names of functions: the addresses that they cover. A name with ``*``, ``?`` or ``[...]`` is a pattern,
        unless a function has this name. ``"name+0x10"`` is one address; so is ``"[module]+0x10"``, by RVA.
    module : str or sequence of str
        Programs and libraries, by path or by name without folders (``"libc.so.6"``): the addresses that they
        were mapped to.
    kind : int, str, ptkit.BranchKind, ptkit.EventKind, or sequence of these
        Branches and edges: only of these kinds, such as ``("CALL", "CALL_INDIRECT", "RETURN")``, in any case.
        Events: only of these kinds, such as ``"PTWRITE"``. What is not selected costs no row.
    taken : bool
        Branches and edges: only those that were taken, or only conditionals that fell through.
    order : str
        ``"stream"`` (default): by stream and offset; ``"time"``: streams merged by time.
    threads : int
        Streams, and segments of long ones, that are decoded at the same time; None: all cores. Results do not
        depend on it.
    errors : str
        ``"rows"`` (default): in the errors table; ``"raise"``: the first one becomes a `ptkit.DecodeError`.

    Raises
    ------
    ConfigError
        If a value is out of range, or the trace has no such stream, thread, process, processor, module or
        time; the message says what there is.
    ColumnError, SymbolError
        If there is no such column or symbol; the message has names to choose from.
    TypeError
        If there is no such argument.

    Notes
    -----
    A row is selected if it meets all arguments; several values of one argument add up. Streams without rows
    of the selected streams, processors, threads and processes are not decoded; their errors and gaps do not
    appear. Any other stream is decoded as a whole: what a packet means depends on those before it. Rows that
    are not selected, and columns that are not asked for, cost no memory. A trace that has an index
    (`Trace.index`) is decoded only where rows of the selected times and addresses may be.
    """

    columns: Sequence[str] | None
    stream: int | Sequence[int] | None
    tid: int | Sequence[int] | None
    pid: int | Sequence[int] | None
    space: int | Sequence[int] | None
    cr3: int | Sequence[int] | None
    cpu: int | Sequence[int] | None
    time: tuple[int | None, int | None] | None
    instructions: tuple[int | None, int | None] | None
    offset: tuple[int | None, int | None] | None
    ip: int | tuple[int, int] | Sequence[int | tuple[int, int]] | None
    symbol: str | Sequence[str] | None
    module: str | Sequence[str] | None
    kind: int | str | Sequence[int | str] | None
    taken: bool | None
    order: str
    threads: int | None
    errors: str | None
