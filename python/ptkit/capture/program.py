"""The program to record: whether it can run, and the machine that it was built for."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from ptkit.capture.systems import platform
from ptkit.errors import ConfigError

__all__ = ["I386", "NATIVE", "UNKNOWN", "UNSUPPORTED", "encoded_arguments", "files_of", "machine_of"]

NATIVE = "x86-64"
I386 = "32-bit x86"
UNSUPPORTED = "an unknown machine"  # neither an ELF file nor a script: execvp() gives it to a shell
UNKNOWN = ""  # the file cannot be read: the back end that runs it reports errors

_MAX_SCRIPTS = 5  # interpreters of interpreters: the kernel's limit
_MACHINES = {3: I386, 8: "MIPS", 21: "PowerPC", 22: "S390", 40: "ARM", 183: "AArch64", 243: "RISC-V"}
_EM_X86_64 = 62
_PT_INTERP = 3
_HEAD_BYTES = 4096
_ELF_HEADER_BYTES = 64
_LOADER_SECONDS = 10


def encoded_arguments(argv: Sequence[str | os.PathLike[str]]) -> list[bytes]:
    """Check a program and its arguments, and return them as the system takes them.

    Raises
    ------
    ConfigError
        If it is no list of words, or there is no such program.
    """
    if isinstance(argv, str | bytes):
        raise ConfigError(f"argv: expected a list of program and arguments, found {argv!r}; use shlex.split")
    try:
        words = [os.fsencode(word) for word in argv]
    except TypeError:
        raise ConfigError(f"argv: expected a list of words, found {argv!r}") from None
    if not words:
        raise ConfigError("argv: expected a program, found nothing")
    if any(b"\0" in word for word in words):
        raise ConfigError("argv: a program and its arguments have no NUL")
    _find(os.fsdecode(words[0]))
    return words


def _find(name: str) -> str:
    found = shutil.which(name)
    if found is not None:
        return found
    path = Path(name)
    if path.name != name and path.is_dir():
        raise ConfigError(f"argv: {name!r} is a folder, not a program")
    if path.name != name and path.exists():
        raise ConfigError(f"argv: {name!r} is not permitted to run: {platform.NOT_EXECUTABLE}")
    raise ConfigError(f"argv: there is no program {name!r} that can be run; check the name and PATH")


def _interpreted(name: str) -> Iterator[tuple[str, bytes]]:
    """Path and first bytes of a program, then of the interpreter of a script, and so on."""
    for _ in range(_MAX_SCRIPTS):
        path = shutil.which(name) or name
        try:
            with Path(path).open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            return
        yield path, head
        interpreter = head[2:].partition(b"\n")[0].split() if head.startswith(b"#!") else []
        if not interpreter:
            return
        name = os.fsdecode(interpreter[0])


def machine_of(program: bytes) -> str:
    """For which machine a program was built; of a script: its interpreter.

    Parameters
    ----------
    program : bytes
        Name or path; must be there.

    Returns
    -------
    str
        `NATIVE`, `I386`, `UNSUPPORTED`, `UNKNOWN`, or the name of another machine.
    """
    heads = [head for _, head in _interpreted(os.fsdecode(program))]
    if not heads:
        return UNKNOWN
    if not heads[-1].startswith(b"#!"):
        return _machine(heads[-1])
    return UNSUPPORTED if not heads[-1][2:].partition(b"\n")[0].split() else UNKNOWN


def _machine(head: bytes) -> str:
    known = platform.machine_of_file(head)
    if known is not None:
        return known
    if len(head) < 20 or not head.startswith(b"\x7fELF"):
        return UNSUPPORTED
    big_endian = head[5] == 2
    (machine,) = struct.unpack_from(">H" if big_endian else "<H", head, 18)
    if machine == _EM_X86_64:
        return NATIVE if head[4] == 2 else "x32"
    return _MACHINES.get(machine, f"ELF machine {machine}")


def files_of(program: bytes) -> list[str]:
    """Files that the kernel and the loader map when a program starts: itself first, then its libraries.

    Of a script: those of its interpreter. The libraries are what the program's own loader lists; none where
    it cannot be asked.
    """
    programs = list(_interpreted(os.fsdecode(program)))
    if not programs:
        return []
    path, head = programs[-1]
    loader = _loader_of(Path(path), head)
    files = [os.path.realpath(path)]
    if loader is None:
        return files
    try:
        command = [loader, "--list", path]
        listed = subprocess.run(command, capture_output=True, text=True, timeout=_LOADER_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return files
    # "libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f...)", "/lib64/ld-linux-x86-64.so.2 (0x...)"
    names = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listed.stdout, re.MULTILINE)
    return list(dict.fromkeys([*files, *names]))


def _loader_of(path: Path, head: bytes) -> str | None:
    """The program interpreter (PT_INTERP) of an ELF file for x86; None if it has none."""
    if len(head) < _ELF_HEADER_BYTES or _machine(head) not in (NATIVE, I386, "x32"):
        return None
    wide = head[4] == 2
    table, entry_bytes, entries = (
        struct.unpack_from("<Q", head, 32) + struct.unpack_from("<HH", head, 54)
        if wide
        else struct.unpack_from("<I", head, 28) + struct.unpack_from("<HH", head, 42)
    )
    with path.open("rb") as file:
        file.seek(table)
        headers = file.read(entry_bytes * entries)
        for at in range(0, len(headers) - entry_bytes + 1, max(entry_bytes, 1)):
            (kind,) = struct.unpack_from("<I", headers, at)
            if kind == _PT_INTERP:
                offset, size = struct.unpack_from(
                    "<Q16xQ" if wide else "<I8xI", headers, at + (8 if wide else 4)
                )
                file.seek(offset)
                return os.fsdecode(file.read(min(size, _HEAD_BYTES)).rstrip(b"\0"))
    return None
