"""Ours against libipt, row by row, in whole columns."""

from __future__ import annotations

import numpy as np
import pytest
from figures import TRACES, need_libipt, open_trace

from ptkit import EventFlag, EventKind, Table
from ptkit.analysis.verify import verify

# libipt reads ahead after an error and may miss a PSB: there, only what both see is compared (by `verify`).
WHOLE = [name for name in TRACES if not name.endswith("dyn_test")]


@pytest.fixture(autouse=True)
def _libipt() -> None:
    need_libipt()


def tables(name: str, table: str, columns: list[str]) -> tuple[Table, Table]:
    """A table by both engines."""
    ours, theirs = (
        getattr(open_trace(name, engine=engine, resync="psb"), table)(columns=columns)
        for engine in ("ptkit", "libipt")
    )
    return ours, theirs


@pytest.mark.parametrize("name", WHOLE)
def test_instructions(name: str) -> None:
    columns = ["ip", "size", "cls", "mode", "flags"]
    ours, theirs = tables(name, "instructions", columns)
    for column in ("ip", "size", "cls", "mode", "in_tx"):
        np.testing.assert_array_equal(ours[column], theirs[column], err_msg=column)


@pytest.mark.parametrize("name", WHOLE)
def test_branches(name: str) -> None:
    ours, theirs = tables(name, "branches", ["from_ip", "to_ip", "kind", "flags"])
    # A branch right before an error: libipt does not always say where it went.
    known = theirs["to_known"] | ~ours["to_known"]
    assert np.count_nonzero(~known) <= len(theirs.errors or ())
    for column in ("from_ip", "from_known", "kind"):
        np.testing.assert_array_equal(ours[column], theirs[column], err_msg=column)
    for column in ("to_ip", "to_known", "taken", "in_tx"):
        np.testing.assert_array_equal(ours[column][known], theirs[column][known], err_msg=column)


@pytest.mark.parametrize("name", WHOLE)
def test_events(name: str) -> None:
    ours, theirs = (compared_events(table) for table in tables(name, "events", EVENT_COLUMNS))
    for column in EVENT_COLUMNS:
        np.testing.assert_array_equal(ours[column], theirs[column], err_msg=column)


EVENT_COLUMNS = ["kind", "ip", "payload", "payload2", "payload3", "flags", "instruction"]
TIME_KNOWN = np.uint16(EventFlag.TIME_KNOWN)


def compared_events(events: Table) -> dict[str, np.ndarray]:
    """Leave out repeated state, which each version of libipt repeats elsewhere, and the interrupt flag."""
    kinds = events["kind"]
    keep = ~events["status"] & (kinds != EventKind.IFLAG)
    mode = None
    for row in np.flatnonzero(kinds == EventKind.EXEC_MODE).tolist():
        repeats = events["payload"][row] == mode
        mode = events["payload"][row]
        keep[row] &= not repeats
    columns = {column: events[column][keep] for column in EVENT_COLUMNS}
    columns["flags"] = columns["flags"] & ~TIME_KNOWN
    return columns


@pytest.mark.parametrize("name", TRACES)
def test_packets(name: str) -> None:
    columns = ["offset", "size", "kind", "flags", "ip", "payload", "payload2"]
    ours, theirs = tables(name, "packets", columns)
    assert len(ours) > 0
    for column in columns:
        np.testing.assert_array_equal(ours[column], theirs[column], err_msg=column)


@pytest.mark.parametrize("name", TRACES)
def test_verify(name: str) -> None:
    report = verify(open_trace(name))
    assert report.same, str(report)
    assert report.matched["packets"] > 0
    assert report.matched["instructions"] > 0
    assert report.as_dict()["same"] is True
