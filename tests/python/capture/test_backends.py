"""Which back ends are there, why one is taken, what is said of a QEMU that does not fit. QEMU is faked."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ptkit
from ptkit import _core, capture
from ptkit.capture import backends, driver, options, program, qemu
from ptkit.capture.backend_probe import BackendProbe
from ptkit.capture.option_table import default_timing, read_option
from ptkit.cli import main

VERSION = "qemu-x86_64 version {} (Debian)\nCopyright (c) 2003-2022"
HELP = "-g port\n-plugin [file=]<file>[,<argname>=<argvalue>]\n"

FakeQemu = Callable[..., Path]


def _elf(path: Path, machine: int, *, bits: int = 64, big_endian: bool = False) -> Path:
    order = ">" if big_endian else "<"
    ident = b"\x7fELF" + bytes([bits // 32, 2 if big_endian else 1, 1]) + bytes(9)
    path.write_bytes(ident + struct.pack(order + "HH", 2, machine) + bytes(100))
    path.chmod(0o755)
    return path


@pytest.fixture
def fake_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    """Makes a program that answers as QEMU does, which PTKIT_QEMU names; the plugin is there."""

    def make(version: str = "7.2.22", help_text: str = HELP, script: str = "") -> Path:
        path = tmp_path / "fake-qemu"
        say = script or (
            f"case $1 in --version) cat <<'E'\n{VERSION.format(version)}\nE\n;;\n"
            f"-h) cat <<'E'\n{help_text}\nE\n;; esac\n"
        )
        path.write_text(f"#!/bin/sh\n{say}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PTKIT_QEMU", str(path))
        return path

    monkeypatch.setattr(qemu, "_plugin", lambda: "/plugin.so")
    monkeypatch.setattr(backends, "_runs_programs", lambda: True)
    qemu._examine.cache_clear()
    return make


def _emulator() -> capture.Backend:
    return next(one for one in capture.probe() if one.name == "emulator")


def test_fitting_qemu_is_found(fake_qemu: FakeQemu) -> None:
    path = fake_qemu()
    assert qemu.find() == qemu.Qemu(str(path), "7.2.22", "/plugin.so")
    found = _emulator()
    assert found.available
    assert f"QEMU 7.2.22 ({path})" in found.detail
    assert "not tested" not in found.detail


def test_newer_qemu_is_noted_as_untried(fake_qemu: FakeQemu) -> None:
    fake_qemu("10.0.2")
    found = _emulator()
    assert found.available
    assert "not tested" in found.detail


@pytest.mark.parametrize(
    ("how", "missing"),
    [
        ({"version": "5.2.50"}, "QEMU 5.2.50 (PATH) is too old: ptkit's plugin needs 6.0"),
        ({"version": "2.11"}, "too old"),
        ({"help_text": "-g port\n"}, "was built without plugins"),
        ({"script": "exit 1"}, "does not print its version"),
        ({"script": "sleep 5"}, "did not print its version within 0.2 s"),
    ],
)
def test_unfit_qemu_says_what_it_lacks(
    how: dict[str, str], missing: str, fake_qemu: FakeQemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qemu, "_TIME_LIMIT", 0.2 if "sleep" in how.get("script", "") else 10)
    path = fake_qemu(**how)
    found = _emulator()
    assert not found.available
    assert missing.replace("PATH", str(path)) in found.missing
    assert "apt-get install qemu-user" in found.remedy
    with pytest.raises(
        ptkit.UnsupportedError, match=r"backend 'emulator' does not work on this system: .*qemu-user"
    ):
        ptkit.Recorder(["true"], backend="emulator").run()


def test_missing_qemu_says_how_to_install_it(
    fake_qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTKIT_QEMU", raising=False)
    found = _emulator()
    assert found.missing == "QEMU is missing: there is no qemu-x86_64 in PATH"
    for words in ("apt-get install qemu-user", "dnf install qemu-user", "pacman -S qemu-user"):
        assert words in found.remedy
    (fake_qemu("8.0.0")).rename(tmp_path / "qemu-x86_64")
    monkeypatch.delenv("PTKIT_QEMU")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert qemu.find().path == str(tmp_path / "qemu-x86_64")
    assert qemu.find().version == "8.0.0"


def test_PTKIT_QEMU_that_is_not_qemu_is_refused(
    fake_qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTKIT_QEMU", str(tmp_path / "nowhere"))
    assert "nowhere is not a program" in _emulator().missing
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF but no more")
    path.chmod(0o755)
    monkeypatch.setenv("PTKIT_QEMU", str(path))
    assert "cannot be run: Exec format error" in _emulator().missing


def test_answers_of_qemu_are_kept_until_the_file_changes(fake_qemu: FakeQemu, tmp_path: Path) -> None:
    log = tmp_path / "log"
    path = fake_qemu()
    text = path.read_text().replace("#!/bin/sh", f"#!/bin/sh\necho $1 >> {log}")
    path.write_text(text)
    for _ in range(3):
        assert _emulator().available
    assert log.read_text().split() == ["--version", "-h"]
    path.write_text(text.replace("7.2.22", "7.2.1"))
    assert qemu.find().version == "7.2.1"


def test_a_build_without_the_plugin(fake_qemu: FakeQemu, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_qemu()
    monkeypatch.setattr(qemu, "_plugin", lambda: "")
    assert "built without its plugin" in _emulator().missing


def test_plugin_is_beside_the_module_or_in_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, build = tmp_path / "ptkit", tmp_path / "build"
    package.mkdir()
    (build / "src" / "capture" / "linux" / "emulator" / "plugin").mkdir(parents=True)
    monkeypatch.setattr(_core, "__file__", str(package / "_core.so"))
    monkeypatch.delenv("PTKIT_BUILD", raising=False)
    assert qemu._plugin() == ""
    monkeypatch.setenv("PTKIT_BUILD", str(build))
    assert qemu._plugin() == ""
    for folder in (build / "src" / "capture" / "linux" / "emulator" / "plugin", build, package):
        (folder / qemu.PLUGIN).touch()
        assert qemu._plugin() == str(folder / qemu.PLUGIN)


def test_doctor_shows_the_emulator(
    fake_qemu: FakeQemu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setattr(backends.perf, "find", lambda what="packets": BackendProbe(driver.NO_PT, "another"))
    fake_qemu()
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "QEMU 7.2.22" in out
    assert "`ptkit record` uses: emulator" in out
    fake_qemu("3.1.0")
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    emulator = next(one for one in report["backends"] if one["name"] == "emulator")
    assert not emulator["available"]
    assert "too old" in emulator["missing"]
    assert "qemu-user" in emulator["remedy"]
    assert report["best"] in ("step", None)


# ---- what auto takes


@pytest.fixture
def no_pt(monkeypatch: pytest.MonkeyPatch, fake_qemu: FakeQemu) -> None:
    """A machine without PT where the emulator and single steps work."""
    monkeypatch.setattr(backends.perf, "find", lambda what="packets": BackendProbe(driver.NO_PT, "another"))
    monkeypatch.setattr(backends, "_step", lambda: capture.Backend("step", True, "single steps"))
    monkeypatch.setattr(
        backends, "_PROBES", (backends._perf, backends._driver, backends._emulator, backends._step)
    )
    fake_qemu()


@pytest.mark.usefixtures("no_pt")
def test_auto_takes_the_emulator_and_says_why() -> None:
    chosen, reason = backends.choose("auto", (), program.NATIVE)
    assert chosen.name == "emulator"
    assert reason == "perf, driver: this processor has no Intel PT, or its hypervisor hides it"
    chosen, reason = backends.choose("emulator", ("filters", "ring"), program.NATIVE)
    assert (chosen.name, reason) == ("emulator", "")


@pytest.mark.usefixtures("no_pt")
def test_auto_falls_back_to_steps(fake_qemu: FakeQemu) -> None:
    for machine in (program.I386, program.UNSUPPORTED):
        chosen, reason = backends.choose("auto", (), machine)
        assert chosen.name == "step"
        assert f"emulator: it does not run programs for {machine}" in reason
    fake_qemu("3.0.0")
    chosen, reason = backends.choose("auto", (), program.NATIVE)
    assert chosen.name == "step"
    assert "emulator: QEMU 3.0.0" in reason
    with pytest.raises(
        ptkit.UnsupportedError, match=r"filters: no back end on this system .*emulator: QEMU 3.0.0 "
    ):
        backends.choose("auto", ("filters",), program.NATIVE)


@pytest.mark.usefixtures("no_pt")
def test_back_end_that_lacks_an_option_names_another() -> None:
    for name, value in (
        ("filters", ["filter main"]),
        ("triggers", ["stop at main"]),
        ("ring", "1M"),
    ):
        with pytest.raises(ptkit.ConfigError, match=f"'step': it has no {name}; use 'emulator'"):
            ptkit.Recorder(["true"], backend="step", **{name: value}).run()  # type: ignore[arg-type]
    with pytest.raises(ptkit.UnsupportedError, match="it does not run programs for 32-bit x86; use 'step'"):
        backends.choose("emulator", (), program.I386)


@pytest.mark.usefixtures("no_pt")
def test_programs_for_other_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    foreign = _elf(tmp_path / "foreign", 183)
    script = tmp_path / "script"
    script.write_text(f"#!{foreign} -x\n")
    script.chmod(0o755)
    for name in (foreign, script):
        for backend in ("auto", "emulator", "step"):
            with pytest.raises(ptkit.UnsupportedError, match="a program for AArch64; only x86-64"):
                ptkit.Recorder([name], tmp_path / "x.ptk", backend=backend).run()
    assert main(["record", "-o", str(tmp_path / "x.ptk"), "--", str(foreign)]) == 2
    assert "ptkit record: error: argv: this is a program for AArch64" in capsys.readouterr().err
    assert not (tmp_path / "x.ptk").exists()


def test_machine_of_a_program_is_read(tmp_path: Path) -> None:
    for name, machine, bits, big_endian, expected in (
        ("native", 62, 64, False, program.NATIVE),
        ("small", 3, 32, False, program.I386),
        ("x32", 62, 32, False, "x32"),
        ("power", 21, 64, True, "PowerPC"),
        ("odd", 4711, 64, False, "ELF machine 4711"),
    ):
        path = _elf(tmp_path / name, machine, bits=bits, big_endian=big_endian)
        assert program.machine_of(os.fsencode(path)) == expected
    scripts = {"text": b"echo hi\n", "empty": b"", "no": b"#!\n", "gone": b"#! /no/such/thing\n"}
    scripts["self"] = b"#!" + os.fsencode(tmp_path / "self") + b"\n"
    scripts["sh"] = b"#! " + os.fsencode(tmp_path / "native") + b" -e\n"
    for name, content in scripts.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
        expected = {"sh": program.NATIVE, "gone": program.UNKNOWN, "self": program.UNKNOWN}.get(
            name, program.UNSUPPORTED
        )
        assert program.machine_of(os.fsencode(tmp_path / name)) == expected, name


def test_programs_that_cannot_be_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for name, words in (
        (str(tmp_path), "is a folder"),
        (str(plain), "is not permitted to run: it is not executable; use chmod"),
        (str(tmp_path / "gone"), "there is no program"),
        ("no-such-program", "check the name and PATH"),
    ):
        with pytest.raises(ptkit.ConfigError, match=words):
            ptkit.Recorder([name]).run()


def test_no_working_back_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_runs_programs", lambda: False)
    monkeypatch.setattr(backends.perf, "find", lambda what="packets": BackendProbe(driver.NO_PT, "another"))
    assert not any(one.available for one in capture.probe())
    with pytest.raises(ptkit.UnsupportedError, match="`ptkit doctor` says what each one lacks"):
        backends.choose("auto", (), program.NATIVE)


@pytest.fixture
def yama(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Sets kernel.yama.ptrace_scope, and which capabilities this process has."""

    def set_them(scope: int, capabilities: int) -> None:
        texts = {"ptrace_scope": f"{scope}\n", "status": f"Name:\tx\nCapEff:\t{capabilities:016x}\n"}
        real = Path.read_text
        monkeypatch.setattr(
            Path, "read_text", lambda path, **more: texts.get(path.name) or real(path, **more)
        )

    monkeypatch.setattr(backends, "_runs_programs", lambda: True)
    return set_them


def test_step_says_that_ptrace_is_off(yama: Callable[[int, int], None]) -> None:
    yama(3, -1 & 2**41 - 1)
    found = next(one for one in capture.probe() if one.name == "step")
    assert found.missing == "ptrace is not permitted (kernel.yama.ptrace_scope = 3)"
    assert found.remedy == "boot without that setting, or use emulator"
    with pytest.raises(ptkit.UnsupportedError, match="ptrace is not permitted"):
        ptkit.Recorder(["true"], backend="step").run()


def test_without_ptrace_processors_record_what_runs_already(
    yama: Callable[[int, int], None], fake_qemu: FakeQemu, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_qemu()
    monkeypatch.setattr(backends.perf, "find", lambda what="packets": BackendProbe(abilities="filters"))
    yama(2, 0)
    perf = next(one for one in capture.probe() if one.name == "perf")
    assert perf.available
    assert perf.detail.endswith(
        "filters; it cannot start programs, as ptrace is not permitted (kernel.yama.ptrace_scope = 2); "
        "run with the capability CAP_SYS_PTRACE, or set it to 1"
    )
    assert options.plan_of([], {"pid": 1}).backend == "perf"
    plan = options.plan_of(["true"], {})
    assert plan.backend == "emulator"
    assert "perf: it cannot start programs" in plan.reason
    with pytest.raises(ptkit.UnsupportedError, match=r"'perf': it cannot start .*CAP_SYS_PTRACE.*'emulator'"):
        options.plan_of(["true"], {"backend": "perf"})
    yama(2, 1 << 19)  # CAP_SYS_PTRACE
    assert options.plan_of(["true"], {}).backend == "perf"
    yama(1, 0)
    assert options.plan_of(["true"], {}).backend == "perf"


# ---- arguments of the core


@pytest.mark.usefixtures("no_pt")
def test_defaults_depend_on_the_back_end() -> None:
    emulator = options.plan_of(["true"], {}).arguments
    assert not {"timing", "mtc_period"} & set(emulator)
    assert emulator["plugin"] == b"/plugin.so"
    assert emulator["qemu"].endswith(b"fake-qemu")
    step = options.plan_of(["true"], {"backend": "step"}).arguments
    assert step == {"backend": "step", "argv": [b"true"]}
    assert default_timing("step") == (("tsc", "mtc", "cyc"), 8)
    assert all(default_timing(name) == (("tsc", "mtc"), 3) for name in ("perf", "driver", "emulator"))
    for timing, expected in (
        ((), []),
        ("none", []),  # words of the command line
        ("cyc", ["cyc"]),
        ("tsc,mtc", ["tsc", "mtc"]),
    ):
        chosen = options.plan_of(["true"], {"timing": timing}).arguments
        assert chosen["timing"] == expected


@pytest.mark.usefixtures("no_pt")
def test_special_options_reach_the_core() -> None:
    arguments: dict[str, Any] = options.plan_of(
        ["true"],
        {
            "filters": [ptkit.Filter.function("main", "later.so"), "stop 0x10 @ a.out"],
            "triggers": ["snapshot on USR1 x2", "start at work x3 @ later.so"],
            "ring": "64M",
            "redact": True,
            "max_instructions": 7,
        },
    ).arguments
    assert arguments["filters"] == [
        ("filter", b"later.so", "main", 0, 0),
        ("stop", b"a.out", "", 16, 16),
    ]
    assert arguments["triggers"] == [
        ("signal", "snapshot", b"", "", 0, 10, 2),
        ("symbol", "start", b"later.so", "work", 0, 0, 3),
    ]
    assert (arguments["ring"], arguments["redact"], arguments["max_instructions"]) == (
        64 << 20,
        True,
        7,
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ring": "lots"}, "ring='lots': write a number of bytes"),
        ({"ring": 100}, "ring=100: "),
        ({"ring": "1X"}, "ring='1X'"),
        ({"redact": 1}, "redact=1 must be True or False"),
        ({"triggers": "snapshot on USR1"}, "a snapshot keeps what is in the ring"),
        ({"filters": 5}, "filters: expected ptkit.Filter objects or texts, found 5"),
        ({"filters": [None]}, "found None"),
        ({"triggers": [5]}, "triggers: expected ptkit.Trigger objects or texts, found 5"),
    ],
)
def test_special_options_out_of_range(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ptkit.ConfigError, match=words):
        options.plan_of(["true"], wrong)  # type: ignore[arg-type]


def test_sizes_have_units() -> None:
    for text, size in (
        ("65536", 65536),
        ("64K", 65536),
        ("64 KiB", 65536),
        ("2g", 2 << 30),
        ("1MB", 1 << 20),
    ):
        assert read_option("ring", text) == size


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="unknown option 'colour'; there are backend, "):
        ptkit.Recorder(["true"], colour="red").run()  # type: ignore[call-arg]
