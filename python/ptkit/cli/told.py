"""Branches, each under the packet that told it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptkit import BranchKind
from ptkit.cli import output
from ptkit.cli.row_names import row_names
from ptkit.table import Table
from ptkit.trace import Trace

_COLUMNS = ["from_ip", "to_ip", "kind", "flags", "tsc", "tsc_error", "offset", "space"]
_INDENT = " " * 18


class Told:
    """Lines of the branches of a stream, errors and gaps among them, handed out as far as packets go.

    Parameters
    ----------
    trace : Trace
    losses : output.Losses
        Counts errors and gaps.
    selection : dict
        What is chosen of the trace, one stream at least.
    """

    def __init__(self, trace: Trace, losses: output.Losses, selection: dict[str, Any]) -> None:
        self._parts = losses.counted(trace.iter_branches(rows=65536, columns=_COLUMNS, **selection))
        self._lines = self._all_lines()
        self._next = next(self._lines, None)

    def until(self, offset: int | None) -> Iterator[tuple[int, str]]:
        """Lines with their places, up to those of the packet at an offset; None: all that are left."""
        while self._next is not None and (offset is None or self._next[0] <= offset):
            yield self._next
            self._next = next(self._lines, None)

    def _all_lines(self) -> Iterator[tuple[int, str]]:
        for part in self._parts:
            rows = list(zip(part["offset"].tolist(), _lines(part), strict=True))
            # Sorting is stable: a note comes behind the rows of its packet.
            yield from sorted(rows + output.side_lines(part), key=lambda line: line[0])


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
