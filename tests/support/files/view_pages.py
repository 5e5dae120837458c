"""Pages of `ptkit view`, read as the page itself reads them."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptkit.view import Page
from ptkit.view.document import shell

#: Columns of a chunk that may be left out where they are the durations.
_AS_DURATION = ("covered", "instructions")


class _Elements(HTMLParser):
    """Elements of data, by their names, and the number of all scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[str, str] = {}
        self.scripts = 0
        self.tags: set[str] = set()
        self._name: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        if tag == "script":
            self.scripts += 1
            self._name = given.get("id")
            if self._name is not None:
                self.data[self._name] = ""

    def handle_data(self, data: str) -> None:
        if self._name is not None:
            self.data[self._name] += data

    def handle_endtag(self, tag: str) -> None:
        self._name = None


class PageData:
    """The data of a page."""

    def __init__(self, page: Page | Path) -> None:
        text = page.read_bytes() if isinstance(page, Path) else b"".join(page._document.parts)
        elements = _Elements()
        elements.feed(text.decode())
        before, after = shell()
        empty = _Elements()
        empty.feed((before + after).decode())
        self.text = text
        self.elements = {name: data for name, data in elements.data.items() if name not in empty.data}
        #: Scripts beside the data, and tags, that the shell has not.
        self.more_scripts = elements.scripts - empty.scripts - len(self.elements)
        self.more_tags = elements.tags - empty.tags
        self.head: dict[str, Any] = json.loads(elements.data["head"])
        self.runs: list[dict[str, Any]] = self.head["runs"]

    def _chunk(self, name: str) -> bytes:
        return zlib.decompress(b64decode(self.elements[name], validate=True), -15)

    def columns(self, run: int = 0) -> dict[str, NDArray[np.uint64]]:
        """Slices of a run."""
        found: dict[str, list[NDArray[np.uint64]]] = {}
        for number, described in enumerate(self.runs[run]["chunks"]):
            data = self._chunk(f"r{run}-slices-{number}")
            chunk = _decoded(described["columns"], described["rows"], data)
            for name in _AS_DURATION:
                chunk.setdefault(name, chunk["duration"])
            for name, values in chunk.items():
                found.setdefault(name, []).append(values)
        return {name: np.concatenate(parts) for name, parts in found.items()}

    def details(self, run: int = 0) -> dict[int, dict[str, Any]]:
        """Details by the function's number: those that the head points to."""
        chunks: dict[int, list[dict[str, Any]]] = {}
        found = {}
        for number, chunk in enumerate(self.runs[run]["functions"]["detail"]):
            if chunk < 0:
                continue
            if chunk not in chunks:
                chunks[chunk] = json.loads(self._chunk(f"r{run}-details-{chunk}"))
            (found[number],) = (one for one in chunks[chunk] if one["function"] == number)
        return found

    def cells(self, track: dict[str, Any]) -> NDArray[np.uint16]:
        """The first screen of a track, of shape (depths, columns)."""
        first = track["first"]
        return np.frombuffer(b64decode(first["rows"], validate=True), "<u2").reshape(first["depths"], -1)


def _decoded(columns: list[list[Any]], rows: int, data: bytes) -> dict[str, NDArray[np.uint64]]:
    found = {}
    at = 0
    for name, kind, coding, *value in columns:
        size = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}[kind]
        if coding == "const":
            found[name] = np.full(rows, value[0], np.uint64)
            continue
        planes = np.frombuffer(data, np.uint8, rows * size, at).reshape(size, rows).astype(np.uint64)
        at += rows * size
        values = np.zeros(rows, np.uint64)
        for plane, cells in enumerate(planes):
            values |= cells << np.uint64(8 * plane)
        if coding == "delta":
            half = (values >> np.uint64(1)).astype(np.int64)
            values = np.cumsum(np.where(values & np.uint64(1), -half - 1, half)).astype(np.uint64)
        else:
            assert coding == "raw"
        found[name] = values
    assert at == len(data)
    return found
