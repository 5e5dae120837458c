"""Inputs of every kind as a bundle of the core: files and folders, buffers, lists of parts."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ptkit import _core
from ptkit.errors import ConfigError, FormatError, MissingFileError, PtkitWarning
from ptkit.support import memory
from ptkit.support.arguments import LAST_ADDRESS, address_ranges, integer
from ptkit.support.inputs import is_pipe, permission_denied, read_pipe, read_regular

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    PathLike: TypeAlias = str | os.PathLike[str]
    #: A path, bytes in memory, or a list of these: parts of one stream.
    Source: TypeAlias = PathLike | Buffer | Sequence[PathLike | Buffer]

_BTS_FORMATS = ("bts", "bts32")


def is_path(value: object) -> bool:
    """Whether a value is a path, not bytes."""
    return isinstance(value, (str, os.PathLike))


def checked_path(path: Any, noun: str) -> str:
    """Return the path as text if it can be read; raise OpenError with the reason if not."""
    return _checked(path, noun)[0]


def _checked(path: Any, noun: str) -> tuple[str, os.stat_result]:
    """Return the path as text, and the status of its file."""
    text = os.fspath(path)
    if not text:
        raise MissingFileError(f"the path of the {noun} is empty; give a {noun}")
    if "\0" in str(text):
        raise ConfigError(f"{text!r}: a path has no NUL")
    if text == "-":
        raise MissingFileError("-: no file has this name; give /dev/stdin for standard input, or ./-")
    try:
        status = Path(text).stat()
    except PermissionError:
        raise permission_denied(text) from None
    except (OSError, ValueError):
        raise MissingFileError(f"{text}: there is no such {noun}; check the path") from None
    if not os.access(text, os.R_OK):
        raise permission_denied(text)
    return str(text), status


def checked_paths(name: str, paths: Sequence[PathLike] | None, kind: str, one: str) -> list[str]:
    """Check an argument that is a list of paths that exist.

    Parameters
    ----------
    name : str
        Of the argument.
    paths : sequence of paths or None
    kind, one : str
        Nouns for all paths and for one of them, for messages.

    Raises
    ------
    ConfigError
        If it is one path, or a path has a NUL.
    OpenError
        If a path cannot be read (`MissingFileError` if it is not there).
    """
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise ConfigError(f"{name}={paths!r} must be a list of {kind}")
    return [checked_path(path, one) for path in paths or ()]


def _as_bytes(part: Any) -> bytes:
    if is_path(part):
        path = Path(checked_path(part, "file"))
        if path.is_dir():
            raise FormatError(f"{path}: is a folder, no part of a stream; open it alone, not in a list")
        return read_regular(str(path))
    try:
        return bytes(memoryview(part).cast("B"))
    except TypeError as error:
        raise TypeError(
            f"a part of a stream must be a path or contiguous bytes, not {type(part).__name__}"
        ) from error


def is_buffer(value: object) -> bool:
    """Whether a value gives its bytes."""
    try:
        memoryview(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _of_pipe(path: str) -> bytearray:
    data = read_pipe(path, *memory.free())
    if not data:
        raise FormatError(f"{path}: the pipe gave nothing; check the program that writes to it")
    return data


def open_source(
    source: Source,
    format: str | None,
    binaries: Sequence[str | os.PathLike[str]] | None = None,
    bts_index: int | None = None,
    *,
    sync: bool = True,
) -> _core.Bundle:
    """Make a bundle of the user's input.

    Parameters
    ----------
    source : path, bytes-like or list of these
        A list holds the parts of one stream.
    format : str or None
        Reader to force.
    binaries : sequence of paths, optional
        Folders to look for programs in.
    bts_index : int, optional
        Of a BTS buffer: the record that would be written next.
    sync : bool
        A raw stream must have a PSB near its start.

    Raises
    ------
    OpenError
        If a path cannot be read.
    FormatError
        If the input is no trace.
    ConfigError
        If there is no such reader, `binaries` is no list of folders, or `bts_index` is given for another
        format or out of range.
    TypeError
        If a buffer does not hold contiguous bytes.
    """
    if format is not None and not isinstance(format, str):
        raise ConfigError(f"format={format!r} must be the name of a reader")
    if bts_index is not None:
        if format not in _BTS_FORMATS:
            raise ConfigError(
                f'bts_index={bts_index!r}: only BTS buffers have one; say format="bts" or "bts32" too'
            )
        integer("bts_index", bts_index, 0, LAST_ADDRESS)
    folders = checked_paths("binaries", binaries, "folders", "folder of binaries")
    if is_path(source):
        path, status = _checked(source, "file or folder")
        piped = _of_pipe(path) if is_pipe(path, status.st_mode) else None
        if piped is None and status.st_size == 0 and not stat.S_ISDIR(status.st_mode):
            raise FormatError(f"{path}: the file is empty; record again, or check what wrote it")
        from ptkit import readers  # takes a while

        given = readers.Source(path, piped, tuple(folders), without_psb=not sync)
        return readers.open_recording(given, format or "", bts_index)
    if format is not None:
        raise ConfigError(f"format={format!r} needs a path; bytes are always a raw stream")
    bundle = _core.Bundle()
    bundle.format = "raw"
    if is_buffer(source):
        data: Any = source
        bundle.source = f"<{type(source).__name__}>"
    elif isinstance(source, Sequence):
        data = b"".join(_as_bytes(part) for part in source)
        bundle.source = f"<{len(source)} parts>"
    else:
        raise TypeError(
            f"cannot open {type(source).__name__}: give a path, bytes, a NumPy uint8 array or a list of parts"
        )
    if memoryview(data).nbytes == 0:
        raise FormatError("the stream is empty: there is nothing to decode")
    bundle.add_stream(data, name=bundle.source)
    return bundle


def redact(source: PathLike, output: PathLike) -> None:
    """Write a recording as a bundle that names no path, command line, thread or machine.

    Trace, code bytes, names of functions, build-ids, ids, addresses and times stay; files are called
    ``file-0``, ``file-1``, ... See docs/bundle-format.md.

    Parameters
    ----------
    source : path
        A recording of any format that `ptkit.open` reads.
    output : path
        The bundle to write; not `source`.

    Raises
    ------
    OpenError
        If the one cannot be read or the other not be written.
    FormatError
        If `source` is no trace, or has a trace that lies outside of its folder.
    ConfigError
        If both are the same file.

    Warns
    -----
    PtkitWarning
        If code of programs outside of the recording's folder, of unknown builds, was
        left out.

    Examples
    --------
    >>> import ptkit, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recording = ptkit.Recorder(["true"], f"{folder}/true.ptk").run()
    ...     ptkit.redact(recording, f"{folder}/redacted.ptk")
    ...     print(ptkit.open(f"{folder}/redacted.ptk").info.files[0][0])
    file-0
    """
    path = checked_path(source, "file or folder")
    text = os.fspath(output)
    if not text or "\0" in text:
        raise ConfigError(f"output={output!r} is no path: it is empty or has a NUL")
    if Path(text).exists() and Path(text).samefile(path):
        raise ConfigError(f"{text}: is what is read; write the redacted bundle to another file")
    bundle = open_source(path, None)
    _core.save_bundle(bundle, os.fsencode(text), redact=True)
    if left_out := bundle.outside_files(code=True):
        warnings.warn(
            _core.make_warning("FILES_LEFT_OUT", [", ".join(left_out)], text),
            PtkitWarning,
            stacklevel=2,
        )


def packet_source(data: Source) -> _core.Bundle:
    """Make a bundle of one raw stream, empty or not: only its packets are decoded."""
    bundle = _core.Bundle()
    if is_path(data):
        path, status = _checked(data, "file")
        if stat.S_ISDIR(status.st_mode):
            raise FormatError(f"{path}: is a folder; packets are read from one file")
        if is_pipe(path, status.st_mode):
            bundle.add_stream(read_pipe(path, *memory.free()), name=path)
        else:
            bundle.add_stream_file(os.fsencode(path))
    elif is_buffer(data):
        bundle.add_stream(cast(Any, data))
    elif isinstance(data, Sequence):
        bundle.add_stream(b"".join(_as_bytes(part) for part in data))
    else:
        raise TypeError(
            f"cannot read packets from {type(data).__name__}: give bytes, a NumPy uint8 array or a path"
        )
    return bundle


def parse_cpu(cpu: str) -> tuple[int, int, int]:
    """Read ``"family/model[/stepping]"``.

    Raises
    ------
    ConfigError
        If it is not of this form.
    """
    parts = cpu.split("/") if isinstance(cpu, str) else []
    limits = (0xFFFF, 0xFFFF, 0xFF)
    try:
        numbers = [int(part, 0) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or any(
        not 0 <= n <= limit for n, limit in zip(numbers, limits, strict=False)
    ):
        raise ConfigError(f'cpu={cpu!r}: write "family/model" or "family/model/stepping", e.g. "6/158/10"')
    family, model, stepping = [*numbers, 0][:3]
    return family, model, stepping


def set_ring_offset(bundle: _core.Bundle, ring_offset: int) -> None:
    """Put the bytes of a raw stream in order that is a ring: `ring_offset` is the next one to write.

    Raises
    ------
    ConfigError
        If the stream has no such offset, or the input is no raw stream.
    """
    ring_offset = integer("ring_offset", ring_offset, 0, LAST_ADDRESS)
    if bundle.format != "raw":
        raise ConfigError(
            f"ring_offset={ring_offset:#x}: only a raw stream is a buffer as it was in memory, and "
            f"{bundle.source} is of format {bundle.format}; leave it out"
        )
    bundle.begin_ring_at(ring_offset)


def apply_settings(
    bundle: _core.Bundle,
    *,
    cpu: str | None = None,
    ranges: Sequence[tuple[str, int, int]] | None = None,
    rtit_ctl: int | None = None,
    tsc_ctc_ratio: tuple[int, int] | None = None,
    mtc_period: int | None = None,
    max_nonturbo_ratio: int | None = None,
    tsc_hz: int | None = None,
    crystal_hz: int | None = None,
    perf_time: tuple[int, int, int] | None = None,
) -> None:
    """Set what the user gives, and the input does not have. `mtc_period` wins over that of `rtit_ctl`.

    Raises
    ------
    ConfigError
        If a value is out of range.
    """
    if cpu is not None:
        bundle.set_cpu(*parse_cpu(cpu))
    if ranges and all(stream["kind"] != "packets" for stream in bundle.streams):
        raise ConfigError(
            f"ranges (--range): {bundle.source} has branch records, which no address filter leaves out; "
            "rows of a range are selected by ip=(first, last) (--ip FIRST-LAST), of a file by module="
        )
    if ranges is not None:
        bundle.set_ranges(address_ranges(ranges))
    if rtit_ctl is not None:
        bundle.set_rtit_ctl(integer("rtit_ctl", rtit_ctl, 0, LAST_ADDRESS))
    given: dict[str, Any] = {}
    limits: Sequence[tuple[str, int, int]]
    if tsc_ctc_ratio is not None:
        limits = (("EBX", 1, 2**32 - 1), ("EAX", 1, 2**32 - 1))
        given["tsc_ctc_ratio"] = _numbers("tsc_ctc_ratio", "(CPUID 15H EBX, EAX)", tsc_ctc_ratio, limits)
    for name, value, low, limit in (
        ("mtc_period", mtc_period, 0, 15),
        ("max_nonturbo_ratio", max_nonturbo_ratio, 1, 255),
        ("tsc_hz", tsc_hz, 1, LAST_ADDRESS),
    ):
        if value is not None:
            given[name] = integer(name, value, low, limit, floats=True)
    if perf_time is not None:
        limits = (("time_mult", 1, 2**32 - 1), ("time_shift", 0, 63), ("time_zero", 0, LAST_ADDRESS))
        given["perf_time"] = _numbers("perf_time", "(time_mult, time_shift, time_zero)", perf_time, limits)
    bundle.set_clock(**given)
    if crystal_hz is not None:
        _apply_crystal(bundle, integer("crystal_hz", crystal_hz, 1, 2**32 - 1, floats=True), tsc_hz is None)


def _numbers(name: str, meaning: str, value: Any, limits: Sequence[tuple[str, int, int]]) -> tuple[int, ...]:
    """Return several numbers of one argument, each in its own range."""
    items = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else []
    if len(items) != len(limits):
        raise ConfigError(f"{name}={value!r}: give {meaning}")
    return tuple(
        integer(f"{name}: {field}", item, low, high, floats=True)
        for item, (field, low, high) in zip(items, limits, strict=True)
    )


def _apply_crystal(bundle: _core.Bundle, crystal_hz: int, wanted: bool) -> None:
    """TSC = crystal * EBX / EAX: Intel SDM, CPUID leaf 15H."""
    ratio = bundle.configuration["tsc_ctc_ratio"]
    if ratio is None:
        raise ConfigError(
            f"crystal_hz={crystal_hz} needs the ratio to the TSC, and the input has none: "
            "give tsc_ctc_ratio=(CPUID 15H EBX, EAX)"
        )
    if wanted:
        bundle.set_clock(tsc_hz=max(crystal_hz * ratio[0] // ratio[1], 1))
