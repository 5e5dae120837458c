"""Files that are read: regular files, and the one pipe that a user may name as the recording."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from pathlib import Path
from typing import BinaryIO

from ptkit.errors import OpenError, OutOfMemoryError
from ptkit.support.system import READ_FLAGS, access_denied

__all__ = ["is_pipe", "map_regular", "open_regular", "permission_denied", "read_pipe", "read_regular"]

_STEP = 1 << 20  # bytes that are read from a pipe at once


def _kind(mode: int) -> str:
    """The kind of a file that is not a regular file, as text."""
    for test, name in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return name
    return "a device"


def permission_denied(path: str) -> OpenError:
    """Return the error for a path that this user may not read: its owner, and the command that helps."""
    try:
        info = Path(path).stat()
    except OSError:
        return OpenError(f"{path}: permission denied: its folder cannot be searched; give another folder")
    return OpenError(access_denied(path, info))


def _cannot_read(path: str, error: OSError) -> OpenError:
    if isinstance(error, PermissionError):
        return permission_denied(path)
    return OpenError(f"{path}: {(error.strerror or str(error)).lower()}; give a file that can be read")


def _check_regular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OpenError(f"{path}: is {_kind(mode)}, not a regular file; give a file with a copy of the bytes")


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading; never wait for it.

    Raises
    ------
    OpenError
        If it cannot be read, or is a FIFO, a socket, a device or a folder: these are not opened.
    """
    try:
        _check_regular(path, Path(path).stat().st_mode)
        number = os.open(path, READ_FLAGS)
    except OpenError:
        raise
    except OSError as error:
        raise _cannot_read(path, error) from None
    file = os.fdopen(number, "rb")
    try:
        _check_regular(path, os.fstat(number).st_mode)
    except OpenError:
        file.close()
        raise
    return file


def read_regular(path: str) -> bytes:
    """Read a whole regular file.

    Raises
    ------
    OpenError
        As `open_regular`.
    """
    with open_regular(path) as file:
        return file.read()


def map_regular(path: str) -> mmap.mmap | bytes:
    """Map a whole regular file into memory, for reading; one that cannot be mapped is read.

    Raises
    ------
    OpenError
        As `open_regular`.
    """
    with open_regular(path) as file:
        with contextlib.suppress(OSError, ValueError):  # ValueError: the file is empty
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            return file.read()
        except OSError as error:
            raise _cannot_read(path, error) from None


def is_pipe(path: str, mode: int | None = None) -> bool:
    """Whether a path names a pipe: a FIFO, ``/dev/stdin``, or what a shell's ``<(...)`` gives.

    Parameters
    ----------
    path : str
    mode : int, optional
        Its ``st_mode``, where that is known.

    Raises
    ------
    OpenError
        If it does not exist, or is a device or a socket, which are no recordings.
    """
    if mode is None:
        try:
            mode = Path(path).stat().st_mode
        except OSError as error:
            raise _cannot_read(path, error) from None
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OpenError(f"{path}: is {_kind(mode)}; give a file, a folder or a pipe")
    return stat.S_ISFIFO(mode)


def read_pipe(path: str, most: int, limit: str) -> bytearray:
    """Read a pipe to its end.

    Parameters
    ----------
    path : str
        The pipe. Opening it waits for a writer.
    most : int
        Bytes that may be read.
    limit : str
        What says so: ``"MemAvailable"``.

    Raises
    ------
    OpenError
        If it cannot be read.
    OutOfMemoryError
        If it has more bytes.
    """
    data = bytearray()
    try:
        with Path(path).open("rb", buffering=0) as pipe:
            while part := pipe.read(min(_STEP, most + 1 - len(data))):
                data += part
                if len(data) > most:
                    raise OutOfMemoryError(
                        f"{path}: the pipe has more than the {most:,} bytes that are free ({limit})",
                        "save what it gives to a file, and open that",
                    )
    except OutOfMemoryError:
        raise
    except OSError as error:
        raise _cannot_read(path, error) from None
    return data
