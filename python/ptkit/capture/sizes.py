"""Numbers of bytes as users write them."""

from __future__ import annotations

import re

from ptkit.errors import ConfigError
from ptkit.support.arguments import integer

__all__ = ["size_of"]

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def size_of(name: str, size: int | str, least: int, most: int) -> int:
    """Read a number of bytes: an integer, or a text such as ``"64M"`` (K, M, G, T are powers of 1024).

    Raises
    ------
    ConfigError
        If it is none, or out of range.
    """
    if isinstance(size, str):
        match = re.fullmatch(r"(\d+)\s*([KMGT]?)(?:i?B)?", size.strip(), re.IGNORECASE)
        if match is None:
            raise ConfigError(f"{name}={size!r}: write a number of bytes, such as 64M or 1G")
        size = int(match[1]) * _UNITS[match[2].upper()]
    return integer(name, size, least, most)
