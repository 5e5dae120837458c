#!/usr/bin/env python3
"""Calls beside branches: `functions()`, `calls()` and `iter_calls()` against `edges()` and `branches()`.

    run.py RECORDING... [--rounds 5] [--json]

Results are compared first: sums of the table of calls with those of `functions()`, and each on one thread and
on two. Then all questions take turns, each of a trace that is opened anew, so that no code is known. The
least time of the rounds is printed: CPU time of all threads, and for two threads the time that passes.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ptkit


def rows_of(parts: Iterable[ptkit.Table]) -> int:
    return sum(len(part) for part in parts)


QUESTIONS: dict[str, tuple[str | None, Callable[[ptkit.Trace], int]]] = {
    "edges": (None, lambda trace: len(trace.edges(threads=1))),
    "functions": ("edges", lambda trace: len(trace.functions(threads=1))),
    "functions, two threads": ("functions", lambda trace: len(trace.functions(threads=2))),
    "branches": (None, lambda trace: len(trace.branches(threads=1))),
    "calls": ("branches", lambda trace: len(trace.calls(threads=1))),
    "iter_branches": (None, lambda trace: rows_of(trace.iter_branches(threads=1, reuse=True))),
    "iter_calls": ("iter_branches", lambda trace: rows_of(trace.iter_calls(threads=1))),
}


@dataclass
class Result:
    """The least times of one question, in seconds, and its ratio of CPU time to `beside`'s."""

    question: str
    rows: int
    cpu: float
    wall: float
    beside: str | None = None
    ratio: float | None = None


def opened(path: Path) -> ptkit.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path, index=False)


def differing_columns(one: Any, other: Any) -> list[str]:
    return [name for name in one.columns if not np.array_equal(one[name], other[name])]


def check(path: Path) -> None:
    """SystemExit with what differs."""
    functions = opened(path).functions(threads=1)
    calls = opened(path).calls(threads=1)
    others = {
        "functions() on two threads": (functions, opened(path).functions(threads=2)),
        "calls() on two threads": (calls, opened(path).calls(threads=2)),
        "calls().functions()": (functions, calls.functions()),
    }
    for name, (one, other) in others.items():
        if differing := differing_columns(one, other):
            raise SystemExit(f"{path}: {name} has other columns: {', '.join(differing)}")


def measured(path: Path, rounds: int) -> list[Result]:
    results: dict[str, Result] = {}
    for _ in range(rounds):
        for name, (beside, question) in QUESTIONS.items():
            trace = opened(path)
            cpu, wall = time.process_time(), time.perf_counter()
            rows = question(trace)
            now = Result(name, rows, time.process_time() - cpu, time.perf_counter() - wall, beside)
            best = results.setdefault(name, now)
            best.cpu, best.wall = min(best.cpu, now.cpu), min(best.wall, now.wall)
    for result in results.values():
        if result.beside is not None:
            result.ratio = result.cpu / results[result.beside].cpu
    return list(results.values())


def text_of(result: Result) -> str:
    text = f"  {result.question:<24}{result.rows:>12,} rows  CPU {result.cpu:.3f} s  wall {result.wall:.3f} s"
    return text if result.ratio is None else f"{text}  {result.ratio:.2f} x {result.beside}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON object for each recording")
    options = parser.parse_args()
    for path in options.recordings:
        check(path)
        results = measured(path, options.rounds)
        if options.json:
            print(json.dumps({"recording": str(path), "questions": [asdict(one) for one in results]}))
            continue
        print(path)
        for result in results:
            print(text_of(result))
        calls = next(one for one in results if one.question == "calls").rows
        functions = next(one for one in results if one.question == "functions").cpu
        print(f"  functions(): {functions / max(calls, 1) * 1e9:.0f} ns of CPU time a frame")


if __name__ == "__main__":
    main()
