"""The page as one file: the shell with the data in it, whole or fitted into a size."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ptkit import __version__, _core
from ptkit.errors import ConfigError, UnsupportedError
from ptkit.support.mapped import mapped
from ptkit.support.text import counted
from ptkit.view.columns import deflated
from ptkit.view.fitting import fit_slices
from ptkit.view.run import Run
from ptkit.view.slices import Chunk
from ptkit.view.text import data_element, json_text

__all__ = ["Document", "make_document"]

_MARK = "<!--PTKIT-DATA-->"
_VERSION = 1
_DETAILS = 1 << 16  # bytes of details of a chunk, before they are deflated
_OF_DETAILS = 0.15  # of the size, where slices have to be merged
_TO_FILL = 0.05  # more of them, for what merged slices leave
_OF_NAMES = 0.25  # of the size: full names are left out of a head that is larger
_LEAST_FUNCTIONS = 500
_FEWER = 0.75
_NEAR = 0.995


@cache
def shell() -> tuple[bytes, bytes]:
    """Parts of the page before the data and after it.

    Raises
    ------
    UnsupportedError
        If this ptkit was installed without the page.
    """
    file = files("ptkit.view") / "page.html"
    if not file.is_file():
        raise UnsupportedError(
            "this ptkit was built without its page (ptkit/view/page.html); install a wheel"
        )
    before, mark, after = file.read_text(encoding="utf-8").partition(_MARK)
    if not mark or _MARK in after:
        raise UnsupportedError(f"ptkit/view/page.html is no page of ptkit: it must have one {_MARK}")
    return before.encode(), after.encode()


@dataclass
class _RunData:
    """Encoded data of a run.

    Attributes
    ----------
    run : Run
    number : int
        0 or 1.
    slices : list of Chunk
    details : list of (bytes, list of int)
        Base64 of the chunks, and the functions in each; those of functions with most work first.
    kept : int
        Chunks of details that the page has.
    shows_full : bool
        Full names are there.
    """

    run: Run
    number: int
    slices: list[Chunk] = field(default_factory=list)
    details: list[tuple[bytes, list[int]]] = field(default_factory=list)
    kept: int = 0
    shows_full: bool = True

    def encode(self) -> int:
        """Encode the slices as they are now; their bytes in the page."""
        self.slices = self.run.slices()
        return sum(len(data_element("", chunk.data)) + _NAME for chunk in self.slices)

    def encode_details(self, most: int) -> None:
        """Encode details until they have `most` bytes."""
        size = 0
        for data, numbers in mapped(_detail_chunk, self._details(), 1):
            self.details.append((data, numbers))
            size += len(data) + _NAME
            if size > most:  # the last ones do not fit, unless there is nothing else
                return

    def _details(self) -> Iterator[tuple[str, list[int]]]:
        """Details of functions as JSON, for one chunk after the other, and their functions."""
        texts: list[str] = []
        numbers: list[int] = []
        length = 0
        functions = self.run.functions
        for number in np.argsort(-functions.own()[: functions.most], kind="stable").tolist():
            texts.append(json_text(self.run.detail(number)))
            numbers.append(number)
            length += len(texts[-1])
            if length >= _DETAILS:
                yield f"[{','.join(texts)}]", numbers
                texts, numbers, length = [], [], 0
        if texts:
            yield f"[{','.join(texts)}]", numbers

    def detail_bytes(self, kept: int) -> int:
        """Bytes of the first chunks of details."""
        return sum(len(data_element("", data)) + _NAME for data, _ in self.details[:kept])

    def head(self) -> dict[str, Any]:
        """The member of ``runs``."""
        detail = [-1] * len(self.run.functions)
        for chunk, (_, numbers) in enumerate(self.details[: self.kept]):
            for number in numbers:
                detail[number] = chunk
        return self.run.head(self.slices, detail, shows_full=self.shows_full)

    def elements(self) -> Iterator[bytes]:
        """Elements of the chunks."""
        for number, chunk in enumerate(self.slices):
            yield data_element(f"r{self.number}-slices-{number}", chunk.data)
        for number, (data, _) in enumerate(self.details[: self.kept]):
            yield data_element(f"r{self.number}-details-{number}", data)


_NAME = len("r0-details-1000")


def _detail_chunk(details: tuple[str, list[int]]) -> tuple[bytes, list[int]]:
    text, numbers = details
    return b64encode(deflated(text.encode())), numbers


@dataclass(frozen=True)
class Document:
    """A page.

    Attributes
    ----------
    parts : list of bytes
        The file in parts.
    notes : list of str
        Sentences: losses, what was merged, what the page embeds.
    runs : list of Run
    """

    parts: list[bytes]
    notes: list[str]
    runs: list[Run]

    @property
    def bytes(self) -> int:
        """Size of the file."""
        return sum(map(len, self.parts))


def make_document(runs: Sequence[Run], size: int) -> Document:
    """Make a page of at most `size` bytes.

    Raises
    ------
    ConfigError
        If nothing fits into `size`.
    UnsupportedError
        If this ptkit has no page.
    """
    before, after = shell()
    data = [_RunData(run, number) for number, run in enumerate(runs)]
    slices = [one.encode() for one in data]
    if _limit_names(data, size):
        slices = [one.encode() for one in data]
    fixed = len(before) + len(after) + len(_head(data, []))
    for one in data:
        left = max(size - fixed - sum(slices), int(size * (_OF_DETAILS + _TO_FILL)))
        one.encode_details(left // len(data))
        one.kept = len(one.details)
    _fit(data, slices, size, len(before) + len(after) + len(_head(data, _embedded(data))))
    notes = _embedded(data)
    parts = [before, _head(data, notes), *(part for one in data for part in one.elements()), after]
    found = Document(parts, [*_notes_of(runs), *notes], list(runs))
    if found.bytes > size:
        raise ConfigError(f"size={size}: the page has at least {found.bytes:,} bytes")
    return found


def _notes_of(runs: Sequence[Run]) -> list[str]:
    """Notes of the runs: of two, with the name of each."""
    if len(runs) == 1:
        return runs[0].notes()
    return [f"{one.title()}: {note}" for one in runs for note in one.notes()]


def _head(data: Sequence[_RunData], notes: list[str]) -> bytes:
    """The element with the head."""
    document = {
        "version": _VERSION,
        "ptkit": __version__,
        "words": _words(),
        "runs": [one.head() for one in data],
        "notes": notes,
    }
    return f'<script type="application/json" id="head">{json_text(document)}</script>\n'.encode()


def _words() -> dict[str, Any]:
    """Words of numbers in columns of slices."""
    return {
        "how": [kind.name.lower() for kind in _core.CallKind],
        "end_how": [kind.name.lower() for kind in _core.CallEnd],
        "flags": {flag.name: int(flag) for flag in _core.CallFlag},
    }


def _limit_names(data: Sequence[_RunData], size: int) -> bool:
    """Leave out full names, then names of functions with few instructions, of a head that is too large.

    Returns whether numbers of functions have changed.
    """
    most = size * _OF_NAMES
    if len(_head(data, [])) <= most:
        return False
    for one in data:
        one.shows_full = False
    has_changed = False
    while len(_head(data, [])) > most:
        functions = max((one.run.functions for one in data), key=len)
        if len(functions) <= _LEAST_FUNCTIONS:  # it is something else that is large
            break
        functions.limit(max(int(len(functions) * _FEWER), _LEAST_FUNCTIONS - 1))
        has_changed = True
    return has_changed


def _fit(data: Sequence[_RunData], slices: list[int], size: int, fixed: int) -> None:
    """Leave out details, then merge slices, until all fits."""
    if fixed > size:
        raise ConfigError(f"size={size}: the page has at least {fixed:,} bytes")
    details = [one.detail_bytes(len(one.details)) for one in data]
    left = size - fixed - sum(slices)
    if left < sum(details):
        # Of functions with little work first; some stay as long as slices can be merged instead.
        _keep(data, max(left, int(min(size * _OF_DETAILS, sum(details)))))
    for one, own in zip(data, slices, strict=True):
        rest = size - fixed - sum(other.detail_bytes(other.kept) for other in data)
        share = int(rest * own / max(sum(slices), 1) * _NEAR)
        if own > share:
            fit_slices(one.run.timeline, one.encode, own, max(share, 1))
    used = sum(
        sum(len(chunk.data) + len(data_element("", b"")) + _NAME for chunk in one.slices) for one in data
    )
    _keep(data, max(int((size - fixed) * _NEAR) - used, 0))


def _keep(data: Sequence[_RunData], most: int) -> None:
    """Keep the first details, of all runs alike, as far as they fit into so many bytes."""
    for one in data:
        share, size = most // len(data), 0
        one.kept = 0
        for chunk, _ in one.details:
            size += len(data_element("", chunk)) + _NAME
            if size > share:
                break
            one.kept += 1


def _embedded(data: Sequence[_RunData]) -> list[str]:
    """Sentences on what the page has of a recording, and on what was left out for its size."""
    notes = []
    runs = [one.run for one in data]
    if embedded := list(dict.fromkeys(word for run in runs for word in run.embedded())):
        listed = " and ".join([", ".join(embedded[:-1]), embedded[-1]] if len(embedded) > 1 else embedded)
        notes.append(f"the page has {listed}: --redact leaves them out")
    left = sum(
        len(one.run.functions.rows) - sum(len(numbers) for _, numbers in one.details[: one.kept])
        for one in data
    )
    if left:
        notes.append(f"{counted(left, 'function')} with least work: without details, for the page's size")
    if not all(one.shows_full for one in data):
        notes.append("full names are left out, for the page's size")
    if others := sum(len(run.functions.rows) - len(run.functions) + 1 for run in runs if run.functions.most):
        notes.append(f"{counted(others, 'function')} with fewest instructions: one row, [other functions]")
    return notes
