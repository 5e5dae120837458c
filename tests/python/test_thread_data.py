"""Thread-local data of the core is allocated with each thread: too little memory later is an exception."""

from __future__ import annotations

import ctypes
import sys
import threading

import pytest

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
