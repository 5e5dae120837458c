"""Thread-local data of the core is allocated with each thread: too little memory later is an exception."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ptkit
from ptkit import _core

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the loader is asked")


class Library(ctypes.Structure):
    """struct dl_phdr_info, from link.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("adds", ctypes.c_ulonglong),
        ("subs", ctypes.c_ulonglong),
        ("tls_module", ctypes.c_size_t),
        ("tls_data", ctypes.c_void_p),
    ]


def thread_data() -> dict[str, bool]:
    """Libraries with thread-local data, and whether this thread has it."""
    found: dict[str, bool] = {}

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)
    def visit(library: object, size: int, data: object) -> int:
        one = library.contents  # type: ignore[attr-defined]
        if one.tls_module:
            found[one.name.decode()] = one.tls_data is not None
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(visit, None)
    return found


def test_a_new_thread_has_all_of_it() -> None:
    found: dict[str, bool] = {}
    thread = threading.Thread(target=lambda: found.update(thread_data()))
    thread.start()
    thread.join()
    ours = {name: there for name, there in found.items() if name == _core.__file__ or "libstdc++" in name}
    assert _core.__file__ in ours
    assert all(ours.values()), ours


# Each child may take so much more than it has. Between nothing and enough, any thread may fail.
LIMITS = """
import os, resource, warnings
import ptkit
from conftest import LoopProgram

warnings.simplefilter("ignore")

def read(trace):
    for table in (trace.branches, trace.blocks, trace.functions, trace.calls, trace.edges, trace.packets):
        len(table())
    trace.index(save=False)

def child(limit):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + limit
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    try:
        read(ptkit.open(path, threads=2))
    except (MemoryError, ptkit.OutOfMemoryError):
        return 3
    return 0

path = os.environ["TRACE"]
ptkit.open(LoopProgram.stream(100000), images=LoopProgram.images()).save(path)
read(ptkit.open(LoopProgram.stream(20), images=LoopProgram.images()))  # loads modules
ptkit.open(path)  # loads readers
statuses = []
for step in range(40):
    process = os.fork()
    if process == 0:
        os._exit(child(step * 2_000_000))
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
print(statuses)
assert set(statuses) == {0, 3}
"""


def test_too_little_memory_is_an_exception_at_every_limit(tmp_path: Path) -> None:
    paths = [str(Path(ptkit.__file__).parents[1]), str(Path(__file__).resolve().parents[1])]
    done = subprocess.run(
        [sys.executable, "-c", LIMITS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TRACE": str(tmp_path / "trace.ptk")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_core_is_loaded_after_libraries_that_threw_exceptions() -> None:
    """Their data of the C++ library is elsewhere since then."""
    script = (
        "import ctypes\n"
        "library = ctypes.CDLL('libstdc++.so.6')\n"
        "library.__cxa_get_globals()\n"  # as a thrown exception does first
        "from ptkit import _core\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
