"""Derived columns: made on access of the columns that a table has, never among its default columns.

Each is one entry of `derived_of`. A reader that is asked for one of them reads the columns that it needs
(`ptkit.decode.plan`), and a table offers those that it has the needs of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptkit import _core
from ptkit._core import BranchKind
from ptkit.support.schema import Column, TableSchema, schema_of
from ptkit.support.text import is_memory, module_name
from ptkit.table.cells import is_uniform, uniform
from ptkit.table.columns import Columns
from ptkit.table.labels import Labels
from ptkit.table.lengths import AWAY, LENGTHS, length_needs, length_ns, running, running_columns

if TYPE_CHECKING:
    from ptkit.table.context import TableContext

__all__ = [
    "KNOWN",
    "Derived",
    "derived_of",
    "from_arrays",
    "full_name",
    "indirect_branches",
    "other_form",
    "symbol_column",
]

Values: TypeAlias = NDArray[Any] | Labels

KNOWN = " known"  # after the name of a column that is kept as an array: its mask


@dataclass(frozen=True)
class Derived:
    """How one derived column is made.

    Attributes
    ----------
    column : Column
        Name, dtype, unit and meaning; its role is ``"derived"``. Text columns have dtype object.
    needs : tuple of str
        Columns of the same table: stored ones or runs.
    values : callable
        Of a table that has the needs: an array of shape (rows,), or `Labels` for a text column.
    known : callable
        Of the same: a mask of shape (rows,), or None if every value means something.
    known_if : str
        Where that is, in docs/tables.md.
    offered : callable
        Of the trace's context: whether the trace can have this column.
    uses : tuple of str
        Further columns that the values are made of where the table has them. A reader that is asked for the
        derived column reads them.
    """

    column: Column
    needs: tuple[str, ...]
    values: Callable[[Columns], Values]
    known: Callable[[Columns], NDArray[np.bool_] | None]
    known_if: str
    offered: Callable[[TableContext], bool]
    uses: tuple[str, ...] = ()


@cache
def derived_of(table: str) -> Mapping[str, Derived]:
    """Derived columns of a table, by name."""
    schema = schema_of(table)
    found = [*_names(schema), *_nanoseconds(schema), *_lengths(schema), *_files(schema), *_functions(schema)]
    found += _made_texts(schema)
    return MappingProxyType({one.column.name: one for one in _with_short_names(found)})


def from_arrays(one: Derived) -> Derived:
    """Return the same derived column of tables that have it as an array (`TableContext.kept`)."""
    name = one.column.name

    def values(table: Columns) -> Values:
        names = table.context.kept[name]
        cells = table.arrays[name]
        return cells if names is None else Labels(cells, names)

    def known(table: Columns) -> NDArray[np.bool_] | None:
        if name + KNOWN in table.arrays:
            return table.arrays[name + KNOWN]
        return None

    return replace(one, values=values, known=known, offered=lambda context: True)


def _column(name: str, dtype: Any, unit: str, doc: str) -> Column:
    return Column(name, np.dtype(dtype), unit, doc, "derived")


# Short names of functions, and full ones.

_FULL = "_full"


def full_name(column: str) -> str:
    """Name of the column that has the full names of a column of functions."""
    return column + _FULL


def other_form(column: str) -> str:
    """Name of the column of full names beside one of short names, and the other way round."""
    return column.removesuffix(_FULL) if column.endswith(_FULL) else full_name(column)


def _names_functions(column: Column) -> bool:
    return column.dtype == np.dtype(object) and (column.name == "function" or column.name.endswith("symbol"))


def _with_short_names(found: list[Derived]) -> list[Derived]:
    """Give columns of functions short names, and put columns of the full names after them."""
    columns = []
    for one in found:
        if _names_functions(one.column):
            full = replace(one, column=_renamed(one.column, ": full name, demangled", _FULL))
            columns += [_short(one), full]
        else:
            columns.append(one)
    return columns


def _short(one: Derived) -> Derived:
    def values(table: Columns) -> Labels:
        labels = one.values(table)
        assert isinstance(labels, Labels)
        return labels.renamed(_core.short_names)

    return replace(one, column=_renamed(one.column, ": short name"), values=values)


def _renamed(column: Column, form: str, suffix: str = "") -> Column:
    return replace(column, name=column.name + suffix, doc=column.doc.replace(", demangled", form))


# Texts of coverage, of annotated code and of differences, which tables of them keep as arrays.
# Texts of coverage, of annotated code and of how branches behave, which tables of them keep as arrays.

_MADE = {
    "module": "name of the file, without its folders",
    "from_module": "name of the file of the branch, without its folders",
    "to_module": "name of the file of the target, without its folders",
    "function": "function, demangled",
    "path": "outcomes of branches from the head on, with offsets from it ([branches.md](branches.md#paths))",
    "source": "path of the source file, as the compiler recorded it",
    "instruction": "disassembly",
    "target": "where calls and jumps out of the function went, most often first",
    "inlined": "function that was inlined here, the innermost one",
    "text": "the line itself, if the file is there",
    "a_name": "name of the thread in run a",
    "b_name": "name in run b, of the thread, or of a function that has another one",
    "program": "name of the file that the process executes",
    "role": "first function of the program that the thread executed",
    "paired": "why the two are compared, or are not",
    "where": "function and line of the branch that both executed, and from which they went on differently; "
    "else of the code after the last common branch",
    "own": "function and line of the last branch before it in a file of the program",
    "kind": "`conditional`, `target` (of a jump or a call), `return`, `signal`, `end`, or `path`: after the "
    "same branch, the next one is another",
    "a_way": "what run a did",
    "b_way": "what run b did",
    "a_target": "function and line at which run a went on",
    "b_target": "function and line at which run b went on",
    "matched": "how the function was found in both runs: by its `name`, joined from `parts`, `renamed`, "
    "`inlined in` one of them, or `only in` one",
    "caller": "function that called, demangled",
    "joined": "where both went on equally",
    "aspect": "what it is about: branch, call, path or order",
    "fact": "the fact in words",
    "threads": "function that the threads began in, if it is about these alone",
}
_MADE_TEXTS = {
    "covered_blocks": ("module", "function", "source"),
    "covered_edges": ("from_module", "to_module"),
    "covered_branches": ("module", "function", "source"),
    "covered_functions": ("module", "function", "source"),
    "covered_lines": ("source",),
    "annotated_instructions": ("function", "instruction", "target", "inlined", "source"),
    "annotated_lines": ("function", "source", "text"),
    "annotated_loops": ("function", "source"),
    "diff_threads": ("a_name", "b_name", "program", "role", "paired"),
    "divergences": (
        *("where", "own", "kind", "a_way", "a_target", "b_way", "b_target", "joined", "module", "function"),
        "source",
    ),
    "diff_functions": ("function", "module", "matched", "b_name", "source"),
    "diff_calls": ("caller", "function", "module"),
    "diff_lines": ("source", "function", "module"),
    "suspects": ("aspect", "module", "function", "source", "fact", "threads"),
    "branch_stats": ("source",),
    "indirect_targets": ("source",),
    "loops": ("source",),
    "loop_paths": ("path", "source"),
}


def _made_texts(schema: TableSchema) -> list[Derived]:
    return [
        Derived(
            _column(name, object, "", _MADE[name]),
            (),
            lambda table: Labels(np.full(table.rows, -1, np.int32), ()),
            lambda table: np.zeros(table.rows, np.bool_),
            "it has a name",
            lambda context: False,  # `from_arrays` makes it
        )
        for name in _MADE_TEXTS.get(schema.name, ())
    ]


# Times.


def _nanoseconds(schema: TableSchema) -> list[Derived]:
    ticks = {"time_ns": "tsc", "time_ns_estimate": "tsc_estimate", "end_time_ns": "end_tsc"}
    return [_clock_column(schema.name, name, of) for name, of in ticks.items() if of in schema.columns]


def _clock_column(table: str, name: str, ticks: str) -> Derived:
    known_if = schema_of(table).validity.get(ticks)

    def values(table: Columns) -> NDArray[np.int64]:
        assert table.context.to_ns is not None
        values = table.arrays[ticks]
        if is_uniform(values):
            return uniform(table.context.to_ns(values[:1])[0], np.int64, len(values))
        return table.context.to_ns(values)

    return Derived(
        _column(name, np.int64, "ns", f"`{ticks}` as nanoseconds of the recorder's clock"),
        (ticks,),
        values,
        lambda table: table.known(ticks),
        f"`{known_if}`" if known_if else "",
        lambda context: context.to_ns is not None,
    )


def _lengths(schema: TableSchema) -> list[Derived]:
    """Return the running time of frames, and nanoseconds of all lengths of time."""
    found = [_running(schema, column) for column in running_columns(schema)]
    return found + [_length_in_ns(schema, name) for name in LENGTHS.get(schema.name, ())]


def _running(schema: TableSchema, column: Column) -> Derived:
    return Derived(
        column,
        length_needs(schema.name, column.name),
        lambda table: running(table, column.name),
        lambda table: table.known(AWAY[0]),
        f"`{schema.validity[AWAY[0]]}`",
        lambda context: True,
    )


def _length_in_ns(schema: TableSchema, name: str) -> Derived:
    known = name if name in schema.columns else AWAY[0]  # running of frames is made of that

    def values(table: Columns) -> NDArray[np.int64]:
        is_stored = name in schema.columns
        return length_ns(table, table.arrays[name] if is_stored else running(table, name))

    return Derived(
        _column(f"{name}_ns", np.int64, "ns", f"`{name}` in nanoseconds of the recorder's clock"),
        length_needs(schema.name, name),
        values,
        lambda table: table.known(known),
        f"`{schema.validity[known]}`",
        lambda context: context.length_ns is not None,
    )


# Names of functions and files.

# Kinds of names, and the origins of their offsets.
_SUBJECTS = {
    "symbol": ("function that `{}` lies in, demangled", "from the begin of the function"),
    "module": (
        "file that `{}` was mapped from, without its folders; `[anon 0x10000000]`: memory without a file",
        "less the load address of the file (RVA), or the begin of the memory",
    ),
    "file": ("file that `{}` was mapped from, without its folders", "in the file"),
}


_MODULE = "name of the file, without its folders, or of the memory without a file: `[anon 0x10000000]`"


def symbol_column(address: str) -> str:
    """Name of the column that has the functions of an address column: ``from_ip`` has ``from_symbol``."""
    return address.removesuffix("ip") + "symbol"


def _names(schema: TableSchema) -> list[Derived]:
    """Return names, and offsets from them, for every column of code addresses."""
    found = []
    times = ("tsc", "tsc_error") if "tsc" in schema.columns else ()
    for address in schema.names("stored"):
        if not address.endswith("ip"):
            continue
        for subject, (doc, origin) in _SUBJECTS.items():
            name, meaning = address.removesuffix("ip") + subject, doc.format(address)
            columns = [_column(f"{name}_offset", np.uint64, "bytes", f"of `{address}` {origin}")]
            if subject != "file":  # its name is that of the module
                columns.insert(0, _column(name, object, "", meaning))
            for column in columns:
                # Targets without a symbol have the name of the import that the branch goes through.
                is_target = column.name == "to_symbol" and "kind" in schema.columns
                source = "from_ip" if is_target else None
                one = _named(column, address, subject, (address, "space", *times), source)
                if (address, subject) == ("entry_ip", "symbol"):
                    more = {"inline_level", "import_ip", "flags"} & set(schema.columns)
                    is_named_by_more = "inline_level" in more or "import_ip" in more
                    one = replace(one, uses=tuple(sorted(more)) if is_named_by_more else ())
                found.append(one)
    return found


def indirect_branches(kinds: NDArray[np.uint8], known: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which rows may go through an import slot: no interrupt before such a branch does."""
    indirect = np.isin(kinds, (BranchKind.JUMP_INDIRECT, BranchKind.CALL_INDIRECT))
    return indirect if known is None else indirect & known


def _named(
    column: Column, address: str, subject: str, needs: tuple[str, ...], source: str | None = None
) -> Derived:
    """Return a name or an offset of an address; `source`: the column that names those that have none."""
    wants_offset = column.dtype != np.dtype(object)

    def labels_and_offsets(table: Columns) -> tuple[Labels, NDArray[np.uint64]]:
        name_rows = table.context.name_rows
        assert name_rows is not None
        spaces, times = table.spaces(), table.times()
        labels, offsets = name_rows(
            subject, table.arrays[address], spaces, table.known(address), times, wants_offset
        )
        if source is not None and source in table.arrays and "kind" in table.arrays:
            indirect = indirect_branches(table.arrays["kind"], table.known(source)) & ~labels.known()
            rest = name_rows("import", table.arrays[source], spaces, indirect, times, False)
            labels = labels.filled(rest[0])
        if (address, subject) == ("entry_ip", "symbol"):
            labels, offsets = _with_inlined(table, _with_imports(table, labels), offsets)
            labels = _with_threads(table, labels)
        return labels, offsets

    def values(table: Columns) -> Values:
        return labels_and_offsets(table)[wants_offset]

    def known(table: Columns) -> NDArray[np.bool_]:
        return labels_and_offsets(table)[0].known()

    return Derived(
        column,
        needs,
        values,
        known,
        "it has a name",
        lambda context: context.name_rows is not None,
        () if source is None else (source, "kind"),
    )


def _with_imports(table: Columns, labels: Labels, subject: str = "import") -> Labels:
    """Name imported functions of which the code is not traced, or their modules, by their import slots."""
    if "import_ip" not in table.arrays or "flags" not in table.arrays:
        return labels
    imports = (table.arrays["flags"] & table.schema.columns["is_import"].mask) != 0
    name_rows = table.context.name_rows
    assert name_rows is not None
    if not imports.any():
        return labels
    where = table.arrays["import_ip"], table.spaces(), imports, table.times()
    return labels.filled(name_rows(subject, *where, False)[0])


def _with_inlined(
    table: Columns, labels: Labels, offsets: NDArray[np.uint64]
) -> tuple[Labels, NDArray[np.uint64]]:
    """Put the names of inlined functions instead of those of the functions that have their code."""
    levels = table.arrays.get("inline_level")
    name_inlined = table.context.name_inlined
    if levels is None or name_inlined is None or not levels.any():
        return labels, offsets
    inlined = levels > 0
    where = table.arrays["entry_ip"], table.spaces(), table.known("entry_ip"), table.times(), levels
    others = Labels(np.where(inlined, -1, labels.codes).astype(np.int32), labels.names)
    return others.filled(name_inlined(*where)), offsets if not len(offsets) else np.where(inlined, 0, offsets)


def _files(schema: TableSchema) -> list[Derived]:
    """Path and name of the file that a mapping is of."""
    if schema.name != "mappings":
        return []
    return [
        _module_column("address", ("space", "tsc_from"), lambda context: context.name_rows is not None),
        _file_column("path", "of the file, as `trace.info.files` has it", str),
    ]


def _file_column(name: str, doc: str, form: Callable[[str], str]) -> Derived:
    def values(table: Columns) -> Labels:
        names = [form(path) for path in table.context.files]
        distinct = list(dict.fromkeys(names))
        codes = {text: code for code, text in enumerate(distinct)}
        code_of = np.array([*(codes[text] for text in names), -1], np.int32)  # file -1: none
        return Labels(code_of[table.arrays["file"]], distinct)

    return Derived(
        _column(name, object, "", doc),
        ("file",),
        values,
        lambda table: np.asarray(table.arrays["file"] >= 0),
        "`file_known`",
        lambda context: bool(context.files),
    )


def _module_column(
    address: str, more: tuple[str, ...], offered: Callable[[TableContext], bool], uses: tuple[str, ...] = ()
) -> Derived:
    """Name of the file of a row, or of the memory without a file that has its address."""
    of_files = _file_column("module", _MODULE, module_name)

    def values(table: Columns) -> Labels:
        labels = of_files.values(table)
        assert isinstance(labels, Labels)
        name_rows = table.context.name_rows
        known = table.known(address)
        in_memory = ~labels.known() if known is None else known & ~labels.known()
        if name_rows is None:
            return labels
        if in_memory.any():
            ips = table.arrays[address]
            labels = labels.filled(
                name_rows("module", ips, table.spaces(), in_memory, table.times(), False)[0]
            )
        return _with_imports(table, labels, "import_module")

    def known(table: Columns) -> NDArray[np.bool_]:
        return values(table).known()

    return Derived(of_files.column, ("file", address, *more), values, known, "it has a name", offered, uses)


def _functions(schema: TableSchema) -> list[Derived]:
    """Name of the function, and of its file, that sums or frames are of."""
    if "is_syscall" not in schema.columns:
        return []
    of_frames = "frame_known" in schema.columns
    name = Derived(
        _column("function", object, "", "function, demangled; without a symbol, file!RVA"),
        ("entry_ip", "space", "flags", *(("tsc", "tsc_error") if of_frames else ())),
        _function_names,
        lambda table: table.known("frame") if of_frames else None,
        "`frame_known`" if of_frames else "",
        lambda context: context.name_rows is not None,
        ("import_ip",) if of_frames else ("code_tsc", "inline_level", "import_ip"),
    )
    if of_frames:
        return [name]
    # Among the default columns of sums, also where a trace has code and no files.
    module = _module_column("entry_ip", ("space", "flags"), lambda context: True, ("code_tsc", "import_ip"))
    return [name, module, *_sources()]


def _sources() -> list[Derived]:
    """Source file and line of the code at `entry_ip`."""

    def named(table: Columns) -> tuple[Labels, NDArray[np.uint32]]:
        name_lines = table.context.name_lines
        assert name_lines is not None
        return name_lines(table.arrays["entry_ip"], table.arrays["space"])

    path = _column("source", object, "", "path of the source file that `entry_ip` comes from")
    line = _column("line", np.uint32, "", "line of `entry_ip` in `source`")
    return [
        Derived(
            column,
            ("entry_ip", "space"),
            values,
            lambda table: named(table)[0].known(),
            "debug information has it",
            lambda context: context.name_lines is not None,
        )
        for column, values in (
            (path, lambda table: named(table)[0]),
            (line, lambda table: named(table)[1]),
        )
    ]


def _function_names(table: Columns) -> Labels:
    name_rows = table.context.name_rows
    assert name_rows is not None
    where = table.arrays["entry_ip"], table.spaces(), table.known("entry_ip"), table.times()
    symbols, offsets = name_rows("symbol", *where, False)
    names = _with_inlined(table, _with_imports(table, symbols), offsets)[0].texts()
    modules, offsets = name_rows("module", *where, True)
    files, flags = modules.texts(), table.arrays["flags"]
    columns = table.schema.columns
    framed = table.known("frame") if "frame" in columns else None
    for row in np.flatnonzero(names == None):  # noqa: E711
        if framed is not None and not framed[row]:
            continue
        if flags[row] & columns["is_syscall"].mask:
            names[row] = "[syscall]"
        elif flags[row] & columns["is_interrupt"].mask:
            names[row] = "[interrupt]"
        elif not flags[row] & columns["entry_known"].mask:
            names[row] = _outermost(table, int(row), framed is not None)
        elif files[row] is not None and not is_memory(files[row]):
            names[row] = _core.generated_name(files[row], int(offsets[row]))
        else:
            names[row] = f"{table.arrays['entry_ip'][row]:#x}"
    distinct = [text for text in dict.fromkeys(names.tolist()) if text is not None]
    codes = {None: -1} | {text: code for code, text in enumerate(distinct)}
    return Labels(np.array([codes[text] for text in names], np.int32), distinct)


def _outermost(table: Columns, row: int, of_frames: bool) -> str:
    """Name code that is in no known function: that of a thread's outermost frame has the thread's name."""
    tid = 0 if of_frames else int(table.arrays["entry_ip"][row])  # see stored_entry() of FunctionTable
    return table.context.thread_label(tid) if tid else "[unknown]"


def _with_threads(table: Columns, labels: Labels) -> Labels:
    """Name the outermost frames of threads, as far as no function is known to have their code."""
    if table.name != "calls" or table.runs is None:
        return labels
    unnamed = ~np.asarray(table.known("entry_ip")) & ~np.asarray(table.known("parent"))
    rows = np.flatnonzero(unnamed & np.asarray(table.known("tid")))
    if not len(rows):
        return labels
    tids = table.runs.spread("tid")[rows].tolist()
    numbers = {tid: number for number, tid in enumerate(dict.fromkeys(tids))}
    codes = np.full(len(labels.codes), -1, np.int32)
    codes[rows] = [numbers[tid] for tid in tids]
    return labels.filled(Labels(codes, [table.context.thread_label(tid) for tid in numbers]))
