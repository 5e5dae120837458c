"""The model's log of its threads' execution, and the code of its programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

# control.h
USER, KERNEL, REAL, VIRTUAL_8086 = range(4)
TRACED, STORED, BRANCH = (np.uint64(1 << bit) for bit in (63, 62, 61))
BLOCK_BYTES = 32  # program.h
Array: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class Stay:
    """Execution of a thread until another one runs: entries of the log, one for each block."""

    thread: int
    client: int  # the thread of walk.c, as the driver sees it; 0: not one alone
    entries: Array


def addresses(entries: Array) -> Array:
    """Of the blocks, without flags."""
    return ((entries << np.uint64(3)).astype(np.int64) >> 3).astype(np.uint64)


def stays(path: Path) -> Iterator[Stay]:
    """As walk.c writes them: numbers of threads, count, entries."""
    words = np.fromfile(path, "<u8")
    at = 0
    while at < len(words):
        thread, client, count = (int(word) for word in words[at : at + 3])
        yield Stay(thread, client, words[at + 3 : at + 3 + count])
        at += 3 + count


@dataclass(frozen=True)
class Program:
    """Code of random blocks."""

    base: int
    code: bytes

    @property
    def last(self) -> int:
        """The address of its last byte."""
        return self.base + len(self.code) - 1

    def part(self, first: int, last: int) -> tuple[int, int]:
        """A range of about these blocks that no code runs straight into or out of."""
        begin = next(block for block in range(first, last) if self._leads_away(block - 1))
        end = next(block for block in range(last, first, -1) if self._leads_away(block - 1))
        return self.base + begin * BLOCK_BYTES, self.base + end * BLOCK_BYTES - 1

    def _leads_away(self, block: int) -> bool:
        """Whether a block ends with a jump or a return: near, or through a register."""
        code = self.code[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES]
        if b"\x0f\x85" in (code[26:28], code[28:30]):  # JNZ of 64-bit and 16-bit code
            return False
        return code[31] == 0xC3 or code[30:] == b"\xff\xe0" or 0xE9 in (code[27], code[29])


def programs(folder: Path) -> list[Program]:
    """By USER, KERNEL, REAL and VIRTUAL_8086."""
    contents = [(folder / f"program.{number}.code").read_bytes() for number in range(4)]
    return [Program(int.from_bytes(content[:8], "little"), content[16:]) for content in contents]
