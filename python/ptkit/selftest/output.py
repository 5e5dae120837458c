"""Checks of the output: tables of regions, interrupts, losses, registers."""

from __future__ import annotations

from dataclasses import dataclass

from ptkit.selftest.bench import Bench, Taken
from ptkit.selftest.compare import expect_all, expect_parts
from ptkit.selftest.control_flow import long_program
from ptkit.selftest.machine import interrupts, read_registers
from ptkit.selftest.outcome import CheckFailed, Unavailable
from ptkit.selftest.programs import branches
from ptkit.support.text import counted

__all__ = ["check_interrupts", "check_losses", "check_regions", "check_registers"]

_BUFFER = 128 << 10
_SMALL_BUFFER = 64 << 10
_TRACE_EN = 1
# Which line of /proc/interrupts counts the trace unit's interrupts.
_COUNTER = {"perf": "PMI", "driver": "NMI"}


@dataclass(frozen=True)
class _Interrupted:
    taken: Taken
    interrupts: int


def _several_regions(bench: Bench) -> _Interrupted:
    """Return a recording that fills three quarters of a buffer; two checks look at it."""
    if "regions" not in bench.shared:
        name = _COUNTER[bench.backend]
        before = interrupts()[name]
        taken = bench.record(long_program(), buffer=_BUFFER, return_compression=False)
        bench.shared["regions"] = _Interrupted(taken, interrupts()[name] - before)
    found: _Interrupted = bench.shared["regions"]
    size = found.taken.recording.trace_bytes
    if size <= _BUFFER // 2:
        raise CheckFailed(
            f"{size} bytes of trace, more than {_BUFFER // 2} are due: seven for each instruction"
        )
    return found


def check_regions(bench: Bench) -> str:
    """Compare what was written to several regions of a table."""
    taken = _several_regions(bench).taken
    words = expect_all(taken.rows(), bench.executed(taken.program))
    return f"{words} from {taken.recording.trace_bytes} bytes in a buffer of {_BUFFER}"


def check_interrupts(bench: Bench) -> str:
    """Count interrupts while more than half of the buffer was written."""
    found = _several_regions(bench)
    size = found.taken.recording.trace_bytes
    if not found.interrupts:
        raise CheckFailed(
            f"no interrupt ({_COUNTER[bench.backend]} of /proc/interrupts) while {size} bytes were written"
            f" to a buffer of {_BUFFER}"
        )
    return f"{counted(found.interrupts, 'interrupt')} for {size} bytes"


def check_losses(bench: Bench) -> str:
    """Write more than a buffer holds: what is missing is stated where it is missing."""
    program = long_program()
    taken = bench.record(program, buffer=_SMALL_BUFFER, return_compression=False, psb_period=2048)
    return expect_parts(taken.rows(), bench.executed(program))


def check_registers(bench: Bench) -> str:
    """Compare the trace unit's registers before and after a recording."""
    try:
        before = read_registers(bench.cpu)
    except OSError as error:
        raise Unavailable(
            f"registers cannot be read ({error.strerror}): run as root, after `modprobe msr`"
        ) from None
    bench.record(branches(bench.seed, 1000))
    after = read_registers(bench.cpu)
    if after["IA32_RTIT_CTL"] & _TRACE_EN:
        raise CheckFailed("TraceEn is still set in IA32_RTIT_CTL after the recording")
    changed = [name for name in before if name != "IA32_RTIT_STATUS" and before[name] != after.get(name)]
    if changed and bench.backend == "driver":
        name = changed[0]
        raise CheckFailed(
            f"{name} was {before[name]:#x} before the recording and is {after[name]:#x} after it"
        )
    return f"{', '.join(before)}: TraceEn is clear" + ("" if changed else ", values as before")
