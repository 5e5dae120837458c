"""A part of a recording by its index, against a decode of all with the same selection."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import ptkit

T = TypeVar("T")
SHARES = (0.001, 0.01, 0.1)  # of the recording's time


def _least(work: Callable[[], T], rounds: int) -> tuple[float, T]:
    """The least CPU time, and the result."""
    best, result = float("inf"), None
    for _ in range(rounds):
        begin = time.process_time()
        result = work()
        best = min(best, time.process_time() - begin)
    assert result is not None
    return best, result


def compare(path: Path, rounds: int) -> list[dict[str, Any]]:
    """Time `between` in the middle of a recording; all rows are compared first. Needs timing packets."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        whole, indexed = (ptkit.open(path, index=False, threads=1) for _ in range(2))
    build, info = _least(lambda: indexed.index(save=False, threads=1), 1)
    times = whole.events(columns=["tsc", "time_known"])
    known = times["tsc"][times["time_known"]]
    begin, span = int(known.min()), int(known.max() - known.min())
    rows = []
    for share in SHARES:
        t0 = begin + span // 2
        t1 = t0 + int(span * share)
        full, expected = _least(lambda t0=t0, t1=t1: whole.branches(time=(t0, t1)), 1)
        part, found = _least(lambda t0=t0, t1=t1: indexed.between(t0, t1).branches(), rounds)
        if any(not np.array_equal(found[name], expected[name]) for name in expected.available):
            sys.exit(f"{path}: between({t0}, {t1}) differs from a decode of all")
        result = {"trace": path.name, "share": share, "rows": len(found), "full": full, "part": part}
        rows.append({**result, "build": build, "index_bytes": info.size_bytes, "bytes": whole.info.bytes})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """One line for each share."""
    first = rows[0]
    print(
        f"\nparts: {first['trace']}, {first['bytes'] / 1e6:.0f} MB; index: {first['build']:.2f} s, "
        f"{first['index_bytes']:,} bytes"
    )
    print(f"{'of time':>8} {'rows':>10} {'all s':>9} {'part s':>9} {'x':>7}")
    for row in rows:
        ratio = row["full"] / row["part"]
        print(f"{row['share']:8.1%} {row['rows']:10,} {row['full']:9.3f} {row['part']:9.4f} {ratio:7.1f}")
