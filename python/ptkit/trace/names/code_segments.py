"""The base of the code segment of 16 and 32-bit code, and the warning where it is not known."""

from __future__ import annotations

from collections.abc import Iterable

from ptkit import _core
from ptkit.errors import ConfigError, UnsupportedError
from ptkit.info import EFFECTIVE, LINEAR, TraceInfo
from ptkit.support.arguments import integer
from ptkit.trace.late_warnings import LateWarnings

__all__ = ["CodeSegments", "set_cs_base"]

_LAST_BASE = 2**32 - 1
# Linux starts 32-bit programs in flat segments; modify_ldt() makes 16-bit ones with a base.
_NOT_FLAT_ON_LINUX = frozenset({16})
_NOT_FLAT = frozenset({16, 32})


def set_cs_base(bundle: _core.Bundle, cs_base: int, engine: str) -> None:
    """Say that IP payloads of 16 and 32-bit code are relative to a base.

    Raises
    ------
    ConfigError
        If it is no 32-bit address, the recording says that payloads include the base, or it has no packets.
    UnsupportedError
        If the engine cannot add a base.
    """
    cs_base = integer("cs_base", cs_base, 0, _LAST_BASE)
    given = f"cs_base={cs_base:#x}"
    if bundle.configuration["ip_payloads"] == LINEAR:
        raise ConfigError(
            f"{given}: {bundle.source} states that IP payloads are linear addresses "
            "(CPUID.14H.0:ECX[31] is 1), which include the base of the code segment; leave cs_base out"
        )
    if all(stream["kind"] != "packets" for stream in bundle.streams):
        raise ConfigError(
            f"{given}: {bundle.source} has no packets, and the base is for IP payloads; leave cs_base out"
        )
    if cs_base and engine == "libipt":
        raise UnsupportedError(f'{given}: libipt adds no base to IP payloads; use engine="ptkit"')
    bundle.set_cs_base(cs_base)


class CodeSegments(LateWarnings):
    """Says once that addresses of 16 or 32-bit code are relative to the base of its code segment.

    Parameters
    ----------
    session : _core.Session
        Knows which code was met.
    info : TraceInfo
        Facts from the recording.
    given : bool
        The user said what the base is.
    """

    def __init__(self, session: _core.Session, info: TraceInfo, given: bool) -> None:
        super().__init__()
        self._session = session
        self._source = info.source
        self._watched: Iterable[int] = ()
        if info.ip_payloads == EFFECTIVE and not given:
            self._watched = _NOT_FLAT_ON_LINUX if info.by_linux else _NOT_FLAT

    def look(self) -> None:
        """Warn if code of such a size was decoded."""
        if not self._watched:
            return
        met = sorted(set(self._watched) & set(self._session.code_bits))
        if not met:
            return
        self._watched = ()
        kinds = " and ".join(f"{bits}-bit" for bits in met)
        self._warn(_core.make_warning("CODE_BASE_UNKNOWN", [kinds], self._source))
