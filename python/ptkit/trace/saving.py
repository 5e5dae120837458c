"""A trace as a bundle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ptkit import _core
from ptkit.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from ptkit.trace.open_parts import OpenParts

__all__ = ["save"]


def save(parts: OpenParts, path: str | os.PathLike[str], *, redact: bool = False) -> int:
    """Write the bundle of a trace; see `Trace.save`."""
    text = os.fspath(path)
    if not text or "\0" in text:
        raise ConfigError(f"path={path!r} is no path: it is empty or has a NUL")
    source = Path(parts.described.source)
    if source.exists() and Path(text).exists() and Path(text).samefile(source):
        raise ConfigError(f"{text}: is what is read; save to another file")
    if parts.has_callback:
        raise UnsupportedError("code comes from image_callback, and is not in the recording: give images=")
    return _core.save_bundle(parts.opened.bundle, os.fsencode(text), redact=redact)
