"""Frames of call stacks, as tables and as sums over functions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.call_table import CallTable
from ptkit.decode.kept_sums import Sums
from ptkit.decode.merge import sorted_by_time
from ptkit.decode.plan import Plan
from ptkit.errors import ConfigError, OutOfMemoryError
from ptkit.support import memory
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.table import Table
from ptkit.table.lengths import AWAY, LENGTHS
from ptkit.table.table import from_core

_MOST_ROWS = 2**48 - 1
_NATIVE: dict[str, Any] = {"frames": "native", "tails_replaced": False, "inlines": False}
_TIMES = {"end_tsc", "end_tsc_error", *LENGTHS["functions"], *(f"{name}_error" for name in AWAY)}


@dataclass(frozen=True)
class Window:
    """Frames are what happens from `begin` on, before `end`: TSC ticks, or instructions of a stream."""

    by: str  # "time" or "instructions"
    begin: int
    end: int


def window_of(plan: Plan) -> Window | None:
    """The window of a query that selects by time or by instructions.

    Raises
    ------
    ConfigError
        If it selects by both.
    """
    has_time = "time" in plan.selection
    if has_time and plan.window is not None:
        raise ConfigError("instructions: calls are cut at times or at instructions; leave one of both out")
    if not has_time and plan.window is None:
        return None
    begin, end = plan.window or plan.selection["time"]
    by = "time" if has_time else "instructions"
    return Window(by, begin, end) if begin < end else Window(by, LAST_ADDRESS, LAST_ADDRESS)


def _check(plan: Plan) -> None:
    """Raise ConfigError if frames cannot be selected so."""
    if plan.limits:
        raise ConfigError(f"offset: {plan.table} are not selected by stream offset; select them by time")
    if plan.raises:
        raise ConfigError('errors="raise": call stacks go on after errors; look at trace.errors')


def _follows_all(plan: Plan, window: Window | None, how: dict[str, Any]) -> bool:
    """Whether the frames of a window have to be followed from the begins of the streams on."""
    if window is None or plan.indexed is None or {"tids", "pids", "spaces"} & set(plan.selection):
        return True
    # Errors and gaps outside of the window are then those that the index has.
    has_sides = plan.select_sides or (plan.is_every and plan.indexed.sides is not None)
    return not has_sides or _NATIVE | how != _NATIVE


def call_query(
    plan: Plan,
    *,
    window: Window | None = None,
    in_parts: bool = False,
    noted: bool = False,
    has_stacks: bool = True,
    **how: Any,
) -> _core.CallQuery:
    """Make a query of frames.

    Parameters
    ----------
    plan : Plan
        The query.
    window : Window, optional
        Window at which frames are cut.
    in_parts : bool, optional
        Whether errors and gaps come in parts, with the frames.
    noted : bool, optional
        Whether call stacks are noted for an index.
    has_stacks : bool, optional
        Whether call stacks are rebuilt; else an index serves to decode alone.
    **how
        The others that `_NATIVE` has.
    """
    _check(plan)
    how = _NATIVE | how
    follows_all = (in_parts and not plan.select_sides) or _follows_all(plan, window, how)
    indexed = plan.indexed if has_stacks and not follows_all else None
    states = [] if indexed is None else indexed.states(plan.streams)
    selection = plan.selection
    if window is not None and window.by == "time":
        selection = {name: value for name, value in selection.items() if name != "time"}
    query = _core.CallQuery(
        plan.session,
        streams=list(plan.streams),
        selection=selection,
        engine=plan.settings.engine,
        resync=plan.settings.resync,
        threads=plan.threads,
        time=plan.time or not _TIMES.isdisjoint(plan.stored),
        tails_replaced=how["tails_replaced"],
        frames=how["frames"],
        inlines=how["inlines"],
        budget=memory.budget(),
        window=None if window is None else (window.begin, window.end),
        window_by="time" if window is None else window.by,
        select_sides=plan.select_sides or bool(states),
        index=plan.settings.index if states or noted or not has_stacks else None,
        states=states,
    )
    frames = how["frames"]
    if frames != "native" and not query.names_python():
        raise ConfigError(
            f"frames={frames!r}: the recording has no names of Python functions; record python3 -X perf "
            "(3.12 or later)"
        )
    return query


_LESS = "select fewer streams or threads"
_FEWER_FRAMES = "select fewer columns, streams or threads, or read parts: iter_calls()"


def frames_too_large(plan: Plan, query: _core.CallQuery) -> OutOfMemoryError:
    """Make the error for frames that are more than fit."""
    return too_large(f"{plan.table}: the frames", query, _FEWER_FRAMES if plan.table == "calls" else _LESS)


def too_large(what: str, query: _core.CallQuery, remedy: str) -> OutOfMemoryError:
    """Make the error for frames, or for what was counted of them, that do not fit into memory."""
    if query.refused_bytes:
        return memory.too_large(what, query.refused_bytes, remedy, least=True)
    return OutOfMemoryError(f"{what} do not fit into memory", remedy)


def side_tables(plan: Plan, sides: Sequence[Any]) -> tuple[Table | None, Table | None]:
    """Errors and gaps of all streams, unless they have to be selected."""
    errors, gaps = (
        None if plan.select_sides else from_core(side, found, context=plan.context)
        for side, found in zip(("errors", "gaps"), sides, strict=True)
    )
    return errors, gaps


def _table(plan: Plan, name: str, rows: Any, sides: Sequence[Any]) -> Table:
    """Make a table, with its errors and gaps."""
    errors, gaps = side_tables(plan, sides)
    if errors is not None:
        plan.met(errors)
    return from_core(name, rows, columns=plan.shown, context=plan.context, errors=errors, gaps=gaps)


def read_calls(
    plan: Plan, *, frames: str = "native", inlines: bool = False, window: Window | None = None
) -> tuple[CallTable, Table]:
    """Read all frames, and the anomalies. `inlines`: also frames of inlined calls.

    Raises
    ------
    ConfigError
        If they are selected by what frames do not have, or there are no Python functions.
    OutOfMemoryError
        If they do not fit into memory.
    """
    stored = CallTable.stored(plan.stored, inlines)
    query = call_query(plan, frames=frames, inlines=inlines, window=window)
    key = key_of_sums(plan, frames=frames, inlines=inlines, window=window)
    # Few columns are asked for where memory or time matter.
    kept = plan.kept if plan.time and set(CallTable.SUMMED) <= set(stored) else None
    leaves_sums = kept is not None and kept.find(key, "function") is None
    try:
        (rows, anomalies, notes, sums), *found = query.calls(stored, leaves_sums)
    except MemoryError:
        raise frames_too_large(plan, query) from None
    sides = sides_of(plan, found, window, frames=frames, inlines=inlines)
    if kept is not None and sums is not None:
        kept.keep(key, Sums(sums, sides))
    plan.after()
    calls = _table(plan, "calls", rows, sides)
    others = from_core("stack_anomalies", anomalies, context=plan.context)
    return CallTable.of(sorted_by_time(calls) if plan.merges else calls, notes), others


def iterate_calls(
    plan: Plan, rows: int, *, inlines: bool = False, window: Window | None = None
) -> Iterator[Table]:
    """Read frames in the order in which they end, in parts of `rows` rows.

    Raises
    ------
    ConfigError
        If `rows` is no positive integer, or frames are selected by what they do not have.
    """
    rows = integer("rows", rows, 1, _MOST_ROWS)
    if plan.by_time:
        raise ConfigError('order="time": iter_calls() gives frames as they end; use calls()')
    stored = dict.fromkeys([*plan.stored, *(["inline_level"] if inlines else [])])
    query = call_query(plan, inlines=inlines, window=window, in_parts=True)
    return _parts(plan, query, list(stored), rows)


def _parts(plan: Plan, query: _core.CallQuery, stored: list[str], rows: int) -> Iterator[Table]:
    reader = _core.CallReader(query, columns=stored)
    while True:
        try:
            part, *sides = reader.read(rows)
        except MemoryError:
            raise frames_too_large(plan, query) from None
        plan.after()
        # The last part may be empty but for errors and gaps.
        if part[0] or any(side[0] for side in sides):
            yield _table(plan, "calls", part, sides)
        if part[0] < rows:
            return


def read_functions(
    plan: Plan,
    *,
    by: str,
    frames: str,
    tails_replaced: bool,
    inlines: bool = False,
    window: Window | None = None,
) -> Table:
    """Read the frames, and sum them up by function, entry or module.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for `read_calls`.
    """
    found = _sums(plan, by, frames=frames, tails_replaced=tails_replaced, inlines=inlines, window=window)
    return _table(plan, "functions", found.rows[by], found.sides)


def read_tree(plan: Plan, *, frames: str, inlines: bool = False, window: Window | None = None) -> Table:
    """Read the frames, and sum them up for each calling context.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for `read_calls`.
    """
    found = _sums(plan, "tree", frames=frames, inlines=inlines, window=window)
    return _table(plan, "call_tree", found.rows["tree"], found.sides)


def sides_of(plan: Plan, found: Sequence[Any], window: Window | None, **how: Any) -> tuple[Any, Any]:
    """Errors and gaps of all streams, unless they have to be selected."""
    if not plan.select_sides and plan.indexed is not None and not _follows_all(plan, window, how):
        return plan.indexed.sides or (found[0], found[1])
    return found[0], found[1]


def _sums(plan: Plan, table: str, *, window: Window | None, **how: Any) -> Sums:
    """Sums over the frames that have the rows `table`: those that are kept, or those of a new pass."""
    _check(plan)
    plan = replace(plan, time=True)  # rows do not depend on the columns that are asked for
    key = key_of_sums(plan, window=window, **how)
    found = None if plan.kept is None else plan.kept.find(key, table)
    is_of_index = plan.is_whole and window is None and _NATIVE | how == _NATIVE
    if found is None and plan.indexed is not None and is_of_index:
        found = plan.indexed.sums(table)
    if found is None:
        query = call_query(plan, window=window, **how)
        try:
            (rows, _), *sides = query.sums(tree=table == "tree", kept=plan.kept is not None)
        except MemoryError:
            raise frames_too_large(plan, query) from None
        found = Sums(rows, sides_of(plan, sides, window, **how))
        if plan.kept is not None:
            plan.kept.keep(key, found)
    plan.after()
    return found


def whole_sums(plan: Plan, index: _core.Index) -> tuple[Sums, list[NDArray[np.uint8]]]:
    """Sums over all native frames, the tree among them, and the call stacks at segments' begins.

    Raises
    ------
    OutOfMemoryError
        As for `read_calls`.
    """
    settings = replace(plan.settings, index=index)
    query = call_query(replace(plan, time=True, settings=settings), noted=True)
    try:
        (rows, states), errors, gaps = query.sums(tree=True, kept=True, noted=True)
    except MemoryError:
        raise frames_too_large(plan, query) from None
    return Sums(rows, (errors, gaps)), states


def key_of_sums(
    plan: Plan,
    *,
    frames: str,
    inlines: bool,
    window: Window | None,
    tails_replaced: bool = False,
) -> Hashable:
    """All that the sums over frames depend on. Code, names and debug files belong to the session."""
    selection = tuple(sorted((name, _frozen(value)) for name, value in plan.selection.items()))
    settings = plan.settings.engine, plan.settings.resync
    how = frames, inlines, window, tails_replaced, plan.select_sides
    return plan.session, plan.streams, settings, selection, how


def _frozen(value: Any) -> Hashable:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
