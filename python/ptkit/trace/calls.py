"""Call stacks of a trace, rebuilt from its branches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.decode.call_table import CallTable, check_frames, check_sums, function_columns, tree_columns
from ptkit.decode.callers import callers_of
from ptkit.errors import ConfigError, SymbolError
from ptkit.support.arguments import flag, integer
from ptkit.support.schema import schema_of
from ptkit.trace.timelines import Timelines

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.decode import Range
    from ptkit.table import Table

_ROWS = 1_000_000
_FUNCTIONS = ("symbol", "module", "ip")  # what selects functions
_MOST_DEPTH = 2**31 - 1
_OF_LINES = ("function", "module", "source", "line", "count", "instructions", "self_instructions")


class Calls(Timelines):
    """Methods of `Trace` about call stacks; docs/calls.md has the rules."""

    _anomalies: Table | None = None

    @abstractmethod
    def _ranges_of(self, function: str) -> list[Range]:
        """Addresses of a name; none if it is no symbol, as that of an imported function."""

    def calls(
        self,
        *,
        frames: str = "native",
        inlines: bool = False,
        whole_calls: bool = False,
        **query: Unpack[Query],
    ) -> CallTable:
        """Every frame: one execution of a function, from its call to its end.

        Parameters
        ----------
        frames : str
            As for `functions`. Frames have the same numbers with each; depths and parents count those that
            are shown.
        inlines : bool
            Also frames of inlined functions (`ptkit.CallKind.INLINED`), by the debug information of files;
            see docs/calls.md.
        whole_calls : bool
            Where a window of time is asked for, frames are what they did within it: those that
            ``begins_before`` begin with the window, and those that ``ends_after`` end with it. True: frames
            of which a part lies in it, as a whole.
        **query
            See `ptkit.decode.Query`. ``ip``, ``symbol`` and ``module`` select frames by ``entry_ip``.
            ``offset``, ``kind`` and ``taken`` do not select frames.

        Returns
        -------
        CallTable
            A `Table` with the sums ``functions()`` and ``tree()`` over its rows, which do not decode again.
            Ordered by stream and ``id``. Columns of shape (rows,):
            ``id``, ``parent`` (uint64, numbers of frames; see ``parent_known``), ``entry_ip``, ``call_ip``,
            ``return_ip`` (uint64, address; see ``entry_known``, ``call_known``, ``return_known``),
            ``depth`` (int32), ``how`` (uint8, `ptkit.CallKind`), ``end_how`` (uint8, `ptkit.CallEnd`),
            ``flags`` (uint16, `ptkit.CallFlag`), ``instructions``, ``self_instructions``, ``branches``
            (int64), ``tsc``, ``end_tsc`` (uint64, TSC ticks, earliest possible), ``tsc_error``,
            ``end_tsc_error`` (uint32, TSC ticks), ``offset``, ``end_offset`` (uint64, stream bytes),
            ``continues`` (uint64, number of a frame; see ``continues_known``), ``untraced``, ``switched``,
            ``lost`` (int64, TSC ticks: least possible time in which packets were disabled, another thread
            or stack was executed, control flow is not known), ``untraced_error``, ``switched_error``,
            ``lost_error`` (int64, TSC ticks: what may come in addition), ``import_ip`` (uint64, address: of
            the branch through an import slot to a function of which the code is not traced; see
            ``is_import``). Made of them: ``running`` and
            ``running_error``, the rest of the time. On demand: ``function`` (uint32, number of the function
            in this table), ``instruction``, ``end_instruction`` (int64, instructions of the stream before
            its begin and its end), ``inline_level`` (uint8; of an inlined call, the number of inlined calls
            that ``entry_ip`` is in, up to this one; else 0).

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
        check_frames(frames, flag("inlines", inlines))
        return self._frames(query, frames, inlines=inlines, whole=flag("whole_calls", whole_calls))[0]

    def iter_calls(
        self,
        *,
        rows: int | None = None,
        inlines: bool = False,
        whole_calls: bool = False,
        **query: Unpack[Query],
    ) -> Iterator[Table]:
        """Frames in the order in which they end, those that are still open last, in parts.

        Parameters
        ----------
        rows : int, optional
            Rows of each part, at least 1; the last part may have fewer. By default 1,000,000.
        inlines : bool
            As for `calls`.
        whole_calls : bool
            As for `calls`.
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
        whole = flag("whole_calls", whole_calls)
        rows = _ROWS if rows is None else rows
        return self._frame_parts(query, rows, inlines=flag("inlines", inlines), whole=whole)

    def functions(
        self,
        by: str = "function",
        *,
        frames: str = "native",
        tails: str = "nested",
        inlines: bool = False,
        imports: bool = False,
        whole_calls: bool = False,
        **query: Unpack[Query],
    ) -> Table:
        """Sums over the frames of each function, without a table of frames in memory.

        Parameters
        ----------
        by : str
            Subject of a row: a function of a file, wherever that is mapped (``"function"``), the address
            of a function in an address space (``"entry"``), a file (``"module"``), or a line of source code
            (``"line"``; of code without debug information, a function).
        frames : str
            Functions of a Python program (CPython 3.12 or later with ``-X perf``): as they are
            (``"native"``); Python functions and those in C, without CPython's evaluation of Python code
            (``"python"``); the same with the evaluation, but without trampolines (``"mixed"``). Instructions
            of what is left out belong to the function below it.
        tails : str
            Tail calls: a function that ends by a jump to another one is below it until that one returns
            (``"nested"``), or ends at the jump (``"replaced"``).
        inlines : bool
            Also sums over inlined calls: a function that is called and inlined has two rows, of which the one
            for inlined calls has ``is_inlined``. Not with ``by="line"``, which counts lines of inlined
            functions anyway.
        imports : bool
            Only imported functions of which the code is not traced (``is_import``), by how often they were
            called. They have no instructions, and the names of the import slots that calls go through. Not
            with ``by="module"`` and ``by="line"``.
        whole_calls : bool
            Of a window of time, what ran within it counts. True: all of the frames of which a part lies in
            it. Not with ``by="line"``.
        **query
            As for `calls`.

        Returns
        -------
        Table
            Ordered by instructions, most first. Columns of shape (rows,):
            ``function``, ``module`` (str), ``flags`` (uint16, `ptkit.FunctionFlag`), ``count`` (int64,
            calls: frames of which the begin is in the trace; ``count_exact`` says if it is certain),
            ``begin_unseen`` (int64, other frames: open before the trace or a gap, entered elsewhere than at
            the function's first instruction, or continued from another stream), ``crossing`` (int64, frames
            that go on beyond the window of time that was asked for), ``instructions``,
            ``self_instructions``, ``branches`` (int64; in recursion, each instruction and branch is counted
            once), ``least``, ``most`` (int64, TSC ticks: least and most possible time of all outermost
            frames), ``p50_instructions``, ``p99_instructions``, ``max_instructions`` (int64: median, 99th
            percentile and maximum of the instructions of frames, with what they called; none of them is
            ``crossing``), ``p50``, ``p99``,
            ``max`` (int64, TSC ticks: the same of their times, from begin to end, both at their earliest).
            p50 and p99 are exact of 65,536 frames or 16,384 different values at most, else within 1 %: see
            ``exact``. ``untraced``, ``untraced_error``, ``switched``, ``switched_error``, ``lost``,
            ``lost_error`` (int64, TSC ticks): as for `calls`, sums over the outermost frames. ``p50_ns`` and
            so on are nanoseconds. Not among the default columns: ``entry_ip`` (uint64, address, of the first
            call), ``space`` (uint32),
            ``code_tsc`` (uint64, TSC ticks: code and names of the space at the first call hold from then on),
            ``file`` (int32, index in ``trace.info.files``), ``inline_level`` (uint8; as for `calls`),
            ``import_ip`` (uint64, address, of a branch through the import slot; see ``is_import``),
            ``source`` (str) and ``line`` (uint32) of ``entry_ip``.
            With ``by="line"``, ``function``, ``module``, ``source``, ``line``, ``count`` (how often control
            came to the line from another one, or called it), ``instructions`` and ``self_instructions``
            (int64, both those of the line alone). Function is the one with most of these instructions, an
            inlined one (``is_inlined``) where the code is of inlined calls; ``entry_ip`` is its lowest
            address on the line that was executed.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `branches`; ConfigError also if there are no Python functions for `frames`.

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
        check_sums(by, tails, more=("line",))
        check_frames(frames, flag("inlines", inlines))
        whole = flag("whole_calls", whole_calls)
        if by == "line":
            if whole:
                raise ConfigError('whole_calls: lines are counted without calls; leave it out with by="line"')
            if tails != "nested":
                raise ConfigError('tails: lines are counted without calls; leave it out with by="line"')
            if frames != "native":
                raise ConfigError('frames: lines are counted without calls; leave it out with by="line"')
            if inlines:
                raise ConfigError('inlines: lines of inlined functions count; leave it out with by="line"')
        if flag("imports", imports) and by in ("module", "line"):
            raise ConfigError(f"imports: by={by!r} has no rows of functions; leave one of them out")
        if by == "line":
            return self._functions_by_line(query)
        if query.get("columns") is None:
            query["columns"] = function_columns(by)
        if not imports:
            return self._function_sums(query, by=by, frames=frames, tails=tails, inlines=inlines, whole=whole)
        shown = list(query["columns"] or function_columns(by))
        query["columns"] = list(dict.fromkeys([*shown, "count", "flags"]))
        sums = self._function_sums(query, by=by, frames=frames, tails=tails, inlines=inlines, whole=whole)
        rows = np.flatnonzero(sums["is_import"])
        return sums[rows[np.argsort(~sums["count"][rows], kind="stable")]][shown]

    def _functions_by_line(self, query: Query) -> Table:
        shown = query.pop("columns", None) or _OF_LINES
        edges = self._plan("edges", {**query, "columns": _decode.EDGE_COLUMNS})
        plan = self._plan("functions", {**query, "columns": shown})
        return _decode.read_lines(plan, edges)

    def call_tree(
        self,
        *,
        frames: str = "native",
        inlines: bool = False,
        whole_calls: bool = False,
        **query: Unpack[Query],
    ) -> Table:
        """Sums over the frames of each calling context: a function, and all its callers.

        Parameters
        ----------
        frames : str
            As for `functions`.
        inlines : bool
            Inlined functions are contexts, too; see `functions`.
        whole_calls : bool
            As for `functions`.
        **query
            As for `calls`. Where functions are selected, others are left out: what these called is below
            their callers.

        Returns
        -------
        Table
            Callers come before their callees; of the callees of one function, those with most instructions
            come first. Columns of shape (rows,): ``node``, ``parent`` (uint32, numbers of rows; see
            ``parent_known``), ``depth`` (int32), ``function``, ``module`` (str), ``count``, ``begin_unseen``,
            ``crossing`` (as for `functions`), ``instructions``, ``self_instructions``, ``branches`` (int64),
            ``least``, ``most`` (int64, TSC ticks), ``flags`` (uint16, `ptkit.FunctionFlag`). Not among the
            default columns: ``entry_ip`` (uint64, address, of the first call), ``space`` (uint32),
            ``code_tsc`` (uint64, TSC ticks, as for `functions`), ``file`` (int32, index in
            ``trace.info.files``), ``inline_level`` (uint8; as for `calls`), ``import_ip`` (uint64, address,
            as for `functions`).

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
            query["columns"] = tree_columns()
        check_frames(frames, flag("inlines", inlines))
        return self._tree_sums(query, frames, inlines=inlines, whole=flag("whole_calls", whole_calls))

    def callers(
        self,
        function: str,
        *,
        depth: int | None = None,
        frames: str = "native",
        inlines: bool = False,
        **query: Unpack[Query],
    ) -> Table:
        """Sums over the calls of a function for each chain of its callers: a call tree from the inside out.

        Parameters
        ----------
        function : str
            Name of a function that was called, as `functions` has it (``"fib (app.py)"``), or what
            ``symbol=`` takes: a name without parameters or file, or a pattern. Each function of that name has
            a row of depth 0, with its callers after it.
        depth : int, optional
            The largest depth of rows: so many levels of callers. By default all.
        frames, inlines
            As for `call_tree`.
        **query
            As for `call_tree`.

        Returns
        -------
        Table
            A function comes before its callers; of the callers of one row, those by which the function
            executed most instructions come first. Columns of shape (rows,): ``node``, ``parent`` (uint32,
            numbers of rows: of a caller, the row of what it called; see ``parent_known``), ``depth`` (int32,
            calls between it and the function), ``function``, ``module`` (str, of the caller), ``count``,
            ``begin_unseen``, ``crossing``, ``instructions``, ``self_instructions``, ``branches`` (int64, all
            of the function, not of the caller: its calls by this chain of callers, and what it executed in
            them), ``least``, ``most`` (int64, TSC ticks, the same), ``flags`` (uint16, `ptkit.FunctionFlag`).
            Not among the default columns: ``entry_ip`` (uint64), ``space`` (uint32), ``code_tsc`` (uint64),
            ``file`` (int32), ``inline_level`` (uint8), ``import_ip`` (uint64), of the caller, as for
            `call_tree`.

        Raises
        ------
        SymbolError
            If no such function was called, or it is not among those that the query selects; the message has
            near names.
        ConfigError, ColumnError, OutOfMemoryError
            As for `call_tree`.

        Notes
        -----
        A row of depth 0 has the sums that `functions` has. In recursion ``instructions``, ``branches`` and
        times are those of the outermost calls of each row, so those of callers may be more than the row's
        that they call. Of functions that call each other in many orders, deep down, chains have little in
        common: ask for a ``depth`` then.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> functions = trace.functions()
        >>> callers = trace.callers(str(functions["function"][0]), depth=2)
        >>> int(callers["depth"].max()) <= 2
        True
        """
        if not isinstance(function, str):
            raise ConfigError(f"callers() takes the name of a function, not {type(function).__name__}")
        depth = None if depth is None else integer("depth", depth, 0, _MOST_DEPTH)
        shown = query.pop("columns", None) or tree_columns()
        query["columns"] = schema_of("call_tree").names("stored")
        narrowed = [name for name in _FUNCTIONS if query.get(name) is not None]
        tree = self.call_tree(frames=frames, inlines=inlines, **query)
        try:
            return callers_of(tree, function, self._ranges_of(function), depth)[list(shown)]
        except SymbolError:
            if not narrowed:
                raise
        raise SymbolError(
            f"{narrowed[0]}: {function!r} is not among the functions that are selected; select it and its "
            "callers, or leave this out"
        )

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
            ``offset`` (uint64, stream bytes), ``instruction`` (int64, instructions of the thread before it).

        Notes
        -----
        The frame at the top is not exact then, unless a return went to the entry of a function: that is a
        tail call. ``no_call_before`` says that the target of a return is no return address. docs/calls.md
        says what becomes of the frames.
        """
        if self._anomalies is None:
            self._anomalies = self._frames(Query(columns=["id", "tsc"]), "native")[1]
        return self._anomalies

    def calls_and_anomalies(self, **query: Unpack[Query]) -> tuple[CallTable, Table]:
        """Every frame, as `calls`, and what fits no frame, as `stack_anomalies`, of one decode.

        Parameters
        ----------
        **query
            As for `calls`.

        Returns
        -------
        tuple of CallTable and Table

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `calls`.
        """
        return self._frames(query, "native")

    def _runs(self, query: Query) -> _decode.Runs:
        """Runs of code between taken branches."""
        plan = self._plan("calls", query)
        return _decode.read_runs(plan, window=self._window(plan))

    # Methods that a part of a stream overrides.

    def _window(self, plan: _decode.Plan) -> _decode.Window | None:
        """Window at which frames are cut."""
        return _decode.window_of(plan)

    def _cut(self, plan: _decode.Plan, *, whole: bool) -> _decode.Window | None:
        """The window, unless frames are wanted as a whole."""
        if whole and plan.window is not None:
            raise ConfigError("whole_calls: a range of instructions has parts of calls; leave it out")
        return None if whole else self._window(plan)

    def _frames(
        self, query: Query, frames: str, *, inlines: bool = False, whole: bool = False
    ) -> tuple[CallTable, Table]:
        """All frames, and the anomalies."""
        plan = self._plan("calls", query)
        window = self._cut(plan, whole=whole)
        return _decode.read_calls(plan, frames=frames, inlines=inlines, window=window)

    def _frame_parts(
        self, query: Query, rows: int, *, inlines: bool = False, whole: bool = False
    ) -> Iterator[Table]:
        plan = self._plan("calls", query)
        window = self._cut(plan, whole=whole)
        return _decode.iterate_calls(plan, rows, inlines=inlines, window=window)

    def _function_sums(
        self, query: Query, *, by: str, frames: str, tails: str, inlines: bool, whole: bool
    ) -> Table:
        plan = self._plan("functions", query)
        return _decode.read_functions(
            plan,
            by=by,
            frames=frames,
            tails_replaced=tails == "replaced",
            inlines=inlines,
            window=self._cut(plan, whole=whole),
        )

    def _tree_sums(self, query: Query, frames: str, *, inlines: bool, whole: bool) -> Table:
        plan = self._plan("call_tree", query)
        window = self._cut(plan, whole=whole)
        return _decode.read_tree(plan, frames=frames, inlines=inlines, window=window)
