"""What recorders need of the operating system. `platform` is the module of this one."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from ptkit.capture.systems import windows as platform
else:
    from ptkit.capture.systems import posix as platform

__all__ = ["platform"]
