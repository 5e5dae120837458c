#!/usr/bin/env python3
"""Writes what comes from src/capture/common/record_options.def, by way of the extension module.

docs/record-options.md (the table of options) and python/ptkit/capture/option_types.py (their types).
With `--check`: fails if a file is not up to date.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from ptkit.capture.option_table import OptionRow, option_rows, seconds_range

ROOT = Path(__file__).resolve().parent.parent

PAGE = """# Options of recordings

This page lists the options of `ptkit.record` and `ptkit.Recorder`, of `ptkit record` and of
`ptkit-capture.exe`: names, ranges, back ends and systems.

Made by `tools/make_record_options.py` from `src/capture/common/record_options.def`; edit that file,
then run the tool.

All options may be left out. A range is checked on each way to the recorder. Which values a
processor has is another question: a recording with a value that it lacks fails, and names the
values that it has ([msr.md](msr.md)). Options without a flag are Python's alone.

| option | value | on a command line | back ends | systems | meaning |
|---|---|---|---|---|---|
"""

TYPES = '''"""The types of recording options. Made by tools/make_record_options.py from record_options.def."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from ptkit.capture.filters import Filter
from ptkit.capture.triggers import Trigger

__all__ = ["Options"]


class Options(TypedDict, total=False):
    """Options of `ptkit.record` and `ptkit.Recorder`; all may be left out.

    Attributes
    ----------
'''

PYTHON_TYPES = {
    "FLAG": "bool | None",
    "NUMBER": "int | None",
    "POWER_OF_TWO": "int | None",
    "SIZE": "int | str | None",
    "DURATION": "float | None",
    "TEXT": "str | None",
    "WORD": "str",
    "CHOICE": "str | None",
    "NAMES": "str | Sequence[str] | None",
    "CPUS": "str | int | Sequence[int] | None",
    "FILTERS": "Filter | str | Sequence[Filter | str] | None",
    "TRIGGERS": "Trigger | str | Sequence[Trigger | str] | None",
    "BRANCHES": "bool | str | Sequence[str] | None",
    "USER": "str | int | None",
}
VALUES = {
    "FLAG": "true or false",
    "TEXT": "text",
    "WORD": "a name",
    "FILTERS": "filters",
    "TRIGGERS": "triggers",
    "BRANCHES": "kinds of branches",
    "USER": "a user",
}


def value_of(row: OptionRow) -> str:
    """The values that an option takes, with the range."""
    if row.kind in ("CHOICE", "NAMES"):
        return f"{'one' if row.kind == 'CHOICE' else 'any'} of {', '.join(row.choices.split(','))}"
    if row.kind == "DURATION":
        return f"{seconds_range(row)} s"
    if row.kind == "CPUS":
        return f"processors, {row.least} to {row.most}"
    if row.kind not in VALUES:
        power = "a power of two, " if row.kind == "POWER_OF_TWO" else ""
        most = f"2**{row.most.bit_length()} - 1" if row.most > 1 << 48 else str(row.most)
        return f"{power}{row.least} to {most} {row.unit}".rstrip()
    return VALUES[row.kind]


def sentence(row: OptionRow) -> str:
    """The meaning of an option: of a flag that is named by its opposite, too."""
    text = f"{row.help}. {row.details}".strip()
    if row.kind == "FLAG" and row.is_on:
        text = f"False: {text}"
    return text[0].upper() + text[1:]


def page() -> str:
    """docs/record-options.md."""
    rows = []
    for row in option_rows().values():
        flags = ", ".join(f"`{flag}`" for flag in row.flags.split())
        cells = (
            f"`{row.name}`",
            value_of(row),
            flags,
            ", ".join(row.back_ends),
            ", ".join(row.systems),
            sentence(row),
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return PAGE + "".join(rows)


def types() -> str:
    """python/ptkit/capture/option_types.py."""
    out = TYPES
    for row in option_rows().values():
        only = "" if len(row.back_ends) == len(option_rows()["backend"].back_ends) else (
            f" Only for {', '.join(f'``{name}``' for name in row.back_ends)}."
        )  # fmt: skip
        shown = value_of(row)
        value = "" if row.kind in VALUES else f" {shown[0].upper()}{shown[1:]}."
        text = f"{sentence(row)}{value}{only}".replace("`", "``").replace("````", "``")
        out += f"    {row.name} : {PYTHON_TYPES[row.kind]}\n"
        out += (
            textwrap.fill(
                text, 110, initial_indent=" " * 8, subsequent_indent=" " * 8, break_on_hyphens=False
            )
            + "\n"
        )
    out += '    """\n\n'
    for row in option_rows().values():
        out += f"    {row.name}: {PYTHON_TYPES[row.kind]}\n"
    return out


def main(words: list[str]) -> int:
    """Write or compare the files."""
    files = {
        ROOT / "docs" / "record-options.md": page(),
        ROOT / "python" / "ptkit" / "capture" / "option_types.py": types(),
    }
    old = [path for path, text in files.items() if not path.exists() or path.read_text() != text]
    if "--check" in words:
        for path in old:
            print(
                f"{path.relative_to(ROOT)} is not up to date: run tools/make_record_options.py",
                file=sys.stderr,
            )
        return 1 if old else 0
    for path in old:
        path.write_text(files[path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
