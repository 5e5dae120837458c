"""Recordings written as perf.data: stock perf shows what ptkit does, and read back they are equal."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ptk_chunks
import pytest
from branch_records import user_records
from compiling import build
from perf_script import needs_perf, perf_branches, perf_instructions
from rounds import needs_emulator, opened
from warned import of_code

import ptkit
from ptkit import export
from ptkit.cli import main

# Threads; fork, vfork and exec; signals and a fault; code made at run time, changed at one address and in two
# views of a file; exec by threads; libraries that come and go.
PROGRAMS = ["threads", "forks", "signals", "jit", "selfmod", "spawn", "plugins"]
# PSB, PSBEND, TIP.PGE to 0x1000, TNT (taken, not taken), TIP.PGD without IP.
STREAM = bytes.fromhex("0282" * 8 + "0223" + "7100100000000000"[:14] + "0a" + "01")
CODE = bytes.fromhex("7402" + "9090" + "74fa" + "0f05")


@pytest.fixture(scope="module", params=PROGRAMS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ptkit.Trace:
    """A recording of a program, made by the emulator."""
    folder = tmp_path_factory.mktemp(request.param)
    program = build(request.param, folder)
    trace = ptkit.record([program], output=folder / "out.ptk", backend="emulator", quiet=True)
    assert len(trace.errors) == 0
    return trace


@pytest.fixture(scope="module")
def written(recording: ptkit.Trace) -> Path:
    """The same as perf.data."""
    path = Path(f"{recording.source}.data")
    recording.export(path)
    return path


def by_thread(trace: ptkit.Trace) -> dict[int, tuple[Any, Any, Any]]:
    """Of each thread: instructions, branches that were taken, and where tracing began."""
    instructions = trace.instructions(columns=["ip", "tid"])
    branches = trace.branches(columns=["from_ip", "to_ip", "taken", "tid"])
    events = trace.events(columns=["kind", "ip", "flags", "tid"])
    repeated = (events["flags"] & int(ptkit.EventFlag.STATUS)) != 0
    begins = (events["kind"] == ptkit.EventKind.ENABLED) & ~repeated
    threads = {}
    for tid in np.unique(instructions["tid"]).tolist():
        taken = (branches["tid"] == tid) & branches["taken"]
        threads[tid] = (
            instructions["ip"][instructions["tid"] == tid],
            (branches["from_ip"][taken], branches["to_ip"][taken]),
            events["ip"][begins & (events["tid"] == tid)],
        )
    return threads


@needs_emulator
@needs_perf
def test_perf_shows_every_instruction(recording: ptkit.Trace, written: Path) -> None:
    found = perf_instructions(written)
    assert found.errors == []
    threads = by_thread(recording)
    assert set(np.unique(found.tid).tolist()) == set(threads)
    assert len(found.tid) > 10_000
    for tid, (instructions, _, _) in threads.items():
        assert np.array_equal(found.of(tid).from_ip, instructions), tid


@needs_emulator
@needs_perf
def test_perf_shows_every_branch(recording: ptkit.Trace, written: Path) -> None:
    found = perf_branches(written)
    assert found.errors == []
    for tid, (_, (from_ip, to_ip), begins) in by_thread(recording).items():
        rows = found.of(tid)
        branches = rows.from_ip != 0
        assert np.array_equal(rows.from_ip[branches], from_ip), tid
        assert np.array_equal(rows.to_ip[branches], to_ip), tid
        assert np.array_equal(rows.to_ip[~branches], begins), tid


@needs_emulator
def test_read_back_it_is_equal(recording: ptkit.Trace, written: Path) -> None:
    back, warned = opened(written)
    # What the program has made in memory has a name there, and no file.
    assert all("/memfd:code" in line for line in warned.splitlines()), warned
    for table in ("branches", "events"):
        expected, found = getattr(recording, table)(), getattr(back, table)()
        assert expected.columns == found.columns
        for name in expected.columns:
            assert np.array_equal(expected[name], found[name]), (table, name)
        for name in ("tid", "pid", "tsc"):
            assert np.array_equal(expected[name], found[name]), (table, name)
    assert len(back.errors) == 0
    ours, theirs = recording.info, back.info
    assert {(tid, name) for _, tid, name in ours.threads} <= {(tid, name) for _, tid, name in theirs.threads}
    output = 1 << 8  # ToPA: perf uses nothing else
    assert ours.rtit_ctl | output == theirs.rtit_ctl
    for name in ("cpu", "mtc_period", "tsc_ctc_ratio", "perf_time", "max_nonturbo_ratio"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.recording["command"] == theirs.recording["command"]


@needs_emulator
@needs_perf
def test_all_code_goes_along(recording: ptkit.Trace, tmp_path: Path) -> None:
    written = recording.export(tmp_path / "out.data", code="all")
    assert written.files == (f"{tmp_path}/out.data.debug",)
    known = {build_id for _, build_id in recording.info.files if build_id}
    there = {path.parent.name + path.name for path in (tmp_path / "out.data.debug/.build-id").glob("*/*")}
    assert known <= there
    for path, name in ((tmp_path / "out.data", "code"), (tmp_path / "bare.data", "none")):
        if name == "none":
            assert recording.export(path, code="none").files == ()
        else:
            assert np.array_equal(
                np.sort(perf_instructions(path).from_ip),
                np.sort(recording.instructions(columns=["ip"])["ip"]),
            )


@needs_emulator
@needs_perf
def test_perf_shows_what_comes_after_losses(rounds: Path, tmp_path: Path) -> None:
    trace = ptkit.record(
        [rounds, "200000"],
        output=tmp_path / "out.ptk",
        backend="emulator",
        quiet=True,
        ring="64K",
        timing=("tsc", "mtc", "cyc"),
        psb_period=2048,
        triggers=["snapshot at other x60000"],
    )
    losses = trace.streams[0].losses
    assert losses >= 2
    path = tmp_path / "out.data"
    trace.export(path)
    found = perf_instructions(path)
    assert np.array_equal(found.from_ip, trace.instructions(columns=["ip"])["ip"])
    assert sum("code 7: Overflow" in error for error in found.errors) == np.sum(trace.gaps["begin"] != 0)
    back = ptkit.open(path)
    assert back.streams[0].losses == losses
    for name in ("begin", "end", "cause", "code", "tsc", "from_ip", "to_ip"):
        assert np.array_equal(back.gaps[name], trace.gaps[name]), name


@needs_emulator
@needs_perf
def test_perf_shows_every_branch_record(rounds: Path, tmp_path: Path) -> None:
    trace = ptkit.record([rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True)
    table = trace.instructions(columns=["ip", "size"])
    spots = set(zip(table["ip"].tolist(), table["size"].tolist(), strict=True))
    code = {at: trace.code(at, size) for at, size in sorted(spots)}
    made = user_records(trace, 0, returns=False)
    records = ptkit.open_branches(made, images=code, pid=77, tid=78)
    written = records.export(tmp_path / "out.data")
    found = perf_branches(tmp_path / "out.data")
    assert found.errors == []
    assert len(found.tid) == len(made) > 1000
    assert np.array_equal(found.from_ip, made["from_ip"])
    assert np.array_equal(found.to_ip, made["to_ip"])
    assert set(found.tid.tolist()) == {78}
    assert of_code(written.notes, "EXPORT_TSC_AS_NS")
    back, _ = opened(tmp_path / "out.data")
    for table in ("branches", "instructions"):
        expected, again = getattr(records, table)(), getattr(back, table)()
        assert len(expected) > 1000
        for name in (*expected.columns, "tid", "pid"):
            assert np.array_equal(again[name], expected[name]), (table, name)


# Where a direct call or jump leaves a range, only its words tell perf that tracing ended there.
@needs_emulator
@needs_perf
@pytest.mark.parametrize("names", [("work",), ("main",), ("leaf", "work")])
def test_address_ranges_are_filters(rounds: Path, tmp_path: Path, names: tuple[str, ...]) -> None:
    filters = [f"filter {name}" for name in names]
    trace = ptkit.record(
        [rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True, filters=filters
    )
    assert {trace.symbolize([first])[0] for _, first, _ in trace.info.ranges} == set(names)
    compare_with_ranges(trace, tmp_path)


@needs_emulator
@needs_perf
def test_perf_shows_what_a_tracestop_filter_leaves(rounds: Path, tmp_path: Path) -> None:
    trace = ptkit.record(
        [rounds, "100"], output=tmp_path / "out.ptk", backend="emulator", quiet=True, filters="tracestop end"
    )
    assert [kind for kind, _, _ in trace.info.ranges] == ["stop"]
    compare_with_ranges(trace, tmp_path)


def compare_with_ranges(trace: ptkit.Trace, folder: Path) -> None:
    """What perf and ptkit read of it is what was recorded."""
    path = folder / "out.data"
    assert of_code(trace.export(path).notes, "EXPORT_FILTER") == []
    found = perf_instructions(path)
    assert found.errors == []
    assert len(found.from_ip) > 100
    assert np.array_equal(found.from_ip, trace.instructions(columns=["ip"])["ip"])
    back, _ = opened(path)
    assert np.array_equal(back.branches()["from_ip"], trace.branches()["from_ip"])
    assert np.array_equal(back.branches()["to_ip"], trace.branches()["to_ip"])


@needs_perf
@pytest.mark.parametrize("name", ["libxdc/Unzip", "libxdc/avscript_32", "lldb/intelpt-trace/trace.json"])
def test_hardware_traces_read_back_equal(
    corpus: Path, tmp_path: Path, open_trace: Callable[..., Any], name: str
) -> None:
    trace = open_trace(corpus / name)
    trace.export(tmp_path / "out.data")
    found = perf_instructions(tmp_path / "out.data")
    assert found.errors == []
    assert np.array_equal(found.from_ip, trace.instructions(columns=["ip"])["ip"])
    back = open_trace(tmp_path / "out.data")
    expected = trace.branches()
    for column in expected.columns:
        assert np.array_equal(back.branches()[column], expected[column]), column


# ---- what is made by hand


def bundle(folder: Path, stream: bytes = STREAM) -> ptkit.Trace:
    path = folder / "raw.pt"
    path.write_bytes(stream)
    return opened_with_code(path)


def opened_with_code(path: Path) -> ptkit.Trace:
    return ptkit.open(path, images=[{0x1000: CODE}], cpu="6/142/9")


@needs_perf
def test_code_of_all_processes_is_written_once(tmp_path: Path) -> None:
    pids = [77, 80, 83]
    # With a TSC, up to the system call.
    stream = STREAM.replace(b"\x02\x23", b"\x19\0\x10" + bytes(5) + b"\x02\x23").replace(
        b"\x0a\x01", b"\x08\x01"
    )
    chunks = [ptk_chunks.process(number, pid, pid, stream) for number, pid in enumerate(pids)]
    chunks += [ptk_chunks.code(0x1000, CODE), ptk_chunks.code(0x5000, bytes(0x4000))]
    trace, _ = opened(ptk_chunks.write(tmp_path / "out.ptk", chunks))
    written = trace.export(tmp_path / "out.data")
    files = [path for path in Path(written.files[0]).rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["elf"]
    assert 0x4000 < files[0].stat().st_size < 0x8000
    back, _ = opened(tmp_path / "out.data")
    assert [name for name, _ in back.info.files] == ["code-all-1"]
    expected = trace.instructions(columns=["ip"])["ip"]
    assert np.array_equal(back.instructions(columns=["ip"])["ip"], expected)
    found = perf_instructions(tmp_path / "out.data")
    assert found.errors == []
    for pid in pids:
        assert found.of(pid).from_ip.tolist() == expected[: len(expected) // len(pids)].tolist() != []


@needs_perf
def test_unknown_thread_and_frequency_are_noted(tmp_path: Path) -> None:
    trace = bundle(tmp_path, STREAM.replace(b"\x0a\x01", b"\x08\x01"))  # up to the system call
    written = trace.export(tmp_path / "out.data")
    assert of_code(written.notes, "EXPORT_STREAM_WITHOUT_TID")[0].arguments == ("1",)
    assert of_code(written.notes, "EXPORT_TSC_AS_NS")
    found = perf_instructions(tmp_path / "out.data")
    assert found.errors == []
    assert np.array_equal(found.from_ip, trace.instructions(columns=["ip"])["ip"])
    back, _ = opened(tmp_path / "out.data")
    assert np.array_equal(back.branches()["from_ip"], trace.branches()["from_ip"])
    assert back.info.tsc_hz is None


def test_earlier_output_is_replaced_whole(tmp_path: Path) -> None:
    trace = bundle(tmp_path)
    path = tmp_path / "out.data"
    path.write_text("something else")
    trace.export(path)
    assert path.read_bytes().startswith(b"PERFILE2")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.data", "out.data.debug", "raw.pt"]
    trace.export(path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.data", "out.data.debug", "raw.pt"]


def test_full_disk_leaves_no_output(tmp_path: Path) -> None:
    trace = bundle(tmp_path)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(ptkit.OpenError, match=r"out\.data: cannot write: File too large"):
            trace.export(tmp_path / "out.data", code="none")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [one.name for one in tmp_path.iterdir()] == ["raw.pt"]


def test_missing_output_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ptkit.OpenError, match="cannot create: No such file or directory"):
        bundle(tmp_path).export(tmp_path / "no" / "out.data")


def test_slash_after_the_output_is_ignored(tmp_path: Path) -> None:
    written = bundle(tmp_path).export(f"{tmp_path}/out.data/")
    assert written.path == f"{tmp_path}/out.data"
    assert written.files == (f"{tmp_path}/out.data.debug",)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.data", "out.data.debug", "raw.pt"]


def test_folder_instead_of_the_output_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.data"
    path.mkdir()
    (path / "precious").touch()
    with pytest.raises(ptkit.OpenError, match="is a folder"):
        bundle(tmp_path).export(path)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.data", "raw.pt"]
    assert (path / "precious").exists()


def test_its_own_source_is_refused(tmp_path: Path) -> None:
    trace = bundle(tmp_path)
    with pytest.raises(ptkit.ConfigError, match="is what is read"):
        trace.export(tmp_path / "raw.pt")
    assert (tmp_path / "raw.pt").read_bytes() == STREAM


def test_unknown_formats_and_options(tmp_path: Path) -> None:
    trace = bundle(tmp_path)
    with pytest.raises(
        ptkit.ConfigError, match=r"format='svg' is not one of .*code, .*drcov, .*offsets, .*perf\.data, "
    ):
        trace.export(tmp_path / "out", "svg")
    with pytest.raises(
        ptkit.ConfigError, match=r"'perf\.data': got an unexpected.*'colour'; its options: code"
    ):
        trace.export(tmp_path / "out", colour="red")
    with pytest.raises(ptkit.ConfigError, match="code='some' is not one of needed, all, none"):
        trace.export(tmp_path / "out", code="some")


def test_errors_of_an_exporter_are_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong within is not taken for an option that is not known."""

    def write(trace: object, path: str, *, width: int = 1) -> dict[str, Any]:
        return dict(bytes(width=width))  # type: ignore[call-overload, no-any-return]

    known = {"mine": export.Exporter("mine", "for a test", write)}
    monkeypatch.setattr("ptkit.export.registry.exporters", lambda: known)
    trace = bundle(tmp_path)
    with pytest.raises(TypeError, match=r"unexpected keyword|invalid keyword"):
        trace.export(tmp_path / "out", "mine", width=2)
    with pytest.raises(ptkit.ConfigError, match=r"'mine': got an unexpected.*its options: width"):
        trace.export(tmp_path / "out", "mine", height=2)


def test_an_exporter_declares_what_it_selects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[dict[str, Any]] = []

    def write(trace: object, path: str, **options: Any) -> dict[str, Any]:
        given.append(options)
        return {}

    known = {
        "mine": export.Exporter("mine", "for a test", write, "blocks", ("hits",)),
        "one": export.Exporter("one", "for a test", write, "stream"),
        "all": export.Exporter("all", "for a test", write),
    }
    monkeypatch.setattr("ptkit.export.registry.exporters", lambda: known)
    monkeypatch.setattr("ptkit.cli.verbs.export.exporters", lambda: known)
    raw = tmp_path / "raw.pt"
    raw.write_bytes(STREAM)
    command = ["export", str(raw), "--processor", "6/142/9", "-o", str(tmp_path / "out"), "--format"]
    assert main([*command, "mine", "--stream", "0", "--hits"]) == 0
    assert main([*command, "one", "--stream", "0"]) == 0
    assert main([*command, "all"]) == 0
    assert given == [{"stream": [0], "hits": True}, {"stream": 0}, {}]
    for options, text in {
        ("one", "--ip", "0x1000"): "--ip does not go with --format one: bytes of a stream are written whole",
        ("one", "--hits"): "--hits is for --format mine",
        ("all", "--ip", "0x1000"): "--ip is for --format mine",
    }.items():
        capsys.readouterr()
        assert main([*command, *options]) == 2
        assert text in capsys.readouterr().err


def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    # Long enough to be interrupted: half a gigabyte of PADs after the first packets, as a sparse file.
    path = tmp_path / "raw.pt"
    with path.open("wb") as file:
        file.write(STREAM)
        file.truncate(1 << 29)
    script = (
        "import sys, ptkit; t = ptkit.open(sys.argv[1], cpu='6/142/9'); print('ready', flush=True);"
        "t.export(sys.argv[2])"
    )
    command = [sys.executable, "-c", script, str(path), str(tmp_path / "out.data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 30
        while not list(tmp_path.glob(".ptkit-*")) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in said
    assert [one.name for one in tmp_path.iterdir()] == ["raw.pt"]


def test_export_verb_prints_perfs_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = bundle(tmp_path)
    code = tmp_path / "code.bin"
    code.write_bytes(CODE)
    out = tmp_path / "out.data"
    source = [str(trace.source), "--code", f"{code}@0x1000", "--processor", "6/142/9"]
    assert main(["export", *source, "--format", "perf.data", "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert f"perf --buildid-dir {out}.debug script -i {out} --itrace=b" in said.out
    assert "1 stream has data of unknown threads" in said.err
    assert main(["export", *source, "--format", "svg", "-o", str(out)]) == 2
    assert f"format='svg' is not one of {', '.join(sorted(export.exporters()))}" in capsys.readouterr().err


def add_package(folder: Path) -> None:
    """Make a package that adds the format "lines", and one that cannot be loaded."""
    info = folder / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ptkit.exporters]\nlines = other_lines:EXPORTER\nbroken = other_lines:NOTHING\n"
    )
    (folder / "other_lines.py").write_text(
        "from pathlib import Path\nfrom ptkit.export import Exporter\n"
        "def write(trace, path, *, ending='\\n'):\n"
        "    text = ending.join(hex(ip) for ip in trace.instructions()['ip'])\n"
        "    Path(path).write_text(text)\n"
        "    return {'bytes': len(text), 'notes': ['only addresses']}\n"
        "EXPORTER = Exporter('lines', 'one address a line', write)\n"
    )


def test_other_verbs_do_not_import_exporters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "other_lines", raising=False)
    raw = tmp_path / "raw.pt"
    raw.write_bytes(STREAM)
    assert main(["info", str(raw)]) == 0
    assert "other_lines" not in sys.modules
    assert main(["export", str(raw), "--format", "svg", "-o", str(tmp_path / "out")]) == 2
    assert "lines" in export.exporters()
    assert f"format='svg' is not one of {', '.join(sorted(export.exporters()))}" in capsys.readouterr().err


def test_packages_add_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_package(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert {"code", "drcov", "lines", "offsets", "perf.data", "raw"} <= set(export.exporters())
    written = bundle(tmp_path).export(tmp_path / "out.txt", "lines", ending=" ")
    assert (tmp_path / "out.txt").read_text().split()[0] == "0x1000"
    assert written.format == "lines"
    assert written.notes == ("only addresses",)
