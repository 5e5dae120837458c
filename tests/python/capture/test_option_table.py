"""Each option of the table is read by its kind, and numbers have the range of their row."""

from __future__ import annotations

from typing import Any

import pytest

import ptkit
from ptkit.capture.option_table import OptionRow, option_rows, read_option
from ptkit.selftest.logged import LoggedRecorder

ROWS = option_rows()
NUMBERS = [
    row for row in ROWS.values() if row.most and row.kind in ("NUMBER", "POWER_OF_TWO", "SIZE", "DURATION")
]
WRONG: dict[str, Any] = {
    "FLAG": 1,
    "NUMBER": "1",
    "POWER_OF_TWO": 5000,
    "SIZE": "64X",
    "DURATION": True,
    "TEXT": 5,
    "WORD": 5,
    "CHOICE": "root",
    "NAMES": "magic",
    "CPUS": "some",
    "FILTERS": 5,
    "TRIGGERS": 5,
    "BRANCHES": 5,
    "USER": "no-such-user",
}


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.name)
def test_ranges_are_checked_at_both_ends(row: OptionRow) -> None:
    scale = 1000 if row.kind == "DURATION" else 1
    assert read_option(row.name, row.least / scale if scale > 1 else row.least) == row.least
    assert read_option(row.name, row.most / scale if scale > 1 else row.most) == row.most
    for value in (row.least - 1, row.most + 1000):
        with pytest.raises(ptkit.ConfigError, match=row.name):
            read_option(row.name, value / scale if scale > 1 else value)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_wrong_values_name_the_option(row: OptionRow) -> None:
    with pytest.raises(ptkit.ConfigError, match=row.name.rstrip("s")):
        read_option(row.name, WRONG[row.kind])


@pytest.mark.parametrize(
    "row", [row for row in ROWS.values() if row.kind == "FLAG"], ids=lambda row: row.name
)
def test_defaults_are_not_passed_on(row: OptionRow) -> None:
    assert read_option(row.name, row.is_on) is None
    assert read_option(row.name, not row.is_on) is (not row.is_on)
    assert read_option(row.name, None) is None


def test_timing_alone_takes_none() -> None:
    assert read_option("timing", "none") == []
    with pytest.raises(ptkit.ConfigError, match="expected any of ptwrite, power, events, found 'none'"):
        read_option("packets", "none")


def test_seconds_name_the_range() -> None:
    with pytest.raises(ptkit.ConfigError, match=r"expected a number from 0\.001 to 1000000000, found 0"):
        read_option("seconds", 0)


def test_logs_need_a_path() -> None:
    with pytest.raises(ptkit.ConfigError, match="truth: '' is no path"):
        LoggedRecorder(["true"], backend="step", truth="")
