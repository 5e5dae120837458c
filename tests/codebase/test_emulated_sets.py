"""Each test of the emulated machine is in one of the sets that CI runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from emulated_sets import QUICK, TURNS, clock_for, modules_for

MACHINES = Path(__file__).resolve().parents[1] / "machines"


def test_each_module_is_in_one_set() -> None:
    modules = {
        path.relative_to(MACHINES).as_posix()
        for path in MACHINES.rglob("test_*.py")
        if "mark.emulated" in path.read_text(encoding="utf-8")
    }
    named = Counter(QUICK) + Counter(module for turn in TURNS for module in turn)
    assert modules == set(named)
    assert set(named.values()) == {1}


def test_commits_in_turn_run_all() -> None:
    turns = [modules_for(f"{number:08x}" + 32 * "0") for number in range(len(TURNS))]
    assert frozenset.union(*turns) == set(QUICK).union(*TURNS)
    assert all(set(QUICK) < turn for turn in turns)


def test_clock_is_of_the_commit() -> None:
    clocks = {clock_for(f"{number:08x}" + "0" * 32) for number in range(0, 1 << 32, 1 << 25)}
    assert len(clocks) == 128
    assert all(2023 <= datetime.fromtimestamp(clock, timezone.utc).year < 2033 for clock in clocks)


def test_modules_after_the_limit_of_time_are_skipped() -> None:
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            MACHINES / "linux_driver/test_sweep.py",
        ],
        env=os.environ | {"PTKIT_EMULATED": "1", "PTKIT_EMULATED_SECONDS": "0"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout
    assert "PTKIT_EMULATED_SECONDS=0 are over" in ran.stdout
    assert "passed" not in ran.stdout
