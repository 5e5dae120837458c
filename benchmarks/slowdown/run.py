#!/usr/bin/env python3
"""Programs natively, in QEMU alone, recorded in the emulator, and by single steps: how much slower they run.

Needs ptkit (installed, or by PYTHONPATH) with its emulator back end, and QEMU. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from programs import PROGRAMS, SMALL, Program

# A process for each recording. The program's standard output passes through.
RECORD = """
import json, pathlib, re, resource, sys, time
from ptkit import Recorder
output, facts, options, *argv = sys.argv[1:]
def cpu():
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [usage.ru_utime + usage.ru_stime for usage in usages]
before, begin = cpu(), time.perf_counter()
recording = Recorder(argv, output, **json.loads(options)).run()
wall, after = time.perf_counter() - begin, cpu()
recorder_cpu, program_cpu = (end - start for start, end in zip(before, after))
peak = int(re.search("VmHWM:(.*)kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10
names = ("exit_status", "instructions", "trace_bytes")
with open(facts, "w") as file:
    json.dump({"wall": wall, "recorder_cpu": recorder_cpu, "program_cpu": program_cpu, "peak": peak,
               **{name: getattr(recording, name) for name in names}}, file)
"""
COUNT = """
import sys
import ptkit
trace = ptkit.open(sys.argv[1])
count = 0
for part in trace.iter_blocks(columns=["instructions"], reuse=True):
    count += int(part["instructions"].sum())
    if part.errors is not None and len(part.errors):
        sys.exit(f"{part.errors}")
print(count)
"""
# Back ends and their options. The first one has the emulator's default timing.
KINDS: dict[str, dict[str, Any]] = {
    "emulator": {"backend": "emulator"},
    "with CYC": {"backend": "emulator", "timing": ["tsc", "mtc", "cyc"]},
    "step": {"backend": "step"},
}

TABLES = {"programs": (PROGRAMS, ["emulator", "with CYC"]), "small": (SMALL, ["emulator", "step"])}


@dataclass
class Row:
    """One program: seconds, the least of all rounds."""

    program: str
    instructions: int
    trace_bytes: int
    peak_bytes: int  # of the recorder's own memory
    seconds: dict[str, float]
    # CPU time of the program, with the emulator if it is in one, and of the recorder.
    program_cpu: dict[str, float]
    recorder_cpu: dict[str, float]

    def keep_least(self, kind: str, wall: float, program_cpu: float, recorder_cpu: float = 0.0) -> None:
        for least, new in (
            (self.seconds, wall),
            (self.program_cpu, program_cpu),
            (self.recorder_cpu, recorder_cpu),
        ):
            least[kind] = min(new, least.get(kind, new))


@dataclass
class Run:
    wall: float
    cpu: float
    status: int
    digest: str  # of the output


def fail(program: str, what: str) -> None:
    sys.exit(f"{program}: {what}; nothing of it was timed")


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(argv: Sequence[str], program: Program) -> Run:
    cpu, begin = children_cpu(), time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    wall = time.perf_counter() - begin
    written = done.stdout if program.output is None else program.output.read_bytes()
    return Run(wall, children_cpu() - cpu, done.returncode, hashlib.sha256(written).hexdigest()[:16])


def record(program: Program, folder: Path, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The recorder's facts, and the digest of the program's output."""
    facts = folder / "facts"
    words = [str(folder / "out.ptk"), str(facts), json.dumps(options), *program.argv]
    done = run([sys.executable, "-c", RECORD, *words], program)
    if done.status != 0:
        fail(program.argv[0], f"recording with {options} ended with {done.status}")
    answer: dict[str, Any] = json.loads(facts.read_text())
    return answer, done.digest


def decoded(folder: Path) -> int:
    words = [sys.executable, "-c", COUNT, str(folder / "out.ptk")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"decoding failed: {done.stderr.strip()}")
    return int(done.stdout)


def both(program: Program) -> tuple[Run, Run]:
    return run(program.argv, program), run(program.emulated, program)


def measure(name: str, program: Program, folder: Path, kinds: Sequence[str], rounds: int) -> Row:
    """Checks each kind's result before it is timed: the output, and how many instructions are decoded."""
    native, emulated = ((done.status, done.digest) for done in both(program))
    if emulated != native:
        fail(name, f"QEMU alone gives {emulated}, natively it is {native}")
    row = Row(name, 0, 0, 0, {}, {}, {})
    for kind in kinds:
        facts, written = record(program, folder, KINDS[kind])
        if (facts["exit_status"], written) != native:
            fail(name, f"{kind} gives {(facts['exit_status'], written)}, natively it is {native}")
        count = decoded(folder)
        if count != facts["instructions"]:
            fail(name, f"{kind}: {count} instructions decoded, {facts['instructions']} recorded")
        if kind == kinds[0]:
            row.instructions, row.trace_bytes, row.peak_bytes = count, facts["trace_bytes"], facts["peak"]
    for _ in range(rounds):
        for kind, done in zip(("native", "QEMU"), both(program), strict=True):
            row.keep_least(kind, done.wall, done.cpu)
        for kind in kinds:
            facts, _ = record(program, folder, KINDS[kind])
            row.keep_least(kind, facts["wall"], facts["program_cpu"], facts["recorder_cpu"])
    return row


def show(rows: Sequence[Row], kinds: Sequence[str]) -> None:
    """A table for the terminal that is Markdown too."""
    heads = ["program", "M insns", "trace MB", "peak MB", "native s", "QEMU s"]
    heads += [text for kind in kinds for text in (f"{kind} s", "/ native", "/ QEMU", "CPU / QEMU's")]
    print("| " + " | ".join(heads) + " |")
    print("|---" + "|--:" * (len(heads) - 1) + "|")
    for row in rows:
        native, qemu = row.seconds["native"], row.seconds["QEMU"]
        cells = [
            row.program,
            f"{row.instructions / 1e6:.1f}",
            f"{row.trace_bytes / 1e6:.1f}",
            f"{row.peak_bytes / 1e6:.0f}",
        ]
        cells += [f"{native:.3f}", f"{qemu:.3f}"]
        for kind in kinds:
            seconds = row.seconds[kind]
            cells += [f"{seconds:.3f}", f"{seconds / native:.1f}", f"{seconds / qemu:.2f}"]
            shares = (cpu[kind] / row.program_cpu["QEMU"] for cpu in (row.program_cpu, row.recorder_cpu))
            cells.append(" + ".join(f"{share:.2f}" for share in shares))
        print("| " + " | ".join(cells) + " |")


def machine() -> dict[str, str]:
    names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    version = subprocess.run(["qemu-x86_64", "--version"], capture_output=True, text=True, check=True)
    return {
        "cpu": names[0].split(":", 1)[1].strip() if names else platform.machine(),
        "cpus": str(os.cpu_count()),
        "qemu": version.stdout.split("\n")[0].split("version ")[-1],
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--program", action="append", help="only programs with this in their name (may be repeated)"
    )
    parser.add_argument("--table", choices=TABLES, action="append", help="only this table")
    parser.add_argument("--rounds", type=int, default=3, help="the least time of so many counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    facts = machine()
    if not arguments.json:
        print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report: dict[str, Any] = {"machine": facts}
    for table in arguments.table or TABLES:
        programs, kinds = TABLES[table]
        rows = []
        for name, make in programs.items():
            if arguments.program and not any(part in name for part in arguments.program):
                continue
            with tempfile.TemporaryDirectory(prefix="ptkit-slowdown-") as temporary:
                folder = Path(temporary)
                rows.append(measure(name, make(folder), folder, kinds, arguments.rounds))
        report[table] = [asdict(row) for row in rows]
        if rows and not arguments.json:
            print()
            show(rows, kinds)
    if arguments.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
