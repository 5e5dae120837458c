"""Small perf.data files that claim much memory: a process with limited memory opens each of them."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MOST_MORE_MIB = 128
MOST_FILE_BYTES = 512 << 10
ATTR_BYTES = 112
HEADER_BYTES = 104
EVENT_DESC = 12
MMAP2, FORK, AUX_OUTPUT_HW_ID, AUXTRACE_INFO, AUXTRACE = 10, 7, 21, 70, 71
PSB = b"\x02\x82" * 8 + b"\x02\x23" + bytes(6)

READER = """
import resource, sys, warnings
import ptkit.trace  # `import ptkit` alone loads the core at its first use, which takes address space

used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (int(sys.argv[2]) << 20),) * 2)
warnings.simplefilter("ignore")
trace = ptkit.open(sys.argv[1])
print(len(trace.streams), trace.streams[0].size)
"""


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def event(kind: int, body: bytes) -> bytes:
    """A record with its trailer: TID, TIME, CPU, IDENTIFIER."""
    return record(kind, body + struct.pack("<IIQIIQ", 10, 10, 0, 0, 0, 77))


def trace() -> bytes:
    info = record(AUXTRACE_INFO, struct.pack("<IIQ", 1, 0, 9) + struct.pack("<9Q", 10, 512, 0, 1, *[0] * 5))
    piece = record(AUXTRACE, struct.pack("<QQQIIII", len(PSB), 0, 0, 0, 0xFFFFFFFF, 0, 0))
    return info + piece + PSB


def perf_file(
    records: bytes, features: dict[int, bytes], attributes: int = 1, *, overlaid: bool = False
) -> bytes:
    """The ids of each event are one word, or the whole file (`overlaid`)."""
    sample_type = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16
    attr = struct.pack("<IIQQQQQ", 9, ATTR_BYTES, 1, 1, sample_type, 0, 1 << 5 | 1 << 18)
    attrs_at = HEADER_BYTES + 8
    records_at = attrs_at + attributes * (ATTR_BYTES + 16)
    contents_at = records_at + len(records) + 16 * len(features)
    end = contents_at + sum(len(one) for one in features.values())
    numbers = (0, end) if overlaid else (HEADER_BYTES, 8)
    table, contents = b"", b""
    for one in features.values():
        table += struct.pack("<QQ", contents_at + len(contents), len(one))
        contents += one
    bits = sum(1 << number for number in features)
    attrs_bytes = records_at - attrs_at
    header = b"PERFILE2" + struct.pack("<QQ", HEADER_BYTES, 128)
    header += struct.pack("<10Q", attrs_at, attrs_bytes, records_at, len(records), 0, 0, bits, 0, 0, 0)
    one_attr = attr.ljust(ATTR_BYTES, b"\0") + struct.pack("<QQ", *numbers)
    return header + struct.pack("<Q", 77) + one_attr * attributes + records + table + contents


def long_names() -> bytes:
    """One name with ten thousand ids, used by a thousand counters."""
    name, count = b"n" * 200_000, 10_000
    description = struct.pack("<IIII", 1, 0, count, len(name) + 8) + name + bytes(8)
    description += struct.pack(f"<{count}Q", *range(count))
    uses = b"".join(event(AUX_OUTPUT_HW_ID, struct.pack("<Q", number)) for number in range(1000))
    return perf_file(trace() + uses, {EVENT_DESC: description})


def numbers_of_all() -> bytes:
    return perf_file(trace() + record(68, bytes(60_000)) * 4, {}, 1000, overlaid=True)


def heirs() -> bytes:
    """Two thousand mappings, and as many children that inherit all of them."""
    mapping = struct.pack("<QIIQQII8s", 0, 8, 1, 5, 0, 5, 2, b"//anon")
    records = trace()
    for number in range(2000):
        records += event(MMAP2, struct.pack("<IIQQ", 10, 10, 0x400000 + number * 0x1000, 0x1000) + mapping)
    for number in range(2000):
        records += event(FORK, struct.pack("<IIIIQ", 100 + number, 10, 100 + number, 10, 0))
    return perf_file(records, {})


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and RLIMIT_AS")
@pytest.mark.parametrize("make", [long_names, numbers_of_all, heirs])
def test_small_files_get_little_memory(make: Callable[[], bytes], tmp_path: Path) -> None:
    contents = make()
    assert len(contents) < MOST_FILE_BYTES
    path = tmp_path / "perf.data"
    path.write_bytes(contents)
    done = subprocess.run(
        [sys.executable, "-c", READER, path, str(MOST_MORE_MIB)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["1", str(len(PSB))]
