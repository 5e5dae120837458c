"""``ptkit doctor``: what this machine can do, and what is missing."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import ptkit
from ptkit import _core
from ptkit.cli import common
from ptkit.cli.output.json_values import print_document
from ptkit.cli.output.terminal import console, print_text
from ptkit.cli.signals import ending_signals
from ptkit.errors import ConfigError

DESCRIPTION = """\
Says which ways of recording work on this machine and what the others need, which decoders there are, and
whether other users could read a recording in this folder.

With --plan, records a probe of 200 ms (2 s where no processor traces), and says how much trace there is,
how much of it would be lost, and which options of `ptkit record` avoid that. The probe has all timing
packets, and other settings are computed from its packets. PROGRAM is started for the probe, and its standard
output is discarded. When the probe ends, PROGRAM and its children get SIGTERM (with `--backend step` SIGINT),
and SIGKILL if PROGRAM still runs five seconds later. With --keep it runs to its end instead, and the plan
comes then. A process of -p and those of -a run on: for a program that must not end, start it yourself and
give its PID."""
EXAMPLES = """examples:
  ptkit doctor
  ptkit doctor --json
  ptkit doctor --plan -- ./a.out
  ptkit doctor --plan --timing tsc,mtc,cyc --levels both -o /var/tmp/trace.ptk -- ./a.out
  ptkit doctor --plan --seconds 1 -p 1234
  ptkit doctor --plan -a"""

_PLANNED = ("output", "backend", "timing", "levels", "filter", "pid", "all_cpus", "cpu", "seconds", "keep")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.usage = "ptkit doctor [--json] [--plan [OPTIONS] [-a | -C CPUS | -p PID] -- PROGRAM ARGS]"
    common.add_json_option(parser)
    parser.add_argument(
        "--plan", action="store_true", help="record a probe, and report which options a recording needs"
    )
    _add_plan(parser.add_argument_group("only with --plan"))
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- PROGRAM ARGS",
        help="the program to probe, and its arguments",
    )


def _add_plan(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-o", "--output", metavar="FILE", help="where the recording is to be written (default: trace.ptk)"
    )
    group.add_argument("--backend", help="auto, or a name that `ptkit doctor` lists (default: auto)")
    group.add_argument("--seconds", type=float, metavar="S", help="length of the probe")
    group.add_argument("--keep", action="store_true", help="let PROGRAM run to its end, without trace")
    group.add_argument(
        "--timing",
        metavar="KINDS",
        help="timing packets that the recording should have: any of tsc,mtc,cyc, or none (default: as for "
        "`ptkit record`)",
    )
    group.add_argument(
        "--levels", metavar="LEVELS", help="trace user code, kernel code or both: user, kernel, both"
    )
    group.add_argument(
        "--filter", metavar="FILTER", action="append", help="trace only some code; may be repeated"
    )
    group.add_argument(
        "-p", "--pid", type=common.number(2**31 - 1, 1), metavar="PID", help="probe a running process"
    )
    group.add_argument("-a", "--all-cpus", action="store_true", help="probe whatever runs on any processor")
    group.add_argument(
        "-C", "--cpu", metavar="CPUS", type=common.cpu_numbers, help="probe these processors, such as 0,2-3"
    )


def run(options: argparse.Namespace) -> int:
    """Print a table of back ends and engines, or a plan."""
    if options.plan:
        return _plan(options)
    given = [name for name in _PLANNED if getattr(options, name)]
    if given or options.program:
        word = f"--{given[0].replace('_', '-')}" if given else f"{options.program[-1]!r}"
        raise ConfigError(f"{word} is only for a plan: ptkit doctor --plan -- PROGRAM ARGS")
    return _list_backends(options)


def _plan(options: argparse.Namespace) -> int:
    from ptkit.cli.plan_report import plan_document, print_plan
    from ptkit.planning import plan_recording

    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    more = {
        "backend": options.backend,
        "levels": options.levels,
        "filters": options.filter,
        "pid": options.pid,
        "cpus": "all" if options.all_cpus else options.cpu,
    }
    with ending_signals():
        plan = plan_recording(
            program,
            output=options.output or "trace.ptk",
            seconds=options.seconds,
            keep=options.keep,
            timing=options.timing,
            **{name: value for name, value in more.items() if value is not None},
        )
    if options.json:
        print_document("plan", plan_document(plan))
    else:
        print_plan(plan)
    return 0


def _list_backends(options: argparse.Namespace) -> int:
    from ptkit import capture
    from ptkit.capture.output_file import folder_warnings
    from ptkit.capture.systems import platform

    backends = capture.probe()
    warnings = folder_warnings(Path.cwd())
    best = next((backend.name for backend in backends if backend.available), None)
    engines = _core.engines()
    if options.json:
        print_document(
            "doctor",
            {
                "backends": [asdict(backend) for backend in backends],
                "best": best,
                "engines": engines,
                "place": warnings,
                "version": ptkit.__version__,
            },
        )
        return 0
    from rich.table import Table

    table = Table(title="Recording")
    for heading in ("back end", "available", "what it is, or what it lacks", "how to get it"):
        table.add_column(heading)
    for backend in backends:
        for one in (backend, *backend.others):
            name = one.name if one is backend else f"  --{one.records.replace('_', '-')}"
            table.add_row(name, "yes" if one.available else "no", one.detail, one.remedy)
    screen = console()
    screen.print(f"`ptkit record` uses: {best or 'nothing, as no back end works on this system'}")
    screen.print(table)
    for line in platform.describe():
        print(line)
    screen.print(f"decoders: {', '.join(engines)}")
    for sentence in warnings:
        print_text(f"ptkit doctor: warning: {sentence}", errors=True)
    return 0
