"""Opening a trace; and the packet layer alone."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit import decode as _decode
from ptkit.decode import OpenTrace, Query, Settings
from ptkit.errors import ConfigError, FormatError, PtkitWarning, SymbolError
from ptkit.info import PacketCounts, count_packets, info_of
from ptkit.support.arguments import flag
from ptkit.support.text import last_part
from ptkit.table import Table, TableContext
from ptkit.trace.facade import Trace
from ptkit.trace.names.code_segments import set_cs_base
from ptkit.trace.opening.bundle import apply_settings, open_source, set_ring_offset
from ptkit.trace.opening.images import add_images
from ptkit.trace.opening.symbols import SymbolLists
from ptkit.trace.ranges import differing_images

if TYPE_CHECKING:
    from typing_extensions import Buffer, Unpack

    from ptkit.trace.open_parts import ImageCallback
    from ptkit.trace.opening.bundle import Source
    from ptkit.trace.opening.images import ImageItem
    from ptkit.trace.opening.symbols import SymbolItem

__all__ = ["open", "packet_counts", "packets"]


def open(
    path: Source,
    *,
    cpu: str | None = None,
    engine: str = "ptkit",
    resync: str = "ip",
    threads: int | None = None,
    errors: str = "rows",
    format: str | None = None,
    images: Sequence[ImageItem] | Mapping[int, Buffer] | None = None,
    symbols: Sequence[SymbolItem] | str | os.PathLike[str] | None = None,
    binaries: Sequence[str | os.PathLike[str]] | None = None,
    debug_path: Sequence[str | os.PathLike[str]] | None = None,
    image_callback: ImageCallback | None = None,
    ranges: Sequence[tuple[str, int, int]] | None = None,
    rtit_ctl: int | None = None,
    tsc_ctc_ratio: tuple[int, int] | None = None,
    mtc_period: int | None = None,
    max_nonturbo_ratio: int | None = None,
    tsc_hz: int | None = None,
    crystal_hz: int | None = None,
    perf_time: tuple[int, int, int] | None = None,
    cs_base: int | None = None,
    sync: bool = True,
    bts_index: int | None = None,
    ring_offset: int | None = None,
    index: bool | str | os.PathLike[str] = True,
) -> Trace:
    """Open a trace.

    Parameters
    ----------
    path : path, bytes-like or list of these
        A file or folder of any known format; bytes, bytearray, memoryview, mmap or a NumPy uint8 array with
        a raw stream; or a list of such parts of one raw stream. A buffer is not copied; the parts of a list
        are, into one.
    cpu : str, optional
        ``"family/model[/stepping]"`` where the input does not say; decides which errata apply. An unknown
        processor gets a warning and all errata that are harmless elsewhere.
    engine : str
        ``"ptkit"``; ``"simple"`` for the same without its fast path; or ``"libipt"`` for the same tables by
        the reference decoder.
    resync : str
        Where to go on after an error: ``"ip"``, the next packet with an IP where that is safe, or ``"psb"``,
        the next PSB.
    threads : int, optional
        Streams, or parts of a long one, decoded at the same time; None: all cores. Results do not depend on
        it.
    errors : str
        ``"rows"``, or ``"raise"``: the first error becomes a `DecodeError`.
    format : str, optional
        Name of the reader, for inputs that the content does not identify.
    images : sequence, optional
        Code: paths of ELF or PE files, ``(path, load address)``, ``(bytes, address)``, ``{address: bytes}``.
        A file that is neither holds raw bytes and needs its address. A PE file without one goes where the
        recording says that a module of its name was, else where it was linked for. ``(path, address, cr3)``:
        in the address space of the process with this CR3 alone, where it comes before images of all; ``(path,
        address, cr3, "memory")`` or ``"file"``: the layout of a PE file, which its contents tell otherwise.
        See docs/formats.md.
    symbols : sequence, optional
        Names: paths of lists of symbols, or ``(path, base)``. The kind is found by the content: output of
        nm, System.map and kallsyms, maps of IDA, of Microsoft's linker and of GNU ld (``-Map``), output of
        WinDbg's ``x`` and ``lm``, Volatility ISF and Rekall profiles (JSON, also .gz and .xz),
        ``perf-PID.map``, and PDBs. Lists that are relative to a module go wherever the trace has a module of
        this name (a PDB: of its GUID and age), and with `base`, the address of the module, there; ``(path,
        base, cr3)``: in the process with this CR3. See docs/modules.md.
    binaries : sequence of paths, optional
        Folders where programs and libraries lie that a recording names and does not hold (`perf.data`): below
        their own paths, by their names alone, or by build-id (``.build-id/ab/cdef...``). They win over what
        lies at the recorded path; a file with another build-id is not taken.
    debug_path : sequence of paths, optional
        Where names and source lines are looked for that programs lack: folders with debug files as in
        ``/usr/lib/debug``, with ``.dwo`` and ``.dwp`` files (split DWARF), or with PDBs (as they are, or as
        symbol servers have them: ``NAME.pdb/GUIDAGE/NAME.pdb``), and such files themselves.
        They come before the folders of ``$PTKIT_DEBUG_PATH`` and ``/usr/lib/debug``. A file of another build
        is not taken. See docs/source-lines.md.
    image_callback : callable, optional
        ``callback(address, size, space)`` returns up to `size` bytes of code at an address that no image
        covers, or None. What it raises comes out of the method that decodes.
    ranges : sequence of tuple, optional
        Address ranges that were programmed (IA32_RTIT_ADDRn_A and _B), at most 4: ``("filter", first, last)``
        where packets are on, or ``("stop", first, last)`` (TraceStop), `last` inclusive. They say where a
        branch went that left them without an IP. None: those of the recording, if it has them; ``[]``: none.
    rtit_ctl : int, optional
        IA32_RTIT_CTL as it was programmed: whether returns are compressed (DisRETC), whether conditional
        branches have packets (DisTNT), MTCFreq, PTWEn, EventEn, OS. None: that of the recording, if it has
        it. ``ptkit msr explain RTIT_CTL VALUE`` says what a value means.
    tsc_ctc_ratio : tuple of int, optional
        (CPUID 15H EBX, EAX).
    mtc_period : int, optional
        The field MTCFreq of IA32_RTIT_CTL, 0 to 15; wins over that of `rtit_ctl`.
    max_nonturbo_ratio : int, optional
        MSR_PLATFORM_INFO[15:8], 1 to 255.
    tsc_hz : int, optional
        TSC frequency, for times in nanoseconds.
    crystal_hz : int, optional
        CPUID 15H ECX, the crystal's frequency: gives `tsc_hz` = `crystal_hz` * EBX / EAX where it is not
        given.
    perf_time : tuple of int, optional
        ``(time_mult, time_shift, time_zero)`` of perf's ``perf_event_mmap_page``: times in nanoseconds are
        those of perf's clock. Wins over `tsc_hz`.
    cs_base : int, optional
        Base of the code segment of 16 and 32-bit code, 0 to 2**32 - 1: added, modulo 2**32, to IP payloads of
        such code (TIP, TIP.PGE, TIP.PGD, FUP), so that all tables but ``packets`` have linear addresses. For
        recordings with effective addresses as IP payloads (``trace.info.ip_payloads``). Code, filter
        ranges and symbols are at linear addresses in any case.
    sync : bool
        False: a stream may begin without a PSB, and a raw stream needs none: what a trace unit writes when
        tracing is enabled again has none. Control flow is known from the first TIP.PGE or FUP with a full IP
        (six or eight bytes) on, and times from the first PSB on; the mode is that of the last MODE.Exec
        before, or 64 bits. The table ``packets`` begins at the first byte. ``engine="libipt"`` begins
        branches, blocks, instructions, edges and events at the first PSB all the same.
    bts_index : int, optional
        For ``format="bts"`` and ``"bts32"``: the number of the record that would be written next, from 0: the
        BTS index of the DS area less the BTS buffer base, divided by the size of a record (24 or 12). The
        buffer is a ring, and its records are put in the order of execution from there. None: a ring is put
        in order where its records tell for certain where it begins; a `PtkitWarning` says that they did, or
        that the buffer is full and they do not.
    ring_offset : int, optional
        Of a raw stream that is a buffer as it was in memory: where the next byte would be written, which is
        IA32_RTIT_OUTPUT_MASK_PTRS[63:32] of a single range. The buffer is a ring, and its bytes are put in
        the order in which they were written. Offsets of rows are those of this order.
    index : bool or path
        True: use the index that lies beside the trace (see `Trace.index`), if there is one; False: do not;
        or its path. One that is damaged or does not belong to this trace, with these images and settings, is
        not used, and a `PtkitWarning` says why.

    Warns
    -----
    PtkitWarning
        For each warning of the recording, for each list of which no symbol lies at code, and for each
        image of which page dumps of the recording hold other code: they give the code, and the image gives
        names that may be wrong there.

    Returns
    -------
    Trace

    Raises
    ------
    OpenError
        If a path cannot be read (`MissingFileError` if it is not there).
    FormatError
        If the input is no trace, or damaged.
    ConfigError
        If an argument is out of range, two images overlap in one address space, it is not known where
        symbols of a list lie, `bts_index` or `ring_offset` is given for another format, or `cs_base` where
        the recording says that IP payloads are linear addresses.
    UnsupportedError
        If the engine is not in this build, or cannot add `cs_base`.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": CPUID leaf 14H, ECX[31] (table "CPUID Leaf 14H Enumeration of
    Intel Processor Trace Capabilities") says whether IP payloads are linear addresses (LIP) or effective ones
    (RIP). Where it says the latter, a `PtkitWarning` comes once with the first 16-bit code that is decoded,
    and with 32-bit code that Linux did not start, unless `cs_base` is given.
    """
    _decode.plan.check_choice("engine", engine, ("ptkit", "simple", "libipt"))
    _decode.plan.check_choice("resync", resync, ("ip", "psb"))
    _decode.plan.check_choice("errors", errors, ("rows", "raise"))
    _decode.plan.thread_count(threads)
    if engine not in _core.engines():
        from ptkit.errors import UnsupportedError

        raise UnsupportedError(
            f"engine={engine!r} is not in this build: apt-get install libipt-dev, then build again"
        )
    if image_callback is not None and not callable(image_callback):
        raise TypeError(f"image_callback must be callable, not {type(image_callback).__name__}")
    bundle = open_source(path, format, binaries, bts_index, sync=flag("sync", sync))
    if ring_offset is not None:
        set_ring_offset(bundle, ring_offset)
    lists = SymbolLists(symbols)
    lists.add_modules(bundle)
    recorded = len(bundle.files)
    add_images(bundle, images)
    given = {last_part(name) for name, _ in bundle.files[recorded:]}
    lists.add_symbols(bundle)
    apply_settings(
        bundle,
        cpu=cpu,
        ranges=ranges,
        rtit_ctl=rtit_ctl,
        tsc_ctc_ratio=tsc_ctc_ratio,
        mtc_period=mtc_period,
        max_nonturbo_ratio=max_nonturbo_ratio,
        tsc_hz=tsc_hz,
        crystal_hz=crystal_hz,
        perf_time=perf_time,
    )
    if not bundle.streams:
        raise FormatError(f"{bundle.source} contains no trace: no stream of packets or branches")
    if cs_base is not None:
        set_cs_base(bundle, cs_base, engine)
    bundle.set_sync(sync)
    settings = Settings(engine, resync, threads, errors, cs_base=cs_base, sync=sync)
    trace = Trace(bundle, settings, image_callback, given, debug_path)
    if index is not False and image_callback is None and engine != "libipt":
        trace.open_parts.find_index(None if index is True else index)
    for sentence in [*trace.open_parts.warnings, *differing_images(bundle, recorded)]:
        warnings.warn(sentence, PtkitWarning, stacklevel=2)
    return trace


def packets(data: Source, *, sync: bool = False, **query: Unpack[Query]) -> Table:
    """Decode the packets of a raw stream: the packet layer alone.

    Parameters
    ----------
    data : bytes-like, path or list of these
        A raw stream: bytes, bytearray, memoryview, mmap, NumPy uint8 array, or a file.
    sync : bool
        Begin at the first PSB instead of the first byte.
    **query
        See `ptkit.decode.Query`.

    Returns
    -------
    Table
        As `Trace.packets`; what is no packet is a row of ``.errors``.

    Raises
    ------
    OpenError
        If a file cannot be read.
    ConfigError, ColumnError
        If an argument is out of range, or there is no such column.
    DecodeError
        With ``errors="raise"``: the first error.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": "Packet Definitions".

    Examples
    --------
    >>> import ptkit
    >>> table = ptkit.packets(bytes.fromhex("711093388506f80000"))
    >>> table.named("kind"), hex(table["ip"][0])
    (['TIP_PGE', 'PAD'], '0xfffff80685389310')
    """
    from ptkit.trace.opening.bundle import packet_source

    bundle = packet_source(data)
    opened = OpenTrace(bundle, _core.Session(bundle, None), Settings())
    scope = _decode.Scope(
        opened.session, info_of(bundle, "ptkit"), _no_symbols, _no_modules, bundle.spaces_of_cr3
    )
    plan = _decode.plan_of(opened, TableContext(), "packets", query, scope=scope, sync=sync)
    return _decode.read(plan)


def _no_symbols(name: str) -> list[_decode.Range]:
    raise SymbolError(f"no symbol {name!r}: packets alone have no code; use ptkit.open with images=[...]")


def _no_modules(name: str) -> list[_decode.Range]:
    raise ConfigError(f"no module {name!r}: packets alone have no code; use ptkit.open with images=[...]")


def packet_counts(data: Source, *, sync: bool = False) -> PacketCounts:
    """Count the packets of a raw stream by kind, without making rows of them.

    Parameters
    ----------
    data : bytes-like, path or list of these
        A raw stream, as for `packets`.
    sync : bool
        Begin at the first PSB instead of the first byte.

    Returns
    -------
    PacketCounts
        Equal to counting the rows of `packets`, at a few gigabytes per second.

    Raises
    ------
    OpenError
        If a file cannot be read.

    Examples
    --------
    >>> import ptkit
    >>> counts = ptkit.packet_counts(bytes.fromhex("711093388506f80000"))
    >>> counts[ptkit.PacketKind.TIP_PGE], counts[ptkit.PacketKind.PAD]
    (1, 2)
    """
    from ptkit.trace.opening.bundle import packet_source

    return count_packets(_core.Session(packet_source(data), None), [0], sync=sync)
