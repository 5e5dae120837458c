"""What recorders ask of the operating system. `here` is the module of this one."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from ptkit.capture.systems import windows as here
else:
    from ptkit.capture.systems import posix as here

__all__ = ["here"]
