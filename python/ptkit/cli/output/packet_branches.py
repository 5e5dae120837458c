"""Branches, each under the packet that reports it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptkit import BranchKind
from ptkit.cli.output.positions import row_positions
from ptkit.cli.output.row_names import row_names
from ptkit.cli.output.rows import Losses, side_lines
from ptkit.table import Table
from ptkit.trace import Trace

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset", "space"]
_INDENT = " " * 18


class PacketBranches:
    """Lines of the branches of a stream, with its errors and gaps, given up to the offset of a packet.

    Parameters
    ----------
    trace : Trace
    losses : Losses
        Counts errors and gaps.
    selection : dict
        Selected part of the trace: a stream at least.
    """

    def __init__(self, trace: Trace, losses: Losses, selection: dict[str, Any]) -> None:
        self._parts = losses.counted(trace.iter_branches(rows=65536, columns=_COLUMNS, **selection))
        self._lines = self._all_lines()
        self._next = next(self._lines, None)

    def until(self, offset: int | None) -> Iterator[tuple[int, str]]:
        """Lines with their stream offsets, up to the packet at `offset`; None: all remaining lines."""
        while self._next is not None and (offset is None or self._next[0] <= offset):
            yield self._next
            self._next = next(self._lines, None)

    def _all_lines(self) -> Iterator[tuple[int, str]]:
        for part in self._parts:
            rows = list(zip(row_positions(part), _lines(part), strict=True))
            # Sorting is stable: lines of errors and gaps come after the branches of the same packet.
            yield from sorted(rows + side_lines(part), key=lambda line: line[0])


def _lines(part: Table) -> list[str]:
    sources, targets = _places(part, "from_ip"), _places(part, "to_ip")
    conditional = (part["kind"] == BranchKind.COND).tolist()
    marks = [
        ("!" if taken else ".") if chosen else kind.lower()
        for chosen, taken, kind in zip(conditional, part["taken"].tolist(), part.named("kind"), strict=True)
    ]
    return [
        f"{_INDENT}{mark:<13} {source} > {target}"
        for mark, source, target in zip(marks, sources, targets, strict=True)
    ]


def _places(part: Table, address: str) -> list[str]:
    """Addresses and their names."""
    return [
        "?" * 16 if ip is None else f"{ip:016x} {name}".rstrip()
        for ip, name in zip(part.named(address), row_names(part, address), strict=True)
    ]
