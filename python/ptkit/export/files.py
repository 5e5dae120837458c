"""Files and folders that appear under their name when they are complete, or not at all."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ptkit import _core
from ptkit.errors import ConfigError, OpenError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["NewFile", "Written", "check_folder", "joined", "new_folder"]

_CHUNK = 1 << 20


class NewFile:
    """A file that gets its name when the block ends, and is removed if an exception leaves the block.

    Parameters
    ----------
    path : str
        An earlier file is replaced at the end.

    Attributes
    ----------
    bytes : int
        How many were written.

    Examples
    --------
    >>> import tempfile
    >>> from ptkit.export.files import NewFile
    >>> with tempfile.TemporaryDirectory() as folder, NewFile(f"{folder}/out.txt") as file:
    ...     file.write(b"first")
    5
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: _core.NewFile | None = None
        self.bytes = 0

    def __enter__(self) -> Self:
        self._file = _core.NewFile(os.fsencode(self._path))
        return self

    def write(self, data: Any) -> int:
        """Append bytes; returns their number, as files of Python do."""
        assert self._file is not None
        size = memoryview(data).nbytes
        if size:
            self._file.write(data)
        self.bytes += size
        return size

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The frames of an exception may live long. Without this reference, the file is removed now.
        file, self._file = self._file, None
        if kind is None and file is not None:
            file.finish()


class Written(ABC):
    """What is written as one file."""

    @abstractmethod
    def write(self, file: NewFile) -> None:
        """Write it to a file that is open."""

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write one file.

        Parameters
        ----------
        path : path
            An earlier file is replaced when the new one is complete.

        Returns
        -------
        int
            Bytes of the file.

        Raises
        ------
        OpenError
            If it cannot be written; then nothing is.
        """
        with NewFile(os.fspath(path)) as file:
            self.write(file)
        return file.bytes


def joined(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts to chunks of a MiB."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _CHUNK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


@contextmanager
def new_folder(path: str) -> Iterator[Path]:
    """Give an empty folder to fill, which gets its name when the block ends; an earlier one is removed then.

    The caller has checked that an earlier one may be replaced. If an exception leaves the block, the new
    folder is removed.

    Raises
    ------
    OpenError
        If it cannot be written.
    """
    target = Path(path)
    made = _beside(target)
    try:  # before the folder is there: an interrupt may come at once
        made.mkdir(0o700)
        yield made
        _put(made, target)
    except OSError as error:
        raise OpenError(f"{path}: cannot write: {error.strerror or error}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def check_folder(target: Path) -> bool:
    """Whether there is a folder with files, which may be replaced if it is an export of the same format.

    Raises
    ------
    ConfigError
        If there is something else.
    """
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise ConfigError(f"{target}: is no folder; give the name of a new one")
    return target.exists() and any(target.iterdir())


def _beside(target: Path) -> Path:
    """A hidden name in the same folder that nothing has."""
    return target.parent / f".{target.name}-{os.urandom(8).hex()}"


def _put(made: Path, target: Path) -> None:
    """Give a folder its name; an earlier one is removed when the new one has it."""
    if not target.exists():
        made.rename(target)
        return
    earlier = _beside(target)
    try:
        target.rename(earlier)
        made.rename(target)
    except BaseException:
        if earlier.exists() and not target.exists():
            earlier.rename(target)
        raise
    finally:
        if target.exists():
            shutil.rmtree(earlier, ignore_errors=True)
