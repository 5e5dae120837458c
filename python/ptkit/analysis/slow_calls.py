"""Comparison of slow calls of a function with fast ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit import _core
from ptkit.analysis.call_branches import EdgeWork, edge_work
from ptkit.decode.call_table import CallTable
from ptkit.errors import ConfigError
from ptkit.support.text import counted, one_line
from ptkit.table import Table
from ptkit.table.distinct_names import distinct_names
from ptkit.table.html import Cell, html_table

__all__ = ["CallComparison", "CallDifference", "Choice", "choose_calls", "compare_calls"]

#: Which calls are slow, or fast: a share, a limit, or a mask.
Choice: TypeAlias = "float | int | ArrayLike"

_Chosen: TypeAlias = "tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]"
_Rows = TypeVar("_Rows", CallTable, NDArray[np.intp])

SLOW, FAST = 1, 2
_DIGITS = 6  # of a number of calls: a share such as 0.57 is no binary fraction
_TO = " -> "  # between the ends of an edge
_MOST_ROWS = 10
_PARTS = (
    ("functions", "function", "instructions"),
    ("lines", "line", "instructions"),
    ("edges", "edge", "instructions"),
    ("times", "time", "TSC ticks"),
)
_AWAY = {"untraced": "packets disabled", "switched": "other threads", "lost": "control flow lost"}


@dataclass(frozen=True)
class CallDifference:
    """Things that slow calls have more of than fast ones. All numbers are means over the calls.

    Attributes
    ----------
    kind : str
        ``"function"``, ``"line"``, ``"edge"`` (both in instructions), ``"untraced"``, ``"switched"``,
        ``"lost"`` (in TSC ticks, least possible times), or ``"gap"`` (share of the calls that end at one).
    name_full : str
        Function, ``file:line``, or source and target of a branch; `name` has short names of functions.
    slow, fast : float
        Instructions executed there (by the function itself; on the line; in the block after the edge), or
        what `kind` says.
    slow_count, fast_count : float
        How often: calls of the function, executions of the edge or of blocks that begin on the line; of
        times, the share of calls that have any.
    slow_example, fast_example : int or None
        ``id`` of a call that has it; None: none has.
    """

    kind: str
    name_full: str
    slow: float
    fast: float
    slow_count: float
    fast_count: float
    slow_example: int | None
    fast_example: int | None

    @property
    def name(self) -> str:
        """`name_full` with short names of functions."""
        full = self._functions()
        return self._with(dict(zip(full, _core.short_names(full), strict=True)))

    @property
    def extra(self) -> float:
        """Amount that a slow call has more."""
        return self.slow - self.fast

    def _functions(self) -> list[str]:
        """Full names of functions in `name_full`."""
        return [name for name, *_ in self._ends()] if self.kind in ("function", "edge") else []

    def _with(self, shown: Mapping[str, str]) -> str:
        """`name_full` with other names of functions."""
        if self.kind not in ("function", "edge"):
            return self.name_full
        return _TO.join(shown.get(name, name) + plus + offset for name, plus, offset in self._ends())

    def _ends(self) -> list[tuple[str, str, str]]:
        """Functions and offsets in them."""
        return [end.partition("+0x") for end in self.name_full.split(_TO)]


@dataclass(frozen=True, repr=False)
class CallComparison:
    """Slow calls of a function against fast ones; made by `Trace.compare`.

    Attributes
    ----------
    function_full : str
        Its full name; `function` is the short one.
    by : str
        ``"instructions"`` or ``"time"`` (TSC ticks): what slow means.
    calls : int
        Calls of the function that no other call of it is below.
    slow, fast : CallTable
        Those that are compared.
    slow_from, fast_to : int
        Least length of a slow call, and largest one of a fast call: instructions or TSC ticks.
    left_out : CallTable
        Calls of one length that are neither slow nor fast: with them, slow calls would be more than the share
        that was asked for. Empty but for that.
    functions, lines, edges, times : tuple of CallDifference
        Differences with most extra instructions, or ticks, first. ``lines`` is empty without debug
        information. ``times`` has gaps, too.
    sampled : tuple of int
        Numbers of slow and fast calls that edges and lines are of.
    """

    function_full: str
    by: str
    calls: int
    slow: CallTable
    fast: CallTable
    slow_from: int
    fast_to: int
    left_out: CallTable
    functions: tuple[CallDifference, ...]
    lines: tuple[CallDifference, ...]
    edges: tuple[CallDifference, ...]
    times: tuple[CallDifference, ...]
    sampled: tuple[int, int]

    @property
    def function(self) -> str:
        """The short name of the function."""
        return _core.short_names([self.function_full])[0]

    def _full_names(self) -> list[str]:
        """Full names of all functions, the compared one first."""
        parts = (*self.functions, *self.edges)
        return list(
            dict.fromkeys([self.function_full, *(name for one in parts for name in one._functions())])
        )

    def __repr__(self) -> str:
        shown = distinct_names(self._full_names())
        first = ", ".join(f"{one._with(shown)} {one.extra:+,.0f}" for one in self.functions[:3])
        unit = "instructions" if self.by == "instructions" else "TSC ticks"
        return (
            f"<CallComparison of {shown[self.function_full]} by {unit}: {len(self.slow):,} slow (from "
            f"{self.slow_from:,} on) and {len(self.fast):,} fast (up to {self.fast_to:,}) of {self.calls:,} "
            f"calls; instructions by function: {first or 'equal'}>"
        )

    def _repr_html_(self) -> str:
        return _html(self)

    def example(self, number: int) -> CallTable:
        """The call with this ``id``: a row of `slow` or `fast`."""
        for side in (self.slow, self.fast):
            found = np.flatnonzero(np.asarray(side["id"]) == number)
            if len(found):
                return side[found]
        raise ConfigError(f"example({number}): no slow or fast call has this id")


def compare_calls(
    calls: CallTable,
    function: NDArray[np.intp],
    *,
    slow: Choice,
    fast: Choice,
    by: str,
    sample: int,
    branches: Callable[[int], Iterator[Table]],
    name_ips: Callable[[NDArray[np.uint64], NDArray[np.uint32]], list[str]],
    name_lines: Callable[[NDArray[np.uint64], NDArray[np.uint32]], list[str | None]],
) -> CallComparison:
    """Compare calls of a function; see `Trace.compare`.

    Parameters
    ----------
    calls : CallTable
        All calls of the chosen threads, with ``instruction`` and ``end_instruction``.
    function : numpy.ndarray of intp
        Numbers of the function.
    branches : callable
        Parts of the branches of a stream, with the columns of `edge_work`.
    name_ips, name_lines : callable
        Names and source lines of addresses in address spaces.
    """
    names = calls.function_names()
    rows = calls.outermost(function)
    found = calls[rows]
    metric = _metric(found, by)
    is_slow, is_fast, is_left_out = choose_calls(metric, slow, fast, by)
    kinds = np.zeros(len(calls), np.uint8)
    kinds[rows[is_fast]] = FAST
    kinds[rows[is_slow]] = SLOW
    sides = found[is_slow], found[is_fast]
    sizes = len(sides[0]), len(sides[1])
    samples = [_spread(side, sample) for side in sides]
    work = edge_work(samples, branches)
    return CallComparison(
        function_full=names[function[0]],
        by=by,
        calls=len(found),
        slow=sides[0],
        fast=sides[1],
        slow_from=int(metric[is_slow].min()),
        fast_to=int(metric[is_fast].max()),
        left_out=found[is_left_out],
        functions=_functions(calls, kinds, sizes, names),
        lines=_lines(work, name_lines),
        edges=_edges(work, name_ips),
        times=_times(sides),
        sampled=(len(samples[0]), len(samples[1])),
    )


def _metric(calls: CallTable, by: str) -> NDArray[np.int64]:
    lengths, known = calls.lengths(by)
    if not known.all():
        raise ConfigError('by="time": the times of some calls are not known; compare by="instructions"')
    return lengths


def chosen_text(function: str, calls: int, slow: int, slow_from: str, fast: int, fast_to: str) -> str:
    """Which calls of a function are compared: numbers of calls, and limits as texts with their units."""
    less = "fewer" if "instruction" in fast_to else "less"
    return (
        f"{function}: {counted(calls, 'call')}; {counted(slow, 'slow one')}, {slow_from} or more; "
        f"{counted(fast, 'fast one')}, {fast_to} or {less}"
    )


def choose_calls(metric: NDArray[np.int64], slow: Choice, fast: Choice, by: str) -> _Chosen:
    """Masks of slow calls, of fast ones, and of those that a share of slow ones leaves out."""
    longest = _longest(metric, fast)
    is_fast = _mask("fast", metric, fast) if longest is None else metric <= longest
    is_left_out = np.zeros(len(metric), np.bool_)
    if isinstance(slow, (float, np.floating)):
        above = metric > longest if longest is not None else ~is_left_out
        is_slow, is_left_out = _slowest(metric, _share("slow", slow), above)
    elif _is_limit(slow):
        is_slow = metric >= int(slow)  # type: ignore[arg-type]
    else:
        is_slow = _mask("slow", metric, slow)
    is_fast = is_fast & ~is_slow
    for name, chosen in (("slow", is_slow), ("fast", is_fast)):
        if not chosen.any():
            unit = "instructions" if by == "instructions" else "TSC ticks"
            raise ConfigError(
                f"{name}: none of {len(metric):,} calls is {name}; they take {int(metric.min()):,} to "
                f"{int(metric.max()):,} {unit}: give other shares, or limits"
            )
    return is_slow, is_fast, is_left_out


def _longest(metric: NDArray[np.int64], fast: Choice) -> int | None:
    """The longest time that a fast call takes. None: a mask chooses them."""
    if isinstance(fast, (float, np.floating)):
        row = max(ceil(len(metric) * _share("fast", fast) - 1), 0)
        return int(np.partition(metric, row)[row])
    return int(fast) if _is_limit(fast) else None  # type: ignore[arg-type]


def _slowest(
    metric: NDArray[np.int64], share: float, above: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The longest calls from a share on, and those that would make them more.

    `above`: calls that are longer than fast ones. Where most calls take the same, slow ones are not filled up
    with them.
    """
    most = max(int(round((1 - share) * len(metric), _DIGITS)), 1)
    none = np.zeros(len(metric), np.bool_)
    if np.count_nonzero(above) <= most:
        return above, none
    limit = np.sort(metric[above])[-most]
    longer, equal = above & (metric > limit), above & (metric == limit)
    if np.count_nonzero(longer | equal) <= most:
        return longer | equal, none
    if longer.any():
        return longer, equal
    # The longest ones all take the same: some of them, from begin to end of the trace.
    none[_spread(np.flatnonzero(equal), most)] = True
    return none, equal & ~none


def _is_limit(choice: Choice) -> bool:
    return isinstance(choice, (int, np.integer)) and not isinstance(choice, bool)


def _share(name: str, choice: float | np.floating[Any]) -> float:
    if not 0 <= choice <= 1:
        raise ConfigError(f"{name}={choice!r}: a share lies in 0 to 1; give an integer as a limit")
    return float(choice)


def _mask(name: str, metric: NDArray[np.int64], choice: Choice) -> NDArray[np.bool_]:
    mask = np.asarray(choice)
    if mask.dtype != np.bool_ or mask.shape != metric.shape:
        raise ConfigError(
            f"{name}: give a share, a limit, or a mask of bool for {len(metric):,} calls, not "
            f"{mask.dtype} of shape {mask.shape}"
        )
    return mask


def _spread(rows: _Rows, most: int) -> _Rows:
    """At most so many rows, evenly chosen."""
    if len(rows) <= most:
        return rows
    return rows[np.linspace(0, len(rows) - 1, most).astype(np.intp)]


def _functions(
    calls: CallTable, kinds: NDArray[np.uint8], sizes: tuple[int, int], names: list[str]
) -> tuple[CallDifference, ...]:
    counts, instructions, first = calls.parts(kinds, 2)
    ids = np.asarray(calls["id"])
    found = []
    for number in np.flatnonzero(counts.sum(axis=0)).tolist():
        (slow, fast), (slow_count, fast_count) = instructions[:, number], counts[:, number]
        examples = [None if row < 0 else int(ids[row]) for row in first[:, number].tolist()]
        found.append(
            CallDifference(
                "function",
                names[number],
                float(slow) / sizes[0],
                float(fast) / sizes[1],
                float(slow_count) / sizes[0],
                float(fast_count) / sizes[1],
                *examples,
            )
        )
    return _ranked(found)


def _ranked(found: list[CallDifference]) -> tuple[CallDifference, ...]:
    return tuple(sorted(found, key=lambda one: (-one.extra, one.name_full)))


def _edges(
    work: EdgeWork, name_ips: Callable[[NDArray[np.uint64], NDArray[np.uint32]], list[str]]
) -> tuple[CallDifference, ...]:
    sources = name_ips(work.from_ip, work.space)
    targets = name_ips(work.to_ip, work.space)
    names = [f"{source}{_TO}{target}" for source, target in zip(sources, targets, strict=True)]
    return _of_work("edge", work, names)


def _lines(
    work: EdgeWork, name_lines: Callable[[NDArray[np.uint64], NDArray[np.uint32]], list[str | None]]
) -> tuple[CallDifference, ...]:
    lines = name_lines(work.to_ip, work.space)
    return _of_work("line", *work.merged(lines))


def _of_work(kind: str, work: EdgeWork, names: Sequence[str]) -> tuple[CallDifference, ...]:
    found = []
    for row, name in enumerate(names):
        slow, fast = (float(one) for one in work.instructions[:, row])
        slow_count, fast_count = (float(one) for one in work.counts[:, row])
        examples = [None if one < 0 else one for one in work.examples[:, row].tolist()]
        found.append(CallDifference(kind, name, slow, fast, slow_count, fast_count, *examples))
    return _ranked(found)


def _times(sides: tuple[CallTable, CallTable]) -> tuple[CallDifference, ...]:
    found = []
    for kind, name in _AWAY.items():
        ticks = [np.asarray(side[kind]) for side in sides]
        found.append(_of_times(kind, name, sides, ticks))
    gaps = [np.asarray(side["end_how"] == "GAP") for side in sides]
    found.append(_of_times("gap", "calls that end at a gap", sides, gaps))
    return _ranked([one for one in found if one.slow or one.fast])


def _of_times(
    kind: str, name: str, sides: tuple[CallTable, CallTable], values: list[NDArray[Any]]
) -> CallDifference:
    slow, fast = (float(np.mean(one)) for one in values)
    slow_share, fast_share = (float(np.mean(one > 0)) for one in values)
    examples = [
        int(side["id"][int(np.argmax(one))]) if one.any() else None
        for side, one in zip(sides, values, strict=True)
    ]
    return CallDifference(kind, name, slow, fast, slow_share, fast_share, *examples)


def _html(comparison: CallComparison) -> str:
    """Build a table for each kind of difference, of those with most extra work, for a notebook."""
    found = comparison
    shown = distinct_names(found._full_names())
    by = "instructions" if found.by == "instructions" else "time"
    head = (
        f"<p><b>{escape(one_line(shown[found.function_full]))}</b>: {len(found.slow):,} slow and "
        f"{len(found.fast):,} fast of {counted(found.calls, 'call')}, by {by}. All numbers are means over "
        "the calls.</p>"
    )
    tables = [
        _html_of(differences, shown, noun, unit)
        for name, noun, unit in _PARTS
        if (differences := getattr(found, name))
    ]
    return head + "".join(tables)


def _html_of(differences: Sequence[CallDifference], shown: Mapping[str, str], noun: str, unit: str) -> str:
    heads = [
        Cell(noun, is_text=True),
        Cell("extra", title="slow less fast", unit=unit),
        Cell("slow", unit=unit),
        Cell("fast", unit=unit),
        Cell("slow", title="in a slow call", unit="times" if noun != "time" else "share"),
        Cell("fast", title="in a fast call", unit="times" if noun != "time" else "share"),
        Cell("example", title="id of a slow call that has it"),
    ]
    rows = [
        [
            Cell(one._with(shown), title=one.name_full, is_text=True),
            Cell(f"{one.extra:+,.0f}" if one.kind != "gap" else f"{one.extra:+.2f}"),
            *(
                Cell(f"{value:,.0f}" if one.kind != "gap" else f"{value:.2f}")
                for value in (one.slow, one.fast)
            ),
            *(Cell(f"{value:,.2f}") for value in (one.slow_count, one.fast_count)),
            Cell("-" if one.slow_example is None else str(one.slow_example)),
        ]
        for one in differences[:_MOST_ROWS]
    ]
    left_out = len(differences) - len(rows)
    return html_table(heads, rows, f"{left_out:,} more in the attribute {noun}s" if left_out > 0 else "")
