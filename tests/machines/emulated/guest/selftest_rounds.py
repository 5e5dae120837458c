"""Runs the self-test in the guest, once for each argument: FAULT:BACKEND:CHECK,CHECK...

One process for all of them, as it takes seconds to start Python. Without a fault it is `ptkit selftest`. With
one, single steps are those of the earlier faults. FAULT-BACKEND.json and FAULT-BACKEND.status go to the host.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ptkit.cli.main import main
from ptkit.selftest import Plan, Session, make_report, status_of

truths = {}


def run_command(backend: str, checks: list[str], report: Path) -> int:
    """The command."""
    words = ["selftest", "--backend", backend, "--report", str(report)]
    return main(words + [word for check in checks for word in ("--check", check)])


def run_again(backend: str, checks: list[str], report: Path) -> int:
    """These checks with single steps that were recorded before."""
    session = Session(Plan((backend,), tuple(checks)), print, truths=truths)
    session.run()
    report.write_text(json.dumps(make_report(session)))
    return status_of(session)


def run(fault: str, backend: str, checks: str) -> None:
    """Plant a fault, make the checks, and send the report."""
    report, status = Path(f"{fault}-{backend}.json"), Path(f"{fault}-{backend}.status")
    subprocess.run(["host", "fault", fault], check=True)
    runs = run_command if fault == "none" else run_again
    status.write_text(str(runs(backend, checks.split(","), report)))
    for file in (report, status):
        subprocess.run(["host", "put", file, file], check=True)


for argument in sys.argv[1:]:
    run(*argument.split(":"))
    sys.stdout.flush()
