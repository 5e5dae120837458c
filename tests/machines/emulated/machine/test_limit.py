"""The limit of a run of the machine, with scripts instead of the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine import Machine


@pytest.mark.parametrize(("script", "stopped"), [("sleep 1.5", True), ("while :; do :; done", False)])
def test_only_processor_time_counts(script: str, stopped: bool, tmp_path: Path) -> None:
    program = tmp_path / "emulator"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    machine = Machine.__new__(Machine)  # not built
    machine.program, machine.bios = program, tmp_path
    assert machine._emulate(tmp_path / "bochsrc.txt", tmp_path, 1) is stopped
