"""A configuration of a trace unit, from and to register values and perf's events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, flag, integer

__all__ = ["RtitConfig", "config_of", "from_perf", "to_perf"]

_RANGES = 4


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
    """Configuration that Linux' driver makes of an event of perf.

    Parameters
    ----------
    text : str
        Such as ``"intel_pt/tsc,mtc,mtc_period=3/u"``, or the terms alone.

    Returns
    -------
    RtitConfig
        With output by ToPA, as perf's driver has it, but without its address. perf's own defaults for terms
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
