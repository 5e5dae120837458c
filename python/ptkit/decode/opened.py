"""An opened trace, as the stages after opening take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ptkit import _core
from ptkit.decode.index_sums import IndexSums
from ptkit.decode.kept_sums import KeptSums

__all__ = ["OpenTrace", "Opened", "Settings"]


@dataclass(frozen=True)
class Settings:
    """Settings of the decoder, as passed to `ptkit.open`."""

    engine: str = "ptkit"
    resync: str = "ip"
    threads: int | None = None
    errors: str = "rows"
    index: _core.Index | None = None
    cs_base: int | None = None  # None: it was not given
    sync: bool = True  # a stream begins at its first PSB


@dataclass(frozen=True)
class OpenTrace:
    """The part of a trace that analyses and exporters need: `ptkit.Trace.opened`.

    Attributes
    ----------
    bundle : _core.Bundle
        Streams, code, names and configuration.
    session : _core.Session
        Decodes the bundle, and keeps the decoded code.
    settings : Settings
        How tables of the trace are decoded.
    kept : KeptSums or None
        Sums over frames that were decoded; None: they are not kept.
    indexed : IndexSums or None
        Sums over the whole trace that its index has.
    """

    bundle: _core.Bundle
    session: _core.Session
    settings: Settings
    kept: KeptSums | None = None
    indexed: IndexSums | None = None


class Opened(Protocol):
    """An object that has an opened trace, such as `ptkit.Trace`."""

    @property
    def opened(self) -> OpenTrace:
        """The bundle, the session and the settings."""
