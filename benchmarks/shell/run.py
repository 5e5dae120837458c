#!/usr/bin/env python3
"""The shell to a pipe: `ptkit branches`, `packets` and `instructions` beside perf, ptdump and ptxed.

    run.py TRACE [--build build/bench] [--rounds 5]

Rows are compared first. Then whole processes take turns: their CPU time, Python's start included. perf is
`perf script --itrace=b -F ip,addr,sym` of the trace's export; ptdump and ptxed are small programs beside this
one that print libipt's packets and instructions as libipt's tools do. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.perf_data import perf_data_of

_BLOCK = 1 << 20
Row = tuple[int, ...]


@dataclass(frozen=True)
class Command:
    """A program, and the row that a line of its output has; None: another line."""

    name: str
    words: tuple[str, ...]
    row: Callable[[bytes], Row | None]


def hexadecimal(text: bytes | str | None) -> int:
    """0 where it is not known, as perf has it."""
    return 0 if text is None or b"?" in (text if isinstance(text, bytes) else b"") else int(text, 16)


def branch_line(line: bytes) -> Row | None:
    return None if line[:1] == b"[" else (hexadecimal(line[18:34]), hexadecimal(line[38:54]))


def perf_line(line: bytes) -> Row | None:
    source, _, target = line.partition(b"=>")
    row = int(source.split()[0], 16), int(target.split()[0], 16)
    return row if row[0] else None  # where tracing begins


def json_row(table: str, *names: str) -> Callable[[bytes], Row | None]:
    def row(line: bytes) -> Row | None:
        members = json.loads(line)
        if members["table"] != table or members.get("kind") == "PAD":
            return None
        values = [members[name] for name in names]
        return tuple(value if isinstance(value, int) else hexadecimal(value) for value in values)

    return row


def packet_line(line: bytes) -> Row | None:
    """The offset, and a number for name and payload."""
    words = line.split()
    return None if line[:1] == b"[" else (int(words[0], 16), hash(b" ".join(words[1:])))


def address_line(line: bytes) -> Row | None:
    return None if line[:1] == b"[" else (int(line[:16], 16),)


def packet_offset(line: bytes) -> Row | None:
    row = packet_line(line)
    return None if row is None else row[:1]


def ptkit(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "ptkit", *words)


def questions(trace: Path, build: Path) -> dict[str, list[list[Command]]]:
    """By verb: groups of which all have the same rows, the other tool last."""
    bin_folder, path = build / "benchmarks" / "bin" / "shell", str(trace)
    perf = perf_data_of(trace, build)
    cache = ["--buildid-dir", f"{perf}.debug"] if Path(f"{perf}.debug").is_dir() else []
    script = ("perf", *cache, "script", "--force", "-i", str(perf), "--itrace=b", "-F", "ip,addr,sym")
    ptdump, ptxed = (str(bin_folder / "ptdump"), path), (str(bin_folder / "ptxed"), path)
    taken = ("branches", path, "--taken")
    packets = ("packets", path, "--no-pad")
    instructions = ("instructions", path, "--no-events")
    found = {
        "branches": [
            [
                Command("ptkit", ptkit(*taken), branch_line),
                Command("ptkit --json", ptkit(*taken, "--json"), json_row("branches", "from_ip", "to_ip")),
                Command("perf script", script, perf_line),
            ]
        ],
        "packets": [
            [Command("ptkit", ptkit(*packets), packet_line), Command("ptdump", ptdump, packet_line)],
            [
                Command("ptkit --json", ptkit("packets", path, "--json"), json_row("packets", "offset")),
                Command("ptdump", ptdump, packet_offset),
            ],
        ],
        "instructions": [
            [
                Command("ptkit --no-inst", ptkit(*instructions, "--no-inst"), address_line),
                Command("ptkit", ptkit(*instructions), address_line),
                Command("ptkit --json", ptkit(*instructions, "--json"), json_row("instructions", "ip")),
                Command("ptxed --no-inst", ptxed, address_line),
            ]
        ],
    }
    if shutil.which("perf") is None:
        del found["branches"]
    return found


def rows_of(command: Command) -> Iterator[Row]:
    with subprocess.Popen(command.words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        for line in process.stdout:
            row = command.row(line)
            if row is not None:
                yield row


def check(group: Iterable[Command]) -> int:
    """The number of rows, which must be the same ones for all."""
    first, *others = group
    count = 0
    for other in others:
        count = 0
        for one, two in zip_longest(rows_of(first), rows_of(other)):
            if one != two:
                sys.exit(f"row {count}: {first.name} has {one}, {other.name} {two}; nothing was timed")
            count += 1
    return count


def cpu_seconds(command: Command) -> float:
    """CPU time of a process that writes to a pipe; what it writes is read and thrown away."""
    process = subprocess.Popen(command.words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    while os.read(process.stdout.fileno(), _BLOCK):
        pass
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        sys.exit(f"{' '.join(command.words)}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--build", type=Path, default=Path("build/bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--verb", action="append", choices=("branches", "packets", "instructions"))
    arguments = parser.parse_args()
    for verb, groups in questions(arguments.trace, arguments.build).items():
        if arguments.verb and verb not in arguments.verb:
            continue
        counts = [check(group) for group in groups]
        rows = counts[0]
        commands = list({one.name: one for group in groups for one in group}.values())
        commands.sort(key=lambda one: not one.name.startswith("ptkit"))
        seconds: dict[str, list[float]] = {one.name: [] for one in commands}
        for turn in range(arguments.rounds):
            shift = turn % len(commands)
            for command in (*commands[shift:], *commands[:shift]):
                seconds[command.name].append(cpu_seconds(command))
        base = min(seconds[commands[-1].name])
        print(f"{verb}: {rows:,} rows, all agree; CPU seconds of a process, least and median")
        for name, values in seconds.items():
            least = min(values)
            figures = f"{least:8.3f} {statistics.median(values):8.3f} {least / rows * 1e9:8.1f} ns/row"
            print(f"  {name:16} {figures} {base / least:8.1f} x")


if __name__ == "__main__":
    main()
