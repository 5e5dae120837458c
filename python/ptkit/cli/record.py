"""``ptkit record``: trace a program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

from ptkit.cli import common, output

HELP = "trace a program"
DESCRIPTION = (
    "Runs PROGRAM and writes a bundle with its trace, mappings, names and executed code. "
    "The program's own input, output and exit status pass through."
)
EXAMPLES = """examples:
  ptkit record -o sort.ptk -- sort README.md
  ptkit record -o true.ptk --timing tsc,mtc --psb-period 2048 -- true
  ptkit record --max-instructions 1000000 -- python3 -c 'print(1)'"""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="trace.ptk", help="the bundle (default: trace.ptk)"
    )
    parser.add_argument(
        "--backend", default="auto", help="auto, or a name that `ptkit doctor` lists (default: auto)"
    )
    parser.add_argument(
        "--max-instructions",
        type=common.number(2**63 - 1, 1),
        metavar="N",
        help="record the first N instructions",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    group = parser.add_argument_group("packets")
    group.add_argument(
        "--timing", default="tsc,mtc,cyc", help="timing packets: any of tsc,mtc,cyc, or none (default: all)"
    )
    group.add_argument(
        "--psb-period",
        type=common.number(1 << 26, 2048),
        default=4096,
        metavar="BYTES",
        help="bytes between PSBs (default: 4096)",
    )
    group.add_argument("--no-return-compression", action="store_true", help="every RET as a TIP packet")
    group.add_argument("--tnt-64", action="store_true", help="long TNT packets where they save bytes")
    group.add_argument(
        "--mtc-period", type=common.number(15), default=8, help="the field MTCFreq (default: 8)"
    )
    group.add_argument(
        "--cyc-threshold", type=common.number(15), default=0, help="the field CycThresh (default: 0)"
    )
    common.add_json_option(
        parser, "report as JSON, on standard error: standard output is the program's (see also --output)"
    )
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGS", help="what to run")


def run(options: argparse.Namespace) -> int:
    """Record, say on standard error what was written, pass the program's exit status on."""
    from ptkit import capture

    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        raise ValueError("no program to run: write `ptkit record -o FILE -- PROGRAM ARGS`")
    with _progress(quiet=options.quiet) as progress:
        recording = capture.record(
            program,
            options.output,
            backend=options.backend,
            return_compression=not options.no_return_compression,
            timing=tuple(name for name in options.timing.split(",") if name != "none"),
            psb_period=options.psb_period,
            tnt_64=options.tnt_64,
            mtc_period=options.mtc_period,
            cyc_threshold=options.cyc_threshold,
            max_instructions=options.max_instructions,
            progress=progress,
        )
    for warning in recording.warnings:
        print(f"ptkit: warning: {warning}", file=sys.stderr)
    if options.json:
        # Standard output belongs to the program.
        output.print_json(asdict(recording), errors=True)
    elif not options.quiet:
        ended = " (interrupted)" if recording.interrupted else " (limit reached)" if recording.limited else ""
        print(
            f"ptkit: {recording.instructions:,} instructions{ended} of {recording.streams} streams, "
            f"{recording.trace_bytes:,} bytes of trace: {recording.path}",
            file=sys.stderr,
        )
    return recording.exit_status


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Show the number of instructions on a terminal, unless the program writes to the same one."""
    if quiet or not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("recording: {task.completed:,.0f} instructions"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda instructions: bar.update(task, completed=instructions)
