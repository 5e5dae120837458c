"""Former names of `ptkit.Recorder` and of what it runs: each works, with a DeprecationWarning."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ptkit.capture.options import Options
from ptkit.capture.recorder import BundleRecorder
from ptkit.capture.recording import Progress, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["named"]


def _record(
    argv: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    *,
    progress: Callable[[Progress], object] | None = None,
    **options: Unpack[Options],
) -> Recording:
    """Record, and keep the bundle also if it is a temporary file."""
    return BundleRecorder(argv, output, **options).run(progress)


_INSTEAD: dict[str, tuple[Any, str]] = {
    "Recorder": (BundleRecorder, "use ptkit.Recorder"),
    "record": (_record, "use ptkit.Recorder(...).run(), or ptkit.record for the trace"),
}


def named(name: str) -> Any:
    """Return the object of an old name of `ptkit.capture`, with a DeprecationWarning."""
    if name not in _INSTEAD:
        raise AttributeError(f"module 'ptkit.capture' has no attribute {name!r}")
    found, instead = _INSTEAD[name]
    # The caller's frame is after this one and after the module's own __getattr__.
    warnings.warn(f"ptkit.capture.{name} is deprecated: {instead}", DeprecationWarning, stacklevel=3)
    return found
