"""The sweep over insertion points (sweep_test.c) fails where the driver lacks one of its precautions.

Each case takes one of them out of a copy of the driver's sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from driver_machine import boot, make_image, require_qemu
from kernels import Kernel

CASE = "goes_on_beside_neighbours"

pytestmark = [pytest.mark.emulated, pytest.mark.slow]


@dataclass(frozen=True)
class Removal:
    """A precaution: its file, its text, what stands there without it, and what the sweep finds then."""

    file: str
    text: str
    without: str
    found: str

    def remove(self, folder: Path) -> None:
        path = folder / "kernel" / self.file
        source = path.read_text(encoding="utf-8")
        assert source.count(self.text) == 1, f"{self.file} does not have {self.text!r} once"
        path.write_text(source.replace(self.text, self.without), encoding="utf-8")


REMOVALS = {
    # perf skips writes of registers that its copies say are right.
    "registers are not put back": Removal(
        "common/pt_unit.c",
        "\tif (!trace->running && is_loaded(unit, trace))\n"
        "\t\tpt_seq_put_back(unit->ops, &trace->state, &unit->found);\n",
        "",
        "registers_are(&before)",
    ),
    "perf's PMU is not reserved": Removal(
        "linux/unit/reserve.c",
        "\t\tpmu_type = ((struct pmu *)dev_get_drvdata(device))->type;\n",
        "\t\tpmu_type = 0;\n",
        "world_misplaced",
    ),
    # perf acknowledges interrupts of the trace unit.
    "nothing runs after perf's handler": Removal(
        "linux/unit/running.c",
        "\tif (trace && !this_cpu_read(guards.at_work) &&\n"
        "\t    pt_unit_has_stopped(this_cpu_ptr(&units), &trace->pt))\n",
        "\tif (trace && false)\n",
        "world_idle",
    ),
    "a status request does not look at the unit": Removal(
        "linux/unit/units.c",
        "\tif (trace->pt.wakes_up && trace->pt.running && trace->pt.head == trace->reported)\n",
        "\tif (false)\n",
        "world_written",
    ),
    "a deferred interrupt has to be pending": Removal(
        "linux/unit/running.c",
        "\t\tif (trace->pt.running)\n\t\t\ttake_early(trace);\n",
        "\t\tif (trace->pt.running && pt_unit_interrupts(this_cpu_ptr(&units), &trace->pt))\n"
        "\t\t\ttake_early(trace);\n",
        "world_idle",
    ),
    "stops are not counted": Removal("common/pt_trace.c", "\ttrace->stops++;\n", "", "has_loss"),
}


@pytest.mark.parametrize("name", REMOVALS)
def test_sweep_fails_where(name: str, kernel: Kernel, tmp_path: Path) -> None:
    """The machine goes on: a neighbour finds what is wrong, not the kernel."""
    require_qemu()
    removal = REMOVALS[name]
    results, _ = boot(kernel, make_image(kernel, tmp_path, removal.remove), f"cases={CASE}")
    print(results)
    assert f"not ok {CASE}" in results.splitlines()
    found = [line for line in results.splitlines() if line.startswith("# ") and "sweep_test.c" in line]
    assert any(removal.found in line for line in found), results
