"""What is said of a trace: each fact once, on one line, before anything else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import ptk_chunks
import pytest
from warned import of_code

import ptkit
from ptkit.cli import main
from ptkit.support.text import counted


def recording(folder: Path, files: int, stream: bytes) -> Path:
    """A recording of simple-pt; its programs are not on this machine."""
    path = folder / "ptout.0"
    path.write_bytes(stream)
    mapped = [f"0.0 77 1000 {0x10000 * (i + 1):x} 0 4096 \t/absent/lib{i}.so\n" for i in range(files)]
    meta = "meta family 6\nmeta model 61\nmeta stepping 4\n"
    (folder / "ptout.sideband").write_text(meta + "".join(mapped))
    return path


@pytest.fixture
def five(tmp_path: Path, loop: Any) -> Path:
    """With five files that are missing."""
    return recording(tmp_path, 5, loop.stream(2))


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], list[str]]:
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out.splitlines(), captured.err.splitlines()


def test_missing_files_are_one_warning(five: Path) -> None:
    with pytest.warns(ptkit.PtkitWarning) as caught:
        info = ptkit.open(five).info
    assert [str(one.message) for one in caught] == list(info.warnings)
    (said,) = of_code(info.warnings, "FILES_MISSING")
    assert said.arguments == (
        "5",
        "/absent/lib0.so, /absent/lib1.so, /absent/lib2.so and 2 more "
        "(ptkit info --verbose, trace.info.missing_files)",
    )
    assert "--binaries DIR" in said.remedy
    assert said.endswith(said.remedy)


def test_missing_files_are_data(five: Path, open_trace: Any) -> None:
    files = open_trace(five).info.missing_files
    assert [file.path for file in files] == [f"/absent/lib{i}.so" for i in range(5)]
    assert files[0] == ptkit.MissingFile("/absent/lib0.so", "", "")
    assert str(ptkit.MissingFile("/a", "ab", "other")) == "/a (build-id ab; other)"


def test_one_missing_file_is_named(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    info = open_trace(recording(tmp_path, 1, loop.stream(2))).info
    (said,) = of_code(info.warnings, "FILES_MISSING")
    assert said.arguments == ("1", "/absent/lib0.so")


def test_missing_files_of_bundles_are_images(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    missing = [{"path": "/absent/lib0.so"}]
    path = ptk_chunks.write(
        tmp_path / "a.ptk", [ptk_chunks.process(0, 7, 1, loop.stream(2))], missing_files=missing
    )
    (said,) = of_code(open_trace(path).info.warnings, "IMAGES_MISSING")
    assert said.arguments == ("1", "/absent/lib0.so")
    assert "--image PATH" in said.remedy


def test_an_image_of_that_name_is_not_missing(five: Path, open_trace: Any, tmp_path: Path) -> None:
    given = tmp_path / "lib3.so"
    given.write_bytes(Path(ptkit._core.__file__).read_bytes())
    files = open_trace(five, images=[(given, 0x7F0000000000)]).info.missing_files
    assert [file.path[-4] for file in files] == ["0", "1", "2", "4"]


def test_info_lists_missing_files_if_asked_to(five: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, short, _ = run(capsys, "info", str(five))
    assert sum("/absent/lib4.so" in line for line in short if not line.startswith("module:")) == 0
    _, long, _ = run(capsys, "info", "--verbose", str(five))
    listed = [line.split()[1] for line in long if line.startswith("missing:")]
    assert listed == [f"/absent/lib{i}.so" for i in range(5)]
    main(["info", "--json", str(five)])
    found = json.loads(capsys.readouterr().out)
    assert found["missing_files"][4] == {"path": "/absent/lib4.so", "build_id": None, "reason": None}


def test_a_warning_is_printed_once(five: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, "info", str(five))
    assert err == []
    assert sum("files are missing" in line for line in out) == 1
    _, out, err = run(capsys, "packets", str(five))
    assert sum("files are missing" in line for line in out) == 0
    assert sum("files are missing" in line for line in err) == 1


def test_info_has_every_warning(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(loop.stream(2))
    (tmp_path / "raw.pt.ptindex").write_bytes(b"no index")
    with pytest.warns(ptkit.PtkitWarning) as caught:
        info = ptkit.open(path).info
    assert [str(one.message) for one in caught] == list(info.warnings)
    _, out, err = run(capsys, "info", str(path))
    assert err == []
    said = [line for line in out if line.startswith("warning:")]
    assert len(said) == 2
    assert "--processor FAMILY/MODEL/STEPPING" in said[0]
    assert "raw.pt.ptindex" in said[1]


def test_files_of_one_name_are_counted(open_trace: Any, loop: Any) -> None:
    info = open_trace(loop.stream(2)).info
    text = replace(info, files=(("[bpf]", ""),) * 41 + (("/bin/ls", "ab12"),)).text(verbose=True)
    assert [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith("file:")] == [
        "[bpf] x 41",
        "/bin/ls  ab12",
    ]


@pytest.mark.parametrize("verb", ["branches", "instructions"])
def test_an_unknown_symbol_is_said_before_anything_else(
    verb: str, tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(loop.stream(2))
    image = ["--image", f"{ptkit._core.__file__}@0x7f0000000000"]
    status, out, err = run(capsys, verb, str(path), *image, "--symbol", "PyInit__coree")
    assert (status, out) == (2, [])
    (said,) = err
    assert said.startswith(f"ptkit {verb}: error: no symbol 'PyInit__coree'; did you mean ")
    assert "PyInit__core" in said.split("did you mean")[1]


def test_info_shows_what_was_not_decoded(
    tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "raw.pt"
    path.write_bytes(loop.stream(2))
    _, out, err = run(capsys, "branches", str(path), "--no-header", "--processor", "6/142/9")
    assert f"1 error and 1 gap: not everything could be decoded (ptkit info --decode {path} " in err[0]
    lack = "2 of these are for lack of code, which --image or --code gives"
    assert err[0].endswith(lack)
    _, shown, _ = run(capsys, "info", "--decode", str(path), "--processor", "6/142/9")
    assert shown[-1] == lack
    assert [line for line in shown if line.startswith("stream 0: [")] == [
        f"stream 0: {line}" for line in out if line.startswith(("[error: ", "[gap: "))
    ]


def test_code_beside_a_stream_is_named(tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pt_trace_dump_1").write_bytes(loop.stream(2))
    (tmp_path / "page_cache.addr").write_bytes(loop.BASE.to_bytes(8, "little"))
    (tmp_path / "page_cache.dump").write_bytes(loop.CODE.ljust(4096, b"\xcc"))
    _, _, err = run(
        capsys, "edges", str(tmp_path / "pt_trace_dump_1"), "--no-header", "--processor", "6/142/9"
    )
    assert err[0].endswith(f"or open {tmp_path}, which has page_cache.addr")
    _, _, err = run(capsys, "edges", str(tmp_path), "--no-header", "--processor", "6/142/9")
    assert err == []


def test_sentences_of_errors_and_gaps(open_trace: Any, loop: Any) -> None:
    trace = open_trace(loop.stream(2))
    (error,) = trace.errors.messages()
    assert error.startswith(f"no code at this address (at stream offset 0x1c, ip {loop.BASE:#x})")
    assert error.endswith("give it by --image or --code, or images=[...] in Python")
    (gap,) = trace.gaps.messages()
    assert gap.startswith("after an error: ")
    assert " bytes of trace (0x" in gap
    assert "could not be followed" in gap


def test_a_branch_stack_has_no_psb() -> None:
    first = {"from_ip": [0x1001], "to_ip": [0x1000], "flags": [int(ptkit.RecordFlag.FIRST)]}
    trace = ptkit.open_branches(first, images={0x1000: bytes.fromhex("90ebfd")})
    assert trace.gaps.messages() == [
        "start of a branch stack, or of the branch records: what ran before is not recorded"
    ]


def test_text_is_not_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader,\n" * 100)
    with pytest.raises(ptkit.FormatError) as raised:
        ptkit.open(path)
    assert str(raised.value).startswith(f"{path} is not a trace: it is a text file ")
    with pytest.raises(ptkit.FormatError) as raised:
        ptkit.open(tmp_path)
    assert str(raised.value) == f"{tmp_path}: no trace in this folder (formats of folders: docs/formats.md)"


def test_settings_are_in_words(open_trace: Any, loop: Any) -> None:
    info = replace(open_trace(loop.stream(1), images=loop.images()).info, rtit_ctl=0x100E609)
    settings = next(line for line in info.text(verbose=True).splitlines() if line.startswith("settings:"))
    assert settings.partition(":")[2].strip() == (
        "user code; branches, TSC, MTC; PSB every 4 KiB (`ptkit msr explain 0x570 0x100e609`)"
    )
    both = replace(info, rtit_ctl=0xC)
    assert "user and kernel code; no packets; PSB every 2 KiB" in both.text(verbose=True)


def test_one_is_singular() -> None:
    assert [counted(number, "row") for number in (0, 1, 2, 1000)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "1,000 rows",
    ]
    assert counted(1, "loss", "losses") == "1 loss"
    assert counted(2, "loss", "losses") == "2 losses"


def test_info_lists_processes_and_modules(spaces: Any) -> None:
    info = spaces.info
    assert [(one.pid, one.threads, one.spaces) for one in info.processes] == [
        (number, ((number, ""),), ((number, None),)) for number in (1, 2, 3)
    ]
    assert [(Path(one.path).name, one.base, one.size, one.space) for one in info.modules] == [
        ("shared_fn", 0x1000, 6, 0),
        ("alpha_fn", 0x1000, 6, 1),
        ("beta_fn", 0x1000, 6, 2),
    ]
    lines = info.text().splitlines()
    assert "process:       2; address space 2" in lines
    assert any(line.startswith("module:        0x1000, 0x6 bytes, address space 1  ") for line in lines)
    assert not any(line.startswith(("clock:", "file:", "IP payloads:")) for line in lines)
    assert any(line.startswith("clock:") for line in info.text(verbose=True).splitlines())


def test_processes_have_names_threads_and_page_tables(open_trace: Any, loop: Any) -> None:
    threads = ((7, 7, "server"), (7, 9, "worker"), (None, 5, "stray"))
    spaces = ((None, None), (7, 0x1A2000), (None, 0x3000))
    info = replace(open_trace(loop.stream(1)).info, threads=threads, spaces=spaces)
    assert [(one.name, one.threads, one.spaces) for one in info.processes] == [
        ("server", ((7, "server"), (9, "worker")), ((1, 0x1A2000),))
    ]
    lines = info.text().splitlines()
    assert "process:       7 (server); address space 1, CR3 0x1a2000; 2 threads: 7 server, 9 worker" in lines
    assert "space:         2: CR3 0x3000" in lines
    assert "thread:        5 stray" in lines


def test_long_lists_are_cut_unless_all_is_asked_for(open_trace: Any, loop: Any) -> None:
    info = open_trace(loop.stream(1)).info
    stream = info.streams[0]
    many = replace(
        info,
        modules=tuple(ptkit.ModuleInfo(f"/lib/{i}", "", i << 12, 4096, 0) for i in range(25)),
        threads=tuple((7, tid, f"t{tid}") for tid in range(7, 27)),
        streams=tuple(replace(stream, size=size) for size in range(1, 14)),
    )
    lines = many.text().splitlines()
    cut = "... and {} more (ptkit info --verbose)"
    assert [line for line in lines if line.startswith("module:")][-1].endswith(cut.format(5))
    streams = [line for line in lines if line.startswith("stream:")]
    assert streams[0].split()[1] == "3:"
    assert streams[-1].endswith(cut.format(3))
    (process,) = (line for line in lines if line.startswith("process:"))
    assert process.endswith("14 t14, ... 12 more")
    lines = many.text(verbose=True).splitlines()
    assert sum(line.startswith("module:") for line in lines) == 25
    assert sum(line.startswith("stream:") for line in lines) == 13


def test_modules_of_a_recording_are_json(five: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", "--json", str(five)])
    found = json.loads(capsys.readouterr().out)
    assert found["processes"] == [{"pid": 77, "name": "", "threads": [], "spaces": [1]}]
    assert found["modules"][1] == {
        "path": "/absent/lib1.so",
        "build_id": None,
        "base": "0x20000",
        "size": 4096,
        "space": 1,
    }


def test_ids_of_pe_files_are_printed_as_symbol_servers_have_them(five: Path, open_trace: Any) -> None:
    ids = "3f2504e04f8911d39a0c0305e82c3301-1a", "65a1b2c3-1d000", "ab12-1"
    files = tuple(zip(("driver.sys", "a.exe", "/bin/ls"), ids, strict=True))
    text = replace(open_trace(five).info, files=files).text(verbose=True)
    assert "a.exe  65A1B2C31d000" in text
    assert "driver.sys  3F2504E04F8911D39A0C0305E82C33011A" in text
    assert "/bin/ls  ab12-1" in text
