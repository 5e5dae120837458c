"""ptkit against libipt, in lock step: packets, instructions, conditional branches, events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from ptkit import _core
from ptkit._core import ErrorCode, ErrorFlag, InsnClass, PacketFlag, PacketKind
from ptkit.analysis.known_differences import (
    HINT_BAD_CODE,
    HINT_INSTRUCTIONS,
    HINT_RETURN,
    EventFilter,
    Expectations,
    conditionals,
)
from ptkit.analysis.lockstep import PART_ROWS, Allowed, Arrays, Comparison, Rows, compare
from ptkit.decode import Opened
from ptkit.errors import UnsupportedError
from ptkit.support.text import counted

__all__ = ["Difference", "Instruction", "Report", "verify"]

ENGINES = ("ptkit", "libipt")
PACKET_KEYS = ("offset", "size", "kind", "flags", "ip", "payload", "payload2")
INSTRUCTION_KEYS = ("ip", "size", "mode", "flags")
BRANCH_KEYS = ("from_ip", "to_ip", "flags")
EVENT_KEYS = ("kind", "ip", "payload", "payload2", "payload3", "flags")
EXTRA = {"instructions": ("cls",), "branches": ("kind",)}  # read beside the keys
PASSES = 4  # tables that are compared of every stream, one after the other
NO_PACKETS = "a stream has branch records, which libipt does not decode"
AROUND = 6  # packets shown before and after a difference

Prepare = Callable[[Arrays], Arrays]


@dataclass(frozen=True)
class Instruction:
    """An instruction beside a difference: where, its bytes (hexadecimal) and its text."""

    ip: int
    code: str
    text: str


@dataclass(frozen=True)
class Difference:
    """The first difference between the two engines.

    Attributes
    ----------
    level : str
        ``"packets"``, ``"instructions"``, ``"branches"`` or ``"events"``.
    stream : int
        Index of the stream.
    offset : int
        Stream offset of the packet that decided our row (of theirs, if ours has ended).
    row : int
        How many rows of the table were equal before.
    ours, reference : dict or None
        The rows that differ, by column; None: no more rows.
    error : str or None
        An error of the reference where ours has none.
    hint : str or None
        A known difference that this may be.
    packets : tuple of str
        Packets around the offset, ours.
    ours_before, reference_before : tuple of Instruction
        The last instructions of both, oldest first, the one that differs last.
    """

    level: str
    stream: int
    offset: int
    row: int
    ours: Mapping[str, int] | None
    reference: Mapping[str, int] | None
    error: str | None
    hint: str | None
    packets: tuple[str, ...]
    ours_before: tuple[Instruction, ...]
    reference_before: tuple[Instruction, ...]

    def __str__(self) -> str:
        lines = [
            f"first difference: {self.level}, stream {self.stream}, offset {self.offset:#x},"
            f" after {self.row} equal rows"
        ]
        lines += [f"  ptkit:  {_row_text(self.ours)}", f"  libipt: {_row_text(self.reference)}"]
        if self.error is not None:
            lines.append(f"  libipt: {self.error}")
        if self.hint is not None:
            lines.append(f"  perhaps: {self.hint}")
        lines += ["  packets:", *(f"    {packet}" for packet in self.packets)]
        for name, instructions in (("ptkit", self.ours_before), ("libipt", self.reference_before)):
            if instructions:
                lines.append(f"  instructions of {name}:")
                lines += [f"    {one.ip:016x}  {one.code:<30}  {one.text}" for one in instructions]
        return "\n".join(lines)


@dataclass(frozen=True)
class Report:
    """Numbers of rows compared, and the first difference if there is one.

    Attributes
    ----------
    reference : str
        Version of libipt.
    matched : dict
        Equal rows by table.
    unjudged : dict
        Rows of ours, by table, that libipt could not judge.
    reasons : dict
        Why, with how often.
    errors, reference_errors : int
        Error rows of both.
    difference : Difference or None
    """

    reference: str
    matched: Mapping[str, int]
    unjudged: Mapping[str, int]
    reasons: Mapping[str, int]
    errors: int
    reference_errors: int
    difference: Difference | None

    @property
    def same(self) -> bool:
        """No difference was found."""
        return self.difference is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self) | {"same": self.same}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {table}" for table, count in self.matched.items())
        until = "" if self.same else " up to the first difference"
        lines = [f"equal to libipt {self.reference}{until}: {counts}"]
        left_out = ", ".join(f"{count} {table}" for table, count in self.unjudged.items() if count)
        if left_out:
            lines.append(f"not judged by libipt: {left_out}")
        lines += [f"  {counted(count, 'time')}: {reason}" for reason, count in self.reasons.items()]
        if self.errors or self.reference_errors:
            lines.append(f"errors: {self.errors} of ptkit, {self.reference_errors} of libipt")
        if self.difference is not None:
            lines.append(str(self.difference))
        return "\n".join(lines)


@dataclass
class _Tally:
    matched: dict[str, int] = field(default_factory=dict)
    unjudged: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    errors: int = 0
    reference_errors: int = 0

    def add(self, table: str, result: Comparison) -> None:
        self.matched[table] = self.matched.get(table, 0) + result.matched
        self.unjudged[table] = self.unjudged.get(table, 0) + result.unjudged
        for reason, count in result.reasons.items():
            self.reasons[reason] = max(self.reasons.get(reason, 0), count)


def verify(
    trace: Opened, *, streams: Sequence[int] | None = None, progress: Callable[[int], None] | None = None
) -> Report:
    """Decode with both engines and compare row by row, up to the first difference.

    Both go on at the next PSB after an error, as libipt does. What libipt cannot judge is left out and
    counted, with the reason: see `ptkit.analysis.known_differences`.

    Parameters
    ----------
    trace : ptkit.Trace
    streams : sequence of int, optional
        Indices of streams; all by default.
    progress : callable, optional
        Called now and then with the number of bytes done; `PASSES` times the streams' bytes are the whole.

    Returns
    -------
    Report

    Raises
    ------
    UnsupportedError
        This build has no libipt, or there are only branch records, which libipt does not decode, or the trace
        was opened with `cs_base`, which libipt does not add, or with ``sync=False``, as libipt needs a PSB.
    """
    version = _core.reference_version()
    if version is None:
        raise UnsupportedError(
            "this build has no libipt to compare with;"
            " on Debian and Ubuntu: apt-get install libipt-dev, then build again"
        )
    opened = trace.opened
    configuration = opened.bundle.configuration
    if configuration["cs_base"]:
        raise UnsupportedError("libipt adds no base to IP payloads: open the trace without cs_base")
    if not opened.settings.sync:
        raise UnsupportedError("libipt begins at a PSB: open the trace without sync=False (--no-sync)")
    text, header = version
    tally = _Tally()
    difference = None
    watch = _Watch(progress)
    for stream in _judged(opened.bundle, streams, tally, watch):
        difference = _Verification(
            opened.session, stream, header, configuration["rtit_ctl"], tally, watch
        ).run()
        if difference is not None:
            break
    return Report(
        text, tally.matched, tally.unjudged, tally.reasons, tally.errors, tally.reference_errors, difference
    )


def _judged(bundle: _core.Bundle, streams: Sequence[int] | None, tally: _Tally, watch: _Watch) -> list[int]:
    """Streams that libipt can decode; the others are counted."""
    known = bundle.streams
    chosen = range(len(known)) if streams is None else streams
    packets = [stream for stream in chosen if known[stream]["kind"] == "packets"]
    if not packets and chosen:
        raise UnsupportedError("there are only branch records: libipt decodes Processor Trace")
    for stream in set(chosen) - set(packets):
        tally.reasons[NO_PACKETS] = tally.reasons.get(NO_PACKETS, 0) + 1
        watch.skip(known[stream]["size"])
    return packets


class _Watch:
    """Reports how many bytes are done, over all streams and tables."""

    def __init__(self, progress: Callable[[int], None] | None) -> None:
        self._progress = progress
        self._before = 0

    def at(self, reader: _core.Reader) -> None:
        """Report how far a reader is in its stream."""
        if self._progress is not None:
            self._progress(self._before + reader.bytes_done)

    def skip(self, size: int) -> None:
        """Leave a stream out."""
        self._before += PASSES * size

    def passed(self, reader: _core.Reader) -> None:
        """Go on to the next table."""
        self._before += reader.bytes_total


class _Verification:
    """The comparison of one stream."""

    def __init__(
        self,
        session: _core.Session,
        stream: int,
        header: tuple[int, int],
        rtit_ctl: int | None,
        tally: _Tally,
        watch: _Watch,
    ) -> None:
        self._session = session
        self._stream = stream
        self._header = header
        self._rtit_ctl = rtit_ctl
        self._tally = tally
        self._watch = watch
        self._expected = Expectations(header)
        self._shifted = False

    def run(self) -> Difference | None:
        """Compare table by table; the packets come first, as all else follows from them."""
        expected = self._expected
        difference = self._compare(
            "packets", PACKET_KEYS, expected.note_packets, expected.drop_interrupt_flag
        )
        if difference is not None or not self._session.has_code():
            return difference
        expected.note_errors(self._count_errors())
        difference = self._compare("instructions", INSTRUCTION_KEYS, None, None)
        difference = difference or self._compare("branches", BRANCH_KEYS, conditionals, conditionals)
        if difference is not None:
            return difference
        # Instructions that only we have would shift the number of those before an event.
        keys = EVENT_KEYS if self._shifted else (*EVENT_KEYS, "instruction")
        ours, theirs = (EventFilter(self._header, self._rtit_ctl) for _ in ENGINES)
        return self._compare("events", keys, ours.prepare, theirs.prepare)

    def _count_errors(self) -> list[int]:
        """Return stream offsets of our errors; count both engines'."""
        offsets: list[int] = []
        for engine in ("ptkit", "libipt"):
            rows, arrays, _ = self._reader("errors", engine, ()).read(None)
            if engine == "ptkit":
                self._tally.errors += rows
                offsets = arrays["offset"].tolist()
            else:
                self._tally.reference_errors += rows
        return offsets

    def _reader(self, table: str, engine: str, columns: Sequence[str]) -> _core.Reader:
        return _core.Reader(
            self._session,
            table,
            columns=list(dict.fromkeys([*columns, "offset"])),
            streams=[self._stream],
            selection={},
            engine=engine,
            resync="psb",
            time=False,
            context=False,
            ticks=False,
            sync=True,
            side_tables=True,
        )

    def _compare(
        self, table: str, keys: Sequence[str], ours_prepare: Prepare | None, theirs_prepare: Prepare | None
    ) -> Difference | None:
        columns = [*keys, *EXTRA.get(table, ())]
        reader = self._reader(table, "ptkit", columns)
        ours = Rows(reader, keys, ours_prepare, lambda: self._watch.at(reader))
        theirs = Rows(self._reader(table, "libipt", columns), keys, theirs_prepare)
        explain = self._expected.explain
        if table == "packets":
            explain = partial(
                self._expected.explain_packet, lambda: [error["offset"] for error in ours.errors]
            )
        expected = self._expected
        allowed = Allowed(explain, expected.resumed_at, expected.tail, expected.cut)
        result = compare(ours, theirs, allowed)
        self._tally.add(table, result)
        self._watch.passed(reader)
        self._shifted = self._shifted or (table == "instructions" and result.unjudged > 0)
        if not result.differs:
            return None
        return self._describe(table, result, ours, theirs)

    def _describe(self, table: str, result: Comparison, ours: Rows, theirs: Rows) -> Difference:
        row, reference = ours.row(), theirs.row()
        error = result.unexplained
        differing = row or reference or error or {"offset": 0}
        offset = differing["offset"]
        before: list[tuple[Instruction, ...]] = [(), ()]
        if table != "packets":
            before = [self._instructions_before(engine, offset, ours.position, table) for engine in ENGINES]
        last = ours.history()[-1:]
        hint = _instruction_hint(before[0])
        if table == "instructions" and last and last[0]["cls"] == InsnClass.RETURN:
            hint = HINT_RETURN
        if any(one["code"] == ErrorCode.BAD_INSN and one["offset"] <= offset for one in ours.errors):
            hint = HINT_BAD_CODE
        return Difference(
            level=table,
            stream=self._stream,
            offset=offset,
            row=result.matched,
            ours=row,
            reference=reference,
            error=None if error is None else _error_text(error),
            hint=hint,
            packets=self._packets_around(offset),
            ours_before=before[0],
            reference_before=before[1],
        )

    def _packets_around(self, offset: int) -> tuple[str, ...]:
        """Return packets near a stream offset as text."""
        rows = Rows(self._reader("packets", "ptkit", PACKET_KEYS), PACKET_KEYS)
        while available := rows.fill(PART_ROWS):
            count = rows.rows_until(offset, available)
            rows.advance(count)
            if count < available:
                break
        around = rows.history()[-AROUND:]
        for _ in range(min(AROUND, rows.fill(AROUND))):
            row = rows.row()
            assert row is not None
            around.append(row)
            rows.advance(1)
        return tuple(_packet_text(row) for row in around)

    def _instructions_before(
        self, engine: str, offset: int, position: int, table: str
    ) -> tuple[Instruction, ...]:
        """Return the last instructions of an engine up to a row of instructions, or up to a stream offset."""
        rows = Rows(self._reader("instructions", engine, (*INSTRUCTION_KEYS, "cls")), INSTRUCTION_KEYS)
        while available := rows.fill(PART_ROWS):
            count = rows.rows_until(offset, available)
            if table == "instructions" and engine == "ptkit":
                count = min(position + 1 - rows.position, available)
            rows.advance(count)
            if count < available:
                break
        return tuple(self._instruction(row) for row in rows.history())

    def _instruction(self, row: Mapping[str, int]) -> Instruction:
        code = self._session.read_code(row["ip"], row["size"])
        return Instruction(row["ip"], code.hex(" "), _core.disassemble(code, row["ip"], row["mode"]))


def _instruction_hint(instructions: Sequence[Instruction]) -> str | None:
    """Is an instruction that a version of libipt does not know near the end?"""
    for one in instructions[-2:]:
        for name, hint in HINT_INSTRUCTIONS.items():
            if one.text.startswith(name):
                return hint
    return None


def _error_text(error: Mapping[str, int]) -> str:
    sentence, _ = _core.status_text(error["code"])
    where = f"at {error['offset']:#x}"
    if error["flags"] & ErrorFlag.IP_KNOWN:
        where += f", ip {error['ip']:#x}"
    return f"error: {sentence} ({where})"


def _packet_text(row: Mapping[str, int]) -> str:
    text = f"{row['offset']:016x}  {PacketKind(row['kind']).name:<10} {row['payload']:#x}"
    if row["payload2"]:
        text += f", {row['payload2']:#x}"
    if row["flags"] & PacketFlag.IP_KNOWN:
        text += f"  ip {row['ip']:016x}"
    return text


def _row_text(row: Mapping[str, int] | None) -> str:
    if row is None:
        return "no more rows"
    return ", ".join(f"{name} {value:#x}" for name, value in row.items() if not name.startswith("known_"))
