"""Checks of what is recorded instead of packets: Branch Trace Store, and branch stacks (LBR)."""

from __future__ import annotations

import numpy as np

from ptkit.selftest import programs
from ptkit.selftest.bench import Bench
from ptkit.selftest.compare import Rows, expect_parts
from ptkit.selftest.outcome import CheckFailed
from ptkit.support.text import counted

__all__ = ["check_branch_stacks", "check_branch_store"]

_INSTRUCTIONS = 4000
_LEAST_SHARE = 0.5
_SAMPLED_ROUNDS = 3_000_000
_STEPPED_ROUNDS = 500
_PERIOD = 100_003  # cycles


def check_branch_store(bench: Bench) -> str:
    """Compare instructions between branch records; those after the last record are not known."""
    program = programs.branches(bench.seed, _INSTRUCTIONS)
    executed = bench.executed(program)
    rows = bench.record(program, bts=True).rows()
    expect_parts(Rows(rows.ip, (0, *rows.cuts, len(rows.ip)), rows.errors), executed)
    share = len(rows.ip) / len(executed)
    if share < _LEAST_SHARE:
        raise CheckFailed(f"only {share:.0%} of {counted(len(executed), 'instruction')}")
    return f"{share:.0%} of {counted(len(executed), 'instruction')}"


def check_branch_stacks(bench: Bench) -> str:
    """Require that sampled branches go where they go by single steps."""
    taken = bench.record(programs.spinning(_SAMPLED_ROUNDS), branch_stack=True, sample_period=_PERIOD)
    executed = bench.executed(programs.spinning(_STEPPED_ROUNDS))
    steps = set(zip(executed[:-1].tolist(), executed[1:].tolist(), strict=True))
    table = taken.trace.branches(stream=taken.streams, columns=["from_ip", "to_ip"])
    ((begin, end),) = taken.program.regions
    ends = np.stack([table["from_ip"], table["to_ip"]])
    inside = ((ends >= begin) & (ends < end)).all(axis=0)
    found = {(int(source), int(target)) for source, target in ends[:, inside].T}
    if not found:
        raise CheckFailed("no branch of the program in any sample")
    wrong = sorted(found - steps)
    if wrong:
        source, target = wrong[0]
        raise CheckFailed(f"a branch from {source:#x} to {target:#x}, which no single step takes")
    return (
        f"{counted(int(inside.sum()), 'branch', 'branches')}, {len(found)} different ones, all of them right"
    )
