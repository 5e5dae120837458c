"""The program to record: that it is there, can be run, and for which machine it was built."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

from ptkit.errors import ConfigError

__all__ = ["NATIVE", "ODD", "SMALL", "UNKNOWN", "machine_of", "words_of"]

NATIVE = "x86-64"
SMALL = "32-bit x86"
ODD = "an unknown machine"  # neither an ELF file nor a script: execvp() gives it to a shell
UNKNOWN = ""  # it cannot be read: whoever runs it will say

_MAX_SCRIPTS = 5  # interpreters of interpreters: the kernel's limit
_MACHINES = {3: SMALL, 8: "MIPS", 21: "PowerPC", 22: "S390", 40: "ARM", 183: "AArch64", 243: "RISC-V"}
_EM_X86_64 = 62


def words_of(argv: Sequence[str | os.PathLike[str]]) -> list[bytes]:
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
    if os.sep in name and path.is_dir():
        raise ConfigError(f"argv: {name!r} is a folder, no program")
    if os.sep in name and path.exists():
        raise ConfigError(f"argv: {name!r} is not permitted to run: it is not executable; use chmod +x")
    raise ConfigError(f"argv: there is no program {name!r} that can be run; check the name and PATH")


def machine_of(program: bytes) -> str:
    """For which machine a program was built; of a script: its interpreter.

    Parameters
    ----------
    program : bytes
        Name or path; must be there.

    Returns
    -------
    str
        `NATIVE`, `SMALL`, `ODD`, `UNKNOWN`, or the name of another machine.
    """
    name = os.fsdecode(program)
    for _ in range(_MAX_SCRIPTS):
        found = shutil.which(name)
        try:
            with Path(found or name).open("rb") as file:
                head = file.read(256)
        except OSError:
            return UNKNOWN
        if not head.startswith(b"#!"):
            return _machine(head)
        interpreter = head[2:].partition(b"\n")[0].split()
        if not interpreter:
            return ODD
        name = os.fsdecode(interpreter[0])
    return UNKNOWN


def _machine(head: bytes) -> str:
    if len(head) < 20 or not head.startswith(b"\x7fELF"):
        return ODD
    big_endian = head[5] == 2
    (machine,) = struct.unpack_from(">H" if big_endian else "<H", head, 18)
    if machine == _EM_X86_64:
        return NATIVE if head[4] == 2 else "x32"
    return _MACHINES.get(machine, f"ELF machine {machine}")
