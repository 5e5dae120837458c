"""`ptkit.record` gives a trace."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import numpy as np
import pytest

import ptkit
from ptkit import capture

pytestmark = pytest.mark.skipif(
    not any(backend.available for backend in capture.probe()),
    reason="no back end works on this machine",
)


def test_record_and_decode(tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    output = tmp_path / "true.ptk"
    trace = ptkit.record([program], output=output)
    assert output.exists()
    assert trace.recording is not None
    assert trace.recording.exit_status == 0
    instructions = trace.instructions(columns=["ip", "tid", "tsc", "time_ns"])
    assert len(instructions) == trace.recording.instructions
    assert len(trace.errors) == 0
    assert instructions["tid_known"].all()
    again = ptkit.open(output).instructions(columns=["ip"])
    assert (again["ip"] == instructions["ip"]).all()
    only = trace.branches(tid=int(instructions["tid"][0]))
    assert len(only) == len(trace.branches(columns=["kind"]))
    name = next(name for name in trace.symbolize(only["from_ip"], offsets=False) if name)
    chosen = trace.branches(symbol=name, columns=["from_ip", "to_ip"])
    covered = np.zeros(len(only), dtype=np.bool_)
    for _, address, size in trace.symbols(name):
        for end in ("from", "to"):
            inside = (only[f"{end}_ip"] >= address) & (only[f"{end}_ip"] < address + max(size, 1))
            covered |= inside & only[f"{end}_known"]
    assert 0 < covered.sum() < len(only)
    for end in ("from_ip", "to_ip"):
        assert (chosen[end] == only[end][covered]).all()


def test_a_recording_without_a_name_is_removed() -> None:
    program = shutil.which("true")
    assert program is not None
    trace = ptkit.record([program])
    path = Path(trace.source)
    assert path.exists()
    del trace
    gc.collect()
    assert not path.exists()
