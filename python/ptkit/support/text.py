"""Text of recordings for a terminal or a message: names in a recording are not to be trusted."""

from __future__ import annotations

import re

__all__ = [
    "bracketed",
    "counted",
    "duration",
    "fitted",
    "is_memory",
    "last_part",
    "module_name",
    "number",
    "one_line",
    "plain",
    "shortened",
    "shortened_message",
]

# Surrogates stand for bytes that are no UTF-8 (os.fsdecode), and cannot be printed.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_CONTROL_OR_END = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_TIME_UNITS = (("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))
_MOST_SHOWN = 100
_CUT = "..."
_SCOPE = re.compile(r"::(?=[^:])")
_IMPLEMENTS = re.compile(r"<.* as [^<>]*>(?=::)")  # "<path::Type as path::Trait>"
_PATH = re.compile(r"(?:\w+::)+")
# Parts that tell functions with equal short names apart: arguments of a class, and the last name in them.
_ARGUMENTS = re.compile(r"(?<=\w)<(?=[^<>]*?(?P<name>(?:::)?\w+\*|\*[\w ,:&]+)>::)")
_FILE = re.compile(r" \([^()]*\)$")  # behind a name
_LEAST_FILE = 8  # columns of what is left of it, with its parentheses
_LONG_WORD = re.compile(r"\S{301,}")
_MOST_MESSAGE = 2000
_MOST_DIGITS = 40
_DECIMAL, _HEXADECIMAL = re.compile("[0-9]+"), re.compile("(?:0[xX])?([0-9a-fA-F]+)")


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    if 0xDC80 <= number <= 0xDCFF:
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def plain(text: str) -> str:
    """Write control characters but tabs and ends of lines as ``\\x1b`` and the like."""
    return _CONTROL.sub(_escape, text)


def one_line(text: str) -> str:
    """Write all control characters so, ends of lines too: a name cannot begin a line of its own."""
    return _CONTROL_OR_END.sub(_escape, text)


def shortened(value: str) -> str:
    """A value of a file for a message: its first 100 characters, and ``...`` if there are more."""
    return value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}..."


def shortened_message(text: str) -> str:
    """A message without values that are longer than usual paths, and of 2,000 characters at most."""
    text = _LONG_WORD.sub(lambda found: shortened(found[0]), text)
    return text if len(text) <= _MOST_MESSAGE else f"{text[:_MOST_MESSAGE]}..."


def fitted(name: str, most: int) -> str:
    """A name for so many columns: ``...::Map::insert (kv)``. Its last part stays as long as it fits.

    Namespaces go first, then the file behind it, then the class, then the middle. Of ``<a::T as b::C>::f``
    paths go first: ``<*T as *C>::f``.
    """
    if len(name) <= most:
        return name
    found = _FILE.search(name)
    file = found[0] if found else ""
    whole = name[: len(name) - len(file)]
    if found := _IMPLEMENTS.match(whole):
        whole = _PATH.sub("*", found[0]) + whole[found.end() :]
        if len(whole) + len(file) <= most:
            return whole + file
    scopes = [at for at in (one.start() for one in _SCOPE.finditer(whole)) if _is_outside(whole, at)]
    for scope in scopes[:-1]:
        if len(_CUT) + len(whole) - scope + len(file) <= most:
            return _CUT + whole[scope:] + file
    begins = scopes[-2:]
    if found := _ARGUMENTS.search(whole):
        begins = [
            *(one for one in begins if one < found.start()),
            found.start(),
            found.start("name"),
            *scopes[-1:],
        ]
    for part in (whole, *(_CUT + whole[begin:] for begin in begins)):
        left = most - len(part)
        if left >= len(file):
            return part + file
        if left >= 0:
            return part + (f"{file[: left - len(_CUT) - 1]}{_CUT})" if left >= _LEAST_FILE else "")
    end = max(most - len(_CUT), 0) // 3
    return whole[: max(most - len(_CUT) - end, 0)] + _CUT + whole[len(whole) - end :]


def _is_outside(name: str, at: int) -> bool:
    """Whether an offset is in no brackets of arguments."""
    return name.count("<", 0, at) <= name.count(">", 0, at)


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number and what it counts: ``"1 error"``, ``"0 gaps"``; `nouns`: an irregular plural."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def duration(ns: int) -> str:
    """Nanoseconds in the largest unit that keeps the number above 1: ``"1.28 ms"``."""
    unit, size = next((one for one in reversed(_TIME_UNITS) if ns >= one[1]), _TIME_UNITS[0])
    value = ns / size
    if size == 1 or value >= 100:
        return f"{value:,.0f} {unit}"
    return f"{value:.2f} {unit}" if value < 10 else f"{value:.1f} {unit}"


def number(text: str | bytes, base: int = 0) -> int | None:
    """Return an unsigned number of 64 bits that a file has as text; None: the text is none.

    Unlike `int`, this takes neither signs, blanks, underscores nor other digits than those of ASCII.

    Parameters
    ----------
    text : str or bytes
    base : int
        10: decimal; 16: hexadecimal, with or without ``0x``; 0: decimal, or hexadecimal with ``0x``.
    """
    if len(text) > _MOST_DIGITS:
        return None
    word = text if isinstance(text, str) else text.decode("latin-1")
    if base == 10 or (base == 0 and word[1:2] not in ("x", "X")):
        value = int(word) if _DECIMAL.fullmatch(word) else None
    else:
        found = _HEXADECIMAL.fullmatch(word)
        value = int(found[1], 16) if found else None
    return None if value is None or value.bit_length() > 64 else value


def last_part(path: str) -> str:
    """The name of a file without its folders, as Windows and as Linux write them."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def bracketed(module: str) -> str:
    """The name of a module before an offset: ``"[libc.so.6]"``; that of memory has brackets already."""
    return module if is_memory(module) else f"[{module}]"


def is_memory(module: str) -> bool:
    """Whether a module is memory without a file."""
    return module.startswith("[anon ")


def module_name(path: str) -> str:
    """Printed name of a file that code was mapped from: ``"libc.so.6"``, ``"vdso"`` for ``[vdso]``."""
    return last_part(path).strip("[]") or path
