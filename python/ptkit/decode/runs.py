"""Runs of code between taken branches, each distinct one once, with its count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.calls import Window, call_query, too_large
from ptkit.decode.plan import Plan

__all__ = ["Runs", "read_runs"]


@dataclass(frozen=True)
class Runs:
    """Counted runs: the instructions from the target of a taken branch to the next taken branch.

    Attributes
    ----------
    columns : dict of str to numpy.ndarray, each of shape (runs,)
        ``from`` (uint64, RVA of the taken branch that led to the run), ``from_file`` (int32, index in
        ``trace.info.files``; -1: code of no file), ``kind`` (uint8, `ptkit.BranchKind` of that branch),
        ``file`` (int32), ``begin`` and ``end`` (uint64, RVAs of the first and of the last instruction),
        ``flags`` (uint8): ``_core.RUN_FROM`` (a branch led to it), ``RUN_BEGIN`` (``file`` and ``begin`` are
        known), ``RUN_END`` (a taken branch at ``end`` ends it), ``RUN_CUT`` (an interrupt, a signal, a system
        call of which the kernel is not traced, or a gap does); ``instructions`` (uint64; 0: only the branch
        is known), ``count`` (uint64, executions), ``predictions`` and ``mispredicted`` (uint64, executions
        of the branch of which the prediction was recorded, and was wrong).
        Files with one build-id are one file: the first one.
    totals : dict of str to int
        What no row has: ``instructions`` and ``branches`` (all that were executed, and taken),
        ``outside_instructions`` (in code of no file), ``unknown_instructions`` (of unknown addresses),
        ``crossing_instructions`` (in runs that go on from one file into another), ``outside_branches`` (with
        neither end in a file), ``unselected_instructions``, ``unselected_branches``, ``errors``, ``gaps``.
    """

    columns: dict[str, NDArray[Any]]
    totals: dict[str, int]


def read_runs(plan: Plan, *, window: Window | None = None) -> Runs:
    """Decode a trace into its runs.

    Parameters
    ----------
    plan : Plan
        A query of calls.
    window : Window, optional
        Runs that end within it, and branches within it.

    Raises
    ------
    ConfigError
        If they are selected by what calls do not have.
    OutOfMemoryError
        If they do not fit into memory.
    """
    query = call_query(plan, window=window, has_stacks=False)
    try:
        columns, totals = _core.read_runs(query)
    except MemoryError:
        raise too_large("the runs", query, "select fewer streams or threads") from None
    plan.after()
    return Runs(columns, totals)
