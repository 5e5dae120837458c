"""Addresses as they are written on the command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ptkit.cli.output.terminal import print_text
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.trace.opening.images import LAYOUTS

__all__ = [
    "ADDRESSES",
    "DecimalAddress",
    "ImageArgument",
    "address",
    "address_or_range",
    "address_range",
    "code_at",
    "image_at",
    "list_at",
    "note_decimals",
]

#: Text of `--help` about addresses.
ADDRESSES = "Addresses: 0x401000, WinDbg's fffff803`12345678, or decimal digits."

_PAGE = 4096
_BACKTICK = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,8})`([0-9a-fA-F]{8})")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+")
_SETTINGS = re.compile(r"(?:,(?:cr3|layout)=[^,@=]*)+$")


class DecimalAddress(int):
    """An address that was written with decimal digits alone, and may have been meant as hexadecimal."""

    @property
    def as_hexadecimal(self) -> int:
        """The address that its digits are in hexadecimal."""
        return int(str(int(self)), 16)


def address(text: str) -> int:
    """Read an address: 0x..., with WinDbg's backtick, or decimal."""
    found = _BACKTICK.fullmatch(text)
    if found is not None:
        return int(found[1] + found[2], 16)
    try:
        value = int(text, 0)
    except ValueError:
        hint = "write 0x401000, fffff803`12345678 or decimal digits"
        if _HEXADECIMAL.fullmatch(text):
            hint = f"for a hexadecimal number write 0x{text}"
        raise argparse.ArgumentTypeError(f"{text!r} is not an address: {hint}") from None
    if not 0 <= value <= LAST_ADDRESS:
        raise argparse.ArgumentTypeError(f"{text}: must be in [0, 2**64)")
    return DecimalAddress(value) if text.isdecimal() else value


def address_range(text: str) -> tuple[int, int]:
    """Read a range of addresses, both ends inclusive."""
    first, separator, last = text.partition("-")
    if not separator or not first:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range: write FIRST-LAST, such as 0x1000-0x1fff")
    return address(first), address(last)


def address_or_range(text: str) -> int | tuple[int, int]:
    """Read an address, or a range of addresses without its end."""
    first, separator, last = text.partition("-")
    try:
        begin = address(first)
        if not separator:
            return begin
        end = address(last)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}; names of functions go to --symbol") from None
    if begin >= end:
        raise argparse.ArgumentTypeError(f"{text}: FROM must be below TO")
    return begin, end


def _address_at(text: str) -> tuple[str, int | None]:
    """Read ``PATH[@ADDRESS]``."""
    path, separator, where = text.rpartition("@")
    return (path, address(where)) if separator else (text, None)


class ImageArgument(NamedTuple):
    """Argument of ``--image`` or ``--code``."""

    path: str
    address: int | None
    cr3: int | None = None
    layout: str | None = None


def image_at(text: str) -> ImageArgument:
    """Read ``PATH[@ADDRESS][,cr3=VALUE][,layout=memory|file]``."""
    settings = _SETTINGS.search(text)
    location = text[: settings.start()] if settings else text
    _, _, unknown = location.rpartition("@")[2].partition(",")
    if "@" in location and "=" in unknown:
        raise argparse.ArgumentTypeError(f"{unknown!r} is neither cr3=VALUE nor layout=memory or layout=file")
    path, where = _address_at(location)
    cr3, layout = None, None
    for setting in settings[0][1:].split(",") if settings else ():
        name, _, value = setting.partition("=")
        if name == "cr3":
            cr3 = address(value)
        elif name == "layout" and value in LAYOUTS:
            layout = value
        else:
            raise argparse.ArgumentTypeError(
                f"{setting!r} is neither cr3=VALUE nor layout=memory or layout=file"
            )
    return ImageArgument(path, where, cr3, layout)


def list_at(text: str) -> ImageArgument:
    """Read ``PATH[@ADDRESS][,cr3=VALUE]``."""
    found = image_at(text)
    if found.layout is not None:
        raise argparse.ArgumentTypeError(f"{text!r}: only files of --image have a layout")
    return found


def code_at(text: str) -> ImageArgument:
    """Read ``PATH@ADDRESS[,cr3=VALUE]``."""
    found = list_at(text)
    if found.address is None:
        raise argparse.ArgumentTypeError(f"{text!r} does not say where the code is: write PATH@ADDRESS")
    return found


def note_decimals(options: argparse.Namespace, has_code: Callable[[int], bool] = lambda _: False) -> None:
    """Say on standard error which addresses of decimal digits were surely meant to be hexadecimal.

    A decimal number that is no multiple of a page, while its digits are one in hexadecimal, was; so was a
    selected address without code, while there is code at the hexadecimal one.

    Parameters
    ----------
    options : argparse.Namespace
        Arguments of the verb; all addresses among them are looked at.
    has_code : callable
        Whether the trace has code at an address.
    """
    for name, value in vars(options).items():
        for one in _decimals(value):
            meant = one.as_hexadecimal
            paged = one % _PAGE != 0 and meant % _PAGE == 0
            if paged or (name == "ip" and has_code(meant) and not has_code(one)):
                text = f"{one} is decimal, {one:#x}: for a hexadecimal address write {meant:#x}"
                print_text(f"ptkit {options.verb}: note: --{name.replace('_', '-')}: {text}", errors=True)


def _decimals(value: Any) -> Iterator[DecimalAddress]:
    if isinstance(value, DecimalAddress):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _decimals(one)
