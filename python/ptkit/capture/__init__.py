"""Recording: the back ends that this machine has, what others need, and what comes of a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptkit.capture.backends import Backend, probe
from ptkit.capture.filters import Filter
from ptkit.capture.options import Options
from ptkit.capture.recording import Progress, Recording
from ptkit.capture.triggers import Trigger

__all__ = ["Backend", "Filter", "Options", "Progress", "Recording", "Trigger", "probe"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Give what moved to `ptkit.Recorder` and `ptkit.record`; the old names warn."""
        from ptkit.capture.deprecated import named

        return named(name)
