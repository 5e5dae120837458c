"""Files with a number, often a CPU, in their names: ptout.3, cpu03_bin.bin."""

from __future__ import annotations

import os
from itertools import islice

from ptkit import _core
from ptkit.errors import FormatError
from ptkit.support.inputs import open_regular
from ptkit.support.text import last_part

__all__ = ["add_cpu_streams", "file_in", "number_in_name", "numbered_files"]

_MOST_FILES = 65536
_LAST_NUMBER = (1 << 32) - 1


def number_in_name(path: str, before: str, after: str = "") -> int | None:
    """Return N if the path's file name is `before`, N, `after`."""
    name = os.path.basename(path)  # noqa: PTH119
    digits = name[len(before) : len(name) - len(after)]
    if not (name.startswith(before) and name.endswith(after) and digits.isascii() and digits.isdigit()):
        return None
    return number if len(digits) < 40 and (number := int(digits)) <= _LAST_NUMBER else None


def numbered_files(folder: str, before: str, after: str = "") -> dict[int, str]:
    """Return the files of a folder that have such names, by number."""
    files: dict[int, str] = {}
    try:
        with os.scandir(folder) as entries:
            named = ((number_in_name(one.name, before, after), one.path) for one in entries)
            for number, path in islice((one for one in named if one[0] is not None), _MOST_FILES):
                assert number is not None
                files.setdefault(number, path)
    except OSError:
        pass
    return dict(sorted(files.items()))


def file_in(folder: str, name: str) -> str | None:
    """Return the path in a folder of a file that a recording names; None: no file can have that name.

    On Windows, a colon follows the letter of a drive. Folders before the name are ignored.
    """
    return None if ":" in (last := last_part(name)) else os.path.join(folder, last)  # noqa: PTH118


def add_cpu_streams(recording: _core.Bundle, path: str, files: dict[int, str]) -> list[tuple[int, str, int]]:
    """Add a stream for each file, with the number as its CPU; empty files are left out.

    Parameters
    ----------
    recording : Bundle
    path : str
        Names the recording in the error.
    files : dict
        Paths by number; -1: the CPU is not known.

    Returns
    -------
    list of (int, str, int)
        Number, path and size of each stream.

    Raises
    ------
    OpenError
        If one cannot be read, or is no regular file.
    FormatError
        If all files are empty.
    """
    added = []
    for number, file in files.items():
        with open_regular(file) as opened:
            size = os.fstat(opened.fileno()).st_size
        if size:
            stream = recording.add_stream_file(os.fsencode(file), cpu=None if number < 0 else number)
            added.append((stream, file, size))
    if not added:
        raise FormatError(f"{path}: all streams are empty; record again")
    return added
