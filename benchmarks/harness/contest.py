"""Contestants are programs: what they are asked, and how often."""

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
    needs: str = ""  # another program, which not everybody has

    @property
    def name(self) -> str:
        """For tables: what it is, without the question."""
        return " ".join(("Python" if self.python else self.program.split("/")[-1], *self.options))

    @property
    def is_ours(self) -> bool:
        """Not libipt: may say something else next time."""
        return "libipt" not in (*self.options, self.program.split("/")[-1])

    def words(self, build: Path, action: str, trace: Path, *more: str) -> list[str]:
        """The command line."""
        path = self.path(build)
        command = [sys.executable, str(path)] if path.suffix == ".py" else [str(path)]
        question = [self.program] if self.python else []
        return [*command, *question, action, str(trace), *more, *self.options]

    def path(self, build: Path) -> Path:
        """Where the program is."""
        script = ROOT / "benchmarks" / f"{self.program}.py"
        if self.python or script.exists():
            return SCRIPT if self.python else script
        return build / "benchmarks" / "bin" / self.program

    def exists(self, build: Path) -> bool:
        """Whether it was built; contestants that use libipt are built where that is found."""
        return self.path(build).exists()

    @property
    def is_here(self) -> bool:
        """Whether what it needs is installed."""
        return not self.needs or shutil.which(self.needs) is not None

    def version(self, build: Path) -> str:
        """Changes with what it would answer."""
        return hashlib.sha256(self.path(build).read_bytes()).hexdigest()[:16]


@contextmanager
def _empty_cache() -> Iterator[dict[str, str]]:
    """An environment whose user has kept nothing from earlier runs."""
    with tempfile.TemporaryDirectory(prefix="ptkit-bench-") as folder:
        yield {**os.environ, "XDG_CACHE_HOME": folder}


def answer(words: Sequence[str]) -> dict[str, Any]:
    """What a program says, as JSON; a failure ends the benchmark."""
    with _empty_cache() as environment:
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@dataclass
class Checks:
    """What contestants said when they were checked. What libipt said is kept in a file: it takes long, and
    does not change."""

    path: Path
    known: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.known = json.loads(self.path.read_text())

    def ask(self, contestant: Contestant, build: Path, trace: Path) -> dict[str, Any]:
        """What it says of the trace."""
        words = contestant.words(build, "check", trace)
        if contestant.is_ours:
            return answer(words)
        inside = (trace, trace / "trace", trace / "data")
        state = next(path for path in inside if path.is_file()).stat()
        key = f"{contestant.version(build)} {contestant} {trace} {state.st_size} {state.st_mtime_ns}"
        if key not in self.known:
            self.known[key] = answer(words)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.known, indent=1))
        told: dict[str, Any] = self.known[key]
        return told

    def agree(self, group: Sequence[Contestant], build: Path, trace: Path) -> dict[str, Any]:
        """All must say the same, row by row (by digest), before anything is timed."""
        first = self.ask(group[0], build, trace)
        for contestant in group[1:]:
            told = self.ask(contestant, build, trace)
            if any(told[key] != first[key] for key in ("rows", "errors", "digest")):
                sys.exit(
                    f"{trace}: {contestant.program} {contestant.name} says {told}, "
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
    """Sum up what processes said; `first`: only the first round of each counts."""
    if len({(told["rows"], told["sum"]) for told in answers}) != 1:
        sys.exit(f"{contestant.program} {contestant.name}: not the same result every time")
    firsts = [told["rounds"][0] for told in answers]
    rounds = firsts if first else [times for told in answers for times in told["rounds"][1:]]
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
        timing_of(contestant, told, first=first and contestant.is_ours)
        for contestant, told in answers.items()
    ]
