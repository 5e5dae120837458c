"""Numbers and registers as WinDbg, C and the manual write them."""

from __future__ import annotations

import re

from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.text import shortened

__all__ = ["assignments", "number", "register_number"]

_PLAIN = re.compile(r"(0[xX])?([0-9a-fA-F]+?)([hH])?")
_BACKTICK = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,8})`([0-9a-fA-F]{8})")
_WHOLE_REGISTER = 16  # digits: so many WinDbg prints, leading zeros too
_FORMS = "write 0x240c, or as WinDbg does: 00000000`0000240c"
#: ``msr[570] = 00000000`0000240c``, as WinDbg's rdmsr prints it, or ``0x570=0x240c``.
_ASSIGNMENT = re.compile(
    r"(?:msr\[\s*(?P<windbg>[0-9a-fA-F]+)\s*\]|(?P<name>[^\s=,;]+))\s*=\s*(?P<value>[^\s=,;]+)"
)
#: Prompts with commands, and what ``.logopen`` and ``.logclose`` write.
_OF_LOG = re.compile(r"^\s*(?:(?:\d+: )?l?kd>|Opened log file|Closing open log file).*$", re.MULTILINE)


def number(text: str) -> int:
    """The value that a text says, as WinDbg, the manual and C write numbers of 64 bits.

    Parameters
    ----------
    text : str
        ``0x240c``, ``240ch``, ``0b101``, WinDbg's ``00000000`0000240c`` and ``fffff80685380000``. Decimal
        digits alone are decimal, unless they begin with 0 or are 16, as WinDbg prints registers.

    Returns
    -------
    int

    Raises
    ------
    ConfigError
        If it is no number, or has more than 64 bits.

    Examples
    --------
    >>> from ptkit import msr
    >>> [hex(msr.number(text)) for text in ("fffff806`85380000", "0000240c", "9228")]
    ['0xfffff80685380000', '0x240c', '0x240c']
    """
    value = _value(text.strip())
    if value is None:
        raise ConfigError(f"{shortened(text)!r} is not a number: {_FORMS}")
    if value > LAST_ADDRESS:
        raise ConfigError(f"{shortened(text)}: must be {LAST_ADDRESS} or less")
    return value


def _value(text: str) -> int | None:
    if found := _BACKTICK.fullmatch(text):
        return int(found[1] + found[2], 16)
    if text[:2] in ("0b", "0B") and set(text[2:]) <= {"0", "1"} and len(text) > 2:
        return int(text, 2)
    found = _PLAIN.fullmatch(text)
    if found is None:
        return None
    prefix, digits, suffix = found.groups()
    if prefix is None and suffix is None and is_decimal(text):
        return int(digits)
    return int(digits, 16)


def is_decimal(text: str) -> bool:
    """Whether `number` reads a text as decimal."""
    return (
        text.isascii()
        and text.isdecimal()
        and len(text) < _WHOLE_REGISTER
        and (text[0] != "0" or text == "0")
    )


def register_number(text: str) -> int | None:
    """The number of a register that a text says, in hexadecimal as WinDbg and the manual have it; or None."""
    found = _PLAIN.fullmatch(text.strip())
    return None if found is None or not any(one.isdigit() for one in found[2]) else int(found[2], 16)


def assignments(text: str) -> list[tuple[str, str]]:
    """Registers and values of ``REGISTER=VALUE``, and of lines that WinDbg's rdmsr has printed.

    Parameters
    ----------
    text : str
        Any number of them, between blanks, commas or ends of lines. Lines with WinDbg's prompt, and those
        that say where its log is, are passed over.

    Returns
    -------
    list of (str, str)
        Name or number of a register, and its value, as they were written; values of WinDbg's lines have
        ``0x`` in front, for they are hexadecimal.

    Raises
    ------
    ConfigError
        If something else is in the text.
    """
    text = _OF_LOG.sub("", text)
    found = []
    rest = text
    for one in _ASSIGNMENT.finditer(text):
        value = one["value"]
        if one["windbg"] is not None and value[:2] not in ("0x", "0X"):
            value = f"0x{value}"
        found.append((f"0x{one['windbg']}" if one["windbg"] else one["name"], value))
        rest = rest.replace(one[0], " ", 1)
    left = rest.replace(",", " ").replace(";", " ").split()
    if left or not found:
        shown = repr(shortened(left[0])) if left else "nothing"
        raise ConfigError(f"expected REGISTER=VALUE, such as 0x570=0x2409, found {shown}")
    return found
