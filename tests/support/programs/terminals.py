"""Programs with their output on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence

_CHUNK = 65536  # bytes
_TIME_LIMIT = 60  # seconds, after the output has ended


def python_on_a_terminal(arguments: Sequence[str], *, errors_too: bool = True) -> str:
    """Run Python with standard output on a terminal and return what the terminal shows.

    Standard error goes to the same terminal, or nowhere if `errors_too` is false.
    """
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=follower,
        stderr=follower if errors_too else subprocess.DEVNULL,
        close_fds=True,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, _CHUNK)
        except OSError:  # EIO: the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    assert process.wait(timeout=_TIME_LIMIT) == 0
    return shown.decode()
