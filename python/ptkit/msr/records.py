"""Records that the functions of `ptkit.msr` return."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Capabilities", "FieldValue", "Register", "Step", "Violation"]


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
        Purpose.
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
        Of the field; addresses with the bits below the field being 0.
    words : str
        Meaning of the value.
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


_EFFECTS = {
    "fault": "WRMSR faults",
    "error": "STATUS.Error is set",
    "nothing": "no effect",
    "untraced": "nothing is traced",
}


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
        The rule that is broken.
    section : str
        Of the manual's chapter.
    effect : str
        ``"fault"``: the WRMSR faults; ``"error"``: STATUS.Error is set instead of tracing; ``"nothing"``: it
        is allowed and has no effect; ``"untraced"``: it is allowed, and nothing is traced.
    """

    register: str
    field: str
    rule: str
    section: str
    effect: str

    @property
    def refused(self) -> bool:
        """Whether a processor refuses to trace."""
        return self.effect in ("fault", "error")

    def __str__(self) -> str:
        effect = _EFFECTS[self.effect]
        return f"{self.register}.{self.field}: {self.rule} ({effect}; section {self.section!r})"


@dataclass(frozen=True)
class Step:
    """One access of a sequence.

    Attributes
    ----------
    access : str
        ``"read"`` or ``"write"`` of a register, ``"memory"``: a write of eight bytes (four in a DS area of a
        32-bit system), ``"apic"``: a write of a register of the local APIC, ``"barrier"``: a store fence
        (SFENCE; MFENCE does more).
    address : int
        Number of the register, address (physical for ToPA tables, linear for a DS area), or the offset in
        the local APIC.
    name : str
        The register's; else empty.
    value : int
        That is written.
    words : str
        Why.
    """

    access: str
    address: int
    name: str
    value: int
    words: str

    def __str__(self) -> str:
        if self.access == "barrier":
            return f"barrier: {self.words}"
        if self.access == "read":
            return f"read {self.name}: {self.words}"
        if self.access == "apic":
            return f"write APIC [{self.address:#x}] = {self.value:#x}: {self.words}"
        if self.access == "memory":
            return f"memory [{self.address:#x}] = {self.value:#x}: {self.words}"
        return f"write {self.name} = {self.value:#x}: {self.words}"


@dataclass(frozen=True)
class CpuidField:
    """A field of a CPUID leaf.

    Attributes
    ----------
    leaf, subleaf : int
        As CPUID takes them in EAX and ECX.
    register : str
        ``"EAX"``, ``"EBX"``, ``"ECX"`` or ``"EDX"``.
    name : str
        Name in the manual.
    first, width : int
        Lowest bit, and number of bits.
    value : int
        Of the field.
    words : str
        Meaning of the value.
    """

    leaf: int
    subleaf: int
    register: str
    name: str
    first: int
    width: int
    value: int
    words: str

    @property
    def location(self) -> str:
        """Leaf, sub-leaf, register and bits as the manual writes them: ``"14H.1 EAX[2:0]"``."""
        bits = f"{self.first + self.width - 1}:{self.first}" if self.width > 1 else str(self.first)
        return f"{self.leaf:02X}H.{self.subleaf} {self.register}[{bits}]"


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a trace unit, from CPUID.

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
        TSC ticks for each tick of the crystal clock, as a ratio (leaf 15H); 0: not enumerated.
    crystal_hz : int
        Ticks of the crystal clock in a second; 0: not enumerated.
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
