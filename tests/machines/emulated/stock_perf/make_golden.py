"""Makes tests/golden/recordings anew: `make_golden.py [NAME...]`. Needs what the machine does."""

from __future__ import annotations

import lzma
import sys
import tempfile
from pathlib import Path

# pytest does so by itself.
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "checks"))
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "files"))
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "machines"))
sys.path.append(str(Path(__file__).resolve().parents[3] / "support" / "programs"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "machine"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "comparison"))

from compiling import build
from debian import Missing
from executed import Executed, Truth
from machine import Machine, Run
from perf_data import aux_streams
from reduced import pack

FOLDER = Path(__file__).resolve().parents[3] / "golden" / "recordings"
USER, KERNEL = 3, 0
# name: (options of perf record, program, privilege level or all)
ONE_CPU = {
    "user": ("-e intel_pt//u", "rounds 60", USER),
    "kernel": ("-e intel_pt//k", "true", KERNEL),
    "both": ("-e intel_pt//", "true", None),
    "timed": ("-e intel_pt/cyc,cyc_thresh=1,mtc,mtc_period=3,tsc,psb_period=0/u", "rounds 300", USER),
    "tips": ("-e intel_pt/noretcomp/u", "rounds 60", USER),
    "small": ("-m,16 -e intel_pt/psb_period=0/u", "rounds 3000", USER),
    "thread": ("--per-thread -e intel_pt//u", "sh -c 'rounds 60 & rounds 30; wait'", USER),
}
TWO_CPUS = {
    "all": ("-a -e intel_pt//u", "sh -c 'rounds 60 & true; wait'", USER),
}


def record(machine: Machine, program: Path, folder: Path, cases: dict, cpus: int) -> Run:
    """One run of the machine in which all cases are recorded."""
    script = "".join(
        f"host log tracing\nperf record {options} -o /tmp/{name} {command}\n"
        f"host log never\nhost put {name} /tmp/{name}\n"
        for name, (options, command, _) in cases.items()
    )
    run = machine.run(script, folder, files={"bin/rounds": program}, cpus=cpus)
    if run.status != 0 or not all(name in run.files for name in cases):
        raise Missing(run.files.get("log", run.serial.encode()).decode())
    return run


def write(run: Run, cases: dict, wanted: list[str]) -> None:
    """The files of those cases that are wanted: perf.data, and code and truth."""
    truth = Truth(run.truth)
    for number, (name, (_, _, level)) in enumerate(cases.items()):
        if wanted and name not in wanted:
            continue
        part = 2 * number + 1
        streams = {}
        for cpu, tid in aux_streams(run.files[name]):
            executed = at_level(truth.executed(part, max(cpu, 0)), level)
            streams[cpu, tid] = (executed.ip, executed.size)
        packed = pack(streams, truth.code(part))
        compressed = lzma.compress(run.files[name], preset=9)
        (FOLDER / f"{name}.npz").write_bytes(packed)
        (FOLDER / f"{name}.perf.data.xz").write_bytes(compressed)
        counts = ", ".join(str(len(ip)) for ip, _ in streams.values())
        packed_bytes = len(packed) + len(compressed)
        print(f"{name}: {counts} instructions, {len(run.files[name])} bytes, {packed_bytes} packed")


def at_level(executed: Executed, level: int | None) -> Executed:
    """Instructions of one privilege level, or all."""
    return executed if level is None else executed.select(executed.cpl == level)


def main() -> int:
    """Records all cases and writes those that are named."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            machine = Machine()
            program = build("rounds", folder, "-static-pie")
            for cases, cpus in ((ONE_CPU, 1), (TWO_CPUS, 2)):
                write(record(machine, program, folder / str(cpus), cases, cpus), cases, sys.argv[1:])
        except Missing as missing:
            print(missing, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
