"""The fast path against the simple decoder alone (engine "simple"): equal in every column of every table."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from figures import CORPUS, TRACES, open_trace

import ptkit
from ptkit import Table, capture
from ptkit.support.schema import schema_of

TABLES = ["branches", "blocks", "instructions", "events", "edges", "errors", "gaps"]
# The simple decoder takes a second for a million rows: of these, only tables with fewer.
LONG = {"libxdc/mruby"}
EMULATOR = any(one.name == "emulator" and one.available for one in capture.probe())
RECORDINGS = [
    (compressed, period, timing)
    for compressed in (True, False)
    for period, timing in ((2 << 10, ()), (1 << 20, ("tsc", "mtc", "cyc")), (2 << 10, ("tsc", "mtc", "cyc")))
]


def assert_same(fast: Table, simple: Table, what: str) -> None:
    """Fail if any column differs, those of runs included."""
    assert list(fast.columns) == list(simple.columns)
    for column in fast.columns:
        np.testing.assert_array_equal(fast[column], simple[column], err_msg=f"{what}.{column}")


def check(fast: ptkit.Trace, simple: ptkit.Trace, name: str) -> None:
    """Compare one table, and the errors and gaps that were met while it was read."""
    ways = [getattr(trace, name) for trace in (fast, simple)]
    stored = schema_of(name).names("stored", "on demand")
    columns = [column for column in stored if column != "bin"]  # which needs limits of phases
    ours, theirs = (way(columns=columns) if callable(way) else way for way in ways)
    assert_same(ours, theirs, name)
    for side in ("errors", "gaps"):
        mine, other = getattr(ours, side, None), getattr(theirs, side, None)
        assert (mine is None) == (other is None)
        if mine is not None and other is not None:
            assert_same(mine, other, f"{name}.{side}")


@pytest.mark.parametrize("resync", ["ip", "psb"])
@pytest.mark.parametrize("name", TRACES)
def test_corpus(name: str, resync: str) -> None:
    fast, simple = (open_trace(name, engine=engine, resync=resync) for engine in ("ptkit", "simple"))
    for table in TABLES:
        if name not in LONG or table in ("edges", "branches", "events", "errors"):
            check(fast, simple, table)


def test_corpus_is_there() -> None:
    if not CORPUS.exists():
        pytest.skip(f"{CORPUS} is missing: set PTKIT_CORPUS to the folder of traces")
    assert any((CORPUS / name).exists() for name in TRACES)


@pytest.mark.skipif(not EMULATOR, reason="no emulator here")
@pytest.mark.parametrize(("compressed", "period", "timing"), RECORDINGS)
def test_recording(tmp_path: Path, compressed: bool, period: int, timing: tuple[str, ...]) -> None:
    program = shutil.which("true")
    if program is None:
        pytest.skip("no program `true` here")
    recording = ptkit.Recorder(
        [program],
        tmp_path / "out.ptk",
        backend="emulator",
        quiet=True,
        return_compression=compressed,
        psb_period=period,
        timing=timing,
    ).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        fast, simple = (ptkit.open(recording, engine=engine) for engine in ("ptkit", "simple"))
    for table in TABLES:
        check(fast, simple, table)
