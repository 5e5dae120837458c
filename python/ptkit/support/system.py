"""Differences between Linux and Windows: users, flags of files, pipes, terminals and signals."""

from __future__ import annotations

import os
import shlex
import signal
import stat
import sys

__all__ = [
    "CLOSING_SIGNAL",
    "DEBUG_FOLDERS",
    "READ_FLAGS",
    "STANDARD_INPUT",
    "access_denied",
    "is_raw",
    "user_name",
    "widen_pipe",
]

if sys.platform == "win32":
    #: Open a regular file for reading as it is.
    READ_FLAGS = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
    #: The signal of a closed terminal or window.
    CLOSING_SIGNAL = signal.SIGBREAK
    #: Path of the standard input; None: it has none.
    STANDARD_INPUT: str | None = None
    #: Where the system has debug files.
    DEBUG_FOLDERS: tuple[bytes, ...] = ()

    def user_name(number: int) -> str:
        """Return the number: files of Windows name no user by it."""
        return str(number)

    def access_denied(path: str, info: os.stat_result) -> str:
        """Say that this user may not read a file, and what helps."""
        return (
            f"{path}: permission denied; give your user the right to read it (its properties, Security), "
            "or a copy of it"
        )

    def widen_pipe(descriptor: int, size: int) -> None:
        """Do nothing: a pipe's size is set when it is created."""

    def is_raw(terminal: int) -> bool:
        """Whether a program has taken the terminal for itself: that is not known here."""
        return False

else:
    import fcntl
    import pwd
    import termios

    READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    CLOSING_SIGNAL = signal.SIGHUP
    STANDARD_INPUT = "/dev/stdin"
    DEBUG_FOLDERS = (b"/usr/lib/debug",)

    def user_name(number: int) -> str:
        """Return a user's name, or the number where it has none."""
        try:
            return pwd.getpwuid(number).pw_name
        except KeyError:
            return str(number)

    def access_denied(path: str, info: os.stat_result) -> str:
        """Say that this user may not read a file: its owner, and the command that helps."""
        me = user_name(os.geteuid())
        return (
            f"{path}: permission denied: it belongs to {user_name(info.st_uid)} "
            f"(mode {stat.S_IMODE(info.st_mode):04o}); `sudo chown {me} {shlex.quote(path)}` gives it to you"
        )

    def widen_pipe(descriptor: int, size: int) -> None:
        """Let a pipe hold more, if the descriptor is one. Raises OSError if not."""
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)

    def is_raw(terminal: int) -> bool:
        """Whether a program has taken the terminal for itself, as editors do."""
        local_modes: int = termios.tcgetattr(terminal)[3]
        return not local_modes & termios.ICANON
