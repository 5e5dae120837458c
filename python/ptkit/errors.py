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
    """The input is not a trace, or is damaged."""


class ConfigError(PtkitError, ValueError):
    """An argument or a setting is out of range."""


class UnsupportedError(PtkitError, RuntimeError):
    """This build or this machine cannot do what a call needs."""


class OutOfMemoryError(PtkitError, MemoryError):
    """The result needs more memory than this process may use; nothing large was allocated.

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
    """The first error of a trace, with ``errors="raise"``.

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
    """The input is damaged, incomplete or unknown in some part, and decoding goes on."""


class TraceWarning(str):
    """A warning about a trace: what happened, where, and what to do about it, as one line of text.

    `TraceInfo.warnings` and `Recording.warnings` have these. docs/warnings.md lists all codes.

    Attributes
    ----------
    code : str
        Which warning it is, such as ``"AUX_PARTIAL"``; ``"RECORDED"`` for one that was read from a bundle.
    severity : str
        ``"NOTE"`` (nothing is lost), ``"DEGRADED"`` (rows may be less exact) or ``"LOSS"`` (data is
        missing).
    remedy : str
        Remedy, the end of the text; may be empty.
    arguments : tuple of str
        Numbers and names in the sentence, in the order of docs/warnings.md.
    """

    code: str
    severity: str
    remedy: str
    arguments: tuple[str, ...]

    def __new__(
        cls,
        text: str,
        *,
        code: str = "RECORDED",
        severity: str = "NOTE",
        remedy: str = "",
        arguments: tuple[str, ...] = (),
    ) -> TraceWarning:
        """Make one; ptkit does."""
        made = super().__new__(cls, text)
        made.code, made.severity, made.remedy, made.arguments = code, severity, remedy, arguments
        return made
