"""The registers of the model, their fields in words, and what CPUID says of a processor."""

from __future__ import annotations

import re
from difflib import get_close_matches

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.msr.numbers import number, register_number
from ptkit.msr.records import Capabilities, FieldValue, Register
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.support.text import shortened

__all__ = ["capabilities", "explain", "register", "registers"]

_CPUID_LINE = re.compile(
    r"^\s*0x([0-9a-f]+)\s+0x([0-9a-f]+):\s*"
    r"eax=0x([0-9a-f]+)\s+ebx=0x([0-9a-f]+)\s+ecx=0x([0-9a-f]+)\s+edx=0x([0-9a-f]+)\s*$",
    re.IGNORECASE | re.MULTILINE,
)


def registers() -> list[Register]:
    """Every register of the model: of Processor Trace, Branch Trace Store and last branch records.

    Returns
    -------
    list of Register
    """
    return [Register(*row) for row in _core.msr_registers()]


def register(name: int | str) -> Register:
    """A register of the model.

    Parameters
    ----------
    name : int or str
        Its number, or its name in any case, with or without ``IA32_`` or ``MSR_``. Digits in a text are
        hexadecimal, as the manual and WinDbg have them: ``"570"`` is 0x570. The number 0x1d9 is
        IA32_DEBUGCTL; NetBurst's layout of it has the name MSR_DEBUGCTLA.

    Returns
    -------
    Register

    Raises
    ------
    ConfigError
        If the model has none of this number or name; the message has those that may have been meant.
    """
    known = registers()
    if isinstance(name, str):
        for row in known:
            if name.upper() in _spellings(row):
                return row
        read = register_number(name)
        if read is None:
            names = [spelling for row in known for spelling in _spellings(row)]
            near = get_close_matches(name.upper(), names, 1)
            raise ConfigError(f"no register is called {shortened(name)!r}; {_hint(near)}")
        wanted = read
    else:
        wanted = integer("register", name, 0, 2**32 - 1)
    for row in known:
        if row.number == wanted:
            return row
    # Numbers of registers are hexadecimal in the manual: decimal digits were meant so, or the other way.
    digits = str(name).strip()
    meant = {int(digits, base) for base in (10, 16) if digits.isascii() and digits.isdecimal()}
    near = [f"{row.number:#x} ({row.name})" for row in known if row.number in meant]
    raise ConfigError(f"{wanted:#x} is no register of tracing; {_hint(near)}")


def _spellings(row: Register) -> tuple[str, str]:
    return row.name.upper(), row.name.partition("_")[2].upper()


def _hint(near: list[str]) -> str:
    return f"did you mean {near[0]}?" if near else "`ptkit msr list` has them all"


def explain(name: int | str, value: int | str) -> list[FieldValue]:
    """Explain the value of a register.

    Parameters
    ----------
    name : int or str
        As for `register`.
    value : int or str
        64 bits; a text as `number` takes it, such as WinDbg's ``"00000000`0000240c"``.

    Returns
    -------
    list of FieldValue
        From the lowest bit on.

    Raises
    ------
    ConfigError
        If the register or the value is none.
    """
    bits = number(value) if isinstance(value, str) else integer("value", value, 0, LAST_ADDRESS)
    rows = _core.msr_explain(register(name).name, bits)
    return [FieldValue(*row) for row in rows]


def names_by_number() -> dict[int, str]:
    """Names of registers; of two with one number the first."""
    return {row.number: row.name for row in reversed(registers())}


def capabilities(text: str | None = None) -> Capabilities:
    """Read the capabilities of a trace unit from CPUID.

    Parameters
    ----------
    text : str, optional
        Recorded words as ``cpuid -r`` prints them, a line for each leaf and sub-leaf, such as
        ``0x00000014 0x01: eax=0x02490002 ebx=0x003f3fff ecx=0x00000000 edx=0x00000000``. Of several
        processors the first counts. None: this processor's.

    Returns
    -------
    Capabilities

    Raises
    ------
    ConfigError
        If the text has no such line.
    """
    if text is None:
        words = [tuple(row) for row in _core.msr_cpuid()]
    else:
        words = [tuple(int(word, 16) for word in found.groups()) for found in _CPUID_LINE.finditer(text)]
        if not words:
            raise ConfigError(
                "no line of CPUID words; they look like "
                "0x00000014 0x00: eax=0x... ebx=0x... ecx=0x... edx=0x..."
            )
        if any(word >= 2**32 for row in words for word in row):
            raise ConfigError("CPUID words have 32 bits")
    return Capabilities(**_core.msr_capabilities(words), words=tuple(words))
