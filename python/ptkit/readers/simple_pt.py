"""Recordings of simple-pt: ptout.N has the stream of a CPU, ptout.sideband mappings and clock."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

from ptkit import _core
from ptkit.errors import FormatError
from ptkit.readers.files import add_cpu_streams, number_in_name, numbered_files
from ptkit.readers.recording import Reader, Source, new_recording
from ptkit.support.inputs import map_regular
from ptkit.support.text import number

__all__ = ["SIMPLE_PT"]

_STREAM, _SIDEBAND = "ptout.", "ptout.sideband"
_PCID = 4096 - 1  # of CR3
_USER_TABLES = 4096  # page-table isolation: this bit of CR3 is set in user code
_MOST_MAPPINGS = 1_000_000
_SEARCHED_BYTES = 4 << 20  # for PIP packets: the first one stands near the begin
_BUS_HZ = 100_000_000
_LAST_PID = (1 << 63) - 1


def _mapping(line: bytes) -> tuple[int, int, int, int, int, bytes] | None:
    """Parse "time pid cr3 address offset [size]", a tab, a path: PID, CR3, address, offset, size and path.

    Mappings from before the recording have the time 0.0, a hexadecimal offset and a decimal size. Later
    mappings have a decimal offset and a hexadecimal size.
    """
    head, tab, path = line.partition(b"\t")
    words = head.split(maxsplit=6)[:6]
    if not tab or not path or len(words) < 4:
        return None
    of_offset, of_size = (10, 16) if words[0].strip(b"0.") else (16, 10)
    pid, cr3, address = number(words[1], 10), number(words[2], 16), number(words[3], 16)
    offset = number(words[4], of_offset) if len(words) > 4 else 0
    size = number(words[5], of_size) if len(words) > 5 else 0
    if pid is None or cr3 is None or address is None or offset is None or size is None or pid > _LAST_PID:
        return None
    return pid, cr3, address, offset, size, path


def _lines(text: bytes | mmap.mmap) -> Iterator[bytes]:
    begin = 0
    while begin < len(text):
        end = text.find(b"\n", begin)
        end = len(text) if end < 0 else end
        if end > begin:
            yield text[begin:end]
        begin = end + 1


class _Sideband:
    """Mappings, processor and clock of ptout.sideband."""

    def __init__(self, recording: _core.Bundle) -> None:
        self.rows: list[tuple[int, int, int, int, int, bytes]] = []
        self.bad_lines = 0
        self.mappings = 0
        self.spaces: dict[int, int] = {}  # by CR3
        self._pids: dict[int, int] = {}  # of spaces
        self._recording = recording
        self._cpu: dict[str, int] = {}

    def read(self, text: bytes | mmap.mmap) -> None:
        """Read all lines."""
        for line in _lines(text):
            if line.startswith(b"meta "):
                self.bad_lines += not self._read_meta(line.split(maxsplit=8)[:8])
            elif (mapping := _mapping(line)) is None:
                self.bad_lines += 1
            else:
                self.mappings += 1
                if self.mappings <= _MOST_MAPPINGS:
                    self._add(*mapping)
        if "family" in self._cpu and "model" in self._cpu:
            self._recording.set_cpu(self._cpu["family"], self._cpu["model"], self._cpu.get("stepping", 0))

    def _read_meta(self, words: list[bytes]) -> bool:
        values = [number(word, 10) for word in words[2:4]]
        if not values or None in values:
            return False
        value, second = [*(one or 0 for one in values), 0][:2]
        name = words[1]
        if (name in (b"family", b"model") and value <= 0xFFFF) or (name == b"stepping" and value <= 0xFF):
            self._cpu[name.decode()] = value
        elif name == b"nom_freq" and value <= 0xFF:
            self._recording.set_clock(max_nonturbo_ratio=value, tsc_hz=value * _BUS_HZ)
        elif name == b"mtc_freq" and value <= 16:  # one more than the field; 0: no MTC packets
            self._recording.set_clock(mtc_period=value - 1 if value else None)
        elif name == b"tsc_ratio" and value <= 0xFFFFFFFF and second <= 0xFFFFFFFF:
            self._recording.set_clock(tsc_ctc_ratio=(second, value))
        else:
            return False
        return True

    def _add(self, pid: int, cr3: int, address: int, offset: int, size: int, path: bytes) -> None:
        tables = cr3 & ~_PCID
        space = 0  # of all: kernel code
        if cr3:
            if tables not in self.spaces:
                self.spaces[tables] = self._recording.add_space(pid=pid, cr3=tables)
                self._pids[self.spaces[tables]] = pid
            space = self.spaces[tables]
        if address:  # a line of exec() has the program's path and CR3, and zeros for its mapping
            self.rows.append((space, tables, address, size, offset, path))

    def only_process(self) -> tuple[int, int] | None:
        """Return space and PID of the process, if there is only one."""
        return next(iter(self._pids.items())) if len(self._pids) == 1 else None

    def note_user_tables(self) -> None:
        """With page-table isolation, the user's page tables follow the kernel's.

        Without it, that address may hold another process' page tables.
        """
        for tables, space in self.spaces.items():
            if not tables & _USER_TABLES and tables | _USER_TABLES not in self.spaces:
                _core.set_user_cr3(self._recording, space, tables | _USER_TABLES)


def _load(source: Source, files: dict[int, str]) -> _core.Bundle:
    recording = new_recording()
    name = os.fsencode(source.path)
    sideband = _Sideband(recording)
    path = os.path.join(source.folder, _SIDEBAND)  # noqa: PTH118
    if os.path.isfile(path):  # noqa: PTH113
        sideband.read(map_regular(path))
        own = os.fsencode(source.folder)
        binaries = [os.fsencode(folder) for folder in source.binaries]
        _core.add_mapped_files(recording, sideband.rows, own, binaries, os.fsencode(path))
        if sideband.mappings > _MOST_MAPPINGS:
            left_out = str(sideband.mappings - _MOST_MAPPINGS)
            _core.add_warning(recording, "SIMPLE_PT_MAPPING_LIMIT", [left_out, str(_MOST_MAPPINGS)], name)
        if sideband.bad_lines:
            _core.add_warning(recording, "SIMPLE_PT_LINES_SKIPPED", [str(sideband.bad_lines)], name)
    else:
        _core.add_warning(recording, "SIMPLE_PT_NO_SIDEBAND", [], name)
    streams = add_cpu_streams(recording, source.path, files)
    sideband.note_user_tables()
    # Streams of user code only have no PIP packets. They belong to the process if there is only one.
    if (only := sideband.only_process()) is not None:
        for stream, _, _ in streams:
            if not len(_core.scan_drakvuf(recording, stream, _SEARCHED_BYTES)[3]):
                _core.assign_stream(recording, stream, pid=only[1], space=only[0])
    return recording


def _read(source: Source) -> _core.Bundle:
    if source.is_folder:
        files = numbered_files(source.path, _STREAM)
        if not files:
            raise FormatError(
                f"{source.path}: expected files ptout.0, ptout.1, ..., found none; give their folder"
            )
        return _load(source, files)
    cpu = number_in_name(source.path, _STREAM)
    return _load(source, {-1 if cpu is None else cpu: source.path})


def _recognizes(source: Source) -> bool:
    if source.is_folder:
        return bool(numbered_files(source.path, _STREAM))
    sideband = os.path.join(source.folder, _SIDEBAND)  # noqa: PTH118
    return number_in_name(source.path, _STREAM) is not None and os.path.isfile(sideband)  # noqa: PTH113


SIMPLE_PT = Reader(
    "simple-pt",
    "simple-pt's ptout.N with ptout.sideband",
    _read,
    _recognizes,
    before="libxdc",
    unverified=True,
)
