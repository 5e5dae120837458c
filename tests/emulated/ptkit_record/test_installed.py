"""The installed wheel in the emulated machine, with Debian's Python."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from machine import Machine, Run
from warned import of_code

import ptkit

pytestmark = pytest.mark.emulated

SCRIPT = """\
put() { host put "$1" "/tmp/$1"; }
python3 -c 'import ptkit; print(ptkit.__file__, ptkit.__version__)' > where || exit 1; put where
"$(dirname "$(cut -d' ' -f1 where)")/ptkit-parser"; echo $? > parser; put parser
ptkit doctor --json > doctor || exit 1; put doctor
ptkit msr explain 0x570 0x2509 > explained || exit 1; put explained
ptkit record --backend step -o true.ptk -- true || exit 1; put true.ptk
"""


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """A run in which every command of SCRIPT succeeded."""
    run = machine.run(SCRIPT, run_folder / "installed", python=True)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


def test_it_is_installed(run: Run) -> None:
    path, version = run.files["where"].decode().split()
    assert path.startswith("/usr/local/lib/python3")
    assert version == ptkit.__version__


def test_program_that_parses_files_finds_its_libraries(run: Run) -> None:
    assert run.files["parser"].decode().strip() == "2"  # it was not started by a recorder


def test_doctor(run: Run) -> None:
    report = json.loads(run.files["doctor"])
    assert report["version"] == ptkit.__version__
    backends = {backend["name"]: backend for backend in report["backends"]}
    assert backends["step"]["available"]
    # Here there is Processor Trace, so that is not what is missing.
    assert "no Intel PT" not in json.dumps([backends["perf"], backends["driver"]])


def test_registers_are_explained(run: Run) -> None:
    words = run.files["explained"].decode()
    assert all(name in words for name in ("TraceEn", "BranchEn", "TSCEn", "User"))


def test_a_bundle_comes_out(run: Run, tmp_path: Path) -> None:
    bundle = tmp_path / "true.ptk"
    bundle.write_bytes(run.files[bundle.name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        trace = ptkit.open(bundle)
    assert len(trace.errors) == 0, trace.errors
    assert of_code(trace.info.warnings, "FILES_NOT_PARSED") == []
    assert len(trace.instructions(columns=["ip"])) > 10_000
