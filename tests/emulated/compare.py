"""What is decoded against what was executed."""

from __future__ import annotations

import warnings

import numpy as np
from executed import Executed

import ptkit


def instructions(stream: bytes, code: dict[int, bytes], engine: str) -> ptkit.Table:
    """The table of a raw stream."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)  # the processor is not known
        trace = ptkit.open(stream, images=[code], engine=engine)
    return trace.instructions(columns=["ip"])


def assert_same(found: ptkit.Table, expected: Executed) -> None:
    """Every instruction, in order, and no error."""
    assert len(found.errors) == 0, str(found.errors)
    both = min(len(found), len(expected.ip))
    differing = np.flatnonzero(found["ip"][:both] != expected.ip[:both])
    first = int(differing[0]) if len(differing) else both
    around = slice(max(0, first - 3), first + 4)
    decoded, executed = ([hex(ip) for ip in ips[around].tolist()] for ips in (found["ip"], expected.ip))
    message = f"instruction {first} of {len(expected.ip)}: decoded {decoded}, executed {executed}"
    assert first == len(found) == len(expected.ip), message
