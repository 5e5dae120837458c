"""Formats for export: ptkit's own, and those that packages add as entry points ``ptkit.exporters``."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ptkit import _core
from ptkit.errors import ConfigError, OpenError
from ptkit.export.options import TABLES, ExportOption, merged_options, table_options

__all__ = [
    "DEFAULT",
    "Exported",
    "Exporter",
    "check_output",
    "export",
    "exporter_of",
    "exporters",
    "format_of",
    "own_options",
]

GROUP = "ptkit.exporters"
#: Format of a path without a suffix of another format.
DEFAULT = "perf.data"
#: Values of `Exporter.selects` of formats that take a full selection, and so parts of a trace.
SELECTING = ("blocks", "rows")
#: `Exporter.head` of formats that are recordings.
RECORDING = b"recording"


@dataclass(frozen=True)
class Exported:
    """Report on a written file.

    Attributes
    ----------
    path : str
        File or folder.
    format : str
        Name of the format.
    bytes : int
        Size of the file that has the trace.
    files : tuple of str
        Further files that were written, beside it.
    notes : tuple of str
        Sentences: what the format cannot hold, and what was made up because it needs it.
    """

    path: str
    format: str
    bytes: int
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exporter:
    """A format that traces can be written in.

    Attributes
    ----------
    name : str
        Name for ``Trace.export(format=...)``.
    description : str
        One line.
    write : callable
        ``write(trace, path, **options)`` writes a `ptkit.Trace`, or a part of one (`View`, `Slice`) with the
        facts of the trace; returns a dict with any of ``bytes``, ``files`` and ``notes``. ``trace.opened``
        (`ptkit.decode.OpenTrace`) has the core's objects.
    selects : str
        Its options select ``"rows"`` or ``"blocks"`` (those of `ptkit.decode.Query`), ``"stream"`` (the one
        that ``stream`` is the index of), or nothing. `ptkit export` takes its options of a selection by this.
    switches : tuple of str
        Options of `write` that are True or False: those of ``file_offsets`` and ``hits`` that it has. They
        may be among `options` as well.
    options : tuple of ExportOption
        Options of `write` besides the selection. `ptkit export` takes those that ptkit's own formats have,
        too; Python takes all.
    suffixes : tuple of str
        Ends of paths that say this format: ``".pb.gz"``.
    head : bytes or callable
        Regular expression of the first bytes of its files, or whether given ones are: `ptkit export` replaces
        other files only by ``--force``. Empty: it replaces any file.
    is_folder : bool
        It writes a folder. `write` itself refuses a folder with other files.
    embeds : str
        Facts besides code and times that its files have, such as "paths, command line"; shown by ``ptkit
        export --list``.
    command : callable, optional
        Of an `Exported`: the command that opens it, which `ptkit export` prints.
    """

    name: str
    description: str
    write: Callable[..., dict[str, Any]]
    selects: str = ""
    switches: tuple[str, ...] = ()
    options: tuple[ExportOption, ...] = ()
    suffixes: tuple[str, ...] = ()
    head: bytes | Callable[[bytes], bool] = b""
    is_folder: bool = False
    embeds: str = ""
    command: Callable[[Exported], str] | None = None

    @property
    def option_names(self) -> tuple[str, ...]:
        """Options that it declares."""
        return tuple(dict.fromkeys((*self.switches, *(option.name for option in self.options))))


class _Writer:
    """A function of a module of this package, which is imported when it is first called.

    `fixed`: arguments that the format gives.
    """

    def __init__(self, module: str, name: str, **fixed: Any) -> None:
        self._module, self._name, self._fixed = module, name, fixed

    def _function(self) -> Callable[..., dict[str, Any]]:
        found: Callable[..., dict[str, Any]] = getattr(
            import_module(f"ptkit.export.{self._module}"), self._name
        )
        return found

    @property
    def __signature__(self) -> inspect.Signature:
        signature = inspect.signature(self._function())
        left = [one for name, one in signature.parameters.items() if name not in self._fixed]
        return signature.replace(parameters=left)

    def __call__(self, trace: object, path: str, **options: Any) -> dict[str, Any]:
        return self._function()(trace, path, **self._fixed, **options)


def _perf_command(written: Exported) -> str:
    folder = f"--buildid-dir {written.files[0]} " if written.files else ""
    return f"perf {folder}script -i {written.path} --itrace=b"


# Options of profiles and timelines.
_NAMES = ExportOption(
    "names",
    "names of C++ and Rust without template arguments and parameters (short, the default), or with them",
    "choice",
    ("short", "full"),
)
_FRAMES = ExportOption(
    "frames",
    "frames of Python programs: as they are (native, the default), without CPython's evaluation of "
    "Python code (python), or without trampolines (mixed)",
    "choice",
    ("native", "python", "mixed"),
)
_INLINES = ExportOption("inlines", "inlined functions have frames of their own", "flag")
_OF_CONTEXTS = (
    _NAMES,
    ExportOption(
        "depth",
        "contexts with more callers than N count as their caller at that depth (default: 1,000)",
        "integer",
        metavar="N",
    ),
    _FRAMES,
    _INLINES,
)
_OF_TIMELINES = (
    ExportOption(
        "of",
        "positions (default: time, but instructions where times are emulated or not known)",
        "choice",
        ("time", "instructions"),
    ),
    ExportOption(
        "size",
        "the file has at most so many bytes, such as 80M: short calls are merged (default: all calls)",
        "size",
        metavar="BYTES",
    ),
    _NAMES,
    _FRAMES,
    _INLINES,
)
_OF_THREADS = "names of functions, files and threads"

_OF_PROGRAMS = (
    ExportOption(
        "build_id", "of several programs, the one with a build-id that begins so", "text", metavar="HEX"
    ),
)


def _duckdb_command(written: Exported) -> str:
    every = Path(written.path, TABLES[0])  # a dataset of all tables has a folder for each
    folder = every if every.is_dir() else written.path
    return f"duckdb -c \"select count(*) from read_parquet('{folder}/**/*.parquet')\""


def _is_csv(begin: bytes) -> bool:
    """Whether a file begins with a line of names of columns, of which the end may be cut."""
    from ptkit.support.schema import tables
    from ptkit.table.derived import derived_of

    columns = {name for table, schema in tables().items() for name in (*schema.columns, *derived_of(table))}
    line, end, _ = begin.decode("ascii", "replace").partition("\n")
    names = line.split(",")
    return all(name in columns for name in (names if end else names[:-1] or names))


# One row for each format of ptkit's own.
_OWN = (
    Exporter(
        DEFAULT,
        "for Linux perf, and what reads its files",
        _Writer("perf_data", "write_perf_data"),
        options=(
            ExportOption(
                "code",
                "which code goes to OUT.debug (default: needed)",
                "choice",
                ("needed", "all", "none"),
                flag="--with-code",
            ),
        ),
        suffixes=(".perf.data",),
        head=RECORDING,
        embeds="paths, command line, names of threads and functions",
        command=_perf_command,
    ),
    Exporter(
        "drcov",
        "executed basic blocks by module, for coverage tools of disassemblers",
        _Writer("drcov", "write_drcov"),
        "blocks",
        suffixes=(".drcov",),
        head=rb"DRCOV VERSION:",
        embeds="paths",
    ),
    Exporter(
        "offsets",
        "executed basic blocks as lines of module+offset",
        _Writer("offsets", "write_offsets"),
        "blocks",
        options=(
            ExportOption("file_offsets", "offsets in files instead of RVAs", "flag"),
            ExportOption("hits", "how often each was executed, after the offset", "flag"),
        ),
        head=rb"[^\r\n]+\+[0-9a-f]+( [0-9]+)?\n",
        embeds="names of files",
    ),
    Exporter(
        "lcov",
        "lines, functions and outcomes of branches by source file, for genhtml and tools of CI",
        _Writer("lcov", "write_lcov"),
        "blocks",
        suffixes=(".info", ".lcov"),
        head=rb"TN:",
        embeds="paths of source files, names of functions",
        command=lambda written: f"genhtml --branch-coverage {written.path} -o OUT",
    ),
    Exporter(
        "tenet",
        "the address of each executed instruction of a thread, for Tenet in IDA and Binary Ninja",
        _Writer("tenet", "write_tenet"),
        "rows",
        suffixes=(".tenet.txt",),
        head=rb"[re]ip=0x[0-9a-f]+\n",
    ),
    Exporter(
        "raw",
        "the packets of a stream as the processor wrote them",
        _Writer("raw", "write_raw"),
        "stream",
        head=RECORDING,
    ),
    Exporter(
        "code",
        "the code that was executed, a file for each region and version",
        _Writer("code", "write_code"),
        "blocks",
        is_folder=True,
        embeds="paths",
    ),
    Exporter(
        "folded",
        "a line for each calling context, for flame graphs and the Firefox Profiler",
        _Writer("folded", "write_folded"),
        "rows",
        options=(
            ExportOption(
                "of",
                "number of a line (default: instructions)",
                "choice",
                ("instructions", "time", "calls"),
            ),
            *_OF_CONTEXTS,
        ),
        suffixes=(".folded", ".collapsed"),
        head=rb"[^\r\n]*( [0-9]+(\n|$)|;)",
        embeds="names of functions and threads",
    ),
    Exporter(
        "pprof",
        "a profile for go tool pprof, and for go build -pgo",
        _Writer("pprof", "write_pprof"),
        "rows",
        options=_OF_CONTEXTS,
        suffixes=(".pb.gz", ".pprof", ".pgo"),
        head=rb"\x1f\x8b\x08",
        embeds="paths of programs and source files, names of functions and threads",
        command=lambda written: f"go tool pprof -top -sample_index=instructions {written.path}",
    ),
    Exporter(
        "callgrind",
        "instructions by line and address, and calls, for KCachegrind and callgrind_annotate",
        _Writer("callgrind", "write_callgrind"),
        "rows",
        options=(_NAMES,),
        suffixes=(".callgrind",),
        head=rb"# callgrind format\n",
        embeds="paths of programs and source files, command line, names of functions and threads",
        command=lambda written: f"callgrind_annotate --inclusive=yes {written.path}",
    ),
    Exporter(
        "perfetto",
        "a timeline of calls for Perfetto (ui.perfetto.dev) and its trace_processor",
        _Writer("timelines", "write_timeline", format="perfetto"),
        "rows",
        options=_OF_TIMELINES,
        suffixes=(".pftrace", ".perfetto-trace"),
        # The first packet: of sequence 1, with a configuration.
        head=rb"\n[\x80-\xff]*[\x00-\x7f]P\x01\x8a\x02",
        embeds=_OF_THREADS,
        command=lambda written: f"trace_processor_shell {written.path}",
    ),
    Exporter(
        "fxt",
        "a timeline of calls in Fuchsia's trace format, for Perfetto and magic-trace's page",
        _Writer("timelines", "write_timeline", format="fxt"),
        "rows",
        options=_OF_TIMELINES,
        suffixes=(".fxt",),
        head=rb"\x10\x00\x04\x46\x78\x54\x16\x00",
        embeds=_OF_THREADS,
        command=lambda written: f"trace_processor_shell {written.path}",
    ),
    Exporter(
        "chrome",
        "a timeline of calls as Chrome's trace events, for Perfetto and the Firefox Profiler",
        _Writer("timelines", "write_timeline", format="chrome"),
        "rows",
        options=_OF_TIMELINES,
        suffixes=(".trace.json",),
        head=rb'\{"displayTimeUnit":"ns","otherData":\{"writer":"ptkit"',
        embeds=_OF_THREADS,
        command=lambda written: f"profiler-cli load {written.path}",
    ),
    Exporter(
        "speedscope",
        "a timeline of calls for speedscope (www.speedscope.app), a profile for each thread",
        _Writer("timelines", "write_timeline", format="speedscope"),
        "rows",
        options=_OF_TIMELINES,
        suffixes=(".speedscope.json",),
        head=rb'\{"\$schema":"https://www\.speedscope\.app/file-format-schema\.json"',
        embeds=_OF_THREADS,
        command=lambda written: f"speedscope {written.path}",
    ),
    Exporter(
        "autofdo",
        "counts of code for create_gcov (gcc -fauto-profile) and create_llvm_prof",
        _Writer("feedback", "write_autofdo"),
        "rows",
        options=_OF_PROGRAMS,
        suffixes=(".afdo.txt",),
        head=rb"[0-9]+\n[0-9a-f]+-[0-9a-f]+:[0-9]+\n",
        command=lambda written: (
            f"create_gcov --binary=PROGRAM --profile={written.path} --profiler=text --gcov=program.afdo "
            "--gcov_version=1"
        ),
    ),
    Exporter(
        "llvm",
        "counts of code for llvm-profgen (clang -fprofile-sample-use)",
        _Writer("feedback", "write_llvm"),
        "rows",
        options=_OF_PROGRAMS,
        suffixes=(".profgen.txt",),
        head=rb"[0-9]+\n[0-9a-f]+-[0-9a-f]+:[0-9]+\n",
        command=lambda written: (
            f"llvm-profgen --binary=PROGRAM --unsymbolized-profile={written.path} --use-offset=0 "
            "--output=program.prof"
        ),
    ),
    Exporter(
        "bolt",
        "branches and fall-throughs for perf2bolt --pa",
        _Writer("feedback", "write_bolt"),
        "rows",
        options=_OF_PROGRAMS,
        suffixes=(".preagg", ".bolt.txt"),
        head=rb"[BFfTR] ([0-9a-f]|X:)",
        command=lambda written: f"perf2bolt PROGRAM --pa -p {written.path} -o program.fdata",
    ),
    Exporter(
        "bolt-traces",
        "branches with the code that follows, for perf2bolt --pa of LLVM 21 and later",
        _Writer("feedback", "write_bolt_traces"),
        "rows",
        options=_OF_PROGRAMS,
        head=rb"[BFfTR] ([0-9a-f]|X:)",
        command=lambda written: f"perf2bolt PROGRAM --pa -p {written.path} -o program.fdata",
    ),
    Exporter(
        "csv",
        "a table as text, for spreadsheets and any program",
        _Writer("csv_table", "write_csv"),
        "rows",
        options=table_options(),
        suffixes=(".csv",),
        head=_is_csv,
        embeds="names of functions; mappings: paths",
    ),
    Exporter(
        "arrow",
        "a table as a stream of Arrow (needs pyarrow)",
        _Writer("arrow_tables", "write_arrow"),
        "rows",
        options=table_options(),
        suffixes=(".arrow", ".arrows"),
        head=rb"\xff\xff\xff\xff",
        embeds="names of functions; mappings: paths",
    ),
    Exporter(
        "parquet",
        "tables as a dataset of Parquet, for DuckDB, pandas and Polars (needs pyarrow)",
        _Writer("arrow_tables", "write_parquet"),
        "rows",
        options=table_options(several=True),
        suffixes=(".parquet",),
        is_folder=True,
        embeds="names of functions; mappings: paths",
        command=_duckdb_command,
    ),
)


def exporters() -> dict[str, Exporter]:
    """Return the known formats by name.

    Packages add theirs by an entry point of the group ``ptkit.exporters``: an `Exporter`. One that cannot be
    loaded is left out; ptkit's own names cannot be taken.

    Examples
    --------
    >>> from ptkit import export
    >>> export.exporters()["perf.data"].description
    'for Linux perf, and what reads its files'
    """
    from importlib.metadata import entry_points  # takes a while, and is not needed to open traces

    found = {}
    for entry in entry_points(group=GROUP):
        try:
            exporter = entry.load()
        except Exception:  # the import of another package's module may raise anything
            continue
        if isinstance(exporter, Exporter):
            found[exporter.name] = exporter
    found.update({exporter.name: exporter for exporter in _OWN})
    return found


def own_options() -> list[ExportOption]:
    """Options of ptkit's own formats, each once; the help of each names its formats."""
    return merged_options((exporter.name, exporter.options) for exporter in _OWN)


def exporter_of(known: Mapping[str, Exporter], format: str) -> Exporter:
    """The exporter of a format.

    Raises
    ------
    ConfigError
        If there is no such format.
    """
    if format not in known:
        raise ConfigError(f"format={format!r} is not one of {', '.join(sorted(known))}")
    return known[format]


def format_of(known: Mapping[str, Exporter], path: str | os.PathLike[str]) -> str:
    """The format that the suffix of a path says; `DEFAULT` if it says none.

    Raises
    ------
    ConfigError
        If several formats have the suffix.
    """
    name = Path(os.fspath(path)).name.lower()
    fits = [
        (len(suffix), exporter.name, suffix)
        for exporter in known.values()
        for suffix in exporter.suffixes
        if name.endswith(suffix)
    ]
    longest = max(fits, default=(0, "", ""))[0]
    names = sorted({name for length, name, _ in fits if length == longest})
    if len(names) > 1:
        suffix = next(suffix for length, _, suffix in fits if length == longest)
        raise ConfigError(
            f"{os.fspath(path)}: {suffix} is a suffix of the formats {', '.join(names)}; choose one: "
            f"--format {names[0]} (format={names[0]!r} in Python)"
        )
    return names[0] if names else DEFAULT


def check_output(exporter: Exporter, path: str | os.PathLike[str], *, force: bool) -> None:
    """Refuse to replace what is no file of the format, unless `force` is true.

    Raises
    ------
    OpenError
        If `path` is not to be replaced.
    """
    from ptkit.capture.output_file import OutputFile, check_replaced  # only the command line needs it

    where = os.fsencode(path)
    if exporter.is_folder:
        return  # the writer looks at what is in the folder
    if exporter.head == RECORDING:
        OutputFile(where, force=force)
        return
    if not exporter.head:
        return
    if refusal := _core.refused_output(where):
        raise OpenError(refusal)
    if not force:
        head = exporter.head
        check_replaced(
            Path(os.fsdecode(where)),
            head if callable(head) else lambda begin: re.match(head, begin) is not None,
            f"a file of the format {exporter.name}",
            "--force to replace it",
        )


def _check_options(exporter: Exporter, options: dict[str, Any]) -> None:
    try:
        signature = inspect.signature(exporter.write)
    except (TypeError, ValueError):  # of a callable that does not say what it takes
        return
    try:
        signature.bind(None, "", **options)
    except TypeError as error:
        names = ", ".join(list(signature.parameters)[2:]) or "none"
        raise ConfigError(f"format {exporter.name!r}: {error}; its options: {names}") from None


def export(
    trace: object,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    is_part: bool = False,
    **options: Any,
) -> Exported:
    """Write a trace, or a part of one; see `ptkit.Trace.export`."""
    known = exporters()
    text = os.fspath(path)
    if not text or "\0" in text:
        raise ConfigError(f"path={path!r} is no path: it is empty or has a NUL")
    text = text.rstrip("/") or "/"  # shells append a slash to folders
    exporter = exporter_of(known, format_of(known, text) if format is None else format)
    source = Path(getattr(trace, "source", ""))
    if source.exists() and Path(text).exists() and Path(text).samefile(source):
        raise ConfigError(f"{text}: is what is read; export to another file")
    if is_part and exporter.selects not in SELECTING:
        names = ", ".join(sorted(one.name for one in known.values() if one.selects in SELECTING))
        raise ConfigError(
            f"format {exporter.name!r} writes whole recordings: export the trace, not a part of it, or "
            f"choose one of {names}"
        )
    _check_options(exporter, options)
    said = exporter.write(trace, text, **options)
    return Exported(
        text,
        exporter.name,
        int(said.get("bytes", 0)),
        tuple(said.get("files", ())),
        tuple(said.get("notes", ())),
    )
