"""Readers of recordings in Python, and how a package adds one."""

from ptkit.readers.recording import Reader, Source, new_recording
from ptkit.readers.registry import formats, open_recording, readers

__all__ = ["Reader", "Source", "formats", "new_recording", "open_recording", "readers"]
