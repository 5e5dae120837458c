"""Two threads on one trace, against two processes with one thread each at the same time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.contest import Contestant, answer


def _together(words: list[str], count: int) -> list[dict[str, Any]]:
    """The results of processes that run at the same time."""
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    outputs = [process.communicate()[0] for process in processes]
    if any(process.returncode != 0 for process in processes):
        sys.exit(f"{' '.join(words)} failed")
    return [json.loads(output) for output in outputs]


def _wall(result: dict[str, Any]) -> float:
    """The least wall time of a decode that knows the code."""
    return min(float(wall) for wall, _ in result["rounds"][1:])


def compare(
    question: str, build: Path, trace: Path, *, threads: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Bytes in a second of so many threads, and of so many processes together."""
    shared = Contestant(question, ("--threads", str(threads)), python=True)
    single = Contestant(question, python=True)
    rates: list[float] = []
    apart: list[float] = []
    alone: list[float] = []
    for _ in range(rounds):
        result = answer(shared.words(build, "time", trace, str(seconds)))
        rates.append(result["bytes"] / _wall(result))
        words = single.words(build, "time", trace, str(seconds))
        apart.append(sum(one["bytes"] / _wall(one) for one in _together(words, threads)))
        alone += [one["bytes"] / _wall(one) for one in _together(words, 1)]
    return {
        "question": question,
        "trace": str(trace),
        "threads": threads,
        "shared": max(rates),
        "apart": max(apart),
        "alone": max(alone),
        "ratio": max(rates) / max(apart),
    }


def show(row: dict[str, Any]) -> None:
    """One line."""
    print(
        f"{row['question']:12} {Path(row['trace']).name:28} one process {row['alone'] / 1e6:8.1f} MB/s, "
        f"{row['threads']} processes {row['apart'] / 1e6:8.1f} MB/s, "
        f"{row['threads']} threads {row['shared'] / 1e6:8.1f} MB/s: {row['ratio']:.3f} of it"
    )
