"""Compares what is decoded with what was really executed, in memory that does not grow with the trace.

The recorder's own log (`LoggedRecorder(truth=FOLDER)`) has for each stream N

* `stream-N.u64`: the IP of every instruction,
* `stream-N.branches`: IP and true time of every branch instruction, two words each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptkit
from ptkit import BranchKind

_ROWS = 1 << 18
_AROUND = 6
_NO_INSTRUCTION = (BranchKind.ASYNC, BranchKind.TX_ABORT)

Words = NDArray[np.uint64]


def words(path: Path) -> Words:
    """A file of 64-bit words, mapped."""
    if path.stat().st_size == 0:  # cannot be mapped
        return np.zeros(0, dtype=np.uint64)
    return np.memmap(path, dtype=np.uint64, mode="r")


def parts_by_stream(parts: Iterator[ptkit.Table]) -> Iterator[tuple[int, ptkit.Table | Any]]:
    """Parts of a table in which all rows are of one stream."""
    for part in parts:
        streams = part["stream"]
        cuts = np.flatnonzero(streams[1:] != streams[:-1]) + 1
        for rows in np.split(np.arange(len(part)), cuts) if len(cuts) else [slice(None)]:
            yield int(streams[rows][0]), part[rows] if len(cuts) else part


def surroundings(found: Words, expected: Words, at: int) -> str:
    """Both sides around the index of the first difference; the arrays are what can be seen of them."""
    lines = []
    for row in range(max(0, at - _AROUND), at + _AROUND):
        left = f"{int(found[row]):#x}" if row < len(found) else "-"
        right = f"{int(expected[row]):#x}" if row < len(expected) else "-"
        lines.append(f"  {'>' if row == at else ' '} decoded {left:>18}   executed {right:>18}")
    return "\n".join(lines)


def first_difference(found: Words, expected: Words) -> int | None:
    """Where they differ, the end of the shorter one included; None: they are equal."""
    both = min(len(found), len(expected))
    differing = np.flatnonzero(found[:both] != expected[:both])
    if len(differing):
        return int(differing[0])
    return None if len(found) == len(expected) else both


class _Stream:
    """How far a stream's rows were compared with its log."""

    def __init__(self, number: int, expected: Words) -> None:
        self.number = number
        self.expected = expected
        self.done = 0
        self.before = np.zeros(0, dtype=np.uint64)

    def add(self, found: Words, what: str) -> None:
        expected = self.expected[self.done : self.done + len(found)]
        at = first_difference(found, expected)
        if at is not None:
            begin = self.done - len(self.before)
            pytest.fail(
                f"stream {self.number}: {what} {self.done + at} of {len(self.expected)}\n"
                + surroundings(
                    np.concatenate([self.before, found]),
                    self.expected[begin : self.done + len(found) + _AROUND],
                    len(self.before) + at,
                )
            )
        self.done += len(found)
        self.before = np.array(found[-_AROUND:], dtype=np.uint64)

    def end(self, what: str) -> None:
        if self.done != len(self.expected):
            pytest.fail(
                f"stream {self.number}: {self.done} {what} rows, {len(self.expected)} executed; then:"
                f" {[hex(int(ip)) for ip in self.expected[self.done : self.done + _AROUND]]}"
            )


def _streams(trace: ptkit.Trace, folder: Path, suffix: str, step: int) -> list[_Stream]:
    return [
        _Stream(number, words(folder / f"stream-{number}.{suffix}")[::step])
        for number in range(len(trace.streams))
    ]


def check_instructions(trace: ptkit.Trace, folder: Path) -> int:
    """Every stream's instructions are those of the recorder's log; returns how many there are."""
    streams = _streams(trace, folder, "u64", 1)
    parts = trace.iter_instructions(columns=["ip", "stream"], rows=_ROWS, reuse=True)
    for number, part in parts_by_stream(parts):
        streams[number].add(part["ip"], "instruction")
    for stream in streams:
        stream.end("instruction")
    return sum(stream.done for stream in streams)


@dataclass
class Times:
    """How the true times of branches lie to what is said of them."""

    rows: int = 0
    unknown: int = 0  # rows without a time
    early: int = 0  # before tsc
    late: int = 0  # after tsc + tsc_error
    widths: list[float] = field(default_factory=list)  # median tsc_error of each part
    misses: list[str] = field(default_factory=list)  # the first ones


def check_branches(trace: ptkit.Trace, folder: Path) -> Times:
    """Every stream's branch instructions are those of the recorder's log; returns how their times lie."""
    streams = _streams(trace, folder, "branches", 2)
    times = Times()
    columns = ["from_ip", "kind", "flags", "tsc", "tsc_error", "offset", "stream"]
    for number, part in parts_by_stream(trace.iter_branches(columns=columns, rows=_ROWS)):
        part = part[np.flatnonzero(~np.isin(part["kind"], _NO_INSTRUCTION))]
        stream = streams[number]
        begin = stream.done
        stream.add(part["from_ip"], "branch")
        true = words(folder / f"stream-{number}.branches")[1::2][begin : stream.done]
        _add_times(times, number, begin, part, true)
    for stream in streams:
        stream.end("branch")
    return times


def _add_times(times: Times, stream: int, begin: int, part: Any, true: Words) -> None:
    known = part["time_known"]
    early = known & (true < part["tsc"])
    limited = part["tsc_error"] != np.iinfo(np.uint32).max  # else there is no upper limit (docs/time.md)
    late = known & limited & (true > part["tsc"] + part["tsc_error"])
    times.rows += len(part)
    times.unknown += int(np.count_nonzero(~known))
    times.early += int(np.count_nonzero(early))
    times.late += int(np.count_nonzero(late))
    if known.any():
        times.widths.append(float(np.median(part["tsc_error"][known])))
    for row in np.flatnonzero(early | late)[: max(0, 20 - len(times.misses))].tolist():
        times.misses.append(
            f"stream {stream}, branch {begin + row} at {int(part['from_ip'][row]):#x}, offset"
            f" {int(part['offset'][row]):#x}: true {int(true[row])}, said"
            f" {int(part['tsc'][row])} + {int(part['tsc_error'][row])}"
        )


def resolve(found: Words, exact: Words, doubts: Sequence[Any]) -> tuple[Words, int]:
    """Fill in how far the doubtful blocks of another log (`qemu_log.Run`) were executed.

    Of the possible numbers of instructions, the largest is taken that `found` has and goes on from as
    the log does. Returns what should have been decoded, and how many blocks were doubtful.
    """
    parts: list[Words] = []
    position = 0
    done = 0
    for index, doubt in enumerate(doubts):
        parts.append(exact[position : doubt.index])
        done += doubt.index - position
        position = doubt.index
        ips = np.array(doubt.ips, dtype=np.uint64)
        after = doubts[index + 1].index if index + 1 < len(doubts) else len(exact)
        behind = exact[position : min(after, position + 4)]
        taken = min(doubt.lengths)
        for length in sorted(doubt.lengths, reverse=True):
            here = np.concatenate([ips[:length], behind])
            if np.array_equal(found[done : done + len(here)], here):
                taken = length
                break
        parts.append(ips[:taken])
        done += taken
    parts.append(exact[position:])
    return np.concatenate(parts), len(doubts)
