"""A run in the page: what is read of a trace, and the members of the page's head."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from shlex import join
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ptkit.export.frame_rows import check_query, has_source, is_emulated, losses_of
from ptkit.export.timelines import axis_of
from ptkit.export.track_names import track_names
from ptkit.info import EMULATED_TIMES
from ptkit.info.lines import lines_of
from ptkit.support.text import counted, last_part, one_line
from ptkit.view.call_details import CallDetails, SliceRows
from ptkit.view.code import CodeTrace, FunctionCode, read_code
from ptkit.view.first_screen import FirstScreen
from ptkit.view.functions import COLUMNS, PageFunctions, page_functions
from ptkit.view.reproduce import Reproduced, selections_of, selects_all
from ptkit.view.slices import Chunk, encoded_slices, positions_of

if TYPE_CHECKING:
    from ptkit.decode import CallTimeline
    from ptkit.decode.timelines import Track
    from ptkit.table import Table

__all__ = ["Run", "ViewTrace", "read_run"]

#: Slices of a page, at most: of more calls, short ones are merged while they are decoded.
MOST_SLICES = 4_000_000
_FIRST_TRACKS = 32  # tracks of which the head has the first screen, those with most slices
_DEEP_TRACKS, _FEW_DEPTHS = 8, 8  # so many of them with all depths, and depths of the others
_MOST_BANDS = 20_000  # of all tracks
_MOST_POINTS = 16_000
_LEAST_EACH = 16
_NAMELESS = re.compile(r"\[.*\]|thread .*|.*!0x[0-9a-f]+")
_LOST = 2  # kind of bands
_NS_SPAN = 1 << 40  # ticks by which the length of one is found


class ViewTrace(CodeTrace, Protocol):
    """A trace, or a part of one, as far as pages are made of it."""

    @property
    def open_parts(self) -> Any:
        """Times, of `ptkit.trace`."""

    def call_timeline(self, by: str = "time", *, slices: int | None = None, **query: Any) -> CallTimeline:
        """Calls as slices that nest."""

    def functions(self, by: str = "function", **query: Any) -> Table:
        """Sums over the frames of each function."""


@dataclass
class Run:
    """What is read of a trace.

    Attributes
    ----------
    trace : ViewTrace
    timeline : CallTimeline
    functions : PageFunctions
    code : FunctionCode or None
        None: it is not shown.
    details : CallDetails
    origin : int
        Position from which the page counts.
    begin, end : int
        The first position, and the last one.
    reproduced : Reproduced
        What the run was made of, as words.
    divergences : list
        Where it parts from the other run of the page: track, position, number, place, way, and whether it is
        in the program's own files.
    more_notes : list of str
        Sentences on these.
    screen : FirstScreen
        Of the slices that were encoded last.
    slice_notes : list of str
        On these slices: what was merged, changed and left out.
    """

    trace: ViewTrace
    timeline: CallTimeline
    functions: PageFunctions
    code: FunctionCode | None
    details: CallDetails
    origin: int
    begin: int
    end: int
    reproduced: Reproduced
    divergences: list[list[Any]] = field(default_factory=list)
    more_notes: list[str] = field(default_factory=list)
    screen: FirstScreen = field(init=False)
    slice_notes: list[str] = field(init=False)

    @property
    def is_time(self) -> bool:
        """Positions are times, not instructions."""
        return self.timeline.by == "time"

    def title(self) -> str:
        """Name of the recording."""
        return one_line(last_part(self.trace.info.source))

    def track_heads(self) -> list[tuple[str, str]]:
        """Names of tracks, and numbers of their threads."""
        tracks = self.timeline.tracks
        names = track_names(self.trace.info, tracks, is_time=True)
        return [
            (name if name == process or not process else f"{process}: {name}", _detail(track))
            for track, (process, name) in zip(tracks, names, strict=True)
        ]

    def slices(self) -> list[Chunk]:
        """All slices, and the first screen."""
        tracks = len(self.timeline.tracks)
        self.screen = FirstScreen(tracks, self.begin, self.end)
        self.slice_notes = self.timeline.notes()
        return list(encoded_slices(self.timeline, self.functions.number, self.origin, self.screen))

    def detail(self, number: int) -> dict[str, Any]:
        """Details of a function."""
        code = {"code": None, "source": None} if self.code is None else self.code.of(number)
        return {"function": number, **self.details.of(number), **code}

    def head(self, chunks: list[Chunk], detail: list[int], *, shows_full: bool) -> dict[str, Any]:
        """The member of ``runs``.

        Parameters
        ----------
        chunks : list of Chunk
            Slices.
        detail : list of int
            Number of the chunk with the details of each function, or -1.
        shows_full : bool
            Whether full names of functions are there.
        """
        info = self.trace.info
        command = info.recording.get("command")
        return {
            "title": self.title(),
            "command": one_line(join(command)) if command else None,
            "facts": [[name, one_line(str(text))] for name, text in lines_of(info)],
            "notes": [one_line(text) for text in self.notes()],
            "by": self.timeline.by,
            "unit_ns": self._unit_ns(),
            "other": "instructions",
            "origin": str(self.origin),
            "first_time_ns": self._first_time_ns(),
            "range": [self.begin - self.origin, self.end - self.origin],
            "reproduce": {**self.reproduced.head(last_part(info.source)), "selects_all": self._selects_all()},
            "tracks": self._tracks(),
            "divergences": self.divergences,
            "functions": {
                **self.functions.head(is_time=self.is_time, shows_full=shows_full),
                "detail": detail,
            },
            "chunks": [{"rows": chunk.rows, "columns": chunk.columns} for chunk in chunks],
        }

    def notes(self) -> list[str]:
        """Sentences on what is missing, merged, or not as it seems."""
        timeline, functions, info = self.timeline, self.functions, self.trace.info
        notes = []
        if not len(timeline):
            notes.append("no calls: nothing was executed of what is chosen, or nothing could be decoded")
        if not info.code_regions:
            notes.append("no code: the recording has none, so nothing is decoded; see `ptkit info`")
        if len(functions) and all(map(_NAMELESS.fullmatch, functions.names.original)):
            notes.append(
                "no names: functions have addresses alone; `--symbols`, or files with symbols, name them"
            )
        if info.first_tsc is None:
            notes.append("no times: positions are instructions")
        if is_emulated(self.trace):
            notes.append(EMULATED_TIMES)
        notes += [*losses_of(timeline.errors, timeline.gaps), *self.slice_notes]
        if not self.is_time and len(timeline.tracks) > 1:
            notes.append("positions are instructions of each thread: those of two threads do not compare")
        if not has_source(self.trace):
            notes.append(
                "redacted: paths, command lines, names of threads, source and disassembly are left out"
            )
        if self.reproduced.bound is None:
            notes.append("a part between two events: the commands shown are those of the whole recording")
        notes += self.more_notes
        if undecided := int(np.count_nonzero(~np.asarray(functions.rows["count_exact"]))):
            notes.append(f"{counted(undecided, 'function')} with undecided frames: counts may be wrong")
        return notes

    def embedded(self) -> list[str]:
        """What the page has that `ptkit redact` leaves out, and disassembly."""
        if not has_source(self.trace):
            return []
        info, code = self.trace.info, self.code
        return [
            *(["paths"] if info.files else []),
            *(["the command line"] if info.recording.get("command") else []),
            *(["names of threads"] if any(name for *_, name in info.threads) else []),
            *(["disassembly"] if code is not None and code.has_instructions else []),
            *(
                ["source lines as they are on this machine now"]
                if code is not None and code.has_source
                else []
            ),
        ]

    def _unit_ns(self) -> float | None:
        times = self.trace.open_parts.times
        if not self.is_time or times.to_ns is None:
            return None
        return int(times.length_ns(np.array([_NS_SPAN], np.int64))[0]) / _NS_SPAN

    def _first_time_ns(self) -> str | None:
        times = self.trace.open_parts.times
        return str(times.ns(self.origin)) if self.is_time and times.to_ns is not None else None

    def _selects_all(self) -> bool:
        """Whether a range of all tracks can be selected."""
        return self.is_time or selects_all(self.trace.open_parts, self.timeline, self.reproduced.chosen)

    def _selections(self) -> list[Any]:
        """What selects the thread of each track; None: nothing does."""
        if self.is_time:
            return [[] if one.tid is None else [("tid", one.tid)] for one in self.timeline.tracks]
        return list(
            selections_of(self.trace.open_parts, self.timeline, self.reproduced.chosen, self.functions.rows)
        )

    def _tracks(self) -> list[dict[str, Any]]:
        tracks = self.timeline.tracks
        slices = self.screen.slices
        shown = np.argsort(-slices, kind="stable")[:_FIRST_TRACKS].tolist()
        found = []
        thread, last = -1, None
        selections = self._selections()
        for number, (track, (name, detail)) in enumerate(zip(tracks, self.track_heads(), strict=True)):
            if (owner := _thread_of(track, is_time=self.is_time)) != last or owner is None:
                thread, last = thread + 1, owner
            one = {
                "name": name,
                "detail": detail,
                "thread": thread,
                "pid": track.pid,
                "tid": track.tid,
                "cpu": track.cpu,
                "stream": track.stream,
                "stack": track.stack,
                "selection": selections[number],
                "slices": int(slices[number]),
                "depth": int(self.screen.depth[number]) + 1,
                "range": self._range(number),
                "bands": self._bands(number, len(tracks)),
                "counts": self._counts(number, len(tracks)),
            }
            if number in shown and slices[number]:
                rows = self.screen.rows(number)
                if shown.index(number) >= _DEEP_TRACKS:
                    rows = rows[:_FEW_DEPTHS]
                cells = rows.astype("<u2").tobytes()
                one["first"] = {"depths": len(rows), "rows": b64encode(cells).decode()}
            found.append(one)
        return found

    def _range(self, number: int) -> list[int]:
        """The first and the last position of a track."""
        if not self.screen.slices[number]:
            return [0, 0]
        return [int(end[number]) - self.origin for end in (self.screen.first, self.screen.last)]

    def _bands(self, number: int, tracks: int) -> list[list[int]]:
        """Bands of a track, of many the longest: losses come first."""
        begin, end, kind = self.timeline.bands(number)
        most = max(_MOST_BANDS // tracks, _LEAST_EACH)
        rows = np.arange(len(begin))
        if len(begin) > most:
            rows = np.sort(np.lexsort((~(end - begin), kind != _LOST))[:most])
        origin = np.uint64(self.origin)
        cells = ((begin[rows] - origin).tolist(), (end[rows] - origin).tolist(), kind[rows].tolist())
        return [list(one) for one in zip(*cells, strict=True)]

    def _counts(self, number: int, tracks: int) -> list[list[int]]:
        """Branches by position: of many points, some."""
        position, branches = self.timeline.counts(number)
        most = max(_MOST_POINTS // tracks, _LEAST_EACH)
        rows = np.arange(len(position))
        if len(rows) > most:
            rows = np.linspace(0, len(rows) - 1, most).astype(np.int64)
        cells = ((position[rows] - np.uint64(self.origin)).tolist(), branches[rows].tolist())
        return [list(one) for one in zip(*cells, strict=True)]


def _thread_of(track: Track, *, is_time: bool) -> tuple[int | None, ...] | None:
    """What tracks of one thread have in common; None: the thread is not known."""
    if track.tid is None:
        return None
    return (track.pid, track.tid) if is_time else (track.pid, track.tid, track.stream)


def _detail(track: Track) -> str:
    parts = [f"{name} {value}" for name in ("pid", "tid") if (value := getattr(track, name)) is not None]
    parts += [f"CPU {track.cpu}"] if track.cpu is not None else []
    parts += [f"stream {track.stream}"] if not parts else []
    return " ".join([*parts, *([f"stack {track.stack}"] if track.stack else [])])


def read_run(
    trace: ViewTrace,
    *,
    of: str | None,
    names: str,
    frames: str,
    inlines: bool,
    bound: Mapping[str, Any] | None,
    query: Mapping[str, Any],
) -> Run:
    """Read what a page shows of a trace, by two passes through its streams.

    Parameters
    ----------
    trace : ViewTrace
    of : str or None
        ``"time"`` or ``"instructions"``; None: time where that is real.
    names : str
        ``"short"`` or ``"full"``.
    frames, inlines
        As for `ptkit.Trace.calls`.
    bound : dict or None
        Selection that the part of the trace has already; None: it is no selection.
    query : dict
        Selection of calls.

    Raises
    ------
    ConfigError, SymbolError, OutOfMemoryError
        As for `ptkit.Trace.call_timeline`.
    """
    check_query(query)
    by = axis_of(trace, of)
    how: dict[str, Any] = {"frames": frames, "inlines": inlines}
    timeline = trace.call_timeline(by, slices=MOST_SLICES, **how, **query)
    sums = trace.functions(**how, **query, columns=list(COLUMNS))  # of the same pass
    functions = page_functions(sums, timeline.functions, names, [path for path, _ in trace.info.files])
    rows = SliceRows()
    begin, end = positions_of(timeline, functions.number, rows)
    origin = begin if by == "time" else 0  # instructions are counted from the begin of the recording
    details = CallDetails(
        rows.columns(),
        _called(functions),
        functions.names.names,
        origin,
        trace.open_parts.times.length_ns if by == "time" else None,
    )
    has_code = bool(len(functions)) and has_source(trace)
    code = read_code(trace, functions.names, **query) if has_code else None
    return Run(
        trace,
        timeline,
        functions,
        code,
        details,
        origin,
        begin,
        end,
        Reproduced(bound, query, frames=frames, inlines=inlines, of=of),
    )


def _called(functions: PageFunctions) -> NDArray[np.int64]:
    called: NDArray[np.int64] = functions.rows["count"] + functions.rows["begin_unseen"]
    return called
