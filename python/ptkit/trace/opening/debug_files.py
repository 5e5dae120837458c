"""Folders of debug files, and warnings about them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ptkit import _core
from ptkit.support.system import DEBUG_FOLDERS
from ptkit.trace.late_warnings import LateWarnings
from ptkit.trace.opening.bundle import checked_paths

__all__ = ["DebugFiles", "debug_folders"]


def debug_folders(given: Sequence[str | os.PathLike[str]] | None = None) -> list[bytes]:
    """Where debug files are looked for, in order.

    Parameters
    ----------
    given : sequence of paths, optional
        Folders and files that the user gives. Those of `$PTKIT_DEBUG_PATH`, separated by colons (semicolons
        on Windows), and the system's folder follow.

    Raises
    ------
    ConfigError
        If it is no list of paths.
    OpenError
        If a path that is given cannot be read.
    """
    paths = checked_paths("debug_path", given, "folders and files", "debug file or folder of debug files")
    own = os.environ.get("PTKIT_DEBUG_PATH", "").split(os.pathsep)
    return [*map(os.fsencode, [*paths, *filter(None, own)]), *DEBUG_FOLDERS]


class DebugFiles(LateWarnings):
    """Warns once of a debug file that names and lines come from and that does not fit.

    Parameters
    ----------
    session : _core.Session
        Knows which debug files were used.
    """

    def __init__(self, session: _core.Session) -> None:
        super().__init__()
        self._session = session

    def look(self) -> None:
        """Warn of what came about since the last call."""
        for warning in self._session.take_debug_problems():
            self._warn(warning)
