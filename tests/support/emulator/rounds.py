"""Recordings of tests/programs/times/rounds.c in the emulator, and what is in them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit
from ptkit import capture

needs_emulator = pytest.mark.skipif(
    not any(one.name == "emulator" and one.available for one in capture.probe()),
    reason="no emulator here: " + "; ".join(f"{one.name}: {one.missing}" for one in capture.probe()),
)
FUNCTIONS = ("leaf", "other", "work", "begin", "end", "handler", "main")


def record(argv: list[Any], folder: Path, **more: Any) -> ptkit.Trace:
    """Record in the emulator; all that is there can be decoded."""
    trace = ptkit.record(argv, output=folder / "out.ptk", backend="emulator", quiet=True, **more)
    assert trace.recording is not None
    assert trace.recording.exit_status == 5
    assert not trace.recording.warnings
    assert len(trace.errors) == 0, str(trace.errors)
    return trace


def entries(trace: ptkit.Trace) -> dict[str, int]:
    """How often each function of the program was entered: by a branch, or as the first of what is traced."""
    edges, events = trace.edges(), trace.events(columns=["kind", "ip", "flags"])
    # State that a PSB+ repeats is no entry, though its address may be a function's first instruction.
    new = (events["flags"] & int(ptkit.EventFlag.STATUS)) == 0
    enabled = events["ip"][(events["kind"] == ptkit.EventKind.ENABLED) & new]
    counts = {}
    for name in FUNCTIONS:
        addresses = np.array(
            [address for found, address, _ in trace.symbols(name) if found == name], np.uint64
        )
        branches = edges["count"][np.isin(edges["to_ip"], addresses)]
        counts[name] = int(branches.sum()) + int(np.isin(enabled, addresses).sum())
    return counts


def opened(path: Path) -> tuple[ptkit.Trace, str]:
    """A damaged bundle's trace, and what opening it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(path)
    return trace, "\n".join(str(one.message) for one in caught)


def names(trace: ptkit.Trace) -> set[str | None]:
    """Functions of which instructions were traced."""
    return set(trace.instructions(columns=["symbol"])["symbol"].tolist())
