"""A kernel driver, traced by its name, as a log: packets with their offsets, and the branches of each one.

The driver is ptkit.sys as it is shipped. A thread of the model executes its code, with random outcomes of its
branches; what it imports is code that is not traced. The log that ptkit prints has to be, line by line, what
follows from the thread's way: the packets are read here from the bytes, and are given the branches in turn.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import image_blocks as blocks
import numpy as np
import pytest
from image_blocks import Block, Image, read_image
from mingw import strip_image
from walker import Walker

import ptkit

BASE = 0xFFFFF806_85380000
FILE = "ptkit.sys"
BLOCKS = 20000
NO_RETC = 1 << 10  # PTKIT_TRACE_NO_RETC
TRACED = 1 << 63
DIRECT = (blocks.JUMP, blocks.CALL)
KINDS = {
    blocks.JUMP: "jump",
    blocks.CALL: "call",
    blocks.RETURN: "return",
    blocks.JUMP_ANY: "jump_indirect",
    blocks.CALL_ANY: "call_indirect",
    blocks.JUMP_OUTSIDE: "jump_indirect",
    blocks.CALL_OUTSIDE: "call_indirect",
}
IP_PACKETS = {0x0D: "tip", 0x11: "tip.pge", 0x01: "tip.pgd", 0x1D: "fup"}
IP_BYTES = {0: 0, 1: 2, 2: 4, 3: 6}

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Traced:
    """A stream and what was executed for it."""

    image: Image
    stream: Path
    file: Path
    ips: list[int]  # of blocks, in order
    traced: list[bool]


@dataclass
class Packet:
    """`text` is its line without the symbol of its IP."""

    offset: int
    text: str
    ip: int | None = None
    bits: str = ""
    cut: bool = False


def signed(ip: int) -> int:
    """Bits 47:0, with the last one above them."""
    return ip | 0xFFFF << 48 if ip >> 47 & 1 else ip


def packets_of(stream: bytes) -> Iterator[Packet]:
    """The kinds that the model writes, as the manual describes them."""
    at, last_ip = 0, 0
    while at < len(stream):
        first, rest = stream[at], stream[at:]
        if rest.startswith(b"\x02\x82"):
            yield Packet(at, "psb")
            at, last_ip = at + 16, 0
        elif rest.startswith(b"\x02\x23"):
            yield Packet(at, "psbend")
            at += 2
        elif rest.startswith(b"\x02\x43"):
            cr3 = int.from_bytes(rest[2:8], "little") >> 1 << 5
            yield Packet(at, f"{'pip':<11}{cr3:<25x}cr3 {cr3:016x}")
            at += 8
        elif first == 0x99:
            yield Packet(at, "mode.exec  cs.l")
            at += 2
        elif first & 0x1F in IP_PACKETS:
            form = first >> 5
            count = IP_BYTES[form]
            digits = rest[1 : 1 + count][::-1].hex()
            last_ip = signed(last_ip >> 8 * count << 8 * count | int(digits or "0", 16))
            shown = f"{last_ip:016x}" if count == 6 else digits.rjust(16, "?")
            text = f"{IP_PACKETS[first & 0x1F]:<11}{form}: {shown}"
            yield Packet(at, text, last_ip if count else None, cut=count < 6)
            at += 1 + count
        else:
            assert first & 1 == 0, f"{first:#x} at {at:#x}"
            bits = f"{first >> 1:b}"[1:].translate(str.maketrans("01", ".!"))
            yield Packet(at, f"{'tnt.8':<11}{bits}", bits=bits)
            at += 1


class Walk:
    """Lines of the log of what a thread executed."""

    def __init__(self, traced: Traced) -> None:
        self._packets = list(packets_of(traced.stream.read_bytes()))
        # The log ends with the last block, and has no target of it.
        last = next(packet.ip for packet in reversed(self._packets) if packet.ip is not None)
        self._image = traced.image
        self._ips = [*traced.ips, last]
        self._traced = [*traced.traced, False]
        self._next = 0  # of the block that is executed next

    def lines(self) -> Iterator[str]:
        """Each packet, and the branches that it tells of."""
        in_psb, interrupted = False, None
        for packet in self._packets:
            address = "" if packet.ip is None else self._with_ip(packet)
            yield f"{packet.offset:016x}  {packet.text:<35}{address}".rstrip()
            kind = packet.text.split()[0]
            if kind == "tip.pge":
                self._enter(packet)
            for bit in packet.bits:
                yield from self._branches(bit == "!", None)
            if kind == "fup":
                interrupted = None if in_psb else packet.ip
            elif kind in ("tip", "tip.pgd") and interrupted is None:
                yield from self._branches(True, packet.ip)
            elif kind == "tip.pgd":
                yield from self._until(interrupted)
                interrupted = None
            in_psb = kind == "psb" or (in_psb and kind != "psbend")
        assert not any(self._traced[self._next :])

    def _name(self, ip: int) -> str:
        image = self._image
        return image.name(FILE, ip) if image.base <= ip < image.base + image.size else ""

    def _with_ip(self, packet: Packet) -> str:
        assert packet.ip is not None
        whole = f"{packet.ip:016x} " if packet.cut else ""
        return f"  {whole}{self._name(packet.ip)}"

    def _enter(self, packet: Packet) -> None:
        """Code outside the image was executed meanwhile, and was not traced."""
        while not self._traced[self._next]:
            self._next += 1
        assert self._ips[self._next] == packet.ip

    def _branches(self, taken: bool, ip: int | None) -> Iterator[str]:
        """Up to the branch that a TNT bit or an IP tells of."""
        while True:
            assert self._traced[self._next]
            block = self._block()
            following = self._ips[self._next + 1]
            self._next += 1
            if block.end == blocks.FALLS:
                assert following == BASE + block.after
                continue
            yield self._branch(block, following)
            if block.end not in DIRECT:
                break
        if block.end == blocks.CONDITIONAL:
            assert ip is None
            assert following == BASE + (block.target if taken and block.target is not None else block.after)
        else:
            assert taken
            assert ip in (None, following)

    def _until(self, ip: int) -> Iterator[str]:
        """Up to an address where tracing was interrupted."""
        while self._ips[self._next] != ip:
            block = self._block()
            self._next += 1
            if block.end in DIRECT:
                yield self._branch(block, self._ips[self._next])
            else:
                assert block.end == blocks.FALLS
        yield f"{'':18}{'async':<13} {ip:016x} {self._name(ip)} > {'?' * 16}"

    def _block(self) -> Block:
        return self._image.blocks[self._ips[self._next] - BASE]

    def _branch(self, block: Block, to: int) -> str:
        taken = to != BASE + block.after
        kind = KINDS.get(block.end, "!" if taken else ".")
        origin = BASE + block.end_ip
        name = self._name(to) or block.imported
        line = f"{'':18}{kind:<13} {origin:016x} {self._name(origin)} > {to:016x} {name}"
        return line.rstrip()


@pytest.fixture(scope="session")
def image(shipped_driver: Path) -> Image:
    return read_image(shipped_driver, BASE)


@pytest.fixture(scope="module", params=[0, NO_RETC], ids=["compressed_returns", "whole_returns"])
def traced(
    request: pytest.FixtureRequest, walker: Walker, image: Image, shipped_driver: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Traced:  # fmt: skip
    folder = tmp_path_factory.mktemp("log")
    image.save(walker.folder / "image.blocks")
    walker.walk("image", FILE, str(request.param), str(BLOCKS))
    entries = np.fromfile(walker.folder / "image.0.log", "<u8")
    ips = ((entries << np.uint64(3)).astype(np.int64) >> 3).astype(np.uint64).tolist()
    stream = folder / "image.pt"
    stream.write_bytes((walker.folder / "image.0.pt").read_bytes())
    file = strip_image(shipped_driver, folder / FILE)
    return Traced(image, stream, file, ips, ((entries & np.uint64(TRACED)) != 0).tolist())


def test_log_is_what_was_executed(traced: Traced) -> None:
    command = [
        sys.executable, "-m", "ptkit", "packets", str(traced.stream), "--branches", "--no-header",
        "--processor", "6/158/10", "--image", f"{traced.file}@{BASE:#x}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    expected = list(Walk(traced).lines())
    assert len(expected) > BLOCKS
    for number, (line, wanted) in enumerate(zip(done.stdout.splitlines(), expected, strict=True)):
        assert line == wanted, number


def test_branches_have_offsets_in_the_image(traced: Traced) -> None:
    """image+0x9310, as other tools take it."""
    trace = ptkit.open(traced.stream, images=[(str(traced.file), BASE)], cpu="6/158/10")
    table = trace.branches()
    inside = (table["to_ip"] >= BASE) & (table["to_ip"] < BASE + traced.image.size)
    assert inside.sum() > BLOCKS // 2
    assert (~inside).sum() > 100
    assert set(np.asarray(table["to_module"])[inside].tolist()) == {FILE}
    assert set(np.asarray(table["from_module"]).tolist()) == {FILE}
    np.testing.assert_array_equal(table["to_module_offset"][inside], table["to_ip"][inside] - BASE)
    np.testing.assert_array_equal(table["from_module_offset"], table["from_ip"] - BASE)
