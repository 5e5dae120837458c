"""Phases of a trace: the edges of each interval of time or of instructions are counted in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ptkit import _core
from ptkit.decode import Plan, iterate
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, integer

__all__ = ["check_columns", "in_bins"]

_MOST_BINS = 1 << 16
_ROWS = 1 << 16


def check_columns(columns: Sequence[str] | None) -> None:
    """Raise ConfigError if edges are to have phases without a choice of phases."""
    if columns is not None and "bin" in columns:
        raise ConfigError("column 'bin' of edges: choose phases: edges(by=\"time\", bins=20)")


def in_bins(
    plan: Plan,
    by: str | None,
    bins: int | Sequence[int] | None,
    find_span: Callable[[], tuple[int, int] | None],
    find_branches: Callable[[], Plan],
) -> Plan:
    """Plan counts of edges by phase.

    Parameters
    ----------
    plan : Plan
        Of edges, with or without a selection by time, which is what is cut.
    by, bins
        Of `Tables.edges`.
    find_span : callable
        First and last time of the trace (TSC ticks); None: it has no times.
    find_branches : callable
        Plan of all branches with their column ``instruction``.

    Raises
    ------
    ConfigError
        If they are no phases, or the trace has no times.
    """
    if by is None and bins is None:
        check_columns(plan.shown)
        return plan
    if by is None or bins is None:
        raise ConfigError(
            'phases take both: by="time" or "instructions", and bins=20 or a sequence of limits'
        )
    check_choice("by", by, ("time", "instructions"))
    if "bins" in plan.selection:
        raise ConfigError(
            "by, bins: a range of instructions has no phases; leave it out, and give its limits as bins"
        )
    time = by == "time"
    selection = plan.selection | {"by": by}
    if time:
        span = find_span()
        if span is None:
            raise ConfigError("edges by time: the trace has no times (no TSC packet)")
        begin, end = plan.selection.get("time", (0, LAST_ADDRESS))
        limits = _limits(by, bins, lambda: (max(begin, span[0]), min(end, span[1] + 1)))
        # The rest of the selection lies within.
        begin, end = max(begin, limits[0]), min(end, limits[-1])
        selection |= {"time": (begin, max(begin, end))}
    else:
        limits = _limits(by, bins, lambda: _numbers(plan, find_branches))
    return replace(
        plan,
        selection=selection | {"bins": limits},
        time=time or plan.time,
        stored=(*plan.stored, "bin"),
        shown=tuple(dict.fromkeys((*plan.shown, "bin"))),
    )


def _numbers(plan: Plan, find_branches: Callable[[], Plan]) -> tuple[int, int]:
    """Find the first number of instructions before a branch, and the one after the last."""
    if "time" in plan.selection:
        selection = {"time": plan.selection["time"]}
        branches = replace(
            find_branches(),
            streams=plan.streams,
            selection=selection,
            time=True,
            sides=False,
            threads=plan.threads,
        )
        numbers = (part["instruction"] for part in iterate(branches, _ROWS, reuse=True))
        found = [(int(some.min()), int(some.max()) + 1) for some in numbers if len(some)]
        return min((low for low, _ in found), default=0), max((high for _, high in found), default=0)
    # Reading errors passes over the instructions of a stream without making rows of them.
    counting = replace(plan.counting(), table="errors", selection={}, time=False)
    readers = [counting.reader([stream]) for stream in plan.streams]
    if not readers:
        return 0, 0
    _core.read_all(readers, plan.threads)
    # A branch that is no instruction, such as an interrupt, may come after all of them.
    return 0, max(reader.instructions for reader in readers) + 1


def _limits(by: str, bins: int | Sequence[int], find_range: Callable[[], tuple[int, int]]) -> list[int]:
    if hasattr(bins, "__index__"):
        count = integer("bins", bins, 1, _MOST_BINS)
        begin, end = find_range()
        if end <= begin:
            raise ConfigError(f"edges by {by}: nothing is selected")
        return [begin + (end - begin) * bin // count for bin in range(count + 1)]
    limits = [integer("bins", limit, 0, LAST_ADDRESS) for limit in bins]
    if not 2 <= len(limits) <= _MOST_BINS + 1:
        raise ConfigError(f"bins: {len(limits)} limits are not 2 to {_MOST_BINS + 1}")
    if any(high <= low for low, high in pairwise(limits)):
        raise ConfigError("bins: the limits must ascend")
    return limits
