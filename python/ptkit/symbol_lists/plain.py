"""Lists with a symbol on each line: ``nm`` in its three formats (BSD, POSIX, System V), also with sizes.

System.map and /proc/kallsyms are as nm prints; perf-PID.map; and "address name".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ptkit import _core
from ptkit.support.columns import Bools, Numbers, Offsets, Words, chunks, hex_numbers, is_one_of
from ptkit.symbol_lists.found import FoundList, NoSymbols

__all__ = ["read_plain_list"]

_TYPES = b"ABCDGINRSTUVWabcdginprstuvw-?"
_CODE_TYPES = b"tTwWi"
_UNDEFINED, _FUNCTION = ord("U"), ord("t")
_LOOKED_LINES = 4096
_JIT_MAP = "map of JIT code by perf"


class _Lines(NamedTuple):
    """Columns of the lines that have a form; others are not `good`."""

    good: Bools
    begin: Offsets
    end: Offsets
    address: Numbers
    size: Numbers
    type: Offsets


def _types(words: Words, has: Bools, begin: Offsets, end: Offsets) -> tuple[Bools, Offsets]:
    """Return which ranges are nm's letter for a kind of symbol, and the letters."""
    is_letter = has & (end - begin == 1)
    letters = words.text[np.where(is_letter, begin, 0)]
    return is_letter & is_one_of(_TYPES, letters), letters.astype(np.int64)


def _padded_numbers(words: Words, has: Bools, begin: Offsets, end: Offsets) -> tuple[Numbers, Bools]:
    """nm prints addresses in 8 or 16 digits."""
    length = end - begin
    may_be = has & ((length == 8) | (length == 16))
    values, good = hex_numbers(words.text, np.where(may_be, begin, 0), np.where(may_be, end, 0))
    return values, good


def _bsd(words: Words) -> _Lines:
    """ADDRESS [SIZE] TYPE name. With -S, symbols that have no size are printed without."""
    address, good = _padded_numbers(words, *words.word(0))
    second = words.word(1)
    is_type, letters = _types(words, *second)
    name = words.word(2)
    has, begin = name[0], name[1]
    size = np.zeros(len(good), dtype=np.uint64)
    if not is_type.all():
        size, sized = _padded_numbers(words, *second)
        other, other_letters = _types(words, *name)
        fourth = words.word(3)
        is_type, letters = np.where(sized, other, is_type), np.where(sized, other_letters, letters)
        has, begin = np.where(sized, fourth[0], has), np.where(sized, fourth[1], begin)
    return _Lines(good & is_type & has, begin, words.line_end, address, size, letters)


def _posix(words: Words) -> _Lines:
    is_type, letters = _types(words, *words.word(1))
    has_value, begin, end = words.word(2)
    address, value_good = hex_numbers(words.text, begin, end)
    has_size, size_begin, size_end = words.word(3)
    size, size_good = hex_numbers(words.text, size_begin, size_end)
    good = is_type & (words.count <= 4) & (value_good | ~has_value) & (size_good | ~has_size)
    _, name, name_end = words.word(0)
    return _Lines(good, name, name_end, address, size, np.where(has_value, letters, _UNDEFINED))


def _system_v(words: Words) -> _Lines:
    """Name, value, class, type and size, each with a bar behind it."""
    bars = words.positions(b"|")
    index = np.searchsorted(bars, words.line_begin)
    good = index + 4 < len(bars)
    good[good] = bars[index[good] + 4] < words.line_end[good]
    fields = []
    begin = words.line_begin
    for number in range(5):
        end = bars[np.where(good, index + number, 0)] if len(bars) else begin
        fields.append(words.trimmed(begin, np.where(good, end, begin)))
        begin = np.where(good, end + 1, begin)
    address, has_address = hex_numbers(words.text, *fields[1])
    size, _ = hex_numbers(words.text, *fields[4])
    is_type, letters = _types(words, good, *fields[2])
    name, name_end = fields[0]
    letters = np.where(has_address, letters, _UNDEFINED)
    return _Lines(is_type & (name_end > name), name, name_end, address, size, letters)


def _perf_map(words: Words) -> _Lines:
    """START SIZE name, in hexadecimal, as the core reads the map of a recording."""
    begin, end, address, size = _core.jit_map_columns(words.text.tobytes())
    every = np.ones(len(begin), dtype=np.bool_)
    return _Lines(every, begin, end, address, size, np.full(len(begin), _FUNCTION))


def _pair(words: Words) -> _Lines:
    _, begin, end = words.word(0)
    address, good = hex_numbers(words.text, begin, end)
    _, name, name_end = words.word(1)
    size = np.zeros(len(good), dtype=np.uint64)
    return _Lines(good & (words.count == 2), name, name_end, address, size, np.full(len(good), _FUNCTION))


# Of two that fit equally many lines, the first one is taken.
_FORMS: tuple[tuple[str, Callable[[Words], _Lines]], ...] = (
    ("output of nm", _bsd),
    ("output of nm -f sysv", _system_v),
    ("output of nm -P", _posix),
    (_JIT_MAP, _perf_map),
    ("list of addresses and names", _pair),
)


def _without_address(words: Words) -> Bools:
    """Lines of nm without an address: symbols of other files, names of files."""
    is_type, _ = _types(words, *words.word(0))
    found: Bools = (words.text[words.line_end - 1] == ord(":")) | (is_type & (words.count > 1))
    return found


def _form_of(text: bytes) -> tuple[str, Callable[[Words], _Lines]] | None:
    """Return the form that fits most of the first lines; None if none fits half of them.

    Stripped files have symbols without an address only.
    """
    lines: list[bytes] = []
    for begin, part in chunks(text):
        for line in text[begin : begin + len(part)].splitlines():
            if (line := line.strip(b" \t\r")) and not line.startswith(b"#"):
                lines.append(line)
                if len(lines) == _LOOKED_LINES:
                    break
        break
    if not lines:
        return None
    words = Words(np.frombuffer(b"\n".join(lines), dtype=np.uint8))
    fits = [int(parse(words).good.sum()) for _, parse in _FORMS]
    fits[0] += int(_without_address(words).sum())
    best = max(range(len(fits)), key=lambda number: fits[number])
    return _FORMS[best] if fits[best] != 0 and fits[best] * 2 >= len(words.count) else None


def _clean_names(words: Words, begin: Offsets, end: Offsets) -> tuple[Offsets, Bools]:
    """Return where names end, and which symbols are of a kernel module.

    Behind a name stand file and line (nm -l), the kernel module (kallsyms), the version (nm -D).
    """
    of_module = np.zeros(len(begin), dtype=np.bool_)
    tabs = words.positions(b"\t")
    if len(tabs):
        tab = words.find(tabs, begin, end)
        cut = tab < end
        if cut.any():
            bracket = words.find(words.positions(b"\t["), begin, end)
            of_module = (bracket < end) & (words.text[end - 1] == ord("]"))
            _, end = words.trimmed(begin, tab)
    signs = words.positions(b"@")
    if len(signs):
        sign = words.find(signs, begin + 1, end)
        following = words.text[np.minimum(signs + 1, len(words.text) - 1)]
        run_ends = signs[(following != ord("@")) | (signs == len(words.text) - 1)] + 1
        version = words.find(run_ends, sign + 1, end)
        letter = words.text[np.minimum(version, len(words.text) - 1)]
        is_mangled = words.text[begin] == ord("?")  # MSVC's names have such signs
        cut = (version < end) & ~is_mangled & ~((letter >= ord("0")) & (letter <= ord("9")))
        end = np.where(cut, sign, end)
    return end, of_module


def read_plain_list(text: bytes) -> FoundList | None:
    """Read such a list.

    Returns
    -------
    FoundList or None
        None: it is of no such form.

    Raises
    ------
    NoSymbols
        If it has no function with an address.
    """
    form = _form_of(text)
    if form is None:
        return None
    kind, parse = form
    found = FoundList(kind, at_run_time=kind == _JIT_MAP)
    if found.at_run_time:
        found.symbols.add(*_core.jit_map_columns(text))
    else:
        for offset, part in chunks(text):
            _read_part(found, parse, offset, Words(part))
    if not found.symbols.count:
        raise NoSymbols(f"is {kind} and lists no function with an address; nm -D has those of stripped files")
    if found.symbols.highest == 0:
        raise NoSymbols(
            "has the address 0 for each symbol: the kernel hides them; read /proc/kallsyms as root, or set "
            "kernel.kptr_restrict to 0"
        )
    return found


def _read_part(found: FoundList, parse: Callable[[Words], _Lines], offset: int, words: Words) -> None:
    if not len(words.count):
        return
    lines = parse(words)
    good = lines.good
    begin, end, address, size, kinds = lines[1:]
    if not good.all():
        begin, end, address, size, kinds = begin[good], end[good], address[good], size[good], kinds[good]
    if not len(begin):
        return
    end, of_module = _clean_names(words, begin, end)
    found.note_bases(words.text, begin, end, address)
    kept = is_one_of(_CODE_TYPES, kinds.astype(np.uint8)) & (end > begin)
    if parse is not _pair and (of_module & kept).any():
        found.at_run_time = True  # kallsyms
    if not kept.all():
        begin, end, address, size = begin[kept], end[kept], address[kept], size[kept]
    found.symbols.add(begin + offset, end + offset, address, size)
