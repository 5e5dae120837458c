"""Files of WindowsIntelPT's control application.

cpuNN_bin.bin has the consecutive buffers of a CPU, cpuNN_text.log has the name of the traced program in its
first lines.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ptkit import _core
from ptkit.errors import FormatError, PtkitError
from ptkit.readers.files import add_cpu_streams, file_in, number_in_name, numbered_files
from ptkit.readers.recording import Reader, Source, first_bytes, new_recording
from ptkit.support.arguments import LAST_ADDRESS
from ptkit.support.text import number

__all__ = ["WINDOWS_INTELPT"]

_BEFORE, _AFTER, _LOG_AFTER = "cpu", "_bin.bin", "_text.log"
_HEAD_BYTES = 4096  # begin of the log: a header, then the stream as text
_PAGE_BYTES = 4096
_MOST_RANGES = 4
_WORD = re.compile(rb"\w*")


@dataclass(frozen=True)
class _Module:
    name: bytes
    base: int
    size: int


def _after(text: bytes, label: bytes) -> bytes:
    """Return the text from a label to the end of its line."""
    _, found, rest = text.partition(label)
    return re.split(rb"[\r\n]", rest, maxsplit=1)[0].strip(b" ") if found else b""


def _hex_number(text: bytes) -> int:
    """Return the number that a text begins with; 0: it is none."""
    word = _WORD.match(text)
    return (number(word[0], 16) or 0) if word else 0


def _module_of(log: bytes) -> _Module:
    log = log.partition(b"Begin Trace Dump:")[0]
    name = _after(log, b"Executable name:") or _after(log, b"Kernel driver name:")
    where = _after(log, b"Base address:")
    return _Module(name, _hex_number(where), _hex_number(_after(where, b"- Size")))


def _add_module(recording: _core.Bundle, module: _Module, folder: str) -> None:
    """Add the module; the user supplies its file, in the streams' folder or as an image."""
    _core.add_module(recording, module.name, module.base, module.size)
    path = file_in(folder, module.name.decode(errors="surrogateescape"))
    if path is None or not os.path.isfile(path):  # noqa: PTH113
        _core.list_missing_file(recording, module.name)
        return
    try:
        recording.add_image(os.fsencode(path), load_address=module.base)
    except PtkitError as error:
        _core.add_warning(recording, "IMAGE_UNREADABLE", [str(error).encode(errors="surrogateescape")], b"")


def _read(source: Source) -> _core.Bundle:
    if source.is_folder:
        files = numbered_files(source.path, _BEFORE, _AFTER)
        if not files:
            raise FormatError(
                f"{source.path}: expected files cpu00_bin.bin, cpu01_bin.bin, ..., found none; give "
                "their folder"
            )
    else:
        cpu = number_in_name(source.path, _BEFORE, _AFTER)
        if cpu is None:
            raise FormatError(f"{source.path}: expected a file named cpuNN_bin.bin; give it its name back")
        files = {cpu: source.path}
    recording = new_recording()
    streams = add_cpu_streams(recording, source.path, files)
    modules: dict[int, _Module] = {}  # the logs of all CPUs name the same module
    for _, file, _ in streams:
        module = _module_of(first_bytes(file.removesuffix(_AFTER) + _LOG_AFTER, _HEAD_BYTES))
        if module.name and module.size and module.base + module.size - 1 <= LAST_ADDRESS:
            modules.setdefault(module.base, module)
    for module in modules.values():
        _add_module(recording, module, source.folder)
    # The tool programs the module that it names as the range of the address filter.
    ranges = [("filter", one.base, one.base + one.size - 1) for one in modules.values()]
    if ranges:
        recording.set_ranges(ranges[:_MOST_RANGES], all=False)
    if cut := sum(size % _PAGE_BYTES != 0 for _, _, size in streams):
        _core.add_warning(recording, "WINDOWS_BUFFER_CUT", [str(cut)], os.fsencode(source.path))
    return recording


def _recognizes(source: Source) -> bool:
    if source.is_folder:
        return bool(numbered_files(source.path, _BEFORE, _AFTER))
    return number_in_name(source.path, _BEFORE, _AFTER) is not None and os.path.isfile(source.path)  # noqa: PTH113


WINDOWS_INTELPT = Reader(
    "windows-intelpt",
    "WindowsIntelPT's cpuNN_bin.bin with cpuNN_text.log",
    _read,
    _recognizes,
    before="libxdc",
    unverified=True,
)
