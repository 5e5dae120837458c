"""The types of recording options. Made by tools/make_record_options.py from record_options.def."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from ptkit.capture.filters import Filter
from ptkit.capture.triggers import Trigger

__all__ = ["Options"]


class Options(TypedDict, total=False):
    """Options of `ptkit.record` and `ptkit.Recorder`; all may be left out.

    Attributes
    ----------
    backend : str
        Auto, or a name that ``ptkit doctor`` lists (default: auto). ``"auto"`` is the best that works on this
        system; ``ptkit.capture.probe`` returns the names.
    force : bool | None
        Overwrite a file that is not a recording. An earlier recording is kept as ``FILE.old`` in any case.
    redact : bool | None
        Leave paths and command lines out of the bundle.
    with_debug : bool | None
        Keep source lines and inlined functions of programs in the bundle. ``Trace.lines`` and
        ``Trace.inlines`` then need no files. Debug information is often larger than the trace; see
        docs/source-lines.md. Not with ``redact``.
    owner : str | int | None
        User that gets the finished bundle (default: you, also under sudo); root keeps it. By name or number.
        Only root can give files away.
    quiet : bool | None
        Discard the program's standard output.
    filters : Filter | str | Sequence[Filter | str] | None
        Trace only some code; may be repeated. As the trace unit filters: ``Filter`` objects, or texts as
        ``Filter.parse`` reads them. Only for ``perf``, ``driver``, ``emulator``.
    triggers : Trigger | str | Sequence[Trigger | str] | None
        Start, stop or keep the recording at an address or signal; may be repeated. ``Trigger`` objects, or
        texts as ``Trigger.parse`` reads them. ``perf`` notices an event a little late. Only for ``perf``,
        ``emulator``.
    max_instructions : int | None
        Record the first N instructions. The program runs on untraced. 1 to 2**63 - 1. Only for ``emulator``,
        ``step``.
    ring : int | str | None
        Keep only the last SIZE bytes of trace, such as 64M or 1G (trace units: of each processor). In the
        emulator: of all streams together. 4096 to 281474976710656 bytes. Only for ``perf``, ``driver``,
        ``emulator``.
    timing : str | Sequence[str] | None
        Timing packets: any of tsc,mtc,cyc, or none (default: tsc,mtc on a trace unit). ``"mtc"`` includes TMA
        packets. ``"cyc"`` gives nearer times: in the emulator, to one packet in 14. The default of the
        emulator is tsc,mtc, too, and that of ``step`` all of them. A processor without MTC packets
        (Broadwell) records without them unless they are given. Any of tsc, mtc, cyc, none.
    psb_period : int | None
        Bytes between PSBs (default: 4096). A power of two, 2048 to 67108864 bytes.
    return_compression : bool | None
        False: write every RET as a TIP packet. With return compression, a return that matches its call takes
        a bit instead of a TIP packet (SDM, "Return Compression").
    tnt_64 : bool | None
        Write long TNT packets where they save bytes. A processor decides for itself. Only for ``emulator``,
        ``step``.
    mtc_period : int | None
        The field MTCFreq (default: 3 on a trace unit). IA32_RTIT_CTL.MTCFreq: an MTC each 2**mtc_period ticks
        of the crystal clock (TSC / 480 in the emulator). The default of the emulator is 3, too, and that of
        ``step`` 8: it takes so long for an instruction that more packets add nothing. If a processor lacks
        the default period, the nearest that it has is used. 0 to 15.
    cyc_threshold : int | None
        The field CycThresh (default: 0). IA32_RTIT_CTL.CycThresh. 0 to 15.
    levels : str | None
        Trace user code, kernel code or both: user, kernel, both (default: user). One of user, kernel, both.
        Only for ``perf``, ``driver``.
    pid : int | None
        Record a running process. 1 to 2147483647. Only for ``perf``, ``driver``.
    cpus : str | int | Sequence[int] | None
        Record whatever runs on these processors, such as 0,2-3. ``"all"``: on all processors. Processors, 0
        to 65535. Only for ``perf``, ``driver``.
    children : bool | None
        False: do not follow children (default: follow). Children are traced if ``children`` is true and the
        system permits it. Only for ``perf``, ``driver``.
    seconds : float | None
        Record for S seconds. The program runs on untraced. 0.001 to 1000000000 s. Only for ``perf``,
        ``driver``.
    buffer : int | str | None
        Size of each processor's buffer, such as 16M (default: 4M). 4096 to 281474976710656 bytes. Only for
        ``perf``, ``driver``.
    single_range : bool | None
        With --ring: one range of memory instead of a ToPA table (driver). Only for ``driver``.
    per_thread : bool | None
        A buffer and a stream for each thread instead of each processor; children are not traced. With
        ``perf``, threads that start while recording are not traced. With ``driver`` they are, without their
        first instructions: a loss at the start of the stream. Only for ``perf``, ``driver``.
    event : str | None
        Perf event terms, which override all others, such as noretcomp,cyc_thresh=2 (perf). Such as
        ``"noretcomp"`` or ``"intel_pt/cyc,cyc_thresh=2/"``. Only for ``perf``.
    packets : str | Sequence[str] | None
        Further packets: any of ptwrite,power,events. If the processor has them. Any of ptwrite, power,
        events. Only for ``perf``, ``driver``.
    bts : bool | None
        Record each taken branch by Branch Trace Store instead of packets. For processors without Intel PT;
        many times slower. Only for ``perf``, ``driver``.
    branch_stack : bool | str | Sequence[str] | None
        Record samples with the last branches (LBR) instead of packets: all kinds, or any of
        any_call,any_ret,cond,ind_call,ind_jmp,call,in_tx,no_tx,abort_tx (perf). True, or the kinds of
        branches as ``perf record -j`` names them, such as ``"any_call,ind_jmp"``. Only for ``perf``.
    sample_period : int | None
        Cycles between samples (perf). 1 to 2**63 - 1 cycles. Only for ``perf``.
    sample_frequency : int | None
        Samples a second (perf; default: 4000, or as many as the kernel allows). 1 to 2**63 - 1 Hz. Only for
        ``perf``.
    """

    backend: str
    force: bool | None
    redact: bool | None
    with_debug: bool | None
    owner: str | int | None
    quiet: bool | None
    filters: Filter | str | Sequence[Filter | str] | None
    triggers: Trigger | str | Sequence[Trigger | str] | None
    max_instructions: int | None
    ring: int | str | None
    timing: str | Sequence[str] | None
    psb_period: int | None
    return_compression: bool | None
    tnt_64: bool | None
    mtc_period: int | None
    cyc_threshold: int | None
    levels: str | None
    pid: int | None
    cpus: str | int | Sequence[int] | None
    children: bool | None
    seconds: float | None
    buffer: int | str | None
    single_range: bool | None
    per_thread: bool | None
    event: str | None
    packets: str | Sequence[str] | None
    bts: bool | None
    branch_stack: bool | str | Sequence[str] | None
    sample_period: int | None
    sample_frequency: int | None
