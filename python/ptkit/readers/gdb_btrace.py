"""A branch trace of gdb's remote protocol (``qXfer:btrace:read``).

It is an XML document with the bytes of Processor Trace, or with blocks from Branch Trace Store. Expat reads
it: entities, which a document of gdb does not have, are refused, and no other file is read.
"""

from __future__ import annotations

import binascii
import mmap
import os
import re
from typing import Any, TypeAlias
from xml.parsers import expat

import numpy as np

from ptkit import _core
from ptkit.errors import FormatError
from ptkit.readers.recording import Reader, Source, new_recording
from ptkit.support.columns import Bytes, Numbers, hex_numbers, is_one_of
from ptkit.support.inputs import map_regular
from ptkit.support.text import number

__all__ = ["GDB_BTRACE"]

_Text: TypeAlias = bytes | bytearray | mmap.mmap

_HEAD_BYTES = 4096
_STEP = 1 << 20
_MOST_DEPTH = 100
_BEFORE_DOCUMENT = re.compile(rb"[ -;=-~\t\r\n]*<")  # the protocol puts a letter before it
# trace::BranchRecord
_RECORD = np.dtype(
    [("from_ip", "<u8"), ("to_ip", "<u8"), ("tsc", "<u8"), ("flags", "<u4"), ("cycles", "<u4")]
)
_RECORD_FIRST = 16  # trace::RECORD_FIRST
_BLANKS = b" \t\r\n"
_RAW, _BLOCK = b"<raw>", b'<block begin="'
_BLOCK_BYTES = len(b'<block begin="" end=""/>')
_LEAST_BLOCKS = 4096  # bytes of blocks that are read together


def _blocks(text: Bytes) -> tuple[Numbers, Numbers] | None:
    """Return begin and end of a text of blocks as gdb writes them; None: it has anything else."""
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 4 or not len(quotes):
        return None
    opening, middle, second, closing = (quotes[number::4] for number in range(4))
    if opening[0] < len(_BLOCK) - 1 or middle[-1] + 8 > len(text) or closing[-1] + len(b'"/>') > len(text):
        return None
    # Eight bytes at each offset; quotes are known.
    eight = np.ndarray(len(text) - 7, dtype="<u8", buffer=text, strides=(1,))
    words = ((opening - 13, b"<block b"), (opening - 8, b"k begin="), (middle, b'" end="'))
    for at, part in words:
        mask, letters = (int.from_bytes(one, "little") for one in (b"\xff" * len(part), part))
        if not (eight[at] & np.uint64(mask) == np.uint64(letters)).all():
            return None
    if not (text[closing + 1] == ord("/")).all() or not (text[closing + 2] == ord(">")).all():
        return None
    begin, has_begin = hex_numbers(text, opening + 1, middle)
    end, has_end = hex_numbers(text, second + 1, closing)
    prefixed = (text[opening + 2] == ord("x")) & (text[second + 2] == ord("x"))
    # Between blocks there is nothing but blanks.
    blanks = int(np.count_nonzero(is_one_of(_BLANKS, text))) - 2 * len(begin)
    digits = int((middle - opening + closing - second).sum()) - 2 * len(begin)
    is_all = blanks + digits + _BLOCK_BYTES * len(begin) == len(text)
    return (begin, end) if is_all and (has_begin & has_end & prefixed).all() else None


class _Complete(Exception):
    """The element btrace is closed: what follows it is not read."""


class _Document:
    def __init__(self, path: str) -> None:
        self.recording = new_recording()
        self._path = path
        self._name = os.fsencode(path)
        self._base = 0  # offset of the document in the file
        self._fed = 0  # bytes that expat got
        self._skipped_bytes = 0  # bytes before these that it did not get
        self._depth = 0
        self._blocks: list[tuple[Numbers, Numbers]] = []  # their begins and ends, the newest first
        self._begins: list[int] = []  # of those after these
        self._ends: list[int] = []
        self._raw: bytearray | None = None
        self._raws = 0  # elements raw that were opened
        self._odd = b""
        self._is_found = False
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.buffer_size = _STEP
        parser.StartElementHandler = self._open
        parser.EndElementHandler = self._close
        parser.CharacterDataHandler = self._take_text
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity

    def read(self, data: _Text) -> _core.Bundle:
        """Read the document.

        Raises
        ------
        FormatError
            If it is none, is damaged, or has no trace.
        """
        begin = data.find(b"<")
        if begin < 0:
            raise FormatError(f"{self._path}: expected an XML document with a btrace element")
        self._base = begin
        is_whole = self._parse(data)
        if not is_whole:
            _core.add_warning(self.recording, "GDB_BTRACE_CUT", [], self._name)
            self._end_raw()
        self._add_branches()
        if not self.recording.streams:
            raise FormatError(
                f"{self._path}: holds neither bytes of Processor Trace nor blocks; record again"
            )
        return self.recording

    def _parse(self, document: _Text) -> bool:
        """Parse up to the end of the element; False: the document was cut in it."""
        at, length = self._base, len(document)
        raw = block = -1  # the next ones
        try:
            while at < length:
                if raw < at:
                    raw = document.find(_RAW, at) % (length + 1)
                if block < at:
                    block = document.find(_BLOCK, at) % (length + 1)
                if min(raw, block) >= min(at + _STEP, length):
                    self._feed(document, at, at + _STEP)
                    at += _STEP
                elif raw < block:
                    at = self._feed_raw(document, at, raw + len(_RAW))
                else:
                    after = document.find(b">", block) + 1
                    at = self._feed_blocks(document, at, after or length)
            self._parser.Parse(b"", True)
        except _Complete:
            return True
        except expat.ExpatError as error:
            if not self._is_found:
                raise FormatError(
                    f"{self._path}: expected an XML document with a btrace element: {error}; "
                    "give the document as gdb wrote it"
                ) from None
            if error.code not in _CUT:
                raise self._bad(f"is no XML: {expat.ErrorString(error.code)}; record again") from None
        return False

    def _feed(self, document: _Text, begin: int, end: int) -> None:
        self._skipped_bytes = begin - self._fed
        part = bytes(document[begin:end])
        self._fed += len(part)
        self._parser.Parse(part, False)

    def _feed_raw(self, document: _Text, begin: int, end: int) -> int:
        """Take the text of an element raw without expat, if one opens at `end`; return where it ends."""
        raws = self._raws
        self._feed(document, begin, end)
        if self._raw is None or self._raws == raws:  # the tag stands in a comment
            self._feed(document, end, end + _STEP)
            return end + _STEP
        after = document.find(b"<", end) % (len(document) + 1)
        for part in range(end, after, _STEP):
            self._take_digits(bytes(document[part : min(part + _STEP, after)]))
        return after

    def _feed_blocks(self, document: _Text, begin: int, end: int) -> int:
        """Take the blocks that follow one without expat, as far as all are alike; return where they end."""
        self._end_blocks()
        self._feed(document, begin, end)
        if len(self._begins) != 1 or document[end - 2 : end] != b"/>":  # no block is closed there
            self._feed(document, end, end + _STEP)
            return end + _STEP
        last = document.rfind(b"/>", end, end + _STEP) + 2
        if last < end + _LEAST_BLOCKS:
            last = min(end + _LEAST_BLOCKS, len(document))
        text = np.frombuffer(document, dtype=np.uint8, count=last - end, offset=end)
        columns = _blocks(text)
        if columns is None:
            self._feed(document, end, last)
            return last
        self._end_blocks()
        self._blocks.append(columns)
        return last

    def _bad(self, problem: str) -> FormatError:
        return FormatError(
            f"{self._path}: at byte {max(self._parser.CurrentByteIndex, 0) + self._skipped_bytes}: {problem}"
        )

    def _refuse_entity(self, *_: Any) -> None:
        raise self._bad("has an entity, and documents of gdb have none; give the document as gdb wrote it")

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        if not self._is_found:
            if name != "btrace":
                raise FormatError(f"{self._path}: expected an XML document with a btrace element")
            self._is_found = True
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self._bad(f"has more than {_MOST_DEPTH} nested elements; give the document as gdb wrote it")
        self._end_raw()
        if name == "block":
            self._take_block(attributes)
        elif name == "cpu":
            self._take_cpu(attributes)
        elif name == "raw":
            self._raw = bytearray()
            self._raws += 1

    def _close(self, name: str) -> None:
        self._depth -= 1
        self._end_raw()
        if name == "btrace":
            raise _Complete

    def _take_block(self, attributes: dict[str, str]) -> None:
        begin, end = number(attributes.get("begin", "")), number(attributes.get("end", ""))
        if begin is None or end is None:
            raise self._bad("a block needs the numbers begin and end; record again")
        self._begins.append(begin)
        self._ends.append(end)

    def _take_cpu(self, attributes: dict[str, str]) -> None:
        family, model = number(attributes.get("family", "")), number(attributes.get("model", ""))
        stepping = number(attributes.get("stepping", "")) or 0
        if family is None or model is None or family > 0xFFFF or model > 0xFFFF or stepping > 0xFF:
            return  # only the vendor is given
        intel = attributes.get("vendor", "GenuineIntel") == "GenuineIntel"
        self.recording.set_cpu(family, model, stepping, intel=intel)

    def _take_text(self, text: str) -> None:
        if self._raw is not None:
            self._take_digits(text.encode("ascii", "replace"))

    def _take_digits(self, text: bytes) -> None:
        if self._raw is None:
            return
        digits = self._odd + text.translate(None, _BLANKS)
        whole = len(digits) // 2 * 2
        self._odd = digits[whole:]
        try:
            self._raw += binascii.unhexlify(digits[:whole] if self._odd else digits)
        except ValueError:
            self._raw = None
            raise self._bad("raw must hold pairs of hexadecimal digits; record again") from None

    def _end_raw(self) -> None:
        raw, self._raw = self._raw, None
        odd, self._odd = self._odd, b""
        if raw is None:
            return
        if odd:
            raise self._bad("raw must hold pairs of hexadecimal digits; record again")
        if raw:
            self.recording.add_stream(raw, name=self._name)

    def _end_blocks(self) -> None:
        if self._begins:
            columns = np.array(self._begins, dtype=np.uint64), np.array(self._ends, dtype=np.uint64)
            self._blocks.append(columns)
            self._begins, self._ends = [], []

    def _add_branches(self) -> None:
        """Blocks come newest first. A branch leads from the end of a block to the begin of the next one.

        An end of 0 is that of a block that still runs, a begin of 0 is not known.
        """
        self._end_blocks()
        if not self._blocks:
            return
        begins, ends = (np.concatenate(column) for column in zip(*self._blocks, strict=True))
        self._blocks = []
        known = (ends[:0:-1] != 0) & (begins[:-1][::-1] != 0)
        first = np.concatenate(([True], ~known[:-1]))[known]
        records: Any = np.zeros(len(first), dtype=_RECORD)
        records["from_ip"], records["to_ip"] = ends[:0:-1][known], begins[:-1][::-1][known]
        records["flags"][first] = _RECORD_FIRST
        if len(records):
            self.recording.add_stream(records.view(np.uint8), name=self._name, kind="branch records")


_CUT = frozenset(
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
)


def _recognizes(source: Source) -> bool:
    head = source.head(_HEAD_BYTES)
    return _BEFORE_DOCUMENT.match(head) is not None and b"<btrace" in head


def _read(source: Source) -> _core.Bundle:
    data = map_regular(source.path) if source.data is None else source.data
    return _Document(source.path).read(data)


GDB_BTRACE = Reader(
    "gdb-btrace",
    "a branch trace of gdb's remote protocol (XML)",
    _read,
    _recognizes,
    before="bts",
    reads_pipes=True,
    unverified=True,
)
