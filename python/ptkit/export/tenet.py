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
_COLUMNS = ("ip", "mode", "stream", "pid", "tid", "tid_known")
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
    one_thread, rows, has_time = _OneThread(), 0, dict[int, bool]()
    columns = (*_COLUMNS, "time_known") if "order" in query else _COLUMNS
    with NewFile(path) as file:
        for part in table_parts(trace, "instructions", columns, query, _ROWS, reuse=True):
            losses.of(part)
            if len(part):
                one_thread.check(part)
                rows += len(part)
                if "order" in query:
                    _note_times(part, has_time)
                lines.begin(len(part))
                lines.number(np.ascontiguousarray(part["ip"]), "hex", before=f"{one_thread.register}=0x")
                lines.write(file.write, strip=False)
    notes = losses.notes()
    untimed = sorted(stream for stream, known in has_time.items() if not known)
    if len(has_time) > 1 and untimed:
        which = ("streams " if len(untimed) > 1 else "stream ") + ", ".join(map(str, untimed))
        notes.append(
            f"no times in {which}: it is not known what the thread executed there before the other streams, "
            "and what after; select one (--stream), or record with times"
        )
    if rows > _RECOMMENDED:
        notes.append(
            f"{rows:,} instructions: Tenet is made for {_RECOMMENDED:,} at most; select a part (--time, "
            "--symbol)"
        )
    return {"bytes": file.bytes, "notes": notes}


def _note_times(part: Table, has_time: dict[int, bool]) -> None:
    """Note for each stream with rows whether one of them has a time."""
    streams = np.asarray(part["stream"])
    timed = np.asarray(part["time_known"])
    for stream in np.unique(streams).tolist():
        has_time[stream] = has_time.get(stream, False) or bool(timed[streams == stream].any())


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
