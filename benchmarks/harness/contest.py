"""Contestants are programs. Runs them to check and to time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "contestant.py"


@dataclass(frozen=True)
class Contestant:
    """A program of the build (``question/name``), a script of that name, or a question of contestant.py."""

    program: str
    options: tuple[str, ...] = ()
    python: bool = False  # a question of contestant.py
    needs: str = ""  # another program, which may not be installed
    variable: str = ""  # another decoder, built if this environment variable has its folder
    pages: bool = False  # reads a trace as a folder with pages of code: see common/page_cache.cpp

    @property
    def name(self) -> str:
        """The contestant in tables, without the question."""
        return " ".join(("Python" if self.python else self.program.split("/")[-1], *self.options))

    @property
    def is_ours(self) -> bool:
        """Whether the contestant is ptkit: its result may change between builds."""
        other = {"libipt", "libxdc", "iptr"}
        return other.isdisjoint((*self.options, self.program.split("/")[-1]))

    def words(self, build: Path, action: str, trace: Path, *more: str) -> list[str]:
        """The command line."""
        path = self.path(build)
        trace = page_cache_of(trace, build) if self.pages else trace
        command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
        question = [self.program] if self.python else []
        return [*command, *question, action, str(trace), *more, *self.options]

    def path(self, build: Path) -> Path:
        """The path of the program."""
        script = ROOT / "benchmarks" / f"{self.program}.py"
        if self.python or script.exists():
            return SCRIPT if self.python else script
        return build / "benchmarks" / "bin" / self.program

    def exists(self, build: Path) -> bool:
        """Whether it was built. Contestants with libipt are built if libipt is found."""
        return bool(self.variable) or self.path(build).exists()

    def reason_to_leave_out(self, build: Path) -> str:
        """Why the contestant cannot run here. Empty: it can."""
        if self.needs and shutil.which(self.needs) is None:
            return f"{self.needs} is not installed"
        if self.variable and not self.path(build).exists():
            return f"it was built without {self.variable}"
        return ""

    def version(self, build: Path) -> str:
        """A key that changes if the result may change."""
        return hashlib.sha256(self.path(build).read_bytes()).hexdigest()[:16]


@cache
def page_cache_of(trace: Path, build: Path) -> Path:
    """Return a folder with the trace and pages of its code, for decoders that read no other form."""
    folder = build / "results" / "pages" / trace.name
    command = [str(build / "benchmarks" / "bin" / "common" / "page_cache"), str(trace), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return folder


@contextmanager
def _empty_cache() -> Iterator[dict[str, str]]:
    """An environment without caches of earlier runs."""
    with tempfile.TemporaryDirectory(prefix="ptkit-bench-") as folder:
        yield {**os.environ, "XDG_CACHE_HOME": folder}


def answer(words: Sequence[str], *, may_fail: bool = False) -> dict[str, Any]:
    """The JSON output of a program. A failure ends the benchmark, or is the result `failure`."""
    with _empty_cache() as environment:
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        message = done.stderr.strip() or f"it ended with {done.returncode}"
        if may_fail:
            return {"failure": message.splitlines()[-1]}
        sys.exit(f"{' '.join(words)}: {message}")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@dataclass
class Checks:
    """Results of checks. Those of libipt are kept in a file: they take long, and do not change."""

    path: Path
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.known = json.loads(self.path.read_text())

    def ask(self, contestant: Contestant, build: Path, trace: Path) -> dict[str, Any]:
        """The result of a contestant for a trace."""
        words = contestant.words(build, "check", trace)
        if contestant.is_ours:
            return answer(words, may_fail=bool(contestant.variable))
        inside = (trace, trace / "trace", trace / "data")
        state = next(path for path in inside if path.is_file()).stat()
        key = f"{contestant.version(build)} {contestant} {trace} {state.st_size} {state.st_mtime_ns}"
        if key not in self.known:
            self.known[key] = answer(words, may_fail=bool(contestant.variable))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.known, indent=1))
        result: dict[str, Any] = self.known[key]
        return result

    def agree(self, group: Sequence[Contestant], build: Path, trace: Path) -> dict[str, Any]:
        """Check that all results are equal, row by row (by digest), before any run is timed."""
        first = self.ask(group[0], build, trace)
        for contestant in group[1:]:
            result = self.ask(contestant, build, trace)
            if "failure" in result:
                continue  # it is not timed
            if any(result[key] != first[key] for key in ("rows", "errors", "digest")):
                sys.exit(
                    f"{trace}: {contestant.program} {contestant.name} says {result}, "
                    f"{group[0].program} {group[0].name} says {first}; nothing was timed"
                )
        return first


@dataclass
class Timing:
    """Seconds of one contestant, over all rounds of all its processes."""

    contestant: str
    bytes: int
    rows: int
    cpu: float  # the least
    cpu_median: float
    wall: float  # the least
    wall_median: float
    first: float  # CPU, the least of the first rounds
    rounds: int

    @property
    def megabytes_per_second(self) -> float:
        """By the least CPU time."""
        return self.bytes / self.cpu / 1e6


def timing_of(contestant: Contestant, answers: Sequence[dict[str, Any]], *, first: bool) -> Timing:
    """Sum up the rounds of processes. `first`: only the first round of each counts."""
    if len({(result["rows"], result["sum"]) for result in answers}) != 1:
        sys.exit(f"{contestant.program} {contestant.name}: not the same result every time")
    firsts = [result["rounds"][0] for result in answers]
    rounds = firsts if first else [times for result in answers for times in result["rounds"][1:]]
    walls, cpus = zip(*rounds, strict=True)
    return Timing(
        contestant=contestant.name,
        bytes=answers[0]["bytes"],
        rows=answers[0]["rows"],
        cpu=min(cpus),
        cpu_median=statistics.median(cpus),
        wall=min(walls),
        wall_median=statistics.median(walls),
        first=min(cpu for _, cpu in firsts),
        rounds=len(rounds),
    )


def measure(
    contestants: Sequence[Contestant], build: Path, trace: Path, *, rounds: int, seconds: float, first: bool
) -> list[Timing]:
    """Processes of the contestants take turns, and the order rotates."""
    answers: dict[Contestant, list[dict[str, Any]]] = {contestant: [] for contestant in contestants}
    for turn in range(rounds):
        shift = turn % len(contestants)
        for contestant in (*contestants[shift:], *contestants[:shift]):
            briefly = first and contestant.is_ours
            words = contestant.words(build, "time", trace, "0" if briefly else str(seconds))
            answers[contestant].append(answer(words))
    return [
        timing_of(contestant, result, first=first and contestant.is_ours)
        for contestant, result in answers.items()
    ]
