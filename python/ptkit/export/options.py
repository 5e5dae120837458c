"""Options of formats: what `ptkit export` and `Trace.export` take for one format, and refuse for others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

__all__ = ["ALL", "KINDS", "TABLES", "ExportOption", "merged_options", "table_options"]

#: Kinds of options: True or False, one of `choices`, a text, an integer, a number of bytes (``"80M"``), and
#: a list of texts, for which the option is repeated.
KINDS = ("flag", "choice", "text", "integer", "size", "names")
#: Tables that formats of tables hold.
TABLES = (
    "branches",
    "blocks",
    "instructions",
    "events",
    "packets",
    "errors",
    "gaps",
    "calls",
    "edges",
    "functions",
    "call_tree",
    "mappings",
)
#: All of them, in formats that hold several.
ALL = "all"


@dataclass(frozen=True)
class ExportOption:
    """An option of a format.

    Attributes
    ----------
    name : str
        Keyword argument of the exporter's `write`. `ptkit export` takes it with dashes: ``--file-offsets``.
    help : str
        A few words for ``ptkit export --help``, without the names of formats: these are put before it.
    kind : str
        One of `KINDS`.
    choices : tuple of str
        Values of a ``"choice"``.
    metavar : str
        What stands for the value in help; by default the name.
    flag : str
        How `ptkit export` calls it, if it has another name there: ``"--with-code"``.
    """

    name: str
    help: str
    kind: str
    choices: tuple[str, ...] = ()
    metavar: str = ""
    flag: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"option {self.name}: kind={self.kind!r} is not one of {', '.join(KINDS)}")

    @property
    def switch(self) -> str:
        """The word of the command line."""
        return self.flag or f"--{self.name.replace('_', '-')}"


def merged_options(formats: Iterable[tuple[str, Iterable[ExportOption]]]) -> list[ExportOption]:
    """Options of several formats, each once: its help begins with the names of the formats that have it.

    A choice has the values of all formats. Help that differs is given for each format.
    """
    found: dict[str, list[tuple[str, ExportOption]]] = {}
    for format, options in formats:
        for option in options:
            found.setdefault(option.name, []).append((format, option))
    return [_merged(uses) for uses in found.values()]


def _merged(uses: list[tuple[str, ExportOption]]) -> ExportOption:
    texts: dict[str, list[str]] = {}
    for format, option in uses:
        texts.setdefault(option.help, []).append(format)
    help = "; ".join(f"{', '.join(formats)}: {text}" for text, formats in texts.items())
    choices = dict.fromkeys(choice for _, option in uses for choice in option.choices)
    return replace(uses[0][1], help=help, choices=tuple(choices))


def table_options(*, several: bool = False) -> tuple[ExportOption, ...]:
    """Options of formats of tables; `several`: the format can hold all tables."""
    table = "which table; all: each in a folder of its own" if several else "which table"
    return (
        ExportOption(
            "table", f"{table} (default: branches)", "choice", (*TABLES, ALL) if several else TABLES
        ),
        ExportOption(
            "columns",
            "columns of docs/tables.md, separated by commas (default: all that are known)",
            "names",
            metavar="NAMES",
        ),
        ExportOption(
            "names", "names of functions in the default columns (default: full)", "choice", ("full", "short")
        ),
        ExportOption("kind", "branches, edges or events of this kind, such as CALL", "names"),
    )
