"""The bytes of a stream, as the processor wrote them."""

from __future__ import annotations

from typing import Any

from ptkit import _core
from ptkit.decode import Opened
from ptkit.errors import ConfigError, UnsupportedError
from ptkit.export.files import NewFile
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.support.text import shortened

__all__ = ["stream_bytes", "write_raw"]

_CHUNK = 1 << 24
_LISTED = 20


def write_raw(trace: Opened, path: str, *, stream: int | None = None) -> dict[str, Any]:
    """Write the packets of a stream as they are in the recording.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; an earlier one is replaced when the new one is complete. A long stream is not held in memory.
    stream : int, optional
        Index of the stream; it may be left out where there is one alone.

    Raises
    ------
    ConfigError
        If there is no such stream, or there are several and none is chosen.
    UnsupportedError
        If the stream has branch records instead of packets.
    """
    bundle = trace.opened.bundle
    chosen = _chosen(bundle, stream)
    facts = bundle.streams[chosen]
    data, size = _core.StreamBytes(bundle, chosen), facts["size"]
    with NewFile(path) as file:
        for begin in range(0, size, _CHUNK):
            file.write(data.read(begin, begin + _CHUNK))
    notes = []
    if facts["losses"]:
        notes.append(f"the recorder lost bytes of this stream {facts['losses']:,} times, not in the file")
    if facts["switches"]:
        notes.append(f"{facts['switches']:,} switches of threads are not in the file")
    return {"bytes": size, "notes": notes}


def stream_bytes(trace: Opened, stream: int | None, offset: int, size: int | None) -> bytes:
    """Bytes of a stream; see `ptkit.Trace.stream_bytes`."""
    bundle = trace.opened.bundle
    chosen = _chosen(bundle, stream)
    begin = integer("offset", offset, 0, LAST_ADDRESS)
    length = LAST_ADDRESS if size is None else integer("size", size, 0, LAST_ADDRESS)
    return _core.StreamBytes(bundle, chosen).read(begin, min(begin + length, LAST_ADDRESS))


def _chosen(bundle: _core.Bundle, stream: int | None) -> int:
    """Index of a stream of packets: the one that is chosen, or the only one."""
    streams = bundle.streams
    if stream is None and len(streams) != 1:
        listed = [f"{index}: {_described(one)}" for index, one in enumerate(streams[:_LISTED])]
        more = f", and {len(streams) - _LISTED} more (ptkit info)" if len(streams) > _LISTED else ""
        raise ConfigError(
            f"stream: the recording has {len(streams)} streams; choose one by its number (--stream N): "
            f"{', '.join(listed)}{more}"
        )
    index = 0 if stream is None else integer("stream", stream, 0, len(streams) - 1, hint="see trace.streams")
    if streams[index]["kind"] != "packets":
        raise UnsupportedError(f"stream {index} has {streams[index]['kind']}, not packets of Processor Trace")
    return index


def _described(stream: dict[str, Any]) -> str:
    return f"{shortened(stream['name']) or 'unnamed'} ({stream['size']:,} bytes)"
