"""Which tests of the emulated machine a change gets: `make emulated` runs all of them.

CI runs the quick set and one of the turns; the commit's hash says which one, and what the machine's clock
shows, so a run can be repeated.
Modules are named by their path below tests/machines/.
"""

from __future__ import annotations

#: The installed package, the driver's back end, and the driver with a model of the registers.
QUICK = (
    "emulated/ptkit_record/test_installed.py",
    "emulated/ptkit_record/test_driver_recordings.py",
    "linux_driver/test_driver.py",
)
#: Few modules each: no test begins after 20 minutes in CI.
TURNS = (
    ("emulated/ptkit_record/test_mixed_workload.py",),
    ("emulated/ptkit_record/test_selftest_faults.py", "emulated/stock_perf/test_aux_overrun.py"),
    ("emulated/stock_perf/test_stock_recordings.py",),
    ("emulated/stock_perf/test_perf.py", "emulated/stock_perf/test_perf_samples.py"),
    ("emulated/ptkit_driver/test_tasks.py", "emulated/ptkit_record/test_driver_sideband.py"),
    ("emulated/ptkit_record/test_driver_two_cpus.py", "emulated/ptkit_record/test_perf_branches.py"),
    ("emulated/ptkit_record/test_recipes.py", "emulated/stock_perf/test_counters.py"),
    (
        "emulated/ptkit_driver/test_module.py",
        "emulated/ptkit_driver/test_module_smp.py",
        "emulated/ptkit_driver/test_module_bts.py",
        "emulated/stock_perf/test_bts.py",
    ),
    ("emulated/ptkit_record/test_beside_counters.py",),
    ("emulated/ptkit_record/test_beside_intel_pt.py", "emulated/ptkit_record/test_driver_branches.py"),
    ("emulated/ptkit_record/test_perf_recordings.py",),
    ("linux_driver/test_sweep.py",),
)


def modules_for(commit: str) -> frozenset[str]:
    """Return the modules that a change of this hash runs.

    Parameters
    ----------
    commit : str
        Hexadecimal digits.
    """
    return frozenset(QUICK + TURNS[int(commit[:8], 16) % len(TURNS)])


def clock_for(commit: str) -> int:
    """Return what the clock shows at power-on for a change of this hash, in seconds since 1970.

    Parameters
    ----------
    commit : str
        Hexadecimal digits.
    """
    return 1_700_000_000 + int(commit[:7], 16)
