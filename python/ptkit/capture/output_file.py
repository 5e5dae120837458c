"""The file that a recording is written to: an earlier recording is kept, other files are not overwritten."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ptkit import _core
from ptkit.capture.systems import platform
from ptkit.errors import OpenError

__all__ = ["OutputFile", "check_replaced", "folder_warnings", "is_recording"]

# First bytes of recordings: a bundle, perf.data (file and pipe), a raw stream (PSB).
_RECORDINGS = (b"\x89PTK\r\n\x1a\n", b"PERFILE2", b"\x02\x82" * 8)
_HEAD_BYTES = 4096


class OutputFile:
    """Makes room for a recording, as perf does: an earlier recording is kept as ``FILE.old``.

    Only regular files are replaced: a recorder that runs as root must not follow a link of another user.

    Parameters
    ----------
    path : bytes
        The file that will be written.
    force : bool
        Also replace a file that is no recording.

    Raises
    ------
    OpenError
        If `path` is a symbolic link, a folder, a device or a FIFO, or, unless `force` is true, a file that is
        no recording.
    """

    def __init__(self, path: bytes, *, force: bool) -> None:
        self._path = Path(os.fsdecode(path))
        self._kept = False
        if refusal := _core.refused_output(path):
            raise OpenError(refusal)
        if not force:
            check_replaced(
                self._path, is_recording, "a recording", "--force (force=True in Python) to replace it"
            )

    def _is_regular(self) -> bool:
        return _is_regular(self._path)

    @property
    def _old(self) -> Path:
        return self._path.with_name(self._path.name + ".old")

    def keep_earlier(self) -> None:
        """Rename an earlier recording.

        Raises
        ------
        OpenError
            If it cannot be renamed.
        """
        if not self._is_regular() or not _head(self._path).startswith(_RECORDINGS):
            return
        try:
            self._path.replace(self._old)
        except OSError as error:
            raise OpenError(
                f"{self._path}: the earlier recording cannot be kept as {self._old.name}: "
                f"{(error.strerror or str(error)).lower()}; remove it, or give another name"
            ) from None
        self._kept = True

    @property
    def earlier(self) -> Path | None:
        """Where an earlier recording is now."""
        return self._old if self._kept else None

    def restore_earlier(self) -> None:
        """Undo `keep_earlier` where nothing was recorded."""
        if self._kept and not self._path.exists():
            self._old.replace(self._path)
        self._kept = False


def is_recording(head: bytes) -> bool:
    """Whether a file that begins so is a recording."""
    return head.startswith(_RECORDINGS)


def check_replaced(path: Path, is_known: Callable[[bytes], bool], subject: str, remedy: str) -> None:
    """Refuse to replace a file of which the first bytes are not of what is written.

    Parameters
    ----------
    path : Path
        There need be no file. An empty one may be replaced.
    is_known : callable
        Whether a file that begins with these bytes may be replaced.
    subject, remedy : str
        What the file should be, and what to do instead, for the message.

    Raises
    ------
    OpenError
        If it may not be replaced.
    """
    if not _is_regular(path):
        return
    head = _head(path)
    if head and not is_known(head):
        raise OpenError(
            f"{path} is {_kind(head)}, not {subject}: not overwritten; give another name, or {remedy}"
        )


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False  # absent, or not to be looked at: writing it gives the error


def folder_warnings(folder: str | os.PathLike[str]) -> list[str]:
    """Say why other users could read or replace a recording that is written to a folder.

    Recordings have mode 0600 whatever the umask. That does not help on a file system without modes (vfat,
    some network and shared folders), nor where others may rename files of the folder.
    """
    path = Path(folder)
    try:
        mode = _core.mode_of_new_file(os.fsencode(path / "trace.ptk"))
    except (OSError, OpenError):
        mode = None
    return platform.folder_warnings(path, mode)


def _head(path: Path) -> bytes:
    try:
        with os.fdopen(os.open(path, platform.LOOK), "rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b"?"  # there, and of unknown content


def _kind(head: bytes) -> str:
    kind = _core.describe_content(head)
    return "a file of unknown form" if kind.endswith("unknown form") else kind
