"""Runs of code between taken branches, each distinct one once, with its count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.calls import Window
from ptkit.decode.plan import Plan
from ptkit.errors import ConfigError, OutOfMemoryError
from ptkit.support import memory

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


def read_runs(plan: Plan, *, window: Window | None = None, segment: int = 0) -> Runs:
    """Decode a trace into its runs.

    Parameters
    ----------
    plan : Plan
        A query of calls.
    window : Window, optional
        Runs that end within it, and branches within it.
    segment : int
        Bytes of the segments of a stream that are decoded at the same time, about; 0: automatic.

    Raises
    ------
    ConfigError
        If they are selected by what runs do not have.
    OutOfMemoryError
        If they do not fit into memory.
    """
    if plan.limits:
        raise ConfigError("offset: runs are not selected by stream offset; select them by time")
    if plan.raises:
        raise ConfigError('errors="raise": runs go on after errors; look at trace.errors')
    selection = plan.selection
    if window is not None and window.by == "time":
        selection = {name: value for name, value in selection.items() if name != "time"}
    budget = memory.budget()
    try:
        columns, totals = _core.read_runs(
            plan.session,
            streams=list(plan.streams),
            selection=selection,
            engine=plan.settings.engine,
            resync=plan.settings.resync,
            threads=plan.threads,
            segment=segment,
            budget=budget,
            window=None if window is None else (window.begin, window.end),
            window_by="time" if window is None else window.by,
            select_sides=plan.select_sides,
            index=plan.settings.index,
        )
    except MemoryError:
        raise OutOfMemoryError("the runs do not fit into memory", "select fewer streams or threads") from None
    plan.after()
    return Runs(columns, totals)
