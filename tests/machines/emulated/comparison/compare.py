"""Compares decoded instructions with executed ones."""

from __future__ import annotations

import subprocess
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from executed import Executed
from numpy.typing import NDArray

import ptkit

RECORD_BYTES = 24  # of Branch Trace Store


@dataclass(frozen=True)
class Decoded:
    """Instructions that a decoder found, in order, and its errors in words.

    Attributes
    ----------
    losses
        What it reports as lost, in words; a difference is told with them.
    by
        The decoder.
    """

    ip: NDArray[np.uint64]
    errors: list[str]
    losses: list[str] = field(default_factory=list)
    by: str = "ptkit"

    def __len__(self) -> int:
        """How many instructions."""
        return len(self.ip)


def instructions(stream: bytes, code: dict[int, bytes], engine: str) -> Decoded:
    """Those of a raw stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # the processor is not known
        trace = ptkit.open(stream, images=[code], engine=engine)
    table = trace.instructions(columns=["ip"])
    return Decoded(table["ip"], [str(table.errors)] if len(table.errors) else [])


def instructions_of(trace: ptkit.Trace, stream: int | None = None) -> Decoded:
    """Those of a trace, or of one of its streams."""
    table = trace.instructions(stream=stream, columns=["ip"])
    assert table.errors is not None
    assert table.gaps is not None
    streams = trace.streams if stream is None else [trace.streams[stream]]
    losses = [f"{one.name}: {one.losses} losses of {one.lost_bytes} bytes" for one in streams if one.losses]
    losses += [*_gaps(table.gaps), *trace.info.warnings]
    return Decoded(table["ip"], [str(table.errors)] if len(table.errors) else [], losses)


def _gaps(gaps: ptkit.Table) -> list[str]:
    """A line for each."""
    names = ("instruction", "cause", "code", "begin", "end")
    rows = zip(*(gaps[name].tolist() for name in names), strict=True)
    return [
        f"before instruction {instruction}: {ptkit.GapCause(cause).name}, {ptkit.ErrorCode(code).name},"
        f" bytes {begin} to {end}"
        for instruction, cause, code, begin, end in rows
    ]


def records(
    stored: bytes | NDArray[Any], code: dict[int, bytes], level: str
) -> tuple[ptkit.Table, ptkit.Table]:
    """Instructions of a buffer of Branch Trace Store, and the gaps between them; no error.

    Of one level there is only the code: each record that comes from the other one tells an instruction there.
    """
    hidden = {"user": 1, "kernel": 0, "both": 2}[level]
    pages = {address: page for address, page in code.items() if address >> 63 != hidden}
    table = ptkit.open_branches(stored, images=[pages]).instructions(columns=["ip"])
    assert table.gaps is not None
    assert table.errors is not None
    assert len(table.errors) == 0, str(table.errors)
    return table, table.gaps


def spans_of_pieces(table: ptkit.Table, gaps: ptkit.Table, expected: Executed) -> list[tuple[int, int]]:
    """Where each piece between gaps is in what was executed; it must be one of that, in order."""
    truth = expected.ip.tobytes()
    spans: list[tuple[int, int]] = []
    position = 0
    ends = np.unique(np.append(gaps["instruction"], len(table))).astype(np.int64).tolist()
    begin = 0
    for end in ends:
        piece = table["ip"][begin:end].tobytes()
        found = truth.find(piece, position)
        while found > 0 and found % 8:
            found = truth.find(piece, found + 1)
        first = [hex(ip) for ip in table["ip"][begin : begin + 5].tolist()]
        assert found >= 0, f"instructions [{begin}, {end}) are nowhere: {first}"
        position = found + len(piece)
        spans.append((found // 8, position // 8))
        begin = end
    return spans


def share_in_pieces(table: ptkit.Table, gaps: ptkit.Table, expected: Executed) -> float:
    """The decoded share of what was executed; each piece between gaps must be a part of that, in order."""
    return sum(end - begin for begin, end in spans_of_pieces(table, gaps, expected)) / len(expected.ip)


def assert_same(found: Decoded, expected: Executed) -> None:
    """Every instruction, in order, and no error."""
    assert not found.errors, "\n".join(found.errors[:10])
    both = min(len(found), len(expected.ip))
    differing = np.flatnonzero(found.ip[:both] != expected.ip[:both])
    first = int(differing[0]) if len(differing) else both
    around = slice(max(0, first - 3), first + 4)
    decoded, executed = ([hex(ip) for ip in ips[around].tolist()] for ips in (found.ip, expected.ip))
    losses = "; ".join(found.losses[:20]) or "none"
    message = (
        f"{found.by}: instruction {first} of {len(expected.ip)}: decoded {decoded}, executed {executed};"
        f" {len(found)} were decoded; losses that it reports: {losses}"
    )
    assert first == len(found) == len(expected.ip), message


def function(program: Path, name: str) -> tuple[int, int]:
    """Offset and size of a function in the program's file."""
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    for line in symbols.splitlines():
        words = line.split()
        if words[-1] == name and len(words) == 4:
            return int(words[0], 16), int(words[1], 16)
    raise AssertionError(f"{program} has no function {name}")


def of_function(program: Path, name: str, executed: Executed, calls: int) -> Executed:
    """The instructions of a function of the program, wherever that is, which was called so often."""
    start, size = function(program, name)
    entries, counts = np.unique(executed.ip[executed.ip % 4096 == start % 4096], return_counts=True)
    (entry,) = entries[counts == calls]
    return executed.select((executed.ip >= entry) & (executed.ip < entry + size))
