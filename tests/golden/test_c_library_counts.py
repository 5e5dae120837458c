"""libptkit.so counts as `ptkit.CoverageDecoder`, on recordings and on real traces."""

from __future__ import annotations

import ctypes
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perf_data import aux_streams
from reduced import unpack

import ptkit

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PTKIT_BUILD", ROOT / "build" / "test")).resolve()
RECORDINGS = ROOT / "tests" / "golden" / "recordings"
NAMES = sorted(path.stem for path in RECORDINGS.glob("*.npz"))
EDGE = np.dtype([(name, np.uint64) for name in ("from", "to", "count")] + [("hash", "u4"), ("kind", "u4")])


class Outcome(ctypes.Structure):
    """ptkit_outcome."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        *((name, ctypes.c_uint64) for name in ("bytes", "instructions", "branches", "edges")),
        *((name, ctypes.c_uint64) for name in ("new_edges", "errors", "gaps")),
        *((name, ctypes.c_int32) for name in ("new_bits", "first_error")),
        *((name, ctypes.c_uint64) for name in ("first_error_offset", "first_error_ip")),
    )


class Coverage:
    """A handle of libptkit.so."""

    def __init__(self, library: ctypes.CDLL, code: dict[int, Any]) -> None:
        self._library = library
        self._code = {address: np.frombuffer(data, np.uint8) for address, data in code.items()}
        self._handle = ctypes.c_void_p()
        self._check(library.ptkit_coverage_open(None, ctypes.byref(self._handle)))
        for address, data in self._code.items():
            self._check(
                library.ptkit_coverage_add_code(
                    self._handle, ctypes.c_uint64(address), *self._pointer_and_size(data)
                )
            )

    def close(self) -> None:
        self._library.ptkit_coverage_close(self._handle)

    @staticmethod
    def _pointer_and_size(data: np.ndarray) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
        return ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size)

    def _check(self, status: int) -> None:
        assert status == 0, self._library.ptkit_failure_message()

    def decode(self, stream: bytes, hits: np.ndarray, virgin: np.ndarray) -> Outcome:
        data = np.frombuffer(stream, np.uint8)
        outcome = Outcome(size=ctypes.sizeof(Outcome))
        maps = (ctypes.c_void_p(each.ctypes.data) for each in (hits, virgin))
        self._check(
            self._library.ptkit_coverage_decode(
                self._handle, *self._pointer_and_size(data), *maps, ctypes.byref(outcome)
            )
        )
        return outcome

    def edges(self, count: int) -> list[tuple[int, ...]]:
        rows = np.zeros(count, EDGE)
        listed = self._library.ptkit_coverage_edges
        listed.restype = ctypes.c_size_t
        assert listed(self._handle, ctypes.c_void_p(rows.ctypes.data), ctypes.c_size_t(count)) == count
        return sorted(zip(*(rows[name].tolist() for name in ("from", "to", "kind", "count")), strict=True))


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    path = BUILD / "src" / "api" / "c" / "libptkit.so"
    if not path.exists():
        pytest.skip(f"no build of the C library in {BUILD} (set PTKIT_BUILD)")
    loaded = ctypes.CDLL(str(path))
    loaded.ptkit_failure_message.restype = ctypes.c_char_p
    return loaded


def compare(library: ctypes.CDLL, code: dict[int, Any], streams: Iterator[bytes]) -> None:
    """Both count the same in stream after stream, with one virgin map for all."""
    theirs = Coverage(library, code)
    ours = ptkit.CoverageDecoder(code)
    virgins = [np.full(65536, 255, np.uint8) for _ in range(2)]
    compared = 0
    for stream in streams:
        maps = [np.zeros(65536, np.uint8) for _ in range(2)]
        got = theirs.decode(stream, maps[0], virgins[0])
        want = ours.decode(stream, maps[1], virgins[1])
        for name in ("bytes", "instructions", "branches", "edges", "new_edges", "errors", "gaps", "new_bits"):
            assert getattr(got, name) == getattr(want, name), name
        np.testing.assert_array_equal(maps[0], maps[1])
        np.testing.assert_array_equal(virgins[0], virgins[1])
        table = ours.edges()
        columns = (table[name].tolist() for name in ("from_ip", "to_ip", "kind", "count"))
        assert theirs.edges(want.edges) == sorted(zip(*columns, strict=True))
        compared += want.edges
    assert compared > 0
    theirs.close()


def parts(stream: bytes) -> Iterator[bytes]:
    """All of it, halves that begin and end anywhere, all of it again."""
    half = len(stream) // 2
    yield from (stream, stream[:half], stream[half:], stream)


@pytest.mark.parametrize("name", NAMES)
def test_recordings(name: str, library: ctypes.CDLL) -> None:
    truth = unpack(RECORDINGS / f"{name}.npz")
    streams = aux_streams(lzma.decompress((RECORDINGS / f"{name}.perf.data.xz").read_bytes()))
    compare(library, truth.images, (part for stream in streams.values() for part in parts(bytes(stream))))


@pytest.mark.parametrize("name", ["Unzip", "avscript_32", "dyn_test", "mruby"])
def test_real_traces(name: str, library: ctypes.CDLL, corpus: Path) -> None:
    folder = corpus / "libxdc" / name
    addresses = np.fromfile(folder / "page_cache.addr", np.uint64)
    pages = np.fromfile(folder / "page_cache.dump", np.uint8).reshape(-1, 4096)
    code = dict(zip(addresses.tolist(), pages, strict=False))
    compare(library, code, parts((folder / "trace").read_bytes()))
