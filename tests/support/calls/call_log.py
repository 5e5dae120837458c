"""The log of a thread's transfers of control (src/capture/linux/encode/execution_log.h)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from call_code import Code, Mark, Words
from numpy.typing import NDArray

# Kinds of rows: insn::InsnClass, and TransferLog's own.
COND_JUMP, JUMP, JUMP_INDIRECT, CALL, CALL_INDIRECT, RETURN, FAR_CALL = range(1, 8)
BEGIN, INTERRUPT, SIGNAL, FINISH = range(32, 36)

_APART = 1 << 20  # bytes between two stacks, at least; no stack has such a hole
_ROWS = 1 << 20


@dataclass
class Log:
    """The rows of a thread that can begin or end a frame."""

    kind: NDArray[np.uint8]
    from_ip: Words
    next_ip: Words  # behind the instruction that transferred control
    to_ip: Words
    sp: Words
    instructions: Words
    function: Words  # begin of the function that the row leads to
    begins: NDArray[np.bool_]  # leads to the begin of a function, or into a stub
    leaves: NDArray[np.bool_]  # leads to another function
    mark: NDArray[np.uint8]
    stack: NDArray[np.uint32]  # number of the stack that RSP is in


def _stacks_of(sps: Words, apart: int) -> Words:
    """Where stacks begin: pages that RSP was in, and that are far from the page below."""
    pages = np.unique(sps[sps != 0] >> np.uint64(12))
    far = np.diff(pages) > apart >> 12
    return np.concatenate([pages[:1], pages[1:][far]]) << np.uint64(12)


def read_log(path: Path, code: Code, *, apart: int = _APART) -> Log:
    """Read a thread's log. Jumps within functions are left out."""
    words = np.memmap(path, dtype=np.uint64, mode="r").reshape(-1, 4)
    begins_of_stacks = _stacks_of(words[:, 2], apart)
    parts: list[list[NDArray[Any]]] = []
    for first in range(0, len(words), _ROWS):
        rows = np.array(words[first : first + _ROWS])
        kind = (rows[:, 0] >> np.uint64(56)).astype(np.uint8)
        from_ip = rows[:, 0] & np.uint64((1 << 48) - 1)
        to_ip = rows[:, 1].copy()
        direct = (kind == COND_JUMP) | (kind == JUMP)
        function = code.functions(to_ip)
        mark = code.marks(to_ip)
        begins = code.begins(to_ip) | (mark == Mark.STUB) | (mark == Mark.LAZY)
        leaves = (function != code.functions(from_ip)) | (mark == Mark.LAZY)
        stack = np.searchsorted(begins_of_stacks, rows[:, 2], side="right").astype(np.uint32)
        moved = np.diff(stack, prepend=parts[-1][-1][-1:] if parts else stack[:1]) != 0
        keep = ~direct | (begins & leaves) | moved
        size = (rows[:, 0] >> np.uint64(48)) & np.uint64(0xFF)
        columns = [kind, from_ip, from_ip + size, to_ip, rows[:, 2], rows[:, 3]]
        parts.append([one[keep] for one in (*columns, function, begins, leaves, mark, stack)])
    return Log(*(np.concatenate(column) for column in zip(*parts, strict=True)))
