"""``ptkit cache``: decoded code that is kept from one process to the next."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

from ptkit import _core
from ptkit.cli import common
from ptkit.cli.json_values import print_document

HELP = "show or clear the folder in which decoded code is kept"
DESCRIPTION = (
    "Instructions that were decoded of files with a build-id are kept in a folder, so that the next trace of "
    "the same libraries needs less time. PTKIT_CACHE names another folder; if it is empty, nothing is kept."
)
EXAMPLES = """examples:
  ptkit cache
  ptkit cache --clear
  PTKIT_CACHE= ptkit branches sort.ptk"""


@dataclass(frozen=True)
class CacheFile:
    """A file of the folder: code of one file in one mode."""

    build_id: str
    mode: str
    size_bytes: int


def cache_files(folder: Path) -> list[CacheFile]:
    """What is kept, largest first; files that vanish meanwhile are left out."""
    found = []
    for path in sorted(folder.glob("*.code")):
        build_id, _, mode = path.stem.rpartition("-")
        try:
            found.append(CacheFile(build_id, mode, path.stat().st_size))
        except OSError:
            continue
    return sorted(found, key=lambda file: -file.size_bytes)


def clear(folder: Path) -> int:
    """Remove every file that is kept, and what writers that died left; gives how many."""
    removed = 0
    for path in folder.glob("*.code*"):
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        removed += 1
    return removed


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the verb's options."""
    parser.add_argument("--clear", action="store_true", help="remove what is kept")
    common.add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    """Print the folder and its files, or clear it."""
    path = _core.code_folder()
    if not path:
        if options.json:
            print_document("cache", {"folder": None, "files": [], "size_bytes": 0})
        else:
            print("no decoded code is kept: PTKIT_CACHE is empty, or there is no home folder")
        return 0
    folder = Path(path)
    removed = clear(folder) if options.clear else None
    files = cache_files(folder)
    size = sum(file.size_bytes for file in files)
    if options.json:
        rows = {"folder": path, "files": [asdict(file) for file in files], "size_bytes": size}
        print_document("cache", rows if removed is None else {**rows, "removed": removed})
        return 0
    if removed is not None:
        print(f"removed {removed} files from {path}")
        return 0
    for file in files:
        print(f"{file.size_bytes:>12,} bytes  {file.mode}-bit  {file.build_id}")
    print(f"{size:>12,} bytes  in {len(files)} files of {path}")
    return 0
