"""What is imported when: `import ptkit` and `ptkit --help` are quick, since they need next to nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit.cli.main import VERBS

_HEAVY = {"numpy", "pandas", "pyarrow", "ptkit._core"}


def modules(program: str, *arguments: str) -> set[str]:
    """Modules of a Python process after a program."""
    show = "import sys; print(*sys.modules, sep='\\n', file=sys.stderr)"
    words = [sys.executable, "-c", f"{program}\n{show}", *arguments]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def shell(*arguments: str) -> set[str]:
    """Modules of a process that runs the command line."""
    return modules("from ptkit.cli import main\ntry: main()\nexcept SystemExit: pass", *arguments)


def test_import_ptkit_imports_nothing_else_of_it() -> None:
    found = modules("import ptkit")
    assert {name for name in found if name.startswith("ptkit")} == {"ptkit"}
    assert not found & (_HEAVY | {"argparse", "json", "pathlib", "dataclasses"})
    assert len(found - modules("import typing")) < 20


def test_a_name_imports_its_module() -> None:
    assert "ptkit.errors" in modules("from ptkit import PtkitError")
    assert not modules("import ptkit; ptkit.PtkitError") & _HEAVY
    assert {"numpy", "ptkit.trace"} <= modules("import ptkit; ptkit.Trace")
    assert not modules("import ptkit; ptkit.Trace") & {"pandas", "pyarrow", "argparse", "ptkit.capture"}


def test_help_imports_no_verb() -> None:
    found = shell("--help")
    assert not found & _HEAVY
    assert {name for name in found if name.startswith("ptkit.cli.verbs")} == set()
    assert not {name for name in found if name.startswith(("ptkit.trace", "ptkit.capture", "ptkit.analysis"))}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_imports_no_other(verb: str) -> None:
    found = shell(verb, "--help")
    assert f"ptkit.cli.verbs.{verb}" in found
    assert not {f"ptkit.cli.verbs.{other}" for other in VERBS if other != verb} & found
    assert not found & {"pandas", "pyarrow", "ptkit.readers", "ptkit.symbol_lists"}


@pytest.mark.parametrize(("verb", "most"), [("info", 130), ("functions", 135)])
def test_a_verb_imports_what_it_uses(verb: str, most: int, loop_trace: Any, tmp_path: Path) -> None:
    """Most of a short command's time goes to imports: who adds modules to all verbs finds it here."""
    path = tmp_path / "loop.ptk"
    loop_trace.save(path)
    found = shell(verb, str(path)) - modules("import numpy, numpy.typing")
    assert f"ptkit.cli.verbs.{verb}" in found
    unused = {"email", "importlib.metadata", "secrets", "hmac", "pandas", "pyarrow", "rich", "subprocess"}
    assert not found & unused
    for folder in ("analysis", "capture", "msr", "planning", "selftest", "symbol_lists", "view"):
        assert f"ptkit.{folder}" not in found
    assert len({name for name in found if name.split(".")[0] == "ptkit"}) <= most


def test_every_name_is_there_and_listed() -> None:
    namespace: dict[str, object] = {}
    exec("from ptkit import *", namespace)
    assert set(ptkit.__all__) <= namespace.keys()
    assert set(ptkit.__all__) <= set(dir(ptkit))
    assert {"analysis", "capture", "export", "msr"} <= set(dir(ptkit))
    assert ptkit.open.__module__ == "ptkit.trace.opening.opening"
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        ptkit.opne  # noqa: B018
