"""A trace as a whole: its facts, and its tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit import decode as _decode
from ptkit.decode import OpenTrace, Query, Settings
from ptkit.decode.scope import stream_indices
from ptkit.info import PacketCounts, StreamInfo, TraceInfo, count_packets
from ptkit.support.text import counted
from ptkit.trace.branching import Branching
from ptkit.trace.comparing import Comparing
from ptkit.trace.names.code import Code
from ptkit.trace.open_parts import OpenParts, open_parts
from ptkit.trace.plots import Plots
from ptkit.trace.stacks_at import StacksAt
from ptkit.trace.threads import Threads

if TYPE_CHECKING:
    from ptkit.trace.open_parts import ImageCallback

__all__ = ["WholeTrace"]


class WholeTrace(Code, Branching, Comparing, StacksAt, Threads, Plots):
    """`Trace` without its parts, which refer to this."""

    def __init__(
        self,
        bundle: _core.Bundle,
        settings: Settings,
        image_callback: ImageCallback | None = None,
        given: Collection[str] = (),
        debug_path: Sequence[str | os.PathLike[str]] | None = None,
    ) -> None:
        self._open = open_parts(bundle, settings, image_callback, given, debug_path)
        self._open.methods = type(self)

    @property
    def info(self) -> TraceInfo:
        """Streams, configuration, processor, times, code and known losses.

        Only some packets at both ends of each stream are decoded for it: they have the first and last time.
        """
        return replace(self._open.timed(), modules=self._open.modules(), warnings=self._open.warnings)

    @property
    def streams(self) -> tuple[StreamInfo, ...]:
        """One entry per stream: name, size, processor, thread, times."""
        return self._open.timed().streams

    @property
    def source(self) -> str:
        """Path, or a description of the memory that it came from."""
        return self._open.described.source

    @property
    def format(self) -> str:
        """Name of the reader that made it."""
        return self._open.described.format

    @property
    def opened(self) -> OpenTrace:
        """The part of the trace that analyses and exporters need; provisional, as `ptkit.decode` is."""
        return self._open.opened

    @property
    def open_parts(self) -> OpenParts:
        """Times, names and scope, for the command line; provisional, as `ptkit.decode` is."""
        return self._open

    def _whole(self) -> WholeTrace:
        return self

    def __repr__(self) -> str:
        streams = counted(len(self.streams), "stream")
        return f"<ptkit.Trace {self.source!r}: {streams}, {self._open.described.bytes:,} bytes>"

    def _span(self) -> tuple[int, int] | None:
        return self._open.times.span

    def _plan(self, table: str, query: Query, bound: Query | None = None, **more: Any) -> _decode.Plan:
        return self._open.plan(table, query, bound, **more)

    def _ranges_of(self, function: str) -> list[_decode.Range]:
        return self._open.ranges_of(function)

    def packet_counts(self, *, stream: int | Sequence[int] | None = None) -> PacketCounts:
        """Packets by kind, from where `packets` begins in each stream, without making rows of them.

        Parameters
        ----------
        stream : int or sequence of int, optional
            Only these streams, counted together; None: all.

        Returns
        -------
        PacketCounts
            Equal to counting the rows of `packets`, at a few gigabytes per second. ptkit's own, whatever
            the engine.

        Raises
        ------
        ConfigError
            If there is no such stream.
        """
        count, sync = len(self._open.described.streams), self._open.opened.settings.sync
        streams = range(count) if stream is None else stream_indices(stream, count)
        return count_packets(self._open.opened.session, streams, sync=sync)
