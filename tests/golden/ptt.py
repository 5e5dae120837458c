"""Compiles annotated assembly (.ptt files, as with libipt's pttc) into a directory of golden cases.

A .ptt file is an assembler source. Its comments hold packets and what tools must print for them::

    ; opt:ptxed --event:ip         options for a tool
    ; cpu 6/92                     run once per model
    ; @pt p0: psb()                a packet, with a label for its offset
    ; @pt fup(3: %l0)              an IP, taken from an assembler label
    ; @pt .exp(ptdump)             from here on: expected lines, after the semicolon, up to a #
    ;%0p0 psb                      %l: in hex, %0l: with 16 digits, %?l.2: the low 2 bytes, the rest as ?

Usage: ptt.py SOURCE_DIR OUTPUT_DIR. Needs yasm or nasm (or what PTKIT_ASSEMBLER names) and the ptkit module.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = ("test", "cpu", "tool", "decoder", "effective_decoder", "options", "bin_load_address", "expected")
IP_SIZES = {0: 0, 1: 2, 2: 4, 3: 6, 4: 6, 6: 8}
KEYWORDS = {"ip": 2, "nr": 4, "hw": 8, "mult": 16}  # as bits of Packet::Flag
ICNT = 32


class PttError(Exception):
    """A source that cannot be compiled. The message begins with file and line."""


@dataclass
class Packet:
    """One packet in the columns of `ptkit.packets`."""

    kind: str
    payload: int = 0
    payload2: int = 0
    flags: int = 0


def find_assembler() -> str | None:
    """The assembler to use, yasm before nasm: libipt's own cases are made with yasm."""
    named = os.environ.get("PTKIT_ASSEMBLER")
    return shutil.which(named) if named else shutil.which("yasm") or shutil.which("nasm")


def number(text: str) -> int:
    """An integer as C writes it."""
    text = text.strip()
    return int(text, 8) if re.fullmatch(r"0[0-7]+", text) else int(text, 0)


def split_arguments(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[:,]", text)] if text.strip() else []


def flags_of(words: list[str]) -> int:
    bits = 0
    for word in words:
        bits |= KEYWORDS[word]
    return bits


def c_state(text: str) -> int:
    """c<state>[.<sub>] as state << 4 | sub, each one less than its number."""
    match = re.fullmatch(r"c(\d+)(?:\.(\d+))?", text)
    if not match:
        raise ValueError(f"{text!r} is no C-state")
    return (int(match.group(1)) - 1 & 15) << 4 | (int(match.group(2) or 0) - 1 & 15)


def read_tnt(kind: str) -> Callable[[str], Packet]:
    def read(text: str) -> Packet:
        letters = re.sub(r"[\s.]", "", text)
        if re.sub("[tn]", "", letters):
            raise ValueError(f"{text!r} holds more than t, n, blanks and dots")
        bits = sum(1 << bit for bit, letter in enumerate(letters) if letter == "t")
        return Packet(kind, bits, len(letters))

    return read


def read_plain(kind: str, mask: int = -1) -> Callable[[str], Packet]:
    def read(text: str) -> Packet:
        values = [number(part) for part in split_arguments(text)] + [0, 0]
        return Packet(kind, values[0] & mask if mask != -1 else values[0], values[1])

    return read


def read_flags(kind: str) -> Callable[[str], Packet]:
    return lambda text: Packet(kind, flags=flags_of(split_arguments(text)))


def read_pip(text: str) -> Packet:
    value, *words = split_arguments(text)
    return Packet("PIP", number(value) & 0xFFFFFFFFFFFE0, flags=flags_of(words))


def read_mode_exec(text: str) -> Packet:
    width, *words = split_arguments(text)
    bits = {"16bit": 0, "64bit": 1, "32bit": 2}[width] | (4 if words == ["if"] else 0)
    if words not in ([], ["if"]):
        raise ValueError(f"{text!r}: only 'if' may follow the width")
    return Packet("MODE_EXEC", int(width[:2]), bits)


def read_mode_tsx(text: str) -> Packet:
    return Packet("MODE_TSX", {"commit": 0, "begin": 1, "abort": 2}[text.strip()])


def read_pwre(text: str) -> Packet:
    state, *words = split_arguments(text)
    return Packet("PWRE", c_state(state), flags=flags_of(words))


def read_pwrx(text: str) -> Packet:
    reason, last, deepest = split_arguments(text)
    states = c_state(last) & 0xF0 | c_state(deepest) >> 4
    return Packet("PWRX", states, {"int": 1, "st": 4, "hw": 8}[reason])


def read_ptw(text: str) -> Packet:
    size, value, *words = split_arguments(text)
    return Packet("PTW", number(value), number(size), flags_of(words))


def read_cfe(text: str) -> Packet:
    kind, *rest = split_arguments(text)
    vector = number(rest.pop(0)) if rest and rest[0] != "ip" else 0
    return Packet("CFE", number(kind), vector, flags_of(rest))


def read_trig(text: str) -> Packet:
    packet = Packet("TRIG")
    value, *words = split_arguments(text)
    packet.payload = number(value)
    if "icnt" in words:
        at = words.index("icnt")
        packet.payload2 = number(words[at + 1])
        packet.flags |= ICNT
        del words[at : at + 2]
    packet.flags |= flags_of(words)
    return packet


def read_bbp(text: str) -> Packet:
    """bbp(type[, size of the items in bytes])"""
    kind, *size = split_arguments(text)
    return Packet("BBP", number(kind), {"8": 0, "4": 1}[size[0] if size else "8"])


READERS: dict[str, Callable[[str], Packet]] = {
    "psb": read_flags("PSB"),
    "psbend": read_flags("PSBEND"),
    "pad": lambda text: Packet("PAD", 1),
    "ovf": read_flags("OVF"),
    "stop": read_flags("TRACE_STOP"),
    "tnt": read_tnt("TNT_8"),
    "tnt64": read_tnt("TNT_64"),
    "mode.exec": read_mode_exec,
    "mode.tsx": read_mode_tsx,
    "pip": read_pip,
    "vmcs": read_plain("VMCS", 0xFFFFFFFFFF000),
    "tsc": read_plain("TSC", (1 << 56) - 1),
    "cbr": read_plain("CBR"),
    "tma": read_plain("TMA"),
    "mtc": read_plain("MTC"),
    "cyc": read_plain("CYC"),
    "mnt": read_plain("MNT"),
    "exstop": read_flags("EXSTOP"),
    "mwait": read_plain("MWAIT"),
    "pwre": read_pwre,
    "pwrx": read_pwrx,
    "ptw": read_ptw,
    "cfe": read_cfe,
    "evd": read_plain("EVD"),
    "trig": read_trig,
    "bbp": read_bbp,
    "bip": read_plain("BIP"),
    "bep": read_flags("BEP"),
}
IP_KINDS = {"tip": "TIP", "tip.pge": "TIP_PGE", "tip.pgd": "TIP_PGD", "fup": "FUP"}


@dataclass
class Assembly:
    code: bytes
    origin: int
    labels: dict[str, int]


def assemble(source: Path) -> Assembly:
    """Runs the assembler; labels come from its map file."""
    assembler = find_assembler()
    if assembler is None:
        raise PttError(f"{source}: neither yasm nor nasm is installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "source.asm").write_text(source.read_text() + "\n[map all out.map]\n")
        command = [assembler, "-f", "bin", "-I", f"{source.parent.resolve()}/", "-o", "out.bin", "source.asm"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=path)
        if done.returncode != 0:
            raise PttError(f"{source}: {done.stderr.strip()}")
        listing = (path / "out.map").read_text()
        code = (path / "out.bin").read_bytes() if (path / "out.bin").exists() else b""
    origin = re.search(r"^-- Program origin -+\s+([0-9A-Fa-f]+)", listing, re.MULTILINE)
    found = re.findall(r"^ *[0-9A-Fa-f]+ +([0-9A-Fa-f]+)  (\S+)$", listing, re.MULTILINE)
    labels = {name: int(value, 16) for value, name in found}
    return Assembly(code, int(origin.group(1), 16) if origin else 0, labels)


@dataclass
class Stream:
    """The bytes of a .pt file while its directives are read."""

    assembly: Assembly
    data: bytearray = field(default_factory=bytearray)
    labels: dict[str, int] = field(default_factory=dict)
    block_items: int = 0  # of the open BBP block

    def address(self, text: str) -> int:
        text = text.strip()
        if not text.startswith("%"):
            return number(text)
        return self.assembly.labels[text[1:]]

    def read_ip(self, kind: str, text: str) -> Packet:
        compression, _, address = text.partition(":")
        form = number(compression)
        value = self.address(address) & (1 << 8 * IP_SIZES[form]) - 1
        return Packet(kind, value, form)

    def directive(self, name: str, arguments: str) -> None:
        if name.startswith("raw-"):
            self.data += number(arguments).to_bytes(int(name[4:]) // 8, "little")
            return
        packet = self.read_ip(IP_KINDS[name], arguments) if name in IP_KINDS else READERS[name](arguments)
        self.data += encode([packet], self.block_items)
        if packet.kind == "BBP":
            self.block_items = 4 if packet.payload2 else 8


def encode(packets: list[Packet], block_items: int = 0) -> bytes:
    core: Any = importlib.import_module("ptkit._core")
    numpy: Any = importlib.import_module("numpy")
    kinds = [int(core.PacketKind[packet.kind]) for packet in packets]
    columns = [numpy.array(kinds, numpy.uint64)]
    for name in ("payload", "payload2", "flags"):
        columns.append(numpy.array([getattr(packet, name) for packet in packets], numpy.uint64))
    return bytes(core.encode_packets(*columns, block_items=block_items))


DIRECTIVE = re.compile(r";.*?@pt\s+(?:(\w+)\s*:\s*)?([\w.-]+)\s*\(([^)]*)\)", re.IGNORECASE)
LABEL = re.compile(r"%([0?]?)(\w+)")


def expected_line(line: str, stream: Stream) -> str:
    """The text after the semicolon, with labels replaced by their values."""
    out = ""
    rest = line.split("#")[0].rstrip()
    while match := LABEL.search(rest):
        form, name = match.groups()
        out += rest[: match.start()]
        rest = rest[match.end() :]
        if name not in stream.assembly.labels:
            value = stream.labels[name.lower()]
            out += f"{value:016x}" if form else f"{value:x}"
            continue
        value = stream.assembly.labels[name]
        low = 8
        if mask := re.match(r"\.(\d)", rest):
            low = int(mask.group(1))
            value &= (1 << 8 * low) - 1
            rest = rest[mask.end() :]
        digits = f"{value:016x}"
        if form == "?":
            out += "?" * (16 - 2 * low) + digits[16 - 2 * low :]
        else:
            out += digits if form == "0" else f"{value:x}"
    return out + rest


@dataclass
class Compiled:
    name: str
    stream: Stream
    cpus: list[str]
    options: dict[str, str]
    expected: dict[str, str]  # by tool


def compile_source(source: Path) -> Compiled:
    """Reads one .ptt file. Raises PttError with the number of a bad line."""
    stream = Stream(assemble(source))
    lines = source.read_text().splitlines()
    options: dict[str, list[str]] = {}
    cpus: list[str] = []
    expected: dict[str, str] = {}
    tool = None
    for line_number, line in enumerate(lines, 1):
        match = DIRECTIVE.search(line)
        try:
            if match and match.group(2).lower() == ".exp":
                tool = match.group(3).strip()
                expected[tool] = ""
                stream.labels.setdefault("eos", len(stream.data))
            elif tool is not None:
                if ";" in line:
                    expected[tool] += expected_line(line.partition(";")[2], stream) + "\n"
            elif match:
                if match.group(1):
                    stream.labels[match.group(1).lower()] = len(stream.data)
                stream.directive(match.group(2).lower(), match.group(3))
            elif option := re.match(r"\s*;\s*opt:(\w+)\s+(.*?)\s*$", line):
                options.setdefault(option.group(1), []).append(option.group(2))
            elif cpu := re.match(r"\s*;\s*cpu\s+(\S+)\s*$", line):
                cpus.append(cpu.group(1))
        except (KeyError, ValueError, IndexError, OverflowError) as error:
            raise PttError(f"{source}:{line_number}: {line.strip()}: {error}") from error
    joined = {name: " ".join(texts) for name, texts in options.items()}
    return Compiled(source.stem, stream, cpus or [""], joined, expected)


def effective_decoder(decoder: str, options: str) -> str:
    """The last option that names a decoder wins."""
    named = re.findall(r"--(insn|block)-decoder", options)
    return named[-1] if named else decoder


def write_case(compiled: Compiled, output: Path) -> list[tuple[str, ...]]:
    """Writes the files of one case and returns its rows of the manifest."""
    folder = output / compiled.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{compiled.name}.pt").write_bytes(bytes(compiled.stream.data))
    (folder / f"{compiled.name}.bin").write_bytes(compiled.stream.assembly.code)
    rows: list[tuple[str, ...]] = []
    for cpu in compiled.cpus:
        for tool, text in compiled.expected.items():
            suffix = f"-cpu_{cpu.replace('/', '_')}" if cpu else ""
            name = f"{compiled.name}-{tool}{suffix}.exp"
            (folder / name).write_text(text)
            options = " ".join(filter(None, [f"--cpu {cpu}" if cpu else "", compiled.options.get(tool, "")]))
            for decoder in ("insn", "block") if tool == "ptxed" else (tool,):
                effective = effective_decoder(decoder, options)
                origin = hex(compiled.stream.assembly.origin)
                rows.append((compiled.name, cpu, tool, decoder, effective, options, origin, name))
    return rows


def compile_folder(sources: Path, output: Path) -> list[tuple[str, ...]]:
    """Compiles every .ptt file of a folder and writes the manifest."""
    rows: list[tuple[str, ...]] = []
    for source in sorted(sources.glob("*.ptt")):
        rows += write_case(compile_source(source), output)
    lines = ["\t".join(row) for row in [COLUMNS, *rows]]
    output.mkdir(parents=True, exist_ok=True)
    (output / "manifest.tsv").write_text("\n".join(lines) + "\n")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sources", type=Path, help="folder with .ptt files")
    parser.add_argument("output", type=Path, help="folder for the cases and their manifest.tsv")
    arguments = parser.parse_args()
    try:
        rows = compile_folder(arguments.sources, arguments.output)
    except PttError as error:
        print(f"ptt.py: {error}", file=sys.stderr)
        return 2
    print(f"{len(rows)} rows in {arguments.output / 'manifest.tsv'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
