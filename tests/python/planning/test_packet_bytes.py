"""Bytes of packets by kind and window, of streams with known numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit.planning.packet_bytes import count_bytes, tsc_hz_of

TSC_HZ = 1_000_000  # 1000 ticks are a window of a millisecond
MILLISECOND = 0.001


def trace_of(*streams: bytes, tsc_hz: int | None = TSC_HZ) -> ptkit.Trace:
    bundle = ptkit._core.Bundle()
    bundle.set_cpu(6, 142, 9)
    if tsc_hz is not None:
        bundle.set_clock(tsc_hz=tsc_hz)
    for number, data in enumerate(streams):
        bundle.add_stream(data, cpu=number)
    return ptkit.Trace(bundle, ptkit.decode.Settings())


def psb_group(packets: Any, tsc: int) -> bytes:
    """PSB+ of 28 bytes."""
    data: bytes = packets.PSB + packets.tsc(tsc) + packets.MODE_64 + packets.PSBEND
    assert len(data) == 28
    return data


def cyc(cycles: int) -> bytes:
    """A CYC packet of one byte, or of two."""
    if cycles < 32:
        return bytes([cycles << 3 | 3])
    return bytes([(cycles & 31) << 3 | 7, cycles >> 5 << 1])


def mtc(counter: int) -> bytes:
    return bytes([0x59, counter])


@pytest.fixture
def stream(packets: Any) -> bytes:
    """54 bytes in the first millisecond, 15 in the second, 9 in the third."""
    first = packets.tnt("1") * 3 + packets.tip(0x1000) * 2 + cyc(7) + mtc(7) + mtc(8)
    second = packets.tsc(2500) + packets.tnt("0") * 5 + packets.OVF
    return psb_group(packets, 1000) + first + second + packets.tsc(3999) + packets.tnt("1")


def test_groups_have_the_bytes_of_their_packets(stream: bytes) -> None:
    found = count_bytes(trace_of(stream), 0.001, MILLISECOND, 4096)
    assert found.groups == {"TNT": 9, "TIP": 18, "CYC": 1, "MTC": 4, "TSC": 16, "PSB+": 28, "other": 2}
    assert found.total == len(stream) == 78


def test_windows_are_of_the_time_stamp_counter(stream: bytes) -> None:
    found = count_bytes(trace_of(stream, stream), 0.001, MILLISECOND, 4096)
    assert found.windows.sum(axis=(2, 3)).tolist() == [[54, 15, 9]] * 2
    assert found.overflows.tolist() == [[0, 1, 0]] * 2
    assert found.seconds == pytest.approx(0.003)


def test_a_recording_longer_than_its_trace_has_empty_windows(stream: bytes) -> None:
    found = count_bytes(trace_of(stream), 0.010, MILLISECOND, 4096)
    assert found.windows.sum(axis=(2, 3)).tolist() == [[54, 15, 9, 0, 0, 0, 0, 0, 0, 0]]
    ended = count_bytes(trace_of(stream), 0.010, MILLISECOND, 4096, complete=True)
    assert ended.windows.shape[1] == 3


def test_without_a_known_clock_the_trace_takes_the_whole_recording(stream: bytes) -> None:
    found = count_bytes(trace_of(stream, tsc_hz=None), 0.030, 0.010, 4096)
    assert found.windows.sum(axis=(2, 3)).tolist() == [[54, 15, 9]]


def test_frequency_of_perf_time() -> None:
    bundle = ptkit._core.Bundle()
    bundle.set_clock(perf_time=(625, 10, 0))  # a tick is 625 / 1024 ns
    info = ptkit.Trace(bundle, ptkit.decode.Settings()).info
    assert tsc_hz_of(info) == pytest.approx(1024 / 625 * 1e9)


def test_a_psb_soon_after_another_is_early(packets: Any) -> None:
    group = psb_group(packets, 1000)
    far = packets.tnt("1") * 2100
    data = group + group + far + group + far + group + packets.tnt("1") * 100 + group
    found = count_bytes(trace_of(data), 0.001, MILLISECOND, 4096)
    assert (found.psbs, found.early_psbs) == (5, 3)  # the first one, the second and the last


def test_mtc_and_cyc_packets_are_kept_for_estimates(packets: Any) -> None:
    group = psb_group(packets, 1000)
    data = group + b"".join(mtc(counter) + cyc(counter) for counter in range(16))
    found = count_bytes(trace_of(data), 0.001, MILLISECOND, 4096)
    assert found.mtc_counts[:6].tolist() == [16, 8, 4, 2, 1, 1]
    assert [cycles.tolist() for cycles in found.cycles] == [list(range(16))]


def test_a_trace_without_packets_counts_nothing() -> None:
    found = count_bytes(trace_of(bytes(64)), 0.002, MILLISECOND, 4096)
    assert found.total == 0
    assert np.count_nonzero(found.windows) == 0
    assert found.groups["PSB+"] == 0
