"""Output of stock perf's decoder for a perf.data, as arrays."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

PERF = shutil.which("perf")
needs_perf = pytest.mark.skipif(PERF is None, reason="no perf here: install linux-perf (Debian) or perf")
NO_CACHE = "/nonexistent"  # not the user's ~/.debug


@dataclass(frozen=True)
class Samples:
    """Samples in the order in which perf prints them, its lines about errors, and its warnings."""

    tid: NDArray[np.int64]
    from_ip: NDArray[np.uint64]
    to_ip: NDArray[np.uint64]
    errors: list[str]
    warnings: list[str] = field(default_factory=list)

    def of(self, tid: int) -> Samples:
        rows = self.tid == tid
        return Samples(self.tid[rows], self.from_ip[rows], self.to_ip[rows], self.errors, self.warnings)


def _run(data: Path, fields: str, itrace: str, *options: str) -> str:
    assert PERF is not None
    debug = Path(f"{data}.debug")
    folder = debug if debug.exists() else NO_CACHE
    command = [PERF, "--buildid-dir", str(folder), "script", "-f", "-i", str(data)]
    command += [f"--itrace={itrace}", "--ns", "-F", fields, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def samples(text: str, columns: int, stderr: str = "") -> Samples:
    """Lines of a thread and one or two addresses, lines about errors, and warnings."""
    lines = text.splitlines()
    errors = [line.strip() for line in lines if "error" in line]
    words = " ".join(line for line in lines if "error" not in line).replace("=>", " ").split()
    tid = np.array([int(word) for word in words[::columns]], dtype=np.int64)
    ips = [
        np.array([int(word, 16) for word in words[column::columns]], dtype=np.uint64)
        for column in range(1, columns)
    ]
    warnings = [line for line in stderr.splitlines() if line.strip()]
    return Samples(tid, ips[0], ips[-1], errors, warnings)


def perf_instructions(data: Path, cpu: int | None = None) -> Samples:
    """Every instruction (``--itrace=i0ns``), or those of one CPU."""
    options = [] if cpu is None else ["-C", str(cpu)]
    return samples(_run(data, "tid,ip", "i0nse", *options), 2)


def perf_times(data: Path) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Where each branch that was taken came from (0: trace begins), and its time in nanoseconds."""
    lines = [line.split() for line in _run(data, "ip,time", "be").splitlines() if "error" not in line]
    seconds = [time.rstrip(":").split(".") for time, _ in lines]
    times = np.array([int(whole) * 10**9 + int(part) for whole, part in seconds], dtype=np.uint64)
    return np.array([int(ip, 16) for _, ip in lines], dtype=np.uint64), times


def perf_branches(data: Path) -> Samples:
    """Every branch that was taken (``--itrace=b``), begins and ends of trace included."""
    return samples(_run(data, "tid,ip,addr", "be"), 3)
