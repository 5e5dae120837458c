"""Estimates of other settings: exact where the packets say it."""

from __future__ import annotations

import numpy as np
import pytest

from ptkit import PacketKind
from ptkit.planning.packet_bytes import KINDS, PacketBytes
from ptkit.planning.settings import Settings, cyc_share, factors

ALL = Settings(("tsc", "mtc", "cyc"))
USUAL = Settings()


def counted(
    outside: dict[PacketKind, int],
    within: dict[PacketKind, int] | None = None,
    *,
    psbs: int = 0,
    early: int = 0,
    mtc_counts: tuple[int, ...] = (),
    cycles: tuple[int, ...] = (),
) -> PacketBytes:
    """One stream and one window."""
    windows = np.zeros((1, 1, 2, KINDS))
    for in_psb, kinds in enumerate((outside, within or {})):
        for kind, size in kinds.items():
            windows[0, 0, in_psb, kind] = size
    counts = np.zeros(16, np.int64)
    counts[: len(mtc_counts)] = mtc_counts
    return PacketBytes(
        window_seconds=0.001,
        windows=windows,
        overflows=np.zeros((1, 1), np.int64),
        psb_period=4096,
        psbs=psbs,
        early_psbs=early,
        mtc_counts=counts,
        cycles=(np.array(cycles, np.uint64),),
    )


def bytes_with(found: PacketBytes, wanted: Settings, probe: Settings = ALL) -> float:
    return float((found.windows * factors(found, probe, wanted)).sum())


KIND = PacketKind
MIXED = {KIND.TNT_8: 500, KIND.TIP: 300, KIND.CYC: 900, KIND.MTC: 80, KIND.TSC: 16, KIND.TMA: 14}


@pytest.mark.parametrize(
    ("timing", "size"),
    [
        (("tsc", "mtc", "cyc"), 1810),
        (("tsc", "mtc"), 910),
        (("tsc",), 816),  # TMA needs MTC as well
        (("mtc",), 880),  # and TSC
        ((), 800),
    ],
)
def test_packets_that_are_left_out_take_their_bytes_along(timing: tuple[str, ...], size: int) -> None:
    found = counted(MIXED, mtc_counts=(40,))
    assert bytes_with(found, Settings(timing)) == pytest.approx(size)


def test_a_longer_mtc_period_keeps_the_packets_that_the_counter_says() -> None:
    found = counted({KIND.TNT_8: 100, KIND.MTC: 80}, mtc_counts=(40, 20, 10, 5))
    assert bytes_with(found, Settings(mtc_period=6)) == pytest.approx(100 + 2 * 5)
    assert bytes_with(found, Settings(mtc_period=2)) == pytest.approx(100 + 2 * 80)


def test_a_threshold_adds_up_the_cycles_of_packets_that_are_left_out() -> None:
    # Of one byte each below 32; 10 + 30 = 40 and 100 take two.
    found = counted({KIND.CYC: 4}, cycles=(10, 30, 5, 31))
    assert cyc_share(found, 0) == 1
    assert cyc_share(found, 5) == pytest.approx(4 / 4)  # 16 cycles: 40 (2 bytes), 36 (2 bytes)
    assert cyc_share(found, 6) == pytest.approx(4 / 4)  # 32 cycles: the same two
    assert cyc_share(found, 7) == pytest.approx(2 / 4)  # 64 cycles: 76 once
    assert cyc_share(found, 15) == 0


def naive_threshold(cycles: list[int], least: int) -> int:
    """Bytes of CYC packets with a threshold, packet by packet."""
    size = since = 0
    for one in cycles:
        since += one
        if since >= least:
            size += 1 if since < 32 else 2 if since < 4096 else 3 if since < 1 << 19 else 4
            since = 0
    return size


@pytest.mark.parametrize("threshold", range(1, 16))
def test_thresholds_equal_a_run_packet_by_packet(threshold: int) -> None:
    cycles = np.random.default_rng(threshold).geometric(0.02, 3000).tolist()
    found = counted({KIND.CYC: 1}, cycles=tuple(cycles))
    expected = naive_threshold(cycles, 1 << (threshold - 1)) / naive_threshold(cycles, 0)
    assert cyc_share(found, threshold) == pytest.approx(expected)


def test_psbs_come_after_as_many_bytes_of_what_is_left() -> None:
    # 10 PSB+ of 28 bytes, one each 4096 bytes with everything: 40 960 bytes, and none of them early.
    within = {KIND.PSB: 160, KIND.TSC: 80, KIND.MODE_EXEC: 20, KIND.PSBEND: 20}
    found = counted({KIND.TNT_8: 20_680, KIND.CYC: 20_000}, within, psbs=10)
    assert bytes_with(found, ALL) == pytest.approx(40_960)
    # Without CYC: x = 20 680 + 28 x / 4096.
    assert bytes_with(found, USUAL) == pytest.approx(20_680 / (1 - 28 / 4096))
    longer = Settings(ALL.timing, psb_period=65536)
    assert bytes_with(found, longer) == pytest.approx(40_680 / (1 - 28 / 65536))
    # Without TSC a PSB+ has 20 bytes.
    assert bytes_with(found, Settings(())) == pytest.approx(20_680 / (1 - 20 / 4096))


def test_psbs_of_tracing_that_begins_anew_do_not_depend_on_the_period() -> None:
    within = {KIND.PSB: 160, KIND.MODE_EXEC: 20, KIND.PSBEND: 20}
    found = counted({KIND.TNT_8: 1000}, within, psbs=10, early=10)
    assert bytes_with(found, Settings(psb_period=65536)) == pytest.approx(1200)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(), ""),
        (Settings(("mtc", "tsc")), ""),
        (ALL, "--timing tsc,mtc,cyc"),
        (Settings(("tsc", "mtc", "cyc"), cyc_threshold=3), "--timing tsc,mtc,cyc --cyc-threshold 3"),
        (Settings(mtc_period=9, psb_period=65536), "--mtc-period 9 --psb-period 65536"),
        (Settings((), mtc_period=9), "--timing none"),
    ],
)
def test_options_of_settings(settings: Settings, words: str) -> None:
    assert " ".join(settings.words(USUAL)) == words
