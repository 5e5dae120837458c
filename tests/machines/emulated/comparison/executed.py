"""The execution log of the emulated machine; instrument/truth_log.h has the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RUN, CONTEXT, CODE, PART = 1, 2, 3, 4
PAGE = 4096
# Page-table isolation gives a process two tables, side by side; the low bits name the TLB's entries.
PROCESS = 0xFFFF_FFFF_FFFF_E000
_RECORD = np.dtype([("kind", "u1"), ("cpu", "u1"), ("two", "<u2"), ("four", "<u4"), ("eight", "<u8")])


@dataclass(frozen=True)
class Executed:
    """Instructions that one processor executed, in order.

    Attributes
    ----------
    ip, cr3, cpl, bits, size
        A cell for each instruction: its address, who executed it (bits: 16, 32 or 64), and its bytes.
    order
        What processors executed can be merged by it; it grows from one jump to the next.
    """

    ip: NDArray[np.uint64]
    cr3: NDArray[np.uint64]
    cpl: NDArray[np.uint8]
    bits: NDArray[np.uint8]
    size: NDArray[np.uint8]
    order: NDArray[np.int64]

    def select(self, wanted: NDArray[np.bool_] | NDArray[np.int64]) -> Executed:
        """Those for which `wanted` is true, or with these numbers."""
        return Executed(*(getattr(self, name)[wanted] for name in CELLS))


CELLS = tuple(field.name for field in fields(Executed))


def merge(parts: Sequence[Executed]) -> Executed:
    """Instructions of several processors, one after the other."""
    cells = [np.concatenate([getattr(part, name) for part in parts]) for name in CELLS]
    return Executed(*cells).select(np.argsort(cells[-1], kind="stable"))


class Truth:
    """A log of the truth.

    Parameters
    ----------
    path
        The file of records; the other two lie beside it.
    """

    def __init__(self, path: Path) -> None:
        self.records = np.fromfile(path, dtype=_RECORD)
        self._sizes = np.fromfile(path.with_name(path.name + ".sizes"), dtype=np.uint8)
        self._code = path.with_name(path.name + ".code")
        kind = self.records["kind"]
        self._part = np.cumsum(kind == PART)
        # Of each record, where its instructions end among all, and its page.
        self._ends = np.cumsum(np.where(kind == RUN, self.records["four"], 0), dtype=np.int64)
        self._page = np.cumsum(kind == CODE) - 1

    def executed(self, part: int, cpu: int = 0) -> Executed:
        """Instructions of a processor.

        Parameters
        ----------
        part
            How many orders to log the guest had given before, this one included.
        """
        records = self.records
        mine = (records["cpu"] == cpu) & (self._part == part)
        runs = np.flatnonzero(mine & (records["kind"] == RUN))
        counts = records["four"][runs].astype(np.int64)
        cells = np.repeat(np.arange(len(runs)), counts)
        firsts = np.cumsum(counts) - counts
        source = np.arange(len(cells)) + (self._ends[runs] - counts - firsts)[cells]
        sizes = self._sizes[source].astype(np.uint64)
        before = np.cumsum(sizes) - sizes
        ip = records["eight"][runs][cells] + before - before[firsts][cells]
        told = np.flatnonzero((records["cpu"] == cpu) & (records["kind"] == CONTEXT))
        context = records[told[np.searchsorted(told, runs) - 1]][cells]
        two = context["two"]
        cpl, bits = (two & 0xFF).astype(np.uint8), (two >> 8).astype(np.uint8)
        return Executed(ip, context["eight"], cpl, bits, self._sizes[source], runs[cells])

    def code(self, part: int, cr3: int | None = None) -> dict[int, bytes]:
        """Pages of executed code, as they were last in a part: of a process and the kernel, or of all."""
        pages: dict[int, bytes] = {}
        spaces: dict[int, int] = {}
        chosen = (self.records["kind"] == CONTEXT) | (self.records["kind"] == CODE)
        rows = np.flatnonzero(chosen & (self._part <= part))
        with self._code.open("rb") as file:
            for row in rows.tolist():
                kind, cpu, _, _, value = self.records[row].tolist()
                if kind == CONTEXT:
                    spaces[cpu] = value
                elif cr3 is None or value >> 63 or (spaces[cpu] ^ cr3) & PROCESS == 0:
                    file.seek(int(self._page[row]) * PAGE)
                    pages[value] = file.read(PAGE)
        return pages
