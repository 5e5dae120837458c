"""Runs `ptkit selftest` in the guest, once for each argument: FAULT:BACKEND:CHECK,CHECK... (no check: all).

One process for all of them, as it takes seconds to start Python. FAULT-BACKEND.json and FAULT-BACKEND.status
go to the host.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ptkit.cli.main import main


def run(fault: str, backend: str, checks: str) -> None:
    """Plant a fault, make the checks, and send the report."""
    name = f"{fault}-{backend}"
    words = ["selftest", "--backend", backend, "--report", f"{name}.json"]
    for check in filter(None, checks.split(",")):
        words += ["--check", check]
    subprocess.run(["host", "fault", fault], check=True)
    Path(f"{name}.status").write_text(str(main(words)))
    for file in (f"{name}.json", f"{name}.status"):
        subprocess.run(["host", "put", file, file], check=True)


for argument in sys.argv[1:]:
    run(*argument.split(":"))
    sys.stdout.flush()
