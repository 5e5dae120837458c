"""Whose instructions decoded ones are said to be, against page tables and the scheduler's own code."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from executed import PROCESS, Executed
from numpy.typing import NDArray

import ptkit

SWITCH = "__switch_to_asm"  # goes on with another thread's stack


@dataclass(frozen=True)
class OnCpu:
    """What a CPU executed, and what is said of it: a cell for each instruction."""

    ip: NDArray[np.uint64]
    pid: NDArray[np.int64]
    tid: NDArray[np.int64]
    tables: NDArray[np.uint64]  # that were in force
    user: NDArray[np.bool_]


def on_cpu(trace: ptkit.Trace, stream: int, executed: Executed) -> OnCpu:
    """Of a stream whose instructions are those that were executed."""
    table = trace.instructions(stream=stream, columns=["pid", "tid"])
    tables = executed.cr3 & np.uint64(PROCESS)
    return OnCpu(executed.ip, table["pid"], table["tid"], tables, executed.cpl == 3)


def assert_processes(cpus: list[OnCpu], most: int) -> None:
    """At most so many instructions of a process have been executed with another one's page tables.

    They are those at a switch that page tables do not place for certain: the recorder's time tells of it.
    """
    total = 0
    owners: dict[int, set[int]] = {}
    for cpu in cpus:
        assert (cpu.tid[cpu.user] > 0).all()
        for pid in np.unique(cpu.pid[cpu.user]).tolist():
            mine = cpu.user & (cpu.pid == pid)
            owners.setdefault(pid, set()).update(np.unique(cpu.tables[mine]).tolist())
    for pid, own in owners.items():
        others = set().union(*(tables for one, tables in owners.items() if one != pid)) - own
        for cpu in cpus:
            wrong = (cpu.pid == pid) & np.isin(cpu.tables, np.array(sorted(others), dtype=np.uint64))
            total += int(wrong.sum())
    assert total <= most


def assert_threads(cpus: list[OnCpu], switch: int, most: int) -> int:
    """Threads change where the scheduler switches, or where tracing stops; how often the former.

    Parameters
    ----------
    switch
        The address of the first instruction of the scheduler's switch.
    most
        So many of the kernel's instructions a change may be away from that.
    """
    stop = cpus[0].ip[-1]  # the kernel's last instruction with tracing on
    count = 0
    for cpu in cpus:
        switches = np.flatnonzero(cpu.ip == switch)
        count += len(switches)
        bounds = np.unique(np.concatenate([[0], switches, np.flatnonzero(cpu.ip == stop) + 1, [len(cpu.ip)]]))
        turn = np.searchsorted(bounds, np.arange(len(cpu.ip)), side="right")
        rows = np.flatnonzero(cpu.user)
        goes_on = turn[rows[1:]] == turn[rows[:-1]]
        same = cpu.tid[rows[1:]] == cpu.tid[rows[:-1]]
        assert same[goes_on].all(), "user code between two switches is of several threads"
        changes = np.flatnonzero(cpu.tid[1:] != cpu.tid[:-1]) + 1
        after = np.searchsorted(bounds, changes)
        away = np.minimum(bounds[after] - changes, changes - bounds[np.maximum(after, 1) - 1])
        assert (away <= most).all(), sorted(away.tolist())[-10:]
    return count
