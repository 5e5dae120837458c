"""Functions that filters and triggers name are looked up before the program starts."""

from __future__ import annotations

import os
from pathlib import Path

import compiling
import pytest
from rounds import needs_emulator

import ptkit
from ptkit import Filter, Trigger
from ptkit.capture.functions import check_functions
from ptkit.capture.program import files_of, machine_of
from ptkit.cli import main

SOURCE = """
#include <stdio.h>
__attribute__((noinline, noclone)) int lookup(int n) { return n + 1; }
__attribute__((noinline, noclone)) int unused(int n) { return n + 2; }
int main(int argc, char **argv) {
  FILE *mark = fopen(argv[1], "w");
  fclose(mark);
  return argc > 9 ? unused(argc) : lookup(argc) == 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has `main`, `lookup`, and `unused`, which it does not call; makes the file that its argument names."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "svc.c").write_text(SOURCE)
    return compiling.compiled(folder / "svc", "-O1", folder / "svc.c")


def test_files_are_the_program_and_its_libraries(program: Path, tmp_path: Path) -> None:
    names = [Path(path).name for path in files_of(os.fsencode(program))]
    assert names[0] == "svc"
    assert "libc.so.6" in names
    script = tmp_path / "script"
    script.write_text(f"#!{program} -x\n")
    script.chmod(0o755)
    assert files_of(os.fsencode(script)) == files_of(os.fsencode(program))
    assert machine_of(os.fsencode(script)) == machine_of(os.fsencode(program))


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100, b"#!", b"#!/absent\n"]
)
def test_files_of_damaged_programs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged"
    path.write_bytes(content)
    path.chmod(0o755)
    assert files_of(os.fsencode(path)) == [str(path)]


def test_known_functions_are_accepted(program: Path) -> None:
    filters = [
        Filter.function("lookup"),
        Filter.function("lookup", program),
        Filter.function("printf", "libc.so.6"),
    ]
    later = Filter.function("anything", "plugin.so")
    triggers = [Trigger.symbol("main"), Trigger.symbol("malloc"), Trigger.parse("stop on USR1")]
    assert check_functions(os.fsencode(program), [*filters, later], triggers) is None


@pytest.mark.parametrize(
    ("file", "searched"),
    [("", "svc or its libraries"), ("svc", "svc"), ("libc.so.6", "libc.so.6")],
)
def test_unknown_function_names_the_nearest(program: Path, file: str, searched: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=f"no function 'lookupp' in {searched}") as caught:
        check_functions(os.fsencode(program), [Filter.function("lookupp", file)], [])
    assert ("did you mean lookup" in str(caught.value)) == (file != "libc.so.6")
    with pytest.raises(ptkit.ConfigError, match=r"--trigger .*no function 'nothing'"):
        check_functions(os.fsencode(program), [], [Trigger("symbol", name="nothing", file=file)])


@needs_emulator
def test_unknown_function_starts_no_program(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark, out = tmp_path / "mark", tmp_path / "out.ptk"
    words = ["record", "--backend", "emulator", "-o", str(out)]
    assert main([*words, "--filter", "filter lookupp", "--", str(program), str(mark)]) == 2
    assert "did you mean lookup" in capsys.readouterr().err
    assert not mark.exists()
    assert not out.exists()


@needs_emulator
@pytest.mark.parametrize(
    "option",
    [
        ("--filter", "filter unused"),
        ("--filter", "filter work @ absent.so"),
        ("--trigger", "start at unused"),
    ],
)
def test_a_filter_that_matched_nothing_is_an_error(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: tuple[str, str]
) -> None:
    mark, out = tmp_path / "mark", tmp_path / "out.ptk"
    words = ["record", "--backend", "emulator", "-o", str(out), *option]
    assert main([*words, "--", str(program), str(mark)]) == 2
    assert mark.exists()
    assert "ptkit record: error: " in capsys.readouterr().err
    assert main([*words[:5], "--filter", "filter lookup", "--", str(program), str(mark)]) == 0
