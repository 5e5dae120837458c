"""Where two runs part, as marks on the tracks of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptkit.analysis.diff.strands import times_at
from ptkit.export.frame_rows import has_source
from ptkit.support.text import counted, one_line

if TYPE_CHECKING:
    from ptkit.analysis.diff import Difference
    from ptkit.view.run import Run

__all__ = ["mark_divergences"]

_MOST = 500  # of a page


def mark_divergences(difference: Difference, runs: Sequence[Run]) -> None:
    """Add marks to both runs of a page: `Run.divergences`, and a note on what has none.

    Parameters
    ----------
    difference : Difference
    runs : sequence of Run
        Both, in its order.
    """
    table = difference.divergences
    own = np.asarray(table["is_own"])
    # Those of the program's own files come first where there are more than a page has.
    kept = np.sort(np.argsort(~own, kind="stable")[:_MOST])
    shown = np.zeros(len(kept), np.bool_)
    for side, run in zip("ab", runs, strict=True):
        cells = {
            name: np.asarray(table[f"{side}_{name}"])[kept].astype(np.int64)
            for name in ("stream", "tid", "instruction")
        }
        tracks = _tracks_of(run, cells["stream"], cells["tid"])
        positions = _positions(run, cells["stream"], cells["instruction"], tracks >= 0)
        texts = _texts(table[kept], side, with_lines=has_source(run.trace))
        inside = (tracks >= 0) & (positions >= run.begin) & (positions <= run.end)
        shown |= inside
        run.divergences = [
            [int(tracks[row]), int(positions[row]) - run.origin, row, *texts[row], bool(own[kept[row]])]
            for row in np.flatnonzero(inside).tolist()
        ]
    left = len(table) - int(shown.sum())
    note = f"{counted(len(table), 'divergence')} of the two runs" if len(table) else ""
    if left:
        note += f", of which {left:,} are not marked (ptkit diff prints them)"
    runs[0].more_notes += [*([note] if left else []), *map(one_line, difference.unjudged)]


def _tracks_of(run: Run, stream: NDArray[np.int64], tid: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the track of each thread; -1: there is none, or its positions are not known."""
    threads: dict[tuple[int, int], int] = {}
    of_stream: dict[int, set[int | None]] = {}
    for number, track in enumerate(run.timeline.tracks):
        of_stream.setdefault(track.stream, set()).add(track.tid)
        thread = -1 if track.tid is None else track.tid
        threads.setdefault((-1 if run.is_time else track.stream, thread), number)
    found = np.full(len(tid), -1, np.int64)
    for row, one in enumerate(zip(stream.tolist(), tid.tolist(), strict=True)):
        # Of threads that share a stream, positions are instructions of the thread, not of the stream.
        if run.is_time or len(of_stream.get(one[0], ())) == 1:
            found[row] = threads.get((-1 if run.is_time else one[0], one[1]), -1)
    return found


def _positions(
    run: Run, stream: NDArray[np.int64], instruction: NDArray[np.int64], wanted: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Positions on the axis; -1: not known."""
    if not run.is_time:
        return instruction
    found = np.full(len(stream), -1, np.int64)
    trace: Any = run.trace
    for one in np.unique(stream[wanted & (stream >= 0)]).tolist():
        rows = np.flatnonzero(wanted & (stream == one))
        found[rows] = times_at(trace, one, instruction[rows])
    return found


def _texts(table: Any, side: str, *, with_lines: bool) -> list[tuple[str, str]]:
    """Where both parted, and what the run did."""
    if not with_lines:
        return [(one_line(str(one)), "") for one in table.named("function")]
    ways, targets = table.named(f"{side}_way"), table.named(f"{side}_target")
    return [
        (one_line(str(where)), one_line(f"{way} {target}" if target else str(way)))
        for where, way, target in zip(table.named("where"), ways, targets, strict=True)
    ]
