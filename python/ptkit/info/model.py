"""Facts about a whole trace, without decoding it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.errors import TraceWarning
from ptkit.info.facts import MissingFile, ModuleInfo, StreamInfo, TraceFacts
from ptkit.info.lines import lines_of
from ptkit.support.text import last_part, module_name, one_line, shortened_message

# Kind of IP payloads of 16 and 32-bit code: with the base of the code segment, and without.
LINEAR, EFFECTIVE = "linear", "effective"
_NAMED_FILES = 3
# Formats with readers that look for files in the folders that --binaries names.
_TAKES_FOLDERS = frozenset({"libipt-script", "perf.data", "simple-pt"})
# Members of a bundle's metadata that the bundle's configuration repeats.
_CONFIGURATION = frozenset(
    {"clock", "cpu", "ip_payloads", "ranges", "ranges_known", "rtit_ctl", "space_ranges"}
)


@dataclass(frozen=True)
class PacketCounts(Mapping[_core.PacketKind, int]):
    """How many packets of each kind: ``counts[ptkit.PacketKind.TIP]``, 0 for kinds that do not occur.

    As a mapping it has the kinds that occur, in the order of their values.

    Attributes
    ----------
    packets : dict
        Packets by `ptkit.PacketKind`, kinds that occur; every byte of PAD counts as one.
    tnt_bits : int
        Taken/not-taken bits of TNT.8 and TNT.64.
    errors : int
        Offsets at which the bytes are no packet; counting goes on at the next PSB.
    lost_bytes : int
        Bytes between such an offset, or the beginning, and that PSB.
    last_ip : int or None
        The last IP at the end, as packets compress against it; None if no packet gave all of its bits,
        and for more than one stream.
    """

    packets: dict[_core.PacketKind, int]
    tnt_bits: int
    errors: int
    lost_bytes: int
    last_ip: int | None

    def __getitem__(self, kind: _core.PacketKind) -> int:
        return self.packets.get(_core.PacketKind(kind), 0)

    def __iter__(self) -> Iterator[_core.PacketKind]:
        return iter(self.packets)

    def __len__(self) -> int:
        return len(self.packets)

    def __str__(self) -> str:
        lines = [f"{_core.PacketKind(kind).name:<10} {count:>15,}" for kind, count in self.packets.items()]
        lines += [f"{name:<10} {getattr(self, name):>15,}" for name in ("tnt_bits", "errors", "lost_bytes")]
        return "\n".join(lines)


def count_packets(session: _core.Session, streams: Sequence[int], *, sync: bool) -> PacketCounts:
    """Count the packets of some streams together."""
    results = [_core.count_packets(session, stream, sync) for stream in streams]
    sums = [sum(counts) for counts in zip(*(result["packets"] for result in results), strict=True)]
    packets = {_core.PacketKind(kind): count for kind, count in enumerate(sums) if count}
    tnt_bits, errors, lost = (
        sum(result[name] for result in results) for name in ("tnt_bits", "errors", "lost_bytes")
    )
    last_ip = results[0]["last_ip"] if len(results) == 1 else None
    return PacketCounts(packets, tnt_bits, errors, lost, last_ip)


@dataclass(frozen=True)
class TraceInfo(TraceFacts):
    """Streams, processor, clock, filters, code and warnings of a trace.

    Attributes
    ----------
    source : str
        Path, or a description of the memory that it came from.
    format : str
        Name of the reader that made it: ``"raw"``, ``"ptk"``, ``"lldb"``, ...
    engine : str
        ``"ptkit"`` or ``"libipt"``.
    bytes : int
        Bytes of all streams.
    cpu : tuple of int or None
        (family, model, stepping); None: not known, all errata that are harmless elsewhere apply.
    tsc_ctc_ratio : tuple of int or None
        (CPUID leaf 15H EBX, EAX): TSC ticks per tick of the core crystal clock.
    mtc_period : int or None
        MTCFreq of IA32_RTIT_CTL: an MTC packet each 2**mtc_period ticks of the core crystal clock.
    max_nonturbo_ratio : int or None
        MSR_PLATFORM_INFO[15:8]: the core:bus ratio at which the core runs as fast as the TSC.
    tsc_hz : int or None
        TSC frequency, in Hz.
    perf_time : tuple of int or None
        (time_mult, time_shift, time_zero) of perf's conversion to nanoseconds.
    rtit_ctl : int or None
        IA32_RTIT_CTL as recorded.
    ip_payloads : str or None
        Kind of IP payloads of 16 and 32-bit code, as CPUID leaf 14H, ECX[31] ("LIP") says: ``"linear"``
        addresses, or ``"effective"`` ones, which lack the base of the code segment. None: not known.
    cs_base : int
        Base that is added to them (`ptkit.open`).
    ranges : tuple of (str, int, int)
        (``"filter"`` or ``"stop"`` (TraceStop), first address, last address) of address ranges.
    streams : tuple of StreamInfo
        One entry per stream.
    spaces : tuple of (int or None, int or None)
        (pid, CR3) of each address space; the column ``space`` is an index into it.
    threads : tuple of (int or None, int or None, str)
        (pid, tid, name) of the threads that are known.
    files : tuple of (str, str)
        (path, build-id or empty text) of images; the column ``file`` of errors is an index into it.
    code_regions, code_bytes : int
        How many regions of code are known, and their bytes.
    missing_files : tuple of MissingFile
        Files that the recording names and that were not found, by path.
    warnings : tuple of TraceWarning
        Damage of the input, and things missing from it: one sentence for each fact.
    modules : tuple of ModuleInfo
        Files that code was mapped from, each where it was loaded, by address space and base.
    recording : dict
        Facts from a bundle's recorder: ``backend``, ``command`` (list of str), ``machine``, ``begin_ns`` and
        ``end_ns`` (ns since 1970), ``exit_status`` (of the program; 128 + signal if it was killed),
        ``instructions``, ``redacted`` (bool: paths and names were left out), ... Each only if it is known.

    first_tsc, last_tsc : int or None
        First and last time of all streams, in TSC ticks; None if there is none.
    first_ns, last_ns : int or None
        First and last time by the recorder's clock, as column ``time_ns``; None if it is not known.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": "IA32_RTIT_CTL MSR", "Timing". The conversion of times is that
    of the kernel's tools/perf/util/tsc.c.
    """

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, e.g. for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return self.text()

    def text(self, *, verbose: bool = False) -> str:
        """One line for each fact.

        Parameters
        ----------
        verbose : bool
            Also registers, the clock, build-ids, each file that is missing, and all processes, modules and
            streams, however many they are.

        Returns
        -------
        str
        """
        return "\n".join(
            f"{name + ':':<14} {one_line(shortened_message(text))}"
            for name, text in lines_of(self, verbose=verbose)
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(one_line(text))}</td></tr>"
            for name, text in lines_of(self)
        )
        return f'<table class="ptkit">{rows}</table>'


def modules_of(
    mappings: Mapping[str, NDArray[Any]],
    files: Sequence[tuple[str, str]],
    image_bytes: Callable[[int], int],
) -> tuple[ModuleInfo, ...]:
    """Modules: one for each file, address space and load address of the table of mappings.

    They end with their last mapping, or where `image_bytes` of the file says that the image ends (PE).
    """
    ends: dict[tuple[int, int, int], int] = {}
    rows = zip(
        *(mappings[name].tolist() for name in ("space", "address", "rva", "file", "size")), strict=True
    )
    for space, address, rva, file, size in rows:
        if file >= 0:
            key = space, (address - rva) % 2**64, file
            ends[key] = max(ends.get(key, 0), rva + size)
    # The file of a module that a recording knows by name alone may be given as an image: one module.
    in_turn = sorted(ends, key=lambda key: (bool(files[key[2]][1]), key[2]))
    named = {(*key[:2], module_name(files[key[2]][0]).lower()): key for key in in_turn}
    kept = {key for key in ends if files[key[2]][1]} | set(named.values())
    images = {file: image_bytes(file) for _, _, file in kept}
    return tuple(
        ModuleInfo(*files[file], base, max(size, images[file]), space)
        for (space, base, file), size in sorted(ends.items())
        if (space, base, file) in kept
    )


def _recording(metadata: str) -> dict[str, Any]:
    """Give the recorder's members of a bundle's metadata, without those that the configuration repeats."""
    said: dict[str, Any] = json.loads(metadata) if metadata else {}
    return {name: value for name, value in said.items() if name not in _CONFIGURATION}


def _warnings(
    bundle: _core.Bundle, missing: Sequence[MissingFile], streams: Sequence[StreamInfo], cpu: str | None
) -> Iterator[TraceWarning]:
    """A warning for each damaged or missing thing."""
    yield from bundle.warnings
    if missing:
        yield _missing(missing, bundle.format)
    if outside := bundle.outside_files(code=True) + bundle.outside_files(code=False):
        yield _core.make_warning("FILES_OUTSIDE", [", ".join(outside)], bundle.source)
    if cpu is None and any(stream.kind == "packets" for stream in streams):
        yield _core.make_warning("CPU_UNKNOWN", [], bundle.source)


def _missing(files: Sequence[MissingFile], format: str) -> TraceWarning:
    """How many files are missing, and the first ones."""
    names = ", ".join(file.path for file in files[:_NAMED_FILES]) if len(files) > 1 else str(files[0])
    more = f" and {len(files) - _NAMED_FILES:,} more" if len(files) > _NAMED_FILES else ""
    where = " (ptkit info --verbose, trace.info.missing_files)" if len(files) > 1 else ""
    code = "FILES_MISSING" if format in _TAKES_FOLDERS else "IMAGES_MISSING"
    return _core.make_warning(code, [str(len(files)), names + more + where], "")


def _missing_files(listed: Any, given: Collection[str]) -> Iterator[MissingFile]:
    """Files that a bundle's metadata lists, but for those of which an image of the same name was given."""
    for row in listed if isinstance(listed, list) else []:
        if isinstance(row, dict) and isinstance(row.get("path"), str):
            path, build_id, reason = (str(row.get(name, "")) for name in ("path", "build_id", "reason"))
            if last_part(path) not in given:
                yield MissingFile(path, build_id, reason)


def info_of(bundle: _core.Bundle, engine: str, given: Collection[str] = ()) -> TraceInfo:
    """Describe a bundle; `given` are the names of images that were given besides."""
    configuration = bundle.configuration
    streams = tuple(StreamInfo(**row) for row in bundle.streams)
    code = bundle.code
    recording = _recording(bundle.metadata)
    missing = tuple(_missing_files(recording.pop("missing_files", None), given))
    recording.pop("outside_files", None)
    return TraceInfo(
        source=bundle.source,
        format=bundle.format,
        engine=engine,
        bytes=sum(stream.size for stream in streams),
        cpu=configuration["cpu"],
        tsc_ctc_ratio=configuration["tsc_ctc_ratio"],
        mtc_period=configuration["mtc_period"],
        max_nonturbo_ratio=configuration["max_nonturbo_ratio"],
        tsc_hz=configuration["tsc_hz"],
        perf_time=configuration["perf_time"],
        rtit_ctl=configuration["rtit_ctl"],
        ip_payloads=configuration["ip_payloads"],
        cs_base=configuration["cs_base"],
        ranges=tuple(configuration["ranges"]),
        streams=streams,
        spaces=tuple(bundle.spaces),
        threads=tuple(bundle.threads),
        files=tuple(bundle.files),
        code_regions=len(code),
        code_bytes=sum(size for _, size, known, _, _ in code if known),
        missing_files=missing,
        warnings=tuple(_warnings(bundle, missing, streams, configuration["cpu"])),
        recording=recording,
    )


def complete(
    info: TraceInfo,
    session: _core.Session,
    to_ns: Callable[[NDArray[np.uint64]], NDArray[np.int64]] | None,
) -> TraceInfo:
    """Add first and last times; `to_ns` converts TSC ticks, if the clock is known."""
    spans = [_core.stream_span(session, index) for index in range(len(info.streams))]
    streams = tuple(
        stream if span is None else replace(stream, first_tsc=span[0], last_tsc=span[1])
        for stream, span in zip(info.streams, spans, strict=True)
    )
    known = [span for span in spans if span is not None]
    if not known:
        return info
    ends = min(first for first, _ in known), max(last for _, last in known)
    ns = (None, None) if to_ns is None else to_ns(np.array(ends, np.uint64)).tolist()
    return replace(
        info,
        streams=streams,
        first_tsc=ends[0],
        last_tsc=ends[1],
        first_ns=ns[0],
        last_ns=ns[1],
    )
