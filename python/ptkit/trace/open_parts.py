"""Parts of an open trace: `Trace` and the parts of it hold one object, which helpers take."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit.decode import (
    OF_OWNERS,
    InstructionRanges,
    OpenTrace,
    Plan,
    Query,
    Range,
    Scope,
    Settings,
    instruction_range,
    plan_of,
)
from ptkit.decode.kept_sums import KeptSums
from ptkit.errors import SymbolError, TraceWarning
from ptkit.info import ModuleInfo, TraceInfo, complete, info_of, modules_of
from ptkit.table import TableContext
from ptkit.trace.clocks import Clocks, clock_sample
from ptkit.trace.late_warnings import LateWarnings
from ptkit.trace.names.code_segments import CodeSegments
from ptkit.trace.names.names import Names
from ptkit.trace.opening import index as _index
from ptkit.trace.opening.debug_files import DebugFiles, debug_folders
from ptkit.trace.ranges import CodeRanges
from ptkit.trace.suspected_files import SuspectedFiles
from ptkit.trace.suspected_filter import SuspectedFilter
from ptkit.trace.time_range import TimeScale

if TYPE_CHECKING:
    from typing_extensions import Buffer

    ImageCallback = Callable[[int, int, int], Buffer | None]

__all__ = ["OpenParts", "open_parts"]


@dataclass
class OpenParts:
    """Parts of an open trace; provisional, as `ptkit.decode` is.

    Attributes
    ----------
    opened : OpenTrace
        The bundle, the session that decodes it, and settings.
    described : TraceInfo
        Facts from the bundle: no packet is decoded for it.
    timed : callable
        Returns the same with first and last times.
    modules : callable
        Returns the files that code was mapped from.
    names : Names
        Names of addresses.
    ranges : CodeRanges
        Addresses of names.
    times : TimeScale
        The times of the trace, in ticks and other units.
    clocks : Clocks
        Times by other clocks.
    scope : Scope
        Streams, threads and address spaces that can be selected.
    context : TableContext
        The part of the trace that derived columns of its tables need.
    segments, filter, suspected, debug_files
        Warnings that come about while it is decoded.
    has_callback : bool
        Code comes from a function of the user.
    instruction_ranges : InstructionRanges
        Where instructions of threads are in their streams.
    methods : type
        Class that has a method for each table, for messages.
    """

    opened: OpenTrace
    described: TraceInfo
    timed: Callable[[], TraceInfo]
    modules: Callable[[], tuple[ModuleInfo, ...]]
    names: Names
    ranges: CodeRanges
    times: TimeScale
    clocks: Clocks
    scope: Scope
    context: TableContext
    segments: CodeSegments
    filter: SuspectedFilter
    suspected: SuspectedFiles
    debug_files: DebugFiles
    has_callback: bool
    methods: type = object
    instruction_ranges: InstructionRanges = field(init=False)

    def __post_init__(self) -> None:
        self.instruction_ranges = InstructionRanges(self.scope)

    @property
    def late(self) -> tuple[LateWarnings, ...]:
        """Warnings that come about while it is decoded, by kind."""
        return self.segments, self.filter, self.suspected, self.debug_files

    @property
    def warnings(self) -> tuple[TraceWarning, ...]:
        """All warnings until now."""
        return (*self.described.warnings, *(warning for one in self.late for warning in one.warnings))

    def report_warnings_by(self, function: Callable[[str], None]) -> None:
        """Let a function take late warnings."""
        for late in self.late:
            late.report = function

    def look(self) -> None:
        """Warn of code that was met, and of files that name it."""
        self.segments.look()
        self.filter.look()
        self.debug_files.look()

    def plan(self, table: str, query: Query, bound: Query | None = None, **more: Any) -> Plan:
        """Check a query of a table, or of the rows of `bound`; see `plan_of`."""
        found = self._plan(table, query, bound, **more)
        wanted = instruction_range(bound, query)
        if wanted is None:
            return found
        blocks: Any = {name: value for name, value in query.items() if name in OF_OWNERS}
        blocks |= {"columns": ["instruction", "instructions"], "errors": "rows"}
        in_streams = self.instruction_ranges.in_streams(self._plan("blocks", blocks), wanted)
        return found.within(in_streams)

    def _plan(self, table: str, query: Query, bound: Query | None = None, **more: Any) -> Plan:
        return plan_of(
            self.opened,
            self.context,
            table,
            query,
            scope=self.scope,
            sync=self.opened.settings.sync,
            bound=bound,
            after=self.look,
            met=self.suspected.of_query(),
            method=getattr(self.methods, table, None),
            **more,
        )

    def ranges_of(self, function: str) -> list[Range]:
        """Addresses of a name; none if it is no symbol, as that of an imported function."""
        try:
            return self.ranges.of_symbol(function)
        except SymbolError:
            return []

    def keep_nothing(self) -> None:
        """Sums over frames are for one question only, and no others are made with them."""
        self.opened = replace(self.opened, kept=None)

    def find_index(self, path: str | os.PathLike[str] | None) -> None:
        """Use the index of the trace, if there is one."""
        found, problem = _index.find(self.opened, self.described.source, path)
        if found is not None:
            self.use_index(found)
        if problem is not None:
            self.described = replace(self.described, warnings=(*self.described.warnings, problem))

    def use_index(self, index: _core.Index) -> None:
        """Decode by an index from now on."""
        settings = replace(self.opened.settings, index=index)
        indexed = _index.sums_of(index, self.opened)
        self.opened = replace(self.opened, settings=settings, indexed=indexed)


def open_parts(
    bundle: _core.Bundle,
    settings: Settings,
    image_callback: ImageCallback | None = None,
    given: Collection[str] = (),
    debug_path: Sequence[str | os.PathLike[str]] | None = None,
) -> OpenParts:
    """Make the parts of a trace of its bundle.

    Parameters
    ----------
    bundle : _core.Bundle
    settings : Settings
    image_callback, debug_path : optional
        As for `ptkit.open`.
    given : collection of str
        Names of images that the user gave.
    """
    session = _core.Session(bundle, image_callback, debug_folders(debug_path))
    # Code from a callback may be other code when it is asked for again.
    kept = None if image_callback is not None else KeptSums()
    info = info_of(bundle, settings.engine, given)
    debug_files = DebugFiles(session)
    files = tuple(bundle.files)
    paths = tuple(path for path, _ in files)
    names = Names(session, len(info.spaces), paths, debug_files.look)
    to_ns = session.tsc_to_ns if info.tsc_hz is not None or info.perf_time is not None else None
    # Callbacks do not refer to the parts: they are freed as soon as the last reference is gone.
    timed = cache(partial(complete, info, session, to_ns))
    times = TimeScale(lambda: _span_of(timed()), to_ns)
    ranges = CodeRanges(session, bundle, info)
    check_time = partial(times.check, hint="between() takes seconds=, ns= and percent=, too")
    records = frozenset(i for i, one in enumerate(info.streams) if one.kind == "branch records")
    return OpenParts(
        OpenTrace(bundle, session, settings, kept),
        info,
        timed,
        cache(lambda: modules_of(_core.mappings(session), files, bundle.image_bytes)),
        names,
        ranges,
        times,
        Clocks(times, clock_sample(info.recording)),
        Scope(session, info, ranges.of_symbol, ranges.of_module, bundle.spaces_of_cr3, check_time),
        TableContext(
            paths,
            names.name_rows,
            names.name_lines,
            to_ns,
            records,
            bundle.configuration["ptw_disabled"],
            None if to_ns is None else times.length_ns,
            names.name_inlined,
            {tid: name for _, tid, name in info.threads if tid is not None},
        ),
        CodeSegments(session, info, settings.cs_base is not None),
        SuspectedFilter(session, info.source),
        SuspectedFiles(paths, info.source),
        debug_files,
        image_callback is not None,
    )


def _span_of(info: TraceInfo) -> tuple[int, int] | None:
    return None if info.first_tsc is None or info.last_tsc is None else (info.first_tsc, info.last_tsc)
