"""Recordings by the software trace unit with known true times of branches (tests/differential)."""

from __future__ import annotations

import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ptk_chunks
import pytest
from numpy.typing import NDArray

BUILD = Path(os.environ.get("PTKIT_BUILD", Path(__file__).resolve().parents[3] / "build" / "test"))
CLOCK = {
    "tsc_ctc_numerator": 168,
    "tsc_ctc_denominator": 2,
    "mtc_period": 3,
    "max_nonturbo_ratio": 30,
}


@dataclass(frozen=True)
class TimedWalk:
    """A bundle, and what is true of each of its branches.

    No conversion to nanoseconds is known: perf takes a tick for a nanosecond, so that neither rounds.
    """

    path: Path
    from_ip: NDArray[np.uint64]
    to_ip: NDArray[np.uint64]
    taken: NDArray[np.bool_]
    tsc: NDArray[np.uint64]
    retired: NDArray[np.uint64]  # instructions, that of the branch included


def _regions(data: bytes) -> list[tuple[int, bytes]]:
    regions = []
    while data:
        address, size = struct.unpack_from("<QQ", data)
        regions.append((address, data[16 : 16 + size]))
        data = data[16 + size :]
    return regions


def make(folder: Path, *, steps: int, cyc: bool, halts: int = 0, seed: int = 1) -> TimedWalk:
    """Make one of `steps` branches; MTC each 672 ticks. `halts`: per million instructions."""
    maker = BUILD / "tests" / "differential" / "ptkit_timed_walk"
    if not maker.exists():
        pytest.skip(f"{maker} is not built (set PTKIT_BUILD to a build directory with PTKIT_TESTS=ON)")
    subprocess.run([maker, folder, str(seed), str(steps), str(int(cyc)), str(halts)], check=True)
    chunks = [ptk_chunks.process(0, 77, 1, (folder / "trace").read_bytes())]
    chunks += [ptk_chunks.code(*region) for region in _regions((folder / "code").read_bytes())]
    path = ptk_chunks.write(
        folder / "walk.ptk",
        chunks,
        cpu={"intel": True, "family": 6, "model": 142, "stepping": 9},
        clock=CLOCK,
    )
    truth = np.fromfile(folder / "truth", "<u8").reshape(-1, 5)
    return TimedWalk(path, truth[:, 0], truth[:, 1], truth[:, 2] != 0, truth[:, 3], truth[:, 4])
