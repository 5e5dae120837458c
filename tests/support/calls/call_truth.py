"""True call trees: from where the stack pointer was, without matching return addresses or names.

The recorder's log (`LoggedRecorder(transfers=FOLDER)`, src/capture/linux/encode/execution_log.h) has a row
for each transfer of control: from where, to where, and RSP there. A call stores its return address where
RSP then points. So

* a frame begins when a call has been executed; its *slot* is RSP at its first instruction;
* a frame is over when RSP is above its slot, as its return address was popped, or when another call has
  stored its return address at the slot or above;
* a jump to where another function begins, with RSP at the slot of the innermost frame, is a tail call: the
  stack is as if the caller had called that function. Both frames share the slot and end together;
* the dynamic linker's resolver of lazily bound functions is a frame instead of the function, which
  follows it;
* a signal's frame lies between RSP of the interrupted code and RSP at the handler's first instruction. It is
  over when RSP is what it was at the interruption; on an alternate stack, when the thread runs on the
  interrupted stack again;
* RSP in another stack without a signal: a coroutine. Frames of a stack wait until RSP is in it again.

What the log cannot show is where functions begin: `call_code` takes that from the files. Only three rules
need it: tail calls; stubs (a frame of the PLT, or of a retpoline, is that of the function to which the stub
leads, and begins there); and that calls within a function have no frame if they do not return to behind the
call (`call 1f; 1: pop`, retpolines).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from call_code import Mark, Words
from call_log import BEGIN, CALL, CALL_INDIRECT, FAR_CALL, FINISH, INTERRUPT, RETURN, SIGNAL, Log
from numpy.typing import NDArray

_NEVER = 1 << 62  # no RSP is above
_ON_OTHER_STACK = _NEVER - 1  # the same; a signal's frame on an alternate stack
_ROWS = 1 << 17
_RETPOLINE = 8  # instructions of a retpoline, at most


class How(IntEnum):
    """How a frame began."""

    ROOT = 0
    CALL = 1
    TAIL = 2
    PLT = 3
    SIGNAL = 4
    SYSCALL = 6


class EndHow(IntEnum):
    """How a frame ended. LEFT: it never returned, as control went on below it."""

    RETURN = 0
    LEFT = 1
    TAIL = 3
    END = 7


@dataclass
class _Open:
    """The open frames of a stack, innermost last: columns, as this is the busiest part."""

    frames: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)  # over when RSP is above
    entry_sps: list[int] = field(default_factory=list)  # RSP at the first instruction
    marks: list[int] = field(default_factory=list)
    stacks: list[int] = field(default_factory=list)
    parked_at: int = 0  # instructions before the stack was left


@dataclass
class Frames:
    """Frames in the order in which they became known; `parent` is -1 for the outermost.

    `instructions` are those of a frame and of the frames above it: not those of other stacks meanwhile. A
    signal's handler returns to code that makes a system call: its `return_ip` is 0.
    """

    entry_ip: Words
    call_ip: Words
    return_ip: Words
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    how: NDArray[np.int64]
    end_how: NDArray[np.int64]
    instructions: NDArray[np.int64]
    begin: NDArray[np.int64]  # row of the log
    end: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.entry_ip)


class _Walk:
    """Goes through a log, and writes down frames as they begin and end."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.open = _Open()
        self.parked: list[_Open] = []
        self.stack = 0
        self.interrupted_sp = 0
        self.bottom = 0  # depth of the next frame that is found below all others
        self.outermost = -1  # the frame that returned to it
        self.entry_ip, self.call_ip, self.return_ip = array("Q"), array("Q"), array("Q")
        self.parent, self.depth = array("q"), array("q")
        self.how, self.end_how = array("q"), array("q")
        self.begin, self.end = array("q"), array("q")
        self.away = array("q")  # instructions of other stacks meanwhile

    def push(
        self, row: int, how: How, entry: int, call: int, back: int, slot: int, sp: int, mark: int
    ) -> None:
        now = self.open
        frame = len(self.entry_ip)
        self.entry_ip.append(entry)
        self.call_ip.append(call)
        self.return_ip.append(back)
        self.parent.append(now.frames[-1] if now.frames else -1)
        self.depth.append(self.depth[now.frames[-1]] + 1 if now.frames else self.bottom)
        self.how.append(how)
        self.end_how.append(EndHow.END)
        self.begin.append(row)
        self.end.append(len(self.log.kind) - 1)
        self.away.append(0)
        now.frames.append(frame)
        now.slots.append(slot)
        now.entry_sps.append(sp)
        now.marks.append(mark)
        now.stacks.append(self.stack)

    def pop(self, row: int, how: EndHow) -> None:
        now = self.open
        frame = now.frames.pop()
        self.end[frame] = row
        self.end_how[frame] = how
        for column in (now.slots, now.entry_sps, now.marks, now.stacks):
            column.pop()

    def forget(self) -> None:
        """Drop the latest frame as if it never was."""
        columns = (self.entry_ip, self.call_ip, self.return_ip, self.parent, self.depth)
        for column in (*columns, self.how, self.end_how, self.begin, self.end, self.away):
            column.pop()

    def root(self, row: int, begins: bool, function: int, to: int, sp: int) -> None:
        """A frame that was entered before the log shows anything of its stack."""
        self.push(row, How.ROOT, function, 0, 0, _NEVER, sp if begins else -1, Mark.NONE)

    def caller(self, function: int, to: int, sp: int) -> None:
        """The caller of what was the outermost frame of the stack. It is as old as that."""
        row, away = 0, 0
        if self.outermost >= 0:
            self.parent[self.outermost] = len(self.parent)
            row, away = self.begin[self.outermost], self.away[self.outermost]
        self.outermost = -1
        self.root(row, False, function, to, sp)
        self.away[-1] = away

    def leave(self, row: int, first: int, to: int, may_return: bool) -> None:
        """End the frames from the `first` on. The outermost one returned if control is behind its call."""
        now = self.open
        slot = now.slots[first]
        returned = may_return and self.return_ip[now.frames[first]] in (to, 0)
        behind = first + 1
        while behind < len(now.frames) and now.slots[behind] == slot:
            behind += 1
        while len(now.frames) > behind:
            self.pop(row, EndHow.LEFT)
        self.pop(row, EndHow.RETURN if returned else EndHow.LEFT)
        while len(now.frames) > first:
            self.pop(row, EndHow.TAIL if returned else EndHow.LEFT)

    def leave_by_sp(self, row: int, kind: int, to: int, sp: int, *, resumed: bool = False) -> None:
        """End the frames of which the return address lies below RSP.

        Code that goes on with another stack may return there by a jump: `resumed`.
        """
        slots = self.open.slots
        first = len(slots)
        while first and slots[first - 1] < sp:
            first -= 1
        if first < len(slots):
            self.leave(row, first, to, resumed or kind in (RETURN, FAR_CALL))
        elif kind == RETURN and slots[-1] == _NEVER:
            self.outermost = self.open.frames[0]
            self.leave(row, 0, to, True)
            self.bottom -= 1

    def change_stack(self, row: int, kind: int, to: int, stack: int) -> bool:
        """RSP is in another stack. Returns whether nothing is known of that stack."""
        self.stack = stack
        now = self.open
        if stack in now.stacks:  # the interrupted one
            below = len(now.stacks) - 1 - now.stacks[::-1].index(stack)
            self.leave(row, below + 1, to, kind == FAR_CALL)
            return False
        now.parked_at = int(self.log.instructions[row])
        self.parked.append(now)
        self.open = next((one for one in self.parked if stack in one.stacks), _Open())
        if self.open in self.parked:
            self.parked.remove(self.open)
            self.resume(self.open, row)
        return not self.open.frames

    def resume(self, stack: _Open, row: int) -> None:
        for frame in stack.frames:
            self.away[frame] += int(self.log.instructions[row]) - stack.parked_at

    def signal(self, row: int, call: int, entry: int, sp: int, stack: int) -> None:
        slot = self.interrupted_sp - 1 if stack == self.stack else _ON_OTHER_STACK
        self.stack = stack
        top = self.open.frames[-1]
        executed = self.log.instructions[row] - self.log.instructions[self.begin[top]]
        if self.how[top] == How.SIGNAL and executed == 0:
            # Two signals are delivered at once. The handler of the first one begins when the second one ends.
            call, slot = self.call_ip[top], self.open.slots[-1]
            self.pop(row, EndHow.RETURN)
            self.forget()
        self.push(row, How.SIGNAL, entry, call, call, slot, sp, Mark.NONE)

    def system_call(self, row: int, from_ip: int, next_ip: int, to: int, sp: int, stack: int) -> None:
        """A leaf, by which a thread may leave a signal's handler."""
        self.push(row, How.SYSCALL, 0, from_ip, next_ip, 0, 0, Mark.NONE)
        self.pop(row, EndHow.RETURN if to else EndHow.END)
        if to in (next_ip, from_ip, 0):
            return
        before = len(self.open.frames)
        if stack != self.stack:
            self.change_stack(row, FAR_CALL, to, stack)
        self.leave_by_sp(row, FAR_CALL, to, sp)
        handled = any(self.how[frame] == How.SIGNAL for frame in self.open.frames)
        if len(self.open.frames) < before or not handled:
            return
        # Two signals were delivered at once, the second as if it had interrupted the handler of the first.
        while self.how[self.open.frames[-1]] != How.SIGNAL:
            self.pop(row, EndHow.LEFT)
        call, slot = self.call_ip[self.open.frames[-1]], self.open.slots[-1]
        self.pop(row, EndHow.RETURN)
        self.push(row, How.SIGNAL, to, call, call, slot, sp, Mark.NONE)

    def run(self) -> Frames:
        log = self.log
        columns = (log.kind, log.from_ip, log.next_ip, log.to_ip, log.sp)
        columns += (log.function, log.begins, log.leaves, log.mark, log.stack)
        for first in range(0, len(log.kind), _ROWS):
            rows = range(first, min(first + _ROWS, len(log.kind)))
            self.rows(zip(rows, *(column[first : first + _ROWS].tolist() for column in columns), strict=True))
        for one in self.parked:
            self.resume(one, len(log.kind) - 1)
        return self.frames()

    def rows(self, rows: Iterable[tuple[int, ...]]) -> None:
        for row, kind, from_ip, next_ip, to, sp, function, begins, leaves, mark, stack in rows:
            if kind == BEGIN:
                self.stack = stack
                self.root(row, bool(begins) or not function, function, to, sp)
                continue
            if kind == SIGNAL:
                self.signal(row, from_ip, to, sp, stack)
                continue
            if kind == FAR_CALL:
                self.system_call(row, from_ip, next_ip, to, sp, stack)
                continue
            resumed = stack != self.stack and to != 0
            if resumed and self.change_stack(row, kind, to, stack):
                self.root(row, bool(begins), function, to, sp)
                continue
            now = self.open
            if kind in (CALL, CALL_INDIRECT):
                while now.slots and now.slots[-1] <= sp:  # the return address of this call lies there now
                    self.pop(row, EndHow.LEFT)
                self.push(row, How.CALL, to, from_ip, next_ip, sp, sp, mark)
            elif kind != FINISH:
                if now.slots and (now.slots[-1] < sp or kind == RETURN):
                    self.leave_by_sp(row, kind, to, sp, resumed=resumed)
                if not self.open.frames:
                    self.caller(function, to, sp)
                elif begins and (leaves or (kind == RETURN and self.branches_within(row))):
                    self.jump(row, kind, from_ip, to, sp, mark)
                if kind == INTERRUPT:
                    self.interrupted_sp = sp

    def branches_within(self, row: int) -> bool:
        """Whether the innermost frame, a call within a function, has only done what a retpoline does."""
        frame = self.open.frames[-1]
        begin = self.begin[frame]
        few = self.log.instructions[row] - self.log.instructions[begin] <= _RETPOLINE
        is_inner = not self.log.begins[begin] and not self.log.leaves[begin]
        return bool(few and is_inner and self.how[frame] == How.CALL)

    def jump(self, row: int, kind: int, from_ip: int, to: int, sp: int, mark: int) -> None:
        """To the begin of another function."""
        now = self.open
        frame = now.frames[-1]
        if now.marks[-1] == Mark.RESOLVER:
            # The function that was called replaces the resolver.
            how, call, back = How(self.how[frame]), self.call_ip[frame], self.return_ip[frame]
            slot = now.slots[-1]
            self.pop(row, EndHow.TAIL)
            self.push(row, how, to, call, back, slot, sp, mark)
        elif now.marks[-1] != Mark.NONE:
            if now.marks[-1] != Mark.THUNK and mark == Mark.NONE and self.how[frame] == How.CALL:
                self.how[frame] = How.PLT
            now.marks[-1] = Mark.RESOLVER if now.marks[-1] == Mark.LAZY else mark
            self.entry_ip[frame] = to
            self.begin[frame] = row
        elif kind == RETURN and self.branches_within(row):
            self.entry_ip[frame] = to
            self.begin[frame] = row
            now.marks[-1] = mark
        elif now.entry_sps[-1] == sp:
            self.push(row, How.TAIL, to, from_ip, self.return_ip[frame], now.slots[-1], sp, mark)

    def frames(self) -> Frames:
        """Without calls that have no frame."""
        begin = np.array(self.begin, np.int64)
        end = np.array(self.end, np.int64)
        how, end_how = np.array(self.how, np.int64), np.array(self.end_how, np.int64)
        log = self.log
        inner = ~log.begins[begin] & ~log.leaves[begin] & (how == How.CALL) & (end_how != EndHow.RETURN)
        parent = np.array(self.parent, np.int64)
        depth = np.array(self.depth, np.int64)
        # In each turn, what lies one frame further above a dropped frame.
        above = inner
        while above.any():
            above = (parent >= 0) & above[parent]
            depth[above] -= 1
        while (dropped := (parent >= 0) & inner[parent]).any():
            parent[dropped] = parent[parent[dropped]]
        keep = np.flatnonzero(~inner)
        number = np.cumsum(~inner) - 1
        instructions = log.instructions.astype(np.int64)
        executed = instructions[end] - instructions[begin] - np.array(self.away, np.int64)
        parent = np.where(parent[keep] >= 0, number[parent[keep]], -1)
        return Frames(
            entry_ip=np.array(self.entry_ip, np.uint64)[keep],
            call_ip=np.array(self.call_ip, np.uint64)[keep],
            return_ip=np.where(how == How.SIGNAL, 0, np.array(self.return_ip, np.uint64))[keep],
            parent=parent,
            depth=depth[keep],
            how=how[keep],
            end_how=end_how[keep],
            instructions=executed[keep],
            begin=begin[keep],
            end=end[keep],
        )


def true_frames(log: Log) -> Frames:
    """The frames of a thread, by its log."""
    return _Walk(log).run()
