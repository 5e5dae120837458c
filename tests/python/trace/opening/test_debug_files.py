"""Names and lines from separate debug files: where they are looked for, and which are not used."""

from __future__ import annotations

import ctypes.util
import http.server
import lzma
import shutil
import subprocess
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import compiled
from rounds import needs_emulator
from warned import of_code, warned

import ptkit
from ptkit.cli import main

BASE = 0x5000_0000_0000
# Its types are what dwz finds in two programs.
SOURCE = """\
volatile int sink; struct point { int x, y; struct point* next; long weights[8]; } point; struct shape { \
struct point first, last; struct shape* parent; double area; int (*draw)(struct shape*); } shape;
static inline __attribute__((always_inline)) int inner(int a) { return a * sink; }
static __attribute__((noipa)) int hidden(int a) {
  sink = a;
  return inner(a) + inner(a + 1);
}
int main(void) { return hidden(3); }
"""


def tool(name: str, *arguments: str | Path) -> None:
    """Run a tool of binutils or dwz; the test is skipped without it."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    subprocess.run([name, *map(str, arguments)], check=True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with debug information."""
    source = tmp_path / "split.c"
    source.write_text(SOURCE)
    return compiled(tmp_path / "split", "-g", "-O2", "-Wl,--build-id", source)


@pytest.fixture
def hidden(program: Path, opened: Any) -> int:
    """The address of a function that only .symtab has."""
    ((_, address, _),) = opened(program).symbols("hidden")
    return int(address)


@pytest.fixture
def opened(loop: Any, open_trace: Any) -> Any:
    """A function that opens a trace with a program at BASE."""
    return lambda program, **options: open_trace(loop.stream(1), images=[(program, BASE)], **options)


def split(program: Path, debug: Path, *flags: str) -> None:
    """Move debug information and symbols of a program to `debug`."""
    debug.parent.mkdir(parents=True, exist_ok=True)
    tool("objcopy", "--only-keep-debug", *flags, program, debug)
    tool("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", program)


IFUNC = """\
static int __copy_fast(int a) { return a + 1; }
static int other(int a) { return a + 2; }
int flag;
static int (*choose(void))(int) { return flag ? __copy_fast : other; }
int copy(int) __attribute__((ifunc("choose")));
"""


def test_what_an_ifunc_chooses_has_both_names(tmp_path: Path, opened: Any) -> None:
    source = tmp_path / "chosen.c"
    source.write_text(IFUNC)
    library = compiled(tmp_path / "chosen.so", "-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id", source)
    wanted = ["copy (fast)", "copy (other)"]
    whole = sorted(opened(library).symbols("copy"))
    assert [name for name, *_ in whole] == wanted
    split(library, tmp_path / ".debug" / "chosen.so.debug")
    trace = opened(library)
    assert trace.symbolize([address for _, address, _ in whole]) == wanted
    for name, address, _ in whole:
        assert [found for _, found, _ in trace.symbols(name)] == [address]
    (tmp_path / ".debug" / "chosen.so.debug").unlink()
    nameless = sorted(opened(library).symbols("copy"), key=lambda one: one[1])
    addresses = sorted(address for _, address, _ in whole)
    assert [name for name, *_ in nameless] == [f"copy ({address - BASE:#x})" for address in addresses]


def assert_found(trace: Any, hidden: int) -> None:
    """Names and lines of the function are known."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trace.symbolize([hidden]) == ["hidden"]
        assert [(name, address) for name, address, _ in trace.symbols("hidden")] == [("hidden", hidden)]
        frames = [trace.inlines(hidden + offset) for offset in range(24)]
        assert ["inner", "hidden"] in [[frame.function for frame in one] for one in frames]
        assert trace.lines([hidden]).line.tolist() in ([3], [4])  # its first instruction may be of its body


def test_a_stripped_program_has_neither(program: Path, hidden: int, opened: Any) -> None:
    tool("objcopy", "--strip-all", program)
    trace = opened(program)
    assert trace.symbolize([hidden]) != ["hidden"]
    assert trace.lines([hidden]).file.tolist() == [None]
    with pytest.raises(ptkit.SymbolError):
        trace.symbols("hidden")


def test_endless_abbreviations_are_not_read(program: Path, hidden: int, opened: Any, tmp_path: Path) -> None:
    section = tmp_path / "abbreviations"
    tool("objcopy", f"--dump-section=.debug_abbrev={section}", program)
    artificial = b"\x34\x19"  # DW_AT_artificial, DW_FORM_flag_present
    section.write_bytes(section.read_bytes()[:-1] + b"\x7f\x34\0" + artificial * 1_000_000 + b"\0\0\0")
    tool("objcopy", f"--update-section=.debug_abbrev={section}", program)
    trace = opened(program)
    with warned("DEBUG_INFO_CUT"):
        assert trace.lines([hidden]).file.tolist() == [None]
    assert trace.symbolize([hidden], lines=True) == ["hidden"]  # said once
    assert len(of_code(trace.info.warnings, "DEBUG_INFO_CUT")) == 1


@pytest.mark.parametrize("link", ["split.debug", ".debug/split.debug"])
@pytest.mark.parametrize("flags", [(), ("--compress-debug-sections",)])
def test_debug_links(link: str, flags: tuple[str, ...], program: Path, hidden: int, opened: Any) -> None:
    split(program, program.parent / link, *flags)
    assert_found(opened(program), hidden)


def test_debug_folders(
    program: Path, hidden: int, opened: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_id = dict(opened(program).info.files)[str(program)]
    folder = tmp_path / "debug"
    split(program, folder / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug")
    assert opened(program).symbolize([hidden]) != ["hidden"]
    monkeypatch.setenv("PTKIT_DEBUG_PATH", f"{tmp_path}/none:{folder}")
    assert_found(opened(program), hidden)


@pytest.mark.parametrize("how", ["folder", "file", "renamed file"])
def test_debug_paths_that_are_given(
    how: str, program: Path, hidden: int, opened: Any, tmp_path: Path
) -> None:
    build_id = dict(opened(program).info.files)[str(program)]
    debug = tmp_path / "debug" / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    split(program, debug)
    if how == "renamed file":
        debug = debug.rename(tmp_path / "other.name")
    given = tmp_path / "debug" if how == "folder" else debug
    assert opened(program).symbolize([hidden]) != ["hidden"]
    assert_found(opened(program, debug_path=[given]), hidden)


def test_a_given_file_of_another_build_is_not_used(
    program: Path, hidden: int, opened: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "given"
    split(program, folder / "split.debug")
    compiled(folder / "split.debug", "-g", "-O1", "-Wl,--build-id", tmp_path / "split.c")
    trace = opened(program, debug_path=[folder / "split.debug", program])
    with warned("DEBUG_FILE_DIFFERS", str(folder / "split.debug")):
        assert trace.symbolize([hidden]) != ["hidden"]
    assert len(of_code(trace.info.warnings, "DEBUG_FILE_DIFFERS")) == 1


def test_debug_paths_are_checked(program: Path, opened: Any, tmp_path: Path) -> None:
    with pytest.raises(ptkit.MissingFileError, match="no such debug file or folder of debug files"):
        opened(program, debug_path=[tmp_path / "absent"])
    with pytest.raises(ptkit.ConfigError, match=r"debug_path=.* must be a list of folders and files"):
        opened(program, debug_path=str(tmp_path))


def test_debug_paths_of_commands(
    program: Path, hidden: int, opened: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "split.ptk"
    split(program, tmp_path / "debug" / "split.debug")
    ptkit.record([str(program)], output=recording, quiet=True)
    for options, named in (((), False), (("--debug-path", str(tmp_path / "debug")), True)):
        assert main(["branches", str(recording), "--module", "split", *options]) == 0
        assert ("hidden" in capsys.readouterr().out) == named


@pytest.mark.parametrize("part", ["build-id", "checksum"])
def test_another_file_is_not_used(part: str, program: Path, hidden: int, opened: Any, tmp_path: Path) -> None:
    if part == "checksum":
        tool("objcopy", "--remove-section=.note.gnu.build-id", program)
    split(program, tmp_path / "split.debug")
    if part == "checksum":
        (tmp_path / "split.debug").write_bytes((tmp_path / "split.debug").read_bytes() + b"\0")
    else:
        other = compiled(tmp_path / "other", "-g", "-O1", "-Wl,--build-id", tmp_path / "split.c")
        other.rename(tmp_path / "split.debug")
    trace = opened(program)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert trace.symbolize([hidden]) != ["hidden"]
        assert trace.lines([hidden]).file.tolist() == [None]
        assert trace.symbolize([hidden + 1]) != ["hidden"]
    (sentence,) = (str(one.message) for one in said)
    assert f"{tmp_path}/split.debug is of another build" in sentence
    assert len(of_code(trace.info.warnings, "DEBUG_FILE_DIFFERS")) == 1


def test_the_checksum_counts_without_build_ids(program: Path, opened: Any, tmp_path: Path) -> None:
    tool("objcopy", "--remove-section=.note.gnu.build-id", program)
    ((_, hidden, _),) = opened(program).symbols("hidden")
    split(program, tmp_path / "split.debug")
    assert_found(opened(program), hidden)


def test_common_debug_information_of_dwz(program: Path, hidden: int, opened: Any, tmp_path: Path) -> None:
    twin = compiled(tmp_path / "twin", "-g", "-O2", "-Wl,--build-id", tmp_path / "split.c", "-DTWIN")
    common = tmp_path / "common.debug"
    tool("dwz", "-q", "-m", common, "-M", "common.debug", program, twin)
    assert common.is_file()
    assert_found(opened(program), hidden)
    common.rename(tmp_path / "gone")
    program.write_bytes(program.read_bytes() + b"\0")  # another file: the first one stays in memory
    trace = opened(program)
    with pytest.warns(ptkit.PtkitWarning, match=r"common\.debug \(\.gnu_debugaltlink\)"):
        assert trace.lines([hidden]).file.tolist() == [None]
    assert len(of_code(trace.info.warnings, "DEBUG_PART_MISSING")) == 1


@pytest.mark.parametrize("kind", ["whole", "damaged", "bomb"])
def test_small_debug_information_has_names(
    kind: str, program: Path, hidden: int, opened: Any, tmp_path: Path
) -> None:
    small, packed = tmp_path / "small", tmp_path / "small.xz"
    tool("objcopy", "--only-keep-debug", program, small)
    tool("objcopy", "--strip-debug", small)
    data = lzma.compress(small.read_bytes() + bytes(64 << 20 if kind == "bomb" else 0))
    packed.write_bytes(data[: len(data) // 2] if kind == "damaged" else data)
    tool("objcopy", "--strip-all", program)
    tool("objcopy", f"--add-section=.gnu_debugdata={packed}", program)
    trace = opened(program)
    assert (trace.symbolize([hidden]) == ["hidden"]) == (kind == "whole")
    assert trace.lines([hidden]).file.tolist() == [None]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A debuginfod server on the loopback: its URL, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as one:
        thread = threading.Thread(target=one.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{one.server_port}", folder
        one.shutdown()
        thread.join()


def test_debuginfod_servers(
    program: Path,
    hidden: int,
    opened: Any,
    server: tuple[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if ctypes.util.find_library("debuginfod") is None:
        pytest.skip("libdebuginfod is not installed (package libdebuginfod1)")
    url, folder = server
    build_id = dict(opened(program).info.files)[str(program)]
    split(program, folder / "buildid" / build_id / "debuginfo")
    tool("objcopy", "--remove-section=.gnu_debuglink", program)
    assert opened(program).symbolize([hidden]) != ["hidden"]
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("DEBUGINFOD_URLS", url)
    assert_found(opened(program), hidden)


@pytest.mark.parametrize("backend", ["step", pytest.param("emulator", marks=needs_emulator)])
@pytest.mark.parametrize("flags", [(), ("-gz",), ("-gdwarf-4",)])
def test_recordings_keep_debug_information(
    backend: str, flags: tuple[str, ...], program: Path, tmp_path: Path
) -> None:
    program = compiled(tmp_path / "gone", "-g", "-O2", *flags, tmp_path / "split.c")
    plain, kept, again, redacted = (
        tmp_path / f"{name}.ptk" for name in ("plain", "kept", "again", "redacted")
    )
    ptkit.record([program], output=plain, backend=backend, quiet=True)
    ptkit.record([program], output=kept, backend=backend, quiet=True, with_debug=True)
    trace = ptkit.open(kept)
    rows = trace.branches(symbol=["main", "hidden"])
    rows = rows[np.isin(rows["from_symbol"], ["main", "hidden"])]
    ips, space = rows["from_ip"], rows["space"]
    lines = trace.lines(ips, space=space).line.tolist()
    chains = [trace.inlines(ip, space=one) for ip, one in zip(ips.tolist(), space.tolist(), strict=True)]
    assert {3, 5, 6, 7} & set(lines)
    program.unlink()
    ptkit.open(kept).save(again)
    ptkit.redact(kept, redacted)
    for path in (kept, again):
        alone = ptkit.open(path)
        assert alone.lines(ips, space=space).line.tolist() == lines
        assert [
            alone.inlines(ip, space=one) for ip, one in zip(ips.tolist(), space.tolist(), strict=True)
        ] == chains
    for path in (plain, redacted):
        assert set(ptkit.open(path).lines(ips, space=space).file.tolist()) == {None}
    assert [b"DBUG" in path.read_bytes() for path in (plain, kept, redacted)] == [False, True, False]


def test_redacted_recordings_keep_none(program: Path, tmp_path: Path) -> None:
    with pytest.raises(ptkit.ConfigError, match="with_debug: debug information has"):
        ptkit.record([program], output=tmp_path / "a.ptk", redact=True, with_debug=True)


def test_recordings_get_names_from_debug_files(program: Path, tmp_path: Path) -> None:
    split(program, tmp_path / "split.debug")
    trace = ptkit.record([str(program)])
    rows = trace.branches(symbol="hidden")
    assert "hidden" in rows["from_symbol"].tolist()
    assert {3, 5, 6, 7} & set(trace.lines(rows["from_ip"], space=rows["space"]).line.tolist())


def test_a_program_that_was_built_anew_is_said(program: Path, tmp_path: Path) -> None:
    ptkit.record([program], output=tmp_path / "split.ptk", quiet=True)
    kept = tmp_path / "kept.ptk"
    ptkit.record([program], output=kept, quiet=True, with_debug=True)
    source = tmp_path / "split.c"
    assert "split.c" in str(ptkit.open(tmp_path / "split.ptk").functions("line")["source"].tolist())
    source.write_text(SOURCE.replace("hidden(3)", "hidden(30000)"))
    compiled(program, "-g", "-O2", "-Wl,--build-id", source)
    trace = ptkit.open(tmp_path / "split.ptk")
    assert "hidden" in trace.functions()["function"].tolist()  # no word where lines are not asked for
    with warned("DEBUG_PROGRAM_DIFFERS"):
        lines = trace.functions("line", module="split")
    assert not any(lines["source"].tolist())
    (said,) = of_code(trace.info.warnings, "DEBUG_PROGRAM_DIFFERS")
    assert str(said).startswith(f"{program}: The program at this path was built anew")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "split.c" in str(ptkit.open(kept).functions("line", module="split")["source"].tolist())
        program.unlink()
        ptkit.open(tmp_path / "split.ptk").functions("line", module="split")
