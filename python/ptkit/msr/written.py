"""Errors in values that a driver has written to the registers of Processor Trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.msr.config import RtitConfig, config_of
from ptkit.msr.numbers import number
from ptkit.msr.records import Capabilities, Violation
from ptkit.msr.registers import names_by_number, register
from ptkit.support.arguments import LAST_ADDRESS, integer

__all__ = ["RegisterCheck", "check_registers"]

_CTL = 0x570
_MEMBERS = {
    0x560: "output_base",
    0x561: "output_mask_ptrs",
    _CTL: "ctl",
    0x571: "status",
    0x572: "cr3_match",
}
_FIRST_ADDR, _LAST_ADDR = 0x580, 0x587
_OUTPUT = (0x560, 0x561)
_LOWEST_MASK = 0x7F
_ERROR, _STOPPED = 1 << 4, 1 << 5
# Causes of STATUS.Error that no register shows. Intel SDM vol. 3, "Intel Processor Trace": "ToPA Errors",
# "Operational Errors", "Restricted Memory Access".
_TABLE_CAUSES = (
    "an entry of the ToPA table: a reserved bit (1, 3, 5, 11:10, from MAXPHYADDR on) is set, its address is "
    "no multiple of its size, STOP or INT is set with END, or the second of a table of one entry is no END",
    "IA32_RTIT_OUTPUT_MASK_PTRS.MaskOrTableOffset points after the table, or OutputOffset after the region",
)
_CAUSES = (
    "output or table in memory that tracing must not write: memory-mapped registers of the local APIC, SMRAM "
    "or other protected ranges",
    "a hypervisor that shows Processor Trace in CPUID and does not run it: Hyper-V with VBS",
)


@dataclass(frozen=True)
class RegisterCheck:
    """Result of the manual's rules for values of the registers.

    Attributes
    ----------
    registers : dict of str to int
        The values that were given, by name of the register.
    config : RtitConfig
        Values field by field, without reserved bits; those that were not given as after a reset.
    violations : list of Violation
        Rules that are broken once TraceEn is set; empty: nothing is wrong.
    notes : list of str
        Sentences: what is allowed and perhaps not meant, and registers that were not given.
    causes : list of str
        Where IA32_RTIT_STATUS has Error or Stopped set: what may have led to it, first what registers show.
    """

    registers: dict[str, int]
    config: RtitConfig
    violations: list[Violation]
    notes: list[str]
    causes: list[str]

    @property
    def refused(self) -> bool:
        """Whether a processor refuses to trace."""
        return any(violation.refused for violation in self.violations)


def check_registers(
    values: Mapping[int | str, int | str], found: Capabilities | None = None
) -> RegisterCheck:
    """Find errors in values of the registers, as a driver has written them or read them back.

    Parameters
    ----------
    values : mapping
        Values of 64 bits by register, both as `explain` takes them: ``{0x570: 0x2409, "OUTPUT_BASE": 0}``.
        IA32_RTIT_CTL must be there. Registers that are not are taken as they are after a reset, and noted if
        CTL uses them.
    found : Capabilities, optional
        As for `check`.

    Returns
    -------
    RegisterCheck

    Raises
    ------
    ConfigError
        If a register is given twice or is none of a trace unit, a value is none, or CTL is missing.

    Notes
    -----
    The rules are those of `check`. Intel SDM vol. 3, "Intel Processor Trace": "Operational Errors", "ToPA
    Errors".

    Examples
    --------
    >>> from ptkit import msr
    >>> checked = msr.check_registers({"570": "0x2409", "560": "fffff806`85380001"})
    >>> for violation in checked.violations:
    ...     print(violation.register, violation.field, violation.effect)
    IA32_RTIT_OUTPUT_BASE BasePhysAddr fault
    IA32_RTIT_OUTPUT_BASE BasePhysAddr fault
    """
    given = _numbered(values)
    if _CTL not in given:
        raise ConfigError(
            "IA32_RTIT_CTL (0x570) is not among the registers: it decides how the others are used"
        )
    core = {name: given.get(one, _LOWEST_MASK if one == 0x561 else 0) for one, name in _MEMBERS.items()}
    addresses = [given.get(one, 0) for one in range(_FIRST_ADDR, _LAST_ADDR + 1)]
    names = names_by_number()
    rows = _core.msr_check_values({**core, "addr": addresses}, None if found is None else found.words)
    violations = [Violation(names[msr], *rest) for msr, *rest in rows]
    config = _config(core, addresses)
    return RegisterCheck(
        {names[one]: value for one, value in given.items()},
        config,
        violations,
        _notes(config, given, names),
        _causes(config, given.get(0x571, 0), violations),
    )


def _numbered(values: Mapping[int | str, int | str]) -> dict[int, int]:
    """Values by number of register."""
    given: dict[int, int] = {}
    for name, value in values.items():
        row = register(name)
        if row.number not in _MEMBERS and not _FIRST_ADDR <= row.number <= _LAST_ADDR:
            raise ConfigError(
                f"{row.name} ({row.number:#x}) is no register of the trace unit: give IA32_RTIT_..."
            )
        if row.number in given:
            raise ConfigError(f"{row.name} ({row.number:#x}) is given twice")
        bits = number(value) if isinstance(value, str) else integer(row.name, value, 0, LAST_ADDRESS)
        given[row.number] = bits
    return given


def _config(core: Mapping[str, int], addresses: list[int]) -> RtitConfig:
    rest = {name: value for name, value in core.items() if name != "ctl"}
    pairs = tuple(zip(addresses[::2], addresses[1::2], strict=True))
    fields = {**vars(config_of(core["ctl"])), **rest, "addr": pairs}
    return RtitConfig(**fields)


def _notes(config: RtitConfig, given: Mapping[int, int], names: Mapping[int, str]) -> list[str]:
    """Values that are allowed and perhaps not meant, and registers that were not given."""
    notes = []
    if not config.trace_en:
        notes.append(
            "IA32_RTIT_CTL.TraceEn is 0: this value starts nothing; the rules are those of TraceEn 1"
        )
    if not config.branch_en:
        notes.append("IA32_RTIT_CTL.BranchEn is 0: no packets of branches, so no control flow")
    used = [] if config.fabric_en else [*_OUTPUT]
    if config.cr3_filter:
        used.append(0x572)
    uses = (config.addr0_cfg, config.addr1_cfg, config.addr2_cfg, config.addr3_cfg)
    for index, use in enumerate(uses):
        if use:
            used += [_FIRST_ADDR + 2 * index, _FIRST_ADDR + 2 * index + 1]
    missing = [f"{names[one]} ({one:#x})" for one in used if one not in given]
    if missing:
        notes.append(f"not given, and used by this IA32_RTIT_CTL: {', '.join(missing)}")
    return notes


def _causes(config: RtitConfig, status: int, violations: list[Violation]) -> list[str]:
    """Possible causes of STATUS.Error or STATUS.Stopped."""
    causes = []
    if status & _ERROR:
        causes += [
            f"STATUS.Error: {one.register}.{one.field}: {one.rule}"
            for one in violations
            if one.effect == "error"
        ]
        more = (*(_TABLE_CAUSES if config.topa else ()), *_CAUSES)
        causes += [f"STATUS.Error, which registers do not show: {one}" for one in more]
    if status & _STOPPED:
        stops = (config.addr0_cfg, config.addr1_cfg, config.addr2_cfg, config.addr3_cfg).count(2)
        if stops:
            causes.append("STATUS.Stopped: code in a TraceStop range (ADDRn_CFG 2) was executed")
        if config.topa:
            causes.append("STATUS.Stopped: the region of a ToPA entry with STOP was filled")
        if not stops and not config.topa:
            causes.append("STATUS.Stopped: an earlier configuration did it, as this one has no way to stop")
    return causes
