"""The checks of each back end, in the order in which they are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ptkit.selftest import branch_records, clocks, control_flow, output
from ptkit.selftest.bench import Bench

__all__ = ["BACKENDS", "CHECKS", "Check"]


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    name : str
    run : callable
        Makes the check; returns what was compared, raises `CheckFailed` or `Unavailable`.
    suggests : str
        Where to look if it fails.
    follows : tuple of str
        Checks that, if they fail, may make this one fail.
    records : str
        As `ptkit.capture.Backend.records`.
    """

    name: str
    run: Callable[[Bench], str]
    suggests: str
    follows: tuple[str, ...] = ()
    records: str = "packets"


_STEP = (
    Check(
        "programs",
        control_flow.compare_steps,
        "the programs do not do the same in each run, or single steps are not decoded rightly: no other check"
        " can be believed",
    ),
    Check(
        "emulator",
        control_flow.compare_emulator,
        "QEMU and this processor execute different instructions, or one of both recordings is wrong",
        ("programs",),
    ),
)

_PACKETS = (
    Check(
        "instructions",
        control_flow.compare_instructions,
        "TNT, TIP or FUP packets (or what ptkit makes of them) are wrong: compare with `ptkit verify`, and"
        " look for errata of this processor",
    ),
    Check(
        "returns",
        control_flow.compare_returns,
        "return compression: a RET that was compressed does not lead to the end of its CALL; record with"
        " --no-return-compression",
        ("instructions",),
    ),
    Check(
        "tsc",
        clocks.check_tsc,
        "TSC packets are wrong: do not trust times of this machine",
    ),
    Check(
        "mtc",
        clocks.check_mtc,
        "MTC or TMA packets do not count the crystal clock as CPUID 15H and MTCFreq state: record with"
        " --timing tsc, and look for errata of MTC and TMA",
        ("tsc",),
    ),
    Check(
        "cyc",
        clocks.check_cyc,
        "CYC packets do not agree with CBR and MTC packets: record without CYC; or the frequency changed much"
        " meanwhile (repeat the check)",
        ("tsc", "mtc"),
    ),
    Check(
        "filter",
        control_flow.compare_filter,
        "address filter: ADDRn_A and ADDRn_B do not bound what is traced; do not filter, or select later with"
        " --ip",
        ("instructions",),
    ),
    Check(
        "regions",
        output.check_regions,
        "ToPA: bytes are wrong, missing or in another order where one region of the table ends; use a larger"
        " --buffer, so that fewer regions end",
        ("instructions",),
    ),
    Check(
        "interrupts",
        output.check_interrupts,
        "interrupt: the trace unit's interrupt (INT of a ToPA entry) does not arrive: full buffers are"
        " noticed late, and more is lost than need be",
    ),
    Check(
        "losses",
        output.check_losses,
        "losses: trace is missing and no record reports it (Linux' perf has such a bug with very small "
        "buffers: docs/emulated-machine.md), or what was read is not what was written",
        ("instructions", "regions", "interrupts"),
    ),
    Check(
        "ring",
        control_flow.compare_ring,
        "ring: what is left of a ring is not the newest trace",
        ("instructions", "regions"),
    ),
    Check(
        "kernel",
        control_flow.compare_kernel,
        "packets at changes of the privilege level are wrong, or the kernel's code was not read as it was"
        " executed",
        ("instructions", "returns"),
    ),
    Check(
        "kernel-alone",
        control_flow.compare_kernel_alone,
        "the filter of privilege levels (OS, User of IA32_RTIT_CTL) is wrong, or the kernel's code was not"
        " read as it was executed",
        ("instructions", "returns", "kernel"),
    ),
    Check(
        "registers",
        output.check_registers,
        "registers of the trace unit are left changed: other users of it would trace, or trace wrongly",
    ),
)

_NO_TIME = Check(
    "no-time",
    clocks.check_no_time,
    "packets that were not asked for: see IA32_RTIT_CTL in `ptkit info --verbose`",
    ("instructions",),
)
_STORE = Check(
    "bts",
    branch_records.check_branch_store,
    "Branch Trace Store: records are missing, or are no branches that were executed",
    records="bts",
)
_STACKS = Check(
    "branch-stacks",
    branch_records.check_branch_stacks,
    "LBR: the last branch records hold branches that were not executed",
    records="branch_stack",
)
_SINGLE_RANGE = Check(
    "single-range",
    control_flow.compare_single_range,
    "single-range output: what is left of the ring is not the newest trace",
    ("instructions",),
)

CHECKS: dict[str, tuple[Check, ...]] = {
    "step": _STEP,
    "perf": (*_PACKETS, _NO_TIME, _STORE, _STACKS),
    "driver": (*_PACKETS, _SINGLE_RANGE),
}
BACKENDS = tuple(CHECKS)
