"""A user's question, checked and turned into what the core computes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from ptkit import _core
from ptkit.arguments import LAST_ADDRESS, flag, integer, integers, member, names
from ptkit.errors import ColumnError, ConfigError
from ptkit.schema import schema_of
from ptkit.table.derived import derived_of

if TYPE_CHECKING:
    from ptkit.table import TableContext

_TIMES = {"tsc", "tsc_error", "tsc_source", "time_known", "flags"}
_NOWHERE = (1, 0, None)  # a range that contains nothing: no range at all would select everything

#: First and last address, and the only space that is meant (None: every one).
Range: TypeAlias = tuple[int, int, int | None]
SymbolRanges: TypeAlias = Callable[[str], list[Range]]


class Query(TypedDict, total=False):
    """Which columns and rows of a table, in which order.

    Attributes
    ----------
    columns : sequence of str
        Columns to compute; by default all stored ones. Columns made on access (``taken``, ``tid``,
        ``time_ns``, ``from_symbol``, ...) may be among them. What is not asked for, or needed for it, is not
        computed.
    stream : int or sequence of int
        Indices in ``trace.streams``.
    tid, pid : int or sequence of int
        Threads and processes.
    time : tuple of int
        ``(t0, t1)`` in TSC ticks: rows with a known ``tsc`` in [t0, t1). None leaves an end open.
    ip : tuple of int, or sequence of tuples
        Address ranges [low, high). A branch or gap is selected if one of its ends lies inside, a block if it
        overlaps.
    symbol : str
        Name of a function: the addresses that it covers.
    kind : int, str, ptkit.BranchKind, or sequence of these
        Branches and edges: only of these kinds, such as ``("CALL", "CALL_INDIRECT", "RETURN")``. What is
        not selected costs no row.
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
        If a value is out of range; the message says the range.
    ColumnError, SymbolError
        If there is no such column or symbol; the message has names to choose from.
    TypeError
        If there is no such argument.

    Notes
    -----
    Whatever is selected, the whole stream is decoded: what a packet means depends on those before it. Rows
    that are not selected, and columns that are not asked for, cost no memory. A trace that has an index
    (`Trace.index`) is decoded only where rows of the selected times and addresses may be.
    """

    columns: Sequence[str] | None
    stream: int | Sequence[int] | None
    tid: int | Sequence[int] | None
    pid: int | Sequence[int] | None
    time: tuple[int | None, int | None] | None
    ip: tuple[int, int] | Sequence[tuple[int, int]] | None
    symbol: str | None
    kind: int | str | Sequence[int | str] | None
    taken: bool | None
    order: str
    threads: int | None
    errors: str | None


@dataclass(frozen=True)
class Settings:
    """How a trace is decoded, as `ptkit.open` was told."""

    engine: str = "ptkit"
    resync: str = "ip"
    threads: int | None = None
    errors: str = "rows"
    index: _core.Index | None = None


@dataclass(frozen=True)
class Plan:
    """A checked question."""

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

    def reader(self, streams: Sequence[int] | None = None, *, side_tables: bool = True) -> _core.Reader:
        """Make a reader of the core for some of the streams (all by default)."""
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
            side_tables=side_tables,
            select_sides=self.select_sides,
            index=self.settings.index,
            threads=1 if self.raises else self.threads,
        )


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise ConfigError if the value is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ConfigError(f"{name}={value!r} is none of {', '.join(map(repr, choices))}")


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
            needed.update(derived[name].needs)
        elif name not in schema.columns:
            raise ColumnError(
                f"{table} has no column {name!r}; there are {', '.join([*schema.columns, *derived])}"
            )
    # What a table can make of its columns without being asked for it must come out right, too.
    for one in derived.values():
        if needed.issuperset(set(one.needs) & set(schema.names("stored"))):
            needed.update(one.needs)
    return shown, needed


def _stored(table: str, needed: set[str]) -> tuple[str, ...]:
    """Columns that the core has to fill."""
    schema = schema_of(table)
    with_flags = set(schema.names("flag")) & (needed | {schema.validity.get(name, "") for name in needed})
    return tuple(
        name for name in schema.names("stored") if name in needed or (name == "flags" and with_flags)
    )


def _streams(value: Any, count: int) -> tuple[int, ...]:
    if value is None:
        return tuple(range(count))
    return tuple(dict.fromkeys(integers("stream", value, 0, count - 1, hint="see trace.streams")))


def _ranges(value: Any) -> list[Range]:
    """Inclusive ranges of [low, high) pairs, in every space."""
    pairs: Any = value.tolist() if isinstance(value, np.ndarray) else value
    if (
        isinstance(pairs, (tuple, list))
        and len(pairs) == 2
        and all(hasattr(end, "__index__") for end in pairs)
    ):
        pairs = [pairs]
    ranges: list[Range] = []
    try:
        bounds = [(low, high) for low, high in pairs]
    except (TypeError, ValueError):
        raise ConfigError(f"ip={value!r} must be (low, high) or a list of such pairs") from None
    for low, high in bounds:
        low, high = integer("ip", low, 0, LAST_ADDRESS), integer("ip", high, 0, LAST_ADDRESS + 1)
        if low >= high:
            raise ConfigError(f"ip: [{low:#x}, {high:#x}) is empty")
        ranges.append((low, high - 1, None))
    return ranges


def _intersection(some: list[Range], others: list[Range]) -> list[Range]:
    """Meet ranges with others."""
    both = [
        (max(a, c), min(b, d), here if there is None else there)
        for a, b, here in some
        for c, d, there in others
        if here is None or there is None or here == there
    ]
    return [found for found in both if found[0] <= found[1]]


def _time(value: Any) -> tuple[int, int]:
    try:
        begin, end = value
    except (TypeError, ValueError):
        raise ConfigError(f"time={value!r} must be (t0, t1) in TSC ticks") from None
    hint = "(t0, t1) are TSC ticks; None leaves an end open"
    low = 0 if begin is None else integer("time", begin, 0, LAST_ADDRESS, floats=True, hint=hint)
    high = LAST_ADDRESS if end is None else integer("time", end, 0, LAST_ADDRESS, floats=True, hint=hint)
    if low > high:
        raise ConfigError(f"time={value!r}: t0 must not be above t1")
    return low, high


def _kinds(value: Any) -> int:
    """Kinds of branches as bits."""
    bits = 0
    for kind in [value] if isinstance(value, str) or not isinstance(value, Iterable) else value:
        if not isinstance(kind, str):
            bits |= 1 << integer("kind", kind, 0, max(_core.BranchKind), hint="see ptkit.BranchKind")
        else:
            bits |= 1 << member("kind", _core.BranchKind, kind)
    return bits


def _bind(selection: dict[str, Any], bound: dict[str, Any]) -> dict[str, Any]:
    """Select among the rows that are selected already, by time and address."""
    both = {**bound, **selection}
    if "time" in bound and "time" in selection:
        (a, b), (c, d) = bound["time"], selection["time"]
        both["time"] = max(a, c), max(min(b, d), max(a, c))
    if "ips" in bound and "ips" in selection:
        both["ips"] = _intersection(selection["ips"], bound["ips"]) or [_NOWHERE]
    return both


def _selection(query: Query, symbol_ranges: SymbolRanges) -> dict[str, Any]:
    selection: dict[str, Any] = {}
    ips = None if query.get("ip") is None else _ranges(query["ip"])
    symbol: Any = query.get("symbol")
    if symbol is not None:
        covered = symbol_ranges(symbol)
        ips = covered if ips is None else _intersection(ips, covered)
    if ips is not None:
        selection["ips"] = ips or [_NOWHERE]
    for name in ("tid", "pid"):
        if query.get(name) is not None:
            selection[f"{name}s"] = integers(name, query.get(name), 0, 2**31 - 1)
    if query.get("time") is not None:
        selection["time"] = _time(query["time"])
    if query.get("kind") is not None:
        selection["kinds"] = _kinds(query["kind"])
    if query.get("taken") is not None:
        selection["taken"] = flag("taken", query["taken"])
    return selection


def _by_space(selection: dict[str, Any]) -> bool:
    return any(space is not None for _, _, space in selection.get("ips", ()))


def plan_of(
    session: _core.Session,
    settings: Settings,
    context: TableContext,
    table: str,
    query: Query,
    *,
    stream_count: int,
    symbol_ranges: SymbolRanges,
    ticks: bool = False,
    sync: bool = True,
    bound: Query | None = None,
) -> Plan:
    """Check a question, asked of all rows or of those of `bound`, and say what the core has to compute.

    Raises
    ------
    ConfigError, ColumnError, SymbolError
        If an argument is out of range; the message has the range.
    """
    unknown = sorted(set(query) - set(Query.__annotations__))
    if unknown:
        raise TypeError(
            f"{table}() has no argument {unknown[0]!r}; there are {', '.join(Query.__annotations__)}"
        )
    for name in ("kind", "taken"):
        if query.get(name) is not None and table not in ("branches", "edges"):
            raise ConfigError(f"{name} selects branches and edges, not {table}")
    order: Any = query.get("order")
    order = "stream" if order is None else order
    check_choice("order", order, ("stream", "time"))
    errors: Any = query.get("errors")
    errors = settings.errors if errors is None else errors
    threads = query.get("threads")
    check_choice("errors", errors, ("rows", "raise"))
    shown, needed = _needed(table, query.get("columns"), context)
    stored = _stored(table, needed)
    by_time = order == "time" and table != "edges"
    if by_time:
        stored = tuple(name for name in schema_of(table).names("stored") if name in {*stored, "tsc", "flags"})
    if table == "edges":
        stored = schema_of(table).names("stored")
    selection = _selection(query, symbol_ranges)
    if bound is not None:
        selection = _bind(selection, _selection(bound, symbol_ranges))
    runs = set(schema_of(table).names("run", "run flag"))
    return Plan(
        session=session,
        settings=settings,
        context=context,
        table=table,
        shown=shown,
        stored=stored,
        streams=_streams(query.get("stream"), stream_count),
        selection=selection,
        time=by_time or "time" in selection or bool(_TIMES & needed),
        switches=bool(needed & runs) or bool({"tids", "pids"} & set(selection)) or _by_space(selection),
        ticks=ticks,
        sync=sync,
        by_time=by_time,
        threads=thread_count(settings.threads if threads is None else threads),
        raises=errors == "raise",
        select_sides=bound is not None,
    )
