"""The part of a trace between two events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit import decode as _decode
from ptkit.decode import Query
from ptkit.decode.call_table import CallTable
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.schema import schema_of
from ptkit.table import Columns, Table
from ptkit.table.derived import indirect_branches
from ptkit.trace.branching import Branching
from ptkit.trace.parts import with_targets
from ptkit.trace.plots import NO_TIMES, Plots, limits_of
from ptkit.trace.viewing import PartView

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ptkit.decode.limits import Limits
    from ptkit.trace.whole import WholeTrace

__all__ = ["Slice"]

# By which column rows of each table lie between two events.
_POSITIONS = {
    "packets": "offset",
    "branches": "instruction",
    "blocks": "instruction",
    "instructions": "instruction",
    "events": "order",
    "errors": "order",
    "gaps": "order",
}
_OF_EDGES = ["from_ip", "to_ip", "kind", "flags", "space"]
_EDGE = ("space", "from_ip", "to_ip", "kind", "flags")


class Slice(Branching, Plots, PartView):
    """The tables of a trace between two events of one stream.

    All methods of `Trace` that give tables are there, with the same arguments, and select among the rows of
    the slice, but ``iter_edges``. Instructions, branches and blocks are those that were executed between the
    events; events, errors and gaps those between them, without the two; packets those between their packets.
    Frames are what they did between the events. With ``whole_calls=True``, they are those of which a part
    lies between the packets of the events, as a whole, and there are sums by function only.

    Made by `Trace.slice`.
    """

    def __init__(self, trace: WholeTrace, after: Table | None, before: Table | None) -> None:
        self._trace = trace
        given = [_event("after", after), _event("before", before)]
        streams = {int(one["stream"][0]) for one in given if one is not None}
        if not streams:
            raise ConfigError("slice: give after=, before= or both: rows of trace.events()")
        if len(streams) > 1:
            raise ConfigError(f"slice: the events are of streams {' and '.join(map(str, sorted(streams)))}")
        (self._stream,) = streams
        self._limits = {name: _limits(name, *given) for name in ("offset", "instruction", "order")}
        low, high = self._limits["order"]
        if low > high + 1:
            raise ConfigError("slice: the event of after= must not come after that of before=")

    def __repr__(self) -> str:
        low, high = self._limits["instruction"]
        end = "the end" if high == LAST_ADDRESS else f"{high:,}"
        where = f"stream {self._stream}, instructions {low:,} to {end}"
        return f"<ptkit.Slice of {self._trace.source!r}, {where}>"

    @property
    def stream(self) -> int:
        """Index of the stream that it is of."""
        return self._stream

    def _bound_query(self) -> dict[str, Any] | None:
        return None

    def _whole(self) -> WholeTrace:
        return self._trace

    def _span(self) -> tuple[int, int] | None:
        return self._trace.open_parts.times.span

    def _ranges_of(self, function: str) -> list[_decode.Range]:
        return self._trace.open_parts.ranges_of(function)

    def _plan(self, table: str, query: Query, **more: Any) -> _decode.Plan:
        if query.get("stream") not in (None, self._stream):
            raise ConfigError(f"stream={query.get('stream')!r}: the slice is of stream {self._stream}")
        if query.get("instructions") is not None:
            raise ConfigError("instructions: a slice has those between its events; leave it out")
        whole: Query = {**query, "stream": self._stream}
        return self._trace.open_parts.plan(table, whole, **more).between(
            self._limit(table), self._limit("events")
        )

    def _limit(self, table: str) -> Limits:
        column = _POSITIONS.get(table)
        return {} if column is None else {column: self._limits[column]}

    def _window(self, plan: _decode.Plan) -> _decode.Window:
        return _decode.Window("instructions", *self._limits["instruction"])

    def _frames(
        self, query: Query, frames: str, *, inlines: bool = False, whole: bool = False
    ) -> tuple[CallTable, Table]:
        if not whole:
            return super()._frames(query, frames, inlines=inlines)
        plan = self._plan("calls", query)
        offsets = ("offset", "end_offset")
        plan = replace(plan, stored=(*{*plan.stored, *offsets},))
        calls, anomalies = _decode.read_calls(plan, frames=frames, inlines=inlines)
        low, high = self._limits["offset"]
        begin, end = (calls.data.arrays[name] for name in offsets)
        offset = np.asarray(anomalies["offset"])
        return calls[(begin < high) & (end >= low)], anomalies[(offset >= low) & (offset < high)]

    def _frame_parts(
        self, query: Query, rows: int, *, inlines: bool = False, whole: bool = False
    ) -> Iterator[Table]:
        if whole:
            raise ConfigError("whole_calls: a slice has no iter_calls() of whole calls; use calls()")
        return super()._frame_parts(query, rows, inlines=inlines)

    def _function_sums(
        self, query: Query, *, by: str, frames: str, tails: str, inlines: bool, whole: bool
    ) -> Table:
        if not whole:
            return super()._function_sums(
                query, by=by, frames=frames, tails=tails, inlines=inlines, whole=False
            )
        shown = query.pop("columns", None)
        calls, _ = self._frames(query, frames, inlines=inlines, whole=True)
        return calls.functions(by, tails=tails, columns=shown)

    def _tree_sums(self, query: Query, frames: str, *, inlines: bool, whole: bool) -> Table:
        if not whole:
            return super()._tree_sums(query, frames, inlines=inlines, whole=False)
        shown = query.pop("columns", None)
        return self._frames(query, frames, inlines=inlines, whole=True)[0].tree(columns=shown)

    def edges(
        self, *, by: str | None = None, bins: int | Sequence[int] | None = None, **query: Unpack[Query]
    ) -> Table:
        """Every edge of the slice, as `Trace.edges`, without phases.

        Parameters
        ----------
        by, bins : None
            A slice has no phases.
        **query
            See `ptkit.decode.Query`.

        Returns
        -------
        Table
            As `Trace.edges`.

        Raises
        ------
        ConfigError, SymbolError, ColumnError, DecodeError, OutOfMemoryError
            As for `Trace.edges`.
        """
        if by is not None or bins is not None:
            raise ConfigError("by, bins: a slice has no phases")
        shown = query.pop("columns", None)
        query["columns"] = _OF_EDGES
        branches = self.branches(**query)
        columns = schema_of("edges").names("stored") if shown is None else tuple(shown)
        return with_targets(_edges_of(branches))[list(columns)]

    def _one_stream(self) -> int | None:
        return self.stream

    def _counts(self, query: Query) -> tuple[_decode.Plan, _decode.ExecutedCode, Table]:
        plan = self._plan("blocks", {**query, "columns": _decode.BLOCK_COLUMNS})
        of_edges: Query = {**query, "columns": _decode.EDGE_COLUMNS}
        return plan, _decode.read_code(plan), self.edges(**of_edges)

    def _phases(self, by: str, slots: int, query: Query) -> tuple[list[int], Table]:
        """Slots lie between the first and the last branch of the slice."""
        axis = "tsc" if by == "time" else "instruction"
        query["columns"] = [*_OF_EDGES, axis]
        branches = self.branches(**query)
        if not len(branches):
            raise ConfigError("plot: no branch of the slice is selected")
        known = branches.known(axis)
        branches = branches if known is None else branches[known]
        if not len(branches):
            raise ConfigError(NO_TIMES)
        positions = np.asarray(branches[axis])
        begin, end = int(positions.min()), int(positions.max()) + 1
        limits = limits_of(begin, end, slots)
        bins = np.searchsorted(np.array(limits, positions.dtype), positions, side="right") - 1
        edges = with_targets(_edges_of(branches, bins))[["bin", "count", "to_module"]]
        return limits if by == "time" else [], edges


def _edges_of(branches: Table, bins: NDArray[Any] | None = None) -> Table:
    """Count the branches of which both ends are known, or the target may have the name of an import.

    `bins`: those of each bin.
    """
    sources, targets = branches["from_known"], branches["to_known"]
    kept = np.flatnonzero(sources & (targets | indirect_branches(branches["kind"], sources)))
    rows = branches[kept]
    to_known = rows["to_known"]
    schema = schema_of("edges")
    names = _EDGE if bins is None else ("bin", *_EDGE)
    keys = np.empty(len(rows), [(name, schema.columns[name].dtype) for name in names])
    if bins is not None:
        keys["bin"] = bins[kept]
    for name in ("space", "from_ip", "kind"):
        keys[name] = rows[name]
    keys["to_ip"] = np.where(to_known, rows["to_ip"], 0)
    keys["flags"] = np.where(to_known, schema.columns["to_known"].mask, 0)
    edges, counts = np.unique(keys, return_counts=True)
    arrays = {name: edges[name].copy() for name in names}
    arrays["count"] = counts.astype(schema.columns["count"].dtype)
    for array in arrays.values():
        array.flags.writeable = False
    data = Columns(schema, len(edges), arrays, context=branches.data.context)
    return Table(data, errors=branches.errors, gaps=branches.gaps)


def _event(name: str, event: Table | None) -> Table | None:
    if event is None:
        return None
    if not isinstance(event, Table) or event.name not in ("events", "errors", "gaps") or len(event) != 1:
        raise ConfigError(f"{name}: give one row of trace.events(), such as events[3:4]")
    missing = {"instruction", "order"} - set(event.columns)
    if missing:
        raise ConfigError(f"{name}: the event lacks columns {', '.join(sorted(missing))}")
    return event


def _limits(name: str, after: Table | None, before: Table | None) -> tuple[int, int]:
    """The first position after an event, and the first that no longer is before the other one."""
    beyond = 0 if name == "instruction" else 1
    low = 0 if after is None else int(after[_column(after, name)][0]) + beyond
    high = LAST_ADDRESS if before is None else int(before[_column(before, name)][0])
    return low, high


def _column(event: Table, name: str) -> str:
    return "begin" if name == "offset" and event.name == "gaps" else name
