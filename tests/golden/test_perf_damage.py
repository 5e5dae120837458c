"""Recordings of perf, truncated and changed at many offsets: their remaining packets, and time and memory.

A separate process with limited memory reads each recording.
"""

from __future__ import annotations

import json
import lzma
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FOLDER = Path(__file__).resolve().parent / "recordings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))
AUX, AUXTRACE = 11, 71
CUTS, FLIPS = 24, 40  # of each recording
MOST_PADDING = 19  # bytes of an AUX chunk with its end in an AUX record
MOST_MORE_MIB = 48  # above the memory of the undamaged recording

# Reads offsets from stdin. Prints the remaining streams for each, with all packets before their last bytes.
READER = """
import json, resource, sys, time, warnings
import numpy as np
import ptkit

path, damaged = sys.argv[1:]
whole = open(path, "rb").read()
TAIL = 64  # bytes at a stream's end that may be padding or a truncated packet

def opened(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(path)
    return trace, [one.message.args[0].code for one in caught]

def rows_of(trace):
    return {(s.cpu, s.tid): trace.packets(stream=i, columns=["offset", "kind", "payload"])
            for i, s in enumerate(trace.streams)}

def same_until(rows, others, end):
    a, b = rows["offset"] < end, others["offset"] < end
    return all(np.array_equal(rows[name][a], others[name][b]) for name in ("offset", "kind", "payload"))

trace, _ = opened(path)
all_rows = rows_of(trace)
sizes = {(s.cpu, s.tid): s.size for s in trace.streams}
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) << 10
resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

def read(kind, at, value):
    data = bytearray(whole if kind == "flip" else whole[:at])
    if kind == "flip":
        data[at] ^= value
    open(damaged, "wb").write(data)
    begin = time.process_time()
    out = {"warnings": [], "streams": []}
    try:
        trace, out["warnings"] = opened(damaged)
        rows = rows_of(trace)
        trace.events()
    except ptkit.PtkitError as error:
        out["error"] = str(error)
    else:
        for stream in trace.streams:
            key = stream.cpu, stream.tid
            end = min(stream.size, sizes.get(key, 0))
            same = key in all_rows and same_until(rows[key], all_rows[key], end - TAIL)
            out["streams"].append([stream.cpu, stream.tid, stream.size, same])
    out["seconds"] = time.process_time() - begin
    return out

results = [read(*one) for one in json.load(sys.stdin)]
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
sizes = [[*key, size] for key, size in sizes.items()]
json.dump({"results": results, "more_kib": more, "sizes": sizes}, sys.stdout)
"""


class Record(NamedTuple):
    """One of the file's records."""

    offset: int
    kind: int
    size: int
    payload: int  # bytes behind it
    stream: tuple[int, int]  # AUXTRACE: CPU and thread


def records_of(data: bytes) -> list[Record]:
    offset, size = struct.unpack_from("<QQ", data, 40)
    end = offset + size
    found = []
    while offset < end:
        kind, _, length = struct.unpack_from("<IHH", data, offset)
        payload, stream = 0, (-1, -1)
        if kind == AUXTRACE:
            payload, _, _, _, tid, cpu = struct.unpack_from("<QQQIii", data, offset + 8)
            stream = (cpu, tid)
        found.append(Record(offset, kind, length, payload, stream))
        offset += length + payload
    return found


def read_damaged(name: str, damages: list[tuple[str, int, int]], folder: Path) -> dict[str, Any]:
    path = folder / "whole.data"
    path.write_bytes(lzma.decompress((FOLDER / f"{name}.perf.data.xz").read_bytes()))
    done = subprocess.run(
        [sys.executable, "-c", READER, path, folder / "perf.data"],
        input=json.dumps(damages),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}: {done.stderr[-2000:]}"
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["more_kib"] < MOST_MORE_MIB << 10
    assert all(one["seconds"] < 10 for one in result["results"])
    return result


def contents(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.perf.data.xz").read_bytes())


def trace_before(records: list[Record], cut: int) -> dict[tuple[int, int], int]:
    """Bytes of trace before an offset, for each stream that has any."""
    sums: dict[tuple[int, int], int] = {}
    for record in records:
        left = min(record.payload, cut - record.offset - record.size)
        if left > 0:
            sums[record.stream] = sums.get(record.stream, 0) + left
    return sums


@pytest.mark.parametrize("name", NAMES)
def test_trace_before_a_truncation_is_kept(name: str, tmp_path: Path) -> None:
    data = contents(name)
    records = records_of(data)
    chance = random.Random(name)
    end = records[-1].offset + records[-1].size + records[-1].payload
    cuts = [chance.randrange(len(data)) for _ in range(CUTS)]
    chunks = [one for one in records if one.kind == AUXTRACE and one.payload > 999]
    cuts += [one.offset + one.size + one.payload // 2 for one in chunks]
    result = read_damaged(name, [("cut", cut, 0) for cut in cuts], tmp_path)
    for cut, one in zip(cuts, result["results"], strict=True):
        expected = trace_before(records, cut)
        assert (cut >= end) or ("error" in one) or any("_CUT" in code for code in one["warnings"]), cut
        if not expected:
            continue
        assert "error" not in one, f"cut at {cut}: {one}"
        assert all(same for *_, same in one["streams"]), f"cut at {cut}"
        found = {(-1 if cpu is None else cpu): size for cpu, _, size, _ in one["streams"]}
        for (cpu, _), size in expected.items():
            chunks_of_stream = sum(chunk.stream[0] == cpu for chunk in records if chunk.payload)
            assert size - 8 * chunks_of_stream <= found[cpu] <= size, f"cut at {cut}"  # without their padding


@pytest.mark.parametrize("name", NAMES)
def test_changed_bits_damage_their_record_only(name: str, tmp_path: Path) -> None:
    data = contents(name)
    records = records_of(data)
    chance = random.Random(name)
    damages: list[tuple[str, int, int]] = []
    harmless = []  # bits in trace bytes, and in bodies of records that do not describe AUX chunks
    in_headers = []  # of such records: the file's AUXTRACE index has the next chunk
    for number in range(FLIPS):
        record = chance.choice(records)
        inside = number % 2 == 0 and record.kind not in (AUX, AUXTRACE, 70)
        at = chance.randrange(len(data)) if number % 3 == 0 else record.offset + chance.randrange(record.size)
        if inside:
            at = record.offset + 8 + chance.randrange(max(record.size - 8, 1))
        is_trace = any(one.offset + one.size <= at < one.offset + one.size + one.payload for one in records)
        harmless.append(is_trace or (inside and record.size > 8))
        of = next((one for one in records if one.offset <= at < one.offset + 8), None)
        in_headers.append(of is not None and of.kind not in (AUX, AUXTRACE, 70))
        damages.append(("flip", at, 1 << chance.randrange(8)))
    result = read_damaged(name, damages, tmp_path)
    sizes = sorted(size for *_, size in result["sizes"])
    padding = MOST_PADDING * sum(one.kind == AUXTRACE for one in records)
    flips = zip(damages, harmless, in_headers, result["results"], strict=True)
    for (_, at, bit), unharmed, in_header, one in flips:
        found = sorted(size for *_, size, _ in one["streams"])
        if in_header:
            assert "error" not in one, f"bit {bit} of byte {at}: {one}"
            assert len(found) == len(sizes), f"bit {bit} of byte {at}"
            most = max(abs(size - whole) for size, whole in zip(found, sizes, strict=True))
            assert most <= padding, f"bit {bit} of byte {at}"
        if not unharmed:
            continue
        assert "error" not in one, f"bit {bit} of byte {at}: {one}"
        assert found == sizes, f"bit {bit} of byte {at}"
