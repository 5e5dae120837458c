"""Linux' perf driver when a reader is late: evidence for docs/emulated-machine.md, "Losses"."""

from __future__ import annotations

import re
from pathlib import Path

import boot_image
import pytest
from machine import Machine

pytestmark = pytest.mark.emulated

AUX_BYTES = 4 * 4096
TRUNCATED = 1
# Bytes that are left when the long stretch begins.
ENOUGH, LITTLE = 0x1C00, 0xFF0


@pytest.fixture(scope="module")
def reports(machine: Machine, run_folder: Path) -> dict[int, list[int]]:
    """By room: where the reader stood, the writer before and behind the long stretch; flags of that."""
    folder = run_folder / "room"
    folder.mkdir()
    program = boot_image.compile_static(boot_image.GUEST / "aux_overrun.c", folder / "aux_overrun")
    script = f"aux_overrun {ENOUGH} && aux_overrun {LITTLE}\n"
    run = machine.run(script, folder / "run", files={"bin/aux_overrun": program})
    log = run.files.get("log", run.serial.encode()).decode()
    assert run.status == 0, log
    lines = [[int(word, 0) for word in re.findall(r"0x\w+|\b0\b", line)] for line in log.splitlines()]
    return dict(zip((ENOUGH, LITTLE), lines, strict=True))


def test_linux_stops_at_the_end_of_free_space(reports: dict[int, list[int]]) -> None:
    tail, before, behind, flags = reports[ENOUGH]
    assert before < behind <= tail + AUX_BYTES
    assert flags & TRUNCATED


def test_linux_overwrites_unread_trace_where_too_little_is_free(reports: dict[int, list[int]]) -> None:
    tail, before, behind, flags = reports[LITTLE]
    assert before < tail + AUX_BYTES
    # A mistake of Linux, not of the trace unit: it puts the STOP marker behind the writer, so a lap away.
    assert behind > tail + AUX_BYTES + 4096
    assert not flags & TRUNCATED
