"""Compares decoding with the recorded program's own time."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recordings import Recording

from harness.contest import Checks, answer
from harness.questions import QUESTIONS


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def native(argv: Sequence[str], seconds: float) -> tuple[float, float]:
    """The least CPU and wall seconds that the program needs by itself, on one processor."""
    cpus: list[float] = []
    walls: list[float] = []
    end = time.perf_counter() + seconds
    while len(cpus) < 3 or time.perf_counter() < end:
        before, begin = _children(), time.perf_counter()
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
        walls.append(time.perf_counter() - begin)
        cpus.append(_children() - before)
        if done.returncode != 0:
            sys.exit(f"{' '.join(argv)} ended with {done.returncode}")
    return min(cpus), min(walls)


def compare(
    one: Recording, build: Path, folder: Path, checks: Checks, *, rounds: int, seconds: float
) -> dict[str, Any]:
    """Exact counts of all edges of the whole trace, on one processor, against the program's own time."""
    edges = next(question for question in QUESTIONS if question.name == "edges")
    trace = folder / one.path
    for group in edges.groups:
        checks.agree(group, build, trace)
    ours = edges.timed[0]
    cpus: list[float] = []
    walls: list[float] = []
    firsts: list[float] = []
    warm: list[float] = []
    for _ in range(rounds):  # in turns
        cpu, wall = native(one.argv, seconds)
        result = answer(ours.words(build, "time", trace, str(seconds)))
        cpus.append(cpu)
        walls.append(wall)
        firsts.append(result["rounds"][0][1])
        warm += [cpu for _, cpu in result["rounds"][1:]]
    return {
        "name": one.name,
        "trace_bytes": one.trace_bytes,
        "instructions": one.instructions,
        "native_cpu": min(cpus),
        "native_wall": min(walls),
        "first_cpu": min(firsts),
        "warm_cpu": min(warm),
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Seconds, and how many times faster than the program decoding is."""
    print("\ndecode faster than the program ran: counts of all edges on one processor, CPU seconds")
    print(
        f"{'':24} {'MB':>8} {'native s':>9} {'first s':>9} {'known s':>9} {'MB/s':>8} {'x first':>8} {'x':>6}"
    )
    for row in rows:
        megabytes = row["trace_bytes"] / 1e6
        print(
            f"{row['name']:24} {megabytes:8.1f} {row['native_cpu']:9.3f} {row['first_cpu']:9.3f}"
            f" {row['warm_cpu']:9.3f} {megabytes / row['warm_cpu']:8.1f}"
            f" {row['native_cpu'] / row['first_cpu']:8.2f} {row['native_cpu'] / row['warm_cpu']:6.2f}"
        )
