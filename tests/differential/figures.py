"""Other people's traces: where they are, and what a reference has found in them.

The figures are libipt 2.3's with erratum BDM70 set. Hashes are FNV-1a over 64-bit words: `hash_ips` over the
IP of every instruction, `hash_edges` over from and to of every branch of an instruction, `hash_cond` over
those of conditional branches.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptkit
from ptkit import BranchKind, ErrorCode

CORPUS = Path(os.environ.get("PTKIT_CORPUS", Path(__file__).parents[2].parent / "shared" / "traces"))


@dataclass(frozen=True)
class Figures:
    """Figures of a trace."""

    instructions: int
    branches: int
    conditionals: int
    errors: int
    hash_ips: int
    hash_edges: int
    hash_cond: int


LIBXDC = {
    "Unzip": Figures(149576, 46761, 45985, 0, 0xB6117DDE78F7DAAE, 0xACEF0C44F4CC99A8, 0x9965EFF5E283082D),
    "mruby": Figures(6334131, 460545, 332459, 0, 0xA229CA637E67CEDA, 0x0FCCA4A97B27CA18, 0x251CEEB3F309D435),
    "avscript_32": Figures(
        1114194, 316133, 234320, 0, 0x2F48FE3E09743497, 0xCA3BF54642B06425, 0xD509D25CC4194A89
    ),
    "dyn_test": Figures(870, 173, 108, 14, 0xDFB1A23D6ED16118, 0xE46E0E1BA3010E18, 0x12A8635AF1EA4081),
}

LLDB = {
    "intelpt-trace/trace.json": """
        400511 400518 40051f 400529 40052d 400521 400525 400529 40052d 400521 400525 400529 40052d
        400521 400525 400529 40052d 400521 400525 400529 40052d""",
    "intelpt-trace-multi-file/multi-file-no-ld.json": """
        40066f 400540 400546 40054b 400510 400516 400674 400677 40067a 40067f 400682 400689 40068c
        400691 400694 400697 40069a 40069c 40069f 400540 7ffff7bd96e0 7ffff7bd96e1 7ffff7bd96e4
        7ffff7bd96e8 7ffff7bd95d0 7ffff79d7690 7ffff79d7691 7ffff79d7694 7ffff79d769b 7ffff79d769e
        7ffff79d76a3 7ffff79d76a6 7ffff79d76a9 7ffff79d76aa 7ffff7bd96ed 7ffff7bd96f0 7ffff7bd96f3
        7ffff7bd96f8 7ffff7bd96fb 7ffff7bd96fe 7ffff7bd9702 7ffff7bd9703 4006a4 4006a7 4006a9""",
}

TRACES = [f"libxdc/{name}" for name in LIBXDC] + [f"lldb/{name}" for name in LLDB]


def open_trace(name: str, **options: Any) -> ptkit.Trace:
    """Open a trace of the corpus, or skip saying what is missing."""
    path = CORPUS / name
    if not path.exists():
        pytest.skip(f"{path} is missing: set PTKIT_CORPUS to the folder of traces")
    with warnings.catch_warnings():
        # Their processors are not recorded: ptkit says so, and applies all errata.
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(str(path), **options)


def need_libipt() -> None:
    """Skip where this build has no reference."""
    from ptkit import _core

    if "libipt" not in _core.engines():
        pytest.skip("this build has no libipt (apt-get install libipt-dev, then build again)")


def fnv(words: Iterable[int]) -> int:
    """FNV-1a over 64-bit words."""
    value = 0xCBF29CE484222325
    for word in words:
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def known_edges(trace: ptkit.Trace) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """From and to of the branches that instructions made, and which of them are conditional.

    The figures count a branch once something was seen at its target; one that went where no code is known (an
    error row says so) is left out.
    """
    branches = trace.branches(columns=["from_ip", "to_ip", "kind", "flags", "offset"])
    assert branches.errors is not None
    kinds = branches["kind"]
    taken = branches["to_known"] & (kinds != BranchKind.ASYNC) & (kinds != BranchKind.TX_ABORT)
    errors = branches.errors.where(code=ErrorCode.NO_CODE)
    last = np.searchsorted(branches["offset"], errors["offset"], side="right") - 1
    taken[last[(last >= 0) & (branches["to_ip"][last] == errors["ip"])]] = False
    edges = np.stack([branches["from_ip"][taken], branches["to_ip"][taken]], axis=1)
    return edges, kinds[taken] == BranchKind.COND
