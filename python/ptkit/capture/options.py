"""Options of a recording: what `ptkit.record` and `ptkit.Recorder` take."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from ptkit.capture import qemu
from ptkit.capture.backends import choose
from ptkit.capture.filters import Filter, filters_of
from ptkit.capture.functions import check_functions
from ptkit.capture.hardware import NO_CHILDREN, arguments_of
from ptkit.capture.hardware import OPTIONS as HARDWARE_OPTIONS
from ptkit.capture.program import NATIVE, machine_of, words_of
from ptkit.capture.sizes import size_of
from ptkit.capture.systems import here
from ptkit.capture.triggers import Trigger, triggers_of
from ptkit.errors import ConfigError
from ptkit.support.arguments import chosen, flag, integer

__all__ = ["Options", "Plan", "path_of", "plan_of"]

TIMING = ("tsc", "mtc", "cyc")
_CHEAP = ("tsc", "mtc")
DEFAULT_TIMING = {"perf": _CHEAP, "driver": _CHEAP, "emulator": _CHEAP, "step": TIMING}
DEFAULT_MTC_PERIOD = {"perf": 3, "driver": 3, "emulator": 3, "step": 8}


class Options(TypedDict, total=False):
    """Options of `ptkit.record` and `ptkit.Recorder`; all may be left out.

    Attributes
    ----------
    backend : str
        ``"auto"``, the best that works here, or a name that `ptkit.capture.probe` gives.
    return_compression : bool
        Returns that match their call take a bit instead of a TIP packet (SDM, "Return Compression").
    timing : str or sequence of str
        Timing packets: any of ``"tsc"``, ``"mtc"`` (with TMA), ``"cyc"``, or ``"none"``; a str may have
        several, as on the command line: ``"tsc,mtc"``. By default all that cost little:
        ``("tsc", "mtc")`` for ``perf``, ``driver`` and ``emulator``, where one packet in 14 can have a
        ``"cyc"``; all for ``step``. A processor without MTC packets (Broadwell) records without them unless
        they are given.
    psb_period : int
        Bytes between PSB packets: a power of two, 2048 at least (default: 4096).
    tnt_64 : bool
        Use long TNT packets where they save bytes. Not for ``perf`` and ``driver``: a processor decides for
        itself.
    mtc_period : int
        IA32_RTIT_CTL.MTCFreq, 0 to 15: an MTC each 2**mtc_period ticks of the crystal clock (TSC / 480 here).
        By default 3 for ``perf``, ``driver`` and ``emulator``, 8 for ``step``, which takes so long for a step
        that more packets would add nothing. Where a processor lacks that period, the nearest that it has.
    cyc_threshold : int
        IA32_RTIT_CTL.CycThresh, 0 to 15.
    max_instructions : int
        Stop recording after so many; the program runs on untraced. Not for ``perf`` and ``driver``.
    filters : sequence of Filter or str
        Which code is traced, as the trace unit filters: `Filter` objects, or texts as `Filter.parse` reads
        them. Not for ``step``.
    triggers : sequence of Trigger or str
        When recording begins or ends, or the ring is kept: `Trigger` objects, or texts as `Trigger.parse`
        reads them. Only for ``emulator`` and ``perf``, which notices a little late.
    ring : int or str
        Keep only the last so many bytes of trace, such as ``"64M"``; all streams together, with ``perf``
        and ``driver`` of each processor. Not for ``step``.
    redact : bool
        Leave paths and command lines out of the bundle.
    with_debug : bool
        Keep the debug information of each file of executed code, so that `Trace.lines` and `Trace.inlines`
        need no files. It is often larger than the trace; see docs/source-lines.md. Not with `redact`.
    owner : str or int, optional
        The user that gets the finished bundle, by name or number; by default the caller of ``sudo``. Only
        root can give files away.
    force : bool
        Write the bundle also where a file is that is no recording. An earlier recording is kept as
        ``FILE.old`` in any case.
    quiet : bool
        Discard the program's standard output.
    truth : path
        A folder for ``stream-N.u64``: the IP of every instruction that stream N executed, 64 bits each. Not
        for ``perf`` and ``driver``.
    transfers : path
        A folder for ``stream-N.transfers``: every transfer of control with the stack pointer after it
        (docs/emulator.md). Only for ``emulator``.
    levels : str
        ``"user"`` (default), ``"kernel"`` or ``"both"``: the code to trace. This option and those
        that follow are only for ``perf`` and ``driver``.
    pid : int
        Trace a process that runs already.
    cpus : str or sequence of int
        Trace everything that runs on these processors; ``"all"``: on all of them.
    children : bool
        Trace what the process starts, too (default), where that is possible.
    seconds : float
        Stop recording after so many; the program runs on untraced.
    buffer : int or str
        Bytes of the buffer of each processor, such as ``"16M"`` (default: 4 MiB).
    single_range : bool
        With `ring`: single-range output instead of a ToPA table. Only for ``driver``.
    per_thread : bool
        A buffer and a stream for each thread, instead of for each processor; children are not traced. With
        ``perf``, threads that begin while recording are not traced. With ``driver`` they are, without their
        first instructions: a loss at the beginning of the stream.
    event : str
        Terms of perf's event that say otherwise than the other options, such as ``"noretcomp"`` or
        ``"intel_pt/cyc,cyc_thresh=2/"``. Only for ``perf``.
    packets : sequence of str
        More packets, where the processor has them: any of ``"ptwrite"``, ``"power"``, ``"events"``.
    bts : bool
        Record each taken branch by Branch Trace Store instead of packets, where there is no Intel PT; many
        times slower.
    branch_stack : bool, str or sequence of str
        Take samples with the last branches (LBR) instead of packets: True, or which branches, as
        ``perf record -j`` names them, such as ``"any_call,ind_jmp"``. This and what follows: only for
        ``perf``.
    sample_period : int
        Cycles between two samples.
    sample_frequency : int
        Samples a second, instead (default: 4000, or what the kernel allows).
    """

    backend: str
    return_compression: bool
    timing: str | Sequence[str] | None
    psb_period: int
    tnt_64: bool
    mtc_period: int | None
    cyc_threshold: int
    max_instructions: int | None
    filters: Filter | str | Sequence[Filter | str] | None
    triggers: Trigger | str | Sequence[Trigger | str] | None
    ring: int | str | None
    redact: bool
    with_debug: bool
    owner: str | int | None
    force: bool
    quiet: bool
    truth: str | os.PathLike[str] | None
    transfers: str | os.PathLike[str] | None
    levels: str | None
    pid: int | None
    cpus: str | int | Sequence[int] | None
    children: bool | None
    seconds: float | None
    buffer: int | str | None
    single_range: bool
    per_thread: bool
    event: str | None
    packets: str | Sequence[str] | None
    bts: bool
    branch_stack: bool | str | Sequence[str] | None
    sample_period: int | None
    sample_frequency: int | None


@dataclass(frozen=True)
class Plan:
    """A recording that can start.

    Attributes
    ----------
    backend : str
        Name of the back end that is taken.
    reason : str
        Why no better one is used; empty if `backend` was given.
    arguments : dict
        What the core's recorder takes, without the output.
    force : bool
        The output may replace a file that is no recording.
    """

    backend: str
    reason: str
    arguments: dict[str, Any]
    force: bool = False


def path_of(name: str, path: str | os.PathLike[str]) -> bytes:
    """Return a path as the system takes it.

    Raises
    ------
    ConfigError
        If it is none; `name` is the argument's.
    """
    try:
        text = os.fsencode(path)
    except TypeError:
        raise ConfigError(f"{name}: expected a path, found {path!r}") from None
    if not text or b"\0" in text:
        raise ConfigError(f"{name}: {path!r} is no path: it is empty or has a NUL")
    return text


def timing_packets(timing: str | Sequence[str]) -> tuple[str, ...]:
    """Return the timing packets that are named; ``"none"`` names none.

    Raises
    ------
    ConfigError
        If one is not known.
    """
    return tuple(name for name in chosen("timing", timing, (*TIMING, "none")) if name != "none")


def _timing(timing: Any) -> dict[str, bool]:
    names = timing_packets(timing)
    return {name: name in names for name in TIMING}


def _packets(options: Options) -> dict[str, Any]:
    """The trace unit's settings, without those of timing."""
    flags = {name: flag(name, options.get(name, name == "return_compression"))
             for name in ("return_compression", "tnt_64")}  # fmt: skip
    return flags | {
        "psb_period": integer("psb_period", options.get("psb_period", 4096), 0, 1 << 26),
        "cyc_threshold": integer("cyc_threshold", options.get("cyc_threshold", 0), 0, 15),
    }


def _common(options: Options) -> dict[str, Any]:
    limit, truth = options.get("max_instructions"), options.get("truth")
    debug = flag("with_debug", options.get("with_debug", False))
    if debug and options.get("redact"):
        raise ConfigError("with_debug: debug information has the paths of source files; leave out redact")
    owner = options.get("owner")
    given = {} if owner is None else {"owner": here.owner_of(owner)}
    return given | {
        "max_instructions": 0 if limit is None else integer("max_instructions", limit, 1, 2**63 - 1),
        "quiet": flag("quiet", options.get("quiet", False)),
        "debug": debug,
        "truth": b"" if truth is None else path_of("truth", truth),
    }


def _special(options: Options) -> dict[str, Any]:
    """The given options that not every back end has."""
    found: dict[str, Any] = {
        "filters": [(f.kind, os.fsencode(f.file), f.symbol, f.first, f.last)
                    for f in filters_of(options.get("filters"))],
        "triggers": [(t.event, t.action, os.fsencode(t.file), t.name, t.place, t.number, t.count)
                     for t in triggers_of(options.get("triggers"))],
        "redact": flag("redact", options.get("redact", False)),
    }  # fmt: skip
    ring = options.get("ring")
    if ring is not None:
        found["ring"] = size_of("ring", ring)
    elif any(trigger[1] == "snapshot" for trigger in found["triggers"]):
        raise ConfigError("triggers: a snapshot keeps what is in the ring; give its size, such as ring='64M'")
    transfers = options.get("transfers")
    if transfers is not None:
        found["transfers"] = path_of("transfers", transfers)
    # Not for a processor.
    for name in ("max_instructions", "truth"):
        found[name] = options.get(name) is not None
    found["tnt_64"] = options.get("tnt_64", False) is True
    return {name: value for name, value in found.items() if value}


def _for_hardware(options: Options) -> list[str]:
    """The given options that only the back ends perf and driver have."""
    usual: dict[str, tuple[bool | None, ...]] = {"children": (None, True)}
    usual |= dict.fromkeys(("single_range", "per_thread", "bts", "branch_stack"), (None, False))
    given: dict[str, Any] = dict(options)
    used = [name for name in HARDWARE_OPTIONS if given.get(name) not in usual.get(name, (None,))]
    return [NO_CHILDREN if name == "children" else name for name in used]


def _program(argv: Sequence[str | os.PathLike[str]], options: Options) -> tuple[list[bytes], str]:
    """The program with its arguments, and the machine that it was built for; none without a program."""
    other = options.get("pid") is not None or options.get("cpus") is not None
    if other and not argv:
        return [], NATIVE
    if options.get("pid") is not None:
        raise ConfigError("pid: this process is recorded, so give no program")
    words = words_of(argv)
    return words, machine_of(words[0])


def plan_of(argv: Sequence[str | os.PathLike[str]], options: Options) -> Plan:
    """Check all options, and choose the back end.

    Raises
    ------
    ConfigError
        If an option is out of range or there is no such program.
    UnsupportedError
        If the back end does not work here.
    TypeError
        If there is no such option.
    """
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}; there are {', '.join(Options.__annotations__)}")
    program, machine = _program(argv, options)
    special = _special(options)
    hardware = arguments_of(dict(options))
    timing = options.get("timing")
    if timing is not None:
        _timing(timing)
    mtc_period = options.get("mtc_period")
    if mtc_period is not None:
        mtc_period = integer("mtc_period", mtc_period, 0, 15)
    arguments = {"argv": program, **_packets(options), **_common(options)}
    wanted = [*special, *_for_hardware(options)]
    backend, reason = choose(options.get("backend", "auto"), wanted, machine, starts=bool(program))
    arguments |= _timing(DEFAULT_TIMING[backend.name] if timing is None else timing)
    arguments["mtc_period"] = DEFAULT_MTC_PERIOD[backend.name] if mtc_period is None else mtc_period
    if "ring" in special:
        special["ring_bytes"] = special.pop("ring")
    arguments |= {name: value for name, value in special.items() if name not in arguments}
    if backend.name == "emulator":
        filters, triggers = filters_of(options.get("filters")), triggers_of(options.get("triggers"))
        check_functions(program[0], filters, triggers)
        found = qemu.find()
        arguments |= {"qemu": os.fsencode(found.path), "plugin": os.fsencode(found.plugin)}
    if backend.name in ("perf", "driver"):
        arguments |= hardware
        # Defaults of timing, unlike given options, are reduced to what the processor has.
        arguments["usual_timing"] = timing is None and mtc_period is None
        arguments["usual_mtc_period"] = mtc_period is None
    return Plan(backend.name, reason, arguments, flag("force", options.get("force", False)))
