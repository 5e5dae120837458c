"""Tenet's text: a line with the address of each executed instruction, in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.decode import Opened
from ptkit.errors import ConfigError
from ptkit.export.files import NewFile
from ptkit.export.tables import Losses, table_parts
from ptkit.table import Table

__all__ = ["write_tenet"]

_ROWS = 1 << 16
_COLUMNS = ("ip", "mode", "pid", "tid", "tid_known")
_RECOMMENDED = 10_000_000  # instructions that Tenet's documentation gives as a maximum


def write_tenet(trace: Opened, path: str, **query: Any) -> dict[str, Any]:
    """Write ``rip=0x401000`` for each executed instruction; ``eip=`` of 16- and 32-bit code.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete.
    **query
        Which instructions; see `ptkit.decode.Query`. Streams are merged by time where there are several.

    Raises
    ------
    ConfigError
        If instructions of several threads are selected, or 64-bit code and other: Tenet has one path through
        one program.

    Notes
    -----
    Tenet (github.com/gaasedelen/tenet, ``tracers/README.md``) knows registers and memory, too; a trace has
    neither.
    """
    query = {name: value for name, value in query.items() if value is not None}
    if len(trace.opened.bundle.streams) > 1 and "stream" not in query:
        query.setdefault("order", "time")
    losses, lines = Losses(), _core.LineWriter(trace.opened.session, [])
    one_thread, rows = _OneThread(), 0
    with NewFile(path) as file:
        for part in table_parts(trace, "instructions", _COLUMNS, query, _ROWS, reuse=True):
            losses.of(part)
            if len(part):
                one_thread.check(part)
                rows += len(part)
                lines.begin(len(part))
                lines.number(np.ascontiguousarray(part["ip"]), "hex", before=f"{one_thread.register}=0x")
                lines.write(file.write, strip=False)
    notes = losses.notes()
    if rows > _RECOMMENDED:
        notes.append(
            f"{rows:,} instructions: Tenet is made for {_RECOMMENDED:,} at most; select a part (--time, "
            "--symbol)"
        )
    return {"bytes": file.bytes, "notes": notes}


class _OneThread:
    """The thread and the register of the first rows, which all others have to have."""

    def __init__(self) -> None:
        self.register = ""
        self._thread: tuple[int, int] | None = None
        self._begun = False

    def check(self, part: Table) -> None:
        """Refuse rows of another thread, or of code that is 64-bit where the first was not."""
        known = np.asarray(part["tid_known"])
        threads = [np.where(known, part[name], -1) for name in ("pid", "tid")]
        is_64: NDArray[np.bool_] = np.asarray(part["mode"]) == 64
        if not self._begun:
            self._begun = True
            self._thread = (int(threads[0][0]), int(threads[1][0]))
            self.register = "rip" if is_64[0] else "eip"
        assert self._thread is not None
        others = (threads[0] != self._thread[0]) | (threads[1] != self._thread[1])
        if others.any():
            row = int(others.argmax())
            second = int(threads[0][row]), int(threads[1][row])
            raise ConfigError(
                f"tenet: one thread is written, and {_named(self._thread)} and {_named(second)} are "
                "selected; choose one: tid=, --tid (ptkit info lists them)"
            )
        if (is_64 != (self.register == "rip")).any():
            raise ConfigError(
                "tenet: 64-bit code is selected and other code, too; select one of them (module=, --module)"
            )


def _named(thread: tuple[int, int]) -> str:
    return "a thread that is not known" if thread[1] < 0 else f"thread {thread[1]} of process {thread[0]}"
