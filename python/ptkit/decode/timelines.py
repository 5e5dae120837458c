"""Timelines of calls: slices that nest, whole or reduced to a number of slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode.calls import Window, call_query, key_of_sums, sides_of, too_large
from ptkit.decode.kept_sums import Sums
from ptkit.decode.plan import Plan, check_choice
from ptkit.support.arguments import integer
from ptkit.support.text import counted
from ptkit.table import Table
from ptkit.table.table import from_core

__all__ = ["BANDS", "CallTimeline", "Track", "read_timeline"]

#: Kinds of bands, by number.
BANDS = ("untraced", "switched", "lost")
_MOST_SLICES = 2**32 - 2
_FEWER = "give slices=, or a smaller number, or select fewer streams or threads"


@dataclass(frozen=True)
class Track:
    """A thread; of a thread that switches stacks, one of its stacks.

    Attributes
    ----------
    pid, tid, cpu : int or None
        None: not known.
    space : int
        Address space.
    stream : int
        Stream of its first slice.
    stack : int
        Number of the stack; 0: the first one of the thread.
    """

    pid: int | None
    tid: int | None
    cpu: int | None
    space: int
    stream: int
    stack: int


class CallTimeline:
    """Calls of threads as slices on tracks. Slices nest, and positions do not descend.

    Attributes
    ----------
    by : str
        ``"time"``: positions are TSC ticks, at their earliest; ``"instructions"``: they are instructions of
        the thread, within its stream.
    handle : _core.CallTimeline
        The slices in the core, for writers of files.
    functions : Table
        A row of table ``functions`` for each number of a function, without sums.
    errors, gaps : Table
        Decode errors, and where trace data was lost.
    """

    def __init__(
        self, handle: _core.CallTimeline, *, by: str, functions: Table, errors: Table, gaps: Table
    ) -> None:
        self.handle = handle
        self.by = by
        self.functions = functions
        self.errors = errors
        self.gaps = gaps

    def __len__(self) -> int:
        """How many slices there are."""
        return self.handle.slices

    @property
    def tracks(self) -> list[Track]:
        """Tracks, by number. Those of one thread follow each other."""
        return [Track(*one) for one in self.handle.tracks()]

    def columns(self, track: int | None = None) -> dict[str, NDArray[Any]]:
        """Slices of a track, or of all: callers come before what they call.

        Parameters
        ----------
        track : int, optional
            Number of the track; None: all.

        Returns
        -------
        dict of str to numpy.ndarray, shape (slices,)
            ``track``, ``depth``, ``begin``, ``end``, ``begin_error``, ``end_error``, ``id`` (in the table of
            calls; here and below, of merged calls that of the longest), ``function``, ``calls`` (more than 1:
            they are merged), ``covered`` (lengths of the calls, summed up), ``instructions``, ``branches``,
            ``how``, ``end_how``, ``flags`` (as the table of calls; ``EXACT`` only if all calls are exact) and
            ``has_loss``.
        """
        first, last = (0, len(self.handle.tracks())) if track is None else (track, track + 1)
        return self.handle.columns(first, last)

    def parts(self, rows: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Slices of all tracks, as `columns`, in parts of `rows` rows. `reduce` ends them."""
        rows = integer("rows", rows, 1, _MOST_SLICES)
        reader = _core.TimelineReader(self.handle, 0, len(self.handle.tracks()))
        while True:
            part = reader.read(rows)
            if len(part["id"]):
                yield part
            if len(part["id"]) < rows:
                return

    def bands(self, track: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint8]]:
        """Begins, ends and kinds (indexes of `BANDS`) of what is not executed, or not known."""
        return self.handle.bands(track)

    def counts(self, track: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Positions, and branches of the thread before each."""
        return self.handle.counts(track)

    def reduce(self, slices: int) -> None:
        """Reduce to so many slices. That may be impossible: each track has at least one.

        After an interruption (Ctrl-C) the timeline can be used: it is reduced in part.

        Parameters
        ----------
        slices : int
            Later numbers are smaller than earlier ones.

        Raises
        ------
        ConfigError
            If it is no positive number.
        """
        self.handle.reduce(integer("slices", slices, 1, _MOST_SLICES))

    def facts(self) -> dict[str, int]:
        """Counts of what was merged, changed and left out: see `notes`."""
        return self.handle.facts()

    def notes(self) -> list[str]:
        """Sentences on what was merged, changed and left out."""
        return _notes(self.facts(), "ticks" if self.by == "time" else "instructions")


def _notes(facts: Mapping[str, int], unit: str) -> list[str]:
    notes = []
    if facts["merged_slices"]:
        notes.append(
            f"{counted(facts['merged_calls'], 'call')} are merged into "
            f"{counted(facts['merged_slices'], 'slice')} of at most {facts['longest_merged']:,} {unit}; "
            f"the {facts['slowest']:,} slowest of each function are whole"
        )
    if facts["too_deep"]:
        callers = counted(facts["deepest"], "caller")
        notes.append(f"{counted(facts['too_deep'], 'call')} with more than {callers}: left out")
    if facts["without_times"]:
        notes.append(f"{counted(facts['without_times'], 'call')} of unknown begin or end: left out")
    if facts["clamped"]:
        notes.append(f"{counted(facts['clamped'], 'slice')}: positions were changed so that slices nest")
    if facts["merged_bands"]:
        notes.append(
            f"{counted(facts['merged_bands'], 'band')} of time that is not traced, switched out or lost: "
            "joined to the one before"
        )
    if facts["without_counts"]:
        notes.append(f"{counted(facts['without_counts'], 'thread')} with several stacks: no branches by time")
    return notes


def read_timeline(
    plan: Plan,
    *,
    by: str = "time",
    slices: int | None = None,
    frames: str = "native",
    inlines: bool = False,
    tails_replaced: bool = False,
    window: Window | None = None,
) -> CallTimeline:
    """Read frames as a timeline, in memory for about twice as many slices as are asked for.

    Parameters
    ----------
    plan : Plan
        A query of calls.
    by : str
        ``"time"`` or ``"instructions"``.
    slices : int, optional
        At most so many; None: each call has one.
    frames, inlines, tails_replaced, window
        As for `call_query`.

    Raises
    ------
    ConfigError
        If frames are selected by what they do not have, or there are no Python functions.
    OutOfMemoryError
        If they do not fit into memory.
    """
    check_choice("by", by, ("time", "instructions"))
    most = 0 if slices is None else integer("slices", slices, 1, _MOST_SLICES)
    plan = replace(plan, time=True)  # functions and numbers are those of calls() by instructions, too
    how: dict[str, Any] = {"frames": frames, "tails_replaced": tails_replaced, "inlines": inlines}
    query = call_query(plan, window=window, **how)
    key = key_of_sums(plan, window=window, **how)
    leaves_sums = plan.kept is not None and plan.kept.find(key, "function") is None
    try:
        (handle, notes, sums), *sides = _core.read_timeline(query, by=by, most=most, with_sums=leaves_sums)
    except MemoryError:
        raise too_large("call_timeline: the frames", query, _FEWER) from None
    if plan.kept is not None and sums is not None:
        plan.kept.keep(key, Sums(sums, sides_of(plan, sides, window, **how)))
    errors, gaps = (
        from_core(side, rows, context=plan.context)
        for side, rows in zip(("errors", "gaps"), sides, strict=True)
    )
    plan.met(errors)
    plan.after()
    functions = from_core("functions", notes.names(), context=plan.context)
    return CallTimeline(handle, by=by, functions=functions, errors=errors, gaps=gaps)
