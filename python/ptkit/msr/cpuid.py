"""CPUID leaves about tracing, field by field: 07H, 14H and 15H."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ptkit.msr.records import Capabilities, CpuidField

__all__ = ["explain_cpuid"]

_REGISTERS = ("EAX", "EBX", "ECX", "EDX")
_PSB_UNIT = 2048
_SIZES = ((1 << 20, "MiB"), (1 << 10, "KiB"))


class _Row(NamedTuple):
    """A field: its bits, its name in the manual, and what its value means."""

    leaf: int
    subleaf: int
    register: str
    first: int
    width: int
    name: str
    words: Callable[[int], str]


def _flag(yes: str, no: str) -> Callable[[int], str]:
    return lambda value: yes if value else no


def _values_of(bits: int) -> list[int]:
    return [value for value in range(16) if bits >> value & 1]


def _bytes(size: int) -> str:
    return next((f"{size // unit} {name}" for unit, name in _SIZES if size >= unit), f"{size} bytes")


def _mtc(bits: int) -> str:
    periods = ", ".join(f"{value} ({1 << value})" for value in _values_of(bits))
    return f"MTCFreq (crystal clock ticks): {periods}" if periods else "MTCFreq cannot be chosen"


def _cyc(bits: int) -> str:
    periods = ", ".join(f"{value} ({1 << value - 1 if value else 0})" for value in _values_of(bits))
    return f"CycThresh (cycles): {periods}" if periods else "CycThresh cannot be chosen"


def _psb(bits: int) -> str:
    periods = ", ".join(f"{value} ({_bytes(_PSB_UNIT << value)})" for value in _values_of(bits))
    return f"PSBFreq: {periods}" if periods else "PSBFreq cannot be chosen"


def _ranges(count: int) -> str:
    return f"IA32_RTIT_ADDR0_A to ADDR{count - 1}_B" if count else "no registers of address ranges"


def _crystal(hertz: int) -> str:
    return f"{hertz:,} Hz" if hertz else "not enumerated"


_TSC_CTC = "of TSC ticks for each tick of the crystal clock"
_ROWS = (
    _Row(0x07, 0, "EBX", 25, 1, "Intel PT", _flag("Processor Trace is there", "no Processor Trace")),
    _Row(0x14, 0, "EAX", 0, 32, "MaxSubLeaf", lambda value: f"sub-leaves 0 to {value}"),
    _Row(0x14, 0, "EBX", 0, 1, "CR3Filter", _flag("one CR3 can be traced alone", "no choice by CR3")),
    _Row(
        0x14, 0, "EBX", 1, 1, "PSB, CYC", _flag("PSBFreq and CYC packets", "no CYC packets, PSBFreq is fixed")
    ),
    _Row(
        0x14,
        0,
        "EBX",
        2,
        1,
        "IP filter",
        _flag("address ranges, TraceStop", "no address ranges, no TraceStop"),
    ),
    _Row(0x14, 0, "EBX", 3, 1, "MTC", _flag("MTC packets", "no MTC packets: times rest on TSC and CYC")),
    _Row(0x14, 0, "EBX", 4, 1, "PTWRITE", _flag("PTWRITE and PTW packets", "no PTWRITE")),
    _Row(
        0x14, 0, "EBX", 5, 1, "PwrEvt", _flag("packets about power events", "no packets about power events")
    ),
    _Row(
        0x14, 0, "EBX", 6, 1, "PSB PMI", _flag("PSB and PMI are preserved", "PSB and PMI are not preserved")
    ),
    _Row(0x14, 0, "EBX", 7, 1, "Event", _flag("Event Trace (CFE, EVD packets)", "no Event Trace")),
    _Row(0x14, 0, "EBX", 8, 1, "DisTNT", _flag("TNT packets can be left out", "TNT packets always come")),
    _Row(0x14, 0, "ECX", 0, 1, "ToPA", _flag("output by tables (ToPA)", "no output by tables")),
    _Row(
        0x14, 0, "ECX", 1, 1, "ToPA entries", _flag("tables of many entries", "tables of one entry, and END")
    ),
    _Row(0x14, 0, "ECX", 2, 1, "Single range", _flag("output to one range of memory", "no such output")),
    _Row(0x14, 0, "ECX", 3, 1, "Transport", _flag("output to a trace transport", "no such output")),
    _Row(
        0x14, 0, "ECX", 31, 1, "LIP", _flag("IPs are linear addresses", "IPs are effective: without CS base")
    ),
    _Row(0x14, 1, "EAX", 0, 3, "ADDRn", _ranges),
    _Row(0x14, 1, "EAX", 16, 16, "MTCFreq", _mtc),
    _Row(0x14, 1, "EBX", 0, 16, "CycThresh", _cyc),
    _Row(0x14, 1, "EBX", 16, 16, "PSBFreq", _psb),
    _Row(0x15, 0, "EAX", 0, 32, "Denominator", _flag(_TSC_CTC, "not enumerated")),
    _Row(0x15, 0, "EBX", 0, 32, "Numerator", _flag(_TSC_CTC, "not enumerated")),
    _Row(0x15, 0, "ECX", 0, 32, "Crystal clock", _crystal),
)


def explain_cpuid(found: Capabilities) -> list[CpuidField]:
    """Explain the CPUID leaves about tracing, field by field.

    Parameters
    ----------
    found : Capabilities
        Of `capabilities`.

    Returns
    -------
    list of CpuidField
        Fields of the leaves that were read: 07H, 14H, 15H.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": "Detection of Intel Processor Trace and Capability
    Enumeration"; vol. 2, "CPUID".

    Examples
    --------
    >>> from ptkit import msr
    >>> text = "0x00000014 0x01: eax=0x02490002 ebx=0x003f3fff ecx=0x00000000 edx=0x00000000"
    >>> for field in msr.explain_cpuid(msr.capabilities(text))[:2]:
    ...     print(field.location, field.name, "-", field.words)
    14H.1 EAX[2:0] ADDRn - IA32_RTIT_ADDR0_A to ADDR1_B
    14H.1 EAX[31:16] MTCFreq - MTCFreq (crystal clock ticks): 0 (1), 3 (8), 6 (64), 9 (512)
    """
    return list(_fields(found))


def _fields(found: Capabilities) -> Iterator[CpuidField]:
    words: dict[tuple[int, int], tuple[int, ...]] = {}
    for leaf, subleaf, *registers in found.words:
        words.setdefault((leaf, subleaf), tuple(registers))  # of several processors the first counts
    for row in _ROWS:
        registers_of = words.get((row.leaf, row.subleaf))
        if registers_of is None:
            continue
        word = registers_of[_REGISTERS.index(row.register)]
        value = word >> row.first & ((1 << row.width) - 1)
        yield CpuidField(
            row.leaf, row.subleaf, row.register, row.name, row.first, row.width, value, row.words(value)
        )
