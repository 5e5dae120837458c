"""The facade: everything that can be asked of a trace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit import decode as _decode
from ptkit import export as _export
from ptkit.decode import Query
from ptkit.errors import ConfigError, OutOfMemoryError
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.trace.exporting import export_trace
from ptkit.trace.opening import index as _index
from ptkit.trace.opening.index import IndexInfo
from ptkit.trace.saving import save
from ptkit.trace.slice import Slice
from ptkit.trace.time_range import interval
from ptkit.trace.view import View
from ptkit.trace.viewing import Viewing, whole_view
from ptkit.trace.whole import WholeTrace

if TYPE_CHECKING:
    from ptkit.capture import Recording
    from ptkit.export import Exported
    from ptkit.table import Table
    from ptkit.view import ViewTrace

__all__ = ["Trace"]


class Trace(WholeTrace, Viewing):
    """A recording: its streams, its code, and its tables.

    Table methods decode anew. What is kept: ``errors``, ``gaps``, ``stack_anomalies``, and the sums over
    frames that `functions` and `call_tree` share, 64 MiB at most (docs/calls.md). All take the keyword
    arguments of `ptkit.decode.Query`: ``columns``, ``stream``, ``tid``, ``pid``, ``space``, ``cr3``, ``cpu``,
    ``time``, ``instructions``, ``offset``, ``ip``, ``symbol``, ``module``, ``kind``, ``taken``, ``order``,
    ``threads`` and ``errors``. The ``iter_`` methods give the same rows in parts of ``rows`` rows, in bounded
    memory; with ``reuse=True`` parts share memory: a part is valid until the next one is asked for.

    Made by `ptkit.open` and `ptkit.record`.

    Attributes
    ----------
    recording : ptkit.capture.Recording or None
        Facts from `ptkit.record` about the run: exit status, counts; None for other traces.
    """

    recording: Recording | None = None

    def _repr_html_(self) -> str:
        return self.info._repr_html_()

    def _to_view(self, *, redact: bool) -> AbstractContextManager[ViewTrace]:
        return whole_view(self, redact=redact)

    def _sums_to_index(self, index: _core.Index) -> bytes:
        """Sums of all streams for the index: none if they do not fit, or if readers would miss a warning."""
        functions, edges = (self._plan(one, Query(errors="rows")) for one in ("functions", "edges"))
        try:
            sums, states = _decode.whole_sums(functions, index)
            parts = _decode.parts_of(sums, _decode.whole_edges(edges))
        except OutOfMemoryError:
            parts, states = {}, []
        self._open.look()
        if self._open.segments.warnings or self._open.filter.warnings:
            parts, states = {}, []
        return _decode.encoded(parts, states, _core.sums_identity(self._open.opened.session))

    # Parts of the trace.

    def between(
        self,
        t0: int | None = None,
        t1: int | None = None,
        *,
        seconds: tuple[float | None, float | None] | None = None,
        ns: tuple[int | None, int | None] | None = None,
        percent: tuple[float | None, float | None] | None = None,
        instructions: tuple[int | None, int | None] | None = None,
    ) -> View:
        """An interval of the trace: all tables, with the rows that ``time=`` or ``instructions=`` selects.

        Parameters
        ----------
        t0, t1 : int or None
            TSC ticks, [t0, t1); None leaves an end open, here and below.
        seconds : tuple of float, optional
            Instead: seconds from the start of the trace, ``trace.info.first_tsc``.
        ns : tuple of int, optional
            Instead: nanoseconds of the recorder's clock, as in column ``time_ns``.
        percent : tuple of float, optional
            Instead: per cent of the span of the trace, 0 to 100.
        instructions : tuple of int, optional
            Instead: ``(first, end)`` of the instructions of the thread, counted from its begin in its stream,
            as the timelines of `call_timeline` and `view` do by instructions. Where a stream has several
            threads, choose one in each question: ``functions(tid=11)``.

        Returns
        -------
        View
            Its ``errors`` and ``gaps``, and those of its tables, are selected as well. Where the trace has an
            index (`index`), only the parts that may have such rows are decoded.

        Raises
        ------
        ConfigError
            If the begin is above the end, the interval lies outside the trace, the trace has no times or, for
            seconds and nanoseconds, its clock is not known. From the tables of a range of instructions, if
            a stream has several threads and none is chosen, or the thread shares several streams with
            others and none of these is chosen; if a table has no numbers of instructions (packets); if
            phases or whole calls are asked for, or a time besides.

        Notes
        -----
        Adjacent ranges of instructions add up to the whole. `blocks` are those that have a part in the
        range, and so are counts of lines. Of calls, each instruction counts that is in it, as in a window
        of time (docs/calls.md). A thread that switches stacks counts those of all of them. Where a stream
        has several threads, its blocks are read first, once for each range, to find the instructions of the
        thread. No times are needed.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> half = trace.between(percent=(0, 50)).branches()
        >>> first = trace.between(seconds=(0, 0.0001)).branches()
        >>> t0 = trace.info.first_tsc
        >>> early = trace.between(t0, t0 + 50_000).branches()
        >>> max(len(half), len(first), len(early)) < len(trace.branches())
        True
        >>> part = trace.between(instructions=(1000, 3000))
        >>> len(part.instructions()), int(part.functions()["self_instructions"].sum())
        (2000, 2000)
        """
        if instructions is not None:
            if any(one is not None for one in (t0, t1, seconds, ns, percent)):
                raise ConfigError("between() takes one interval: a time, or instructions")
            _decode.instruction_range(Query(instructions=instructions))
            first, end = instructions
            return View(self, Query(instructions=instructions), f"instructions {first} to {end}")
        time, text = interval(self._open.times, t0, t1, {"seconds": seconds, "ns": ns, "percent": percent})
        return View(self, Query(time=time), text)

    def touching(self, subject: str | int | tuple[int, int] | Sequence[int | tuple[int, int]]) -> View:
        """Rows of a function or an address: all tables, with the rows that ``ip=`` selects.

        Parameters
        ----------
        subject : str, int, tuple of int, or sequence of tuples
            Name of a function; an address; a range [low, high) of addresses; or a sequence of addresses and
            ranges.

        Returns
        -------
        View
            Its ``errors`` and ``gaps``, and those of its tables, are selected as well. Where the trace has an
            index (`index`), only the parts that may have such rows are decoded.

        Raises
        ------
        ConfigError
            If a range is empty.
        SymbolError
            If there is no such function.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> 0 < len(trace.touching("exit").instructions()) < len(trace.instructions())
        True
        """
        if isinstance(subject, str):
            return View(self, Query(symbol=subject), f"touching {subject}")
        if hasattr(subject, "__index__"):
            address = integer("subject", subject, 0, LAST_ADDRESS)
            return View(self, Query(ip=address), f"touching {address:#x}")
        return View(self, Query(ip=subject), f"touching {subject}")

    def slice(self, *, after: Table | None = None, before: Table | None = None) -> Slice:
        """The part between two events of a stream: all tables.

        Parameters
        ----------
        after, before : Table
            One row of `events` each (or of ``errors``, ``gaps``), of the same stream. None: the begin, or the
            end, of the stream of the other one.

        Returns
        -------
        Slice

        Raises
        ------
        ConfigError
            If they are no such rows, of two streams, or in the wrong order.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.record(["true"])
        >>> events = trace.events(stream=0)
        >>> part = trace.slice(after=events[:1], before=events[-1:])
        >>> between = int(events["instruction"][-1]) - int(events["instruction"][0])
        >>> len(part.instructions()) == between
        True
        """
        return Slice(self, after, before)

    def index(
        self, path: str | os.PathLike[str] | None = None, *, save: bool = True, threads: int | None = None
    ) -> IndexInfo:
        """Build the index of this trace, or return the one that it has: parts are then decoded alone.

        Selections by ``time``, ``ip`` and ``symbol``, and so `between` and `touching`, decode only the parts
        that may have such rows: also `functions`, `call_tree` and `calls` of a window of time. `functions`,
        `call_tree` and `edges` of the whole trace decode nothing. The rows are the same as without.

        Parameters
        ----------
        path : path, optional
            Where to write it; by default beside the trace, where `ptkit.open` finds it again.
        save : bool
            Write it; else it is kept in memory only.
        threads : int, optional
            Segments that are decoded at the same time; None: all cores.

        Returns
        -------
        IndexInfo

        Raises
        ------
        OpenError
            If it cannot be written.
        ConfigError
            If the trace has no path and none is given, or its code comes from a callback.

        Notes
        -----
        The whole trace is decoded three times: for the segments, the frames and the edges. An index of
        another version of ptkit is made anew. docs/index-file.md has the format, and what is decoded from
        the beginning all the same.
        """
        found, info = _index.make(
            self._open.opened, self.source, path, save=save, threads=threads, sums=self._sums_to_index
        )
        self._open.use_index(found)
        self._open.look()
        return info

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        redact: bool = False,
        **options: Any,
    ) -> Exported:
        """Write the recording in another tool's format.

        Parameters
        ----------
        path : path
            The file or folder to write; an earlier one is replaced when the new one is complete.
        format : str, optional
            Name of the format: `ptkit.export.exporters` has all. None: the suffix of `path` says it
            (``"calls.csv"``); ``"perf.data"`` for other paths.
        redact : bool
            Export a copy of the recording without what `ptkit.redact` leaves out: paths, command lines,
            names of threads, source.
        **options
            The format's own, such as ``table=``, and for formats of blocks, calls and tables a selection:
            ``pid``, ``time``, ``module`` and so on of `ptkit.decode.Query`. perf.data: ``code``, which code
            goes to ``PATH.debug`` for ``perf --buildid-dir``: ``"needed"`` (what no file of this machine
            has), ``"all"`` (for other machines), or ``"none"``. offsets: ``file_offsets=True`` for offsets in
            files instead of RVAs, ``hits=True`` for how often each was executed. raw: ``stream``, the index
            of the stream, which may be left out where there is one alone. docs/export.md has all.

        Returns
        -------
        ptkit.export.Exported
            Report on the file, with notes on what the format cannot hold.

        Raises
        ------
        OpenError
            If it cannot be written; then nothing is.
        UnsupportedError
            If the format cannot hold what is in the trace, or needs a package that is missing.
        ConfigError
            If there is no such format or option, several formats have the suffix of `path`, or `path` is what
            is read.

        Notes
        -----
        docs/export.md says what becomes of what. `between`, `touching` and `slice` export, too.
        """
        return export_trace(self, path, format, redact=redact, **options)

    def stream_bytes(self, stream: int | None = None, *, offset: int = 0, size: int | None = None) -> bytes:
        """Bytes of a stream as the processor wrote them; offsets of rows count in them.

        Parameters
        ----------
        stream : int, optional
            Index of the stream; it may be left out where there is one alone.
        offset : int
            Bytes before the first one.
        size : int, optional
            Bytes; None: all that follow. `export` with ``format="raw"`` writes a stream that is larger than
            the memory.

        Returns
        -------
        bytes
            Fewer than `size` where the stream ends.

        Raises
        ------
        ConfigError
            If there is no such stream, or there are several and none is chosen.
        UnsupportedError
            If the stream has branch records instead of packets.

        Examples
        --------
        >>> import ptkit
        >>> trace = ptkit.open(bytes.fromhex("0282" * 8 + "9901 0223"), cpu="6/158/10")
        >>> trace.stream_bytes(offset=16).hex()
        '99010223'
        """
        return _export.stream_bytes(self, stream, offset, size)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write the recording as a bundle (.ptk): one file that opens without the program's files.

        Parameters
        ----------
        path : path
            The bundle to write; an earlier file is replaced when the new one is complete.

        Returns
        -------
        int
            Bytes of the bundle.

        Raises
        ------
        OpenError
            If it cannot be written.
        ConfigError
            If `path` is what is read.
        UnsupportedError
            If code comes from a callback: it is not in the recording.

        Notes
        -----
        Trace, code, names of functions, threads, and what was given to `ptkit.open` (images, processor,
        clock) are in it. `ptkit.redact` leaves out paths, command lines and names.

        Examples
        --------
        >>> import ptkit, tempfile
        >>> trace = ptkit.open(bytes.fromhex("0282" * 8 + "9901 0223"), cpu="6/158/10")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     size = trace.save(f"{folder}/raw.ptk")
        ...     print(ptkit.open(f"{folder}/raw.ptk").info.cpu)
        (6, 158, 10)
        """
        return save(self._open, path)
