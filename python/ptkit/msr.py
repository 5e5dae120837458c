"""The registers of Processor Trace: what values mean, which a processor takes, in which order it gets them.

Section names are those of the Intel SDM, volume 3, chapter "Intel Processor Trace".

>>> from ptkit import msr
>>> for field in msr.explain("RTIT_CTL", 0x2409):
...     if field.value:
...         print(field.name, "-", field.words)
TraceEn - traces
User - traces CPL 1 to 3
TSCEn - TSC packets
BranchEn - packets of branches
>>> config = msr.RtitConfig(user=True, branch_en=True, mtc_en=True, mtc_freq=3)
>>> config = msr.with_single_range(config, 0x100000, 1 << 20)
>>> print(msr.plan(config)[-1])
write IA32_RTIT_CTL = 0xe209: tracing begins: TraceEn, User, MTCEn, BranchEn, MTCFreq 3
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ptkit import _core
from ptkit.arguments import LAST_ADDRESS, flag, integer
from ptkit.errors import ConfigError

__all__ = [
    "SEQUENCES",
    "Capabilities",
    "FieldValue",
    "Register",
    "RtitConfig",
    "Step",
    "Violation",
    "bts_plan",
    "capabilities",
    "check",
    "config_of",
    "explain",
    "from_perf",
    "plan",
    "register",
    "registers",
    "to_perf",
    "with_single_range",
    "with_topa",
]

SEQUENCES = ("start", "pause", "resume", "stop", "switch", "interrupt")
_RANGES = 4
_CPUID_LINE = re.compile(
    r"^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+):\s*"
    r"eax=0x([0-9a-f]+)\s+ebx=0x([0-9a-f]+)\s+ecx=0x([0-9a-f]+)\s+edx=0x([0-9a-f]+)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Register:
    """A register of the model.

    Attributes
    ----------
    number : int
        For RDMSR and WRMSR.
    name : str
        The manual's.
    words : str
        What it is for.
    """

    number: int
    name: str
    words: str


@dataclass(frozen=True)
class FieldValue:
    """A field of a register's value.

    Attributes
    ----------
    name : str
        The manual's; ``"reserved"`` or ``"other"`` for bits that are set and have no field.
    first, width : int
        Lowest bit, and number of bits.
    value : int
        Of the field; addresses are in their place, with the bits below being 0.
    words : str
        What the value means.
    """

    name: str
    first: int
    width: int
    value: int
    words: str

    @property
    def bits(self) -> str:
        """The bits as the manual writes them: ``"17:14"``."""
        return f"{self.first + self.width - 1}:{self.first}" if self.width > 1 else str(self.first)


@dataclass(frozen=True)
class Violation:
    """A rule that a configuration breaks.

    Attributes
    ----------
    register : str
        Its name.
    field : str
        The field concerned.
    rule : str
        What holds.
    section : str
        Of the manual's chapter.
    effect : str
        ``"fault"``: the WRMSR faults; ``"error"``: STATUS.Error is set instead of tracing; ``"nothing"``: it
        is allowed and leads to nothing.
    """

    register: str
    field: str
    rule: str
    section: str
    effect: str

    def __str__(self) -> str:
        effect = {"fault": "WRMSR faults", "error": "STATUS.Error is set", "nothing": "no effect"}[
            self.effect
        ]
        return f"{self.register}.{self.field}: {self.rule} ({effect}; section {self.section!r})"


@dataclass(frozen=True)
class Step:
    """One access of a sequence.

    Attributes
    ----------
    access : str
        ``"read"`` or ``"write"`` of a register, ``"memory"``: a write of eight bytes, ``"barrier"``: a store
        fence.
    place : int
        Number of the register, or physical address.
    name : str
        The register's; else empty.
    value : int
        That is written.
    words : str
        Why.
    """

    access: str
    place: int
    name: str
    value: int
    words: str

    def __str__(self) -> str:
        if self.access == "barrier":
            return f"barrier: {self.words}"
        if self.access == "read":
            return f"read {self.name}: {self.words}"
        if self.access == "memory":
            return f"memory [{self.place:#x}] = {self.value:#x}: {self.words}"
        return f"write {self.name} = {self.value:#x}: {self.words}"


@dataclass(frozen=True)
class Capabilities:
    """What CPUID says of a trace unit.

    Attributes
    ----------
    present : bool
        There is one (leaf 07H).
    cr3_filter, psb_cyc, mtc, ptwrite, power_event, psb_pmi_preservation, event_trace, tnt_disable : bool
        Bits of EBX of leaf 14H.
    topa, topa_multiple, single_range, trace_transport : bool
        Bits of ECX of leaf 14H: outputs.
    address_ranges : int
        Pairs of ADDRn registers, 0 to 4.
    mtc_periods, cyc_thresholds, psb_periods : int
        Bitmaps of the values that MTCFreq, CycThresh and PSBFreq may have.
    physical_bits, linear_bits : int
        Widths of addresses.
    tsc_ctc_numerator, tsc_ctc_denominator : int
        TSC ticks for each tick of the crystal clock, as a ratio; 0: not told (leaf 15H).
    crystal_hz : int
        Ticks of the crystal clock in a second; 0: not told.
    words : tuple of tuple of int
        Leaf, sub-leaf, EAX, EBX, ECX and EDX of what was read.
    """

    present: bool
    cr3_filter: bool
    psb_cyc: bool
    mtc: bool
    ptwrite: bool
    power_event: bool
    psb_pmi_preservation: bool
    event_trace: bool
    tnt_disable: bool
    topa: bool
    topa_multiple: bool
    single_range: bool
    trace_transport: bool
    address_ranges: int
    mtc_periods: int
    cyc_thresholds: int
    psb_periods: int
    physical_bits: int
    linear_bits: int
    tsc_ctc_numerator: int
    tsc_ctc_denominator: int
    crystal_hz: int
    words: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class RtitConfig:
    """A configuration of a trace unit, by the names of the manual's fields.

    Attributes
    ----------
    trace_en, cyc_en, os, user, pwr_evt_en, fup_on_ptw, fabric_en, cr3_filter, topa, mtc_en, tsc_en : bool
        Bits of IA32_RTIT_CTL. `trace_en` does not matter for sequences, which set and clear it.
    dis_retc, ptw_en, branch_en, event_en, dis_tnt, inject_psb_pmi_on_enable : bool
        More of them.
    mtc_freq, cyc_thresh, psb_freq : int
        Fields of IA32_RTIT_CTL, 0 to 15.
    addr0_cfg, addr1_cfg, addr2_cfg, addr3_cfg : int
        Use of the address ranges: 0 none, 1 filter, 2 TraceStop.
    status, output_base, output_mask_ptrs, cr3_match : int
        Values of the other registers.
    addr : tuple of (int, int)
        First and last address of up to four ranges.
    """

    trace_en: bool = False
    cyc_en: bool = False
    os: bool = False
    user: bool = False
    pwr_evt_en: bool = False
    fup_on_ptw: bool = False
    fabric_en: bool = False
    cr3_filter: bool = False
    topa: bool = False
    mtc_en: bool = False
    tsc_en: bool = False
    dis_retc: bool = False
    ptw_en: bool = False
    branch_en: bool = False
    mtc_freq: int = 0
    cyc_thresh: int = 0
    psb_freq: int = 0
    event_en: bool = False
    addr0_cfg: int = 0
    addr1_cfg: int = 0
    addr2_cfg: int = 0
    addr3_cfg: int = 0
    dis_tnt: bool = False
    inject_psb_pmi_on_enable: bool = False
    status: int = 0
    output_base: int = 0
    output_mask_ptrs: int = 0x7F
    cr3_match: int = 0
    addr: tuple[tuple[int, int], ...] = ((0, 0),) * _RANGES

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "addr":
                object.__setattr__(self, "addr", _ranges(value))
            elif field.type == "bool":
                object.__setattr__(self, field.name, flag(field.name, value))
            else:
                # Values that are too large for a field are violations; those that are no number are not.
                last = LAST_ADDRESS if field.name in _WIDE else 255
                object.__setattr__(self, field.name, integer(field.name, value, 0, last))

    @property
    def registers(self) -> dict[str, int]:
        """Values by the names of the registers: all of them, whether or not they are used."""
        values = _core.msr_values(asdict(self))
        out = {
            "IA32_RTIT_OUTPUT_BASE": values["output_base"],
            "IA32_RTIT_OUTPUT_MASK_PTRS": values["output_mask_ptrs"],
            "IA32_RTIT_CTL": values["ctl"],
            "IA32_RTIT_STATUS": values["status"],
            "IA32_RTIT_CR3_MATCH": values["cr3_match"],
        }
        for index, value in enumerate(values["addr"]):
            out[f"IA32_RTIT_ADDR{index // 2}_{'AB'[index % 2]}"] = value
        return out


_WIDE = {"status", "output_base", "output_mask_ptrs", "cr3_match"}


def _ranges(value: Any) -> tuple[tuple[int, int], ...]:
    pairs = [tuple(pair) for pair in value]
    if len(pairs) > _RANGES or any(len(pair) != 2 for pair in pairs):
        raise ConfigError(f"addr={value!r}: up to {_RANGES} pairs of first and last address")
    pairs += [(0, 0)] * (_RANGES - len(pairs))
    return tuple((integer("addr", a, 0, LAST_ADDRESS), integer("addr", b, 0, LAST_ADDRESS)) for a, b in pairs)


def registers() -> list[Register]:
    """Every register of the model: of Processor Trace, Branch Trace Store and last branch records.

    Returns
    -------
    list of Register
    """
    return [Register(*row) for row in _core.msr_registers()]


def register(name: int | str) -> Register:
    """A register of the model.

    Parameters
    ----------
    name : int or str
        Its number, or its name in any case, with or without ``IA32_`` or ``MSR_``.

    Returns
    -------
    Register

    Raises
    ------
    ConfigError
        If the model has none of this number or name.
    """
    known = registers()
    if isinstance(name, str):
        for row in known:
            if name.upper() in (row.name.upper(), row.name.partition("_")[2].upper()):
                return row
        raise ConfigError(f"no register is called {name!r}; `ptkit msr list` has them all")
    number = integer("register", name, 0, 2**32 - 1)
    for row in known:
        if row.number == number:
            return row
    raise ConfigError(f"{number:#x} is no register of tracing; `ptkit msr list` has them all")


def explain(name: int | str, value: int) -> list[FieldValue]:
    """What a register's value means.

    Parameters
    ----------
    name : int or str
        As for `register`.
    value : int
        64 bits.

    Returns
    -------
    list of FieldValue
        From the lowest bit on.

    Raises
    ------
    ConfigError
        If the register or the value is none.
    """
    number = register(name).number
    return [FieldValue(*row) for row in _core.msr_explain(number, integer("value", value, 0, LAST_ADDRESS))]


def capabilities(text: str | None = None) -> Capabilities:
    """What CPUID says of a trace unit.

    Parameters
    ----------
    text : str, optional
        Recorded words as ``cpuid -r`` prints them, a line for each leaf and sub-leaf, such as
        ``0x00000014 0x01: eax=0x02490002 ebx=0x003f3fff ecx=0x00000000 edx=0x00000000``. Of several
        processors the first counts. None: this processor's.

    Returns
    -------
    Capabilities

    Raises
    ------
    ConfigError
        If the text has no such line.
    """
    if text is None:
        words = [tuple(row) for row in _core.msr_cpuid()]
    else:
        words = [tuple(int(word, 16) for word in found.groups()) for found in _CPUID_LINE.finditer(text)]
        if not words:
            raise ConfigError(
                "no line of CPUID words; they look like "
                "0x00000014 0x00: eax=0x... ebx=0x... ecx=0x... edx=0x..."
            )
        if any(word >= 2**32 for row in words for word in row):
            raise ConfigError("CPUID words have 32 bits")
    return Capabilities(**_core.msr_capabilities(words), words=tuple(words))


def _words(found: Capabilities | None) -> tuple[tuple[int, ...], ...] | None:
    return None if found is None else found.words


def check(config: RtitConfig, found: Capabilities | None = None) -> list[Violation]:
    """Every rule of the manual that a configuration breaks once TraceEn is set.

    Parameters
    ----------
    config : RtitConfig
    found : Capabilities, optional
        Of the processor. None: of one that has everything but a trace transport subsystem.

    Returns
    -------
    list of Violation
        Empty: nothing is wrong. With effect ``"nothing"`` only: a processor takes it.
    """
    names = {row.number: row.name for row in registers()}
    rows = _core.msr_check(asdict(config), _words(found))
    return [Violation(names[number], *rest) for number, *rest in rows]


def config_of(ctl: int) -> RtitConfig:
    """The configuration of a value of IA32_RTIT_CTL.

    Parameters
    ----------
    ctl : int
        64 bits; reserved ones are left out.

    Returns
    -------
    RtitConfig
    """
    return RtitConfig(**_core.msr_fields(integer("ctl", ctl, 0, LAST_ADDRESS)))


def from_perf(text: str) -> RtitConfig:
    """What Linux' driver makes of an event of perf.

    Parameters
    ----------
    text : str
        Such as ``"intel_pt/tsc,mtc,mtc_period=3/u"``, or the terms alone.

    Returns
    -------
    RtitConfig
        With output by ToPA, as perf's driver has it, but without its place. perf's own defaults for terms
        that are not given are not filled in.

    Raises
    ------
    ConfigError
        If a term or its value is none.
    """
    return RtitConfig(**_core.msr_from_perf(text))


def to_perf(config: RtitConfig) -> tuple[str, list[str]]:
    """The event of perf that traces the same.

    Parameters
    ----------
    config : RtitConfig

    Returns
    -------
    event : str
        For ``perf record -e``.
    lost : list of str
        Fields that such an event cannot say, as filters by address are given otherwise.
    """
    text, _, lost = _core.msr_to_perf(asdict(config))
    return text, lost


def with_single_range(config: RtitConfig, base: int, size: int) -> RtitConfig:
    """The same with output to one range of memory.

    Parameters
    ----------
    config : RtitConfig
    base : int
        Physical address, a multiple of `size`.
    size : int
        Bytes: a power of two, 128 to 2**32.

    Returns
    -------
    RtitConfig

    Raises
    ------
    ConfigError
        If the range breaks one of these rules.
    """
    base, size = integer("base", base, 0, LAST_ADDRESS), integer("size", size, 0, LAST_ADDRESS)
    output_base, mask_ptrs, _, _ = _core.msr_single_range(base, size)
    return replace(config, topa=False, output_base=output_base, output_mask_ptrs=mask_ptrs)


def with_topa(
    config: RtitConfig,
    table: int,
    regions: Sequence[tuple[int, int]],
    *,
    interrupt_bytes: int = 0,
    ring: bool = True,
    found: Capabilities | None = None,
) -> tuple[RtitConfig, list[Step]]:
    """The same with output by tables of physical addresses.

    Parameters
    ----------
    config : RtitConfig
    table : int
        Physical address of the first table; the others follow it, 4 KiB each.
    regions : sequence of (int, int)
        Physical address and bytes of memory to write to, multiples of 4096.
    interrupt_bytes : int
        An interrupt wherever so many bytes are full; 0: never.
    ring : bool
        Go on at the beginning when all is full; otherwise stop.
    found : Capabilities, optional
        As for `check`.

    Returns
    -------
    config : RtitConfig
    memory : list of Step
        The tables' entries.

    Raises
    ------
    ConfigError
        If a region or the table does not keep the manual's rules.
    """
    pairs = [
        (integer("regions", a, 0, LAST_ADDRESS), integer("regions", b, 0, LAST_ADDRESS)) for a, b in regions
    ]
    base, mask_ptrs, memory, _ = _core.msr_topa(
        integer("table", table, 0, LAST_ADDRESS),
        pairs,
        integer("interrupt_bytes", interrupt_bytes, 0, LAST_ADDRESS),
        flag("ring", ring),
        15,
        _words(found),
    )
    return replace(config, topa=True, output_base=base, output_mask_ptrs=mask_ptrs), _steps(memory)


def plan(config: RtitConfig, sequence: str = "start", *, to: RtitConfig | None = None) -> list[Step]:
    """The exact sequence of register accesses, as drivers execute it.

    Parameters
    ----------
    config : RtitConfig
        What is to be traced, or is.
    sequence : str
        One of `SEQUENCES`.
    to : RtitConfig, optional
        For ``"switch"``: the context that is switched to. None: the same.

    Returns
    -------
    list of Step

    Raises
    ------
    ConfigError
        If there is no such sequence.

    Notes
    -----
    Nothing is checked: see `check`. Reads are assumed to find a unit that nobody uses, and, in
    ``"interrupt"``, an interrupt that is of tracing.
    """
    if sequence not in SEQUENCES:
        raise ConfigError(f"sequence={sequence!r}: it must be one of {', '.join(SEQUENCES)}")
    return _steps(_core.msr_program(sequence, asdict(config), None if to is None else asdict(to)))


def bts_plan(
    size: int,
    *,
    buffer: int = 0x200000,
    area: int = 0x100000,
    reserve: int = 0,
    os: bool = True,
    user: bool = True,
) -> dict[str, list[Step]]:
    """How Branch Trace Store is set up, started and stopped, in 64-bit mode.

    Parameters
    ----------
    size : int
        Bytes of the buffer; records have 24.
    buffer, area : int
        Linear addresses of the buffer and of the DS management area, multiples of 8.
    reserve : int
        An interrupt comes when room for so many records is left; 0: no interrupt, the buffer is a ring.
    os, user : bool
        Whether branches at CPL 0, and at CPL 1 to 3, are stored.

    Returns
    -------
    dict of str to list of Step
        ``"before"``, ``"start"`` and ``"stop"``. Bits of IA32_DEBUGCTL that others set stay in a driver; here
        they are taken to be 0.

    Raises
    ------
    ConfigError
        If the buffer has no room, or an address is not aligned.
    """
    before, start, stop = _core.msr_bts(
        integer("area", area, 0, LAST_ADDRESS),
        integer("buffer", buffer, 0, LAST_ADDRESS),
        integer("size", size, 0, LAST_ADDRESS),
        integer("reserve", reserve, 0, LAST_ADDRESS),
        os=flag("os", os),
        user=flag("user", user),
    )
    return {"before": _steps(before), "start": _steps(start), "stop": _steps(stop)}


def _steps(rows: list[tuple[str, int, int, str]]) -> list[Step]:
    names = {row.number: row.name for row in registers()}
    return [
        Step(access, place, names.get(place, "") if access in ("read", "write") else "", value, words)
        for access, place, value, words in rows
    ]
