"""Calls of drivers that Wine's kernel has: the probe driver tries them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mingw import compile_driver, compile_program, imports_of
from wine import Wine, version

HERE = Path(__file__).resolve().parent
ABSENT, STUB, PRESENT = range(3)
# As enum probe_call of probe.h has them, in its order: what a driver wants, and the call.
CALLS = {
    "dpc": "KeInsertQueueDpc",
    "timer_dpc": "KeSetTimerEx",
    "timer": "KeSetTimerEx",
    "thread": "PsCreateSystemThread",
    "work_item": "IoQueueWorkItem",
    "pages": "MmAllocatePagesForMdl",
    "contiguous": "MmAllocateContiguousMemorySpecifyCache",
    "physical": "MmGetPhysicalAddress",
    "affinity": "KeSetSystemAffinityThreadEx",
    "irql": "KfRaiseIrql",
    "attach": "KeStackAttachProcess",
    "processes": "PsSetCreateProcessNotifyRoutineEx",
    "threads": "PsSetCreateThreadNotifyRoutine",
    "images": "PsSetLoadImageNotifyRoutine",
}
WORKS = {"timer_dpc", "timer", "thread", "work_item", "physical", "processes", "threads", "images"}
FOUND = {
    "KeInsertQueueDpc": PRESENT,
    "KeIpiGenericCall": ABSENT,
    "MmAllocatePagesForMdlEx": ABSENT,
    "MmFreePagesFromMdl": STUB,
    "IoCsqInitialize": PRESENT,
    "IoCsqInsertIrp": STUB,
    "KeQueryPerformanceCounter": PRESENT,
}


@dataclass
class Probe:
    """Output of the probe driver's client."""

    single: dict[str, list[int]] = field(default_factory=dict)
    presence: dict[str, int] = field(default_factory=dict)
    works: set[str] = field(default_factory=set)


def calls_of(driver: Path) -> set[str]:
    """Imports of a driver from the kernel."""
    imported = imports_of(driver)
    return imported["ntoskrnl.exe"] | imported.get("hal.dll", set())


@pytest.fixture(scope="module")
def probe(wine: Wine, model_driver: Path) -> Probe:
    """All that the probe driver finds out in one session from its load to its unload."""
    folder = HERE / "probe"
    driver = compile_driver(wine.folder / "probe.sys", folder / "driver.c")
    client = compile_program(wine.folder / "probe.exe", folder / "client.c", HERE / "service.c", "-ladvapi32")
    result = Probe()
    for line in wine.run(client, driver.name, *FOUND, *calls_of(model_driver)).splitlines():
        match line.split():
            case ["find", name, value]:
                result.presence[name] = int(value)
            case ["call", number, value]:
                if int(value):
                    result.works.add(list(CALLS)[int(number)])
            case [name, value]:
                result.single.setdefault(name, []).append(int(value))
    return result


def test_driver_is_loaded_opened_and_unloaded(probe: Probe) -> None:
    assert probe.single["loads"] == [0]
    assert probe.single["unloads"] == [0]
    assert probe.single["opens"] == [0, 2]  # ERROR_FILE_NOT_FOUND after the unload


def test_names_are_absent_stubs_or_present(probe: Probe) -> None:
    assert {name: probe.presence[name] for name in FOUND} == FOUND


def test_wine_has_what_the_shims_do_not_replace(model_driver: Path, probe: Probe) -> None:
    needed = calls_of(model_driver)
    assert len(needed) > 30
    assert {name for name in needed if probe.presence[name] != PRESENT} == set()


def test_calls_work_as_the_list_of_shims_says(probe: Probe) -> None:
    """A newer Wine may have more, and then shims are not needed."""
    missing = WORKS - probe.works
    assert missing == set()
    if version().startswith("8."):
        assert probe.works == WORKS


def test_notifications_are_registered_and_never_come(probe: Probe) -> None:
    """So the shims tell of processes, threads and images."""
    assert probe.single["notified"] == [0]


def test_clients_that_are_killed_send_no_cleanup(probe: Probe) -> None:
    """So a shim makes IRP_MJ_CLEANUP of IRP_MJ_CLOSE."""
    assert probe.single["cleaned"] == [0]
