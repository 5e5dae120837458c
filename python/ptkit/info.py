"""What a trace is, without decoding it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from html import escape
from shlex import join
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.errors import TraceWarning
from ptkit.schema import BRANCH_RECORD
from ptkit.text import counted, last_part, one_line

EMULATOR = "emulator"
#: What the times of a recording by the emulator are good for (docs/emulator.md).
EMULATED_TIMES = "emulated: compare instructions, not durations"
# What IP payloads of 16 and 32-bit code are: with the base of the code segment, and without.
LINEAR, EFFECTIVE = "linear", "effective"
_NAMED_FILES = 3
# Formats with readers that look for files in the folders that --binaries names.
_TAKES_FOLDERS = frozenset({"libipt-script", "perf.data", "simple-pt"})
# Members of a bundle's metadata that the bundle's configuration repeats.
_CONFIGURATION = frozenset({"clock", "cpu", "ip_payloads", "ranges", "rtit_ctl"})


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
        Places where the bytes are no packet; counting goes on at the next PSB.
    lost_bytes : int
        Bytes between such a place, or the beginning, and that PSB.
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
class StreamInfo:
    """One stream: packets, or branch records.

    Attributes
    ----------
    name : str
        What the recorder calls it; may be empty.
    kind : str
        ``"packets"`` (Processor Trace) or ``"branch records"`` (BTS, branch stacks; docs/branch-records.md).
    size : int
        Bytes.
    cpu, pid, tid : int or None
        Where and for whom it was recorded; None if that is not known or changes.
    space : int
        Address space that it begins in.
    switches : int
        Context switches that are known.
    losses : int
        Places where the recorder says that bytes are missing.
    lost_bytes : int
        How many, as far as that is known.
    first_tsc, last_tsc : int or None
        First and last time, in TSC ticks; None if there is none in the 64 MiB at either end.
    """

    name: str
    kind: str
    size: int
    cpu: int | None
    pid: int | None
    tid: int | None
    space: int
    switches: int
    losses: int
    lost_bytes: int
    first_tsc: int | None = None
    last_tsc: int | None = None


@dataclass(frozen=True)
class MissingFile:
    """A file that the recording names and that was not found: code in it is not decoded.

    Attributes
    ----------
    path : str
        Where it was.
    build_id : str
        Hexadecimal; empty if it is not known.
    reason : str
        Why a file of this name was not taken; empty if there was none.
    """

    path: str
    build_id: str
    reason: str

    def __str__(self) -> str:
        about = [f"build-id {self.build_id}"] if self.build_id else []
        about += [self.reason] if self.reason else []
        return f"{self.path} ({'; '.join(about)})" if about else self.path


@dataclass(frozen=True)
class TraceInfo:
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
        What IP payloads of 16 and 32-bit code are, as CPUID leaf 14H, ECX[31] ("LIP") says: ``"linear"``
        addresses, or ``"effective"`` ones, which lack the base of the code segment. None: not known.
    cs_base : int
        What is added to them (`ptkit.open`).
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
        What is odd with the input, and what is missing from it: one sentence for each fact.
    recording : dict
        What a bundle's recorder says: ``backend``, ``command`` (list of str), ``machine``, ``begin_ns`` and
        ``end_ns`` (ns since 1970), ``exit_status`` (of the program; 128 + signal if it was killed),
        ``instructions``, ``redacted`` (bool: paths and names were left out), ... Each only if it is known.

    first_tsc, last_tsc : int or None
        First and last time of all streams, in TSC ticks; None if there is none.
    first_ns, last_ns : int or None
        The same in ns of the recorder's clock, as column ``time_ns``; None if the clock is not known.

    Notes
    -----
    Intel SDM vol. 3, "Intel Processor Trace": "IA32_RTIT_CTL MSR", "Timing". The conversion of times is that
    of the kernel's tools/perf/util/tsc.c.
    """

    source: str
    format: str
    engine: str
    bytes: int
    cpu: tuple[int, int, int] | None
    tsc_ctc_ratio: tuple[int, int] | None
    mtc_period: int | None
    max_nonturbo_ratio: int | None
    tsc_hz: int | None
    perf_time: tuple[int, int, int] | None
    rtit_ctl: int | None
    ip_payloads: str | None
    cs_base: int
    ranges: tuple[tuple[str, int, int], ...]
    streams: tuple[StreamInfo, ...]
    spaces: tuple[tuple[int | None, int | None], ...]
    threads: tuple[tuple[int | None, int | None, str], ...]
    files: tuple[tuple[str, str], ...]
    code_regions: int
    code_bytes: int
    missing_files: tuple[MissingFile, ...] = ()
    warnings: tuple[TraceWarning, ...] = ()
    recording: dict[str, Any] = field(default_factory=dict)
    first_tsc: int | None = None
    last_tsc: int | None = None
    first_ns: int | None = None
    last_ns: int | None = None

    @property
    def by_linux(self) -> bool:
        """Whether the recorder ran on Linux, as those of ptkit and perf do."""
        return bool(self.recording.get("backend"))

    @property
    def seconds(self) -> float | None:
        """Seconds from the first to the last time; None if times or the clock are not known."""
        if self.first_ns is None or self.last_ns is None:
            return None
        return (self.last_ns - self.first_ns) / 1e9

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
            Also a line for each file that is missing.

        Returns
        -------
        str
        """
        lines = self._lines()
        if verbose:
            lines += [("missing", str(file)) for file in self.missing_files]
        return "\n".join(f"{name + ':':<14} {one_line(text)}" for name, text in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._lines()
        )
        return f'<table class="ptkit">{rows}</table>'

    def _lines(self) -> list[tuple[str, str]]:
        cpu = "not known" if self.cpu is None else "/".join(map(str, self.cpu))
        lines = [
            ("source", self.source),
            ("format", _format_text(self.format)),
            ("cpu", f"{cpu} (family/model/stepping)"),
        ]
        lines += self._recorded()
        lines.append(("clock", self._clock()))
        lines.append(("times", self._times()))
        if self.rtit_ctl is not None:
            lines.append(("settings", _settings(self.rtit_ctl)))
        if any(stream.kind == "packets" for stream in self.streams):
            lines.append(("IP payloads", self._payloads()))
        lines += [(f"{kind} range", f"[{first:#x}, {last:#x}]") for kind, first, last in self.ranges]
        lines.append(
            ("code", f"{counted(self.code_bytes, 'byte')} in {counted(self.code_regions, 'region')}")
        )
        files = Counter(f"{path}  {build_id}".rstrip() for path, build_id in self.files)
        lines += [("file", text if count == 1 else f"{text} x {count:,}") for text, count in files.items()]
        lines += [
            ("stream", _stream_line(i, stream, self._stream_span(stream)))
            for i, stream in enumerate(self.streams)
        ]
        lines += [("warning", sentence) for sentence in self.warnings]
        return lines

    def _recorded(self) -> list[tuple[str, str]]:
        said = self.recording
        parts = [f"by {said['backend']}"] if said.get("backend") else []
        begin, end = said.get("begin_ns", 0), said.get("end_ns", 0)
        if begin:
            parts.append(datetime.fromtimestamp(begin / 1e9, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"))
        if end > begin:
            parts.append(f"{(end - begin) / 1e9:.1f} s")
        if said.get("machine"):
            parts.append(f"on {said['machine']}")
        if "exit_status" in said:
            parts.append(f"exit status {said['exit_status']}")
        lines = [("recorded", ", ".join(parts))] if parts else []
        if said.get("backend") == EMULATOR:
            lines.append(("durations", EMULATED_TIMES))
        if said.get("command"):
            lines.append(("command", join(said["command"])))
        if said.get("redacted"):
            lines.append(("redacted", "paths, command line and names of threads were left out"))
        return lines

    def _stream_span(self, stream: StreamInfo) -> str:
        """Where in the trace a stream begins and ends."""
        if stream.first_tsc is None or stream.last_tsc is None or self.first_tsc is None:
            return "no times"
        if self.seconds is None or self.last_tsc == self.first_tsc:
            return f"TSC {stream.first_tsc:,} to {stream.last_tsc:,}"
        begin, end = (
            (tsc - self.first_tsc) / ((self.last_tsc or 0) - self.first_tsc) * self.seconds
            for tsc in (stream.first_tsc, stream.last_tsc)
        )
        return f"{begin:.6f} s to {end:.6f} s"

    def _times(self) -> str:
        """First time, last time and span."""
        if self.first_tsc is None or self.last_tsc is None:
            return "none (no TSC packet)"
        ticks = self.last_tsc - self.first_tsc
        text = f"TSC {self.first_tsc:,} to {self.last_tsc:,}"
        if self.seconds is None:
            return f"{text}, span {counted(ticks, 'tick')}"
        return f"{text}, span {self.seconds:.9f} s ({counted(ticks, 'tick')})"

    def _payloads(self) -> str:
        known = "not known" if self.ip_payloads is None else f"{self.ip_payloads} addresses"
        base = f", CS base {self.cs_base:#x} is added" if self.cs_base else ""
        return f"{known} (of 16 and 32-bit code){base}"

    def _clock(self) -> str:
        parts = []
        if self.tsc_hz is not None:
            parts.append(f"TSC {self.tsc_hz:,} Hz")
        if self.perf_time is not None:
            parts.append("perf time known")
        if self.tsc_ctc_ratio is not None:
            parts.append(f"TSC:CTC {self.tsc_ctc_ratio[0]}/{self.tsc_ctc_ratio[1]}")
        if self.mtc_period is not None:
            parts.append(f"MTCFreq {self.mtc_period}")
        if self.max_nonturbo_ratio is not None:
            parts.append(f"max non-turbo ratio {self.max_nonturbo_ratio}")
        return ", ".join(parts) or "not known"


# Fields of IA32_RTIT_CTL, each with the packets that it switches on.
_PACKETS = (
    ("branch_en", "branches"),
    ("tsc_en", "TSC"),
    ("mtc_en", "MTC"),
    ("cyc_en", "CYC"),
    ("ptw_en", "PTW"),
    ("pwr_evt_en", "power events"),
    ("event_en", "events"),
)


def _settings(rtit_ctl: int) -> str:
    """The levels and packets of a value of IA32_RTIT_CTL, and the command that explains all of it."""
    fields = _core.msr_fields(rtit_ctl)
    levels = [name for field, name in (("user", "user"), ("os", "kernel")) if fields[field]]
    packets = [name for field, name in _PACKETS if fields[field]]
    return (
        f"{' and '.join(levels) or 'no'} code; {', '.join(packets) or 'no packets'}; "
        f"PSB every {2 << fields['psb_freq']} KiB (`ptkit msr explain 0x570 {rtit_ctl:#x}`)"
    )


def _stream_line(index: int, stream: StreamInfo, span: str) -> str:
    parts = [f"{index}: {counted(stream.size, 'byte')}"]
    if stream.kind != "packets":
        parts.append(f"{stream.size // BRANCH_RECORD.itemsize:,} {stream.kind}")
    parts += [
        f"{name} {value}" for name in ("cpu", "pid", "tid") if (value := getattr(stream, name)) is not None
    ]
    if stream.switches:
        parts.append(counted(stream.switches, "context switch", "context switches"))
    if stream.losses:
        losses = counted(stream.losses, "loss", "losses")
        parts.append(f"{losses} ({counted(stream.lost_bytes, 'byte')} known)")
    parts.append(span)
    return ", ".join(parts) + (f"  ({stream.name})" if stream.name else "")


def _format_text(name: str) -> str:
    """The name of a format, and whether recordings in it were ever read."""
    unverified = any(known == name and guessed for known, _, guessed in _core.formats())
    return f"{name} (unverified: ptkit's authors had no recording in it)" if unverified else name


def _recording(metadata: str) -> dict[str, Any]:
    """Give the recorder's members of a bundle's metadata, without those that the configuration repeats."""
    said: dict[str, Any] = json.loads(metadata) if metadata else {}
    return {name: value for name, value in said.items() if name not in _CONFIGURATION}


def _warnings(
    bundle: _core.Bundle, missing: Sequence[MissingFile], streams: Sequence[StreamInfo], cpu: str | None
) -> Iterator[TraceWarning]:
    """One for each fact that is odd, or missing."""
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


def with_times(
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
    return replace(info, streams=streams, first_tsc=ends[0], last_tsc=ends[1], first_ns=ns[0], last_ns=ns[1])
