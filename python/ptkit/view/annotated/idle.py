"""Code of functions that did not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.view.annotated.extents import ChosenFunction, Extent
from ptkit.view.code import CodeTrace

__all__ = ["MOST_SIZE", "Unknown", "not_run"]

#: Bytes of an instruction.
MOST_SIZE = 15
_MOST_SWEPT = 1 << 20  # bytes of an extent in which code that did not run is looked for


@dataclass(frozen=True)
class Unknown:
    """Bytes that did not run: address and address space, RVA, how many."""

    ip: int
    space: int
    at: int
    size: int


def not_run(
    trace: CodeTrace,
    function: ChosenFunction,
    ran: tuple[NDArray[np.uint64], NDArray[np.int64]],
    bits: int,
    spaces: set[int],
    ranges: Sequence[tuple[int, int, int | None]],
) -> tuple[list[tuple[int, int, int, int]], list[Unknown]]:
    """Instructions that did not run: address, space, RVA and size of each; and bytes that are not known.

    They are read one after the other from the begin, and behind each instruction that ran.
    """
    sizes = dict(zip(ran[0].tolist(), ran[1].tolist(), strict=True))
    found: dict[int, tuple[int, int, int, int]] = {}
    unknown: list[Unknown] = []
    seen: set[int] = set()
    for extent in sorted(function.extents, key=lambda one: one.space not in spaces):
        if extent.at in seen:
            continue  # it is mapped in several places
        seen.add(extent.at)
        executed = sorted(at for at in sizes if extent.at <= at <= extent.at + extent.last - extent.first)
        space = extent.space if extent.space is not None else min(spaces, default=0)
        begin, end = extent.at, min(extent.last - extent.first + 1, _MOST_SWEPT) + extent.at
        for at in [*executed, end]:
            if begin < at:
                some, rest = _sweep(trace, extent, (begin, at), space, bits)
                found |= {one[2]: one for one in some if _is_selected(one[0], space, ranges)}
                if rest is not None and _is_selected(rest.ip, space, ranges):
                    unknown.append(rest)
            begin = max(begin, at + max(sizes.get(at, 0), 1))
    return [one for at, one in found.items() if at not in sizes], unknown


def _sweep(
    trace: CodeTrace, extent: Extent, bounds: tuple[int, int], space: int, bits: int
) -> tuple[list[tuple[int, int, int, int]], Unknown | None]:
    """Read the instructions between two RVAs, as far as they are known."""
    at, end = bounds
    ip = extent.first + at - extent.at
    code = trace.opened.session.read_code(ip, end - at, space)
    found = []
    offset = 0
    while offset < len(code):
        size = _core.instruction_size(code[offset : offset + MOST_SIZE], bits)
        if size == 0 or offset + size > end - at:
            break
        found.append((ip + offset, space, at + offset, size))
        offset += size
    left = end - at - offset
    return found, Unknown(ip + offset, space, at + offset, left) if left else None


def _is_selected(ip: int, space: int, ranges: Sequence[tuple[int, int, int | None]]) -> bool:
    return not ranges or any(
        low <= ip <= last and (of_space is None or of_space == space) for low, last, of_space in ranges
    )
