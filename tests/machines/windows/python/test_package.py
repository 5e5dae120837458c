"""ptkit's Python package in CPython for Windows, in Wine: tables, verbs and messages are those of Linux."""

from __future__ import annotations

import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mingw import imports_of
from small_pe import pe
from windows_programs import windows_program
from wine_python import WinePython, windows_path

import ptkit

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parent
RECORDINGS = HERE.parents[2] / "golden" / "recordings"


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Recordings of perf with their code, and one of them as a bundle, in a folder with an unusual name."""
    folder = tmp_path_factory.mktemp("Aufnahmen") / "gr\u00f6\u00dfer \u03b1 und \u6f22"
    folder.mkdir()
    found = []
    for packed in sorted(RECORDINGS.glob("*.perf.data.xz")):
        path = folder / packed.stem
        path.write_bytes(lzma.decompress(packed.read_bytes()))
        found.append(path)
    with pytest.warns(ptkit.PtkitWarning):
        trace = ptkit.open(folder / "all.perf.data")
    trace.save(folder / "all \u00e4.ptk")
    return [*found, folder / "all \u00e4.ptk"]


def here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Python on this machine, with the package that is tested."""
    package = str(Path(ptkit.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": package, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def test_module_needs_no_libraries_of_mingw(windows_python: WinePython) -> None:
    (module,) = (windows_python.site / "ptkit").glob("_core.*.pyd")
    assert module.name == "_core.cp311-win_amd64.pyd"
    names = {name.lower() for name in imports_of(module)}
    assert "python311.dll" in names
    assert not {name for name in names if name.startswith(("libstdc", "libgcc", "libwinpthread"))}


def test_imports(windows_python: WinePython) -> None:
    said = windows_python.run("-c", "import ptkit, sys; print(sys.platform, ptkit.__version__)")
    assert said.split() == ["win32", ptkit.__version__]


def test_tables_are_those_of_linux(windows_python: WinePython, recordings: list[Path]) -> None:
    there = windows_python.run(HERE / "table_hashes.py", *map(windows_path, recordings), seconds=600)
    ours = here(HERE / "table_hashes.py", *recordings)
    assert there.splitlines() == ours.stdout.splitlines(), ours.stderr
    assert len(there.splitlines()) == 11 * len(recordings)


@pytest.mark.parametrize(
    "verb", ["info", "branches --limit 40", "calls --limit 40", "packets --limit 40", "functions", "events"]
)
def test_verbs_print_what_they_print_on_linux(
    windows_python: WinePython, recordings: list[Path], verb: str
) -> None:
    words = ["-m", "ptkit", *verb.split(), str(recordings[-1])]
    there = windows_python.run(*words)
    ours = here(*words)
    assert ours.returncode == 0, ours.stderr
    assert there == ours.stdout
    assert len(there.splitlines()) > 5


def test_saved_bundle_is_read_on_linux(
    windows_python: WinePython, recordings: list[Path], tmp_path: Path
) -> None:
    copy = tmp_path / "\u00e9.ptk"
    code = "import ptkit, sys; ptkit.open(sys.argv[1]).save(sys.argv[2])"
    windows_python.run("-W", "ignore", "-c", code, windows_path(recordings[-1]), windows_path(copy))
    first, second = (
        here(HERE / "table_hashes.py", path).stdout.splitlines() for path in (recordings[-1], copy)
    )
    assert [line.split()[-3:] for line in first] == [line.split()[-3:] for line in second]
    assert len(first) == 11


def test_index_is_built_and_used(windows_python: WinePython, recordings: list[Path], tmp_path: Path) -> None:
    index = tmp_path / "index \u00e4"
    source = windows_path(recordings[-1])
    windows_python.run("-m", "ptkit", "index", source, "-o", windows_path(index))
    assert index.stat().st_size > 0


@pytest.mark.parametrize("name", ["absent.ptk", "\u00e4bsent \u6f22.ptk"])
def test_absent_file_is_one_line(windows_python: WinePython, name: str) -> None:
    status, said = windows_python.refused("-m", "ptkit", "info", name)
    assert status != 0
    assert said.splitlines() == [
        f"ptkit info: error: {name}: there is no such file or folder; check the path"
    ]


def test_damaged_file_is_one_line(windows_python: WinePython, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("no trace\n")
    status, said = windows_python.refused("-m", "ptkit", "info", windows_path(path))
    assert status != 0
    assert len(said.splitlines()) == 1
    assert "a text file" in said


def test_standard_input_is_refused(windows_python: WinePython) -> None:
    status, said = windows_python.refused("-m", "ptkit", "info", "-")
    assert status != 0
    assert "standard input is not read on Windows; save it to a file" in said


def test_perf_data_is_written(windows_python: WinePython, recordings: list[Path], tmp_path: Path) -> None:
    source, written = recordings[-1], tmp_path / "perf.data"
    windows_python.run("-m", "ptkit", "export", windows_path(source), "-o", windows_path(written))
    with pytest.warns(ptkit.PtkitWarning):
        first, again = ptkit.open(source), ptkit.open(written)
    assert again.format == "perf.data"
    assert len(again.packets()) == len(first.packets()) > 0
    assert len(again.branches()) == len(first.branches()) > 0


def test_selftest_says_that_it_needs_linux(windows_python: WinePython) -> None:
    status, said = windows_python.refused("-m", "ptkit", "selftest")
    assert status != 0
    assert "the checks record by Linux" in said


def test_pe_file_is_an_image(windows_python: WinePython, tmp_path: Path) -> None:
    """NOP, JMP to the next instruction, RET, behind which tracing ends."""
    image = tmp_path / "prog\u00e4.exe"
    image.write_bytes(pe(bytes([0x90, 0xEB, 0x00, 0xC3]), 0x140000000))
    stream = tmp_path / "raw.pt"
    psb, psbend, tip_pgd = bytes([0x02, 0x82] * 8), bytes([0x02, 0x23]), bytes([0x01])
    tip_pge = bytes([0x11 | 6 << 5]) + (0x140001000).to_bytes(8, "little")
    stream.write_bytes(psb + psbend + tip_pge + tip_pgd)
    code = (
        "import ptkit, sys; trace = ptkit.open(sys.argv[1], images=[sys.argv[2]]); "
        "print([hex(ip) for ip in trace.instructions()['ip']])"
    )
    words = [code, str(stream), str(image)]
    there = windows_python.run("-W", "ignore", "-c", *words)
    assert there == here("-W", "ignore", "-c", *words).stdout
    assert there == "['0x140001000', '0x140001001', '0x140001003']\n"


def test_pdb_has_names_and_lines(windows_python: WinePython, tmp_path: Path) -> None:
    source = "static inline __attribute__((always_inline)) int twist(int a) { return a ^ 5; }\n"
    source += "int start(int a) {\n  return twist(a) * 3;\n}\n"
    program = windows_program(tmp_path, "prog", {"prog.c": source}, "-O1")
    stream = tmp_path / "raw.pt"
    address = program.linked_base + program.entry
    stream.write_bytes(bytes([0x02, 0x82] * 8 + [0x02, 0x23, 0xD1]) + address.to_bytes(8, "little") + b"\1")
    code = (
        "import ptkit, sys; path, image, pdb, ip = sys.argv[1:]; "
        "trace = ptkit.open(path, images=[image], debug_path=[pdb], cpu='6/142/9'); "
        "print(trace.symbolize([int(ip)]), [frame[:3:2] for frame in trace.inlines(int(ip))])"
    )
    words = [code, str(stream), str(program.path), str(program.pdb), str(address)]
    there = windows_python.run("-W", "error", "-c", *words)
    assert there == here("-W", "error", "-c", *words).stdout
    assert there == "['start'] [('twist', 1), ('start', 3)]\n"


def test_long_call_is_interrupted(windows_python: WinePython, tmp_path: Path) -> None:
    stream = tmp_path / "long.pt"
    stream.write_bytes((bytes([0x02, 0x82] * 8 + [0x02, 0x23]) + bytes([0x06]) * 4000) * 10000)
    lines = [
        "import _thread, ptkit, sys, threading",
        "trace = ptkit.open(sys.argv[1], format='raw')",
        "threading.Timer(0.3, _thread.interrupt_main).start()",  # as Ctrl-C does
        "try:",
        "    print(len(trace.packets()))",
        "except KeyboardInterrupt:",
        "    print('interrupted')",
    ]
    assert windows_python.run("-W", "ignore", "-c", "\n".join(lines), windows_path(stream)) == "interrupted\n"
