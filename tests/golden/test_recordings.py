"""Recordings of perf in the emulated machine, decoded instruction by instruction: recordings/README.md."""

from __future__ import annotations

import lzma
import warnings
from pathlib import Path

import numpy as np
import pytest
from perf_data import aux_streams, by_time, with_early_switch
from reduced import unpack

import ptkit
from ptkit import _core

FOLDER = Path(__file__).resolve().parent / "recordings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))


def test_recordings_exist() -> None:
    assert len(NAMES) >= 8
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 600_000


@pytest.mark.parametrize("engine", _core.engines())
@pytest.mark.parametrize("name", NAMES)
def test_every_instruction(name: str, engine: str) -> None:
    if name == "kernel" and engine == "libipt":
        pytest.skip("libipt binds TIP.PGD to the MOV CR3 before SYSRET")
    truth = unpack(FOLDER / f"{name}.npz")
    streams = aux_streams(lzma.decompress((FOLDER / f"{name}.perf.data.xz").read_bytes()))
    assert streams.keys() == truth.streams.keys()
    for key, stream in streams.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ptkit.PtkitWarning)  # the processor is not known
            trace = ptkit.open(stream, images=[truth.images], engine=engine)
        found = trace.instructions(columns=["ip"])
        assert len(found.errors) == 0, f"{key}: {found.errors}"
        expected = truth.streams[key]
        both = min(len(found), len(expected))
        differing = np.flatnonzero(found["ip"][:both] != expected[:both])
        assert len(differing) == 0, f"{key}: instruction {differing[0]} of {len(expected)}"
        assert len(found) == len(expected), key


def test_copies_for_perf_differ_in_sideband_only() -> None:
    data = lzma.decompress((FOLDER / "all.perf.data.xz").read_bytes())
    changed = [(old, new) for old, new in zip(data, by_time(data), strict=True) if old != new]
    assert changed == [(3, 2)]  # have_sched_switch
    early = with_early_switch(data, 0)
    offsets = [offset for offset, (old, new) in enumerate(zip(data, early, strict=True)) if old != new]
    assert 1 <= len(offsets) <= 8  # of one time
    assert offsets[-1] - offsets[0] < 8
    assert aux_streams(early) == aux_streams(by_time(data)) == aux_streams(data)
