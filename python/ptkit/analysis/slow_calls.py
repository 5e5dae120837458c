"""What slow calls of a function did that fast ones did not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit.analysis.call_branches import EdgeWork, edge_work
from ptkit.decode.call_table import CallTable
from ptkit.errors import ConfigError, SymbolError
from ptkit.table import Table

__all__ = ["CallComparison", "CallDifference", "Choice", "compare_calls"]

#: Which calls are slow, or fast: a share, a limit, or a mask.
Choice: TypeAlias = "float | int | ArrayLike"

SLOW, FAST = 1, 2
_NEAR = 5
_AWAY = {"untraced": "packets disabled", "switched": "other threads", "lost": "control flow lost"}


@dataclass(frozen=True)
class CallDifference:
    """What slow calls have more of than fast ones. All numbers are means over the calls.

    Attributes
    ----------
    kind : str
        ``"function"``, ``"line"``, ``"edge"`` (both in instructions), ``"untraced"``, ``"switched"``,
        ``"lost"`` (in TSC ticks, least possible times), or ``"gap"`` (share of the calls that end at one).
    name : str
        Function, ``file:line``, or source and target of a branch.
    slow, fast : float
        Instructions executed there (by the function itself; on the line; in the block behind the edge), or
        what `kind` says.
    slow_count, fast_count : float
        How often: calls of the function, executions of the edge or of blocks that begin on the line; of
        times, the share of calls that have any.
    slow_example, fast_example : int or None
        ``id`` of a call that has it; None: none has.
    """

    kind: str
    name: str
    slow: float
    fast: float
    slow_count: float
    fast_count: float
    slow_example: int | None
    fast_example: int | None

    @property
    def extra(self) -> float:
        """What a slow call has more."""
        return self.slow - self.fast


@dataclass(frozen=True, repr=False)
class CallComparison:
    """Slow calls of a function against fast ones; made by `Trace.compare`.

    Attributes
    ----------
    function : str
        Its name.
    by : str
        ``"instructions"`` or ``"time"`` (TSC ticks): what slow means.
    calls : int
        Calls of the function that no other call of it is below.
    slow, fast : CallTable
        Those that are compared.
    functions, lines, edges, times : tuple of CallDifference
        Differences with most extra instructions, or ticks, first. ``lines`` is empty without debug
        information. ``times`` has gaps, too.
    sampled : tuple of int
        Numbers of slow and fast calls that edges and lines are of.
    """

    function: str
    by: str
    calls: int
    slow: CallTable
    fast: CallTable
    functions: tuple[CallDifference, ...]
    lines: tuple[CallDifference, ...]
    edges: tuple[CallDifference, ...]
    times: tuple[CallDifference, ...]
    sampled: tuple[int, int]

    def __repr__(self) -> str:
        first = ", ".join(f"{one.name} {one.extra:+,.0f}" for one in self.functions[:3])
        return (
            f"<CallComparison of {self.function}(): {len(self.slow):,} slow and {len(self.fast):,} fast "
            f"of {self.calls:,} calls; instructions by function: {first or 'equal'}>"
        )

    def _repr_html_(self) -> str:
        from ptkit.analysis.comparison_html import comparison_html

        return comparison_html(self)

    def example(self, number: int) -> CallTable:
        """The call with this ``id``: a row of `slow` or `fast`."""
        for side in (self.slow, self.fast):
            found = np.flatnonzero(np.asarray(side["id"]) == number)
            if len(found):
                return side[found]
        raise ConfigError(f"example({number}): no slow or fast call has this id")


def compare_calls(
    calls: CallTable,
    function: str,
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
    branches : callable
        Parts of the branches of a stream, with the columns of `edge_work`.
    name_ips, name_lines : callable
        Names and source lines of addresses in address spaces.
    """
    names = calls.function_names()
    rows = calls.outermost(_numbers(names, function))
    found = calls[rows]
    metric = _metric(found, by)
    is_slow, is_fast = _choose(metric, slow, fast)
    kinds = np.zeros(len(calls), np.uint8)
    kinds[rows[is_fast]] = FAST
    kinds[rows[is_slow]] = SLOW
    sides = found[is_slow], found[is_fast]
    sizes = len(sides[0]), len(sides[1])
    samples = [_spread(side, sample) for side in sides]
    work = edge_work(samples, branches)
    return CallComparison(
        function=function,
        by=by,
        calls=len(found),
        slow=sides[0],
        fast=sides[1],
        functions=_functions(calls, kinds, sizes, names),
        lines=_lines(work, name_lines),
        edges=_edges(work, name_ips),
        times=_times(sides),
        sampled=(len(samples[0]), len(samples[1])),
    )


def _numbers(names: list[str], function: str) -> NDArray[np.intp]:
    """Numbers of the functions with this name, or with this name before its parameters."""
    wanted = [number for number, name in enumerate(names) if name == function]
    wanted = wanted or [number for number, name in enumerate(names) if name.split("(")[0] == function]
    if not wanted:
        near = get_close_matches(function, list(dict.fromkeys(names)), _NEAR)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise SymbolError(f"no function {function!r} was called{hint}")
    return np.array(wanted)


def _metric(calls: CallTable, by: str) -> NDArray[np.int64]:
    lengths, known = calls.lengths(by)
    if not known.all():
        raise ConfigError('by="time": the times of some calls are not known; compare by="instructions"')
    return lengths


def _choose(
    metric: NDArray[np.int64], slow: Choice, fast: Choice
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Masks of slow and of fast calls."""
    limit = _limit("fast", metric, fast)
    is_fast = _mask("fast", metric, fast) if limit is None else metric <= limit
    lowest = _limit("slow", metric, slow)
    if lowest is None:
        is_slow = _mask("slow", metric, slow)
    else:
        # Where most calls take the same, a share of the slow ones is not filled up with fast ones.
        quickest = None if isinstance(slow, (int, np.integer)) else limit
        is_slow = metric > quickest if quickest is not None and lowest <= quickest else metric >= lowest
    is_fast = is_fast & ~is_slow
    for name, chosen in (("slow", is_slow), ("fast", is_fast)):
        if not chosen.any():
            raise ConfigError(
                f"{name}: none of {len(metric):,} calls is {name}; they take {int(metric.min()):,} to "
                f"{int(metric.max()):,}"
            )
    return is_slow, is_fast


def _limit(name: str, metric: NDArray[np.int64], choice: Choice) -> int | None:
    """The metric from which on, or up to which, calls are chosen. None: a mask chooses them."""
    if isinstance(choice, (bool, np.bool_)) or not isinstance(choice, (int, float, np.number)):
        return None
    if isinstance(choice, (int, np.integer)):
        return int(choice)
    if not 0 <= choice <= 1:
        raise ConfigError(f"{name}={choice!r}: a share lies in 0 to 1; give an integer as a limit")
    return int(np.quantile(metric, float(choice), method="inverted_cdf"))


def _mask(name: str, metric: NDArray[np.int64], choice: Choice) -> NDArray[np.bool_]:
    mask = np.asarray(choice)
    if mask.dtype != np.bool_ or mask.shape != metric.shape:
        raise ConfigError(
            f"{name}: give a share, a limit, or a mask of bool for {len(metric):,} calls, not "
            f"{mask.dtype} of shape {mask.shape}"
        )
    return mask


def _spread(side: CallTable, most: int) -> CallTable:
    """At most so many calls, from begin to end of the trace."""
    if len(side) <= most:
        return side
    return side[np.linspace(0, len(side) - 1, most).astype(np.intp)]


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
    return tuple(sorted(found, key=lambda one: (-one.extra, one.name)))


def _edges(
    work: EdgeWork, name_ips: Callable[[NDArray[np.uint64], NDArray[np.uint32]], list[str]]
) -> tuple[CallDifference, ...]:
    sources = name_ips(work.from_ip, work.space)
    targets = name_ips(work.to_ip, work.space)
    names = [f"{source} -> {target}" for source, target in zip(sources, targets, strict=True)]
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
