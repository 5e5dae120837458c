"""Bad input: each kind says what is wrong and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptkit


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.pt"
    path.write_bytes(b"")
    with pytest.raises(ptkit.FormatError, match=r"empty\.pt: the file is empty"):
        ptkit.open(path)
    with pytest.raises(ptkit.FormatError, match="stream is empty"):
        ptkit.open(b"")
    assert len(ptkit.packets(b"")) == 0
    assert len(ptkit.packets(b"", sync=True).errors) == 0


def test_text_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader,\n" * 100)
    with pytest.raises(ptkit.FormatError, match=r"letter\.txt.*PSB"):
        ptkit.open(path)


def test_bytes_without_psb_are_an_error_row(open_trace: Any) -> None:
    trace = open_trace(b"Dear reader,\n" * 100)
    assert trace.errors.named("code") == ["NO_SYNC"]
    assert "no PSB" in trace.errors.messages()[0]
    assert len(trace.branches()) == 0
    assert len(trace.packets()) == 0


def test_missing_and_unreadable_paths(tmp_path: Path, loop: Any) -> None:
    with pytest.raises(ptkit.MissingFileError, match="no such file or folder"):
        ptkit.open(tmp_path / "nowhere.pt")
    with pytest.raises(FileNotFoundError):
        ptkit.open(loop.stream(1), cpu="6/158", images=[tmp_path / "nowhere.so"])
    locked = tmp_path / "locked.pt"
    locked.write_bytes(loop.stream(1))
    locked.chmod(0)
    if os.access(locked, os.R_OK):
        pytest.skip("this user may read everything, whatever the permissions say")
    with pytest.raises(ptkit.OpenError, match="permission denied"):
        ptkit.open(locked)


def test_a_folder_that_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(ptkit.FormatError, match="no trace in this folder"):
        ptkit.open(tmp_path)


def test_missing_image_names_the_range(open_trace: Any, loop: Any) -> None:
    trace = open_trace(loop.stream(5))
    errors = trace.errors
    assert "NO_CODE" in errors.named("code")
    row = errors.named("code").index("NO_CODE")
    assert int(errors["ip"][row]) == loop.BASE
    message = errors.messages()[row]
    assert ", ip 0x1000): addresses [0x1000, 0x2000); " in message
    assert "images=[...] in Python" in message
    assert "--image or --code" in message
    assert len(trace.packets()) > 0
    assert len(trace.gaps) > 0


def test_errors_name_the_image_file(open_trace: Any, loop: Any) -> None:
    from ptkit.table import TableContext
    from ptkit.table.table import from_core

    trace = open_trace(loop.stream(5))
    errors = trace.errors[:1]
    arrays = {name: errors[name].copy() for name in errors.columns}
    arrays["file"][:] = 0
    arrays["flags"] |= np.uint8(ptkit.ErrorFlag.FILE_KNOWN)
    runs = {name: run.copy() for name, run in errors.data.runs.arrays.items()}
    named = from_core("errors", (1, arrays, runs), context=TableContext(files=("/lib/x.so",)))
    assert ": image /lib/x.so, addresses [0x1000, 0x2000); " in named.messages()[0]


def test_wrong_image_is_error_rows(open_trace: Any, loop: Any) -> None:
    wrong = b"\x90" * 64 + b"\xff\xe0"
    trace = open_trace(loop.stream(50), images=[{loop.BASE: wrong}])
    assert len(trace.errors) > 0
    assert set(trace.errors.named("code")) & {"TNT_MISMATCH", "TIP_MISMATCH", "NO_CODE", "BAD_INSN"}
    assert len(trace.errors.messages()) == len(trace.errors)


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
def test_a_conditional_that_leads_elsewhere_proves_a_wrong_image(
    open_trace: Any, loop: Any, packets: Any, engine: str
) -> None:
    data = loop.stream(3)
    trace = open_trace(data + packets.pgd(0x9999), images=loop.images(), engine=engine)
    assert trace.errors.messages() == [
        "packets were disabled at a branch that cannot disable them "
        f"(at stream offset {len(data):#x}, ip {loop.JNZ:#x}): packet TIP_PGD to 0x9999; "
        "the image may not be what ran, or data was lost"
    ]
    last = trace.branches()[-1:]
    assert (last["from_ip"].tolist(), last["to_ip"].tolist()) == ([loop.JNZ], [0x9999])
    assert len(trace.gaps) == 0
    for target in (loop.BASE, loop.JMP):
        assert len(open_trace(data + packets.pgd(target), images=loop.images(), engine=engine).errors) == 0


def test_start_in_the_middle_of_a_packet(open_trace: Any, loop: Any) -> None:
    data = loop.stream(100, psb_every=10)
    trace = open_trace(data[20:], images=loop.images())
    branches = trace.branches()
    assert len(branches) > 600
    assert "START" in trace.gaps.named("cause")
    table = trace.packets()
    assert table.named("kind")[0] == "PSB"


def test_an_unknown_packet_is_an_error_row_and_then_the_next_psb(loop: Any) -> None:
    data = loop.stream(3) + b"\x02\xff\xaa" + loop.stream(3)
    table = ptkit.packets(data)
    errors = table.errors
    assert errors.named("code") == ["BAD_OPCODE"]
    assert int(errors["offset"][0]) == len(loop.stream(3))
    count = int(errors["argument2"][0])
    assert int(errors["argument"][0]).to_bytes(8, "little")[:count] == b"\x02\xff\xaa"[:count]
    assert "02 ff" in errors.messages()[0]
    assert len(table) == 2 * len(ptkit.packets(loop.stream(3)))
    assert table.gaps["end"].tolist() == [len(loop.stream(3)) + 3]


def test_a_truncated_packet_is_an_error_row(loop: Any) -> None:
    table = ptkit.packets(loop.stream(1)[:-4])
    assert table.errors.named("code") == ["TRUNCATED_PACKET"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (np.zeros(8), "uint8"),
        (np.zeros(8, np.uint16), "uint8"),
        (np.zeros((2, 2), np.uint8), "dimensions"),
        (np.zeros(8, np.uint8)[::2], "stride"),
        (np.zeros(8, np.bool_), "uint8"),
    ],
)
def test_buffers_that_are_no_bytes(data: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        ptkit.packets(data)
    with pytest.raises(TypeError, match=text):
        ptkit.open(data)


def test_objects_that_are_not_traces_are_refused() -> None:
    with pytest.raises(TypeError, match="cannot open int"):
        ptkit.open(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot read packets from int"):
        ptkit.packets(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="part of a stream"):
        ptkit.packets([b"\x00", 5])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"cpu": "skylake"}, "family/model"),
        ({"cpu": "6"}, "family/model"),
        ({"cpu": "6/70000"}, "family/model"),
        ({"engine": "perf"}, "'ptkit', 'simple', 'libipt'"),
        ({"resync": "tip"}, "'ip', 'psb'"),
        ({"threads": -1}, "threads=-1"),
        ({"tsc_ctc_ratio": (1, 0)}, "tsc_ctc_ratio"),
        ({"mtc_period": 16}, r"mtc_period=16: .* \[0, 15\]"),
        ({"max_nonturbo_ratio": 0}, "max_nonturbo_ratio=0"),
        ({"format": "lldb"}, "needs a path"),
        ({"images": [b"\x90"]}, "need an address"),
        ({"images": [{-1: b"\x90"}]}, "address"),
        ({"images": [{2**64: b"\x90"}]}, "address"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], text: str, loop: Any) -> None:
    with pytest.raises(ptkit.ConfigError, match=text):
        ptkit.open(loop.stream(1), **options)


def test_unknown_format_lists_the_known(tmp_path: Path, loop: Any) -> None:
    path = tmp_path / "loop.pt"
    path.write_bytes(loop.stream(1))
    with pytest.raises(ptkit.ConfigError, match=r"known formats: .*raw"):
        ptkit.open(path, format="etl")


def test_an_image_that_is_no_program(tmp_path: Path, loop: Any) -> None:
    path = tmp_path / "code.bin"
    path.write_bytes(loop.CODE)
    with pytest.raises(ptkit.FormatError, match="is neither an ELF nor a PE file"):
        ptkit.open(loop.stream(1), images=[path])
    path.write_bytes(b"\x7fELF")
    with pytest.raises(ptkit.FormatError, match=r"code\.bin"):
        ptkit.open(loop.stream(1), images=[path])


def test_code_that_begins_as_a_program_does(tmp_path: Path, loop: Any, open_trace: Any) -> None:
    path = tmp_path / "code.bin"
    code = b"MZ\x90\xc3".ljust(80, b"\xcc")  # pop r10; nop; ret
    path.write_bytes(code)
    trace = open_trace(loop.stream(1), images=[(path, 0x500000)])
    assert trace.code(0x500000, len(code)) == code
    with pytest.raises(ptkit.FormatError, match="is neither an ELF nor a PE file"):
        open_trace(loop.stream(1), images=[path])


def test_malformed_bundles_are_refused(corpus: Path, open_trace: Any) -> None:
    bundles = sorted((corpus / "lldb" / "intelpt-trace").glob("trace_*.json"))
    assert bundles
    refused = []
    for path in bundles:
        try:
            open_trace(path)
        except ptkit.PtkitError as error:
            refused.append((path, str(error)))
    assert len(refused) >= len(bundles) // 2
    assert all(path.stem in text or "intelpt-trace" in text for path, text in refused)
