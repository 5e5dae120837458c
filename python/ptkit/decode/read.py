"""Tables as a whole and in parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ptkit import _core
from ptkit.arguments import integer
from ptkit.decode.merge import merge_in_time, sorted_by_time
from ptkit.decode.plan import Plan
from ptkit.errors import ConfigError, DecodeError
from ptkit.schema import schema_of
from ptkit.table import Runs, Table
from ptkit.table.table import from_core

_MOST_ROWS = 2**48 - 1  # more than any memory holds
_MERGE_ROWS = 1 << 16  # rows that a stream decodes ahead where streams are merged


def _side(plan: Plan, name: str, result: Any) -> Table | None:
    return None if result is None else from_core(name, result, context=plan.context)


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
    """Raise the first error, where that was asked for; `result` is what was just read."""
    if not plan.raises:
        return
    errors = _side(plan, "errors", result if plan.table == "errors" else reader.errors())
    if errors:
        _raise_first(plan, errors)


def read(plan: Plan) -> Table:
    """Read a whole table; the streams are decoded on several threads."""
    streams = plan.streams
    if len(streams) > 1 and plan.threads > 1 and not plan.raises:
        result, errors, gaps = _core.read_all([plan.reader([stream]) for stream in streams], plan.threads)
    else:
        reader = plan.reader()
        result = reader.read(None, plan.raises)
        _check_errors(plan, reader, result)
        errors, gaps = reader.errors(), reader.gaps()
    table = from_core(
        plan.table,
        result,
        columns=plan.shown,
        context=plan.context,
        errors=_side(plan, "errors", errors),
        gaps=_side(plan, "gaps", gaps),
    )
    return sorted_by_time(table) if plan.by_time and len(streams) > 1 else table


def _parts(plan: Plan, rows: int) -> Iterator[Table]:
    reader = plan.reader()
    while True:
        result = reader.read(rows, plan.raises)
        _check_errors(plan, reader, result)
        errors, gaps = _side(plan, "errors", reader.errors()), _side(plan, "gaps", reader.gaps())
        part = from_core(
            plan.table, result, columns=plan.shown, context=plan.context, errors=errors, gaps=gaps
        )
        # The last part may be empty but for errors and gaps.
        if len(part) or errors or gaps:
            yield part
        if len(part) < rows:
            return


def _parts_in_place(plan: Plan, rows: int) -> Iterator[Table]:
    schema = schema_of(plan.table)
    has_runs = bool(schema.names("run"))
    reader = plan.reader()
    memory = reader.make_part(rows)
    no_sides = _no_side(plan, "errors"), _no_side(plan, "gaps")
    runs: dict[str, NDArray[Any]] = {}
    kept: Runs | None = None
    count = rows
    while count == rows:
        filled, found, has_sides, elsewhere = reader.fill(plan.raises)
        sides = no_sides
        if has_sides:
            _check_errors(plan, reader)
            sides = _side(plan, "errors", reader.errors()), _side(plan, "gaps", reader.gaps())
        if has_runs and (found is not runs or filled != count):
            kept = Runs(filled, found)
        count, runs = filled, found
        if count or has_sides:
            if elsewhere is None and count < rows:
                elsewhere = {name: array[:count] for name, array in memory.items()}
            yield Table(
                schema,
                count,
                elsewhere or memory,
                kept,
                columns=plan.shown,
                context=plan.context,
                errors=sides[0],
                gaps=sides[1],
            )


def _parts_in_time(plan: Plan, rows: int) -> Iterator[Table]:
    from dataclasses import replace

    each = [_parts(replace(plan, streams=(stream,)), min(rows, _MERGE_ROWS)) for stream in plan.streams]
    return merge_in_time(each, rows)


def iterate(plan: Plan, rows: int, reuse: bool) -> Iterator[Table]:
    """Read a table in parts of `rows` rows (the last may have fewer) and bounded memory.

    Raises
    ------
    ConfigError
        If `rows` is no positive integer, or parts of a merged order are to share memory.
    """
    rows = integer("rows", rows, 1, _MOST_ROWS)
    merged = plan.by_time and len(plan.streams) > 1
    if reuse and merged:
        raise ConfigError('reuse=True and order="time" do not go together: merged parts are new memory')
    if merged:
        return _parts_in_time(plan, rows)
    in_place = reuse and not (plan.raises and plan.table == "errors")
    return _parts_in_place(plan, rows) if in_place else _parts(plan, rows)
