"""Frames of a trace, each with its caller and call site: what profiles are summed up of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit.errors import ConfigError
from ptkit.info import EMULATOR
from ptkit.support.groups import numbered
from ptkit.support.text import counted

if TYPE_CHECKING:
    from ptkit.decode import ExecutedCode, OpenTrace
    from ptkit.decode.call_table import CallTable
    from ptkit.info import TraceInfo
    from ptkit.table import Table
    from ptkit.table.base import BaseTable

__all__ = [
    "FrameRows",
    "HasInfo",
    "ProfileTrace",
    "ReadRows",
    "check_query",
    "has_real_times",
    "has_source",
    "is_emulated",
    "losses_of",
    "rows_of",
]

#: Frames of which call sites and times are known: their rows are in memory at once. Of more frames, both are
#: left out.
MOST_FRAMES = 4_000_000
_REFUSED = ("columns", "order", "offset", "kind", "taken")
_OF_FUNCTIONS = ("flags", "entry_ip", "space", "code_tsc", "file", "import_ip", "inline_level")
_OF_TREE = (
    *("node", "parent", "depth", *_OF_FUNCTIONS),
    *("count", "begin_unseen", "instructions", "self_instructions"),
)
_OF_CALLS = (
    *("id", "parent", "depth", "entry_ip", "call_ip", "how", "flags", "instructions", "self_instructions"),
    *("tsc", "tsc_error", "end_tsc", "continues"),
)

_Indices = NDArray[np.int64]


class HasInfo(Protocol):
    """A trace, or a part of one, with its facts."""

    @property
    def info(self) -> TraceInfo:
        """Files and facts."""


class ProfileTrace(Protocol):
    """A trace, or a part of one, as far as exporters of profiles use it."""

    @property
    def info(self) -> TraceInfo:
        """Files and facts."""

    @property
    def opened(self) -> OpenTrace:
        """The bundle, the session and the settings."""

    def call_tree(self, **query: Any) -> Table:
        """Sums over the frames of each calling context."""

    def calls(self, **query: Any) -> CallTable:
        """Every frame."""

    def code_counts(self, **query: Any) -> tuple[ExecutedCode, Table]:
        """Executed instructions and the edges between them."""

    def lines(self, ips: Any, *, space: Any = None, tsc: int | None = None) -> Any:
        """Lines of source code."""

    def inlines(self, ip: int, *, space: int | None = None, tsc: int | None = None) -> list[Any]:
        """Functions that the code at an address belongs to."""

    def locate(self, ips: Any, *, space: Any = None, tsc: int | None = None) -> Any:
        """Files that addresses were mapped from."""

    def mappings(self) -> Table:
        """Where files lie in memory."""


def has_real_times(trace: HasInfo) -> bool:
    """Whether the trace has times in nanoseconds, and they are not an emulator's."""
    info = trace.info
    has_clock = info.tsc_hz is not None or info.perf_time is not None
    return info.first_tsc is not None and has_clock and not is_emulated(trace)


def has_source(trace: ProfileTrace) -> bool:
    """Whether files and lines of source code are shown: not of a redacted recording.

    Debug files of this machine would say what was left out.
    """
    return not trace.info.recording.get("redacted")


def is_emulated(trace: HasInfo) -> bool:
    """Whether the times of a trace are an emulator's."""
    return bool(trace.info.recording.get("backend") == EMULATOR)


@dataclass
class FrameRows:
    """Frames or contexts before they are summed up.

    Attributes
    ----------
    parent : numpy.ndarray of int64, shape (rows,)
        Row of the caller; -1: none.
    depth : numpy.ndarray of int64, shape (rows,)
        How many callers it has.
    function, site, site_space, site_known
        As in `Contexts`.
    recursive : numpy.ndarray of bool, shape (rows,)
        A caller is of the same function.
    sums : dict of str to numpy.ndarray of int64, shape (rows,)
        ``count``, ``unseen``, ``own``, ``total`` of `Contexts`, and ``ticks`` of frames alone.
    """

    parent: _Indices
    depth: _Indices
    function: _Indices
    site: NDArray[np.uint64]
    site_space: NDArray[np.uint32]
    site_known: NDArray[np.bool_]
    recursive: NDArray[np.bool_]
    sums: dict[str, _Indices]


@dataclass(frozen=True)
class ReadRows:
    """Rows of frames or contexts, and a row of each function.

    Attributes
    ----------
    rows : FrameRows
    functions : Table
        A row for each number of a function.
    notes : list of str
        Losses, and what was left out.
    length_ns : callable or None
        Ticks to nanoseconds; None: rows have no times.
    """

    rows: FrameRows
    functions: Table
    notes: list[str]
    length_ns: Callable[[_Indices], _Indices] | None = None


def check_query(query: Mapping[str, Any]) -> None:
    """Raise ConfigError if a query chooses columns, an order, or rows that frames have not."""
    for name in _REFUSED:
        if query.get(name) is not None:
            raise ConfigError(f"{name} does not select calls: leave it out")


def rows_of(trace: ProfileTrace, *, sites: bool, times: bool, **query: Any) -> ReadRows:
    """Read frames, where call sites or times are asked for and there are not too many; else contexts.

    Parameters
    ----------
    trace : Trace
    sites, times : bool
        Read call sites, and times.
    **query
        As for `ptkit.Trace.call_tree`.

    Raises
    ------
    ConfigError
        If the query chooses columns, an order, or rows that frames have not; or times are asked for that
        there are not.
    """
    check_query(query)
    tree = trace.call_tree(**query, columns=list(_OF_TREE))
    notes = _losses(tree)
    count = int(tree["count"].sum() + tree["begin_unseen"].sum())
    if (sites or times) and count <= MOST_FRAMES:
        calls = trace.calls(**query, columns=[*_OF_CALLS, "function"])
        rows = _rows_of_calls(calls, sites)
        unknown = _add_times(rows, calls) if times else 0
        if unknown:
            notes.append(f"{counted(unknown, 'call')} of unknown begin or end: no time")
        return ReadRows(rows, calls.function_rows(), notes, calls.data.context.length_ns if times else None)
    if sites or times:
        left = " and ".join(word for word, has in (("call sites", sites), ("times", times)) if has)
        notes.append(f"{count:,} calls: {left} of more than {MOST_FRAMES:,} are left out; select fewer")
    return ReadRows(*_rows_of_tree(tree), notes)


def losses_of(errors: BaseTable | None, gaps: BaseTable | None) -> list[str]:
    """A sentence on instructions and calls that may be missing, or none."""
    counts = [0 if rows is None else len(rows) for rows in (errors, gaps)]
    if not any(counts):
        return []
    return [
        f"{counted(counts[0], 'error')} and {counted(counts[1], 'gap')}: instructions and calls may be "
        "missing; `ptkit info --decode` shows where"
    ]


def _losses(tree: Table) -> list[str]:
    """Sentences on counts that may be wrong."""
    notes = losses_of(tree.errors, tree.gaps)
    if undecided := int(np.count_nonzero(~np.asarray(tree["count_exact"]))):
        notes.append(
            f"{counted(undecided, 'calling context')} with undecided frames (count_exact is False): their "
            "numbers may be wrong"
        )
    return notes


def _rows_of_tree(tree: Table) -> tuple[FrameRows, Table]:
    """Contexts as the core sums them up: their call sites are not known."""
    size = len(tree)
    known = np.asarray(tree["parent_known"])
    numbers = np.asarray(tree["node"]).astype(np.int64)
    parent = np.where(known, np.asarray(tree["parent"]).astype(np.int64), -1)
    if size:  # nodes are numbers of rows
        at = np.empty(int(numbers.max()) + 1, np.int64)
        at[numbers] = np.arange(size)
        parent = np.where(parent >= 0, at[parent], -1)
    first, function = _distinct_functions(tree)
    depth = np.array(tree["depth"]).astype(np.int64)
    sums = {
        "count": np.array(tree["count"]),
        "unseen": np.array(tree["begin_unseen"]),
        "own": np.array(tree["self_instructions"]),
        "total": np.array(tree["instructions"]),
    }
    rows = FrameRows(
        parent,
        depth,
        function,
        np.zeros(size, np.uint64),
        np.zeros(size, np.uint32),
        np.zeros(size, np.bool_),
        _recursive(depth, function),
        sums,
    )
    return rows, tree[first]


def _recursive(depth: _Indices, function: _Indices) -> NDArray[np.bool_]:
    """Whether a caller of each context is of the same function, of contexts in the order of a walk."""
    found = np.zeros(len(depth), np.bool_)
    below: Counter[int] = Counter()
    stack: list[int] = []
    for row, (callers, number) in enumerate(zip(depth.tolist(), function.tolist(), strict=True)):
        while len(stack) > callers:
            below[stack.pop()] -= 1
        found[row] = below[number] > 0
        below[number] += 1
        stack.append(number)
    return found


def _distinct_functions(tree: Table) -> tuple[NDArray[np.intp], _Indices]:
    """A row of each function, and the number of the function of each row."""
    texts = tree.named("function_full")
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    name = np.array([codes[text] for text in texts], np.int64)
    inlined = np.asarray(tree["is_inlined"])
    offset = np.asarray(tree["entry_module_offset"]).astype(np.uint64)
    has_offset = tree.known("entry_module_offset")
    inside = np.asarray(tree["entry_symbol_offset"]).astype(np.uint64)
    has_inside = tree.known("entry_symbol_offset")
    # Frames may begin inside of a function.
    begin = offset - np.where(has_inside, inside, np.uint64(0)) if has_inside is not None else offset
    begin = np.where(inlined | (False if has_offset is None else ~has_offset), np.uint64(0), begin)
    file = np.where(np.asarray(tree["file_known"]), np.asarray(tree["file"]), -1).astype(np.int64)
    number, first = numbered((name, file, inlined, begin))
    return first, number


def _rows_of_calls(calls: CallTable, sites: bool) -> FrameRows:
    """Frames, each with its call site."""
    size = len(calls)
    ids = np.asarray(calls["id"])
    order = np.argsort(ids, kind="stable")
    parent = np.full(size, -1, np.int64)
    known = np.flatnonzero(np.asarray(calls["parent_known"]))
    if len(known):
        wanted = np.asarray(calls["parent"])[known]
        at = np.minimum(np.searchsorted(ids[order], wanted), size - 1)
        found = order[at]
        parent[known] = np.where(ids[found] == wanted, found, -1)
    begun = np.asarray(calls["begin_seen"])
    continued = np.asarray(calls["continues_known"])
    sums = {
        "count": (begun & ~continued).astype(np.int64),
        "unseen": (~begun & ~continued).astype(np.int64),
        "own": np.array(calls["self_instructions"]),
        "total": np.array(calls["instructions"]),
    }
    return FrameRows(
        parent,
        _depths(parent),
        np.array(calls["function"]).astype(np.int64),
        np.array(calls["call_ip"]) if sites else np.zeros(size, np.uint64),
        np.array(calls["space"]).astype(np.uint32) if sites else np.zeros(size, np.uint32),
        (np.asarray(calls["call_known"]) & (parent >= 0)) if sites else np.zeros(size, np.bool_),
        np.array(calls["recursive"]),
        sums,
    )


def _depths(parent: _Indices) -> _Indices:
    """Callers of each row: paths to the outermost one are halved in each round."""
    depth = (parent >= 0).astype(np.int64)
    up = parent.copy()
    while True:
        rows = np.flatnonzero(up >= 0)
        if not len(rows):
            return depth
        above = up[rows]
        depth[rows] += depth[above]
        up[rows] = up[above]


def _add_times(rows: FrameRows, calls: CallTable) -> int:
    """Add the ticks of frames alone; how many frames have no time."""
    if calls.data.context.length_ns is None:
        raise ConfigError("times: the trace has no times of which the clock is known; use instructions")
    known = np.asarray(calls["time_known"]) & np.asarray(calls["end_time_known"])
    begin, end = np.asarray(calls["tsc"]), np.asarray(calls["end_tsc"])
    known &= end >= begin
    ticks = np.where(known, end - begin, np.uint64(0)).astype(np.int64)
    own = ticks.copy()
    below = np.flatnonzero(rows.parent >= 0)
    np.subtract.at(own, rows.parent[below], ticks[below])
    rows.sums["ticks"] = own
    return int(len(known) - np.count_nonzero(known))
