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
    """Instructions of a CPU with their attribution: a cell for each one."""

    ip: NDArray[np.uint64]
    pid: NDArray[np.int64]
    tid: NDArray[np.int64]
    tables: NDArray[np.uint64]  # that were in force
    user: NDArray[np.bool_]
    order: NDArray[np.int64]  # among all CPUs


def on_cpu(trace: ptkit.Trace, stream: int, executed: Executed) -> OnCpu:
    """Of a stream whose instructions are those that were executed."""
    table = trace.instructions(stream=stream, columns=["pid", "tid"])
    tables = executed.cr3 & np.uint64(PROCESS)
    return OnCpu(executed.ip, table["pid"], table["tid"], tables, executed.cpl == 3, executed.order)


def owners_of(cpus: list[OnCpu]) -> dict[int, set[int]]:
    """The page tables with which each process executed user code."""
    owners: dict[int, set[int]] = {}
    for cpu in cpus:
        assert (cpu.tid[cpu.user] > 0).all()
        for pid in np.unique(cpu.pid[cpu.user]).tolist():
            mine = cpu.user & (cpu.pid == pid)
            owners.setdefault(pid, set()).update(np.unique(cpu.tables[mine]).tolist())
    return owners


def assert_processes(cpus: list[OnCpu], most: int) -> None:
    """At most so many instructions of a process have been executed with another one's page tables.

    They are those at a switch that no change of page tables locates: the recorder's time gives its position.
    A process that exits gives its page tables back before it ends (`exit_mm()`). If it is switched out after
    that and in again, it runs with the page tables of the thread before, and that is right.
    """
    owners = owners_of(cpus)
    runs = [
        _describe(cpu, number, begin, end, owners)
        for pid in owners
        for number, cpu in enumerate(cpus)
        for begin, end in _runs(_wrong(cpus, cpu, pid, owners))
    ]
    total = sum(count for count, _ in runs)
    assert total <= most, f"{total} instructions: " + "; ".join(text for _, text in runs)


def _wrong(cpus: list[OnCpu], cpu: OnCpu, pid: int, owners: dict[int, set[int]]) -> NDArray[np.bool_]:
    """Instructions of a process that were executed with page tables of others."""
    own = owners[pid]
    others = set().union(*(tables for one, tables in owners.items() if one != pid)) - own
    last = max(int(one.order[_with(one, pid, own)].max(initial=-1)) for one in cpus)
    turns = np.cumsum(np.append(False, cpu.pid[1:] != cpu.pid[:-1]))
    with_own = np.bincount(turns, weights=_with(cpu, pid, own)) > 0
    has_exited = ~with_own[turns] & (cpu.order > last)
    return _with(cpu, pid, others) & ~has_exited


def _with(cpu: OnCpu, pid: int, tables: set[int]) -> NDArray[np.bool_]:
    return (cpu.pid == pid) & np.isin(cpu.tables, np.array(sorted(tables), dtype=np.uint64))


def _runs(rows: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where true cells begin and end."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]]).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _describe(cpu: OnCpu, number: int, begin: int, end: int, owners: dict[int, set[int]]) -> tuple[int, str]:
    """The number of instructions of a run, and where it is."""
    tables = int(cpu.tables[begin])
    stays = _runs(cpu.tables == tables)
    stay = next(one for one in stays if one[0] <= begin < one[1])
    of = [pid for pid, own in owners.items() if tables in own]
    before, after = (cpu.pid[row] for row in (max(begin - 1, 0), min(end, len(cpu.pid) - 1)))
    return end - begin, (
        f"CPU {number}, [{begin}, {end}) of {len(cpu.pid)} are attributed to process {cpu.pid[begin]}, after"
        f" {before} and before {after}, with page tables of {of} that were in force in {list(stay)}"
    )


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
