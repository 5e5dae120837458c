"""The code that was executed: a file for each region and version, and an index of them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptkit import _core
from ptkit.errors import ConfigError
from ptkit.export.blocks import BlockTrace, modules_of
from ptkit.export.files import check_folder, new_folder
from ptkit.support.text import counted, module_name, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["write_code"]

_FORMAT = "ptkit code"
_INDEX = "index.json"
_PART = 1 << 18
_CHUNK = 1 << 20
_PAGE = 4096
_MOST_NAME = 60  # characters of a module in a file's name
_FIRST_TSC, _LAST_TSC = 0, 2**64 - 1
_ODD = re.compile(r"[^A-Za-z0-9._+-]+")


@dataclass
class _Region:
    """A region of code that was executed.

    Attributes
    ----------
    address, size : int
    space : int
        Of the region; 0: all address spaces.
    begin, end : int
        TSC ticks from when on, and until when, it was there.
    seen : tuple of int
        A space, and the earliest time at which its code was executed.
    blocks : set of int
        Addresses at which executed blocks begin.
    """

    address: int
    size: int
    space: int
    begin: int
    end: int
    seen: tuple[int, int]
    blocks: set[int] = field(default_factory=set)


def write_code(trace: BlockTrace, path: str, **query: Any) -> dict[str, Any]:
    """Write each region of code of which something was executed, in each of its versions.

    Parameters
    ----------
    trace : Trace
    path : str
        A folder; an earlier one of this format is replaced when the new one is complete.
    **query
        Which blocks: ``pid=``, ``time=``, ``module=``, ...; see `ptkit.decode.Query`.

    Raises
    ------
    ConfigError
        If the folder exists and has files that are no part of an export, or `query` chooses columns or an
        order.
    OpenError
        If it cannot be written.

    Notes
    -----
    docs/export.md has the members of ``index.json``.
    """
    for name in ("columns", "order"):
        if query.get(name) is not None:
            raise ConfigError(f"{name}: an export has no {name}")
    target = Path(path)
    _check(target)
    regions, outside = _executed(trace, query)
    with new_folder(path) as made:
        total = _write(trace, made, regions)
        made.chmod(0o777 & ~_umask())
    notes = []
    if outside:
        notes.append(f"{counted(outside, 'block')} of code that the recording does not have are left out")
    return {"bytes": total, "files": (str(target / _INDEX),), "notes": notes}


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _check(target: Path) -> None:
    """Refuse to replace what is no export of code."""
    if not check_folder(target):
        return
    try:
        index = json.loads((target / _INDEX).read_bytes())
        known = {_INDEX, *(row["file"] for row in index["regions"])} if index["format"] == _FORMAT else set()
    except (OSError, ValueError, LookupError, TypeError):
        known = set()
    others = sorted(one.name for one in target.iterdir() if one.name not in known)
    if others:
        raise ConfigError(
            f"{target}: has files that are no part of an export of code, such as {shortened(others[0])}; "
            "give the name of a new folder"
        )


def _executed(trace: BlockTrace, query: dict[str, Any]) -> tuple[list[_Region], int]:
    """Regions that have executed blocks, and how many blocks have no region."""
    session = trace.opened.session
    known = _core.code_regions(session)
    found: dict[int, _Region] = {}
    outside: set[int] = set()
    columns = ["ip", "size", "space", "flags", "tsc", "tsc_error"]
    for part in trace.iter_blocks(rows=_PART, reuse=True, **{**query, "columns": columns}):
        ips, spaces = np.array(part["ip"]), np.array(part["space"])
        timed = np.asarray(part["time_known"])
        tsc, error = np.array(part["tsc"]), np.array(part["tsc_error"])
        lasts = ips + (np.array(part["size"]).astype(np.uint64) - np.uint64(1))
        for ends in (ips, lasts):  # a block may lie in two regions
            indices = _core.find_regions(session, ends, spaces, (tsc, error, timed))
            for index in np.unique(indices).tolist():
                rows = np.flatnonzero(indices == index)
                blocks = np.unique(ips[rows]).tolist()
                if index < 0:
                    outside.update(blocks)
                    continue
                address, size, _, space, begin, end = known[index]
                of_rows = np.where(timed[rows], tsc[rows] + error[rows], np.uint64(_LAST_TSC))
                first = int(np.argmin(of_rows))
                seen = int(spaces[rows[first]]), int(of_rows[first])
                one = found.setdefault(index, _Region(address, size, space, begin, end, seen))
                if seen[1] < one.seen[1]:
                    one.seen = seen
                one.blocks.update(blocks)
    for one in found.values():
        of_space, time = one.seen
        one.seen = of_space, one.begin if time == _LAST_TSC else max(one.begin, min(time, one.end - 1))
    return sorted(found.values(), key=lambda one: (one.address, one.space, one.begin)), len(outside)


def _write(trace: BlockTrace, folder: Path, regions: list[_Region]) -> int:
    """Write the regions and the index; how many bytes of code there are."""
    modules, spaces = modules_of(trace), trace.info.spaces
    versions: dict[tuple[int, int], int] = {}  # by address and space
    rows, total = [], 0
    for region in regions:
        least = versions.get((region.address, region.space), 0) + 1
        for address, chunks in _parts(trace.opened.session, region):
            number = max(least, versions.get((address, region.space), 0) + 1)
            versions[address, region.space] = versions[region.address, region.space] = number
            module, rva = _module(trace, address, region.seen)
            name = None if module < 0 else modules[module][0]
            shown = _ODD.sub("_", module_name(name) if name else "unknown").strip("_")[:_MOST_NAME]
            of_space = f"-space{region.space}" if region.space else ""
            file = f"{address:016x}-{shown}{of_space}-{number}.bin"
            size = _write_file(folder / file, chunks)
            total += size
            pid, cr3 = spaces[region.space] if region.space < len(spaces) else (None, None)
            last = address + size
            rows.append(
                {
                    "file": file,
                    "address": f"{address:#x}",
                    "size": size,
                    "module": name,
                    "build_id": (modules[module][1] or None) if module >= 0 else None,
                    "rva": f"{rva:#x}" if module >= 0 else None,
                    "version": number,
                    "space": region.space,
                    "pid": pid if region.space else None,
                    "cr3": None if cr3 is None or not region.space else f"{cr3:#x}",
                    "tsc_from": None if region.begin == _FIRST_TSC else f"{region.begin:#x}",
                    "tsc_to": None if region.end == _LAST_TSC else f"{region.end:#x}",
                    "blocks": [f"{ip:#x}" for ip in sorted(region.blocks) if address <= ip < last],
                }
            )
    index = {"format": _FORMAT, "version": 1, "source": trace.info.source, "regions": rows}
    (folder / _INDEX).write_text(json.dumps(index, indent=1) + "\n", "ascii")
    return total


def _module(trace: BlockTrace, address: int, seen: tuple[int, int]) -> tuple[int, int]:
    """Number of the module at an address, and the RVA."""
    space, time = seen
    times = np.array([time], np.uint64), np.zeros(1, np.uint32), np.ones(1, np.bool_)
    where = np.array([address], np.uint64), np.array([space], np.uint32)
    files, rvas = _core.name_files(trace.opened.session, *where, None, times, True, True)
    return int(files[0]), int(rvas[0])


def _parts(session: _core.Session, region: _Region) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Parts of a region that have bytes and executed blocks: their addresses, and the bytes in chunks."""
    end = region.address + region.size
    written = region.address  # up to here
    for begin in (region.address, *sorted(region.blocks)):
        if not written <= begin < end:
            continue
        for at in (max(begin // _PAGE * _PAGE, written), begin):
            if first := session.read_code(at, min(_CHUNK, end - at), *region.seen):
                done = [len(first)]
                yield at, _chunks(session, region, at, end, first, done)
                written = at + done[0]
                break


def _chunks(
    session: _core.Session, region: _Region, at: int, end: int, first: bytes, done: list[int]
) -> Iterator[bytes]:
    """Bytes from an address on, as far as they are known; `done` gets their number."""
    chunk = first
    while chunk:
        yield chunk
        left = end - at - done[0]
        chunk = session.read_code(at + done[0], min(_CHUNK, left), *region.seen) if left > 0 else b""
        done[0] += len(chunk)


def _write_file(path: Path, chunks: Iterator[bytes]) -> int:
    size = 0
    with path.open("wb") as file:
        for chunk in chunks:
            size += file.write(chunk)
    return size
