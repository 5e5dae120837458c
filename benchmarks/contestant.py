#!/usr/bin/env python3
"""Contestants in Python: one table of a trace by the public API, as a user would read it.

    contestant.py QUESTION check TRACE [--engine libipt]
    contestant.py QUESTION time TRACE SECONDS [--threads N] [--plain]

prints one JSON object, as the contestants in C++ do. The trace stays open: from the second decode on its code
is known.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ptkit

MOST_ROUNDS = 400
_WORD = 0xFFFFFFFFFFFFFFFF


@dataclass
class Outcome:
    """The result that all contestants must agree on. Only a check computes the digest."""

    rows: int = 0
    errors: int = 0
    sum: int = 0
    digest: str = ""

    def add(self, rows: int, errors: int, last: Sequence[Any]) -> None:
        """Count a part, and read its last value, if any."""
        self.rows += rows
        self.errors += errors
        if len(last):
            self.sum = (self.sum + int(last[-1])) & _WORD


class Digests:
    """A digest for each column."""

    def __init__(self, columns: int) -> None:
        self._digests = [hashlib.blake2b(digest_size=8) for _ in range(columns)]

    def update(self, columns: Sequence[Any]) -> None:
        for column, digest in zip(columns, self._digests, strict=True):
            digest.update(column.tobytes())

    def text(self) -> str:
        return "-".join(digest.hexdigest() for digest in self._digests)


@dataclass(frozen=True)
class Part:
    """A table that is read in parts. The last value of each part is read, so that none is skipped."""

    table: str
    columns: tuple[str, ...]

    def parts(self, trace: ptkit.Trace, threads: int) -> Iterator[ptkit.Table]:
        read = getattr(trace, f"iter_{self.table}")
        parts: Iterator[ptkit.Table] = read(reuse=True, columns=self.columns, threads=threads)
        return parts

    def run(self, trace: ptkit.Trace, threads: int) -> Outcome:
        outcome = Outcome()
        first = self.columns[0]
        for part in self.parts(trace, threads):
            outcome.add(len(part), len(part.errors or ()), part[first])
        return outcome

    def plain(self, trace: ptkit.Trace) -> Outcome:
        """The call as in the README: one table with all columns."""
        outcome = Outcome()
        table: ptkit.Table = getattr(trace, self.table)()
        outcome.add(len(table), len(table.errors or ()), table[self.columns[0]])
        return outcome

    def check(self, trace: ptkit.Trace) -> Outcome:
        outcome = Outcome()
        digests = Digests(len(self.columns))
        for part in self.parts(trace, 1):
            outcome.add(len(part), len(part.errors or ()), ())
            digests.update([part[column] for column in self.columns])
        outcome.digest = digests.text()
        return outcome


class Anew(Part):
    """Taken branches of a file that is opened anew for each run: no code is cached."""

    def parts(self, trace: ptkit.Trace, threads: int) -> Iterator[ptkit.Table]:
        fresh = ptkit.open(trace.source, engine=trace.info.engine, resync="psb")
        yield from fresh.iter_branches(taken=True, reuse=True, columns=self.columns, threads=threads)


class Timed(Part):
    """Branches with times. Engines may date a branch by different packets, so intervals differ: the intervals
    of both engines must overlap."""

    def check(self, trace: ptkit.Trace) -> Outcome:
        timeless = tuple(name for name in self.columns if not name.startswith("tsc"))
        outcome = Part(self.table, timeless).check(trace)
        if trace.info.engine != "ptkit":
            outcome.errors += self.apart(trace, ptkit.open(trace.source, resync="psb"))
        return outcome

    def apart(self, *traces: ptkit.Trace) -> int:
        """Count rows with disjoint intervals, or with a time from one engine only."""
        count = 0
        for one, other in zip(*(self.parts(trace, 1) for trace in traces), strict=True):
            begin = np.maximum(one["tsc"], other["tsc"])
            end = np.minimum(one["tsc"] + one["tsc_error"], other["tsc"] + other["tsc_error"])
            known = one["time_known"] & other["time_known"]
            count += int(((begin > end) & known).sum()) + int(
                (one["time_known"] != other["time_known"]).sum()
            )
        return count


class Edges:
    """Counts of all edges."""

    def plain(self, trace: ptkit.Trace) -> Outcome:
        edges = trace.edges()
        return Outcome(int(edges["count"].sum()), len(edges.errors or ()), len(edges))

    def run(self, trace: ptkit.Trace, threads: int) -> Outcome:
        edges = trace.edges(threads=threads)
        return Outcome(int(edges["count"].sum()), len(edges.errors or ()), len(edges))

    def check(self, trace: ptkit.Trace) -> Outcome:
        edges = trace.edges(threads=1)
        outcome = Outcome(int(edges["count"].sum()), len(edges.errors or ()), len(edges))
        columns = [edges[name].tolist() for name in ("from_ip", "to_ip", "kind", "count")]
        value = 0xCBF29CE484222325  # as in common/contest.h
        for row in zip(*columns, strict=True):
            for word in row:
                value = (value ^ word) * 0x100000001B3 & _WORD
        outcome.digest = f"{value:016x}"
        return outcome


class CodeCoverage:
    """What ran, as a set: blocks, edges, functions and lines."""

    def run(self, trace: ptkit.Trace, threads: int) -> Outcome:
        found = trace.coverage(threads=threads)
        return Outcome(len(found.edges), found.runs[0].errors, int(found.functions["instructions"].sum()))

    def plain(self, trace: ptkit.Trace) -> Outcome:
        return self.run(trace, 1)

    def check(self, trace: ptkit.Trace) -> Outcome:
        outcome = self.run(trace, 1)
        found = trace.coverage(threads=1)
        tables = (found.blocks, found.edges, found.branches, found.functions, found.lines)
        digests = Digests(len(tables))
        text = [json.dumps([table[name].tolist() for name in table.columns]).encode() for table in tables]
        digests.update([np.frombuffer(one, np.uint8) for one in text])
        outcome.digest = digests.text()
        return outcome


class Functions:
    """Sums of all frames by function, of `functions()` or of a table of `calls()`."""

    def __init__(self, by: str) -> None:
        self._by = by

    def run(self, trace: ptkit.Trace, threads: int) -> Outcome:
        if self._by == "functions":
            table: ptkit.Table = trace.functions(threads=threads)
            frames = int(table["count"].sum() + table["begin_unseen"].sum())
            return Outcome(frames, 0, int(table["self_instructions"].sum()))
        calls = trace.calls(threads=threads)
        return Outcome(len(calls), 0, int(calls["self_instructions"].sum()))

    def plain(self, trace: ptkit.Trace) -> Outcome:
        return self.run(trace, 1)

    def check(self, trace: ptkit.Trace) -> Outcome:
        table: ptkit.Table = trace.functions() if self._by == "functions" else trace.calls().functions()
        names = ("function", "module", "count", "instructions", "self_instructions")
        rows = sorted(zip(*(map(str, table[name].tolist()) for name in names), strict=True))
        digest = hashlib.blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest()
        frames = int(table["count"].sum() + table["begin_unseen"].sum())
        return Outcome(frames, 0, int(table["self_instructions"].sum()), digest)


class CallSites:
    """Addresses of all call instructions of a `perf.data` file that is opened anew for each run."""

    def frames(self, trace: ptkit.Trace, threads: int = 1, **query: Any) -> Any:
        frames = ptkit.open(trace.source).calls(threads=threads, **query)
        return frames[np.isin(frames["how"], (ptkit.CallKind.CALL, ptkit.CallKind.PLT))]

    def run(self, trace: ptkit.Trace, threads: int) -> Outcome:
        frames = self.frames(trace, threads)
        return Outcome(len(frames), 0, int(frames["call_ip"].sum(dtype=np.uint64)))

    def plain(self, trace: ptkit.Trace) -> Outcome:
        return self.run(trace, 1)

    def check(self, trace: ptkit.Trace) -> Outcome:
        names = ("parent", "call_ip", "instruction", "end_instruction", "how")
        frames = self.frames(trace, columns=names)
        parent, site, begin, end = (frames[name].tolist() for name in names[:4])
        # A function that the dynamic linker resolves has the call of the resolver, which is here, too.
        resolved = set(zip(parent, site, end, strict=True))
        once = [
            here for here, *key in zip(site, parent, site, begin, strict=True) if tuple(key) not in resolved
        ]
        digests = Digests(1)
        digests.update([np.sort(np.array(once, np.uint64))])
        return Outcome(len(once), 0, 0, digests.text())


TAKEN = ("from_ip", "to_ip")
ALL = ("tsc", "tsc_error", "from_ip", "to_ip", "kind", "flags", "offset")
QUESTIONS: dict[str, Part | Edges | CodeCoverage | Functions | CallSites] = {
    "columns": Part("packets", ("offset", "kind", "ip", "payload")),
    "edges": Edges(),
    "branches": Part("branches", ("from_ip", "to_ip", "kind")),
    "taken_branches": Anew("branches", TAKEN),
    "timed_branches": Timed("branches", ("tsc", "tsc_error", "from_ip", "to_ip", "kind", "flags")),
    "instructions": Part("instructions", ("ip",)),
    "all_branches": Part("branches", ALL),
    "code_coverage": CodeCoverage(),
    "functions": Functions("functions"),
    "calls": Functions("calls"),
    "call_sites": CallSites(),
}


def timed(
    run: Callable[[], Outcome], seconds: float, cpu_seconds: Callable[[], float] = time.process_time
) -> tuple[list[tuple[float, float]], Outcome]:
    """At least two rounds; (wall, CPU) seconds of each."""
    rounds: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(rounds) < 2 or (len(rounds) < MOST_ROUNDS and time.perf_counter() < end):
        wall, cpu = time.perf_counter(), cpu_seconds()
        outcome = run()
        cpu_end = cpu_seconds()
        rounds.append((time.perf_counter() - wall, cpu_end - cpu))
    return rounds, outcome


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("question", choices=sorted(QUESTIONS))
    parser.add_argument("action", choices=("check", "time"))
    parser.add_argument("trace")
    parser.add_argument("seconds", nargs="?", type=float, default=0.0)
    parser.add_argument("--engine", default="ptkit")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plain", action="store_true", help="the call without options, all columns")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    warnings.simplefilter("ignore", ptkit.PtkitWarning)
    question = QUESTIONS[arguments.question]
    # After an error, both engines continue at the next PSB.
    trace = ptkit.open(arguments.trace, engine=arguments.engine, resync="psb")
    trace.packet_counts()  # unpacks compressed streams, untimed
    answer: dict[str, Any] = {}
    if arguments.action == "check":
        outcome = question.check(trace)
    else:

        def run() -> Outcome:
            return question.plain(trace) if arguments.plain else question.run(trace, arguments.threads)

        rounds, outcome = timed(run, arguments.seconds)
        answer = {"bytes": trace.info.bytes, "rounds": rounds}
    print(json.dumps({**vars(outcome), **answer}))


if __name__ == "__main__":
    main()
