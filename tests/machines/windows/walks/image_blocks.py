"""The basic blocks of a driver's image, as objdump disassembles it, for a thread of the model to execute."""

from __future__ import annotations

import re
import struct
import subprocess
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from mingw import OBJDUMP

# enum block_end of control.h
FALLS, CONDITIONAL, JUMP, CALL, RETURN, JUMP_ANY, CALL_ANY, JUMP_OUTSIDE, CALL_OUTSIDE = range(9)
_BRANCHES = {"call": (CALL, CALL_ANY, CALL_OUTSIDE), "jmp": (JUMP, JUMP_ANY, JUMP_OUTSIDE)}
TRAP = -1
NONE = 0xFFFFFFFF
PREFIXES = {"rex.W", "notrack", "bnd", "data16", "cs", "repz"}
TRAPS = ("int", "ud2", "hlt", "sys", "iret", "loop", "ljmp", "lcall", "lret", "xbegin")


@dataclass(frozen=True)
class Instruction:
    """Addresses are those that the file was linked for."""

    ip: int
    next: int
    end: int
    target: int | None
    imported: str  # the function that it calls or jumps to


@dataclass
class Block:
    """Instructions that run one after the other; `end_ip` is the last one."""

    ip: int
    end_ip: int
    end: int
    target: int | None
    after: int
    instructions: int
    imported: str


@dataclass
class Image:
    """A driver at an address of the kernel."""

    base: int
    size: int
    functions: list[tuple[int, int]]  # RVAs of .pdata: begin, end
    blocks: dict[int, Block] = field(default_factory=dict)  # by their RVA

    def save(self, path: Path) -> None:
        """As walk.c reads it: base, size, and struct model_block for each block."""
        number = {rva: index for index, rva in enumerate(self.blocks)}
        entries = {begin for begin, _ in self.functions}
        rows = [struct.pack("<QQ", self.base, self.size)]
        for block in self.blocks.values():
            targets = [number.get(rva, NONE) for rva in (block.target, block.after)]
            row = (block.end, *targets, block.instructions, block.ip in entries, 0)
            rows.append(struct.pack("<QQIIIIII", self.base + block.ip, self.base + block.end_ip, *row))
        path.write_bytes(b"".join(rows))

    def name(self, file: str, ip: int) -> str:
        """As a file without symbols has it: the function of .pdata, or the file, and the distance."""
        rva = ip - self.base
        index = bisect_right(self.functions, (rva, NONE)) - 1
        begin, end = self.functions[index] if index >= 0 else (0, 0)
        if begin <= rva < end:
            return f"sub_{begin:X}" + (f"+{rva - begin:#x}" if rva > begin else "")
        return f"[{file}]+{rva:#x}"


def read_image(path: Path, base: int) -> Image:
    """Of a PE file that is not stripped: then objdump begins at each function."""
    headers = _objdump("-p", path)
    linked = int(_found(r"^ImageBase\s+([0-9a-f]+)", headers), 16)
    size = int(_found(r"^SizeOfImage\s+([0-9a-f]+)", headers), 16)
    rows = re.findall(r"^ [0-9a-f]{16}:\t([0-9a-f]{16}) ([0-9a-f]{16}) [0-9a-f]{16}$", headers, re.MULTILINE)
    functions = sorted((int(begin, 16) - linked, int(end, 16) - linked) for begin, end in rows)
    image = Image(base, size, functions)
    image.blocks = _blocks(_instructions(path, linked), [begin for begin, _ in functions])
    return image


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match, pattern
    return match[1]


def _objdump(option: str, path: Path) -> str:
    command = [str(OBJDUMP), option, "--no-show-raw-insn", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _instructions(path: Path, linked: int) -> dict[int, Instruction]:
    lines = re.findall(r"^\s+([0-9a-f]+):\t(.+)$", _objdump("-d", path), re.MULTILINE)
    addresses = [int(address, 16) - linked for address, _ in lines]
    found = {}
    for ip, following, (_, text) in zip(addresses, addresses[1:], lines, strict=False):
        found[ip] = _instruction(ip, following, text, linked)
    return found


def _instruction(ip: int, following: int, text: str, linked: int) -> Instruction:
    words = [word for word in text.split() if word not in PREFIXES]
    name, operand = [*words, "", ""][:2]
    end, target = FALLS, None
    if name.startswith(TRAPS):
        end = TRAP
    if name == "ret":
        end = RETURN
    elif name == "call" or name.startswith("j"):
        direct, indirect, outside = _BRANCHES.get(name, (CONDITIONAL,) * 3)
        end = direct if not operand.startswith("*") else outside if "(%rip)" in operand else indirect
        target = int(operand, 16) - linked if end == direct else None
    imported = re.search(r"<__imp_(\w+)>", text)
    return Instruction(ip, following, end, target, imported[1] if imported else "")


def _reached(instructions: dict[int, Instruction], entries: list[int]) -> set[int]:
    """All that a path from an entry leads to."""
    reached: set[int] = set()
    waiting = list(entries)
    while waiting:
        ip = waiting.pop()
        if ip in reached:
            continue
        reached.add(ip)
        instruction = instructions[ip]
        assert instruction.end != TRAP, f"the model does not execute what is at {ip:#x}"
        if instruction.target is not None:
            waiting.append(instruction.target)
        if instruction.end not in (JUMP, RETURN, JUMP_ANY, JUMP_OUTSIDE):
            waiting.append(instruction.next)
    return reached


def _blocks(instructions: dict[int, Instruction], entries: list[int]) -> dict[int, Block]:
    reached = _reached(instructions, entries)
    leaders = set(entries)
    for ip in reached:
        instruction = instructions[ip]
        if instruction.target is not None:
            leaders.add(instruction.target)
        if instruction.end != FALLS and instruction.next in reached:
            leaders.add(instruction.next)
    return {ip: _block(instructions, leaders, ip) for ip in sorted(leaders)}


def _block(instructions: dict[int, Instruction], leaders: set[int], ip: int) -> Block:
    last, count = instructions[ip], 1
    while last.end == FALLS and last.next not in leaders:
        last, count = instructions[last.next], count + 1
    return Block(ip, last.ip, last.end, last.target, last.next, count, last.imported)
