"""The source that a reader gets, and the recording in memory that it makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from ptkit import _core
from ptkit.errors import OpenError
from ptkit.support.inputs import open_regular

__all__ = ["PSB_SEARCH_BYTES", "Reader", "Source", "new_recording"]

#: A file is not recognised as a raw trace if its first PSB stands after so many bytes.
PSB_SEARCH_BYTES = 64 * 1024


@dataclass(frozen=True)
class Source:
    """A recording that a user names.

    Attributes
    ----------
    path : str
        A file or folder. Of bytes that were read from a pipe: their name in messages.
    data : bytes-like, optional
        These bytes; None: the recording is at the path.
    binaries : tuple of str
        Folders with copies of the traced programs.
    without_psb : bool
        A raw stream needs no PSB near its start.
    """

    path: str
    data: bytes | bytearray | None = None
    binaries: tuple[str, ...] = ()
    without_psb: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder."""
        return self.data is None and os.path.isdir(self.path)  # noqa: PTH112

    @property
    def folder(self) -> str:
        """The path if it is a folder, else the folder of the file."""
        return self.path if self.is_folder else os.path.dirname(self.path) or "."  # noqa: PTH120

    def head(self, count: int) -> bytes:
        """Return the first bytes of a file; fewer if it is shorter, or cannot be read."""
        if self.data is not None:
            return bytes(self.data[:count])
        return first_bytes(self.path, count)


def first_bytes(path: str, count: int) -> bytes:
    """Return the first bytes of a regular file; fewer if it is shorter, none if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(count)
    except (OpenError, OSError, ValueError):  # ValueError: the path has a NUL, or cannot be encoded
        return b""


@dataclass(frozen=True)
class Reader:
    """A format that recordings are read from.

    Attributes
    ----------
    name : str
        Value of ``ptkit.open(format=...)``.
    description : str
        One line.
    read : callable
        ``read(source)`` takes a `Source` and returns a recording (`new_recording`); raises
        `ptkit.FormatError` if the source is none of this format.
    recognizes : callable, optional
        ``recognizes(source)`` tells quickly whether a source looks like one of this format, by its name or
        its first bytes. It raises nothing. None: the format is read only if it is named.
    before : str
        Name of a format of ptkit's core that is tried later than this one; see `ptkit.readers.formats`.
        ``ptk`` and ``perf.data``, which begin with a magic of their own, are always tried first.
    reads_pipes : bool
        A recording is one file, so that `read` can take its bytes (`Source.data`).
    unverified : bool
        No recording in this format was at hand to test the reader.
    """

    name: str
    description: str
    read: Callable[[Source], _core.Bundle]
    recognizes: Callable[[Source], bool] | None = None
    before: str = "raw"
    reads_pipes: bool = False
    unverified: bool = False


def new_recording() -> _core.Bundle:
    """Return a recording without anything in it, for a reader to fill.

    Its methods are ``add_stream(data, name=, cpu=, pid=, tid=, space=)``, ``add_stream_file(path, cpu=)``,
    ``add_space(pid=, cr3=)``, ``add_code(address, data, space=)``, ``add_image(path, load_address=,
    space=)``, ``set_cpu(family, model, stepping)``, ``set_clock(tsc_hz=, ...)``, ``set_rtit_ctl(value)`` and
    ``set_ranges([("filter", first, last)])``. docs/formats.md has an example.
    """
    return _core.Bundle()
