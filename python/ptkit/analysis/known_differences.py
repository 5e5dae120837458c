"""Differences from libipt that are expected, each with its reason.

An expected difference is a row here, never a silent skip: `verify` counts how often each was met.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ptkit._core import BranchKind, ErrorCode, EventFlag, EventKind, PacketKind, RowFlag
from ptkit.analysis.lockstep import Arrays

Version = tuple[int, int]
NEVER: Version = (99, 0)

#: Packet kinds that libipt knows since a version only: (version, reason).
PACKETS: Mapping[PacketKind, tuple[Version, str]] = {
    **dict.fromkeys(
        (PacketKind.BBP, PacketKind.BIP, PacketKind.BEP),
        (NEVER, "PEBS blocks (BBP, BIP, BEP) are unknown to every libipt; it goes on at the next PSB"),
    ),
    **dict.fromkeys(
        (PacketKind.CFE, PacketKind.EVD),
        ((2, 1), "event trace (CFE, EVD) is unknown to libipt before 2.1; it goes on at the next PSB"),
    ),
    PacketKind.TRIG: ((2, 2), "TRIG is unknown to libipt before 2.2; it goes on at the next PSB"),
}

#: Event kinds that libipt gives since a version only: (version, reason).
EVENTS: Mapping[EventKind, tuple[Version, str]] = {
    **dict.fromkeys(
        (EventKind.PEBS_BEGIN, EventKind.PEBS_ITEM, EventKind.PEBS_END),
        (NEVER, "libipt gives no PEBS blocks"),
    ),
    EventKind.EVENT_DATA: (NEVER, "libipt gives no event data that belongs to no event"),
    EventKind.TICK: (NEVER, "ticks follow each engine's own clock"),
    EventKind.IFLAG: ((2, 1), "the interrupt flag is unknown to libipt before 2.1"),
    **dict.fromkeys(
        (
            *(
                EventKind.INTERRUPT,
                EventKind.IRET,
                EventKind.SMI,
                EventKind.RSM,
                EventKind.SIPI,
                EventKind.INIT,
            ),
            *(EventKind.VMENTRY, EventKind.VMEXIT, EventKind.SHUTDOWN, EventKind.UINTR, EventKind.UIRET),
        ),
        ((2, 1), "libipt gives event trace since 2.1"),
    ),
    **dict.fromkeys(
        (EventKind.TRIG, EventKind.SWINTR, EventKind.SYSCALL), ((2, 2), "libipt gives these since 2.2")
    ),
    **dict.fromkeys(
        (EventKind.EXSTOP, EventKind.MWAIT, EventKind.PWRE, EventKind.PWRX),
        ((2, 1), "libipt before 2.1 gives power events in another order"),
    ),
}

_UNKNOWN_PACKETS = tuple(dict.fromkeys(reason for _, reason in PACKETS.values()))
_STATUS = np.uint16(EventFlag.STATUS)
_IF = np.uint64(4)  # of MODE.Exec's payload2
_EVENT_EN = 1 << 31  # of IA32_RTIT_CTL: event trace is on
_IP_KNOWN = np.uint16(EventFlag.IP_KNOWN)

BOTH_FAILED = "both engines met an error; they may take the stream up again at different PSBs"
FILTER_EXIT = "a TIP.PGD without IP at a near branch is an error to libipt before 2.1"
EVENT_TRACE = "the interrupt flag of MODE.Exec, and what binds to it, is unknown to libipt before 2.1"
NEAR = 64  # libipt notices an error within so many bytes after what it cannot judge
LAST_EXIT = (
    "libipt before 2.1 does not report that tracing ended at a TIP.PGD without IP that is the last packet"
)

CUT = "libipt takes a packet that the stream's end cuts for the end, and walks on to where it needs more"

#: Possible cause of a difference right after a near RET; nothing proves it.
HINT_RETURN = (
    "libipt does not pop its call stack at a near RET that came as a TIP, as the manual says it is;"
    " after longjmp or exceptions its compressed returns go elsewhere"
)
HINT_BAD_CODE = "libipt looks at lengths only and goes on in bytes that are no instruction; ptkit does not"
#: Instructions, by the beginning of their text, that some version does not know.
HINT_INSTRUCTIONS = {
    name: f"libipt before {version} does not know {name.upper()}"
    for name, version in (("eretu", "2.2"), ("erets", "2.2"), ("jmpabs", "2.2"), ("uiret", "2.1"))
}


class Expectations:
    """Decides whether an error of the reference explains that we have more.

    Parameters
    ----------
    version : tuple of int
        (major, minor) of the libipt that this build knows.

    Attributes
    ----------
    tail : tuple of (int, str) or None
        Stream offset from which we may have more at the end, and why.
    """

    def __init__(self, version: Version) -> None:
        self._version = version
        # Stream offsets of what the reference cannot judge, in order, by reason.
        self._suspects: dict[str, list[int]] = {FILTER_EXIT: [], EVENT_TRACE: []}
        self._psbs: list[int] = []
        self._errors: list[int] = []
        self.tail: tuple[int, str] | None = None

    def note_packets(self, packets: Arrays) -> Arrays:
        """Remember the packets of a part of ours that matter here; takes every row."""
        kinds = packets["kind"]
        offsets = packets["offset"]
        for reason in _UNKNOWN_PACKETS:
            unknown = [
                kind for kind, (since, why) in PACKETS.items() if why == reason and self._version < since
            ]
            self._suspects.setdefault(reason, []).extend(offsets[np.isin(kinds, unknown)].tolist())
        self._psbs += offsets[kinds == PacketKind.PSB].tolist()
        if self._version < (2, 1):
            exits = (kinds == PacketKind.TIP_PGD) & (packets["payload2"] == 0)
            self._suspects[FILTER_EXIT] += offsets[exits].tolist()
            flagged = (kinds == PacketKind.MODE_EXEC) & (packets["payload2"].astype(np.uint64) & _IF != 0)
            self._suspects[EVENT_TRACE] += offsets[flagged].tolist()
            if (kinds != PacketKind.PAD).any():
                last = int(np.flatnonzero(kinds != PacketKind.PAD)[-1])
                self.tail = (int(offsets[last]), LAST_EXIT) if exits[last] else None
        return self.drop_interrupt_flag(packets)

    def drop_interrupt_flag(self, packets: Arrays) -> Arrays:
        """Take MODE.Exec without its interrupt flag, where libipt does not know it."""
        if self._version >= (2, 1):
            return packets
        payload2 = packets["payload2"].astype(np.uint64)
        modes = packets["kind"] == PacketKind.MODE_EXEC
        return packets | {"payload2": np.where(modes, payload2 & ~_IF, payload2)}

    def note_errors(self, offsets: Sequence[int]) -> None:
        """Remember where our own decoder met errors."""
        self._errors = sorted(offsets)

    def explain_packet(self, our_errors: Callable[[], Sequence[int]], error: Mapping[str, int]) -> str | None:
        """Like `explain`, for packets: ours is an error there too, or a packet that the reference lacks."""
        offset = error["offset"]
        if offset in our_errors():
            return BOTH_FAILED
        for reason in _UNKNOWN_PACKETS:
            offsets = self._suspects.get(reason, [])
            nearest = bisect_left(offsets, offset)
            if nearest < len(offsets) and offsets[nearest] == offset:
                return reason
        return None

    def explain(self, error: Mapping[str, int]) -> str | None:
        """Why the reference has this error and we need not have it; None: there is no reason known."""
        offset = error["offset"]
        # Of an error in a PSB+ header only the PSB is known.
        end = self._next_psb(offset) if self.resumed_at(offset) == offset else offset
        for reason, offsets in self._suspects.items():
            nearest = bisect_right(offsets, end) - 1
            least = offset if reason in _UNKNOWN_PACKETS else offset - NEAR
            if nearest >= 0 and offsets[nearest] >= least:
                return reason
        return BOTH_FAILED if self._failed_near(offset) else None

    def _next_psb(self, offset: int) -> int:
        after = bisect_right(self._psbs, offset)
        return self._psbs[after] if after < len(self._psbs) else 2**64 - 1

    @staticmethod
    def cut(error: Mapping[str, int]) -> str | None:
        """Why the reference may have more rows after our last error; None: there is no reason known."""
        return CUT if error["code"] == ErrorCode.TRUNCATED_PACKET else None

    def resumed_at(self, offset: int) -> int:
        """Return the offset of the last PSB up to a stream offset."""
        before = bisect_right(self._psbs, offset)
        return self._psbs[before - 1] if before else 0

    def _failed_near(self, offset: int) -> bool:
        """Did we meet an error in the PSB interval of this offset, or in the one before?"""
        interval = bisect_right(self._psbs, offset)
        begin = self._psbs[interval - 2] if interval >= 2 else 0
        end = self._psbs[interval] if interval < len(self._psbs) else offset + 1
        first = bisect_left(self._errors, begin)
        return first < len(self._errors) and self._errors[first] < max(end, offset + 1)


class EventFilter:
    """Takes the events of one engine that both give, and of these what both say.

    Parameters
    ----------
    version : tuple of int
        (major, minor) of the libipt that this build knows.
    rtit_ctl : int or None
        IA32_RTIT_CTL, if the input gives it.
    """

    def __init__(self, version: Version, rtit_ctl: int | None) -> None:
        self._left_out = [int(kind) for kind, (since, _) in EVENTS.items() if version < since]
        if rtit_ctl is None or not rtit_ctl & _EVENT_EN:
            # libipt gives IFLAG if enable_iflags_events is set (EventEn); ptkit also if packets prove it.
            self._left_out.append(int(EventKind.IFLAG))
        self._mode: int | None = None

    def prepare(self, events: Arrays) -> Arrays:
        """Leave out what repeats state (each version repeats other things) or comes from one engine only."""
        kinds = events["kind"]
        flags = events["flags"].astype(np.uint16)
        mask: NDArray[np.bool_] = ~np.isin(kinds, self._left_out) & (flags & _STATUS == 0)
        for row in np.flatnonzero(kinds == EventKind.EXEC_MODE).tolist():
            mode = int(events["payload"][row])
            mask[row] &= mode != self._mode
            self._mode = mode
        taken = {name: array[mask] for name, array in events.items()}
        # libipt leaves an IP out where the instruction is obvious from the code.
        taken["known_ip"] = taken["flags"].astype(np.uint16) & _IP_KNOWN != 0
        taken["flags"] = taken["flags"].astype(np.uint16) & ~_IP_KNOWN
        # libipt counts the instructions of a TRIG down to where it reports it.
        taken["known_payload2"] = taken["kind"] != EventKind.TRIG
        return taken


def conditionals(branches: Arrays) -> Arrays:
    """Take conditional branches only."""
    mask = branches["kind"] == BranchKind.COND
    taken = {name: array[mask] for name, array in branches.items()}
    # Where libipt stopped right after a branch it does not report the target.
    known = taken["flags"].astype(np.uint8) & np.uint8(RowFlag.TO_KNOWN) != 0
    return taken | {"known_to_ip": known, "known_flags": known}
