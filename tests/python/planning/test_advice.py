"""Which options are recommended, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ptkit import PacketKind
from ptkit.planning.advice import Choice, advise, alternatives, rate_text, size_text
from ptkit.planning.estimates import Consumer, Estimate, estimate
from ptkit.planning.packet_bytes import KINDS, PacketBytes
from ptkit.planning.settings import Settings

ALL = Settings(("tsc", "mtc", "cyc"))
USUAL = Settings()
MIB = 1 << 20
MB = 1_000_000


def probe(tnt: float, cyc: float, *, burst: int = 1, windows: int = 200, overflows: int = 0) -> PacketBytes:
    """Windows of a millisecond with so many bytes in each; `burst`: all in one of so many windows."""
    table = np.zeros((1, windows, 2, KINDS))
    table[0, ::burst, 0, PacketKind.TNT_8] = tnt * burst
    table[0, ::burst, 0, PacketKind.CYC] = cyc * burst
    found = np.zeros((1, windows), np.int64)
    found[0, :overflows] = 1
    return PacketBytes(0.001, table, found, 4096, 0, 0, np.zeros(16, np.int64), (np.full(64, 9, np.uint64),))


def choices(found: PacketBytes, wish: Settings, drain: float, memory: int = 0) -> list[Choice]:
    tried = alternatives(wish, ALL.timing)
    estimates = estimate(found, ALL, tried, USUAL, Consumer(drain, memory))
    return [Choice(*one) for one in zip(tried, estimates, strict=True)]


def test_an_estimate_has_rates_buffer_and_loss() -> None:
    (found,) = estimate(probe(30_000, 50_000), ALL, [ALL], USUAL, Consumer(200 * MB))
    assert found == Estimate(("--timing", "tsc,mtc,cyc"), 80e6, 80e6, 0.0, 128 << 10, 0)
    # A fourth of 64 KiB is written in one window, but what is left waits for the next.
    (found,) = estimate(probe(30_000, 50_000), ALL, [ALL], USUAL, Consumer(60 * MB))
    assert found.lost_share == pytest.approx(0.25)
    assert found.buffer_bytes is None
    assert not found.is_lossless


def test_the_defaults_need_no_option() -> None:
    found = probe(30_000, 0)
    advice = advise(found, choices(found, USUAL, 200 * MB), USUAL)
    assert advice.options == ()
    assert advice.reasons == ()


def test_a_burst_needs_a_larger_buffer() -> None:
    found = probe(30_000, 0, burst=200)  # 6 MB in one millisecond
    advice = advise(found, choices(found, USUAL, 200 * MB), USUAL)
    assert advice.options == ("--buffer", "8M")
    lost = 100 * (1 - 4 * MIB / 6e6)
    assert advice.reasons == (("--buffer 8M", f"4M (default) would lose {lost:.2g} %"),)


def test_memory_limits_the_buffer() -> None:
    found = probe(30_000, 0, burst=200)
    advice = advise(found, choices(found, USUAL, 200 * MB, memory=5 * MIB), USUAL)
    assert advice.options[-2:] == ("--ring", "64M")


def test_cyc_is_left_out_if_it_makes_too_many_bytes() -> None:
    found = probe(38_000, 62_000)
    advice = advise(found, choices(found, ALL, 100 * MB), USUAL)
    assert advice.options == ()  # tsc,mtc is the default
    assert advice.reasons == (("--timing tsc,mtc", "CYC makes 62 % of the bytes; with this 38 MB/s"),)


def test_a_threshold_is_tried_first() -> None:
    # Payloads of 9 cycles: with CycThresh 6 (32 cycles) one of 4 packets is left, with two bytes.
    found = probe(38_000, 62_000)
    advice = advise(found, choices(found, ALL, 140 * MB), USUAL)
    assert advice.options == ("--timing", "tsc,mtc,cyc", "--cyc-threshold", "6")
    assert advice.reasons[0][0] == "--cyc-threshold 6"


def test_the_rate_is_that_of_all_options() -> None:
    found = probe(38_000, 62_000)
    table = found.windows.copy()
    table[:, :, 0, PacketKind.MTC] = 60_000
    counts = np.array([8, 4, 2, 1] + [0] * 12)
    found = replace(found, windows=table, mtc_counts=counts)
    advice = advise(found, choices(found, ALL, 100 * MB), USUAL)
    assert advice.options == ("--mtc-period", "6")
    assert advice.reasons == (
        ("--timing tsc,mtc", "CYC makes 39 % of the bytes"),
        ("--mtc-period 6", "MTC makes 38 % of the bytes; with all of these 45.5 MB/s"),
    )


def test_more_than_half_of_the_recorder_is_close() -> None:
    found = probe(38_000, 0)
    advice = advise(found, choices(found, USUAL, 50 * MB), USUAL)
    assert "--ring" not in advice.options
    assert advice.reasons[-1][0] == "(close)"
    assert "more than half of its measured speed" in advice.reasons[-1][1]


def test_a_ring_is_left_where_no_buffer_suffices() -> None:
    found = probe(38_000, 0)
    advice = advise(found, choices(found, USUAL, 10 * MB), USUAL)
    assert advice.options == ("--ring", "64M")  # a ring is not emptied: packets need not be left out
    assert "38 MB/s" in advice.reasons[-1][1]


def test_overflows_need_fewer_bytes_not_buffers() -> None:
    found = probe(10_000, 10_000, overflows=1)
    taken = choices(found, ALL, 200 * MB)
    assert taken[0].estimate.overflow_windows == 200
    assert taken[0].estimate.buffer_bytes is not None
    advice = advise(found, taken, USUAL)
    assert advice.reasons[0][0] == "--cyc-threshold 6"  # payloads of 9 cycles: CycThresh 3 keeps all
    assert "CYC" in advice.reasons[0][1]


def test_a_ring_does_not_help_against_overflows() -> None:
    found = probe(30_000, 10_000, overflows=1)
    advice = advise(found, choices(found, ALL, 10 * MB), USUAL)
    assert advice.options == ("--timing", "tsc,mtc,cyc", "--cyc-threshold", "6", "--ring", "64M")


def test_overflows_that_stay_are_said() -> None:
    found = probe(10_000, 0, overflows=1)
    advice = advise(found, choices(found, USUAL, 200 * MB), USUAL)
    assert advice.reasons[-1] == (
        "(losses stay)", "the trace unit itself overflows (OVF); --filter leaves out code"
    )  # fmt: skip


def test_alternatives_have_fewer_and_fewer_packets() -> None:
    words = [" ".join(one.words(USUAL)) for one in alternatives(ALL, ALL.timing)]
    assert words == [
        "--timing tsc,mtc,cyc",
        "--timing tsc,mtc,cyc --cyc-threshold 3",
        "--timing tsc,mtc,cyc --cyc-threshold 6",
        "",
        "--mtc-period 6",
        "--mtc-period 9",
        "--mtc-period 9 --psb-period 65536",
        "--timing tsc --psb-period 65536",
    ]


def test_what_the_probe_has_not_is_not_an_alternative() -> None:
    assert all("cyc" not in one.timing for one in alternatives(ALL, ("tsc", "mtc")))
    assert [one.timing for one in alternatives(Settings(()), ALL.timing)] == [(), ()]
    assert all("tsc" in one.timing for one in alternatives(ALL, ALL.timing))


@pytest.mark.parametrize(
    ("size", "text"), [(1 << 16, "64K"), (16 * MIB, "16M"), (1 << 30, "1G"), (1000, "1000")]
)
def test_sizes_as_options_have_them(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (38e6, "38 MB/s"),
        (123_400, "123 kB/s"),
        (999, "0.999 kB/s"),
        (999_700, "1 MB/s"),
        (999.7e6, "1,000 MB/s"),
        (1.234e9, "1,234 MB/s"),
        (0, "0 kB/s"),
    ],
)
def test_rates_as_text(rate: float, text: str) -> None:
    assert rate_text(rate) == text
