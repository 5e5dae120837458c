"""Coverage for fuzzers: the edges of one short buffer after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptkit import _core
from ptkit import decode as _decode
from ptkit._core import CoverageResult
from ptkit.errors import ConfigError
from ptkit.support.arguments import LAST_ADDRESS, address_ranges, flag, integer
from ptkit.table import Table, TableContext
from ptkit.table.table import from_core
from ptkit.trace.facade import Trace
from ptkit.trace.names.names import Names
from ptkit.trace.opening.bundle import apply_settings
from ptkit.trace.opening.images import add_images

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ptkit.trace.open_parts import ImageCallback
    from ptkit.trace.opening.images import ImageItem

__all__ = ["CoverageDecoder", "CoverageResult"]

_LARGEST_MAP = 2**32


def _session(
    images: Trace | Sequence[ImageItem] | Mapping[int, Buffer] | None,
    cpu: str | None,
    callback: ImageCallback | None,
) -> tuple[_core.Session, TableContext]:
    """Code, and what tables of edges, errors and gaps take their names from."""
    if isinstance(images, Trace):
        if cpu is None and callback is None:
            return images.opened.session, images.open_parts.context
        raise ConfigError("cpu and image_callback are the trace's own: give them to ptkit.open")
    bundle = _core.Bundle()
    bundle.source = "images"
    add_images(bundle, images)
    apply_settings(bundle, cpu=cpu)
    session = _core.Session(bundle, callback)
    paths = tuple(path for path, _ in bundle.files)
    return session, TableContext(paths, Names(session, 1, paths).name_rows)


class CoverageDecoder:
    """Decodes one raw buffer after another into a map of hits, or a list of edges.

    The code that was decoded is kept from call to call, so that a call costs what the packets of its buffer
    cost and a few microseconds. Calls release the GIL; one decoder serves one thread at a time, each thread
    can have its own.

    Parameters
    ----------
    images : sequence or Trace
        Code, as `ptkit.open` takes it; or a trace that was opened, for its code and its configuration.
    image_callback : callable, optional
        As in `ptkit.open`.
    cpu : str, optional
        ``"family/model[/stepping]"``: decides which errata apply.
    resync : str
        Where to go on after an error: ``"ip"`` or ``"psb"``; see `ptkit.open`.
    ranges : sequence of tuple, optional
        Address ranges that were programmed, at most 4: ``("filter", first, last)`` where packets are on, or
        ``("stop", first, last)``, `last` inclusive. By default those of the trace, or none.
    rtit_ctl : int, optional
        IA32_RTIT_CTL as it was programmed: says whether returns are compressed. Where they are known not to
        be (DisRETC), a call takes less time.
    sync : bool
        Begin at the first PSB of a buffer. False: a buffer may begin without one, and is decoded from its
        first TIP.PGE or FUP with a full IP (six or eight bytes) on; what a trace unit writes when tracing is
        enabled again has no PSB.
    space : int, optional
        Address space that buffers begin in; by default the one of the trace's first stream.
    map_size : int
        Bytes of the maps, a power of two.

    Raises
    ------
    ConfigError
        If an argument is out of range.
    OpenError, FormatError
        If an image cannot be read, or is none.
    UnsupportedError
        If the trace's code changes with time.

    Notes
    -----
    The byte of the map that stands for an edge is at ``edge_hash & (map_size - 1)``, with all arithmetic
    modulo 2**64::

        x = from_ip * 0x9E3779B97F4A7C15 + to_ip
        edge_hash = ((x ^ (x >> 32)) * 0xD6E8FEB86659FD93) >> 32

    Edges are all branches with both ends known, those of `Trace.edges`: also direct jumps and calls, and
    conditional branches that fall through.

    Examples
    --------
    >>> import ptkit, numpy
    >>> code = {0x1000: bytes.fromhex("7402 90 90 c3")}  # jz 0x1004; nop; nop; ret
    >>> decoder = ptkit.CoverageDecoder(code)
    >>> bitmap = numpy.zeros(65536, numpy.uint8)
    >>> psb, on_at_1000 = bytes.fromhex("0282" * 8 + "9901 0223"), bytes.fromhex("51 00100000")
    >>> result = decoder.decode(psb + on_at_1000 + bytes.fromhex("06 01"), bitmap)
    >>> result.edges, result.errors, int(bitmap.sum())
    (1, 0, 1)
    >>> bool(bitmap[decoder.index(0x1000, 0x1004)])
    True
    """

    def __init__(
        self,
        images: Trace | Sequence[ImageItem] | Mapping[int, Buffer] | None = None,
        *,
        image_callback: ImageCallback | None = None,
        cpu: str | None = None,
        resync: str = "ip",
        ranges: Sequence[tuple[str, int, int]] | None = None,
        rtit_ctl: int | None = None,
        sync: bool = True,
        space: int | None = None,
        map_size: int = 65536,
    ) -> None:
        _decode.plan.check_choice("resync", resync, ("ip", "psb"))
        self._map_size = integer("map_size", map_size, 1, _LARGEST_MAP)
        if self._map_size & (self._map_size - 1):
            raise ConfigError(f"map_size={map_size}: it must be a power of two")
        if image_callback is not None and not callable(image_callback):
            raise TypeError(f"image_callback must be callable, not {type(image_callback).__name__}")
        if images is None and image_callback is None:
            raise ConfigError("there is no code: give images=[...] or image_callback")
        spaces = len(images.info.spaces) if isinstance(images, Trace) else 1
        if space is None:
            space = images.streams[0].space if isinstance(images, Trace) else 0
        session, self._context = _session(images, cpu, image_callback)
        self._core = _core.Coverage(
            session,
            map_size=self._map_size,
            resync=resync,
            ranges=None if ranges is None else address_ranges(ranges),
            rtit_ctl=None if rtit_ctl is None else integer("rtit_ctl", rtit_ctl, 0, LAST_ADDRESS),
            sync=flag("sync", sync),
            space=integer("space", space, 0, spaces - 1),
        )

    def __repr__(self) -> str:
        return f"<ptkit.CoverageDecoder: maps of {self._map_size:,} bytes>"

    @property
    def map_size(self) -> int:
        """Bytes of the maps."""
        return self._map_size

    def decode(
        self,
        buffer: Buffer | Sequence[Buffer],
        bitmap: NDArray[np.uint8] | None = None,
        virgin: NDArray[np.uint8] | None = None,
        *,
        clear: bool = False,
    ) -> CoverageResult:
        """Decode a raw stream.

        Parameters
        ----------
        buffer : bytes-like, or list or tuple of these
            Packets; begins with a PSB, or what comes before the first one is a gap. It is not copied. A list
            has the chunks of a ring, the oldest one first; offsets count from its first byte.
        bitmap : numpy.ndarray of uint8 or bytearray, shape (map_size,), optional
            Hits are added to the bytes of the map, up to 255: a byte never wraps around. The caller clears
            the map, or `clear` does.
        virgin : numpy.ndarray of uint8 or bytearray, shape (map_size,), optional
            Edges without a hit so far: 0xff everywhere at first. Each byte of the map that this buffer hit is
            sorted by AFL's buckets (1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128-255 hits), and the bucket's bit
            is cleared.
        clear : bool
            Set `bitmap` to 0 first.

        Returns
        -------
        CoverageResult
            ``bytes``, ``instructions``, ``branches``, ``edges``, ``new_edges``, ``errors`` and ``gaps`` are
            numbers of them.
            ``new_bits`` is 2 if the buffer hit a byte for the first time, 1 if only a bucket was new, else 0,
            as AFL's ``has_new_bits``; 0 without `virgin`.

        Raises
        ------
        TypeError
            If `buffer` is not contiguous bytes, or a map not a contiguous writable array of uint8.
        ConfigError
            If a map has another size than `map_size`, or both share memory.
        RuntimeError
            If another thread uses this decoder.
        """
        return self._core.decode(buffer, bitmap, virgin, clear=clear)

    def edges(self) -> Table:
        """Edges of the last buffer, ordered by address space, from, to and kind.

        Returns
        -------
        Table
            As `Trace.edges`.
        """
        return from_core("edges", self._core.edges(), context=self._context)

    def new_edges(self) -> Table:
        """Edges of the last buffer that hit a byte of `virgin` for the first time, ordered as `edges`.

        An edge that shares its byte with one that was seen before is not among them; nor is an edge with
        another number of hits than before. Empty without `virgin`.

        Returns
        -------
        Table
            As `Trace.edges`.
        """
        return from_core("edges", self._core.new_edges(), context=self._context)

    def edges_into(
        self,
        from_ip: NDArray[np.uint64] | None = None,
        to_ip: NDArray[np.uint64] | None = None,
        kind: NDArray[np.uint8] | None = None,
        count: NDArray[np.int64] | None = None,
    ) -> int:
        """Write edges of the last buffer into arrays that the caller owns, in no particular order.

        Parameters
        ----------
        from_ip, to_ip : numpy.ndarray of uint64, optional
            One-dimensional; as many edges as each one holds are written.
        count : numpy.ndarray of int64, optional
            How often each edge was executed.
        kind : numpy.ndarray of uint8, optional
            `ptkit.BranchKind`.

        Returns
        -------
        int
            How many edges there are, written or not.

        Raises
        ------
        TypeError
            If an array is of another type, not contiguous or read-only.
        """
        return self._core.edges_into(from_ip, to_ip, kind, count)

    def errors(self) -> Table:
        """Errors of the last buffer: as `Trace.errors`, without times."""
        return from_core("errors", self._core.errors(), context=self._context)

    def gaps(self) -> Table:
        """Parts of the last buffer where control flow is not known: as `Trace.gaps`, without times."""
        return from_core("gaps", self._core.gaps(), context=self._context)

    def index(self, from_ip: ArrayLike, to_ip: ArrayLike) -> NDArray[np.int64]:
        """Which byte of a map stands for an edge.

        Parameters
        ----------
        from_ip, to_ip : int or array of uint64
            Ends of the edges.

        Returns
        -------
        numpy.ndarray of int64
            Shaped as `from_ip` and `to_ip` together.
        """
        ends = np.asarray(from_ip, np.uint64), np.asarray(to_ip, np.uint64)
        return np.asarray(_core.edge_hash(*ends), np.int64) & (self._map_size - 1)

    def forget(self, first: int = 0, last: int = LAST_ADDRESS) -> None:
        """Report that code has changed at its addresses.

        Code in [first, last] is decoded again, from the memory that the images were given as (files were
        read once) or by asking the callback again.

        Parameters
        ----------
        first, last : int
            Addresses of the first and last byte.

        Raises
        ------
        ConfigError
            If they are no addresses.
        """
        first = integer("first", first, 0, LAST_ADDRESS)
        self._core.forget(first, integer("last", last, first, LAST_ADDRESS))

    def set_images(self, images: Trace | Sequence[ImageItem] | Mapping[int, Buffer]) -> None:
        """Replace the code; the configuration and the callback stay.

        Parameters
        ----------
        images : sequence or Trace
            As for the constructor.

        Raises
        ------
        OpenError, FormatError, ConfigError, UnsupportedError
            As the constructor; the code stays as it was.
        """
        session, context = _session(images, None, None)
        self._core.set_images(session)
        self._context = context
