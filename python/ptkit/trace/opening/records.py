"""Branch records from arrays and from buffers of a debug store area, as a trace."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit import _core
from ptkit.decode import Settings
from ptkit.decode.plan import check_choice, thread_count
from ptkit.errors import ConfigError, FormatError
from ptkit.support.arguments import LAST_ADDRESS, flag, integer, numbers
from ptkit.support.schema import BRANCH_RECORD
from ptkit.trace.facade import Trace
from ptkit.trace.opening.bundle import apply_settings
from ptkit.trace.opening.images import add_images

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ptkit.trace.open_parts import ImageCallback
    from ptkit.trace.opening.images import ImageItem

__all__ = ["open_branches"]

_NEEDED = ("from_ip", "to_ip")
_DS_BYTES = (12, 24)
_LAST_RECORD = 2**58  # offsets in bytes have 64 bits
_LAST_ID = 2**32 - 1


def open_branches(
    branches: Buffer | Mapping[str, ArrayLike] | NDArray[Any],
    *,
    record_bytes: int = 24,
    bts_index: int | None = None,
    code32: bool = False,
    cpu: int | None = None,
    pid: int | None = None,
    tid: int | None = None,
    switches: Sequence[tuple[int, int | None, int | None]] = (),
    images: Sequence[ImageItem] | Mapping[int, Buffer] | None = None,
    debug_path: Sequence[str | os.PathLike[str]] | None = None,
    image_callback: ImageCallback | None = None,
    threads: int | None = None,
    errors: str = "rows",
    tsc_hz: int | None = None,
    perf_time: tuple[int, int, int] | None = None,
) -> Trace:
    """Open taken branches, as BTS or branch stacks record them, as a trace of one stream.

    Parameters
    ----------
    branches : bytes-like, mapping of arrays, or array
        In the order of execution. Bytes: records of a debug store area (BTS buffer), with or without the area
        before them, which says which record is the next one to write. A mapping or structured array:
        ``from_ip`` and ``to_ip``, and as they are known ``tsc``, ``flags`` (`ptkit.RecordFlag`) and
        ``cycles``; see docs/branch-records.md. An integer array of shape (n, 2): from and to. All are copied.
    record_bytes : int
        Of the records of a debug store area: 24, or 12 of a 32-bit system. Only for bytes.
    bts_index : int, optional
        Only for bytes: the number of the record that would be written next, where the buffer was used as a
        ring. Records are put in order from there. None: they are in order.
    code32 : bool
        The code is 32-bit code. That of 12-byte records always is.
    cpu, pid, tid : int, optional
        Where and for whom it was recorded: a processor's number, ids of process and thread.
    switches : sequence of tuple
        Context switches, in order: ``(record, pid, tid)``. From the record of this number on (0 is the
        first in the order of execution) this thread ran; an id may be None. Before the first switch `pid`
        and `tid` hold. Code at the target of a record does not go on in another thread's record.
    images, debug_path, image_callback, threads, errors, tsc_hz, perf_time : optional
        As for `ptkit.open`.

    Returns
    -------
    Trace
        Without code, its branches are all there is, of kind `BranchKind.UNKNOWN`.

    Raises
    ------
    ConfigError
        If an argument is out of range, arrays have not the same length, or switches are not in order.
    FormatError
        If there is no branch, or bytes end within a record.
    TypeError
        If `branches` is none of these.

    Notes
    -----
    Intel SDM vol. 3, "BTS and DS Save Area".

    Examples
    --------
    >>> import ptkit
    >>> loop = bytes.fromhex("90ebfd")  # nop; jmp back
    >>> trace = ptkit.open_branches({"from_ip": [0x1001] * 2, "to_ip": [0x1000] * 2}, images={0x1000: loop})
    >>> trace.branches().named("kind"), trace.instructions()["ip"].tolist()
    (['JUMP', 'JUMP'], [4097, 4096, 4097])
    """
    check_choice("errors", errors, ("rows", "raise"))
    thread_count(threads)
    if image_callback is not None and not callable(image_callback):
        raise TypeError(f"image_callback must be callable, not {type(image_callback).__name__}")
    records = _records_of(branches, record_bytes, bts_index)
    if len(records) == 0:
        raise FormatError("there are no branches: nothing to decode")
    if flag("code32", code32):
        records["flags"] |= np.uint32(_core.RecordFlag.CODE32)
    bundle = _core.Bundle()
    bundle.format = "branches"
    bundle.source = f"<{len(records)} branches>"
    bundle.add_stream(
        records.tobytes(),
        kind="branch records",
        cpu=cpu,
        pid=pid,
        tid=tid,
        switches=_switch_rows(switches, pid, tid),
        by_offset=bool(switches),
    )
    add_images(bundle, images)
    apply_settings(bundle, tsc_hz=tsc_hz, perf_time=perf_time)
    return Trace(bundle, Settings("ptkit", "ip", threads, errors), image_callback, debug_path=debug_path)


def _switch_rows(
    switches: Sequence[tuple[int, int | None, int | None]], pid: int | None, tid: int | None
) -> list[tuple[int, int | None, int | None, int]]:
    """Rows of ``Bundle.add_stream``: offsets in bytes; the first one is of the stream's begin."""
    rows: list[tuple[int, int | None, int | None, int]] = []
    for item in switches:
        if not isinstance(item, (tuple, list)) or len(item) != 3:
            raise ConfigError(f"switches: {item!r} is not (record, pid, tid)")
        record = integer("switches: record", item[0], 0, _LAST_RECORD)
        ids = [None if one is None else integer("switches: id", one, 0, _LAST_ID) for one in item[1:]]
        if rows and record * BRANCH_RECORD.itemsize < rows[-1][0]:
            raise ConfigError(f"switches: record {record} comes after a later one; give them in order")
        rows.append((record * BRANCH_RECORD.itemsize, ids[0], ids[1], 0))
    if rows and rows[0][0] != 0:
        rows.insert(0, (0, pid, tid, 0))
    return rows


def _records_of(branches: Any, record_bytes: int, bts_index: int | None) -> NDArray[Any]:
    arrays = _of_arrays(branches)
    if arrays is None:
        return _of_ds(branches, record_bytes, bts_index)
    if bts_index is not None:
        raise ConfigError(f"bts_index={bts_index!r}: only bytes of a debug store area have one")
    return arrays


def _of_arrays(branches: Any) -> NDArray[Any] | None:
    if isinstance(branches, Mapping):
        return _from_fields({str(name): numbers(column) for name, column in branches.items()})
    if isinstance(branches, np.ndarray) and branches.dtype.names is not None:
        return _from_fields({name: branches[name] for name in branches.dtype.names})
    if isinstance(branches, np.ndarray) and branches.ndim == 2 and branches.shape[1] == 2:
        return _from_fields({"from_ip": branches[:, 0], "to_ip": branches[:, 1]})
    return None


def _of_ds(branches: Any, record_bytes: int, bts_index: int | None) -> NDArray[Any]:
    if record_bytes not in _DS_BYTES:
        raise ConfigError(f"record_bytes={record_bytes!r} is not one of {', '.join(map(str, _DS_BYTES))}")
    try:
        view = memoryview(branches)
        if not view.c_contiguous:
            raise ConfigError(
                "branches: these bytes are not contiguous in memory (a slice with a step, or "
                "another order); give numpy.ascontiguousarray(branches)"
            )
        data = view.cast("B")
    except TypeError as error:
        raise TypeError(
            f"cannot open branches of {type(branches).__name__}: give bytes of a debug store area, a mapping "
            "or structured array with from_ip and to_ip, or an array of shape (n, 2)"
        ) from error
    if bts_index is not None:
        integer("bts_index", bts_index, 0, LAST_ADDRESS)
    return np.frombuffer(bytearray(_core.records_of_ds(data, record_bytes, bts_index)), BRANCH_RECORD)


def _from_fields(columns: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise ConfigError(
            f"branches have no {' and no '.join(missing)}; they have {', '.join(columns) or 'nothing'}"
        )
    fields = BRANCH_RECORD.names or ()
    unknown = [name for name in columns if name not in fields]
    if unknown:
        raise ConfigError(f"branches have no field {unknown[0]!r}; fields are {', '.join(fields)}")
    sizes = {name: column.shape for name, column in columns.items()}
    if len(set(sizes.values())) != 1 or columns["from_ip"].ndim != 1:
        raise ConfigError(f"branches: arrays must have one dimension and the same length, not {sizes}")
    records = np.zeros(len(columns["from_ip"]), BRANCH_RECORD)
    for name, column in columns.items():
        records[name] = _unsigned(name, column, records.dtype[name])
    return records


def _unsigned(name: str, column: NDArray[Any], wanted: np.dtype[Any]) -> NDArray[Any]:
    if column.size == 0:
        return column.astype(wanted)
    if column.dtype.kind not in "iu":
        raise ConfigError(f"branches: {name} must be integers, not {column.dtype}")
    if int(column.min()) < 0 or int(column.max()) > np.iinfo(wanted).max:
        raise ConfigError(f"branches: {name} must be in [0, 2**{8 * wanted.itemsize})")
    return column.astype(wanted)
