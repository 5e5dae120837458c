"""Branches, each under the packet that reports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptkit import BranchKind
from ptkit.cli.output.line_writer import LineWriter, labels_of
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.rows import Losses, side_lines
from ptkit.table import Table
from ptkit.trace import Trace

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset", "space"]
_INDENT = " " * 18


def _padded(text: str) -> str:
    return f"{text:<13}"


def _kind(name: str) -> str:
    return _padded(name.lower())


class PacketBranches:
    """Lines of the branches of a stream, with its errors and gaps, given up to the offset of a packet.

    Parameters
    ----------
    trace : Trace
    losses : Losses
        Counts errors and gaps.
    selection : dict
        Selected part of the trace: a stream at least.
    writer : LineWriter
        Makes the lines.
    rva : bool
        Print RVAs in errors and gaps, too.
    """

    def __init__(
        self, trace: Trace, losses: Losses, selection: dict[str, Any], writer: LineWriter, *, rva: bool
    ) -> None:
        self._writer = writer
        self._rva = rva
        self._parts = losses.counted(trace.iter_branches(rows=65536, columns=_COLUMNS, **selection))
        self._lines = self._all_lines()
        self._next = next(self._lines, None)

    def until(self, offset: int | None) -> Iterator[tuple[int, bytes]]:
        """Lines with their stream offsets, up to the packet at `offset`; None: all remaining lines."""
        while self._next is not None and (offset is None or self._next[0] <= offset):
            yield self._next
            self._next = next(self._lines, None)

    def _all_lines(self) -> Iterator[tuple[int, bytes]]:
        for part in self._parts:
            rows = list(zip(row_positions(part).tolist(), self._of(part), strict=True))
            # Sorting is stable: lines of errors and gaps come after the branches of the same packet.
            yield from sorted(rows + side_lines(part, rva=self._rva), key=lambda line: line[0])

    def _of(self, part: Table) -> list[bytes]:
        writer = self._writer
        writer.begin(part)
        writer.literal(_INDENT)
        kinds = np.asarray(part["kind"])
        conditional = kinds == BranchKind.COND
        # Of conditional branches: whether they were taken.
        marks = [_padded(mark).encode() for mark in ".!"]
        codes = np.where(conditional, np.asarray(part["taken"]), kinds.astype(np.uint16) + len(marks))
        writer.label(codes, [*marks, *labels_of("branches", "kind", _kind)])
        writer.literal(" ")
        writer.address("location", "from_ip")
        writer.literal(" > ")
        writer.address("location", "to_ip")
        return writer.lines()
