"""Buffers that fill and are emptied: shares that are lost."""

from __future__ import annotations

import numpy as np
import pytest

from ptkit.planning.backlog import DRAIN_PERIOD, lost_shares

MILLISECOND = 0.001
MIB = 1 << 20


def lost(per_millisecond: list[list[float]], drain: float, size: int) -> float:
    return float(lost_shares(np.array([per_millisecond]), MILLISECOND, drain, [size])[0, 0])


def test_nothing_is_lost_of_less_than_the_recorder_takes() -> None:
    assert lost([[1000.0] * 100], 2e6, 1 << 16) == 0


def test_nothing_written_is_nothing_lost() -> None:
    assert lost([[0.0] * 10], 1e6, 1 << 16) == 0


@pytest.mark.parametrize("size", [1 << 16, 4 * MIB, 1 << 30])
def test_in_the_long_run_no_buffer_helps_against_twice_the_rate(size: int) -> None:
    assert lost([[2000.0] * 100], 1e6, size) >= 0.5


def test_a_buffer_of_any_size_loses_half_of_twice_the_rate() -> None:
    assert lost([[2000.0] * 100], 1e6, 1 << 30) == 0.5


def test_a_burst_has_to_fit() -> None:
    burst = [[1_000_000.0] + [0.0] * 99]
    assert lost(burst, 1e9, MIB) == 0
    # All of the burst comes in one window: what does not fit is lost.
    assert lost(burst, 1e9, 500_000) == pytest.approx(0.5)


def test_what_comes_between_two_looks_waits() -> None:
    # 20 windows of 1000 bytes come before the recorder looks; a fourth of the buffer would wake it up.
    looks = round(DRAIN_PERIOD / MILLISECOND)
    assert lost([[1000.0] * 100], 1e9, 4 * looks * 1000 + 1) == 0
    sizes = [1000, 2000, 4000]
    shares = lost_shares(np.full((1, 1, 100), 1000.0), MILLISECOND, 1e9, sizes)
    assert shares.tolist() == [[0, 0, 0]]  # woken up in time, as it is fast
    assert lost([[1000.0] * 100], 1e9, 999) == pytest.approx(0.001)


def test_what_does_not_fit_is_lost_until_there_is_room() -> None:
    # 1.5 of 3 kB are taken in each window: as much is lost, whatever the size.
    assert lost([[3000.0] * 100], 1.5e6, 6000) == pytest.approx(0.5)
    assert lost([[3000.0, 0.0] * 50], 1.5e6, 3000) == 0
    assert lost([[3000.0, 0.0] * 50], 1.5e6, 2000) == pytest.approx(1 / 3)


def test_each_stream_has_a_buffer_and_all_share_the_recorder() -> None:
    one = [[1000.0] * 100]
    assert lost(one, 1.5e6, MIB) == 0
    assert lost(one * 2, 1.5e6, MIB) == pytest.approx(0.25)


def test_each_size_may_have_its_own_speed() -> None:
    windows = np.full((1, 1, 100), 2000.0)
    shares = lost_shares(windows, MILLISECOND, [1e6, 4e6], [1 << 30, 1 << 30])
    assert shares.tolist() == [[0.5, 0]]


def test_settings_do_not_share_buffers() -> None:
    windows = np.stack([np.full((1, 100), 2000.0), np.full((1, 100), 500.0), np.zeros((1, 100))])
    assert lost_shares(windows, MILLISECOND, 1e6, [1 << 30]).tolist() == [[0.5], [0], [0]]
