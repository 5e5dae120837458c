"""``ptkit selftest``: whether this processor's tracing can be believed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from ptkit.cli import common
from ptkit.cli.output.json_values import SCHEMA, print_document
from ptkit.cli.output.terminal import print_text
from ptkit.cli.parser import EXIT_INTERRUPTED, Rare
from ptkit.errors import ConfigError, UnsupportedError
from ptkit.selftest import (
    BACKENDS,
    FAILED,
    NOTHING_TESTED,
    SOME_FAILED,
    Outcome,
    Plan,
    Session,
    causes,
    make_report,
    status_of,
)
from ptkit.support.text import counted

DESCRIPTION = """\
Records small programs by each back end that works here, and compares every instruction with single steps.
Looks for contradictions between timing packets, and checks filters, tables of regions, interrupts, losses,
rings and registers. The programs are made by ptkit itself; nothing else of this machine is recorded, but the
kernel, if that is permitted. docs/selftest.md says what each check shows.

Ctrl-C ends the checks, and what was done until then is reported. Exit status: 0 all checks passed that could
be made, 1 a check failed, 3 no check of the processor's own tracing could be made."""
EXAMPLES = """examples:
  ptkit selftest --backend step
  ptkit selftest --backend step --json
  sudo ptkit selftest
  sudo ptkit selftest --report selftest.json
  sudo ptkit selftest --backend perf --check returns --seconds 600
  sudo ptkit selftest --cpu 8"""

_ALL = "all"


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument(
        "--backend", choices=(_ALL, *BACKENDS), default=_ALL, help="back end to check (default: all)"
    )
    parser.add_argument(
        "--check", metavar="NAME", action="append", default=[], help="only this check; may be repeated"
    )
    parser.add_argument(
        "--report", metavar="FILE", type=Path, help="also write a report, without paths and names (JSON)"
    )
    parser.add_argument(
        "--seconds", metavar="N", type=_seconds, default=0.0,
        help="repeat what passes with other programs until N seconds are over (default: once)",
    )  # fmt: skip
    parser.add_argument(
        "--cpu",
        metavar="N",
        type=common.number(),
        help="processor that the programs run on (default: the first)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=common.number(),
        default=1,
        help=Rare("number that the programs are made from"),
    )
    common.add_json_option(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds, such as 60")
    return value


def run(options: argparse.Namespace) -> int:
    """Make the checks, print a line for each, and write the report."""
    if sys.platform == "win32":
        raise UnsupportedError(
            "the checks record by Linux; `ptkit-capture doctor` reports what this machine has on Windows"
        )
    backends = BACKENDS if options.backend == _ALL else ("step", options.backend)
    backends = tuple(dict.fromkeys(backends))
    if options.check:
        backends = backends if options.backend == _ALL else (options.backend,)
    plan = Plan(backends, tuple(options.check), options.cpu, options.seconds, options.seed)
    _expect_writable(options.report)
    session = Session(plan, _ignore if options.json else _show)
    interrupted = _run(session)
    report = make_report(session)
    if options.report is not None:
        document = {"schema": SCHEMA, "document": "selftest", **report}
        options.report.write_text(json.dumps(document, indent=2) + "\n")
    if options.json:
        print_document("selftest", report)
    else:
        _summarize(session, report)
    status = status_of(session)
    return EXIT_INTERRUPTED if interrupted and status != SOME_FAILED else status


def _expect_writable(report: Path | None) -> None:
    """Refuse a report that could not be written at the end."""
    if report is None:
        return
    if report.is_dir():
        raise ConfigError(f"--report {report}: this is a folder; name a file")
    if not os.access(report if report.exists() else report.parent, os.W_OK):
        raise ConfigError(f"--report {report}: it cannot be written; name a file in a folder of yours")


def _run(session: Session) -> bool:
    """Make the checks; Ctrl-C ends them, and what was done until then is reported."""
    try:
        session.run()
    except KeyboardInterrupt:
        if not session.outcomes:
            raise
        return True
    return False


def _ignore(outcome: Outcome) -> None:
    """JSON has all outcomes at the end."""


def _show(outcome: Outcome) -> None:
    print_text(f"{outcome.backend:<7} {outcome.check:<14} {outcome.result:<9} {outcome.detail}")
    sys.stdout.flush()  # a check may take long, and a pipe has a buffer


def _summarize(session: Session, report: dict[str, Any]) -> None:
    outcomes = list(session.outcomes.values())
    roots = causes(outcomes)
    print_text("")
    counts = f"{report['passed']} passed, {report['failed']} failed, {report['unavailable']} unavailable"
    print_text(f"{counted(len(outcomes), 'check')}: {counts} ({counted(session.rounds, 'round')})")
    for outcome in roots:
        print_text(f"{outcome.backend} {outcome.check}: {outcome.suggests}")
    for outcome in outcomes:
        if outcome.result == FAILED and outcome.follows:
            others = ", ".join(outcome.follows)
            print_text(f"{outcome.backend} {outcome.check}: may follow from {others}; {outcome.suggests}")
    if status_of(session) == NOTHING_TESTED:
        print_text("No tracing by the processor itself was checked: `ptkit doctor` reports what is missing.")
