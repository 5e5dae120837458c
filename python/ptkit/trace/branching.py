"""How branches of a trace, or of a part of it, behave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit import _core
from ptkit import decode as _decode
from ptkit.errors import ConfigError
from ptkit.support.arguments import integer
from ptkit.trace.calls import Calls
from ptkit.trace.code_coverage import CodeCoverage
from ptkit.trace.parts import with_targets

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ptkit.analysis.folding import Folded
    from ptkit.analysis.loops import CodeLoops
    from ptkit.decode import Plan, Query, Window
    from ptkit.table import Table

__all__ = ["Branching"]

_OF_ADDRESSES = ("symbol", "module", "ip")
_MOST = 2**31 - 1
_INDIRECT = [_core.BranchKind.JUMP_INDIRECT, _core.BranchKind.CALL_INDIRECT]


def _split(query: Query, refused: Sequence[str]) -> tuple[Any, Any]:
    """A query without columns, and the columns."""
    for name in refused:
        if query.get(name) is not None:
            raise ConfigError(f"{name}: statistics are of all executions of a branch; leave it out")
    rest = {name: value for name, value in query.items() if name != "columns"}
    return rest, query.get("columns")


def _shown(table: Table, columns: Sequence[str] | None) -> Table:
    return table if columns is None else table[list(columns)]


class Branching(CodeCoverage, Calls):
    """Methods of `Trace` about branches; docs/branches.md has the rules."""

    def branch_stats(self, **query: Unpack[Query]) -> Table:
        """Outcomes of each conditional branch, in total and in runs, and targets of each indirect one.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`: a thread, a time, a module, ... Not ``order`` and ``taken``.

        Returns
        -------
        Table
            Ordered by space and address. Columns of shape (rows,): ``from_ip`` (uint64, address), ``kind``
            (uint8, `ptkit.BranchKind`), ``count`` (int64, executions); of conditional branches ``taken``,
            ``not_taken``, ``runs``, ``longest_taken``, ``longest_not_taken``, ``cut_runs`` (int64) and
            ``run_entropy`` (float64, bits); of indirect jumps and calls ``targets`` (int64); ``entropy``
            (float64, bits), ``line`` (uint32), ``space`` (uint32), ``flags`` (uint8), ``source`` (str). See
            ``is_conditional``, ``is_indirect``, ``exact``.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `calls`.

        Notes
        -----
        A run is a maximal sequence of executions of one branch by one thread with the same outcome. With
        p(x) the share of x among the runs, ``run_entropy`` is the sum of -p(x) log2 p(x) over all pairs x of
        outcome and length: bits for each run. 0: the branch repeats itself, as one that is always taken, or
        taken and not taken by turns. ``entropy`` is the same over the outcomes of executions, or over the
        targets: bits for each execution, whatever their order; the entropy of a fair coin is 1. Both are of
        what happened, not of a predictor.

        A run ends at a gap, too (``cut_runs``), and then no row is ``exact``: executions may be missing. Runs
        of more than 16,384 different lengths are counted by length within 1 %, and ``run_entropy`` is a lower
        bound. The trace is decoded once; memory grows with branches and threads, not with their rows.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> rows = trace.branch_stats(kind=ptkit.BranchKind.COND)
        >>> int(rows["count"].sum()) == len(trace.branches(kind=ptkit.BranchKind.COND))
        True
        """
        from ptkit.analysis.branch_stats import read_branch_stats

        kind = query.pop("kind", None)
        rest, columns = _split(query, ("order", "taken"))
        plan = self._plan("calls", rest)
        table = read_branch_stats(plan, self._window(plan))
        if kind is not None:
            kinds = self._plan("edges", {"kind": kind}).selection["kinds"]
            table = table[(kinds >> np.asarray(table["kind"]).astype(np.int64) & 1).astype(np.bool_)]
        return _shown(table, columns)

    def loops(self, **query: Unpack[Query]) -> Table:
        """Loops of functions, and how often they go round.

        Parameters
        ----------
        **query
            See `ptkit.decode.Query`: a thread, a time, a module, ... Not ``order``, ``kind`` and ``taken``.
            ``symbol``, ``module`` and ``ip`` select by the head.

        Returns
        -------
        Table
            Those with most instructions come first. Columns of shape (rows,): ``head_ip``, ``outer_ip``
            (uint64, address), ``depth`` (uint8), ``count``, ``visits``, ``cut_visits``, ``least``, ``p50``,
            ``p99``, ``most`` (int64), ``mean`` (float64), ``instructions`` (int64), ``line``, ``space``
            (uint32), ``flags`` (uint8), ``source`` (str). See ``outer_known``, ``trips_known``, ``exact``.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `calls`.

        Notes
        -----
        A loop is a natural loop of what ran of a function: its head is the only way in. Loops that are
        entered in several places are not in the table. Trips of a visit are the executions of the head within
        one frame, so that recursion and calls do not disturb them: a loop that tests at its head has one more
        than its body. Percentiles are of visits with known begin and end; with more than 65,536 visits of
        more than 16,384 different trips, they are within 1 % and not ``exact``.

        The trace is decoded twice; memory grows with code and with the depth of call stacks.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> loops = trace.loops()
        >>> exact = loops[loops["exact"]]
        >>> bool((exact["count"] >= exact["visits"] * exact["least"]).all())
        True
        """
        from ptkit.analysis.loops import read_loops

        rest, columns = _split(query, ("order", "kind", "taken"))
        return _shown(read_loops(*self._wanted_loops(rest)), columns)

    def loop_paths(self, *, limit: int | None = 16, **query: Unpack[Query]) -> Table:
        """Paths through loops: what branches did from one execution of the head to the next.

        Parameters
        ----------
        limit : int, optional
            Paths of each loop that have a row of their own, at least 1: the most frequent ones. One row
            stands for all others (``is_rest``). None: all have one.
        **query
            See `ptkit.decode.Query`: a thread, a time, ... Not ``order``, ``kind`` and ``taken``. ``symbol``,
            ``module`` and ``ip`` select loops by the head: ``ip=0x401136`` selects one.

        Returns
        -------
        Table
            Loops with most instructions come first, then the most frequent paths, the rest last. Columns of
            shape (rows,): ``head_ip`` (uint64, address), ``rounds``, ``exits`` (int64: how often it led to
            the head, and out of the loop), ``share`` (float64), ``steps`` (uint32), ``paths`` (int64, that
            the row stands for), ``line``, ``space`` (uint32), ``flags`` (uint8), ``path``, ``source`` (str).
            See ``is_rest``, ``more_paths``.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `calls`.

        Notes
        -----
        A path has the outcomes of conditional branches and the targets of indirect jumps and calls of one
        frame, without those of what it calls. A visit of a loop within the loop is one step, however that
        went. docs/branches.md has the form of ``path``. Of a loop, 32,768 steps of paths are
        distinct, those that come first; with more, the last row has ``more_paths``. The trace is decoded
        twice.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> head = int(trace.loops(columns=["head_ip"])["head_ip"][0])
        >>> paths = trace.loop_paths(ip=head)
        >>> float(paths["share"].sum()) > 0.999
        True
        """
        from ptkit.analysis.loop_paths import read_loop_paths

        rest, columns = _split(query, ("order", "kind", "taken"))
        most = None if limit is None else integer("limit", limit, 1, _MOST, hint="None gives all a row")
        return _shown(read_loop_paths(*self._wanted_loops(rest), most), columns)

    def _wanted_loops(self, query: Query) -> tuple[Plan, Window | None, CodeLoops, NDArray[np.bool_]]:
        """How calls are read, the loops of what is selected, and which heads are selected."""
        from ptkit.analysis.branch_stats import selected

        plan = self._plan("calls", query)
        loops = self._code_loops(query)
        return plan, self._window(plan), loops, selected(plan, loops.head, loops.space)

    def _folded(self, query: Any, **how: Any) -> Iterator[Folded]:
        """Rows of branches with the repetitions of loops folded."""
        from ptkit.analysis.folding import fold

        plan = self._plan("calls", query)
        return fold(plan, self._window(plan), self._code_loops(query), **how)

    def _code_loops(self, query: Query) -> CodeLoops:
        """Loops of all functions that ran in what is selected."""
        from ptkit.analysis.loops import find_loops

        everywhere: Any = {name: value for name, value in query.items() if name not in _OF_ADDRESSES}
        return find_loops(*self._counts(everywhere))

    def indirect_targets(self, *, limit: int | None = 64, **query: Unpack[Query]) -> Table:
        """Where each indirect jump and call went, and how often.

        Parameters
        ----------
        limit : int, optional
            Targets of each branch that have a row of their own, at least 1: the most frequent ones. One row
            stands for all others (``is_rest``). None: all have one.
        **query
            See `ptkit.decode.Query`: a thread, a time, a module, ... Not ``order``, ``kind`` and ``taken``.

        Returns
        -------
        Table
            Ordered by branch, then by how often, the rest last. Columns of shape (rows,): ``from_ip``,
            ``to_ip`` (uint64, address; see ``to_known``), ``kind`` (uint8, `ptkit.BranchKind`), ``count``
            (int64), ``share`` (float64, of the branch's executions), ``targets`` (int64, that the row stands
            for), ``line`` (uint32, of the branch), ``space`` (uint32), ``flags`` (uint8), ``source`` (str).

        Raises
        ------
        ConfigError, SymbolError, ColumnError, OutOfMemoryError
            As for `edges`.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> rows = trace.indirect_targets(limit=4)
        >>> edges = trace.edges(kind=[ptkit.BranchKind.JUMP_INDIRECT, ptkit.BranchKind.CALL_INDIRECT])
        >>> int(rows["count"].sum()) == int(edges["count"].sum())
        True
        """
        from ptkit.analysis.branch_stats import target_table

        rest, columns = _split(query, ("order", "kind", "taken"))
        most = None if limit is None else integer("limit", limit, 1, _MOST, hint="None gives all a row")
        rest["kind"] = _INDIRECT
        plan = self._plan("edges", rest)
        plan = replace(plan, selection=plan.selection | _decode.ALL_EDGES)
        edges = with_targets(_decode.read(plan))
        return _shown(target_table(plan, edges, most), columns)
