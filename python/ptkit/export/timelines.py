"""Timelines of calls for Perfetto, Fuchsia's trace format, Chrome's trace events and speedscope."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ptkit import _core
from ptkit.decode.plan import check_choice
from ptkit.errors import ConfigError
from ptkit.export.files import NewFile
from ptkit.export.frame_rows import check_query, has_real_times, is_emulated, losses_of
from ptkit.export.function_names import function_names
from ptkit.export.track_names import track_names
from ptkit.info import EMULATED_TIMES
from ptkit.support.arguments import integer
from ptkit.support.text import last_part, one_line

if TYPE_CHECKING:
    from ptkit.decode import CallTimeline, OpenTrace
    from ptkit.info import TraceInfo

__all__ = ["AXES", "axis_of", "write_timeline"]

#: Positions of timelines.
AXES = ("time", "instructions")
# Fewest bytes of a slice, of merged calls too, in each format: a file of a size cannot have more slices.
_LEAST_BYTES = {"perfetto": 32, "fxt": 48, "chrome": 90, "speedscope": 55}
# Bytes of a point of a counter, at most; counters take this part of a file of a size, and what is left.
_POINT_BYTES = {"perfetto": 36, "fxt": 56, "chrome": 150, "speedscope": 1}
_OF_POINTS = 0.05
_LEAST_POINTS = 4
_FEW_SLICES = 1 << 18  # so many are had at no cost, and reduced with all of them in view
_MOST_BYTES = 2**63 - 1
_MOST_SLICES = 2**32 - 2
# A step goes this part of the way to the size, and to a little less than it where it is near.
_PART, _NEAR, _BELOW = 0.75, 1.06, 0.999
_FILLS = 3


class TimelineTrace(Protocol):
    """A trace, or a part of one, as far as exporters of timelines use it."""

    @property
    def info(self) -> TraceInfo:
        """Files and facts."""

    @property
    def opened(self) -> OpenTrace:
        """The bundle, the session and the settings."""

    def call_timeline(self, by: str = "time", *, slices: int | None = None, **query: Any) -> CallTimeline:
        """Calls as slices that nest."""


def write_timeline(
    trace: TimelineTrace,
    path: str,
    *,
    format: str,
    of: str | None = None,
    size: int | None = None,
    names: str = "short",
    frames: str = "native",
    inlines: bool = False,
    **query: Any,
) -> dict[str, Any]:
    """Write calls as slices that nest, on a track for each thread.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    format : str
        ``"perfetto"`` (its TracePackets), ``"fxt"`` (duration events of the Fuchsia trace format),
        ``"chrome"`` (trace events in JSON) or ``"speedscope"`` (an evented profile for each thread).
    of : str, optional
        Positions: ``"time"``, or ``"instructions"`` of the thread in its stream, of which each is shown as a
        nanosecond. None: time, but instructions where times are emulated or not known.
    size : int, optional
        The file has at most so many bytes: short calls are merged with those next to them. None: all calls.
    names : str
        ``"short"`` or ``"full"`` names of functions; the full ones are arguments in any case.
    frames, inlines, **query
        As for `ptkit.Trace.calls`.

    Raises
    ------
    ConfigError
        If the query chooses columns, an order, or rows that frames have not; there are no times; or nothing
        fits into `size`.
    """
    check_query(query)
    check_choice("names", names, ("short", "full"))
    by = axis_of(trace, of)
    slices = None
    if size is not None:
        size = integer("size", size, 1, _MOST_BYTES)
        slices = min(max(size // _LEAST_BYTES[format], _FEW_SLICES), _MOST_SLICES)
    with NewFile(path) as file:  # refuses a path before the calls are read
        timeline = trace.call_timeline(by, slices=slices, frames=frames, inlines=inlines, **query)
        writer = _Writer(trace, timeline, format, names)
        if size is not None and writer.count() > size:
            writer.limit_points(int(size * _OF_POINTS))
            _fit(timeline, writer.count, size)
            writer.add_points(size)
        notes = writer.notes()
        writer.write(file.write)
    return {"bytes": file.bytes, "notes": notes}


class _Writer:
    """Writes a timeline in a format, as far as it is reduced by now."""

    def __init__(self, trace: TimelineTrace, timeline: CallTimeline, format: str, names: str) -> None:
        self._trace = trace
        self._timeline = timeline
        self._format = format
        self._points: int | None = None
        found = function_names(timeline.functions, names, [path for path, _ in trace.info.files])
        modules = [one_line(module or "") for module in found.modules]
        self._functions = list(zip(found.names, found.full, modules, strict=True))

    def limit_points(self, bytes_: int) -> None:
        """Give the counters of all tracks about so many bytes together."""
        each = max(len(self._timeline.tracks), 1) * _POINT_BYTES[self._format]
        self._points = max(bytes_ // each, _LEAST_POINTS)

    def add_points(self, size: int) -> None:
        """Give the counters what is left of the size of the file."""
        points, bytes_ = self._points or 0, self.count()
        each: float = max(len(self._timeline.tracks), 1) * _POINT_BYTES[self._format]
        for _ in range(_FILLS):
            more = int((size - bytes_) * _BELOW / each)
            if more <= 0:
                return
            self._points = points + more
            found = self.count()
            if found > size or found == bytes_:
                self._points = points
                return
            each = max((found - bytes_) / more, 1)
            points, bytes_ = self._points, found

    def count(self) -> int:
        """Bytes of the file."""
        return self.write(None)

    def write(self, take: Callable[[memoryview], Any] | None) -> int:
        """Give the file to `take` in chunks."""
        is_time = self._timeline.by == "time"
        return _core.write_timeline(
            self._timeline.handle,
            self._format,
            session=self._trace.opened.session,
            first_tsc=self._trace.info.first_tsc if is_time else None,
            functions=self._functions,
            threads=track_names(self._trace.info, self._timeline.tracks, is_time=is_time),
            notes=[(name, one_line(text)) for name, text in self._facts()],
            most_rates=self._points,
            take=take,
        )

    def notes(self) -> list[str]:
        """Sentences: losses, what was merged, and what positions are."""
        losses = losses_of(self._timeline.errors, self._timeline.gaps)
        return [*losses, *self._timeline.notes(), *self._durations()]

    def _durations(self) -> list[str]:
        if self._timeline.by == "instructions":
            return ["positions are instructions of each thread in its stream: 1 ns is 1 instruction"]
        return [EMULATED_TIMES] if is_emulated(self._trace) else []

    def _facts(self) -> list[tuple[str, str]]:
        """What the file says of itself: names and texts."""
        positions = "instructions" if self._timeline.by == "instructions" else "earliest possible times"
        facts = [("recording", last_part(self._trace.info.source)), ("positions", positions)]
        if is_emulated(self._trace) and self._timeline.by == "instructions":
            facts.append(("durations", EMULATED_TIMES))
        return [*facts, *((f"note {number}", text) for number, text in enumerate(self.notes(), 1))]


def axis_of(trace: TimelineTrace, of: str | None) -> str:
    """What positions of the timeline are."""
    if of is None:
        return "time" if has_real_times(trace) else "instructions"
    check_choice("of", of, AXES)
    info = trace.info
    if of == "time" and (info.first_tsc is None or (info.tsc_hz is None and info.perf_time is None)):
        raise ConfigError(
            "of='time': the trace has no times of which the clock is known; use of='instructions'"
        )
    return of


def _fit(timeline: CallTimeline, count: Callable[[], int], size: int) -> None:
    """Reduce a timeline until its file has at most `size` bytes, and little less.

    The steps come from above, as what is merged stays so. A step removes too few slices rather than too many:
    a slice is taken to have the mean of all at least, with parts of files that do not become smaller.
    """
    slices, bytes_ = len(timeline), count()
    each = bytes_ / max(slices, 1)
    while bytes_ > size:
        aim = size * _BELOW if bytes_ <= size * _NEAR else bytes_ - (bytes_ - size) * _PART
        earlier = slices, bytes_
        timeline.reduce(max(slices - max(int((bytes_ - aim) / each), 1), 1))
        slices, bytes_ = len(timeline), count()
        if slices == earlier[0]:
            raise ConfigError(f"size={size}: the file has at least {bytes_:,} bytes")
        mean = bytes_ / slices
        each = min(max((earlier[1] - bytes_) / (earlier[0] - slices), mean), 2 * mean)
