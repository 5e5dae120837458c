"""16 and 32-bit code with IP payloads that are effective addresses: `cs_base`, and the warning without it."""

from __future__ import annotations

import gc
import json
import struct
import warnings
import weakref
from pathlib import Path
from typing import Any

import ptk_chunks
import pytest
from warned import of_code, trace_warnings

import ptkit
from ptkit.analysis.verify import verify
from ptkit.cli.main import main

BASE = 0x123400
PSB = b"\x02\x82" * 8
PSBEND = b"\x02\x23"
MODES = {16: b"\x99\x00", 32: b"\x99\x02", 64: b"\x99\x01"}
CPU = {"intel": True, "family": 6, "model": 142, "stepping": 9}


def fup(ip: int) -> bytes:
    return b"\x5d" + ip.to_bytes(4, "little")


def tip(ip: int) -> bytes:
    return b"\x4d" + ip.to_bytes(4, "little")


def stream(bits: int, turns: int = 3) -> bytes:
    """`jmp eax` at offset 0x1000 and at 0x2000, in turns; begins with the FUP in front of the mode."""
    jumps = b"".join(tip(ip) for _ in range(turns) for ip in (0x2000, 0x1000))
    return PSB + fup(0x1000) + MODES[bits] + PSBEND + jumps + fup(0x1000) + b"\x01"


def code(base: int = BASE) -> bytes:
    return b"".join(ptk_chunks.code(base + offset, b"\xff\xe0") for offset in (0x1000, 0x2000))


@pytest.fixture
def bundle(tmp_path: Path) -> Any:
    """Write a bundle of code in a segment, and what is said of IP payloads."""

    def write(bits: int, payloads: str | None = "effective", base: int = BASE, **meta: Any) -> Path:
        said = {} if payloads is None else {"ip_payloads": payloads}
        chunks = [ptk_chunks.process(0, 7, 1, stream(bits)), code(base)]
        cut = ptk_chunks.write(tmp_path / "cut.ptk", chunks, cpu=CPU, **said, **meta)
        path = tmp_path / f"{bits}-{payloads}.ptk"
        ptkit._core.save_bundle(ptkit._core.open_bundle(bytes(cut)), bytes(path))
        return path

    return write


def open_quietly(path: Path, **options: Any) -> ptkit.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        return ptkit.open(path, **options)


def about_segments(caught: Any) -> list[str]:
    return [str(one) for one in of_code(trace_warnings(caught), "CODE_BASE_UNKNOWN")]


@pytest.mark.parametrize("engine", ["ptkit", "simple"])
@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("payloads", ["effective", None])
def test_the_base_is_added(bundle: Any, bits: int, engine: str, payloads: str | None) -> None:
    path = bundle(bits, payloads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = ptkit.open(path, cs_base=BASE, engine=engine)
        branches = trace.branches()
    assert about_segments(caught) == []
    assert not trace.errors
    assert branches["from_ip"].tolist() == [BASE + 0x1000, BASE + 0x2000] * 3 + [BASE + 0x1000]
    assert branches["to_ip"][:6].tolist() == [BASE + 0x2000, BASE + 0x1000] * 3
    assert trace.instructions()["ip"].tolist() == [BASE + 0x1000, BASE + 0x2000] * 3
    assert set(trace.packets()["ip"].tolist()) >= {0x1000, 0x2000}
    assert trace.info.cs_base == BASE
    assert trace.info.ip_payloads == payloads


def test_without_a_base_code_is_not_found(bundle: Any) -> None:
    trace = open_quietly(bundle(32))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ptkit.PtkitWarning)
        assert trace.branches(errors="rows")["from_ip"].tolist().count(BASE + 0x1000) == 0
        assert trace.errors


def test_targets_in_texts_wrap_in_the_segment(bundle: Any) -> None:
    trace = open_quietly(bundle(16), cs_base=BASE, images=[{BASE + 0xFFF8: b"\xeb\x10"}])
    assert trace.disassemble(BASE + 0xFFF8, mode=16) == f"jmp {BASE + 0xA:#x}"


def test_coverage_takes_the_base_of_the_trace(bundle: Any) -> None:
    trace = open_quietly(bundle(32), cs_base=BASE)
    result = ptkit.CoverageDecoder(trace).decode(stream(32))
    assert (result.errors, result.instructions) == (0, 6)


@pytest.mark.parametrize("base", [-1, 2**32, 1.5, "x", True])
def test_bases_out_of_range_are_refused(bundle: Any, base: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^cs_base[^\n]*$") as caught:
        open_quietly(bundle(32), cs_base=base)
    assert isinstance(caught.value, ptkit.ConfigError)


def test_a_base_where_payloads_are_linear_is_refused(bundle: Any) -> None:
    path = bundle(32, "linear")
    with pytest.raises(
        ptkit.ConfigError, match=r"^cs_base=0x1000: .*states that IP payloads are linear[^\n]*$"
    ):
        open_quietly(path, cs_base=0x1000)
    assert open_quietly(path).info.ip_payloads == "linear"


def test_a_base_without_packets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.bts"
    path.write_bytes(struct.pack("<QQQ", 0x1000, 0x2000, 0))
    with pytest.raises(ptkit.ConfigError, match=r"^cs_base=0x1000: .* has no packets"):
        open_quietly(path, format="bts", cs_base=0x1000)


def test_libipt_adds_no_base(bundle: Any) -> None:
    if "libipt" not in ptkit._core.engines():
        pytest.skip("this build has no libipt")
    with pytest.raises(ptkit.UnsupportedError, match=r"^cs_base=0x1000: libipt adds no base[^\n]*$"):
        open_quietly(bundle(32), cs_base=0x1000, engine="libipt")
    assert open_quietly(bundle(32), cs_base=0, engine="libipt").info.cs_base == 0
    with pytest.raises(ptkit.UnsupportedError, match="libipt adds no base"):
        verify(open_quietly(bundle(32), cs_base=BASE))


def test_an_index_of_another_base_is_not_used(bundle: Any) -> None:
    path = bundle(32)
    open_quietly(path, cs_base=BASE).index()
    for base in (BASE, None, 0, BASE + 0x10):
        refused = of_code(open_quietly(path, cs_base=base).info.warnings, "INDEX_UNUSABLE")
        assert len(refused) == (base != BASE)


# ---- the warning


@pytest.mark.parametrize(
    ("bits", "meta", "warned"),
    [
        (16, {}, True),
        (16, {"backend": "perf"}, True),
        (32, {}, True),
        (32, {"backend": "perf"}, False),  # Linux starts programs in flat segments
        (64, {}, False),
    ],
)
def test_one_warning_says_that_addresses_are_relative(
    bundle: Any, bits: int, meta: dict[str, Any], warned: bool
) -> None:
    trace = open_quietly(bundle(bits, base=0, **meta))
    before = trace.info.warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace.branches()
        list(trace.iter_instructions(rows=2, reuse=True))
        list(trace.iter_branches(rows=2))
        trace.index(save=False)
        trace.errors  # noqa: B018
    said = about_segments(caught)
    assert len(said) == warned
    for sentence in said:
        assert f"of {bits}-bit code are relative to the base of the code segment" in sentence
        assert "--cs-base BASE" in sentence
        assert "cs_base=BASE" in sentence
        assert "\n" not in sentence
    assert [Path(one.filename).name for one in caught] == [Path(__file__).name] * len(caught)
    assert trace.info.warnings == (*before, *said)


@pytest.mark.parametrize("read", ["branches", "iter_branches", "iter_events", "index"])
def test_each_way_to_decode_warns(bundle: Any, read: str) -> None:
    trace = open_quietly(bundle(16, base=0))
    with pytest.warns(ptkit.PtkitWarning, match="effective addresses"):
        trace.index(save=False) if read == "index" else list(getattr(trace, read)())


@pytest.mark.parametrize(("payloads", "options"), [("linear", {}), (None, {}), ("effective", {"cs_base": 0})])
def test_no_warning_where_the_base_is_known_or_nothing_is_said(
    bundle: Any, payloads: str | None, options: dict[str, int]
) -> None:
    trace = open_quietly(bundle(16, payloads, base=0), **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace.branches()
    assert caught == []


def test_a_warning_that_is_an_error_comes_once(bundle: Any) -> None:
    trace = open_quietly(bundle(16, base=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ptkit.PtkitWarning)
        with pytest.raises(ptkit.PtkitWarning, match="effective addresses"):
            trace.branches()
        assert len(trace.branches()) == 7


def test_a_trace_that_may_warn_is_freed_with_its_last_reference(bundle: Any) -> None:
    trace = open_quietly(bundle(16, base=0))
    with pytest.warns(ptkit.PtkitWarning):
        trace.branches()
    left = weakref.ref(trace)
    gc.disable()
    try:
        del trace
        assert left() is None
    finally:
        gc.enable()


# ---- what is said of it


def test_info_says_what_payloads_are(bundle: Any) -> None:
    said = {None: "not known", "linear": "linear addresses", "effective": "effective addresses"}
    for payloads, words in said.items():
        info = open_quietly(bundle(32, payloads)).info
        assert info.ip_payloads == payloads
        assert f"IP payloads:   {words} (of 16 and 32-bit code)" in info.text(verbose=True).splitlines()
    info = open_quietly(bundle(32), cs_base=BASE).info
    assert f"effective addresses (of 16 and 32-bit code), CS base {BASE:#x} is added" in info.text(
        verbose=True
    )
    assert "ip_payloads" not in info.recording


def test_bundles_keep_what_is_said(bundle: Any, tmp_path: Path) -> None:
    ptkit.redact(bundle(32), tmp_path / "redacted.ptk")
    assert open_quietly(tmp_path / "redacted.ptk").info.ip_payloads == "effective"
    trace = open_quietly(bundle(32), cs_base=BASE)
    trace.export(tmp_path / "perf.data")
    assert open_quietly(tmp_path / "perf.data").info.ip_payloads == "effective"


# ---- the command line


@pytest.mark.parametrize("verb", ["branches", "instructions"])
def test_verbs_that_decode_take_the_base(bundle: Any, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(bundle(32))
    assert main([verb, "--cs-base", hex(BASE), path]) == 0
    out, err = capsys.readouterr()
    assert f"{BASE + 0x2000:x}" in out
    assert "effective addresses" not in err


def test_the_command_line_warns_once(bundle: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(bundle(16, base=0))
    assert main(["branches", "--no-header", path]) == 0
    out, err = capsys.readouterr()
    assert "effective addresses" not in out
    assert err.count("ptkit: warning:") == err.count("\n")
    assert err.count("effective addresses") == 1
    assert "--cs-base BASE" in err


def test_info_has_the_warning_in_its_output(bundle: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(bundle(16, base=0))
    assert main(["info", "--decode", path]) == 0
    out, err = capsys.readouterr()
    assert out.count("are relative to the base of the code segment") == 1
    assert "relative" not in err
    assert main(["info", "--decode", "--cs-base", "0", path]) == 0
    assert "are relative to the base of the code segment" not in capsys.readouterr().out
    assert main(["info", "--json", "--cs-base", hex(BASE), path]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ip_payloads"], document["cs_base"]) == ("effective", hex(BASE))


@pytest.mark.parametrize("base", ["-1", "0x100000000", "x"])
def test_the_command_line_refuses_bases_out_of_range(
    bundle: Any, base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["branches", f"--cs-base={base}", str(bundle(32))])
    assert caught.value.code == 2
    assert "--cs-base" in capsys.readouterr().err
