"""Recordings of strangers: pipes and devices, JSON of any form, names with ends of lines."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ptk_chunks
import pytest
from small_elf import elf
from warned import warned

import ptkit
from ptkit.support import memory

PATIENCE = 60  # seconds after which something hangs


def cli(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, which a FIFO or a device cannot hold for ever."""
    return subprocess.run(
        [sys.executable, "-m", "ptkit", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


def refused(*words: str, saying: str) -> str:
    """What the command line says in one line where it refuses something."""
    done = cli(*words)
    assert done.returncode == 2, done
    assert saying in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@contextmanager
def written(path: Path, data: bytes) -> Iterator[None]:
    """Write to a FIFO while it is read."""
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    yield
    writer.join(PATIENCE)
    assert not writer.is_alive()


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


@pytest.fixture
def stream(loop: Any, tmp_path: Path) -> Path:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(5))
    return path


# What a recording names.


# A file of the trace, by format.
TRACE_FILES = {
    "drakvuf": "ipt_stream_vcpu0",
    "windows-intelpt": "cpu00_bin.bin",
    "simple-pt": "ptout.0",
    "libipt-script": "x-aux-idx0.bin",
}


def lldb_bundle(folder: Path, trace: str, module: str | None = None) -> Path:
    modules = [] if module is None else [{"systemPath": module, "loadAddress": 4096}]
    document = {
        "type": "intel-pt",
        "cpuInfo": {"vendor": "GenuineIntel", "family": 6, "model": 158, "stepping": 10},
        "processes": [{"pid": 1, "threads": [{"tid": 1, "iptTrace": trace}], "modules": modules}],
    }
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("name", TRACE_FILES.values(), ids=TRACE_FILES)
def test_a_fifo_in_a_recording_is_refused(name: str, tmp_path: Path) -> None:
    fifo(tmp_path / name)
    assert name in refused("info", str(tmp_path), saying="is a FIFO, not a regular file")


def test_a_fifo_as_the_trace_of_lldb_is_refused(tmp_path: Path) -> None:
    fifo(tmp_path / "thread.trace")
    path = lldb_bundle(tmp_path, "thread.trace")
    line = refused("info", str(path), saying="is a FIFO, not a regular file")
    assert "processes[0].threads[0].iptTrace" in line


def test_a_fifo_as_sideband_is_left_out(tmp_path: Path, stream: Path) -> None:
    stream.rename(tmp_path / "x-aux-idx0.bin")
    fifo(tmp_path / "x-sideband.pevent")
    done = cli("info", str(tmp_path))
    assert done.returncode == 0
    assert "libipt-script" in done.stdout


def test_a_fifo_as_a_module_is_missing(tmp_path: Path, stream: Path) -> None:
    module = fifo(tmp_path / "a.out")
    done = cli("info", str(lldb_bundle(tmp_path, stream.name, str(module))))
    assert done.returncode == 0
    assert "a.out: is a FIFO, not a regular file" in done.stdout


# Images.


@pytest.mark.parametrize(("path", "what"), [("FIFO", "a FIFO"), ("/dev/zero", "a device")])
@pytest.mark.parametrize("option", ["--image", "--code"])
def test_images_are_regular_files(path: str, what: str, option: str, tmp_path: Path, stream: Path) -> None:
    if path == "FIFO":
        path = str(fifo(tmp_path / "code"))
    refused("info", str(stream), option, f"{path}@0x1000", saying=f"{path}: is {what}, not a regular file")


def test_parts_and_images_in_python_are_regular_files(tmp_path: Path, stream: Path) -> None:
    pipe = fifo(tmp_path / "pipe")
    for source, images in ((stream, [(pipe, 0x1000)]), (stream, [pipe]), ([stream, pipe], None)):
        with pytest.raises(ptkit.OpenError, match="pipe: is a FIFO, not a regular file"):
            ptkit.open(source, cpu="6/158", images=images)


# The input that is named.


def test_the_input_may_be_a_fifo(tmp_path: Path, loop: Any) -> None:
    pipe = fifo(tmp_path / "pipe")
    with written(pipe, loop.stream(20)):
        trace = ptkit.open(pipe, cpu="6/158", images=loop.images())
    assert len(trace.branches()) == 140
    assert (trace.info.format, trace.info.source) == ("raw", str(pipe))
    with written(pipe, loop.stream(20)):
        assert ptkit.packet_counts(pipe) == ptkit.packet_counts(loop.stream(20))


def test_a_bundle_may_come_out_of_a_pipe(tmp_path: Path, loop: Any) -> None:
    bundle = ptk_chunks.write(
        tmp_path / "a.ptk", [ptk_chunks.process(0, 7, 1, loop.stream(20)), ptk_chunks.code(0x1000, loop.CODE)]
    )
    pipe = fifo(tmp_path / "pipe")
    with warned("RECORDING_NOT_SAVED"):
        wanted = ptkit.open(bundle, cpu="6/158")
    with warned("RECORDING_NOT_SAVED"), written(pipe, bundle.read_bytes()):
        trace = ptkit.open(pipe, cpu="6/158")
    assert trace.info.format == "ptk"
    assert len(trace.branches()) == len(wanted.branches()) > 0


def test_input_may_be_standard_input(loop: Any) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "ptkit", *words]
        return subprocess.run(
            command, input=loop.stream(5), capture_output=True, timeout=PATIENCE, check=False
        )

    done = run("packets", "/dev/stdin")
    assert (done.returncode, done.stdout.count(b"psbend")) == (0, 1)
    with pytest.raises(
        ptkit.MissingFileError, match="-: no file has this name; give /dev/stdin for standard"
    ):
        ptkit.open("-")


def test_a_format_of_several_files_does_not_come_out_of_a_pipe(tmp_path: Path, loop: Any) -> None:
    pipe = fifo(tmp_path / "pipe")
    with (
        written(pipe, loop.stream(5)),
        pytest.raises(ptkit.UnsupportedError, match=r"pipe: .*'simple-pt' is several files.*save the files"),
    ):
        ptkit.open(pipe, format="simple-pt")


def test_a_pipe_is_read_up_to_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = fifo(tmp_path / "pipe")
    monkeypatch.setattr(memory, "free", lambda: (10_000, "cgroup"))
    with (
        written(pipe, bytes(10_001)),
        pytest.raises(ptkit.OutOfMemoryError, match=r"more than the 10,000 bytes that are free \(cgroup\)"),
    ):
        ptkit.open(pipe)


def test_a_pipe_that_gives_nothing(tmp_path: Path) -> None:
    pipe = fifo(tmp_path / "pipe")
    with written(pipe, b""), pytest.raises(ptkit.FormatError, match="pipe: the pipe gave nothing"):
        ptkit.open(pipe)


@pytest.mark.parametrize("verb", ["info", "packets"])
def test_a_device_is_no_input(verb: str) -> None:
    refused(verb, "/dev/zero", saying="/dev/zero: is a device; give a file, a folder or a pipe")


# JSON.


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("levels", [1_100, 100_000])
@pytest.mark.parametrize("kind", ["META", "STRM", "SIDE"])
def test_nested_json_of_a_bundle_is_refused(kind: str, levels: int, tmp_path: Path, loop: Any) -> None:
    deep = ptk_chunks.chunk(kind, ('{"x":' + nested(levels) + "}").encode())
    path = ptk_chunks.write(tmp_path / "a.ptk", [ptk_chunks.process(0, 7, 1, loop.stream(5)), deep])
    line = refused("info", str(path), saying="has more than 100 nested arrays and objects")
    assert f"{kind} chunk at byte" in line


def test_nested_json_up_to_the_limit_is_read(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    deep = ptk_chunks.chunk("META", ('{"x":' + nested(99) + "}").encode())
    path = ptk_chunks.write(tmp_path / "a.ptk", [ptk_chunks.process(0, 7, 1, loop.stream(5)), deep])
    assert str(open_trace(path).info.recording["x"]).count("[") == 99


def test_nested_json_of_lldb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"type": ' + nested(100_000) + "}")
    refused("info", str(path), saying="trace.json: the JSON has more than 100 nested arrays and objects")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("begin_ns", "today"),
        ("begin_ns", 2**63),
        ("end_ns", [1]),
        ("end_ns", -1),
        ("end_ns", 1e30),
        ("command", 5),
        ("command", [1, 2]),
        ("machine", {}),
        ("backend", 3),
        ("exit_status", "none"),
        ("redacted", "yes"),
        ("instructions", 0.5),
        ("failed", 7),
        ("warnings", "none"),
    ],
)
def test_values_of_a_wrong_type_have_their_location(name: str, value: Any, tmp_path: Path, loop: Any) -> None:
    process = ptk_chunks.process(0, 7, 1, loop.stream(5))
    path = ptk_chunks.write(tmp_path / "a.ptk", [process], **{"backend": "x", name: value})
    with pytest.raises(ptkit.FormatError, match=rf"a\.ptk: META chunk at byte 16: {name}.*: expected "):
        ptkit.open(path, cpu="6/158")


def test_a_null_of_meta_is_as_if_it_were_not_there(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    meta = dict.fromkeys(("backend", "begin_ns", "end_ns", "command", "exit_status", "machine"))
    process = ptk_chunks.process(0, 7, 1, loop.stream(5))
    info = open_trace(ptk_chunks.write(tmp_path / "a.ptk", [process], **meta)).info
    assert info.recording == {}
    assert "recorded:" not in str(info)


# What a bundle unpacks to.


LARGE = 64 << 20  # bytes of a chunk


def test_a_bundle_unpacks_to_a_multiple_of_its_size_at_most(tmp_path: Path, loop: Any) -> None:
    process = ptk_chunks.process(0, 7, 1, loop.stream(5))
    packed = [ptk_chunks.zeros("SYMB", LARGE, number) for number in range(3)]
    path = ptk_chunks.write(tmp_path / "a.ptk", [process, *packed])
    assert path.stat().st_size < 10_000
    line = refused("info", str(path), saying=f", more than 1000 times the {path.stat().st_size} bytes")
    assert "a.ptk: its code, names and records unpack to 2013" in line


def test_a_bundle_unpacks_to_what_is_free_at_most(tmp_path: Path, loop: Any) -> None:
    process = ptk_chunks.process(0, 7, 1, loop.stream(5))
    size = ptk_chunks.chunk("FILL", bytes(1 << 20))
    path = ptk_chunks.write(tmp_path / "a.ptk", [process, size, *[ptk_chunks.zeros("CODE", LARGE)] * 15])
    limit = 2 << 30
    program = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit})); import sys; "
        f"from ptkit.cli.main import main; sys.exit(main(['info', {str(path)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 2, done
    assert "bytes of memory, and " in done.stderr
    assert "are free (RLIMIT_AS); open it where more memory is free" in done.stderr
    assert done.stderr.count("\n") == 1


# Names.

FORGED = "\nptkit: error: forged"


def test_names_begin_no_lines(tmp_path: Path, loop: Any) -> None:
    chunks = [
        ptk_chunks.process(0, 7, 1, loop.stream(5)),
        ptk_chunks.words("STRM", 0, name=f"thread{FORGED}\x1b[2J"),
        ptk_chunks.file(1, f"/bin/x{FORGED}", f"main{FORGED}", 0, 64),
        ptk_chunks.code(0x1000, loop.CODE, file=1),
    ]
    meta = {"backend": f"x{FORGED}", "machine": f"m{FORGED}", "command": [f"c{FORGED}"]}
    path = ptk_chunks.write(tmp_path / "a.ptk", chunks, warnings=[f"odd{FORGED}"], **meta)
    for words in (["info"], ["branches"], ["instructions"], ["info", "--decode", "--verbose"]):
        done = cli(*words, str(path), "--processor", "6/158")
        assert done.returncode == 0, done
        lines = (done.stdout + done.stderr).splitlines()
        assert any(r"\x0aptkit: error: forged" in line for line in lines), words
        assert not any(line.startswith("ptkit: error") for line in lines), words
        assert "\x1b" not in done.stdout + done.stderr
    with pytest.warns(ptkit.PtkitWarning) as raised:
        trace = ptkit.open(path, cpu="6/158")
    assert all("\n" not in str(one.message) for one in raised)
    assert "\nptkit" not in f"{trace.info}{trace.branches()}"


def test_messages_are_one_line(tmp_path: Path, stream: Path) -> None:
    folder = tmp_path / f"a{FORGED.replace('/', '')}"
    folder.mkdir()
    with pytest.raises(ptkit.PtkitError) as raised:
        ptkit.open(lldb_bundle(folder, f"nowhere{FORGED}"))
    assert "\n" not in str(raised.value)
    assert r"nowhere\x0aptkit: error: forged" in str(raised.value)


# Files outside of the recording's folder.

SECRET = b"root:$6$saltsalt$hash:19000:0:99999:7:::\n" * 20


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "recording"
    path.mkdir()
    return path


def simple_pt_of(folder: Path, stream: bytes, code: Path, offset: int = 0) -> Path:
    (folder / "ptout.0").write_bytes(stream)
    (folder / "ptout.sideband").write_text(
        f"meta family 6\nmeta model 61\n0.0 77 1a2b3000 1000 {offset:x} 651\t{code}\n"
    )
    return folder


def libipt_script_of(folder: Path, stream: bytes, code: Path, offset: int = 0) -> Path:
    (folder / "x-aux-idx0.bin").write_bytes(stream)
    name = bytes(code) + b"\0"
    body = struct.pack("<IIQQQ", 77, 77, 0x1000, 651, offset) + name + bytes(-len(name) % 8)
    (folder / "x-sideband.pevent").write_bytes(struct.pack("<IHH", 1, 2, len(body) + 8) + body)
    return folder


@pytest.mark.parametrize("make", [simple_pt_of, libipt_script_of])
def test_only_programs_are_code_where_a_recording_chose_the_path(
    make: Any, folder: Path, secret: Path, loop: Any
) -> None:
    path = make(folder, loop.stream(5), secret)
    with pytest.warns(ptkit.PtkitWarning, match=r"secret.* is neither an ELF nor a PE file") as raised:
        trace = ptkit.open(path, cpu="6/61")
    assert sum(str(secret) in str(one.message) for one in raised) == 1
    assert trace.info.code_bytes == 0
    assert ptkit.open(path, cpu="6/61", binaries=[secret.parent]).info.code_bytes == 651


@pytest.mark.parametrize("make", [simple_pt_of, libipt_script_of])
def test_redact_copies_no_code_of_files_elsewhere(
    make: Any, folder: Path, tmp_path: Path, loop: Any, open_trace: Any
) -> None:
    program = tmp_path / "private"
    program.write_bytes(elf(loop.CODE, 0x1000, "private_function") + SECRET)
    path = make(folder, loop.stream(5), program, 0x1000)
    with warned("FILES_OUTSIDE", "private"):
        trace = ptkit.open(path, cpu="6/61")
    assert trace.info.code_bytes > 0
    output = tmp_path / "redacted.ptk"
    with warned("FILES_LEFT_OUT", "private"):
        ptkit.redact(path, output)
    redacted = open_trace(output)
    assert redacted.info.code_bytes == 0
    with pytest.raises(ptkit.SymbolError):
        redacted.symbols("private_function")
    assert len(redacted.packets()) == len(trace.packets())


@pytest.mark.parametrize("target", ["secret", "../secret"])
def test_redact_refuses_a_trace_that_is_a_file_elsewhere(target: str, folder: Path, secret: Path) -> None:
    name = str(secret) if target == "secret" else target
    path = lldb_bundle(folder, name)
    with warned("FILES_OUTSIDE", "secret"):
        ptkit.open(path)
    output = folder.parent / "redacted.ptk"
    with pytest.raises(ptkit.FormatError, match=r"secret: lies outside of the recording's folder"):
        ptkit.redact(path, output)
    assert not output.exists()


def test_redact_refuses_links_to_elsewhere(folder: Path, secret: Path, stream: Path) -> None:
    stream.rename(folder / "ptout.0")
    (folder / "ptout.sideband").write_text("meta family 6\nmeta model 61\n")
    (folder / "ptout.1").symlink_to(secret)
    with warned("FILES_OUTSIDE", "ptout.1"):
        ptkit.open(folder, cpu="6/61")
    with pytest.raises(ptkit.FormatError, match=r"ptout\.1: lies outside"):
        ptkit.redact(folder, folder.parent / "redacted.ptk")
