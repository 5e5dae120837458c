"""Tables as a whole and in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ptkit import _core
from ptkit.decode.limits import Limits, rows_between
from ptkit.decode.merge import MERGE_BYTES, merge_in_time, sorted_by_time
from ptkit.decode.plan import Plan
from ptkit.errors import ConfigError, DecodeError, OutOfMemoryError
from ptkit.support import memory
from ptkit.support.arguments import integer
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Runs, Table
from ptkit.table.table import concatenate, from_core

if TYPE_CHECKING:
    _Tables = tuple[_core._Columns, _core._Columns | None, _core._Columns | None]

_LESS = "read less: columns=[...], between(...) or touching(...), or parts: iter_{}()"
_MOST_ROWS = 2**48 - 1  # more than any memory holds
#: Selects all edges, also those to imported functions, of which the target is not known.
ALL_EDGES = {"half_edges": True}
_KEPT_ROWS = 1 << 18  # rows that are decoded at once where few of them are kept
_MERGE_ROWS = 1 << 16  # rows that a stream decodes ahead where streams are merged


def _side(plan: Plan, name: str, result: Any) -> Table | None:
    return None if result is None else from_core(name, result, context=plan.context)


def _errors(plan: Plan, result: Any) -> Table | None:
    """The errors beside the rows. The plan gets them, too."""
    errors = _side(plan, "errors", result)
    if errors is not None:
        plan.met(errors)
    return errors


@cache
def _no_rows(name: str) -> tuple[int, dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return what the core does for a table of errors or gaps without rows."""
    schema = schema_of(name)

    def nothing(dtype: DTypeLike) -> NDArray[Any]:
        array = np.empty(0, dtype)
        array.flags.writeable = False
        return array

    arrays, runs = (
        {column: nothing(schema.columns[column].dtype) for column in schema.names(role)}
        for role in ("stored", "run")
    )
    return 0, arrays, {"row": nothing(np.uint64), **runs, "flags": nothing(np.uint8)}


def _no_side(plan: Plan, name: str) -> Table | None:
    return None if plan.table == name else _side(plan, name, _no_rows(name))


def _raise_first(plan: Plan, errors: Table) -> None:
    first = errors[:1]
    stream = int(first["stream"][0])
    error = DecodeError(f"stream {stream}: {first.messages()[0]}")
    error.code = int(first["code"][0])
    error.offset = int(first["offset"][0])
    error.stream = stream
    error.ip = int(first["ip"][0]) if first["ip_known"][0] else None
    raise error


def _check_errors(plan: Plan, reader: _core.Reader, result: Any = None) -> None:
    """Raise the first error if the plan says so; `result` is what was just read."""
    if not plan.raises:
        return
    errors = _side(plan, "errors", result if plan.table == "errors" else reader.errors())
    if errors:
        _raise_first(plan, errors)


def _too_large(plan: Plan, rows: int, after: int, *, about: bool) -> OutOfMemoryError:
    count = f"{'about ' if about else ''}{rows:,} rows"
    return memory.too_large(
        f"{plan.table}: {count}", rows * (plan.row_bytes + after), _LESS.format(plan.table), about=about
    )


def _read_apart(plan: Plan, budget: _core.RowBudget) -> _Tables:
    """Read each stream on its own, on several threads; MemoryError: the rows do not fit, by the estimate."""
    readers = [plan.reader([stream], budget=budget, whole=True) for stream in plan.streams]
    return _core.read_all(readers, plan.threads)


def _read_in_order(plan: Plan, budget: _core.RowBudget, rows: int = 0) -> _Tables:
    """Read one stream after the other, into memory for `rows` rows; MemoryError: as `_read_apart`."""
    reader = plan.reader(budget=budget, whole=True)
    if rows:
        reader.reserve(rows)
    result = reader.read(None, plan.raises)
    _check_errors(plan, reader, result)
    return result, reader.errors(), reader.gaps()


def _attempt(
    plan: Plan,
    way: Callable[[Plan, _core.RowBudget], _Tables],
    budget: _core.RowBudget,
) -> _Tables | None:
    """Read; None if memory does not suffice. Rows read until then are freed."""
    try:
        return way(plan, budget)
    except MemoryError:
        return None


def _count(plan: Plan, after: int) -> int:
    """Count the rows without keeping them.

    Raises
    ------
    OutOfMemoryError
        If there are more than fit; counting goes on until that is certain.
    """
    budget = memory.budget(most_rows=memory.free()[0] // max(plan.row_bytes + after, 1))
    counting = plan.counting()
    apart = len(plan.streams) > 1 and plan.threads > 1
    if _attempt(counting, _read_apart if apart else _read_in_order, budget) is None:
        raise _too_large(plan, budget.expected_rows, after, about=True)
    return budget.rows


def _read(plan: Plan, after: int) -> _Tables:
    """Read all rows; afterwards `after` bytes for each are still free.

    Where rows that were read seem to be the first of more than fit, they are dropped and all are counted; if
    they fit after all, they are read again, into memory that does not grow.
    """
    apart = (
        len(plan.streams) > 1
        and plan.threads > 1
        and not plan.raises
        and not plan.reader(budget=memory.budget()).prefers_segments
    )
    budget = memory.budget(plan.row_bytes, after)
    found = _attempt(plan, _read_apart if apart else _read_in_order, budget)
    if found is None:
        rows = _count(plan, after)
        budget = memory.budget(plan.row_bytes, after, estimate=False)
        found = _attempt(plan, partial(_read_in_order, rows=rows), budget)
        if found is None:
            raise _too_large(plan, rows, after, about=False)
    return found


def _indexed_edges(plan: Plan) -> _Tables | None:
    """All edges, if the index has them."""
    if plan.table != "edges" or plan.indexed is None or not plan.is_whole or plan.selection != ALL_EDGES:
        return None
    return plan.indexed.edges()


def whole_edges(plan: Plan) -> Any:
    """All edges, and the errors and gaps that come with them: for an index."""
    return _read(replace(plan, selection=ALL_EDGES, indexed=None), 0)


def read(plan: Plan, after: int = 0) -> Table:
    """Read a whole table; the streams are decoded on several threads.

    Parameters
    ----------
    plan : Plan
        The query.
    after : int
        Bytes for each row that the caller is going to take besides.

    Raises
    ------
    OutOfMemoryError
        If the rows take more memory than this process may take. Little of it is taken before.
    """
    if plan.limits:
        return _read_between(plan)
    if plan.merges:
        after = max(after, plan.row_bytes + MERGE_BYTES)
    result, errors, gaps = _indexed_edges(plan) or _read(plan, after)
    plan.after()
    table = from_core(
        plan.table,
        result,
        columns=plan.shown,
        context=plan.context,
        errors=_errors(plan, errors),
        gaps=_side(plan, "gaps", gaps),
    )
    if plan.table == "errors":
        plan.met(table)
    return sorted_by_time(table) if plan.merges else table


def _read_between(plan: Plan) -> Table:
    """Read the rows between two positions: part by part, as few of many may be."""
    if parts := list(iterate(plan, _KEPT_ROWS, False)):
        return concatenate(parts)
    schema = schema_of(plan.table)
    arrays = {name: np.empty(0, schema.columns[name].dtype) for name in plan.stored}
    _, _, runs = _no_rows(plan.table)
    sides = _no_side(plan, "errors"), _no_side(plan, "gaps")
    result = (0, arrays, runs)
    return from_core(
        plan.table, result, columns=plan.shown, context=plan.context, errors=sides[0], gaps=sides[1]
    )


def _part_budget(plan: Plan) -> _core.RowBudget:
    return memory.budget(plan.row_bytes, estimate=False)


def _part_too_large(plan: Plan, rows: int) -> OutOfMemoryError:
    parts = f"{plan.table}: parts of {rows:,} rows"
    return memory.too_large(parts, rows * plan.row_bytes, "read smaller parts: rows=...")


def _parts(plan: Plan, rows: int) -> Iterator[Table]:
    reader = plan.reader(budget=_part_budget(plan))
    while True:
        try:
            result = reader.read(rows, plan.raises)
        except MemoryError:
            raise _part_too_large(plan, rows) from None
        _check_errors(plan, reader, result)
        plan.after()
        errors, gaps = _errors(plan, reader.errors()), _side(plan, "gaps", reader.gaps())
        part = from_core(
            plan.table, result, columns=plan.shown, context=plan.context, errors=errors, gaps=gaps
        )
        # The last part may be empty but for errors and gaps.
        if len(part) or errors or gaps:
            yield part
        if len(part) < rows:
            return


def _reused_parts(plan: Plan, rows: int) -> Iterator[Table]:
    schema = schema_of(plan.table)
    has_runs = bool(schema.names("run"))
    reader = plan.reader(budget=_part_budget(plan))
    try:
        reader.make_part(rows)
    except MemoryError:
        raise _part_too_large(plan, rows) from None
    no_sides = _no_side(plan, "errors"), _no_side(plan, "gaps")
    runs: dict[str, NDArray[Any]] = {}
    kept: Runs | None = None
    count = rows
    while count == rows:
        try:
            filled, found, has_sides, arrays = reader.fill(plan.raises)
        except MemoryError:
            raise _part_too_large(plan, rows) from None
        plan.after()
        sides = no_sides
        if has_sides:
            _check_errors(plan, reader)
            sides = _errors(plan, reader.errors()), _side(plan, "gaps", reader.gaps())
        if has_runs and (found is not runs or filled != count):
            kept = Runs(filled, found)
        count, runs = filled, found
        if count or has_sides:
            if count < rows:
                arrays = {name: array[:count] for name, array in arrays.items()}
            data = Columns(schema, count, arrays, kept, plan.context)
            yield Table(data, columns=plan.shown, errors=sides[0], gaps=sides[1])


def _parts_in_time(plan: Plan, rows: int) -> Iterator[Table]:
    each = [_parts(replace(plan, streams=(stream,)), min(rows, _MERGE_ROWS)) for stream in plan.streams]
    return merge_in_time(each, rows)


def _side_between(side: Table | None, limits: Limits) -> Table | None:
    """Errors or gaps between the limits."""
    return None if side is None else side[rows_between(side, limits)[0]]


def _kept_parts(plan: Plan, parts: Iterator[Table]) -> Iterator[Table]:
    """Rows between the limits of a plan; reading ends where no more can come."""
    of_offsets = {name: limit for name, limit in plan.limits.items() if name == "offset"}
    of_sides = {**of_offsets, **plan.side_limits}
    for part in parts:
        rows, more = rows_between(part, plan.limits)
        kept = part[rows]
        kept.errors, kept.gaps = _side_between(part.errors, of_sides), _side_between(part.gaps, of_sides)
        if len(kept) or kept.errors or kept.gaps:
            yield kept
        if not more and len(plan.streams) == 1:
            return


def iterate(plan: Plan, rows: int, reuse: bool) -> Iterator[Table]:
    """Read a table in parts of `rows` rows (the last may have fewer) and bounded memory.

    Raises
    ------
    ConfigError
        If `rows` is no positive integer, or parts of a merged order are to share memory.
    """
    rows = integer("rows", rows, 1, _MOST_ROWS)
    if reuse and plan.merges:
        raise ConfigError('reuse=True and order="time" do not go together: merged parts are new memory')
    if plan.merges:
        parts = _parts_in_time(plan, rows)
    else:
        reused = reuse and not (plan.raises and plan.table == "errors")
        parts = _reused_parts(plan, rows) if reused else _parts(plan, rows)
    return _kept_parts(plan, parts) if plan.limits else parts
