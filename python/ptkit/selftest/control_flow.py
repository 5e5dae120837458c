"""Checks of the control flow: every instruction against single stepping."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import ptkit
from ptkit.capture import probe
from ptkit.selftest import programs
from ptkit.selftest.bench import Bench, Taken
from ptkit.selftest.compare import expect_all, expect_tail
from ptkit.selftest.outcome import CheckFailed, Unavailable
from ptkit.support.text import counted

__all__ = [
    "all_programs",
    "compare_emulator",
    "compare_filter",
    "compare_instructions",
    "compare_kernel",
    "compare_kernel_alone",
    "compare_returns",
    "compare_ring",
    "compare_single_range",
    "compare_steps",
    "long_program",
]

_INSTRUCTIONS = 4000
_ROUNDS = 40
_RETURNS = 14_000  # seven bytes of trace each
_RING = "64K"
_STATED = (ptkit.GapCause.START, ptkit.GapCause.OVERFLOW)  # gaps that a trace unit itself states
_KERNEL_CODE = "/proc/kcore"
_KERNEL = np.uint64(1 << 63)
_OFFSET = 0x400000 - 0x1000  # of code, from its offset in the file


def all_programs(bench: Bench) -> list[programs.Program]:
    """Return the programs that are compared instruction by instruction."""
    return [
        programs.branches(bench.seed, _INSTRUCTIONS),
        programs.deep_returns(4),
        programs.filtered(_ROUNDS),
        long_program(),
    ]


def long_program() -> programs.Program:
    """Return the program with the most trace."""
    return programs.long_targets(_RETURNS)


def compare_steps(bench: Bench) -> str:
    """Run each program twice by single steps; what is decoded of the second run has to be the same, too."""
    total = 0
    for program in all_programs(bench)[:-1]:
        executed = bench.executed(program)
        taken = bench.record(program)
        try:
            expect_all(taken.rows(), executed)
        except CheckFailed as failure:
            raise CheckFailed(f"{program.name}: {failure}") from None
        total += len(executed)
    return f"{counted(total, 'instruction')} the same in two runs"


def compare_emulator(bench: Bench) -> str:
    """Run a program in QEMU."""
    emulator = next(one for one in probe() if one.name == "emulator")
    if not emulator.available:
        raise Unavailable(emulator.missing)
    program = programs.branches(bench.seed, _INSTRUCTIONS)
    return expect_all(bench.record_by("emulator", program).rows(), bench.executed(program))


def _compare(bench: Bench, program: programs.Program, **options: Any) -> tuple[str, Taken]:
    taken = bench.record(program, **options)
    return expect_all(taken.rows(), bench.executed(program)), taken


def compare_instructions(bench: Bench) -> str:
    """Compare all kinds of branches, each RET as a TIP packet."""
    return _compare(bench, programs.branches(bench.seed, _INSTRUCTIONS), return_compression=False)[0]


def compare_returns(bench: Bench) -> str:
    """Compare returns that are compressed, that are not, and that must not be."""
    sizes = []
    for program in (programs.deep_returns(4), programs.branches(bench.seed, _INSTRUCTIONS)):
        executed = bench.executed(program)
        found = {}
        for compressed in (False, True):
            taken = bench.record(program, return_compression=compressed)
            try:
                expect_all(taken.rows(), executed)
            except CheckFailed as failure:
                setting = "with return compression" if compressed else "without return compression"
                raise CheckFailed(f"{program.name}, {setting}: {failure}") from None
            found[compressed] = taken.recording.trace_bytes
        sizes.append(found)
    plain, short = (sum(found[one] for found in sizes) for one in (False, True))
    return f"the same instructions from {short} and, without return compression, {plain} bytes"


def compare_kernel(bench: Bench) -> str:
    """Compare user code that is traced with the kernel, and decode the kernel's code without errors."""
    _expect_kernel_code()
    words, taken = _compare(bench, programs.branches(bench.seed, _INSTRUCTIONS), levels="both")
    return f"{words}, and {_kernel_rows(taken)} of the kernel"


def compare_kernel_alone(bench: Bench) -> str:
    """Decode the kernel's code without errors, and find no user code."""
    _expect_kernel_code()
    taken = bench.record(programs.branches(bench.seed, _INSTRUCTIONS), levels="kernel")
    table = taken.instructions()
    user = int(np.count_nonzero(table["ip"] < _KERNEL))
    if user:
        raise CheckFailed(
            f"{counted(user, 'instruction')} of user code, and the kernel alone was to be traced"
        )
    return f"{_kernel_rows(taken)} of the kernel"


def _expect_kernel_code() -> None:
    if not os.access(_KERNEL_CODE, os.R_OK):
        raise Unavailable(f"the kernel's code cannot be read ({_KERNEL_CODE}): run as root, without lockdown")


def _kernel_rows(taken: Taken) -> str:
    table = taken.instructions()
    errors, gaps = taken.rows().errors, table.gaps
    assert gaps is not None
    if errors:
        raise CheckFailed(f"kernel code: {counted(len(errors), 'decoding error')}: {errors[0]}")
    causes = [ptkit.GapCause(cause) for cause in gaps["cause"].tolist()]
    lost = [cause for cause in causes if cause not in _STATED]
    if lost:
        raise CheckFailed(f"kernel code: control flow is not continuous: {lost[0].name}")
    found = int(np.count_nonzero(table["ip"] >= _KERNEL))
    if not found:
        raise CheckFailed("no instruction of the kernel, and the program makes system calls")
    return counted(found, "instruction")


def compare_filter(bench: Bench) -> str:
    """Trace one function; those before and after it have no byte between it and them."""
    program = programs.filtered(_ROUNDS)
    begin, end = program.labels["inside"], program.labels["behind"]
    code = ptkit.Filter.range(begin - _OFFSET, end - begin, bench.write(program))
    executed = bench.executed(program)
    inside = executed[(executed >= begin) & (executed < end)]
    rows = bench.record(program, filters=[code], return_compression=False).rows()
    outside = np.flatnonzero((rows.ip < begin) | (rows.ip >= end))
    if len(outside):
        ip = int(rows.ip[outside[0]])
        distance = f"{begin - ip} bytes before" if ip < begin else f"{ip - end} bytes after"
        raise CheckFailed(
            f"{counted(len(outside), 'instruction')} outside of the range, the first {distance} it"
        )
    return f"{expect_all(rows, inside)} of {len(executed)}, those of the range"


def compare_ring(bench: Bench) -> str:
    """Keep only the last bytes of the trace."""
    return _ring(bench)


def compare_single_range(bench: Bench) -> str:
    """Keep only the last bytes of the trace, in one range of memory instead of a table."""
    return _ring(bench, single_range=True)


def _ring(bench: Bench, **options: Any) -> str:
    program = long_program()
    taken = bench.record(program, ring=_RING, return_compression=False, psb_period=2048, **options)
    return expect_tail(taken.rows(), bench.executed(program), 1000)
