"""The recorder with the driver's test build, and the program that is recorded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from debian import Missing
from mingw import compile_program
from small_pe import pe
from windows_client import BUILD, link_with_double
from windows_driver import INCLUDES, TEST_INCLUDES, TESTS
from windows_recording import BASE, IMAGE_BYTES, Recorder, wait_for
from wine import SECONDS, Wine, private_wine

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def driven_wine() -> Iterator[Wine]:
    """A prefix with the driver: in the one of other tests it is not loaded, or they load it."""
    with private_wine() as prefix:
        yield prefix


@pytest.fixture(scope="session")
def recorder(driven_wine: Wine, recorder_program: Path, model_driver: Path) -> Iterator[Recorder]:
    """ptkit-capture.exe as it is shipped. ETW refuses in Wine."""
    wine = driven_wine
    shutil.copy(model_driver, wine.folder)
    program = compile_program(
        wine.folder / "traced.exe", *INCLUDES, *TEST_INCLUDES, HERE / "traced_program.c",
        TESTS / "device_windows.c", TESTS / "service.c", TESTS / "kernel" / "host_windows.c",
        "-ladvapi32", "-lntdll", "-Wl,--image-base,0x180000000",
    )  # fmt: skip
    found = Recorder(wine, recorder_program, program)
    held = wine.folder / "held"
    holder = wine.begin(wine.folder / "holder", program, "hold", str(held), environment={})
    try:
        wait_for(held, holder)
        for number, image in (("0", found.image), ("4", found.other_image)):
            wine.run(program, "code", number, str(wine.folder / "code"))
            image.write_bytes(pe((wine.folder / "code").read_bytes(), BASE, IMAGE_BYTES))
        yield found
    finally:
        held.unlink(missing_ok=True)
        assert holder.wait(SECONDS) == 0, (wine.folder / "holder").read_text(errors="replace")


@pytest.fixture(scope="session")
def with_events(recorder: Recorder) -> Recorder:
    """The recorder with ETW's functions of etw_double.c, which deliver the model's schedule."""
    folder = recorder.wine.folder
    library = folder / "libetw_double.a"
    compile_program(
        folder / "etw_double.dll", "-shared", HERE / "etw_double.c", f"-Wl,--out-implib,{library}"
    )
    try:
        program = link_with_double(BUILD, library, folder / "capture-double.exe")
    except Missing as missing:
        pytest.fail(str(missing), pytrace=False)
    return Recorder(recorder.wine, program, recorder.program)


@pytest.fixture(scope="session")
def press_ctrl_c(driven_wine: Wine) -> Path:
    """The program that presses Ctrl-C."""
    return compile_program(driven_wine.folder / "press_ctrl_c.exe", "-municode", HERE / "press_ctrl_c.c")
