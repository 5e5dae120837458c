"""Rules, output and sequences: how a configuration gets into the registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.msr.config import RtitConfig
from ptkit.msr.records import Capabilities, Step, Violation
from ptkit.msr.registers import names_by_number
from ptkit.support.arguments import LAST_ADDRESS, flag, integer

__all__ = ["SEQUENCES", "bts_plan", "check", "plan", "with_single_range", "with_topa"]

SEQUENCES = ("start", "pause", "resume", "stop", "switch", "interrupt")


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
        Empty: nothing is wrong. A processor takes a configuration if `Violation.refused` of none is set.
    """
    names = names_by_number()
    rows = _core.msr_check(asdict(config), _words(found))
    return [Violation(names[number], *rest) for number, *rest in rows]


def with_single_range(config: RtitConfig, base: int, size: int) -> RtitConfig:
    """Return the configuration with output to one range of memory.

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
    """Return the configuration with output by tables of physical addresses (ToPA), and their entries.

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
        The tables' entries; with `interrupt_bytes`, the local APIC's entry for the interrupt (PMI).

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
        Configuration of tracing, wanted or current.
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
    Nothing is checked: see `check`. Register reads are assumed to find a trace unit that no other tracer uses
    and, in ``"interrupt"``, a pending ToPA PMI (Trace_ToPA_PMI is set).
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
    bits32: bool = False,
    netburst: bool = False,
) -> dict[str, list[Step]]:
    """How Branch Trace Store is set up, started, emptied and stopped.

    Parameters
    ----------
    size : int
        Bytes of the buffer. Records have 24 bytes, or 12 with `bits32`.
    buffer, area : int
        Linear addresses of the buffer and of the DS management area, multiples of 8, or 4 with `bits32`.
    reserve : int
        An interrupt comes when room for so many records is left; 0: no interrupt, the buffer is a ring.
    os, user : bool
        Whether branches at CPL 0, and at CPL 1 to 3, are stored.
    bits32 : bool
        The DS area and the records of a 32-bit system: words of 4 bytes (CPUID.1:ECX.DTES64 is 0, or the
        processor is not in IA-32e mode).
    netburst : bool
        The bits of MSR_DEBUGCTLA, which NetBurst processors (Pentium 4, family 15) have instead of
        IA32_DEBUGCTL.

    Returns
    -------
    dict of str to list of Step
        ``"before"``, ``"start"``, with `reserve` also ``"interrupt"``, and ``"stop"``. Bits of IA32_DEBUGCTL
        that others set stay in a driver; here they are taken to be 0.

    Raises
    ------
    ConfigError
        If the buffer is too small, or an address is not aligned, or has not 32 bits with `bits32`.

    Notes
    -----
    Intel SDM vol. 3, "BTS and DS Save Area", "Writing the DS Interrupt Service Routine", "Local Vector
    Table".
    """
    before, start, interrupt, stop = _core.msr_bts(
        integer("area", area, 0, LAST_ADDRESS),
        integer("buffer", buffer, 0, LAST_ADDRESS),
        integer("size", size, 0, LAST_ADDRESS),
        integer("reserve", reserve, 0, LAST_ADDRESS),
        os=flag("os", os),
        user=flag("user", user),
        bits32=flag("bits32", bits32),
        netburst=flag("netburst", netburst),
    )
    parts = {"before": before, "start": start, "interrupt": interrupt, "stop": stop}
    plans = {name: _steps(rows) for name, rows in parts.items() if rows}
    return _named_debugctla(plans) if netburst else plans


def _named_debugctla(plans: dict[str, list[Step]]) -> dict[str, list[Step]]:
    def renamed(step: Step) -> Step:
        return replace(step, name="MSR_DEBUGCTLA") if step.name == "IA32_DEBUGCTL" else step

    return {name: [renamed(step) for step in steps] for name, steps in plans.items()}


def _steps(rows: list[tuple[str, int, int, str]]) -> list[Step]:
    names = names_by_number()
    return [
        Step(access, address, names.get(address, "") if access in ("read", "write") else "", value, words)
        for access, address, value, words in rows
    ]
