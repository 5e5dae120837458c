"""How the emulated machine boots: Debian's kernel, put into memory, and what it is told."""

from __future__ import annotations

import lzma
import os
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from debian import Missing, Packages

HERE = Path(__file__).resolve().parent
GUEST = HERE.parent / "guest"  # sources of what runs in the machine

MEGABYTE = 1 << 20
BOOT_SECTOR = 0x7C00  # where the BIOS puts it
INFO = 0x90000  # the boot protocol's structures
INITRD = 256 * MEGABYTE
NOTE_PVH_ENTRY = 18  # of owner Xen
COMMAND_LINE = "console=ttyS0,115200n8 quiet mce=off nmi_watchdog=0 panic=-1 rdinit=/init cryptomgr.notests"


@dataclass(frozen=True)
class Kernel:
    """A kernel as it lies in memory."""

    image: Path  # flat
    address: int
    entry: int


def unpack_kernel(folder: Path) -> Kernel:
    """Debian's kernel, decompressed here: the emulated machine would take half a minute for that."""
    packages = Packages(folder / "apt")
    tree = folder / "kernel"
    if not tree.exists():  # spares the question which kernel it is
        packages.unpack(tree, packages.depends("linux-image-amd64", "linux-image-"))
    compressed = next((tree / "boot").glob("vmlinuz-*"))
    elf = _decompress(compressed.read_bytes())
    address, flat, entry = _flatten(elf)
    image = folder / "kernel.img"
    unfinished = image.with_suffix(".part")
    unfinished.write_bytes(flat)
    unfinished.rename(image)  # another run may be reading it
    return Kernel(image, address, entry)


def _decompress(image: bytes) -> bytes:
    """The ELF file in a bzImage (Linux' Documentation/arch/x86/boot.rst)."""
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[(setup_sectors + 1) * 512 + offset :][:length]
    if not payload.startswith(b"\xfd7zXZ"):
        raise Missing("the kernel is not compressed with xz, as Debian's are")
    return lzma.LZMADecompressor().decompress(payload)


def _flatten(elf: bytes) -> tuple[int, bytes, int]:
    """Physical address, bytes from there on, and the PVH entry point."""
    (table,) = struct.unpack_from("<Q", elf, 32)
    size, count = struct.unpack_from("<HH", elf, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", elf, table + number * size) for number in range(count)]
    loads = [
        (physical, elf[offset : offset + length])
        for kind, _, offset, _, physical, length, *_ in segments
        if kind == 1
    ]
    start = min(physical for physical, _ in loads)
    flat = bytearray(max(physical + len(data) for physical, data in loads) - start)
    for physical, data in loads:
        flat[physical - start : physical - start + len(data)] = data
    notes = [elf[offset : offset + length] for kind, _, offset, _, _, length, *_ in segments if kind == 4]
    return start, bytes(flat), _pvh_entry(notes)


def _pvh_entry(notes: list[bytes]) -> int:
    for note in notes:
        offset = 0
        while offset + 12 <= len(note):
            name_size, size, kind = struct.unpack_from("<III", note, offset)
            name = note[offset + 12 : offset + 12 + name_size]
            data = offset + 12 + _rounded(name_size)
            if kind == NOTE_PVH_ENTRY and name == b"Xen\0":
                return int.from_bytes(note[data : data + size], "little")
            offset = data + _rounded(size)
    raise Missing("the kernel has no PVH entry point (CONFIG_PVH)")


def _rounded(size: int) -> int:
    return (size + 3) & ~3


def write_boot_files(folder: Path, kernel: Kernel, initrd_bytes: int, memory: int, arguments: str) -> None:
    """`boot.img`, a floppy disk that goes to the kernel's entry, and `info.img`, what it is told.

    Parameters
    ----------
    memory
        Bytes of the machine's memory; the BIOS has its ACPI tables in the last 64 KiB.
    arguments
        More of the kernel's command line.
    """
    modules, regions, text = INFO + 0x100, INFO + 0x200, INFO + 0x400
    tables = memory - 0x10000
    areas = [(0, 0x9F000, 1), (0xF0000, 0x10000, 2), (MEGABYTE, tables - MEGABYTE, 1), (tables, 0x10000, 3)]
    info = struct.pack("<IIIIQQQQII", 0x336EC578, 1, 0, 1, modules, text, 0, regions, len(areas), 0)
    blob = bytearray(0x1000)
    blob[: len(info)] = info
    struct.pack_into("<QQQQ", blob, 0x100, INITRD, initrd_bytes, 0, 0)
    for number, (start, size, kind) in enumerate(areas):
        struct.pack_into("<QQII", blob, 0x200 + number * 24, start, size, kind, 0)
    line = f"{COMMAND_LINE} {arguments}".encode()
    blob[0x400 : 0x400 + len(line)] = line
    (folder / "info.img").write_bytes(blob)
    _assemble(folder, kernel)


def _assemble(folder: Path, kernel: Kernel) -> None:
    symbols = ["--defsym", f"PVH_INFO={INFO}", "--defsym", f"PVH_ENTRY={kernel.entry}"]
    unlinked, sector = folder / "boot.o", folder / "boot.img"
    run("as", "--32", *symbols, "-o", unlinked, HERE / "boot.S")
    run("ld", "-m", "elf_i386", "-Ttext", hex(BOOT_SECTOR), "--oformat", "binary", "-o", sector, unlinked)
    sector.write_bytes(sector.read_bytes().ljust(1474560, b"\0"))


def run(*command: str | Path, **environment: str) -> str:
    """Runs a program of the tool chain; what it prints."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, env=os.environ | environment, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None
    except subprocess.CalledProcessError as failed:
        raise Missing(f"{' '.join(map(str, command))}: {failed.stderr}") from None
    return done.stdout


def compile_static(source: Path, program: Path, *flags: str) -> Path:
    """A static program, which needs nothing of the machine that runs it."""
    return compile_for_guest(source, program, "-O2", "-static", *flags)


def compile_for_guest(source: Path, program: Path, *flags: str) -> Path:
    """A program or library; if it is not static, for the libraries that perf brings into the machine."""
    unfinished = program.with_suffix(".part")
    run("gcc", *flags, "-o", unfinished, source)
    return unfinished.rename(program)
