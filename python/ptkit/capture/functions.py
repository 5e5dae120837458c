"""Functions that filters and triggers name: looked up before the program starts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath

from ptkit import _core
from ptkit.capture.filters import Filter
from ptkit.capture.program import files_of
from ptkit.capture.triggers import Trigger
from ptkit.errors import ConfigError, PtkitError

__all__ = ["check_functions"]

_LATER = "of a library that is loaded later, or of a program that it starts, write NAME @ FILE"


def check_functions(program: bytes, filters: Sequence[Filter], triggers: Sequence[Trigger]) -> None:
    """Refuse a function that neither the program has nor the libraries that its loader maps.

    A function of a file that is named without its folder, and that the loader does not map, is not looked up:
    the file may come later.

    Raises
    ------
    ConfigError
        If there is no such function; the names nearest to it are in the message.
    """
    wanted = [("--filter", "filters", one.symbol, one.file) for one in filters if one.symbol]
    wanted += [("--trigger", "triggers", one.name, one.file) for one in triggers if one.event == "symbol"]
    files: list[str] | None = None
    for option, argument, name, file in wanted:
        if os.sep in file:
            _check(f"{option} ({argument})", name, [file], PurePath(file).name, "")
            continue
        files = files_of(program) if files is None else files
        where = [path for path in files if not file or PurePath(path).name == file]
        if where:
            main = PurePath(where[0]).name
            searched, hint = (main, "") if file else (f"{main} or its libraries", f"; {_LATER}")
            _check(f"{option} ({argument})", name, where, searched, hint)


def _check(argument: str, name: str, files: Sequence[str], where: str, hint: str) -> None:
    near: list[str] = []
    for file in files:
        bundle = _core.Bundle()
        try:
            bundle.add_image(file)
        except PtkitError:
            return  # it cannot be read, and may have the function
        session = _core.Session(bundle)
        if _core.lookup_symbol(session, name):
            return
        near += [one for one in _core.similar_symbols(session, name) if one not in near]
    names = f" (did you mean {' or '.join(near[:3])}?)" if near else ""
    raise ConfigError(f"{argument}: there is no function {name!r} in {where}{names}{hint}")
