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
import json, pathlib, re, sys, time
from ptkit import Recorder
output, facts, options, *argv = sys.argv[1:]
begin = time.perf_counter()
recording = Recorder(argv, output, **json.loads(options)).run()
wall = time.perf_counter() - begin
peak = int(re.search("VmHWM:(.*)kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10
names = ("exit_status", "instructions", "trace_bytes")
with open(facts, "w") as file:
    json.dump({"wall": wall, "peak": peak, **{name: getattr(recording, name) for name in names}}, file)
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


@dataclass
class Row:
    """One program: seconds, the least of all rounds."""

    program: str
    instructions: int
    trace_bytes: int
    peak_bytes: int  # of the recorder's own memory
    seconds: dict[str, float]


def fail(program: str, what: str) -> None:
    sys.exit(f"{program}: {what}; nothing of it was timed")


def run(argv: Sequence[str], program: Program) -> tuple[float, int, str]:
    """Wall seconds, exit status, digest of the output."""
    begin = time.perf_counter()
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    wall = time.perf_counter() - begin
    written = done.stdout if program.output is None else program.output.read_bytes()
    return wall, done.returncode, hashlib.sha256(written).hexdigest()[:16]


def record(program: Program, folder: Path, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The recorder's facts, and the digest of the program's output."""
    facts = folder / "facts"
    words = [str(folder / "out.ptk"), str(facts), json.dumps(options), *program.argv]
    _, status, digest = run([sys.executable, "-c", RECORD, *words], program)
    if status != 0:
        fail(program.argv[0], f"recording with {options} ended with {status}")
    answer: dict[str, Any] = json.loads(facts.read_text())
    return answer, digest


def decoded(folder: Path) -> int:
    words = [sys.executable, "-c", COUNT, str(folder / "out.ptk")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"decoding failed: {done.stderr.strip()}")
    return int(done.stdout)


def measure(name: str, program: Program, folder: Path, kinds: Sequence[str], rounds: int) -> Row:
    """Checks each kind's result before it is timed: the output, and how many instructions are decoded."""
    _, status, digest = run(program.argv, program)
    emulated = run(program.emulated, program)[1:]
    if emulated != (status, digest):
        fail(name, f"QEMU alone gives {emulated}, natively it is {(status, digest)}")
    row = Row(name, 0, 0, 0, {})
    for kind in kinds:
        facts, written = record(program, folder, KINDS[kind])
        if (facts["exit_status"], written) != (status, digest):
            fail(name, f"{kind} gives {(facts['exit_status'], written)}, natively it is {(status, digest)}")
        count = decoded(folder)
        if count != facts["instructions"]:
            fail(name, f"{kind}: {count} instructions decoded, {facts['instructions']} recorded")
        if kind == kinds[0]:
            row.instructions, row.trace_bytes, row.peak_bytes = count, facts["trace_bytes"], facts["peak"]
    for _ in range(rounds):
        walls = {"native": run(program.argv, program)[0], "QEMU": run(program.emulated, program)[0]}
        for kind in kinds:
            walls[kind] = record(program, folder, KINDS[kind])[0]["wall"]
        for kind, wall in walls.items():
            row.seconds[kind] = min(wall, row.seconds.get(kind, wall))
    return row


def show(rows: Sequence[Row], kinds: Sequence[str]) -> None:
    """A table for the terminal that is Markdown too."""
    heads = ["program", "M insns", "trace MB", "peak MB", "native s", "QEMU s"]
    heads += [text for kind in kinds for text in (f"{kind} s", "/ native", "/ QEMU")]
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
    parser.add_argument("--rounds", type=int, default=3, help="the least time of so many counts")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    facts = machine()
    if not arguments.json:
        print(", ".join(f"{key} {value}" for key, value in facts.items()))
    report: dict[str, Any] = {"machine": facts}
    tables = {"programs": (PROGRAMS, ["emulator", "with CYC"]), "small": (SMALL, ["emulator", "step"])}
    for table, (programs, kinds) in tables.items():
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
