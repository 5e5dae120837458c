"""Call stacks of a trace, rebuilt from its branches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.decode.plan import check_choice

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.table import Table

_ROWS = 1_000_000
# Columns of sums; those that begin with ``p50`` are of functions only.
_SUMS = (
    "module",
    "count",
    "instructions",
    "self_instructions",
    "branches",
    "flags",
    "least",
    "most",
    "p50",
    "p99",
    "max",
)


class Calls(ABC):
    """What `Trace` says of call stacks; docs/calls.md has the rules."""

    _anomalies: Table | None = None

    @abstractmethod
    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan: ...

    def calls(self, **query: Unpack[Query]) -> Table:
        """Every frame: one execution of a function, from its call to its end.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`. ``ip``, ``symbol`` and ``module`` select frames by ``entry_ip``,
            ``time`` those of which a part lies in it. ``offset``, ``kind`` and ``taken`` do not select
            frames.

        Returns
        -------
        Table
            Ordered by stream and ``id``. Columns of shape (rows,):
            ``id``, ``parent`` (uint64, numbers of frames; see ``parent_known``), ``entry_ip``, ``call_ip``,
            ``return_ip`` (uint64, address; see ``entry_known``, ``call_known``, ``return_known``),
            ``depth`` (int32), ``how`` (uint8, `ptkit.CallHow`), ``end_how`` (uint8, `ptkit.CallEnd`),
            ``flags`` (uint16, `ptkit.CallFlag`), ``instructions``, ``self_instructions``, ``branches``
            (uint64), ``tsc``, ``end_tsc`` (uint64, TSC ticks, earliest possible), ``tsc_error``,
            ``end_tsc_error`` (uint32, TSC ticks), ``offset``, ``end_offset`` (uint64, stream bytes),
            ``continues`` (uint64, number of a frame; see ``continues_known``).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        A return is matched by its address, never by a name. What fits no frame is in `stack_anomalies`.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> calls = trace.calls()
        >>> int(calls["self_instructions"].sum()) == len(trace.instructions(columns=["cls"]))
        True
        """
        return _decode.read_calls(self._plan("calls", query))[0]

    def iter_calls(self, *, rows: int | None = None, **query: Unpack[Query]) -> Iterator[Table]:
        """Frames in the order in which they end, those that are still open last, in parts.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 1,000,000.
        **query
            As for `calls`.

        Yields
        ------
        Table
            With the columns of `calls`, and the same ``id`` and ``parent``. Beside the part, memory holds
            the open frames only.

        Raises
        ------
        ConfigError, SymbolError, ColumnError
            As for `branches`; also for ``order="time"``.
        """
        return _decode.iterate_calls(self._plan("calls", query), _ROWS if rows is None else rows)

    def functions(self, by: str = "function", *, tails: str = "nested", **query: Unpack[Query]) -> Table:
        """Sums over the frames of each function, without a table of frames in memory.

        Parameters
        ----------
        by : str
            What a row stands for: a function of a file, wherever that is mapped (``"function"``), the address
            of a function in an address space (``"entry"``), or a file (``"module"``).
        tails : str
            Tail calls: a function that ends by a jump to another one is below it until that one returns
            (``"nested"``), or ends at the jump (``"replaced"``).
        **query
            As for `calls`.

        Returns
        -------
        Table
            Ordered by instructions, most first. Columns of shape (rows,):
            ``function``, ``module`` (str), ``flags`` (uint8, `ptkit.FunctionFlag`), ``count`` (uint64,
            frames), ``instructions``,
            ``self_instructions``, ``branches`` (uint64; in recursion, each instruction and branch is counted
            once), ``least``, ``most`` (uint64, TSC ticks: least and most possible time of all outermost
            frames), ``p50``, ``p99``, ``max`` (uint64, TSC ticks: median, 99th percentile and maximum of the
            times of frames, from begin to end, both at their earliest). p50 and p99 are exact up to 65,536
            frames, then within 1 %: see ``exact``. Not among the default columns: ``entry_ip`` (uint64,
            address, of the first call), ``space`` (uint32), ``file`` (int32, index in ``trace.info.files``).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Times are those of the recorder's clock; of emulator recordings, those of the emulation.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> functions = trace.functions()
        >>> int(functions["self_instructions"].sum()) == len(trace.instructions(columns=["cls"]))
        True
        """
        check_choice("by", by, ("function", "entry", "module"))
        check_choice("tails", tails, ("nested", "replaced"))
        if query.get("columns") is None:
            first = {"function": ("function",), "entry": ("entry_ip", "function"), "module": ()}[by]
            query["columns"] = (*first, *_SUMS)
        plan = self._plan("functions", query)
        return _decode.read_functions(plan, by=by, tails_replaced=tails == "replaced")

    def call_tree(self, **query: Unpack[Query]) -> Table:
        """Sums over the frames of each calling context: a function, and all its callers.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`. Threads, processes, processors, spaces and streams select frames.

        Returns
        -------
        Table
            Callers come before their callees; of the callees of one function, those with most instructions
            come first. Columns of shape (rows,): ``node``, ``parent`` (uint32, numbers of rows; see
            ``parent_known``), ``depth`` (int32), ``function``, ``module`` (str), ``count``,
            ``instructions``, ``self_instructions``, ``branches`` (uint64), ``least``, ``most`` (uint64, TSC
            ticks), ``flags`` (uint8, `ptkit.FunctionFlag`). Not among the default columns: ``entry_ip``
            (uint64, address, of the first call), ``space`` (uint32), ``file`` (int32, index in
            ``trace.info.files``).

        Raises
        ------
        ConfigError, ColumnError, OutOfMemoryError
            As for `branches`.

        Notes
        -----
        Memory grows with distinct contexts, not with frames: deep recursion has many.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> tree = trace.call_tree()
        >>> bool((tree["depth"][tree["parent_known"]] > 0).all())
        True
        """
        if query.get("columns") is None:
            query["columns"] = ("node", "parent", "depth", "function", *_SUMS[:-3])
        return _decode.read_tree(self._plan("call_tree", query))

    @property
    def stack_anomalies(self) -> Table:
        """Returns and jumps that fit no open frame. Decoded when first asked for, then kept.

        Returns
        -------
        Table
            Columns of shape (rows,): ``kind`` (uint8, `ptkit.StackAnomaly`), ``from_ip``, ``to_ip``,
            ``expected_ip`` (uint64, address; see ``from_known``, ``expected_known``), ``frame`` (uint64,
            number of the frame at the top; see ``frame_known``), ``depth`` (int32), ``flags`` (uint8,
            `ptkit.StackAnomalyFlag`), ``tsc`` (uint64, TSC ticks), ``tsc_error`` (uint32, TSC ticks),
            ``offset`` (uint64, stream bytes), ``instruction`` (uint64, instructions of the thread before it).

        Notes
        -----
        The frame at the top is not exact then; docs/calls.md says what becomes of it.
        """
        if self._anomalies is None:
            self._anomalies = _decode.read_calls(self._plan("calls", Query(columns=["id", "tsc"])))[1]
        return self._anomalies
