"""Recording: the back ends that this machine has, what others need, and what comes of a recording."""

from __future__ import annotations

from ptkit.capture.backends import Backend, probe
from ptkit.capture.filters import Filter
from ptkit.capture.options import Options
from ptkit.capture.recording import Progress, Recording
from ptkit.capture.triggers import Trigger

__all__ = ["Backend", "Filter", "Options", "Progress", "Recording", "Trigger", "probe"]
