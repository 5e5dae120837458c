"""The installed wheel in the emulated machine, with Debian's Python."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import boot_image
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
ptkit doctor --plan -o planned.ptk --backend perf --seconds 0.4 -- bursts 8 500000 120 > plan || exit 1
put plan
$(tail -n 1 plan) || exit 1; put planned.ptk
ptkit record --backend perf -m 64K -o small.ptk -- bursts 8 500000 120 || exit 1; put small.ptk
"""


@pytest.fixture(scope="module")
def run(machine: Machine, run_folder: Path) -> Run:
    """A run in which every command of SCRIPT succeeded."""
    folder = run_folder / "installed"
    folder.mkdir()
    bursts = boot_image.compile_static(boot_image.GUEST / "bursts.c", folder / "bursts")
    run = machine.run(SCRIPT, folder, files={"bin/bursts": bursts}, python=True)
    assert run.status == 0, run.files.get("log", run.serial.encode()).decode()
    return run


def test_package_is_installed_with_its_version(run: Run) -> None:
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


def opened(run: Run, name: str, folder: Path) -> ptkit.Trace:
    """A bundle of the guest."""
    bundle = folder / name
    bundle.write_bytes(run.files[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(bundle)


def test_record_writes_a_bundle(run: Run, tmp_path: Path) -> None:
    trace = opened(run, "true.ptk", tmp_path)
    assert len(trace.errors) == 0, trace.errors
    assert of_code(trace.info.warnings, "FILES_NOT_PARSED") == []
    assert len(trace.instructions(columns=["ip"])) > 10_000


def test_a_plan_is_of_the_trace_unit(run: Run) -> None:
    plan = run.files["plan"].decode()
    assert re.match(r"probe: 0\.\d+ s with backend perf, [\d,]+ bytes of trace", plan)
    assert "losses in the probe: none" in plan
    assert all(f"{name} " in plan for name in ("CYC", "MTC", "TNT", "PSB+"))
    assert "not of a processor" not in plan
    # A buffer of 64 KiB, which loses trace, is said to be too small. Whether a larger one suffices depends on
    # what the recorder takes, which the machine's clock changes.
    found = re.search(r"\(defaults\).* (none|\d+[KM]) ", plan)
    assert found is not None
    assert found[1] != "64K"


def test_what_a_plan_recommends_loses_nothing_that_a_small_buffer_loses(run: Run, tmp_path: Path) -> None:
    planned, small = (opened(run, name, tmp_path) for name in ("planned.ptk", "small.ptk"))
    assert [sum(stream.losses for stream in trace.info.streams) > 0 for trace in (planned, small)] == [
        False,
        True,
    ]
    assert len(planned.errors) == 0, planned.errors
