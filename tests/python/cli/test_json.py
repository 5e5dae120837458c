"""What verbs print with --json: it fits the schema files, exactly, and no number is rounded."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import ptkit
from ptkit import _core, capture
from ptkit.cli import main
from ptkit.cli.output.json_values import SCHEMA, form_of
from ptkit.support.schema import row_tables

SCHEMAS = Path(ptkit.__file__).parent / "schemas"
MOST = 2**53
KERNEL = 0xFFFFFFFF81000000
CODE = bytes.fromhex("7402" + "9090" + "74fa" + "ffe0")  # jz +2; nop; nop; jz -6; jmp rax
LINES = ("packets", "branches", "instructions")


def strict(schema: Any) -> Any:
    """A copy in which no object may have other members than those that are named."""
    if isinstance(schema, dict):
        made = {name: strict(value) for name, value in schema.items()}
        if "required" in made:
            made.setdefault("additionalProperties", False)
        return made
    return [strict(item) for item in schema] if isinstance(schema, list) else schema


def schema_of(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}-{SCHEMA}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


ROWS, DOCUMENTS = schema_of("rows"), schema_of("documents")


def assert_fits(schema: Any, kind: str, document: Any) -> None:
    """The schema file takes the document, its definition names every member, and no number is rounded."""
    plain = json.loads(json.dumps(document))
    assert jsonschema.Draft202012Validator(schema).is_valid(plain)
    one = {"$ref": f"#/$defs/{kind.replace(' ', '-')}", "$defs": strict(schema["$defs"])}
    errors = jsonschema.Draft202012Validator(one).iter_errors(plain)
    assert [f"{error.json_path}: {error.message}" for error in errors] == []
    numbers = [leaf for leaf in members(plain) if isinstance(leaf, int)]
    assert all(-MOST <= number <= MOST for number in numbers)


def members(value: Any) -> list[Any]:
    """Every value of a document that is no object and no array."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in members(item)] if isinstance(value, list) else [value]


@pytest.fixture
def kernel(tmp_path: Path, packets: Any) -> list[str]:
    """Arguments that open a stream of kernel code, with times, an MNT packet, and damage in the middle."""
    header = packets.PSB + packets.tsc(0xF0000000000001) + packets.MODE_64 + packets.PSBEND
    maintenance = b"\x02\xc3\x88" + b"\xff" * 8
    part = header + packets.pge(KERNEL) + packets.tnt("01") + maintenance + packets.TIP_PGD
    (tmp_path / "kernel.pt").write_bytes(part + b"\x02\xff" + part)
    (tmp_path / "code.bin").write_bytes(CODE)
    code = ["--code", f"{tmp_path / 'code.bin'}@{KERNEL:#x}"]
    return [str(tmp_path / "kernel.pt"), *code, "--processor", "6/142/9", "--tsc-hz", "1000000000"]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main([*arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def document(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == status
    captured = capsys.readouterr()
    found: dict[str, Any] = json.loads(captured.out or captured.err)
    return found


@pytest.mark.parametrize("verb", LINES)
def test_every_line_fits_the_schema(verb: str, kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = lines(capsys, verb, *kernel)
    for row in rows:
        assert_fits(ROWS, row["table"], row)
    assert {verb, "errors", "gaps"} < {row["table"] for row in rows}


@pytest.mark.parametrize(
    ("option", "table"),
    [
        *(("--stats", "branch_stats"), ("--targets", "indirect_targets"), ("--loops", "loops")),
        *(("--paths", "loop_paths"), ("--fold", "folded_branches")),
    ],
)
def test_statistics_of_branches_fit_the_schema(
    option: str, table: str, kernel: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lines(capsys, "branches", option, *kernel)
    for row in rows:
        assert_fits(ROWS, row["table"], row)
    assert (rows[0]["table"], rows[0]["rows"]) == ("header", table)
    # The indirect jump leaves the traced code.
    assert (table in {row["table"] for row in rows}) == (table != "indirect_targets")


@pytest.mark.parametrize("verb", LINES)
def test_the_first_line_is_a_header(verb: str, kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = lines(capsys, verb, *kernel)
    assert (header["table"], header["schema"], header["rows"]) == ("header", SCHEMA, verb)
    assert header["source"] == kernel[0]
    assert all("schema" not in row for row in rows)
    assert lines(capsys, verb, *kernel, "--limit", "0") == [header]


@pytest.mark.parametrize("verb", LINES)
def test_a_limit_counts_rows_of_the_table_alone(
    verb: str, kernel: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for limit in (1, 3):
        rows = lines(capsys, verb, *kernel, "--limit", str(limit))
        assert [row["table"] for row in rows].count(verb) == limit
        assert all("table" in row for row in rows)


def test_branches_have_every_member(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in lines(capsys, "branches", *kernel) if row["table"] == "branches"]
    first, second = rows[:2]
    assert (first["from_ip"], first["to_ip"]) == (hex(KERNEL), hex(KERNEL + 2))
    assert (first["taken"], second["taken"]) == (False, True)
    assert first["kind"] == "COND"
    assert first["flags"] == []
    assert (first["tsc"], first["tsc_source"]) == ("0xf0000000000001", "TSC")
    assert first["time_ns"] == str(0xF0000000000001)
    assert (first["stream"], first["pid"], first["tid"], first["cpu"]) == (0, None, None, None)


def test_what_is_not_known_is_null(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in lines(capsys, "branches", *kernel) if row["table"] == "branches"]
    unknown = next(row for row in rows if row["to_ip"] is None)
    assert (unknown["to_symbol"], unknown["to_module"]) == (None, None)
    assert unknown["from_ip"] is not None
    rows = lines(capsys, "packets", *kernel[:-2])
    assert {row["time_ns"] for row in rows if row["table"] == "packets"} == {None}


def test_instructions_have_their_text_and_events(
    kernel: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lines(capsys, "instructions", *kernel)
    texts = [row["disassembly"] for row in rows if row["table"] == "instructions"]
    assert texts[:3] == [f"jz {KERNEL + 4:#x}", "nop", "nop"]
    events = [row for row in rows if row["table"] == "events"]
    assert [row["kind"] for row in events if row["kind"] in ("ENABLED", "MNT")][:2] == ["ENABLED", "MNT"]
    assert next(row for row in events if row["kind"] == "MNT")["payload"] == hex(2**64 - 1)
    bare = lines(capsys, "instructions", *kernel, "--no-inst", "--no-events")
    assert {row["table"] for row in bare} == {"header", "instructions"}
    assert not {"disassembly", "symbol"} & bare[1].keys()


def test_flags_are_names(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in lines(capsys, "packets", *kernel) if row["table"] == "packets"]
    assert next(row for row in rows if row["kind"] == "MODE_EXEC")["flags"] == ["in_psb"]
    assert next(row for row in rows if row["kind"] == "TIP_PGE")["flags"] == []


def test_addresses_have_names(
    tmp_path: Path, packets: Any, open_trace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    # An ELF file that is there wherever ptkit is: its own core.
    base = 0x7F0000000000
    image = f"{_core.__file__}@{base:#x}"
    start = open_trace(packets.PSB, images=[(_core.__file__, base)]).symbols("PyInit__core")[0][1]
    stream = tmp_path / "core.pt"
    stream.write_bytes(packets.PSB + packets.MODE_64 + packets.PSBEND + packets.pge(start) + packets.TIP_PGD)
    options = ["--image", image, "--processor", "6/142/9"]
    found = next(row for row in lines(capsys, "packets", str(stream), *options) if row.get("ip"))
    assert (found["symbol"], found["module"]) == ("PyInit__core", Path(_core.__file__).name)
    row = next(row for row in lines(capsys, "instructions", str(stream), *options) if "disassembly" in row)
    assert (row["symbol"], row["module"]) == (found["symbol"], found["module"])


def test_no_column_of_64_bits_is_a_number_unless_it_counts() -> None:
    plain = {
        f"{table}.{name}"
        for table, schema in row_tables().items()
        for name, column in schema.columns.items()
        if column.dtype.itemsize == 8 and column.enum is None and form_of(column) == "plain"
    }
    sizes = {"offset", "begin", "end", "lost_bytes"}
    counts = {"instruction", "order", "count"}
    assert {name.split(".")[1] for name in plain} == sizes | counts


def test_info_fits_the_schema(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for decode in ([], ["--decode"]):
        found = document(capsys, "info", *decode, *kernel, "--tsc-ctc-ratio", "168/2")
        assert_fits(DOCUMENTS, "info", found)
        assert (found["schema"], found["document"]) == (SCHEMA, "info")
        assert found["tsc_ctc_ratio"] == {"ebx": 168, "eax": 2}
        assert found["cpu"] == {"family": 6, "model": 142, "stepping": 9}
        assert found["tsc_hz"] == 10**9
    assert found["counts"]["errors"] > 0


def test_info_has_the_metadata_of_the_recording() -> None:
    from ptkit.cli.output.json_documents import info_document

    with pytest.warns(ptkit.PtkitWarning):
        info = ptkit.open(b"\x02\x82" * 8).info
    changed = deepcopy(info.__dict__) | {
        "perf_time": (3, 4, 2**64 - 1),
        "rtit_ctl": 0x2000,
        "ranges": (("filter", KERNEL, KERNEL + 1),),
        "spaces": ((None, None), (7, 2**63)),
        "threads": ((7, 8, "worker"),),
        "files": (("/bin/true", ""),),
        "missing_files": (ptkit.MissingFile("/lib/x.so", "ab12", ""),),
        "recording": {
            "begin_ns": 1_700_000_000_000_000_001,
            "instructions": 5,
            "redacted": True,
            "pebs_events": [{"event": "cycles", "counter": 1, "id": 2**63, "tsc": 2**62}],
        },
    }
    found = info_document(ptkit.TraceInfo(**changed), {})
    assert_fits(DOCUMENTS, "info", {"schema": SCHEMA, "document": "info", **found})
    assert found["perf_time"] == {"time_mult": 3, "time_shift": 4, "time_zero": hex(2**64 - 1)}
    assert found["ranges"] == [{"kind": "filter", "first": hex(KERNEL), "last": hex(KERNEL + 1)}]
    assert found["spaces"][1] == {"pid": 7, "cr3": hex(2**63)}
    assert found["threads"] == [{"pid": 7, "tid": 8, "name": "worker"}]
    assert found["files"] == [{"path": "/bin/true", "build_id": None}]
    assert found["missing_files"] == [{"path": "/lib/x.so", "build_id": "ab12", "reason": None}]
    assert found["recording"]["begin_ns"] == "1700000000000000001"
    assert found["recording"]["pebs_events"][0]["id"] == hex(2**63)


def test_other_documents_fit_the_schema(
    kernel: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = kernel[0]
    commands = {
        "doctor": ["doctor"],
        "selftest": ["selftest", "--backend", "step"],
        "index": ["index", *kernel, "-o", str(tmp_path / "x.ptindex")],
        "redact": ["redact", stream, "-o", str(tmp_path / "redacted.ptk")],
        "export": ["export", *kernel, "-o", str(tmp_path / "out.data")],
        "bench": ["bench", "--made", "--seconds", "0.001"],
        "msr list": ["msr", "list"],
        "msr explain": ["msr", "explain", "0x570", "0xe209"],
        "msr check": ["msr", "check", "0x570=0x2409"],
        "msr plan": ["msr", "plan", "--user", "--cr3", "0x12345000"],
        "msr bts": ["msr", "bts", "64K"],
        "msr cpuid": ["msr", "cpuid"],
        "save": ["save", *kernel, "-o", str(tmp_path / "saved.ptk")],
    }
    for name, arguments in commands.items():
        found = document(capsys, *arguments)
        assert_fits(DOCUMENTS, name, found)


@pytest.mark.parametrize("options", [[], ["--by", "function"], ["--by", "module"]])
def test_edges_fit_the_schema(
    options: list[str], kernel: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["edges", "--json", *options, *kernel]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) > 1
    for row in rows:
        assert_fits(ROWS, row["table"], row)


def test_events_fit_the_schema(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--json", "--status", *kernel]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {"header", "events", "errors"} <= {row["table"] for row in rows}
    for row in rows:
        assert_fits(ROWS, row["table"], row)


@pytest.mark.skipif("libipt" not in _core.engines(), reason="libipt is not in this build")
def test_verify_fits_the_schema(kernel: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "verify", *kernel)
    assert_fits(DOCUMENTS, "verify", found)


def test_a_difference_fits_the_schema() -> None:
    from ptkit.analysis.verify import Difference, Instruction, Report
    from ptkit.cli.output.json_documents import verify_document

    row = {"ip": KERNEL, "size": 2, "mode": 64, "flags": 0x10, "cls": int(ptkit.InsnClass.COND_JUMP)}
    seen = (Instruction(KERNEL, "7402", "jz"),)
    difference = Difference("instructions", 0, 5, 7, row, None, None, "hint", ("psb",), seen, ())
    found = verify_document(Report("2.1", {"packets": 3}, {}, {}, 0, 0, difference))
    assert_fits(DOCUMENTS, "verify", {"schema": SCHEMA, "document": "verify", **found})
    assert found["difference"]["ours"]["ip"] == hex(KERNEL)
    assert found["difference"]["ours"]["cls"] == "COND_JUMP"
    assert found["difference"]["ours_before"] == [{"ip": hex(KERNEL), "code": "7402", "text": "jz"}]
    assert found["same"] is False


def test_a_recording_fits_the_schema(tmp_path: Path, brief: str, capfd: pytest.CaptureFixture[str]) -> None:
    if not any(one.name == "step" and one.available for one in capture.probe()):
        pytest.skip("no single stepping here")
    output = tmp_path / "brief.ptk"
    assert main(["record", "--json", "--backend", "step", "-o", str(output), "--", brief]) == 0
    found = json.loads(capfd.readouterr().err)
    assert_fits(DOCUMENTS, "record", found)
    assert found["path"] == str(output)
    assert main(["info", "--json", str(output)]) == 0
    info = json.loads(capfd.readouterr().out)
    assert_fits(DOCUMENTS, "info", info)
    assert int(info["recording"]["begin_ns"]) > MOST
