"""``ptkit.msr`` and ``ptkit msr``: values in words, rules, sequences."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path

import pytest

ptkit = pytest.importorskip("ptkit", reason="the extension module is not built")

from ptkit import _core, msr  # noqa: E402
from ptkit.cli.main import main  # noqa: E402
from ptkit.errors import ConfigError  # noqa: E402

# As `cpuid -r` writes them: a Skylake client, without event trace, PTWRITE and power events.
SKYLAKE = """\
CPU 0:
   0x00000001 0x00: eax=0x000506e3 ebx=0x00100800 ecx=0x7ffafbff edx=0xbfebfbff
   0x00000007 0x00: eax=0x00000000 ebx=0x029c6fbf ecx=0x00000000 edx=0x00000000
   0x00000014 0x00: eax=0x00000001 ebx=0x0000000f ecx=0x00000007 edx=0x00000000
   0x00000014 0x01: eax=0x02490002 ebx=0x003f3fff ecx=0x00000000 edx=0x00000000
   0x00000015 0x00: eax=0x00000002 ebx=0x000000a0 ecx=0x00000000 edx=0x00000000
   0x80000008 0x00: eax=0x00003027 ebx=0x00000000 ecx=0x00000000 edx=0x00000000
"""


@pytest.fixture
def words(tmp_path: Path) -> str:
    path = tmp_path / "words.txt"
    path.write_text(SKYLAKE)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["msr", *arguments])
    captured = capsys.readouterr()
    assert not captured.err
    return status, captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a wrong input gives."""
    try:
        status = main(["msr", *arguments])
    except SystemExit as exit:
        status = exit.code
    captured = capsys.readouterr()
    assert status == 2
    assert not captured.out
    assert captured.err.count("\n") == 1
    return captured.err


def test_the_fields_are_those_of_the_core() -> None:
    names = [field.name for field in dataclasses.fields(msr.RtitConfig)]
    assert names == list(_core.msr_fields(0))
    text = msr.RtitConfig.__doc__ or ""
    for kind in (msr.RtitConfig, msr.Capabilities, msr.Step, msr.Violation, msr.FieldValue, msr.Register):
        text = kind.__doc__ or ""
        for field in dataclasses.fields(kind):
            assert re.search(rf"\b{field.name}\b", text), f"{kind.__name__}.{field.name}"


def test_every_register_is_found_by_number_and_name() -> None:
    for row in msr.registers():
        assert msr.register(row.name.lower()) == row
        # One number has two layouts: NetBurst's is found by its name.
        assert msr.register(row.number) == (msr.register("DEBUGCTL") if row.name == "MSR_DEBUGCTLA" else row)
        assert msr.explain(row.name, 2**64 - 1)
    with pytest.raises(ConfigError, match="0x10 is no register of tracing"):
        msr.explain(0x10, 0)
    with pytest.raises(ConfigError, match="value=18446744073709551616"):
        msr.explain(0x570, 2**64)


def test_explain_gives_fields() -> None:
    fields = {field.name: field for field in msr.explain(0x570, 0x20_0300E209)}
    assert fields["MTCFreq"].bits == "17:14"
    assert fields["MTCFreq"].value == 3
    assert fields["PSBFreq"].words == "a PSB about every 16 KiB"
    assert fields["ADDR1_CFG"].words == "tracing stops for good in ADDR1_A to ADDR1_B"


def test_values_of_ctl_come_back() -> None:
    numbers = random.Random(5)
    for _ in range(200):
        ctl = numbers.getrandbits(64) & 0x0180FFFF8F7BFFFF
        assert msr.config_of(ctl).registers["IA32_RTIT_CTL"] == ctl


def test_capabilities_of_recorded_words() -> None:
    found = msr.capabilities(SKYLAKE)
    assert found.present
    assert found.mtc
    assert not found.ptwrite
    assert (found.address_ranges, found.mtc_periods, found.physical_bits) == (2, 0x249, 39)
    assert (found.tsc_ctc_numerator, found.tsc_ctc_denominator) == (160, 2)
    assert isinstance(msr.capabilities().present, bool)
    with pytest.raises(ConfigError, match="no line of CPUID words"):
        msr.capabilities("nothing")


def test_check_names_every_violation() -> None:
    config = msr.RtitConfig(
        user=True, topa=True, ptw_en=True, mtc_en=True, mtc_freq=4, addr2_cfg=1, cr3_match=1
    )
    found = msr.check(config, msr.capabilities(SKYLAKE))
    assert [violation.field for violation in found] == ["PTWEn", "MTCFreq", "ADDR2_CFG"]
    assert {violation.effect for violation in found} == {"fault"}
    assert all(violation.section for violation in found)
    assert "CPUID.(EAX=14H,ECX=1):EAX[31:16]" in str(found[1])
    assert not msr.check(config)
    assert msr.check(dataclasses.replace(config, mtc_freq=16))[0].rule.startswith("16 does not fit")


@pytest.mark.parametrize(
    ("field", "value"),
    [("user", 1), ("mtc_freq", "3"), ("mtc_freq", 256), ("addr", ((1, 2),) * 5), ("status", -1)],
)
def test_a_configuration_of_wrong_types_is_refused(field: str, value: object) -> None:
    with pytest.raises(ConfigError, match=field):
        msr.RtitConfig(**{field: value})  # type: ignore[arg-type]


def test_perf_goes_both_ways() -> None:
    config = msr.from_perf("intel_pt/tsc,mtc,mtc_period=3,noretcomp/k")
    assert config.os
    assert not config.user
    assert config.mtc_freq == 3
    assert msr.to_perf(config) == ("intel_pt/mtc,tsc,noretcomp,mtc_period=3/k", [])
    assert msr.to_perf(dataclasses.replace(config, cr3_filter=True))[1] == ["CR3Filter"]
    with pytest.raises(ConfigError, match="perf's term frobnicate"):
        msr.from_perf("frobnicate")


def test_plans_write_trace_en_last_and_clear_it_first() -> None:
    config = msr.with_single_range(msr.RtitConfig(user=True, cr3_filter=True, cr3_match=0x1000), 0, 4096)
    start = msr.plan(config)
    assert [step.name for step in start if step.access == "write"][-2:] == [
        "IA32_RTIT_CR3_MATCH",
        "IA32_RTIT_CTL",
    ]
    assert start[-1].value & 1
    stop = msr.plan(config, "stop")
    assert stop[0].name == "IA32_RTIT_CTL"
    assert not stop[0].value & 1
    assert [step.access for step in stop[1:5]] == ["barrier", "read", "read", "read"]
    other = dataclasses.replace(config, cr3_match=0x2000)
    assert 0x2000 in [step.value for step in msr.plan(config, "switch", to=other)]
    with pytest.raises(ConfigError, match="sequence='begin'"):
        msr.plan(config, "begin")


def test_topa_links_tables() -> None:
    pages = [(0x100000 + 8192 * index, 4096) for index in range(600)]
    config, memory = msr.with_topa(
        msr.RtitConfig(user=True), 0x8000, pages, interrupt_bytes=1 << 20, ring=False
    )
    assert config.topa
    assert config.output_base == 0x8000
    entries = memory[:-1]
    assert len(entries) == 602
    assert {step.access for step in entries} == {"memory"}
    assert entries[511].value == 0x9001  # END of the first table
    assert entries[-2].value & 0x14 == 0x14  # INT and STOP
    assert str(memory[-1]).startswith("write APIC [0x340] = 0x400: LVT performance counter: the PMI comes")
    with pytest.raises(ConfigError, match="multiples of 4096"):
        msr.with_topa(config, 0x8000, [(0x1000, 5)])
    with pytest.raises(ConfigError, match="power of two"):
        msr.with_single_range(config, 0, 5000)


def test_explain_prints_words(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "explain", "0x570", "0xe209")
    assert status == 0
    assert text.startswith("IA32_RTIT_CTL (0x570) = 0xe209: what is traced\n")
    assert re.search(r"17:14 +MTCFreq +3 +with MTCEn, an MTC packet every 8 ticks", text)
    assert run(capsys, "explain", "rtit_ctl", "0xe209") == (0, text)
    document = json.loads(run(capsys, "explain", "0x1d9", "0x1c0", "--json")[1])
    assert document["register"]["name"] == "IA32_DEBUGCTL"
    assert [field["name"] for field in document["fields"] if field["value"] != "0x0"] == [
        "TR",
        "BTS",
        "BTINT",
    ]


def test_plan_prints_every_write(capsys: pytest.CaptureFixture[str], words: str) -> None:
    options = "--user --tsc --mtc-period 3 --filter 0x401000-0x401fff --cr3 0x12345000 --single 1M"
    status, text = run(capsys, "plan", *options.split(), "--cpuid", words)
    assert status == 0
    writes = re.findall(r"write (\w+) = (0x[0-9a-f]+)", text)
    assert writes[:8] == [
        ("IA32_RTIT_STATUS", "0x0"),
        ("IA32_RTIT_OUTPUT_BASE", "0x100000000"),
        ("IA32_RTIT_OUTPUT_MASK_PTRS", "0xfffff"),
        ("IA32_RTIT_CR3_MATCH", "0x12345000"),
        ("IA32_RTIT_ADDR0_A", "0x401000"),
        ("IA32_RTIT_ADDR0_B", "0x401fff"),
        ("IA32_RTIT_CTL", "0x10000e689"),
        ("IA32_RTIT_CTL", "0x10000e688"),
    ]
    assert "perf: -e intel_pt/mtc,tsc,mtc_period=3/u (not said by it: CR3Filter, ToPA, ADDR0_CFG)" in text


def test_plan_of_tables_and_of_perf(capsys: pytest.CaptureFixture[str], words: str) -> None:
    options = "--topa 256M --interrupt-every 128M --stop-when-full --sequence interrupt --json"
    status, text = run(capsys, "plan", "--perf", "intel_pt/tsc/", *options.split(), "--cpuid", words)
    document = json.loads(text)
    assert status == 0
    assert [step["value"] for step in document["memory"] if step["access"] == "memory"] == [
        "0x1000003c4",
        "0x1080003d4",
        "0xff000001",
    ]
    assert [(step["access"], step["place"]) for step in document["memory"][3:]] == [("apic", "0x340")]
    assert list(document["sequences"]) == ["interrupt"]
    served = [(step["access"], step["place"]) for step in document["sequences"]["interrupt"]]
    assert served[-2:] == [("apic", "0x340"), ("apic", "0xb0")]  # LVT, EOI
    assert document["perf"] == {"event": "intel_pt/tsc/", "lost": []}
    assert document["registers"]["IA32_RTIT_OUTPUT_BASE"] == "0xff000000"


def test_plan_that_a_processor_refuses(capsys: pytest.CaptureFixture[str], words: str) -> None:
    status, text = run(capsys, "plan", "--user", "--ptw", "--mtc-period", "4", "--cpuid", words)
    assert status == 1
    assert text.count("refused: ") == 2
    assert "write" not in text.replace("PTWRITE", "")
    status, text = run(capsys, "plan", "--user", "--ptw", "--cpuid", words, "--json")
    document = json.loads(text)
    assert status == 1
    assert [violation["field"] for violation in document["violations"]] == ["PTWEn"]
    assert document["sequences"] == {}


def test_a_plan_without_anything_to_trace_is_an_error(capsys: pytest.CaptureFixture[str], words: str) -> None:
    for options in ([], ["--tsc", "--sequence", "stop"], ["--json"]):
        assert "give --user, --os or both" in refused(capsys, "plan", *options, "--cpuid", words)
    status, _ = run(capsys, "plan", "--power", "--cpuid", words)  # power events have no privilege level
    assert status in (0, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--user --filter 0x2000-0x1000", "none has any (nothing is traced; "),
        (
            "--user --filter 0xffffffff81000000-0xffffffff81ffffff",
            "OS is 0: user code is not there (no effect; ",
        ),
        ("--user --filter 0xffffffff81000000-0xffffffff81ffffff", "none has any (nothing is traced; "),
    ],
)
def test_plan_says_that_nothing_is_traced(
    capsys: pytest.CaptureFixture[str], words: str, options: str, said: str
) -> None:
    status, text = run(capsys, "plan", *options.split(), "--cpuid", words)
    assert status == 0
    assert any(line.startswith("note: ") and said in line for line in text.splitlines())
    status, text = run(capsys, "plan", "--os", "--user", "--filter", "0x1000-0x2000", "--cpuid", words)
    assert "note: " not in text


def test_plan_says_what_the_low_bits_of_a_cr3_may_be(capsys: pytest.CaptureFixture[str], words: str) -> None:
    status, text = run(capsys, "plan", "--user", "--cr3", "0x1ad002", "--cpuid", words)
    assert status == 1
    assert (
        "IA32_RTIT_CR3_MATCH.CR3: bits 4:0 must be 0; with CR4.PCIDE, bits 11:0 of CR3 are the PCID" in text
    )


def test_every_sequence_can_be_planned(capsys: pytest.CaptureFixture[str], words: str) -> None:
    for name in msr.SEQUENCES:
        status, text = run(capsys, "plan", "--os", "--sequence", name, "--cpuid", words)
        assert status == 0
        assert f"\n{name}:\n   1. " in text


def test_bts_sets_the_bits_of_later_processors(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "bts", "64K", "--user", "--reserve", "100", "--json")
    document = json.loads(text)["sequences"]
    assert status == 0
    assert [int(step["value"], 0) for step in document["before"]] == [
        0x200000,
        0x200000,
        0x200000 + 2730 * 24,
        0x200000 + 2630 * 24,
        0x400,  # LVT: delivered as NMI
    ]
    writes = [(step["name"], step["value"]) for step in document["start"] if step["access"] == "write"]
    assert writes == [("IA32_DS_AREA", "0x100000"), ("IA32_DEBUGCTL", "0x3c0")]
    writes = [(step["name"], step["value"]) for step in document["stop"] if step["access"] == "write"]
    assert writes == [("IA32_DEBUGCTL", "0x0"), ("IA32_DS_AREA", "0x0")]
    assert "write IA32_DEBUGCTL = 0xc0: TR, BTS; other bits as they were" in run(capsys, "bts", "1M")[1]


def test_bts_serves_its_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "bts", "64K", "--reserve", "100")[1]
    served = text[text.index("\ninterrupt:") : text.index("\nstop:")]
    writes = ["DEBUGCTL = 0x0", "BTS index", "OvfDSBuffer", "DEBUGCTL = 0x1c0", "APIC [0x340]", "APIC [0xb0]"]
    assert [served.index(one) for one in writes] == sorted(served.index(one) for one in writes)
    assert "interrupt:" not in run(capsys, "bts", "64K")[1]  # a ring has none


def test_bts_prints_the_sequences_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    whole = run(capsys, "bts", "64K", "--reserve", "100")[1]
    chosen = run(capsys, "bts", "64K", "--reserve", "100", "--sequence", "start", "--sequence", "stop")[1]
    assert whole.endswith(chosen[chosen.index("stop:") :])
    assert chosen.startswith("start:\n")
    assert "interrupt:" not in chosen
    assert "give --reserve" in refused(capsys, "bts", "64K", "--sequence", "interrupt")


def test_ranges_of_a_plan_have_the_names_of_decoding(capsys: pytest.CaptureFixture[str], words: str) -> None:
    def plan(*ranges: str) -> str:
        return run(capsys, "plan", "--os", "--cpuid", words, *ranges)[1]

    of_plan = plan("--filter", "0x1000-0x1fff", "--trace-stop", "0x3000-0x3fff")
    assert "IA32_RTIT_ADDR1_A = 0x3000" in of_plan
    assert plan("--range", "0x1000-0x1fff", "--stop-range", "0x3000-0x3fff") == of_plan


def test_bts_must_be_off_at_the_start_alone(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "bts", "64K")[1]
    start, stop = text[: text.index("\nstop:")], text[text.index("\nstop:") :]
    assert "TR and BTS must be 0" in start
    assert "must be 0" not in stop
    assert "read IA32_DEBUGCTL: bits of other programs are kept" in stop
    assert "all 0" not in stop


def test_netburst_has_lower_bits(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "explain", "DEBUGCTLA", "0x1c")
    assert status == 0
    assert text.startswith("MSR_DEBUGCTLA (0x1d9) = 0x1c: ")
    assert re.search(r"4  BTINT +1 +an interrupt when the BTS buffer is full", text)
    assert "note: " not in text
    assert "ptkit msr explain DEBUGCTLA 0x1c" in run(capsys, "explain", "DEBUGCTL", "0x1c")[1]
    for value in ("0x1c0", "0x4", "0xcc"):
        assert "note: " not in run(capsys, "explain", "0x1d9", value)[1]
    document = json.loads(run(capsys, "bts", "64K", "--user", "--reserve", "9", "--netburst", "--json")[1])
    writes = [
        (step["name"], step["value"]) for step in document["sequences"]["start"] if step["access"] == "write"
    ]
    assert writes[1] == ("MSR_DEBUGCTLA", "0x3c")


def test_32_bit_systems_have_words_of_four_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "bts", "64K", "--bits32", "--json")[1])
    steps = document["sequences"]["before"]
    assert [int(step["place"], 0) for step in steps] == [0x100000, 0x100004, 0x100008, 0x10000C]
    assert int(steps[2]["value"], 0) == 0x200000 + 5461 * 12
    assert steps[0]["words"] == "BTS buffer base; 4 bytes"


def test_list_has_every_register(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "list")[1].count("\n") == len(msr.registers())
    assert len(json.loads(run(capsys, "list", "--json")[1])["registers"]) == len(msr.registers())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("explain 0x571", "VALUE"),
        ("explain 0x99 0", "0x99 is no register of tracing"),
        ("explain nothing 0", "'nothing'"),
        ("explain -5 0", "-5"),
        ("explain 0x570 12345678901234567890123", "must be 18446744073709551615 or less"),
        ("explain 0x570 many", "'many' is not a number"),
        ("plan --single 5000", "power of two"),
        ("plan --single 1M --base 4096", "1048576 bytes at 0x1000"),
        ("plan --single 1M --interrupt-every 4K", "--single"),
        ("plan --single 1M --topa 1M", "not allowed with"),
        ("plan --topa 5", "multiples of 4096"),
        ("plan --topa 4Q", "'4Q' is not a size"),
        ("plan --topa 4M --table 64", "a ToPA table at 0x40"),
        ("plan --filter 5", "'5' is not a range"),
        ("plan --filter 1-2 --filter 1-2 --filter 1-2 --filter 1-2 --trace-stop 1-2", "four ranges"),
        ("plan --psb-period 3000", "power of two"),
        ("plan --psb-period 1", "2048 at least"),
        ("plan --mtc-period 999", "mtc_freq=999"),
        ("plan --perf intel_pt/foo/", "perf's term foo"),
        ("plan --cpuid /does/not/exist", "no such file"),
        ("plan --sequence begin", "is not one of"),
        ("bts 20", "room for records of 24 bytes"),
        ("bts 4K --reserve 171", "more than the 171"),
        ("bts 4K --buffer 4", "4096 bytes at 0x4"),
        ("bts 4K --area 4", "a DS area at 0x4"),
        ("bts 4K --area 2 --bits32", "aligned to 4"),
        ("bts 4K --buffer 0xfffff800 --bits32", "4 GiB of addresses"),
        ("bts 8 --bits32", "room for records of 12 bytes"),
        ("", "ACTION"),
        ("shout", "is not one of"),
    ],
)
def test_wrong_input_gives_one_clear_line(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    assert said in refused(capsys, *arguments.split())


def test_words_without_a_trace_unit_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text(SKYLAKE.replace("029c6fbf", "009c6fbf"))
    assert "without Processor Trace" in refused(capsys, "plan", "--cpuid", str(path))
    path.write_bytes(bytes(range(256)))
    assert "no line of CPUID words" in refused(capsys, "plan", "--cpuid", str(path))


def test_cpuid_is_explained(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "cpuid", words)
    assert status == 0
    lines = {line.split("  ")[0]: " ".join(line.split()) for line in text.splitlines()}
    assert lines["07H.0 EBX[25]"].endswith("1 Processor Trace is there")
    assert lines["14H.0 EBX[4]"].endswith("0 no PTWRITE")
    assert lines["14H.1 EAX[2:0]"].endswith("2 IA32_RTIT_ADDR0_A to ADDR1_B")
    assert lines["14H.1 EAX[31:16]"].endswith("0 (1), 3 (8), 6 (64), 9 (512)")
    assert lines["14H.1 EBX[15:0]"].endswith(
        "CycThresh (cycles): 0 (0), 1 (1), 2 (2), 3 (4), 4 (8), "
        "5 (16), 6 (32), 7 (64), 8 (128), 9 (256), 10 (512), 11 (1024), 12 (2048), 13 (4096)"
    )
    assert lines["14H.1 EBX[31:16]"].endswith(
        "PSBFreq: 0 (2 KiB), 1 (4 KiB), 2 (8 KiB), 3 (16 KiB), 4 (32 KiB), 5 (64 KiB)"
    )
    assert lines["15H.0 EBX[31:0]"].split()[3:5] == ["0xa0", "of"]
    status, text = run(capsys, "cpuid", words, "--json")
    found = json.loads(text)
    assert found["present"] is True
    assert found["fields"][0]["value"] == "0x1"
    (tmp_path / "none.txt").write_text("0x00000001 0x00: eax=0x0 ebx=0x0 ecx=0x0 edx=0x0")
    status, text = run(capsys, "cpuid", str(tmp_path / "none.txt"))
    assert (status, text) == (0, "no leaf about tracing (07H, 14H, 15H)\n")


def test_cpuid_of_this_processor_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "cpuid")
    assert status == 0
    has_leaf_7 = any(row[0] == 7 for row in msr.capabilities().words)
    assert text.startswith("07H.0 EBX[25]" if has_leaf_7 else "no leaf about tracing")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0x240c", 0x240C),
        ("00000000`0000240c", 0x240C),
        ("fffff806`85380000", 0xFFFFF80685380000),
        ("FFFFF80685380000", 0xFFFFF80685380000),
        ("0000240c", 0x240C),
        ("0000000000002409", 0x2409),
        ("240ch", 0x240C),
        ("0b101", 5),
        ("9225", 9225),
        ("0", 0),
    ],
)
def test_numbers_are_those_of_windbg_and_c(text: str, value: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert msr.number(text) == value
    assert msr.explain("RTIT_ADDR0_A", text) == msr.explain(0x580, value)
    assert f"= {value:#x}:" in run(capsys, "explain", "0x580", text)[1]


@pytest.mark.parametrize("text", ["", "rax", "0x", "1g", "`", "1`2", "0x1ffffffffffffffff", "-1", "1_000"])
def test_other_texts_are_no_numbers(text: str) -> None:
    with pytest.raises(ConfigError):
        msr.number(text)


def test_numbers_of_registers_are_hexadecimal(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("570", "0x570", "570h", "00000570", "RTIT_CTL", 0x570):
        assert msr.register(name).name == "IA32_RTIT_CTL"
    assert "IA32_RTIT_CTL (0x570)" in run(capsys, "explain", "570", "00000000`0000240c")[1]
    for name, meant in ((600, "0x600"), ("1392", "0x570"), ("RTIT_CTRL", "RTIT_CTL")):
        with pytest.raises(ConfigError, match=f"did you mean {meant}"):
            msr.register(name)
    assert "did you mean RTIT_CTL?" in refused(capsys, "explain", "rtit_ctll", "1")
    assert "is one word" in refused(capsys, "cpuid", "02490002")


def test_addresses_of_a_plan_are_windbgs(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "plan",
        "--os",
        "--single",
        "1M",
        "--filter",
        "fffff806`85380000-fffff80685380fff",
        "--cr3",
        "00185000",
    )
    out = run(capsys, *words)[1]
    assert "IA32_RTIT_ADDR0_A = 0xfffff80685380000" in out
    assert "IA32_RTIT_CR3_MATCH = 0x185000" in out


def test_check_says_what_a_driver_wrote_wrong(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    good = ("0x560=0x100000", "0x561=0x7f", "0x570=0x2409")
    status, out = run(capsys, "check", *good, "--cpuid", words)
    assert status == 0
    assert "no rule is broken" in out
    status, out = run(
        capsys, "check", "560=0x12340080", "561=0xfff", "570=0x8000000000002409", "--cpuid", words
    )
    assert status == 1
    assert "refused: IA32_RTIT_CTL.reserved" in out
    assert "IA32_RTIT_OUTPUT_BASE.BasePhysAddr: one range must be aligned to its size" in out


def test_check_takes_lines_of_windbg(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    lines = "msr[570] = 00000000`00002409\nmsr[560] = 00000000`00100000\n561=0x7f"
    status, out = run(capsys, "check", *lines.split())
    assert status == 0, out
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert run(capsys, "check", "-") == (status, out)
    log = ["Opened log file 'C:\\x.log'"]
    for line in lines.splitlines():
        log += [f"0: kd> rdmsr {line[4:7]}", line]
    monkeypatch.setattr(
        "sys.stdin", io.StringIO("\n".join([*log, "0: kd> .logclose", "Closing open log file"]))
    )
    assert run(capsys, "check", "-") == (status, out)
    assert main(["msr", "check", "570=2409", "560=0x100000", "561=0x7f"]) == 1
    assert "2409 is decimal; hexadecimal is 0x2409" in capsys.readouterr().err
    for text in ("570", "=5", "570=", "570=0x2409 x", "570=0x2409 0x570=1", "DEBUGCTL=1", "560=1"):
        refused(capsys, "check", *text.split())


def test_check_has_causes_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "check", "0x560=0x100080", "0x561=0xff", "0x570=0x2409", "0x571=0x10")
    assert status == 1
    causes = [line for line in out.splitlines() if line.startswith("cause: ")]
    assert "one range must be aligned to its size" in causes[0]
    assert all("ToPA" not in cause for cause in causes)
    status, out = run(capsys, "check", "0x560=0x100000", "0x561=0x7f", "0x570=0x2509", "0x571=0x10")
    assert status == 0  # the registers are right
    assert "an entry of the ToPA table" in out
    assert "Stopped" not in "".join(line for line in out.splitlines() if line.startswith("cause: "))
    out = run(capsys, "check", "570=0x2409", "571=0x20", "560=0x100000", "561=0x7f")[1]
    assert "an earlier configuration did it" in out


def test_check_notes_what_is_missing() -> None:
    checked = msr.check_registers({0x570: 0x2000 | 1 << 7 | 1 << 32})
    assert not checked.refused
    assert checked.registers == {"IA32_RTIT_CTL": 0x2000 | 1 << 7 | 1 << 32}
    assert "TraceEn is 0" in checked.notes[0]
    assert "IA32_RTIT_OUTPUT_BASE (0x560)" in checked.notes[-1]
    assert "IA32_RTIT_CR3_MATCH (0x572)" in checked.notes[-1]
    assert "IA32_RTIT_ADDR0_B (0x581)" in checked.notes[-1]
    assert "BranchEn is 0" in msr.check_registers({"570": "1"}).notes[0]
    with pytest.raises(ConfigError, match="is given twice"):
        msr.check_registers({0x570: 1, "RTIT_CTL": 1})
    with pytest.raises(ConfigError, match="not among the registers"):
        msr.check_registers({0x560: 1})


def test_check_agrees_with_the_check_of_configurations() -> None:
    found = msr.capabilities(SKYLAKE)
    for seed in range(200):
        values = random.Random(seed)
        ctl = values.getrandbits(64) & 0x8000FFFF_0F3FFFFF & ~(1 << 63) & ~0x40000 & ~(0xF << 28)
        base, mask = values.getrandbits(40), values.getrandbits(32) | 0x7F
        config = dataclasses.replace(msr.config_of(ctl), output_base=base, output_mask_ptrs=mask)
        ours = msr.check_registers({0x570: ctl, 0x560: base, 0x561: mask}, found).violations
        reserved = [one for one in ours if one.field == "reserved"]
        assert [one for one in ours if one not in reserved] == msr.check(config, found)
