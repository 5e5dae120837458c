"""Where functions begin in a recorded process, by its files: for true call trees (`call_truth`)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path

import numpy as np
from elf_functions import functions_of
from numpy.typing import NDArray

import ptkit

Words = NDArray[np.uint64]


class Mark(IntEnum):
    """The kind of a frame's code, as long as it is no function."""

    NONE = 0
    STUB = 1
    THUNK = 2
    LAZY = 3  # the first entry of a PLT
    RESOLVER = 4


class Code:
    """Where functions begin in a process."""

    def __init__(self, modules: Iterable[tuple[Path, int, int, int]]) -> None:
        """Each module is a file, the address and size of its mapping, and the offset in the file."""
        starts: dict[int, bool] = {}  # False: no function, but the end of one
        self._names: dict[int, str] = {}
        self._stubs: list[tuple[int, int]] = []
        self._lazy: list[int] = []
        self._modules: list[tuple[range, int, str]] = []
        for path, address, size, offset in modules:
            functions = functions_of(path)
            bias = functions.bias(address, offset)
            self._modules.append((range(address, address + size), bias, path.name))
            own = functions.starts.astype(np.int64) + bias
            starts.setdefault(address + size, False)
            starts |= dict.fromkeys((functions.ends.astype(np.int64) + bias).tolist(), False)
            starts |= dict.fromkeys(own[(own >= address) & (own < address + size)].tolist(), True)
            self._names |= {start + bias: name for start, name in functions.names.items()}
            self._stubs += [(first + bias, last + bias) for first, last in functions.stubs]
            self._lazy += [first + bias for first in functions.lazy]
        for first, last in self._stubs:
            starts[first] = True
            starts.setdefault(last, False)
        # A return thunk is the RET of the function that jumps to it.
        self._thunks = [at for at, name in self._names.items() if name.startswith("__x86_indirect_thunk")]
        self._returns = [at for at, name in self._names.items() if name == "__x86_return_thunk"]
        self._starts = np.array(sorted(starts), dtype=np.uint64)
        self._real = np.array([starts[one] for one in sorted(starts)])

    def functions(self, ips: Words) -> Words:
        """Begin of the function that each address is in; 0 where none is known."""
        index = np.searchsorted(self._starts, ips, side="right")
        found = np.concatenate([np.zeros(1, np.uint64), np.where(self._real, self._starts, 0)])
        return found[index]

    def marks(self, ips: Words) -> NDArray[np.uint8]:
        """Whether each address is in a stub, or begins a thunk."""
        marks = np.isin(ips, np.array(self._thunks, np.uint64)).astype(np.uint8) * np.uint8(Mark.THUNK)
        for first, last in self._stubs:
            marks[(ips >= first) & (ips < last)] = Mark.STUB
        marks[np.isin(ips, np.array(self._lazy, np.uint64))] = Mark.LAZY
        return marks

    def begins(self, ips: Words) -> NDArray[np.bool_]:
        """Whether a function begins at each address."""
        starts: NDArray[np.bool_] = (self.functions(ips) == ips) & (ips != 0)
        return starts & ~np.isin(ips, np.array(self._returns, np.uint64))

    def name(self, ip: int) -> str:
        """For people: `main+0x10`, `libc.so.6!0x26110+0x10`."""
        start = int(self.functions(np.array([ip], np.uint64))[0]) or ip
        offset = f"+{ip - start:#x}" if ip != start else ""
        if start in self._names:
            return self._names[start] + offset
        for addresses, bias, name in self._modules:
            if start in addresses:
                return f"{name}!{start - bias:#x}{offset}"
        return f"{ip:#x}"


def code_of(trace: ptkit.Trace, space: int) -> Code:
    """The code of an address space, by the files that the recording says are mapped."""
    files = trace.info.files
    rows = trace.mappings()
    found: dict[tuple[str, int], tuple[Path, int, int, int]] = {}
    for row in np.flatnonzero(np.isin(rows["space"], [0, space]) & (rows["file"] >= 0)).tolist():
        path = Path(files[int(rows["file"][row])][0])
        module = (path, *(int(rows[name][row]) for name in ("address", "size", "file_offset")))
        if path.is_file():
            found[str(path), module[1]] = module
    return Code(found.values())
