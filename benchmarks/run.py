#!/usr/bin/env python3
"""Runs the contests: checks that all contestants give the same result, then times them in interleaved rounds.

Needs a build with -DPTKIT_BENCHMARKS=ON and the corpus (environment variable PTKIT_CORPUS, default
../shared/traces next to the repository). See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OURS = "ptkit"


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant: medians over all rounds, and the quartiles around the wall-clock median."""

    contestant: str
    rows: int
    bytes: int
    wall: float
    wall_low: float
    wall_high: float
    cpu: float
    cold: float

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes / self.wall / 1e6

    @property
    def ns_per_row(self) -> float:
        return self.wall / self.rows * 1e9


def parse_arguments() -> argparse.Namespace:
    corpus = os.environ.get("PTKIT_CORPUS", str(ROOT.parent / "shared" / "traces"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "bench", help="build folder")
    parser.add_argument(
        "--trace", type=Path, default=Path(corpus) / "libxdc" / "mruby", help="what is decoded"
    )
    parser.add_argument("--question", action="append", help="only this one (may be repeated)")
    parser.add_argument("--rounds", type=int, default=7, help="processes per contestant")
    parser.add_argument(
        "--repeats", type=int, default=4, help="decodes per process; the first one is the cold one"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def ask(program: Path, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program.parent.name}/{program.name}: {done.stderr.strip() or done.returncode}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def check(question: str, programs: list[Path], trace: Path) -> dict[str, Any]:
    """All contestants must say the same, row by row (by digest), before anything is timed."""
    answers = {program.name: ask(program, "check", str(trace)) for program in programs}
    first = answers[programs[0].name]
    for name, answer in answers.items():
        if answer != first:
            sys.exit(f"{question}: {name} says {answer}, {programs[0].name} says {first}; nothing was timed")
    return first


def measure(
    programs: list[Path], trace: Path, rounds: int, repeats: int, expected: dict[str, Any]
) -> list[Timing]:
    samples: dict[str, list[tuple[float, float]]] = {program.name: [] for program in programs}
    cold: dict[str, list[float]] = {program.name: [] for program in programs}
    size = 0
    for turn in range(rounds):
        shift = turn % len(programs)
        for program in programs[shift:] + programs[:shift]:
            answer = ask(program, "time", str(trace), str(repeats))
            if (answer["rows"], answer["sum"]) != (expected["rows"], expected["sum"]):
                sys.exit(f"{program.name}: the timed run gave another result than the checked one")
            size = answer["bytes"]
            cold[program.name].append(answer["rounds"][0][0])
            samples[program.name] += [(wall, cpu) for wall, cpu in answer["rounds"][1:]]
    timings = []
    for name, times in samples.items():
        walls = [wall for wall, _ in times]
        low, middle, high = statistics.quantiles(walls, n=4)
        timings.append(
            Timing(
                contestant=name,
                rows=expected["rows"],
                bytes=size,
                wall=middle,
                wall_low=low,
                wall_high=high,
                cpu=statistics.median(cpu for _, cpu in times),
                cold=statistics.median(cold[name]),
            )
        )
    return timings


def machine(build: Path) -> dict[str, str]:
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in cpuinfo.read_text().splitlines()
            if line.startswith("model name")
        ]
        cpu = names[0] if names else cpu
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    compiler = "unknown"
    for path in build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        fields = dict(
            line[4:-1].split(" ", 1)
            for line in path.read_text().splitlines()
            if line.startswith("set(CMAKE_CXX_COMPILER_") and " " in line
        )
        compiler = " ".join(
            fields.get(f"CMAKE_CXX_COMPILER_{key}", '""').strip('"') for key in ("ID", "VERSION")
        )
    return {
        "cpu": cpu,
        "cpus": str(os.cpu_count()),
        "governor": governor.read_text().strip() if governor.exists() else "unknown",
        "compiler": compiler,
        "commit": commit.stdout.strip() or "unknown",
    }


def show(question: str, timings: list[Timing], digest: str) -> None:
    ours = next(timing for timing in timings if timing.contestant == OURS)
    print(f"\n{question}: {ours.rows} rows from {ours.bytes} bytes, all the same (digest {digest})")
    print(
        f"  {'':8} {'MB/s':>9} {'ns/row':>8} {'wall ms':>9} {'quartiles':>17}"
        f" {'cpu ms':>9} {'cold ms':>9} {'ours is':>9} {'by cpu':>7}"
    )
    for timing in timings:
        quartiles = f"{timing.wall_low * 1e3:.2f}-{timing.wall_high * 1e3:.2f}"
        ratio = "" if timing is ours else f"{timing.wall / ours.wall:.2f}x"
        cpu_ratio = "" if timing is ours else f"{timing.cpu / ours.cpu:.2f}x"
        print(
            f"  {timing.contestant:8} {timing.megabytes_per_second:9.2f} {timing.ns_per_row:8.2f}"
            f" {timing.wall * 1e3:9.2f} {quartiles:>17} {timing.cpu * 1e3:9.2f}"
            f" {timing.cold * 1e3:9.2f} {ratio:>9} {cpu_ratio:>7}".rstrip()
        )


def main() -> None:
    arguments = parse_arguments()
    binaries = arguments.build / "benchmarks" / "bin"
    if not binaries.is_dir():
        sys.exit(
            f"no contestants in {binaries}: cmake -S . -B {arguments.build} -DPTKIT_BENCHMARKS=ON"
            f" && cmake --build {arguments.build}"
        )
    if not arguments.trace.exists():
        sys.exit(f"no trace at {arguments.trace}: set PTKIT_CORPUS to the corpus, or give --trace")
    if arguments.rounds < 1 or arguments.repeats < 3:
        sys.exit("--rounds must be at least 1 and --repeats at least 3")
    facts = machine(arguments.build)
    report: dict[str, Any] = {"machine": facts, "trace": str(arguments.trace), "questions": {}}
    if not arguments.json:
        print(", ".join(f"{key} {value}" for key, value in facts.items()))
    for folder in sorted(path for path in binaries.iterdir() if path.is_dir()):
        if arguments.question and folder.name not in arguments.question:
            continue
        programs = sorted(folder.iterdir(), key=lambda path: (path.name != OURS, path.name))
        expected = check(folder.name, programs, arguments.trace)
        timings = measure(programs, arguments.trace, arguments.rounds, arguments.repeats, expected)
        report["questions"][folder.name] = {
            "digest": expected["digest"],
            "timings": [asdict(timing) for timing in timings],
        }
        if not arguments.json:
            show(folder.name, timings, expected["digest"])
    if arguments.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
