"""Frames of call stacks, as tables and as sums over functions."""

from __future__ import annotations

from collections.abc import Iterator

from ptkit import _core
from ptkit.arguments import integer
from ptkit.decode.merge import sorted_by_time
from ptkit.decode.plan import Plan
from ptkit.errors import ConfigError, OutOfMemoryError
from ptkit.schema import schema_of
from ptkit.table import Table
from ptkit.table.table import from_core

_MOST_ROWS = 2**48 - 1
_TIMES = {"end_tsc", "end_tsc_error", "least", "most", "p50", "p99", "max"}


def _query(plan: Plan, *, tails_replaced: bool = False, by: str = "function") -> _core.CallQuery:
    if plan.limits:
        raise ConfigError(f"offset: {plan.table} are not selected by stream offset; select them by time")
    if plan.raises:
        raise ConfigError('errors="raise": call stacks go on after errors; look at trace.errors')
    return _core.CallQuery(
        plan.session,
        streams=list(plan.streams),
        selection=plan.selection,
        engine=plan.settings.engine,
        resync=plan.settings.resync,
        threads=plan.threads,
        time=plan.time or not _TIMES.isdisjoint(plan.stored),
        tails_replaced=tails_replaced,
        by=by,
    )


def _too_large(plan: Plan) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"{plan.table}: the frames do not fit into memory",
        "ask for fewer columns, or read them by iter_calls()",
    )


def read_calls(plan: Plan) -> tuple[Table, Table]:
    """Read all frames, and the anomalies.

    Raises
    ------
    ConfigError
        If they are selected by what frames do not have.
    OutOfMemoryError
        If they do not fit into memory.
    """
    try:
        frames, anomalies = _query(plan).calls(list(plan.stored))
    except MemoryError:
        raise _too_large(plan) from None
    plan.after()
    calls = from_core("calls", frames, columns=plan.shown, context=plan.context)
    others = from_core("stack_anomalies", anomalies, context=plan.context)
    return sorted_by_time(calls) if plan.merges else calls, others


def iterate_calls(plan: Plan, rows: int) -> Iterator[Table]:
    """Read frames in the order in which they end, in parts of `rows` rows.

    Raises
    ------
    ConfigError
        If `rows` is no positive integer, or frames are selected by what they do not have.
    """
    rows = integer("rows", rows, 1, _MOST_ROWS)
    if plan.by_time:
        raise ConfigError('order="time": iter_calls() gives frames as they end; use calls()')
    reader = _core.CallReader(_query(plan), columns=list(plan.stored))
    return _parts(plan, reader, rows)


def _parts(plan: Plan, reader: _core.CallReader, rows: int) -> Iterator[Table]:
    while True:
        try:
            part = reader.read(rows)
        except MemoryError:
            raise _too_large(plan) from None
        plan.after()
        if part[0]:
            yield from_core("calls", part, columns=plan.shown, context=plan.context)
        if part[0] < rows:
            return


def read_functions(plan: Plan, *, by: str, tails_replaced: bool) -> Table:
    """Read the frames, and sum them up by function, entry or module.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for `read_calls`.
    """
    stored = schema_of("functions").names("stored")
    try:
        rows = _query(plan, tails_replaced=tails_replaced, by=by).functions(list(stored))
    except MemoryError:
        raise _too_large(plan) from None
    plan.after()
    return from_core("functions", rows, columns=plan.shown, context=plan.context)


def read_tree(plan: Plan) -> Table:
    """Read the frames, and sum them up for each calling context.

    Raises
    ------
    ConfigError, OutOfMemoryError
        As for `read_calls`.
    """
    if set(plan.selection) & {"ips", "time"}:
        raise ConfigError("call_tree: contexts have all their frames; select threads, processes and streams")
    stored = schema_of("call_tree").names("stored")
    try:
        rows = _query(plan).tree(list(stored))
    except MemoryError:
        raise _too_large(plan) from None
    plan.after()
    return from_core("call_tree", rows, columns=plan.shown, context=plan.context)
