"""Trace bytes out of a perf.data file, by the layout that perf's documentation gives."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise

SWITCH_CPU_WIDE = 15
AUXTRACE_INFO = 70
AUXTRACE = 71
SWITCH_OUT = 1 << 13  # PERF_RECORD_MISC_SWITCH_OUT
_TIME = 24  # of a switch in the record, after header, next or previous, and thread
_HAVE_SCHED_SWITCH = 16 + 8 * 7  # of a record AUXTRACE_INFO (perf's util/intel-pt.h)
_WAITS = 3
_BY_TIME = 2
_EACH_THREAD = 0xFFFFFFFF


def aux_streams(data: bytes) -> dict[tuple[int, int], bytes]:
    """Raw streams by (cpu, tid); for a stream of a thread, `cpu` is -1, for one of a CPU, `tid` is."""
    streams: dict[tuple[int, int], bytes] = {}
    for offset, kind, _, length in records(data):
        if kind == AUXTRACE:
            count, _, _, _, tid, cpu = struct.unpack_from("<QQQIII", data, offset + 8)
            key = (_signed(cpu), _signed(tid))
            streams[key] = streams.get(key, b"") + data[offset + length : offset + length + count]
    return streams


def records(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Of each record: where it begins, its type, its misc bits, and its size without trace that follows."""
    offset, size = struct.unpack_from("<QQ", data, 40)
    end = offset + size
    while offset < end:
        kind, misc, length = struct.unpack_from("<IHH", data, offset)
        yield offset, kind, misc, length
        offset += length
        if kind == AUXTRACE:
            offset += struct.unpack_from("<Q", data, offset - length + 8)[0]


def stack_file(branches: list[tuple[int, int]], path: str, features: dict[int, bytes]) -> bytes:
    """A recording with one branch stack (oldest branch first) of a process that maps `path` at 0x401000."""
    kinds = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 11 | 1 << 16  # TID, TIME, CPU, BRANCH_STACK, IDENTIFIER
    attr = struct.pack("<IIQQQQQ", 0, 112, 0, 1, kinds, 0, 1 << 18) + bytes(24)
    attr = (attr + struct.pack("<Q", 1 << 3)).ljust(112, b"\0") + struct.pack("<QQ", 104, 8)
    name = path.encode() + b"\0"
    name += bytes(-len(name) % 8)
    mapping = struct.pack("<iiQQQ", 10, 10, 0x401000, 0x1000, 0x1000) + bytes(24)
    mapping += struct.pack("<II", 5, 2) + name + struct.pack("<iiQIIQ", 10, 10, 0, 0, 0, 77)
    sample = struct.pack("<QiiQIIQ", 77, 10, 10, 100, 0, 0, len(branches))
    sample += b"".join(struct.pack("<QQQ", *branch, 2) for branch in reversed(branches))
    data = struct.pack("<IHH", 10, 2, 8 + len(mapping)) + mapping
    data += struct.pack("<IHH", 9, 2, 8 + len(sample)) + sample
    at, bits, table = 112 + len(attr) + len(data) + 16 * len(features), 0, b""
    for number, contents in sorted(features.items()):
        bits |= 1 << number
        table += struct.pack("<QQ", at, len(contents))
        at += len(contents)
    header = b"PERFILE2" + struct.pack(
        "<QQQQQQQQ", 104, 128, 112, len(attr), 112 + len(attr), len(data), 0, 0
    )
    header += struct.pack("<QQQQQ", bits, 0, 0, 0, 77)
    return header + attr + data + table + b"".join(contents for _, contents in sorted(features.items()))


def text_feature(text: str) -> bytes:
    """A feature of one string, such as ARCH."""
    padded = text.encode().ljust(64, b"\0")
    return struct.pack("<I", len(padded)) + padded


def by_time(data: bytes) -> bytes:
    """A copy of which perf's decoder takes switches by their time alone.

    Else, with `-a` and the kernel, it stops at each `__switch_to` that it decodes before the record of the
    switch, until that comes. Where a record that a thread comes in is processed before the `__switch_to` (the
    decoder's time is an estimate after each return to user code: twice the instructions since the last timing
    packet), it stops at the next one for good (`intel_pt_context_switch_in()` in tools/perf/util/intel-pt.c
    sets the queue to tracing, and does not put it back on the heap), and reports nothing.
    """
    copy = bytearray(data)
    for offset, kind, _, _ in records(data):
        if kind == AUXTRACE_INFO and struct.unpack_from("<Q", data, offset + _HAVE_SCHED_SWITCH)[0] == _WAITS:
            struct.pack_into("<Q", copy, offset + _HAVE_SCHED_SWITCH, _BY_TIME)
    return bytes(copy)


def with_early_switch(data: bytes, cpu: int) -> bytes:
    """A copy in which a thread comes in as soon as the one before goes out, at a CPU's tenth last switch."""
    switches = [
        (struct.unpack_from("<Q", data, offset + _TIME)[0], offset, misc)
        for offset, kind, misc, _ in records(data)
        if kind == SWITCH_CPU_WIDE and struct.unpack_from("<I", data, offset + _TIME + 8)[0] == cpu
    ]
    switches.sort()
    pairs = [
        (out, offset)
        for (out, _, misc), (_, offset, next_misc) in pairwise(switches)
        if misc & SWITCH_OUT and not next_misc & SWITCH_OUT
    ]
    out, offset = pairs[-10]
    copy = bytearray(data)
    struct.pack_into("<Q", copy, offset + _TIME, out + 1)
    return bytes(copy)


def _signed(number: int) -> int:
    return number - (1 << 32) if number == _EACH_THREAD else number
