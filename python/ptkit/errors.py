"""Exceptions and warnings.

What is wrong with a *trace* is a row of a table; what is wrong with a *call* is one of these.
"""

from __future__ import annotations


class PtkitError(Exception):
    """Base of all exceptions of ptkit.

    Attributes
    ----------
    code : int
        Value of `ptkit.ErrorCode`, 0 if there is none.
    offset : int
        Byte in the input that was read, 0 if none is concerned.
    """

    code: int = 0
    offset: int = 0


class OpenError(PtkitError, OSError):
    """A file or folder cannot be read or written."""


class MissingFileError(OpenError, FileNotFoundError):
    """A file or folder does not exist."""


class FormatError(PtkitError, ValueError):
    """The input is not what it should be: no trace, or a damaged file."""


class ConfigError(PtkitError, ValueError):
    """An argument or a setting is out of range."""


class UnsupportedError(PtkitError, RuntimeError):
    """Something cannot be done with this build or on this machine."""


class OutOfMemoryError(PtkitError, MemoryError):
    """What was asked for takes more memory than this process may take; nothing large was allocated.

    Attributes
    ----------
    fact : str
        How many rows, how many bytes, what is free, and which limit says so.
    """

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(f"{fact}; {remedy}")
        self.fact = fact


class SymbolError(PtkitError, LookupError):
    """No symbol has this name."""


class ColumnError(PtkitError, KeyError):
    """A table has no column of this name."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument; a sentence reads better as it is.
        return str(self.args[0]) if self.args else ""


class DecodeError(PtkitError):
    """The first error of a trace, where ``errors="raise"`` was asked for.

    Attributes
    ----------
    stream : int
        Index of the stream.
    ip : int or None
        Address concerned, if one is known.
    """

    stream: int = 0
    ip: int | None = None


class PtkitWarning(UserWarning):
    """Something is odd with the input or unknown, and decoding goes on."""
