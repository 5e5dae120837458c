"""Branches of one thread, in their order, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit.analysis.diff.joining import Window
from ptkit.analysis.diff.keys import Keys
from ptkit.table import Table

__all__ = ["COLUMNS", "Arrays", "Loss", "Row", "Sequence", "arrays_of"]

#: Columns of branches that are compared.
COLUMNS = ("from_ip", "to_ip", "kind", "flags", "instruction", "stream", "space")

Arrays = dict[str, NDArray[Any]]

_KINDS = _core.BranchKind
_JUMPS = [int(kind) for kind in (_KINDS.COND, _KINDS.JUMP, _KINDS.JUMP_INDIRECT)]
_PAUSES = np.zeros(256, np.bool_)  # kinds after which code elsewhere is that of a signal handler
_PAUSES[[int(kind) for kind in (_KINDS.ASYNC, _KINDS.SYSCALL, _KINDS.FAR_CALL)]] = True
_ASYNC = int(_KINDS.ASYNC)
_DELTA = np.zeros(256, np.int8)
_DELTA[[int(_KINDS.CALL), int(_KINDS.CALL_INDIRECT)]] = 1
_DELTA[int(_KINDS.RETURN)] = -1
_IS_JUMP = np.zeros(256, np.bool_)
_IS_JUMP[_JUMPS] = True
_IS_PLAIN_JUMP = np.zeros(256, np.bool_)
_IS_PLAIN_JUMP[_JUMPS[1:]] = True
_RETURN = int(_KINDS.RETURN)
_NEAR_ROWS = 1 << 12
_NEAR = np.uint64(4096)  # bytes of code without a branch
_KERNEL = np.uint64(1 << 63)
_NOWHERE = np.uint64(2**64 - 1)
_MOST_HANDLERS = 64
_NO_LOSS = tuple(int(cause) for cause in (_core.GapCause.START, _core.GapCause.FILTERED))


class Loss(NamedTuple):
    """Rows are missing before the row with this number of instructions of a stream."""

    stream: int
    instruction: int
    text: str


class Row(NamedTuple):
    """One branch."""

    position: int
    from_ip: int
    to_ip: int
    kind: int
    flags: int
    instruction: int
    stream: int
    space: int
    from_key: int
    to_key: int
    file: int
    to_file: int
    enters: bool


_ROW = Row._fields[1:-1]


def arrays_of(part: Table) -> Arrays:
    """Columns of a part; some may share its memory."""
    arrays = {name: np.asarray(part[name]) for name in COLUMNS}
    arrays["known"] = np.asarray(part["from_known"])
    arrays["to_known"] = np.asarray(part["to_known"])
    return arrays


def losses_of(part: Table) -> list[Loss]:
    """Gaps that came up in a part, and errors without one."""
    found, met = [], set()
    for table in (part.gaps, part.errors):
        if table is None or not len(table):
            continue
        is_gaps = table is part.gaps
        streams, numbers = table["stream"].tolist(), table["instruction"].tolist()
        for row, (location, text) in enumerate(
            zip(zip(streams, numbers, strict=True), table.messages(), strict=True)
        ):
            if is_gaps:
                met.add(location)
                if int(table["cause"][row]) in _NO_LOSS:
                    continue
            elif location in met:
                continue
            found.append(Loss(*location, text))
    return found


def _is_near(ip: int, before: int) -> bool:
    """Whether code may have gone on from an address to another one without a branch."""
    return (ip - before) % 2**64 < int(_NEAR)


class Sequence:
    """The rows of a thread before and after a cursor.

    Parameters
    ----------
    parts : iterable of (mapping of arrays, list of Loss)
        Columns `COLUMNS`, ``known`` and ``to_known`` of parts of the branches.
    keys : Keys
    own : numpy.ndarray of bool
        By number of a file: it is the program's own; one more for code in no file.
    with_kernel : bool
        Compare code of the kernel, too.
    """

    def __init__(
        self,
        parts: Iterable[tuple[Mapping[str, NDArray[Any]], list[Loss]]],
        keys: Keys,
        own: NDArray[np.bool_],
        *,
        with_kernel: bool = False,
    ) -> None:
        self._parts: Iterator[tuple[Mapping[str, NDArray[Any]], list[Loss]]] = iter(parts)
        self._keys = keys
        self._own = own
        self._with_kernel = with_kernel
        self._arrays: Arrays = {}
        self._cursor = 0
        self._rows = 0
        self._handlers: list[int] = []  # addresses that signals interrupted
        self._last: tuple[int, bool] | None = None  # of the row before: address, if control may go elsewhere
        self._enters_next = False
        self.position = 0
        self.has_ended = False
        self.losses: list[Loss] = []  # not passed yet
        self.before: Row | None = None  # the row before the cursor
        self.own_before: Row | None = None  # the last row before the cursor that is of the program's own code

    # Reading.

    def fill(self, count: int = 1) -> int:
        """Have at least so many rows after the cursor, if there are; return how many there are."""
        parts: list[Arrays] = []
        available = self._rows - self._cursor
        while available < count and not self.has_ended:
            if not parts and available:
                # Parts share memory: what is left of the last one is kept before the next one comes.
                parts = [{name: array[self._cursor :].copy() for name, array in self._arrays.items()}]
            elif parts:
                parts[-1] = {name: array.copy() for name, array in parts[-1].items()}
            found = next(self._parts, None)
            if found is None:
                self.has_ended = True
                break
            arrays, losses = found
            self.losses += losses
            parts.append(self._prepared(arrays))
            available += len(parts[-1]["key"])
        if parts:
            names = parts[-1].keys()
            single = len(parts) == 1
            self._arrays = (
                parts[0]
                if single
                else {name: np.concatenate([part[name] for part in parts]) for name in names}
            )
            self._cursor, self._rows = 0, available
        return available

    def _prepared(self, part: Mapping[str, NDArray[Any]]) -> Arrays:
        """Rows of the program's own path, with keys."""
        from_ip, kind = part["from_ip"], part["kind"]
        arrays = dict(part)
        if not self._with_kernel:
            user = from_ip < _KERNEL
            if not user.all():
                arrays = {name: array[user] for name, array in arrays.items()}
                from_ip, kind = arrays["from_ip"], arrays["kind"]
            in_kernel = arrays["to_ip"] >= _KERNEL
            if in_kernel.any():
                arrays["to_known"] = arrays["to_known"] & ~in_kernel
        enter = self._entries(from_ip, kind, arrays["known"])
        dropped = kind == _ASYNC
        if dropped.any():
            kept = np.flatnonzero(~dropped)
            # A handler begins before the next row that is kept.
            enters = np.searchsorted(kept, np.flatnonzero(enter))
            self._enters_next, carried = bool((enters == len(kept)).any()), self._enters_next
            arrays = {name: array[kept] for name, array in arrays.items()}
            enter = np.zeros(len(kept), np.bool_)
            enter[enters[enters < len(kept)]] = True
            if carried and len(kept):
                enter[0] = True
            elif carried:
                self._enters_next = True
        elif self._enters_next and len(enter):
            enter[0], self._enters_next = True, False
        begin = self._keys.locations(arrays["from_ip"], arrays["space"], arrays["known"])
        end = self._keys.locations(arrays["to_ip"], arrays["space"], arrays["to_known"])
        arrays["key"] = Keys.of_rows(begin, end, arrays["kind"])
        arrays["from_key"], arrays["to_key"], arrays["file"] = begin.key, end.key, begin.file
        arrays["to_file"] = end.file
        arrays["enter"] = enter
        inside = self._keys.inside(begin, end)
        return arrays if inside is None else {name: array[~inside] for name, array in arrays.items()}

    def _entries(
        self, from_ip: NDArray[np.uint64], kind: NDArray[np.uint8], known: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Rows before which a signal handler began: after a pause, control went on elsewhere."""
        enter = np.zeros(len(from_ip), np.bool_)
        if not len(from_ip):
            return enter
        pauses = _PAUSES[kind] & known
        far = pauses[:-1] & known[1:] & (from_ip[1:] - from_ip[:-1] >= _NEAR)
        rows = (np.flatnonzero(far) + 1).tolist()
        last = self._last
        if last is not None and last[1] and known[0] and not _is_near(int(from_ip[0]), last[0]):
            rows.insert(0, 0)
        for row in rows:
            interrupted = int(from_ip[row - 1]) if row else last[0] if last is not None else 0
            now = int(from_ip[row])
            for at in range(len(self._handlers) - 1, -1, -1):
                if _is_near(now, self._handlers[at]):
                    del self._handlers[at:]  # the handler returned
                    break
            else:
                self._handlers = [*self._handlers, interrupted][-_MOST_HANDLERS:]
                enter[row] = True
        self._last = int(from_ip[-1]), bool(pauses[-1])
        return enter

    # Rows after the cursor.

    def ahead(self, name: str, count: int) -> NDArray[Any]:
        """Values of the next rows."""
        if not self._arrays:
            return np.zeros(0, np.uint64)
        return self._arrays[name][self._cursor : self._cursor + count]

    def row(self, ahead: int = 0) -> Row | None:
        """A row after the cursor; None: there is none."""
        return self._row(self._cursor + ahead) if self.fill(ahead + 1) > ahead else None

    def _row(self, index: int) -> Row:
        cells = {name: int(self._arrays[name][index]) for name in _ROW}
        return Row(self.position + index - self._cursor, enters=bool(self._arrays["enter"][index]), **cells)

    def window(self, count: int) -> Window:
        """The next rows, for a search."""
        count = min(count, self.fill(count))
        names = ("key", "to_key", "kind", "enter", "from_ip", "to_ip")
        key, target, kind, enter, from_ip, to_ip = (self.ahead(name, count) for name in names)
        if not self._arrays:
            kind, enter = kind.astype(np.uint8), enter.astype(np.bool_)
        back = _IS_JUMP[kind] & (to_ip < from_ip)
        return Window(
            key,
            target,
            _DELTA[kind],
            enter,
            from_ip,
            np.where(back, to_ip, _NOWHERE),
            self.has_ended and count == self._rows - self._cursor,
        )

    # The cursor.

    def advance(self, count: int) -> None:
        """Move the cursor over rows that are there."""
        if not count:
            return
        for end in range(count, 0, -_NEAR_ROWS):
            if len(found := np.flatnonzero(self._is_own(max(end - _NEAR_ROWS, 0), end))):
                self.own_before = self._row(self._cursor + max(end - _NEAR_ROWS, 0) + int(found[-1]))
                break
        self.before = self._row(self._cursor + count - 1)
        self._cursor += count
        self.position += count

    def _is_own(self, first: int, end: int) -> NDArray[np.bool_]:
        """Rows of the program's own code, or back to it, but for jumps: those of the PLT are among them."""
        kind = self.ahead("kind", end)[first:]
        own: NDArray[np.bool_] = self._own[self.ahead("file", end)[first:]] & ~_IS_PLAIN_JUMP[kind]
        own |= self._own[self.ahead("to_file", end)[first:]] & (kind == _RETURN)
        return own

    def skip(self, count: int) -> int:
        """Move the cursor, also over rows that have yet to be read; return how far it went."""
        left = count
        while left and (available := self.fill(1)):
            step = min(left, available)
            self.advance(step)
            left -= step
        return count - left

    def skip_frames(self, level: int) -> bool:
        """Move the cursor after the row that leaves so many frames, and one more; False: to the end."""
        opened = 0
        while available := self.fill(1):
            window = self.window(available)
            before = np.cumsum(window.delta, dtype=np.int64) + np.cumsum(window.enter) + opened
            left = before < -level
            if left.any():
                self.advance(int(np.argmax(left)) + 1)
                return True
            opened = int(before[-1])
            self.advance(available)
        return False

    def rest(self) -> int:
        """Move the cursor to the end; return how many rows that were."""
        begin = self.position
        while available := self.fill(1):
            self.advance(available)
        return self.position - begin

    def passed_losses(self) -> list[Loss]:
        """Losses before the row after the cursor, once."""
        if not self.losses:
            return []
        row = self.row()
        if row is None:
            found, self.losses = self.losses, []
            return found
        found = [
            one for one in self.losses if one.stream == row.stream and one.instruction <= row.instruction
        ]
        self.losses = [one for one in self.losses if one not in found]
        return found
