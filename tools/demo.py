"""The main job on a real program: record it, decode it, show where it spent its instructions.

Usage: demo.py FOLDER [PROGRAM ARGS...]
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import ptkit


def hottest_functions(trace: ptkit.Trace, top: int) -> Table:
    """Counts executed instructions per function, address by address."""
    ips, counts = np.unique(trace.instructions(columns=["ip"])["ip"], return_counts=True)
    totals: dict[str, int] = {}
    for name, count in zip(trace.symbolize(ips, offsets=False, modules=True), counts, strict=True):
        totals[name or "?"] = totals.get(name or "?", 0) + int(count)
    all_of_it = int(counts.sum())
    table = Table(title=f"Hottest functions of {all_of_it:,} instructions")
    table.add_column("instructions", justify="right")
    table.add_column("share", justify="right")
    table.add_column("function")
    for function, count in sorted(totals.items(), key=lambda item: -item[1])[:top]:
        table.add_row(f"{count:,}", f"{100 * count / all_of_it:.1f} %", escape(function))
    return table


def hottest_branches(trace: ptkit.Trace, top: int) -> Table:
    edges = trace.edges()
    order = np.argsort(edges["count"])[::-1][:top]
    table = Table(title=f"Hottest of {len(edges):,} branch edges")
    for heading in ("times", "kind", "from", "to"):
        table.add_column(heading, justify="right" if heading == "times" else "left")
    sources = trace.symbolize(edges["from_ip"][order], modules=True)
    targets = trace.symbolize(edges["to_ip"][order], modules=True)
    for row, source, target in zip(order, sources, targets, strict=True):
        kind = ptkit.BranchKind(int(edges["kind"][row])).name
        table.add_row(f"{int(edges['count'][row]):,}", kind, escape(source or "?"), escape(target or "?"))
    return table


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    program = arguments[1:] or [shutil.which("sort") or "sort", str(Path(__file__).resolve())]
    output = folder / "demo.ptk"
    console = Console()
    console.print(f"recording: {' '.join(program)}")
    trace = ptkit.record(program, output=output, quiet=True)
    recording = trace.recording
    assert recording is not None
    console.print(
        f"by the back end {recording.backend}, in {recording.seconds:.1f} s"
        + (f"; the better ones do not work here: {recording.reason}" if recording.reason else "")
    )
    print(trace.info)
    console.print(hottest_functions(trace, 12))
    console.print(hottest_branches(trace, 12))
    console.print(f"errors: {len(trace.errors)}, gaps: {len(trace.gaps)}")
    print(f"the trace: {output}")
    print(f"try: .venv/bin/ptkit instructions {output} | head")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
