#!/usr/bin/env python3
"""Writes python/ptkit/_core_kinds.pyi: the enumerations of the core, as the extension module has them.

Their members come from the kinds.def of src, src/packet/packets.def and src/base/status.def. With `--check`:
fails if the file is not up to date.
"""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "python" / "ptkit" / "_core_kinds.pyi"

HEAD = '"""Enumerations of the core. Made by `tools/make_stub.py`: do not edit."""\n\nimport enum\n'


def text_of(core: ModuleType) -> str:
    """The whole file."""
    kinds = [one for _, one in sorted(vars(core).items()) if isinstance(one, enum.EnumMeta)]
    parts = [HEAD]
    for kind in kinds:
        base = "IntFlag" if issubclass(kind, enum.IntFlag) else "IntEnum"
        members = "".join(f"    {name} = {int(one)}\n" for name, one in kind.__members__.items())
        parts.append(f"class {kind.__name__}(enum.{base}):\n{members}")
    return "\n".join(parts)


def main() -> int:
    """Write or check the file."""
    sys.path.append(str(ROOT / "python"))  # where no ptkit is installed: the one built in the tree
    from ptkit import _core

    text = text_of(_core)
    if "--check" not in sys.argv[1:]:
        STUB.write_text(text)
        return 0
    if STUB.exists() and STUB.read_text() == text:
        return 0
    print(f"{STUB.relative_to(ROOT)} is not up to date: run tools/make_stub.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
