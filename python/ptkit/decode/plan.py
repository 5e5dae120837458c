"""A query, checked and turned into a plan for the core."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit.decode.index_sums import IndexSums
from ptkit.decode.kept_sums import KeptSums
from ptkit.decode.limits import Limits, columns_of, offset_limits
from ptkit.decode.opened import OpenTrace, Settings
from ptkit.decode.query import Query
from ptkit.decode.scope import Scope
from ptkit.decode.selection import bind, by_space, selection_of
from ptkit.errors import ColumnError, ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer, names
from ptkit.support.schema import schema_of
from ptkit.table.derived import derived_of

if TYPE_CHECKING:
    from ptkit.table import Table, TableContext

# Rows with these columns are selected by address many at a time.
_SELECTED_BY = {
    "branches": ("from_ip", "to_ip", "flags"),
    "blocks": ("ip", "size"),
    "instructions": ("ip",),
}
# Tables that are limited to instructions: of frames, and of rows with a number of instructions before them.
_FRAMES = ("calls", "functions", "call_tree")
_NUMBERED = ("branches", "blocks", "instructions", "events", "errors", "gaps")
_TIMES = {"tsc", "tsc_error", "tsc_source", "tsc_estimate", "time_known", "end_time_known", "flags"}


def _nothing() -> None:
    pass


def _ignore(errors: Table) -> None:
    pass


@dataclass(frozen=True)
class Plan:
    """A checked query."""

    session: _core.Session
    settings: Settings
    context: TableContext
    table: str
    shown: tuple[str, ...]  # columns of the result
    stored: tuple[str, ...]  # columns that the core fills
    streams: tuple[int, ...]
    selection: dict[str, Any] = field(default_factory=dict)
    time: bool = True
    switches: bool = True
    ticks: bool = False
    sync: bool = True
    by_time: bool = False
    threads: int = 1
    raises: bool = False
    select_sides: bool = False
    sides: bool = True  # errors and gaps come with the rows
    after: Callable[[], None] = _nothing  # called when something was decoded
    met: Callable[[Table], None] = _ignore  # called with errors, which come in parts
    limits: Limits = field(default_factory=dict)  # between which positions of the stream rows lie
    side_limits: Limits = field(default_factory=dict)  # the same for their errors and gaps, if others
    window: tuple[int, int] | None = None  # frames: instructions of their streams at which they are cut
    kept: KeptSums | None = None  # where sums over frames are kept
    indexed: IndexSums | None = None  # sums over all rows of all streams
    is_every: bool = False  # rows of all streams are asked for
    is_whole: bool = False  # all rows of all streams are asked for

    @property
    def merges(self) -> bool:
        """Whether rows of several streams are merged by time."""
        return self.by_time and len(self.streams) > 1

    @property
    def row_bytes(self) -> int:
        """Bytes that a row takes."""
        columns = schema_of(self.table).columns
        return sum(columns[name].dtype.itemsize for name in self.stored)

    def between(self, limits: Limits, side_limits: Limits | None = None) -> Plan:
        """Limit the query to rows between two positions.

        Raises
        ------
        ConfigError
            If its rows have no such position.
        """
        if self.table == "edges":
            raise ConfigError("edges have no position in a stream: count branches")
        limits = {**self.limits, **limits}
        wanted = {*self.stored, *columns_of(self.table, limits)}
        stored = tuple(name for name in schema_of(self.table).names("stored", "on demand") if name in wanted)
        return replace(self, stored=stored, limits=limits, side_limits=side_limits or {})

    def within(self, instructions: tuple[int, int]) -> Plan:
        """Limit the query to instructions [low, high) of its streams.

        Raises
        ------
        ConfigError
            If its rows have no such position.
        """
        plan = replace(self, is_whole=False)
        if self.table in _FRAMES:
            return replace(plan, window=instructions)
        if self.table == "edges":
            low, high = (
                instructions if instructions[0] < instructions[1] else (LAST_ADDRESS - 1, LAST_ADDRESS)
            )
            selection = {**self.selection, "by": "instructions", "bins": [low, high]}
            return replace(plan, selection=selection, stored=(*self.stored, "bin"))
        if self.table not in _NUMBERED:
            raise ConfigError(
                f"instructions: {self.table} are not selected by instructions; select them by time"
            )
        return plan.between({"instruction": instructions}, {"instruction": instructions})

    def counting(self) -> Plan:
        """Limit the query to the number of rows."""
        return replace(self, stored=(), shown=(), time="time" in self.selection, raises=False, sides=False)

    def reader(
        self,
        streams: Sequence[int] | None = None,
        *,
        budget: _core.RowBudget | None = None,
        whole: bool = False,
    ) -> _core.Reader:
        """Make a reader of the core for some of the streams (all by default).

        With `whole`, ``offset`` may come as a RunColumn; then read all rows, and no parts.
        """
        return _core.Reader(
            self.session,
            self.table,
            columns=list(self.stored),
            streams=list(self.streams if streams is None else streams),
            selection=self.selection,
            engine=self.settings.engine,
            resync=self.settings.resync,
            time=self.time,
            context=self.switches,
            ticks=self.ticks,
            sync=self.sync,
            side_tables=self.sides,
            select_sides=self.select_sides,
            whole=whole,
            index=self.settings.index,
            threads=1 if self.raises else self.threads,
            budget=budget,
        )


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ConfigError if the value is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")


def thread_count(threads: int | None) -> int:
    """Turn ``threads=None`` into all cores that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return integer("threads", threads, 1, 2**31 - 1, hint="None takes all cores")


def _needed(
    table: str, columns: Sequence[str] | None, context: TableContext
) -> tuple[tuple[str, ...], set[str]]:
    """Columns to show, and these with all that they are made of."""
    schema = schema_of(table)
    if columns is None:
        return schema.names("stored"), set(schema.names("stored", "run"))
    shown = tuple(dict.fromkeys(names("columns", columns)))
    derived = {name: one for name, one in derived_of(table).items() if one.offered(context)}
    needed = set(shown)
    for name in shown:
        if name in derived:
            needed.update(derived[name].needs + derived[name].uses)
        elif name not in schema.columns:
            raise ColumnError(
                f"{table} has no column {name!r}; there are {', '.join([*schema.columns, *derived])}"
            )
    # Columns that a table derives on access need the same columns.
    for one in derived.values():
        if needed.issuperset(set(one.needs) & set(schema.names("stored", "on demand"))):
            needed.update(one.needs)
    return shown, needed


def _stored(table: str, needed: set[str]) -> tuple[str, ...]:
    """Columns that the core has to fill."""
    schema = schema_of(table)
    with_flags = set(schema.names("flag")) & (needed | {schema.validity.get(name, "") for name in needed})
    return tuple(
        name
        for name in schema.names("stored", "on demand")
        if name in needed or (name == "flags" and with_flags)
    )


def _arguments_of(method: Callable[..., Any] | None) -> list[str]:
    """Names of all arguments: those of its own, and those of each query."""
    own = list(signature(method).parameters.values())[1:] if callable(method) else []  # without self
    return [*(one.name for one in own if one.kind != one.VAR_KEYWORD), *Query.__annotations__]


def plan_of(
    opened: OpenTrace,
    context: TableContext,
    table: str,
    query: Query,
    *,
    scope: Scope,
    ticks: bool = False,
    sync: bool = True,
    bound: Query | None = None,
    after: Callable[[], None] = _nothing,
    met: Callable[[Table], None] = _ignore,
    method: Callable[..., Any] | None = None,
) -> Plan:
    """Check a query of all rows, or of the rows of `bound`, and plan what the core computes.

    `method`: what was called with the query, for messages.

    Raises
    ------
    ConfigError, ColumnError, SymbolError
        If an argument is out of range; the message has the range.
    """
    unknown = sorted(set(query) - set(Query.__annotations__))
    if unknown:
        raise TypeError(
            f"{table}() has no argument {unknown[0]!r}; there are {', '.join(_arguments_of(method))}"
        )
    if query.get("kind") is not None and table not in ("branches", "edges", "events"):
        raise ConfigError(f"kind selects branches, edges and events, not {table}")
    if query.get("taken") is not None and table not in ("branches", "edges"):
        raise ConfigError(f"taken selects branches and edges, not {table}")
    order: Any = query.get("order")
    order = "stream" if order is None else order
    check_choice("order", order, ("stream", "time"))
    errors: Any = query.get("errors")
    errors = opened.settings.errors if errors is None else errors
    threads = query.get("threads")
    check_choice("errors", errors, ("rows", "raise"))
    shown, needed = _needed(table, query.get("columns"), context)
    stored = _stored(table, needed)
    by_time = order == "time" and table != "edges"
    if by_time:
        every = schema_of(table).names("stored", "on demand")
        stored = tuple(name for name in every if name in {*stored, "tsc", "flags"})
    if table == "edges":
        stored = schema_of(table).names("stored")
    selection = selection_of(query, scope, table)
    if bound is not None:
        selection = bind(selection, selection_of(bound, scope, table))
    if "ips" in selection and table in _SELECTED_BY:
        every = schema_of(table).names("stored", "on demand")
        stored = tuple(name for name in every if name in {*stored, *_SELECTED_BY[table]})
    runs = set(schema_of(table).names("run", "run flag"))
    streams, raises = scope.streams(query), errors == "raise"
    is_every = set(streams) == set(range(scope.count))
    plan = Plan(
        session=opened.session,
        settings=opened.settings,
        context=context,
        table=table,
        shown=shown,
        stored=stored,
        streams=streams,
        selection=selection,
        # Flags of edges are not of times.
        time=by_time or "time" in selection or (table != "edges" and bool(_TIMES & needed)),
        switches=bool(needed & runs)
        or bool({"tids", "pids", "spaces"} & set(selection))
        or by_space(selection),
        ticks=ticks,
        sync=sync,
        by_time=by_time,
        threads=thread_count(opened.settings.threads if threads is None else threads),
        raises=raises,
        select_sides=bound is not None,
        after=after,
        met=met,
        kept=opened.kept,
        indexed=None if raises or opened.settings.engine != "ptkit" else opened.indexed,
        is_every=is_every,
        is_whole=is_every and not selection and bound is None,
    )
    offset = query.get("offset")
    return plan if offset is None else plan.between({"offset": offset_limits(offset)})
