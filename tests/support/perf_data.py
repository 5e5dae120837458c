"""Trace bytes out of a perf.data file, by the layout that perf's documentation gives."""

from __future__ import annotations

import struct

AUXTRACE = 71
_EACH_THREAD = 0xFFFFFFFF


def aux_streams(data: bytes) -> dict[tuple[int, int], bytes]:
    """Raw streams by (cpu, tid); for a stream of a thread, `cpu` is -1, for one of a CPU, `tid` is."""
    place, size = struct.unpack_from("<QQ", data, 40)
    end = place + size
    streams: dict[tuple[int, int], bytes] = {}
    while place < end:
        kind, _, length = struct.unpack_from("<IHH", data, place)
        if kind == AUXTRACE:
            count, _, _, _, tid, cpu = struct.unpack_from("<QQQIII", data, place + 8)
            key = (_signed(cpu), _signed(tid))
            streams[key] = streams.get(key, b"") + data[place + length : place + length + count]
            place += count
        place += length
    return streams


def _signed(number: int) -> int:
    return number - (1 << 32) if number == _EACH_THREAD else number
