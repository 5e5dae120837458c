"""Parts of a recording by what was executed: in any part of its time the machine may have waited."""

from __future__ import annotations

from typing import Any


def time_at(trace: Any, percent: int) -> int:
    """The TSC by which so many percent of the branches had been executed."""
    times = trace.branches(columns=["tsc"], order="time")["tsc"]
    return int(times[(len(times) - 1) * percent // 100])


def executed_part(trace: Any, begin: int, end: int) -> Any:
    """A view of the time between two such percentages."""
    return trace.between(time_at(trace, begin), time_at(trace, end))
