"""Phases of a trace: the edges of each interval of time are counted in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from ptkit.arguments import LAST_ADDRESS, integer
from ptkit.decode import Plan
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError

__all__ = ["check_columns", "in_bins"]

_MOST_BINS = 1 << 16


def check_columns(columns: Sequence[str] | None) -> None:
    """Raise ConfigError if edges are to have phases without a choice of phases."""
    if columns is not None and "bin" in columns:
        raise ConfigError("column 'bin' of edges: choose phases: edges(by=\"time\", bins=20)")


def in_bins(
    plan: Plan,
    by: str | None,
    bins: int | Sequence[int] | None,
    find_span: Callable[[], tuple[int, int] | None],
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

    Raises
    ------
    ConfigError
        If they are no phases, or the trace has no times.
    """
    if by is None and bins is None:
        check_columns(plan.shown)
        return plan
    if by is None or bins is None:
        raise ConfigError('phases take both: by="time", and bins=20 or a sequence of TSC ticks')
    check_choice("by", by, ("time",))
    span = find_span()
    if span is None:
        raise ConfigError("edges by time: the trace has no times (no TSC packet)")
    begin, end = plan.selection.get("time", (0, LAST_ADDRESS))
    limits = _limits(bins, max(begin, span[0]), min(end, span[1] + 1))
    # What is selected besides lies within.
    begin, end = max(begin, limits[0]), min(end, limits[-1])
    selection = plan.selection | {"time": (begin, max(begin, end)), "bins": limits}
    columns = {"stored": (*plan.stored, "bin"), "shown": tuple(dict.fromkeys((*plan.shown, "bin")))}
    return replace(plan, selection=selection, time=True, **columns)  # type: ignore[arg-type]


def _limits(bins: int | Sequence[int], begin: int, end: int) -> list[int]:
    if hasattr(bins, "__index__"):
        count = integer("bins", bins, 1, _MOST_BINS)
        if end <= begin:
            raise ConfigError("edges by time: nothing is selected")
        return [begin + (end - begin) * bin // count for bin in range(count + 1)]
    limits = [integer("bins", limit, 0, LAST_ADDRESS) for limit in bins]
    if not 2 <= len(limits) <= _MOST_BINS + 1:
        raise ConfigError(f"bins: {len(limits)} limits are not 2 to {_MOST_BINS + 1}")
    if any(high <= low for low, high in pairwise(limits)):
        raise ConfigError("bins: the limits must ascend")
    return limits
