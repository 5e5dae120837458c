"""Recordings by stock perf of one program that runs without page-table isolation."""

from __future__ import annotations

from pathlib import Path

from compiling import build
from machine import Machine, Run


def record_rounds(machine: Machine, folder: Path, options: dict[str, str], more: str = "") -> Run:
    """One run: each recording, by its name, with its options of `perf record`, then what else is to be done.

    Under page-table isolation Linux has no Branch Trace Store.
    """
    folder.mkdir()
    program = build("rounds", folder, "-static-pie")
    script = "".join(
        f"host log tracing\nperf record {words} -o /tmp/{name} rounds 2000\n"
        f"host log never\nhost put {name} /tmp/{name}\n"
        for name, words in options.items()
    )
    run = machine.run(script + more, folder / "run", files={"bin/rounds": program}, arguments="pti=off")
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run
