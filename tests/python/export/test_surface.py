"""The surface of exports: formats by suffix, options asked of exporters, parts of traces, redaction."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_elf import elf

import ptkit
from ptkit import export
from ptkit.cli import main
from ptkit.export.options import ExportOption, merged_options
from ptkit.export.registry import _OWN, format_of


def words(folder: Path, loop: Any) -> list[str]:
    """The verb, and a recording."""
    raw, program = folder / "loop.pt", folder / "program"
    raw.write_bytes(loop.stream(20))
    program.write_bytes(elf(loop.CODE, loop.BASE, "again"))
    return ["export", str(raw), "--image", str(program), "--processor", "6/142/9"]


def need(name: str) -> None:
    """Skip a format that needs a package that is missing."""
    if name in ("arrow", "parquet"):
        pytest.importorskip("pyarrow")


def test_the_list_needs_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--list"]) == 0
    said = capsys.readouterr().out
    for exporter in _OWN:
        assert re.search(rf"^{re.escape(exporter.name)} +{re.escape(exporter.description)}$", said, re.M)
        for option in exporter.options:
            assert option.switch in said
    for order in (["export", "--list", "--json"], ["export", "--json", "--list"]):
        assert main(order) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["document"] == "export list"
        assert {one["format"] for one in document["formats"]} >= {one.name for one in _OWN}


def test_without_the_list_both_paths_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["export", "a.ptk"])
    assert left.value.code == 2
    assert "-o" in capsys.readouterr().err


def test_suffixes_say_formats() -> None:
    known = {
        one.name: one
        for one in (
            export.Exporter("perf.data", "", dict, suffixes=(".perf.data",)),
            export.Exporter("speedscope", "", dict, suffixes=(".speedscope.json", ".json")),
            export.Exporter("chrome", "", dict, suffixes=(".trace.json", ".json")),
        )
    }
    found = {
        path: format_of(known, path)
        for path in (
            "a",
            "a.data",
            "x.perf.data",
            "/b.speedscope.json/a",
            "b.SPEEDSCOPE.json",
            Path("c.trace.json"),
        )
    }
    assert list(found.values()) == ["perf.data"] * 4 + ["speedscope", "chrome"]
    with pytest.raises(
        ptkit.ConfigError,
        match=r"out\.json: \.json is a suffix of the formats chrome, speedscope; choose one: --format chrome",
    ):
        format_of(known, "out.json")


def test_own_formats_declare_what_they_take() -> None:
    """Each option is an argument of the writer; files of each format are told from others."""
    import inspect

    assert merged_options((one.name, one.options) for one in _OWN)
    for exporter in _OWN:
        parameters = inspect.signature(exporter.write).parameters
        taken = set(parameters) | set(ptkit.decode.Query.__annotations__)
        assert {one.name for one in exporter.options} <= taken, exporter.name
        has_query = any(one.kind == one.VAR_KEYWORD for one in parameters.values())
        assert has_query == (exporter.selects in ("blocks", "rows")), exporter.name
        assert exporter.head or exporter.is_folder, exporter.name
        assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in exporter.suffixes)


def test_options_of_several_formats_are_one() -> None:
    of = ExportOption("of", "axis", "choice", ("time", "instructions"))
    found = merged_options(
        [
            ("a", [of]),
            ("b", [of, ExportOption("size", "most bytes", "size")]),
            ("c", [ExportOption("of", "weights", "choice", ("calls", "time"))]),
        ]
    )
    assert [(one.name, one.help) for one in found] == [
        ("of", "a, b: axis; c: weights"),
        ("size", "b: most bytes"),
    ]
    assert found[0].choices == ("time", "instructions", "calls")
    with pytest.raises(ValueError, match="kind='number' is not one of"):
        ExportOption("of", "", "number")


def test_options_reach_the_writer_as_their_kinds(
    tmp_path: Path, loop: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[dict[str, Any]] = []

    def write(trace: object, path: str, **options: Any) -> dict[str, Any]:
        given.append(options)
        return {}

    options = (
        ExportOption("of", "axis", "choice", ("time", "calls")),
        ExportOption("size", "most bytes", "size"),
        ExportOption("columns", "columns", "names"),
        ExportOption("depth", "most calls", "integer"),
        ExportOption("title", "a title", "text"),
        ExportOption("merge_all", "merge", "flag"),
    )
    one = export.Exporter("one", "", write, "rows", options=options, suffixes=(".one",))
    two = export.Exporter("two", "", write, options=(ExportOption("of", "", "choice", ("time",)),))
    known = {"one": one, "two": two}
    monkeypatch.setattr("ptkit.export.registry.exporters", lambda: known)
    monkeypatch.setattr("ptkit.cli.verbs.export.exporters", lambda: known)
    monkeypatch.setattr("ptkit.export.registry._OWN", tuple(known.values()))
    command = [*words(tmp_path, loop), "-o", str(tmp_path / "out.one")]
    more = "--of calls --size 80M --columns ip --columns tsc --depth 0x10 --title x --merge-all"
    assert main([*command, *more.split(), "--ip", "0x1000-0x2000"]) == 0
    assert given == [
        {
            "of": "calls",
            "size": 80 << 20,
            "columns": ["ip", "tsc"],
            "depth": 16,
            "title": "x",
            "merge_all": True,
            "ip": [(0x1000, 0x2000)],
        }
    ]
    for refused, text in {
        "--format two --size 1": "--size is for --format one",
        "--format two --of calls": "--of calls: --format two takes time",
        "--format two --ip 1": "--ip is for --format one",
    }.items():
        capsys.readouterr()
        assert main([*command, *refused.split()]) == 2
        assert text in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*command, "--size", "much"])
    assert "write a number of bytes, such as 64M" in capsys.readouterr().err


@pytest.mark.parametrize("name", [one.name for one in _OWN if not one.is_folder])
def test_other_files_are_replaced_by_force_only(
    name: str, tmp_path: Path, loop: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = [*words(tmp_path, loop), "-o", str(out), "--format", name]
    out.write_text("- my notes -\n")
    need(name)
    assert main([*command, "--force"]) == 0
    out.write_text("- my notes -\n")
    capsys.readouterr()
    assert main(command) == 2
    assert out.read_text() == "- my notes -\n"
    assert "out is a text file, not a " in (said := capsys.readouterr().err)
    assert "--force" in said
    out.write_bytes(b"")
    assert main(command) == 0
    written = out.read_bytes()
    assert main(command) == 0  # a file of its own
    assert len(out.read_bytes()) == len(written) > 0


def test_parts_of_a_trace_export(tmp_path: Path, loop: Any, loop_trace: Any) -> None:
    ip = int(loop_trace.blocks()["ip"][-1])
    loop_trace.touching(ip).export(tmp_path / "part.txt", "offsets")
    loop_trace.export(tmp_path / "same.txt", "offsets", ip=ip)
    loop_trace.export(tmp_path / "whole.txt", "offsets")
    part, same, whole = ((tmp_path / f"{name}.txt").read_text() for name in ("part", "same", "whole"))
    assert part == same
    assert part in whole
    assert len(part) < len(whole)
    events = loop_trace.events()
    piece = loop_trace.slice(after=events[:1])
    assert piece.export(tmp_path / "slice.drcov").format == "drcov"
    assert piece.trace is loop_trace
    for view in (piece, loop_trace.touching(ip)):
        with pytest.raises(ptkit.ConfigError, match=r"'raw' writes whole recordings.* code, .*drcov"):
            view.export(tmp_path / "x", "raw")
        with pytest.raises(ptkit.ConfigError, match=r"'perf\.data' writes whole recordings"):
            view.export(tmp_path / "x")


@pytest.mark.parametrize("name", [one.name for one in _OWN])
def test_redaction_leaves_out_paths(name: str, tmp_path: Path, spaces: Any) -> None:
    secret = [Path(path) for path, _ in spaces.info.files]
    folder = tmp_path / "out"
    folder.mkdir()
    more: dict[str, Any] = {"stream": 0} if name == "raw" else {}
    if name == "tenet":
        more = {"tid": 1}
    if name in ("autofdo", "llvm", "bolt", "bolt-traces"):  # files of one program
        more = {"module": "alpha_fn"}
    need(name)
    spaces.export(folder / "out", name, redact=True, **more)
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert written
    for path in written:
        data = path.read_bytes()
        for one in secret:
            assert str(one.parent).encode() not in data, path
    assert not list(folder.rglob(".ptkit-*"))


def test_redacted_blocks_are_equal(tmp_path: Path, brief: str) -> None:
    if not any(one.name == "step" and one.available for one in ptkit.capture.probe()):
        pytest.skip("no single stepping here")
    trace = ptkit.record([brief, "loop", "5"], output=tmp_path / "brief.ptk", backend="step", quiet=True)
    plain, redacted = tmp_path / "a.txt", tmp_path / "b.txt"
    trace.export(plain, "offsets")
    trace.export(redacted, "offsets", redact=True)
    assert len(plain.read_text()) > 10
    assert redacted.read_text() == plain.read_text().replace("brief+", "file-0+")
    trace.export(tmp_path / "d.txt", "offsets", redact=True, module="brief")
    assert (tmp_path / "d.txt").read_text() == redacted.read_text()
    part = trace.touching(int(trace.blocks()["ip"][0]))
    part.export(tmp_path / "c.txt", "offsets", redact=True)
    assert set((tmp_path / "c.txt").read_text().split()) < set(redacted.read_text().split())
