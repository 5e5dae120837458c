"""When threads entered and left the kernel, by the privilege levels of executed instructions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from executed import Executed

import ptkit

KERNEL = 2**63  # its addresses begin
_USER = 3


@dataclass(frozen=True)
class Visit:
    """A thread's way through the kernel, from user code to user code.

    Attributes
    ----------
    begin
        Number of its first instruction in its stream, `end` of the first one after it, in `end_stream`. The
        latter is -1 if it never leaves the kernel.
    """

    stream: int
    tid: int
    begin: int
    end: int
    end_stream: int


@dataclass(frozen=True)
class _Crossing:
    """The first instruction of another privilege level than the one before it."""

    order: int
    stream: int
    tid: int
    row: int
    enters: bool


def true_visits(trace: ptkit.Trace, executed: list[Executed]) -> list[Visit]:
    """Of all threads; a stream for each CPU."""
    visits: list[Visit] = []
    crossings = sorted(_crossings(trace, executed), key=lambda one: one.order)
    for tid in sorted({one.tid for one in crossings}):
        mine = [one for one in crossings if one.tid == tid]
        for this, following in zip(mine, [*mine[1:], None], strict=True):
            if not this.enters:
                continue
            assert following is None or not following.enters, f"thread {tid} enters twice: {this}"
            end, end_stream = (-1, -1) if following is None else (following.row, following.stream)
            visits.append(Visit(this.stream, tid, this.row, end, end_stream))
    return visits


def _crossings(trace: ptkit.Trace, executed: list[Executed]) -> list[_Crossing]:
    found = []
    for stream, cpu in enumerate(executed):
        tids = trace.instructions(stream=stream, columns=["tid"])["tid"]
        for row, enters in _bounds(cpu):
            # The thread of user code is certain.
            found.append(_Crossing(int(cpu.order[row]), stream, int(tids[row - enters]), row, enters))
    return found


def _bounds(cpu: Executed) -> list[tuple[int, bool]]:
    """Rows before which the level changes, and at which the kernel returns to user code but none retires."""
    user = cpu.cpl == _USER
    rows = np.flatnonzero(user[1:] != user[:-1]) + 1
    return [(row, bool(user[row - 1])) for row in rows.tolist()]


def faults_at_once(executed: list[Executed], kallsyms: str) -> set[tuple[int, int]]:
    """Stream and row where the kernel is entered behind a return of it, with no instruction in between.

    User code that faults or is interrupted at its first instruction looks so, and kernel code that is
    interrupted at once.
    """
    rows: set[tuple[int, int]] = set()
    named = [int(one, 16) for one in re.findall(r"^([0-9a-f]+) \w asm_\w+$", kallsyms, re.MULTILINE)]
    for stream, cpu in enumerate(executed):
        bounds = _bounds(cpu)
        entries = np.array([*named, *(cpu.ip[row] for row, enters in bounds if enters)], np.uint64)
        exits = np.array([cpu.ip[row - 1] for row, enters in bounds if not enters], np.uint64)
        found = np.isin(cpu.ip[1:], entries) & np.isin(cpu.ip[:-1], exits) & (cpu.cpl[:-1] != _USER)
        rows |= {(stream, row) for row in (np.flatnonzero(found) + 1).tolist()}
    return rows


def assert_visits(calls: Any, visits: list[Visit], at_once: set[tuple[int, int]]) -> None:
    """Each visit is a frame with the same end; there are no others.

    Parameters
    ----------
    calls
        A table of calls with `instruction` and `end_instruction`.
    at_once
        Where a visit may begin right behind another one of its thread.
    """
    entered = np.isin(calls.named("how"), ["SYSCALL", "INTERRUPT"]) & (calls["call_ip"] < KERNEL)
    columns = ("stream", "tid", "instruction", "end_instruction")
    cells = zip(*(calls[name][entered].tolist() for name in columns), strict=True)
    ends = calls[entered].named("end_how")
    found = {row[:3]: (row[3], str(how)) for row, how in zip(cells, ends, strict=True)}
    begun = {(visit.stream, visit.tid, visit.begin) for visit in visits}
    missing = sorted(begun - found.keys())
    assert not missing, f"{len(missing)} visits have no frame: {missing[:5]}"
    others = sorted(found.keys() - begun)
    assert all((stream, row) in at_once for stream, _, row in others), others
    streams: dict[int, set[int]] = {}
    for stream, tid in zip(calls["stream"].tolist(), calls["tid"].tolist(), strict=True):
        streams.setdefault(tid, set()).add(stream)
    wrong = []
    for visit in visits:
        inside = [
            row for key in others if key[:2] == (visit.stream, visit.tid) and _within(row := key[2], visit)
        ]
        begins = [visit.begin, *inside]
        for begin, end in zip(begins, [*inside, visit.end], strict=True):
            frame = found[visit.stream, visit.tid, begin]
            stays = end in inside or visit.end_stream == visit.stream
            left = _left(visit, moves=len(streams[visit.tid]) > 1)
            if not (frame == (end, "RETURN") if stays else frame[1] in left):
                wrong.append((visit, begin, frame))
    assert not wrong, f"{len(wrong)} of {len(found)}: {wrong[:5]}"


def _within(row: int, visit: Visit) -> bool:
    return row > visit.begin and (visit.end_stream != visit.stream or row < visit.end)


def _left(visit: Visit, *, moves: bool) -> set[str]:
    """How a frame ends that never returns, or in another stream.

    `moves`: its thread is in several streams. It may have gone on in another one, and not have returned.
    """
    if visit.end_stream >= 0:
        return {"SWITCH"}
    return {"END", "SWITCH"} if moves else {"END"}
