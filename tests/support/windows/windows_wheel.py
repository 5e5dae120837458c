"""A wheel of ptkit for Windows, of files that are built already."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

from debian import Missing

ROOT = Path(__file__).resolve().parents[3]
TAG = "cp311-cp311-win_amd64"
_WHEEL = "Wheel-Version: 1.0\nGenerator: ptkit\nRoot-Is-Purelib: false\n"
_COMPILED = {".so", ".pyc"}
# Software that is compiled in, and its licences in the folder of its sources.
LICENCES = {
    "elfutils": ("COPYING-GPLV2", "COPYING-LGPLV3"),
    "libzstd": ("LICENSE",),
    "xz-utils": ("COPYING", "COPYING.0BSD"),
    "zlib": ("LICENSE",),
    "zycore-c": ("LICENSE",),
    "zydis": ("LICENSE",),
}


def _field(project: str, name: str) -> str:
    """The value of a line in pyproject.toml."""
    found = re.search(rf"^{name} = (?:\"(.+)\"|\[(.+)\])$", project, re.M)
    if found is None:
        raise Missing(f"pyproject.toml has no line '{name} = ...'")
    return str(found[1] or found[2])


def _metadata(project: str) -> str:
    lines = ["Metadata-Version: 2.1", "Name: ptkit", f"Version: {_field(project, 'version')}"]
    lines += [f"Summary: {_field(project, 'description')}", "License: MIT", "Requires-Python: ==3.11.*"]
    lines += [f"Requires-Dist: {one}" for one in re.findall(r'"([^"]+)"', _field(project, "dependencies"))]
    return "\n".join(lines) + "\n"


def package_files(folder: Path = ROOT / "python" / "ptkit") -> dict[str, bytes]:
    """Files of the package without what is compiled, by path in the wheel."""
    return {
        f"ptkit/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in _COMPILED and path.name != "ptkit-parser"
    }


def _licences(sources: Path) -> dict[str, bytes]:
    files = {name: (ROOT / name).read_bytes() for name in ("LICENSE", "THIRD_PARTY.md")}
    for software, names in LICENCES.items():
        files |= {f"{software}/{name}": (sources / software / name).read_bytes() for name in names}
    return files


def _record(contents: dict[str, bytes], own_path: str) -> bytes:
    lines = []
    for path, data in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{own_path},,", ""]).encode()


def make_wheel(folder: Path, module: Path, sources: Path) -> Path:
    """Writes a wheel of the package, the extension module, and licences of what is compiled into it.

    Parameters
    ----------
    folder
        Where the wheel is written; made if absent.
    module
        The extension module.
    sources
        Unpacked sources of what it is linked with, by name of Debian's packages.
    """
    project = (ROOT / "pyproject.toml").read_text()
    name = f"ptkit-{_field(project, 'version')}"
    info = f"{name}.dist-info"
    contents = {**package_files(), f"ptkit/{module.name}": module.read_bytes()}
    contents |= {f"{info}/licenses/{path}": data for path, data in _licences(sources).items()}
    contents |= {
        f"{info}/METADATA": _metadata(project).encode(),
        f"{info}/WHEEL": f"{_WHEEL}Tag: {TAG}\n".encode(),
        f"{info}/entry_points.txt": b"[console_scripts]\nptkit = ptkit.cli:main\n",
    }
    contents[f"{info}/RECORD"] = _record(contents, f"{info}/RECORD")
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{TAG}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
    return wheel
