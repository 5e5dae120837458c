"""What is decoded against what was executed."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from executed import Executed
from numpy.typing import NDArray

import ptkit


@dataclass(frozen=True)
class Decoded:
    """Instructions that a decoder found, in order, and its errors in words."""

    ip: NDArray[np.uint64]
    errors: list[str]

    def __len__(self) -> int:
        """How many instructions."""
        return len(self.ip)


def instructions(stream: bytes, code: dict[int, bytes], engine: str) -> Decoded:
    """Those of a raw stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # the processor is not known
        trace = ptkit.open(stream, images=[code], engine=engine)
    table = trace.instructions(columns=["ip"])
    return Decoded(table["ip"], [str(table.errors)] if len(table.errors) else [])


def assert_same(found: Decoded, expected: Executed) -> None:
    """Every instruction, in order, and no error."""
    assert not found.errors, "\n".join(found.errors[:10])
    both = min(len(found), len(expected.ip))
    differing = np.flatnonzero(found.ip[:both] != expected.ip[:both])
    first = int(differing[0]) if len(differing) else both
    around = slice(max(0, first - 3), first + 4)
    decoded, executed = ([hex(ip) for ip in ips[around].tolist()] for ips in (found.ip, expected.ip))
    message = f"instruction {first} of {len(expected.ip)}: decoded {decoded}, executed {executed}"
    assert first == len(found) == len(expected.ip), message
