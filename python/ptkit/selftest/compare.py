"""Decoded instructions against those that single stepping has seen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptkit.selftest.outcome import CheckFailed
from ptkit.support.text import counted

__all__ = ["Rows", "expect_all", "expect_parts", "expect_tail"]

Addresses = NDArray[np.uint64]
_AROUND = 2
_CUT = "TRUNCATED_PACKET"


@dataclass(frozen=True)
class Rows:
    """Decoded instructions of a program.

    Attributes
    ----------
    ip : array of uint64
    cuts : tuple of int
        Before which of them the control flow is not known: numbers of rows.
    errors : tuple of str
        Errors of the decoder.
    overflows : int
        How many of the cuts are OVF packets: the trace unit's own buffer was full.
    """

    ip: Addresses
    cuts: tuple[int, ...] = ()
    errors: tuple[str, ...] = ()
    overflows: int = 0


def expect_all(rows: Rows, executed: Addresses) -> str:
    """Require that every executed instruction is there, in order, without an error.

    Where an OVF packet says so, instructions may be missing.

    Raises
    ------
    CheckFailed
        At the first difference.
    """
    if rows.overflows:
        return f"{expect_parts(rows, executed)} ({counted(rows.overflows, 'OVF packet')})"
    at = _first_difference(rows.ip, executed)
    if at is not None:
        raise CheckFailed(
            f"instruction {at} of {len(executed)}: decoded {_near(rows.ip, at)}, executed"
            f" {_near(executed, at)}{_first_error(rows)}"
        )
    _expect_no_error(rows)
    return counted(len(executed), "instruction")


def expect_tail(rows: Rows, executed: Addresses, least: int) -> str:
    """Require the last executed instructions, at least so many.

    Raises
    ------
    CheckFailed
        If others are there, or too few.
    """
    if len(rows.ip) < least:
        raise CheckFailed(
            f"{counted(len(rows.ip), 'instruction')} decoded, expected at least the last {least}"
            f" of {len(executed)}{_first_error(rows)}"
        )
    if rows.overflows:
        return expect_all(replace(rows, cuts=(0, *rows.cuts)), executed)
    last = executed[max(0, len(executed) - len(rows.ip)) :]
    expect_all(rows, last)
    return f"the last {len(rows.ip)} of {counted(len(executed), 'instruction')}"


def expect_parts(rows: Rows, executed: Addresses) -> str:
    """Require that what is between two cuts is a part of what was executed, all of them in order.

    A full buffer may cut a packet: that is no error here.

    Raises
    ------
    CheckFailed
        If a part is none, or instructions are missing without a cut.
    """
    _expect_no_error(
        replace(rows, errors=tuple(error for error in rows.errors if not error.startswith(_CUT)))
    )
    truth = executed.tobytes()
    ends = sorted({*rows.cuts, len(rows.ip)} - {0})
    begin = position = 0
    for end in ends:
        part = rows.ip[begin:end].tobytes()
        found = _find(truth, part, position)
        if found < 0:
            raise CheckFailed(
                f"instructions {begin} to {end} of those decoded were not executed in this order:"
                f" {_near(rows.ip, begin)}"
            )
        if begin == 0 and 0 not in rows.cuts and found > 0:
            raise CheckFailed(f"the first {found // 8} instructions are missing, and no loss is stated")
        begin, position = end, found + len(part)
    if len(rows.ip) not in rows.cuts and position != len(truth):
        raise CheckFailed(
            f"the last {(len(truth) - position) // 8} instructions are missing, and no loss is stated"
        )
    share = len(rows.ip) / max(1, len(executed))
    return (
        f"{share:.0%} of {counted(len(executed), 'instruction')}, {counted(len(rows.cuts), 'loss', 'losses')}"
    )


def _find(truth: bytes, part: bytes, position: int) -> int:
    found = truth.find(part, position)
    while found > 0 and found % 8:
        found = truth.find(part, found + 1)
    return found


def _first_difference(found: Addresses, expected: Addresses) -> int | None:
    both = min(len(found), len(expected))
    differing = np.flatnonzero(found[:both] != expected[:both])
    if len(differing):
        return int(differing[0])
    return None if len(found) == len(expected) else both


def _expect_no_error(rows: Rows) -> None:
    if rows.errors:
        raise CheckFailed(f"{counted(len(rows.errors), 'decoding error')}: {rows.errors[0]}")


def _first_error(rows: Rows) -> str:
    return f"; first decoding error: {rows.errors[0]}" if rows.errors else ""


def _near(ips: Addresses, at: int) -> str:
    near = [hex(ip) for ip in ips[max(0, at - _AROUND) : at + _AROUND + 1].tolist()]
    return " ".join(near) or "nothing"
