"""Linux, and what is like it: its driver, its users, and its files."""

from __future__ import annotations

import os
import pwd
import shlex
import stat
from pathlib import Path

from ptkit.capture import driver
from ptkit.capture.backend_probe import BackendProbe
from ptkit.errors import ConfigError
from ptkit.support.system import user_name

__all__ = [
    "DRIVER_WORDS",
    "LOOK",
    "NOT_EXECUTABLE",
    "describe",
    "find_driver",
    "folder_warnings",
    "machine_of_file",
    "owner_of",
]

LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # flags of os.open() for a file of unknown content
NOT_EXECUTABLE = "it is not executable; use chmod +x"
DRIVER_WORDS = "ptkit's kernel driver: the processor itself traces, user and kernel code"


def owner_of(owner: str | int) -> tuple[int, int]:
    """Return the user and the group of the option ``owner``.

    Raises
    ------
    ConfigError
        If there is no such user, or files may not be given to that one.
    """
    number = isinstance(owner, int) or owner.isdecimal()
    try:
        user = pwd.getpwuid(int(owner)) if number else pwd.getpwnam(str(owner))
    except (KeyError, OverflowError):
        raise ConfigError(f"owner: there is no user {owner!r}; `getent passwd` lists users") from None
    if os.geteuid() not in (0, user.pw_uid):
        raise ConfigError(f"owner: only root can give a file to {user.pw_name}; leave owner out")
    return user.pw_uid, user.pw_gid


def folder_warnings(path: Path, mode: int | None) -> list[str]:
    """Say why other users could read or replace a recording in a folder.

    Parameters
    ----------
    path : Path
        The folder.
    mode : int or None
        Of new files there; None: there can be none.
    """
    try:
        info = path.stat()
    except OSError:
        mode = None
    if mode is None:
        return [f"{path}: a recording cannot be written to this folder; give -o with another folder"]
    said = []
    if mode & 0o077:
        said.append(
            f"{path}: its file system gives new files mode {mode:04o}, not 0600: other users could read a "
            "recording; give -o with a folder of another file system"
        )
    if info.st_mode & 0o022 and not info.st_mode & stat.S_ISVTX:
        said.append(
            f"{path}: other users may rename and remove files of this folder "
            f"(mode {stat.S_IMODE(info.st_mode):04o}); `chmod go-w {shlex.quote(str(path))}`, or give -o "
            "with another folder"
        )
    if info.st_uid not in (0, os.geteuid()) and str(info.st_uid) != os.environ.get("SUDO_UID"):
        said.append(
            f"{path}: belongs to {user_name(info.st_uid)}: this user may replace a recording there; "
            "give -o with a folder of your own"
        )
    return said


def machine_of_file(head: bytes) -> str | None:
    """Leave the question to readers of ELF files and scripts: None."""
    return None


def find_driver(what: str = "packets") -> BackendProbe:
    """Ask the driver: `what` is ``"packets"`` or ``"bts"``."""
    return driver.find(what=what)


def describe() -> list[str]:
    """No lines: the table of back ends says all."""
    return []
