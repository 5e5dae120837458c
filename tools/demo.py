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
    """Instructions of functions, alone and with their callees."""
    functions = trace.functions()
    alone = functions["self_instructions"]
    hottest = functions[np.argsort(alone)[::-1][:top]]
    all_of_it = max(int(alone.sum()), 1)
    table = Table(title=f"Hottest of {len(functions):,} functions, {all_of_it:,} instructions")
    for heading in ("instructions", "alone", "with callees", "calls", "function"):
        table.add_column(heading, justify="left" if heading == "function" else "right")
    names = ("self_instructions", "instructions", "count", "function")
    for own, with_callees, count, function in zip(*(hottest[name].tolist() for name in names), strict=True):
        shares = (f"{100 * part / all_of_it:.1f} %" for part in (own, with_callees))
        table.add_row(f"{own:,}", *shares, f"{count:,}", escape(function))
    return table


def addresses(table: ptkit.Table, end: str) -> list[str]:
    """Function and offset of each address, or file and offset where no function is known."""
    names, offsets = table[f"{end}_symbol"], table[f"{end}_symbol_offset"]
    files, file_offsets = table[f"{end}_module"], table[f"{end}_module_offset"]
    return [
        (f"{name}+{offset:#x}" if offset else name) if name else f"[{file}]+{file_offset:#x}" if file else "?"
        for name, offset, file, file_offset in zip(names, offsets, files, file_offsets, strict=True)
    ]


def hottest_branches(trace: ptkit.Trace, top: int) -> Table:
    edges = trace.edges()
    hottest = edges[np.argsort(edges["count"])[::-1][:top]]
    table = Table(title=f"Hottest of {len(edges):,} branch edges")
    for heading in ("times", "kind", "from", "to"):
        table.add_column(heading, justify="right" if heading == "times" else "left", overflow="fold")
    columns = (
        hottest["count"].tolist(),
        hottest.named("kind"),
        addresses(hottest, "from"),
        addresses(hottest, "to"),
    )
    for count, kind, source, target in zip(*columns, strict=True):
        table.add_row(f"{count:,}", kind, escape(source), escape(target))
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
    print(f"try: .venv/bin/ptkit calls {output} --depth 4")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
