"""perf.data."""

from __future__ import annotations

import os
from typing import Any

from ptkit import _core
from ptkit.decode import Opened
from ptkit.errors import ConfigError

__all__ = ["write_perf_data"]

_CODE = ("needed", "all", "none")


def write_perf_data(trace: Opened, path: str, *, code: str = "needed") -> dict[str, Any]:
    """Write a recording as Linux perf writes it.

    Parameters
    ----------
    trace : Trace
    path : str
        A file; a folder is made of it if the kernel's code is in the recording, as ``perf record --kcore``
        does. An earlier one is replaced when the new one is complete.
    code : str
        Which code goes to ``PATH.debug``, for ``perf --buildid-dir``: ``"needed"``, what no file of this
        machine has; ``"all"``, all that is known, for other machines; or ``"none"``.
    """
    if code not in _CODE:
        raise ConfigError(f"code={code!r} is not one of {', '.join(_CODE)}")
    said = _core.write_perf_data(trace.opened.bundle, os.fsencode(path), code=code)
    folder = os.fsdecode(said["code_folder"])
    return {"bytes": said["bytes"], "files": (folder,) if folder else (), "notes": said["notes"]}
