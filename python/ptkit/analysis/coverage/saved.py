"""Files of sets: a signature, a version, a head in JSON, and the rows of each level, compressed."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from ptkit import _core
from ptkit.analysis.coverage.files import CodeFile
from ptkit.analysis.coverage.rows import LEVELS, Level, Rows, grouped
from ptkit.analysis.coverage.runs import CoverageRun
from ptkit.errors import FormatError, OpenError
from ptkit.support.inputs import open_regular, read_regular

__all__ = ["SavedSet", "is_saved_set", "load_set", "save_set"]

_SIGNATURE = b"PTKITCOV"
_VERSION = 1
_HEAD = struct.Struct("<8sIII")  # signature, version, bytes of the JSON, its CRC-32
_LEVEL = 6  # of compression
_MOST_TIMES, _FEW_BYTES = 1024, 1 << 20  # how many times their packed size rows may have
_MOST_AMOUNT = 2**62
_MOST_COUNT = 2**53
_Head = dict[str, Any]


class _Damaged(Exception):
    """The file is not as `save_set` writes it."""


@dataclass(frozen=True)
class SavedSet:
    """What a file of a set has."""

    files: tuple[CodeFile, ...]
    runs: tuple[CoverageRun, ...]
    texts: tuple[str, ...]
    rows: Mapping[str, Rows]


def is_saved_set(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file begins as one of a set; False where it cannot be read."""
    try:
        with open_regular(os.fspath(path)) as file:
            return file.read(len(_SIGNATURE)) == _SIGNATURE
    except OpenError:
        return False


def save_set(saved: SavedSet, path: str | os.PathLike[str]) -> int:
    """Write a set; return the bytes of the file."""
    rows = saved.rows
    packed = {name: zlib.compress(some.tobytes(), _LEVEL) for name, some in rows.items()}
    head = json.dumps(
        {
            "files": [asdict(one) for one in saved.files],
            "runs": [asdict(one) for one in saved.runs],
            "texts": list(saved.texts),
            "levels": {
                name: {"rows": len(some), "bytes": len(packed[name]), "crc": zlib.crc32(packed[name])}
                for name, some in rows.items()
            },
        }
    ).encode()
    begin = _HEAD.pack(_SIGNATURE, _VERSION, len(head), zlib.crc32(head))
    contents = b"".join([begin, head, *packed.values()])
    _core.write_file(os.fsencode(path), contents)
    return len(contents)


def load_set(path: str | os.PathLike[str]) -> SavedSet:
    """Read a set; see `Coverage.load`."""
    name = os.fspath(path)
    contents = read_regular(name)
    if contents[: len(_SIGNATURE)] != _SIGNATURE:
        raise FormatError(
            f"{name}: is no set of coverage: `ptkit coverage FILE -o OUT` and Coverage.save() write those"
        )
    try:
        return _parsed(contents, name)
    # Wrong values, and values of wrong types.
    except (
        *(_Damaged, ValueError, KeyError, TypeError, AttributeError),
        *(RecursionError, OverflowError, struct.error, zlib.error),
    ) as error:
        if isinstance(error, FormatError):
            raise
        detail = f": {error}" if isinstance(error, _Damaged) else ""
        raise FormatError(f"{name}: the set of coverage is damaged{detail}; write it anew") from None


def _parsed(contents: bytes, path: str) -> SavedSet:
    _, version, size, crc = _HEAD.unpack_from(contents)
    if version != _VERSION:
        raise FormatError(
            f"{path}: the set of coverage has version {version}, and this ptkit reads version {_VERSION}; "
            "write it anew, or use the ptkit that wrote it"
        )
    text = contents[_HEAD.size : _HEAD.size + size]
    if len(text) != size or zlib.crc32(text) != crc:
        raise _Damaged("its head is cut or changed")
    head = json.loads(text)
    files = tuple(_made(CodeFile, one) for one in head["files"])
    runs = tuple(_made(CoverageRun, one) for one in head["runs"])
    texts = tuple(head["texts"])
    if not all(isinstance(one, str) for one in texts):
        raise _Damaged("a text is none")
    names = list(head["levels"])
    if names not in (list(LEVELS), ["lines"]):
        raise _Damaged("its levels are others")
    rows = {}
    at = _HEAD.size + size
    for name in names:
        about = head["levels"][name]
        rows[name] = _rows(LEVELS[name], contents[at : at + about["bytes"]], about, len(files), len(texts))
        at += about["bytes"]
    if at != len(contents):
        raise _Damaged(f"it has {len(contents):,} bytes instead of {at:,}")
    return SavedSet(files, runs, texts, rows)


def _made(kind: type[Any], values: _Head) -> Any:
    """An object of a dataclass, of which each member has the type of the annotation."""
    types = {"str": str, "int": int, "bool": bool}
    found = {}
    for field in fields(kind):
        value = values[field.name]
        if type(value) is not types[str(field.type)]:
            raise _Damaged(f"member {field.name!r} has another type")
        if isinstance(value, int) and not 0 <= value <= _MOST_COUNT:
            raise _Damaged(f"member {field.name!r} is out of range")
        found[field.name] = value
    return kind(**found)


def _rows(level: Level, packed: bytes, about: _Head, files: int, texts: int) -> Rows:
    """Rows of a level, of which all numbers are in range and all elements differ."""
    count, size = about["rows"], about["bytes"]
    if type(count) is not int or type(size) is not int or count < 0 or len(packed) != size:
        raise _Damaged("its rows are cut")
    if zlib.crc32(packed) != about["crc"]:
        raise _Damaged("its rows are changed")
    expected = count * level.dtype.itemsize
    if expected > max(_MOST_TIMES * len(packed), _FEW_BYTES):
        raise _Damaged(f"{len(packed):,} bytes cannot hold {count:,} rows")
    unpacker = zlib.decompressobj()
    cells = unpacker.decompress(packed, expected + 1)
    if len(cells) != expected or not unpacker.eof or unpacker.unused_data:
        raise _Damaged("its rows have another size")
    rows = np.frombuffer(cells, level.dtype).copy()
    bounds = [*((name, 0, files) for name in level.files), *((name, -1, texts) for name in level.texts)]
    for name, least, end in [*bounds, *((name, 0, _MOST_AMOUNT) for name in level.sums)]:
        if count and not (int(rows[name].min()) >= least and int(rows[name].max()) < end):
            raise _Damaged(f"values of {name!r} are out of range")
    if len(found := grouped(level, rows)) != count:
        raise _Damaged("it has an element twice")
    return found
