"""Small programs with a known control flow: machine code, made without compiler and library.

Each program does the same in every run: it reads no time, no input and no address of its stack.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from random import Random

from ptkit.selftest.code import Code, Segment, elf_file

__all__ = ["Program", "branches", "deep_returns", "filtered", "long_targets", "spinning"]

_CODE = 0x400000
_FAR_CODE = 0x10_0000_0000  # a TIP between both has six bytes of IP
_DATA = 0x600000
_DATA_BYTES = 1 << 24
_TABLE = 0x700000
_NOT_ZERO, _ZERO = 5, 4
_MOST_COST = 250  # instructions of one function with what it calls

# rbx holds a number that each step of a generator changes (multiply and add modulo 2**32), r12 an address in
# the data; functions keep nothing else.
_STEP = b"\x69\xdb" + struct.pack("<I", 1103515245) + b"\x81\xc3" + struct.pack("<I", 12345)
_RET = b"\xc3"
_PUSH_RAX = b"\x50"
_JUMP_RAX, _CALL_RAX = b"\xff\xe0", b"\xff\xd0"
_LEA_RAX = b"\x48\x8d\x05"
_DEC_ECX = b"\xff\xc9"
_EXIT = b"\x31\xff\xb8\xe7\x00\x00\x00\x0f\x05"  # exit_group(0)
_GETPPID = b"\xb8\x6e\x00\x00\x00\x0f\x05"
_TOUCH = b"\x41\x88\x04\x24\x49\x81\xc4" + struct.pack("<I", 4096)  # a byte of each page: page faults
_COPY = (
    b"\xbe" + struct.pack("<I", _DATA) + b"\xbf" + struct.pack("<I", _DATA + 64) + b"\xf3\xa4"
)  # REP MOVSB


@dataclass(frozen=True)
class Program:
    """A program.

    Attributes
    ----------
    name : str
    image : bytes
        The ELF file.
    regions : tuple of (int, int)
        First address and the one after the last, of its code.
    labels : dict
        Addresses by name.
    """

    name: str
    image: bytes
    regions: tuple[tuple[int, int], ...]
    labels: dict[str, int]


def _program(name: str, codes: list[Code], table: Code | None = None) -> Program:
    parts = [code.finish() for code in codes]
    begins = [code.here - len(content) for code, (content, _) in zip(codes, parts, strict=True)]
    segments = [
        Segment(begin, content, len(content)) for begin, (content, _) in zip(begins, parts, strict=True)
    ]
    data = b"" if table is None else bytes(_TABLE - _DATA) + table.finish()[0]
    segments.append(Segment(_DATA, data, _DATA_BYTES, writable=True))
    segments.sort(key=lambda segment: segment.address)
    labels = {label: at for _, found in parts for label, at in found.items()}
    regions = tuple((begin, begin + len(part)) for begin, (part, _) in zip(begins, parts, strict=True))
    return Program(name, elf_file(labels["begin"], segments), regions, labels)


def _set_ecx(count: int) -> bytes:
    return b"\xb9" + struct.pack("<I", count)


def _test_ebx(bit: int) -> bytes:
    return b"\xf7\xc3" + struct.pack("<I", 1 << bit)


def _begin(code: Code, seed: int) -> None:
    code.label("begin")
    code.add(b"\xbb", struct.pack("<I", seed & 0xFFFFFFFF), b"\x49\xc7\xc4", struct.pack("<I", _DATA))


class _Functions:
    """Functions of random statements; each calls only functions that were made before it, so all ends."""

    def __init__(self, code: Code, random: Random) -> None:
        self._code = code
        self._random = random
        self._costs: list[int] = []

    @property
    def costs(self) -> list[int]:
        """Instructions that each function executes at most."""
        return self._costs

    def add(self) -> None:
        """Add one more."""
        code, number = self._code, len(self._costs)
        code.label(f"function.{number}")
        cost = 1
        for _ in range(self._random.randrange(2, 7)):
            cost += self._statement(_MOST_COST - cost)
        code.add(_RET)
        self._costs.append(cost)

    def call(self, number: int, *, indirect: bool) -> int:
        """Add a call; return its cost."""
        if indirect:
            self._code.to(_LEA_RAX, f"function.{number}")
            self._code.add(_CALL_RAX)
        else:
            self._code.call(f"function.{number}")
        return self._costs[number] + 2

    def _statement(self, most: int) -> int:
        choice = self._random.choice(
            (self._condition, self._condition, self._loop, self._table, self._odd_return, self._kernel,
             self._strings, self._calls, self._calls, self._calls)
        )  # fmt: skip
        return choice(most)

    def _condition(self, most: int) -> int:
        """Skip some bytes or not, by a bit of the number."""
        code, after = self._code, self._code.fresh("after")
        code.add(_STEP, _test_ebx(self._random.randrange(8, 30)))
        code.jump_if(self._random.choice((_ZERO, _NOT_ZERO)), after)
        code.add(_STEP)
        code.label(after)
        return 6

    def _loop(self, most: int) -> int:
        code, again = self._code, self._code.fresh("again")
        count = self._random.randrange(1, 12)
        code.add(_set_ecx(count))
        code.label(again)
        code.add(_DEC_ECX)
        code.jump_if(_NOT_ZERO, again)
        return 1 + 2 * count

    def _table(self, most: int) -> int:
        """A jump by a table of four targets: JMP [RAX + RCX * 8]."""
        code = self._code
        table, after = code.fresh("table"), code.fresh("after")
        targets = [code.fresh("target") for _ in range(4)]
        code.add(_STEP, b"\x89\xd9\xc1\xe9\x14\x83\xe1\x03")  # ecx = ebx >> 20 & 3
        code.to(_LEA_RAX, table)
        code.add(b"\xff\x24\xc8")
        code.label(table)
        for target in targets:
            code.address_of(target)
        for target in targets:
            code.label(target)
            code.add(b"\x90" * self._random.randrange(3))
            code.jump(after)
        code.label(after)
        return 11

    def _odd_return(self, most: int) -> int:
        """A RET to where no CALL came from, or a CALL that is never returned to."""
        code, after = self._code, self._code.fresh("after")
        if self._random.random() < 0.5:
            code.to(_LEA_RAX, after)
            code.add(_PUSH_RAX, _RET)
            code.label(after)
            return 3
        code.call(after)
        code.label(after)
        code.add(b"\x58")  # pop rax
        return 2

    def _kernel(self, most: int) -> int:
        """A system call, or a page fault."""
        self._code.add(_GETPPID if self._random.random() < 0.5 else _TOUCH)
        return 2

    def _strings(self, most: int) -> int:
        self._code.add(_set_ecx(self._random.randrange(8)), _COPY)
        return 4

    def _calls(self, most: int) -> int:
        able = [number for number, cost in enumerate(self._costs) if cost + 2 <= most]
        if not able:
            return self._condition(most)
        return self.call(self._random.choice(able), indirect=self._random.random() < 0.4)


def branches(seed: int, instructions: int) -> Program:
    """Every kind of near branch, system calls and page faults, in an order that the seed decides."""
    random = Random(seed)
    code = Code(_CODE)
    functions = _Functions(code, random)
    for _ in range(24):
        functions.add()
    _begin(code, seed)
    cost = 0
    while cost < instructions:
        number = random.randrange(len(functions.costs))
        cost += functions.call(number, indirect=random.random() < 0.3)
    code.add(_EXIT)
    return _program("branches", [code])


def deep_returns(rounds: int) -> Program:
    """Calls 80 deep, which is more than return compression remembers (64), and odd returns between them."""
    code = Code(_CODE)
    code.label("deep")
    code.add(_DEC_ECX)
    code.jump_if(_ZERO, "bottom")
    code.call("deep")
    code.label("bottom")
    code.add(_RET)
    code.label("odd")  # returns a byte later than its CALL ends
    code.add(b"\x48\xff\x04\x24", _RET)
    _begin(code, 1)
    code.add(b"\xbd", struct.pack("<I", rounds))
    code.label("round")
    for depth in (80, 3, 64):
        code.add(_set_ecx(depth))
        code.call("deep")
        code.call("odd")
        code.add(b"\x90")  # passed over
    code.add(b"\xff\xcd")  # dec ebp
    code.jump_if(_NOT_ZERO, "round")
    code.add(_EXIT)
    return _program("returns", [code])


def filtered(rounds: int) -> Program:
    """Three functions without a byte between them; `inside` to `behind` is the range of a filter."""
    code = Code(_CODE)
    code.label("before")
    code.add(_STEP, _RET)
    code.label("inside")
    code.add(_STEP, _test_ebx(20))
    code.jump_if(_ZERO, "inner")
    code.call("behind")
    code.label("inner")
    code.call("before")
    code.to(_LEA_RAX, "last")
    code.add(_JUMP_RAX)
    code.add(b"\x90")
    code.label("last")  # the last instruction of the range
    code.add(_RET)
    code.label("behind")
    code.add(_STEP, _RET)
    code.add(_RET)
    _begin(code, 7)
    code.add(b"\xbd", struct.pack("<I", rounds))
    code.label("round")
    for name in ("before", "inside", "behind", "last"):
        code.call(name)
    code.add(b"\xff\xcd")
    code.jump_if(_NOT_ZERO, "round")
    code.add(_EXIT)
    return _program("filtered", [code])


def long_targets(returns: int) -> Program:
    """RET after RET between code that is 64 GiB apart: seven bytes of trace for each instruction."""
    near, far, table = Code(_CODE), Code(_FAR_CODE), Code(_TABLE)
    near.label("near")
    near.add(_RET)
    near.label("begin")
    near.add(b"\xbc", struct.pack("<I", _TABLE), _RET)  # mov esp
    near.label("end")
    near.add(_EXIT)
    far.label("far")
    far.add(_RET)
    labels = near.finish()[1] | far.finish()[1]
    for number in range(returns):
        table.add(struct.pack("<Q", labels["near" if number % 2 else "far"]))
    table.add(struct.pack("<Q", labels["end"]))
    return _program("targets", [near, far], table)


def spinning(rounds: int) -> Program:
    """A loop with a conditional branch by a generator, and a call every 16 turns: for timing packets."""
    code = Code(_CODE)
    code.label("function")
    code.add(_STEP, _RET)
    _begin(code, 3)
    code.add(_set_ecx(rounds))
    code.label("round")
    code.add(_STEP, _test_ebx(17))
    code.jump_if(_ZERO, "skip")
    code.add(_STEP)
    code.label("skip")
    code.add(b"\xf7\xc1", struct.pack("<I", 15))  # test ecx
    code.jump_if(_NOT_ZERO, "next")
    code.call("function")
    code.label("next")
    code.add(_DEC_ECX)
    code.jump_if(_NOT_ZERO, "round")
    code.add(_EXIT)
    return _program("spinning", [code])
