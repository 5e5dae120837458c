"""The description of a trace as lines: what it is, who ran, what was mapped, and with `verbose` the rest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from heapq import nlargest
from shlex import join
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit.support.schema import BRANCH_RECORD
from ptkit.support.text import counted

if TYPE_CHECKING:
    from ptkit.info.facts import ModuleInfo, ProcessInfo, StreamInfo, TraceFacts

__all__ = ["EMULATED_TIMES", "EMULATOR", "lines_of"]

EMULATOR = "emulator"
#: Note on the times of a recording by the emulator (docs/emulator.md).
EMULATED_TIMES = "emulated: compare instructions, not durations"
# Lines of one name that are printed unless all are asked for, and threads of a process.
_MOST_LINES = {"process": 20, "module": 20, "stream": 10}
_MOST_THREADS = 8
_PDB = re.compile("[0-9a-f]{32}-[0-9a-f]{1,8}")
_STAMP = re.compile("([0-9a-f]{8})-([0-9a-f]{1,8})")  # time stamp and size of a PE file
_WINDOWS_FILE = re.compile(r".*\.(exe|dll|sys|ocx|efi)", re.IGNORECASE)
_MANGLED = (
    "those of Microsoft's compilers (?f@@YAXXZ) stay mangled: this ptkit was built without LLVM's demangler "
    "(Debian: llvm-dev)"
)

_Line = tuple[str, str]


def lines_of(info: TraceFacts, *, verbose: bool = False) -> list[_Line]:
    """Names and texts of the lines.

    Parameters
    ----------
    info : TraceFacts
    verbose : bool
        All lines, also those that only a decoder needs.

    Returns
    -------
    list of (str, str)
    """
    cpu = "not known" if info.cpu is None else "/".join(map(str, info.cpu))
    lines = [
        ("source", info.source),
        ("format", _format_text(info.format)),
        ("cpu", f"{cpu} (family/model/stepping)"),
        *_recorded(info),
        ("times", _times(info)),
    ]
    if verbose:
        lines += _registers(info)
    lines += [(f"{kind} range", f"[{first:#x}, {last:#x}]") for kind, first, last in info.ranges]
    lines += _first("process", map(_process_line, info.processes), verbose)
    lines += _other_spaces(info)
    lines += _first("module", map(_module_line, info.modules), verbose)
    lines.append(("code", f"{counted(info.code_bytes, 'byte')} in {counted(info.code_regions, 'region')}"))
    if verbose:
        files = Counter(f"{path}  {_id_text(build_id)}".rstrip() for path, build_id in info.files)
        lines += [("file", text if count == 1 else f"{text} x {count:,}") for text, count in files.items()]
    lines += _streams(info, verbose)
    if not _core.has_microsoft_demangler() and _has_windows_files(info):
        lines.append(("names", _MANGLED))
    lines += [("warning", sentence) for sentence in info.warnings]
    if verbose:
        lines += [("missing", str(file)) for file in info.missing_files]
    return lines


def _has_windows_files(info: TraceFacts) -> bool:
    return any(_PDB.fullmatch(build_id) or _WINDOWS_FILE.fullmatch(path) for path, build_id in info.files)


def _id_text(build_id: str) -> str:
    """A build-id; that of a PE file as symbol servers have it: ``3F25...33011A``, ``65A1B2C31d000``."""
    if stamp := _STAMP.fullmatch(build_id):
        return stamp[1].upper() + stamp[2]
    return build_id.replace("-", "").upper() if _PDB.fullmatch(build_id) else build_id


def _first(name: str, texts: Iterable[str], verbose: bool) -> Iterator[_Line]:
    """Lines of one name: the first ones, and how many are left out."""
    left = 0
    for number, text in enumerate(texts):
        if verbose or number < _MOST_LINES[name]:
            yield name, text
        else:
            left += 1
    if left:
        yield name, _more(left)


def _more(left: int) -> str:
    return f"... and {left:,} more (ptkit info --verbose)"


def _process_line(process: ProcessInfo) -> str:
    parts = [f"{process.pid}" + (f" ({process.name})" if process.name else "")]
    for index, cr3 in process.spaces:
        parts.append(f"address space {index}" + ("" if cr3 is None else f", CR3 {cr3:#x}"))
    if len(process.threads) > 1 or any(tid != process.pid for tid, _ in process.threads):
        names = [f"{tid} {name}".rstrip() for tid, name in process.threads[:_MOST_THREADS]]
        left = len(process.threads) - len(names)
        names += [f"... {left:,} more"] if left > 0 else []
        parts.append(f"{counted(len(process.threads), 'thread')}: {', '.join(names)}")
    return "; ".join(parts)


def _other_spaces(info: TraceFacts) -> Iterator[_Line]:
    """Address spaces and threads of which the process is not known."""
    for index, (pid, cr3) in enumerate(info.spaces):
        if index and pid is None:
            yield "space", f"{index}: " + ("CR3 not known" if cr3 is None else f"CR3 {cr3:#x}")
    for pid, tid, name in info.threads:
        if pid is None:
            yield "thread", f"{tid} {name}".rstrip()


def _module_line(module: ModuleInfo) -> str:
    where = f", address space {module.space}" if module.space else ""
    return f"{module.base:#x}, {module.size:#x} bytes{where}  {module.path}"


def _streams(info: TraceFacts, verbose: bool) -> Iterator[_Line]:
    """The largest streams, in their order."""
    numbers = range(len(info.streams))
    shown = nlargest(_MOST_LINES["stream"], numbers, key=lambda number: info.streams[number].size)
    for number in numbers if verbose else sorted(shown):
        stream = info.streams[number]
        yield "stream", _stream_line(number, stream, _stream_span(info, stream))
    if not verbose and len(info.streams) > len(shown):
        yield "stream", _more(len(info.streams) - len(shown))


def _registers(info: TraceFacts) -> Iterator[_Line]:
    """Facts that a decoder needs."""
    yield "clock", _clock(info)
    if info.rtit_ctl is not None:
        yield "settings", _settings(info.rtit_ctl)
    if any(stream.kind == "packets" for stream in info.streams):
        yield "IP payloads", _payloads(info)


def _recorded(info: TraceFacts) -> list[tuple[str, str]]:
    said = info.recording
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


def _stream_span(info: TraceFacts, stream: StreamInfo) -> str:
    """Where in the trace a stream begins and ends."""
    if stream.first_tsc is None or stream.last_tsc is None or info.first_tsc is None:
        return "no times"
    if info.seconds is None or info.last_tsc == info.first_tsc:
        return f"TSC {stream.first_tsc:,} to {stream.last_tsc:,}"
    begin, end = (
        (tsc - info.first_tsc) / ((info.last_tsc or 0) - info.first_tsc) * info.seconds
        for tsc in (stream.first_tsc, stream.last_tsc)
    )
    return f"{begin:.6f} s to {end:.6f} s"


def _times(info: TraceFacts) -> str:
    """First time, last time and span."""
    if info.first_tsc is None or info.last_tsc is None:
        return "none (no TSC packet)"
    ticks = info.last_tsc - info.first_tsc
    text = f"TSC {info.first_tsc:,} to {info.last_tsc:,}"
    if info.seconds is None:
        return f"{text}, span {counted(ticks, 'tick')}"
    return f"{text}, span {info.seconds:.9f} s ({counted(ticks, 'tick')})"


def _payloads(info: TraceFacts) -> str:
    known = "not known" if info.ip_payloads is None else f"{info.ip_payloads} addresses"
    base = f", CS base {info.cs_base:#x} is added" if info.cs_base else ""
    return f"{known} (of 16 and 32-bit code){base}"


def _clock(info: TraceFacts) -> str:
    parts = []
    if info.tsc_hz is not None:
        parts.append(f"TSC {info.tsc_hz:,} Hz")
    if info.perf_time is not None:
        parts.append("perf time known")
    if info.tsc_ctc_ratio is not None:
        parts.append(f"TSC:CTC {info.tsc_ctc_ratio[0]}/{info.tsc_ctc_ratio[1]}")
    if info.mtc_period is not None:
        parts.append(f"MTCFreq {info.mtc_period}")
    if info.max_nonturbo_ratio is not None:
        parts.append(f"max non-turbo ratio {info.max_nonturbo_ratio}")
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
    if stream.kind == "packets":
        parts = [f"{index}: {counted(stream.size, 'byte')}"]
    else:
        parts = [f"{index}: {counted(stream.size // BRANCH_RECORD.itemsize, 'branch record')}"]
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
    of_core = {known: guessed for known, _, guessed in _core.formats()}
    if name in of_core:
        unverified = of_core[name]
    else:
        from ptkit.readers import formats  # takes a while

        unverified = any(known == name and guessed for known, _, guessed in formats())
    return f"{name} (unverified: ptkit's authors had no recording in it)" if unverified else name
