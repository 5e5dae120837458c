"""Code that drivers compile needs no C library, no wide registers and no headers but its own."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMON = ROOT / "kernel" / "common"
WARNINGS = (
    "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wmissing-prototypes -Wundef -Werror"
)

# A substitute for the kernel's own header of types.
KERNEL_TYPES = """
#pragma once
typedef _Bool bool;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef unsigned long size_t;
typedef unsigned long uintptr_t;
enum { false, true };
#define NULL ((void *)0)
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_common_code_compiles_with_options_of_a_kernel(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is missing")
    (tmp_path / "linux").mkdir()
    (tmp_path / "linux" / "types.h").write_text(KERNEL_TYPES)
    sources = sorted(COMMON.glob("*.c"))
    assert len(sources) >= 4
    for source in sources:
        made = tmp_path / f"{source.stem}.o"
        options = ["-std=c11", "-O2", "-ffreestanding", "-nostdinc", "-D__KERNEL__", "-mgeneral-regs-only"]
        command = [compiler, *options, *WARNINGS.split(), f"-I{tmp_path}", f"-I{ROOT / 'kernel' / 'include'}"]
        done = subprocess.run(
            [*command, "-c", source, "-o", made], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        needed = subprocess.run(["nm", "-u", made], capture_output=True, text=True, check=True).stdout
        # Every kernel has these three; anything else must be of these files.
        foreign = set(re.findall(r"U (\w+)", needed)) - {"memcmp", "memcpy", "memset"}
        assert all(name.startswith("pt_") for name in foreign), foreign


def test_common_code_includes_only_its_own_headers() -> None:
    allowed = {"linux/types.h", "stdbool.h", "stddef.h", "stdint.h", "ptkit/rtit_regs.h", "ptkit/ptkit_abi.h"}
    allowed |= {path.name for path in COMMON.glob("*.[hd]*")}
    for path in COMMON.glob("*.[ch]"):
        for name in re.findall(r'#include ["<]([^">]+)', path.read_text()):
            assert name in allowed, f"{path.name} includes {name}"
