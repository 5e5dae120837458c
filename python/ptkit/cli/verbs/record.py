"""``ptkit record``: trace a program."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import ptkit
from ptkit.capture.option_table import OptionRow, option_rows
from ptkit.cli import common
from ptkit.cli.common import cpu_numbers
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.progress import RecordingLine, decoding
from ptkit.cli.output.terminal import print_text
from ptkit.cli.parser import Rare
from ptkit.cli.signals import ending_signals
from ptkit.info import EMULATED_TIMES, EMULATOR
from ptkit.support.text import counted
from ptkit.trace.opening.index import PASSES

if TYPE_CHECKING:
    from ptkit import Recorder
    from ptkit.capture import Recording

DESCRIPTION = """\
Runs PROGRAM and writes a bundle with its trace, mappings, names and executed code. Threads, children and
programs that it executes are followed. The program's own input, output and exit status pass through; what
ptkit says goes to standard error. Ctrl-C, SIGTERM and SIGHUP end the recording and keep what was recorded
until then. An earlier recording of the same name is kept as FILE.old; a file that is not a recording is not
overwritten.

FILTER says which code is traced, in the words of `perf record --filter`:
  filter LOCATION [@ FILE]      only code of a function, or of ADDRESS/SIZE, or (*) of a whole file
  start LOCATION [@ FILE]       tracing is off until LOCATION is executed
  stop LOCATION [@ FILE]        tracing ends where LOCATION is executed, until the next start
  tracestop LOCATION [@ FILE]   tracing ends for good where a function or ADDRESS/SIZE is entered
LOCATION is a symbol, or an address; with FILE (a path, or a name without folder) an offset in it.

TRIGGER starts, stops or keeps the recording:
  start|stop|snapshot at LOCATION [xCOUNT] [@ FILE]   when LOCATION is executed, for the COUNTth time
  start|stop|snapshot on SIGNAL [xCOUNT]              when the program gets a signal
start: nothing is recorded until then. stop: the recording ends and the program runs on. snapshot: the trace
in the ring (see --ring) is kept, each COUNTth time anew. For stop and snapshot xCOUNT counts only while
recording is on."""
EXAMPLES = """examples:
  ptkit record -o sort.ptk -- sort README.md
  ptkit record -o true.ptk --timing tsc,mtc --psb-period 2048 -- true
  ptkit record --max-instructions 1000000 -- python3 -c 'print(1)'
  ptkit record --filter 'filter main @ ./a.out' -- ./a.out
  ptkit record --filter 'start parse, stop free_all' --filter 'filter * @ libc.so.6' -- ./a.out
  ptkit record --trigger 'start at main' --trigger 'stop at malloc x1000 @ libc.so.6' -- ./a.out
  ptkit record --ring 64M --trigger 'snapshot on USR1' --snapshot-on USR2 -- ./server
  ptkit record --backend driver --levels both -- ./a.out
  ptkit record --backend driver --levels kernel --filter 'filter * @ e1000e.ko' -a --seconds 5
  ptkit record --backend driver -p 1234 --seconds 2
  ptkit record --backend perf --levels both -- ./a.out
  ptkit record --backend perf -a --ring 16M --snapshot-on USR2 --event noretcomp
  ptkit record --bts -- ./a.out
  ptkit record --branch-stack=any_call --sample-frequency 1000 -- ./a.out"""

_SECTIONS = {
    "scope": "what is recorded",
    "packets": "which packets",
    "units": "only with --backend perf or driver",
}
_NOTHING_MATCHED = 2  # exit status


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.usage = "ptkit record [OPTIONS] [-o FILE] [-a | -C CPUS | -p PID] -- PROGRAM ARGS"
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="trace.ptk", help="the bundle (default: trace.ptk)"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    parser.add_argument(
        "--index", action="store_true", help="write an index beside the bundle, as `ptkit index` does"
    )
    groups: dict[str, argparse._ActionsContainer] = {"general": parser}
    groups |= {name: parser.add_argument_group(title) for name, title in _SECTIONS.items()}
    processors = groups["units"].add_mutually_exclusive_group()
    for row in option_rows().values():
        if row.flags:
            _add_option(processors if row.name == "cpus" else groups[row.section], row)
    groups["scope"].add_argument(
        "--snapshot-on",
        metavar="SIGNAL",
        help="keep the trace in the ring when ptkit itself gets SIGNAL, such as USR2",
    )
    processors.add_argument(
        "-a",
        "--all-cpus",
        dest="cpus",
        action="store_const",
        const="all",
        help="record whatever runs on any processor",
    )
    common.add_json_option(parser, "report as JSON, on standard error: standard output is the program's")
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- PROGRAM ARGS",
        help="the program to run, and its arguments",
    )


def _add_option(group: argparse._ActionsContainer, row: OptionRow) -> None:
    """Add an option of the table. Without the option on the command line, its value is None."""
    keywords: dict[str, Any] = {"dest": row.name, "help": Rare(row.help) if row.rare else row.help}
    if row.kind == "FLAG":
        keywords |= {"action": "store_const", "const": not row.is_on}
    else:
        keywords["metavar"] = row.metavar
    if row.kind in ("FILTERS", "TRIGGERS"):
        keywords["action"] = "append"
    elif row.kind in ("NUMBER", "POWER_OF_TWO"):
        keywords["type"] = common.number(row.most, row.least)
    elif row.kind == "DURATION":
        keywords["type"] = float
    elif row.kind == "CPUS":
        keywords["type"] = cpu_numbers
    elif row.kind == "BRANCHES":
        keywords |= {"nargs": "?", "const": "any"}
    group.add_argument(*row.flags.split(), **keywords)


def _recorder_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the table that were given."""
    rows = option_rows().values()
    given = {row.name: getattr(options, row.name) for row in rows if row.flags}
    return {name: value for name, value in given.items() if value is not None}


def run(options: argparse.Namespace) -> int:
    """Record, print a line on standard error, return the program's exit status."""
    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    given = _recorder_options(options)
    if not program and not {"pid", "cpus"} & set(given):
        raise ValueError("no program to run: write `ptkit record -o FILE -- PROGRAM ARGS`")
    recorder = ptkit.Recorder(program, options.output, **given)
    line = RecordingLine(enabled=not options.quiet)
    try:
        with ending_signals(), _snapshots(recorder, options.snapshot_on):
            recording = recorder.run(line.at)
    finally:
        line.clear()
    _report(recording, options)
    if nothing := _nothing_matched(options, recording):
        print(f"ptkit record: error: {nothing}", file=sys.stderr)
        return recording.exit_status or _NOTHING_MATCHED
    if options.index and recording.streams:
        _write_index(recording.path, options)
    return recording.exit_status


def _write_index(path: Path, options: argparse.Namespace) -> None:
    """Write the index of a recording, unless root would decode what belongs to a user."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 != path.stat().st_uid:
        print_text(
            f"ptkit record: note: {path} belongs to a user, and what a user records is not decoded by root: "
            f"`ptkit index {quote(str(path))}` writes the index",
            errors=True,
        )
        return
    trace = ptkit.open(path, index=False)
    with decoding(trace, activity="indexing", passes=PASSES):
        made = trace.index()
    if not options.quiet and not options.json:
        print_text(f"ptkit: {made}", errors=True)


def _nothing_matched(options: argparse.Namespace, recording: Recording) -> str:
    """Why filters or triggers make the recording useless; empty if they do not."""
    if not options.filters and not options.triggers:
        return ""
    if recording.unmatched:
        return f"{recording.unmatched} of the filters and triggers matched nothing (see the warnings)"
    if recording.instructions == 0 and recording.backend == "emulator":
        return "no instruction was recorded: no code of the filters and no start trigger was executed"
    return ""


@contextmanager
def _snapshots(recorder: Recorder, name: str | None) -> Iterator[None]:
    """Take a snapshot whenever this process gets a signal."""
    if name is None:
        yield
        return
    from ptkit.capture.triggers import signal_number
    from ptkit.errors import ConfigError

    if not recorder.has_ring:
        raise ConfigError("--snapshot-on: there is no ring; give its size, such as --ring 64M")

    def keep(number: int, frame: Any) -> None:
        if recorder.running:
            recorder.snapshot()

    number = signal_number(name)
    before = signal.signal(number, keep)
    try:
        yield
    finally:
        signal.signal(number, before)


def _report(recording: Recording, options: argparse.Namespace) -> None:
    if not options.json:
        for warning in recording.warnings:
            print_text(f"ptkit: warning: {warning}", errors=True)
    if options.json:
        # Standard output belongs to the program.
        earlier = None if recording.earlier is None else str(recording.earlier)
        members = asdict(recording) | {"path": str(recording.path), "earlier": earlier}
        print_document("record", members, errors=True)
    elif not options.quiet:
        by_trigger = bool(options.triggers) and recording.instructions < (options.max_instructions or 2**63)
        print(f"ptkit: {_summary(recording, by_trigger=by_trigger)}", file=sys.stderr)


def _summary(recording: Recording, *, by_trigger: bool) -> str:
    """One line: the bundle, how much it holds, how the recording ended, and which back end wrote it."""
    parts = []
    if recording.instructions:
        parts.append(counted(recording.instructions, "instruction"))
    if recording.branches:
        parts.append(counted(recording.branches, "branch", "branches"))
    parts.append(counted(recording.streams, "stream"))
    parts.append(f"{counted(recording.trace_bytes, 'byte')} of trace")
    if recording.dropped_bytes:
        parts.append(f"{counted(recording.dropped_bytes, 'byte')} before them dropped")
    if recording.snapshots:
        parts.append(counted(recording.snapshots, "snapshot"))
    parts.append(f"{recording.seconds:.1f} s")
    if recording.interrupted:
        parts.append("interrupted")
    elif recording.limited:
        parts.append("stopped by trigger" if by_trigger else "limit reached")
    backend = EMULATED_TIMES if recording.backend == EMULATOR else f"backend {recording.backend}"
    why = "; `ptkit doctor` reports what other back ends need" if recording.reason else ""
    earlier = "" if recording.earlier is None else f"; the earlier recording is {recording.earlier} now"
    return f"{recording.path}: {', '.join(parts)} ({backend}{why}){earlier}"
