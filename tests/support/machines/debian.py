"""Debian packages and sources, by an apt configuration of our own: nothing is installed here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SOURCE_RELEASE = "trixie"  # the release with the sources of Bochs 3.0


class Missing(Exception):
    """Something that the emulated machine needs cannot be had here; says what."""


class Packages:
    """Downloads into `folder`, from the archives that this machine's own apt uses.

    Parameters
    ----------
    folder
        For apt's lists, downloads and unpacked packages; made if absent.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()  # apt takes other paths for those below its root
        self._options: list[str] = []

    def source_tarball(self, name: str) -> Path:
        """The upstream tarball of a source package; its SHA-256 comes from the signed index."""
        self._update()
        lines = self._run("apt-get", "source", "--print-uris", "--download-only", name).splitlines()
        for line in lines:
            if ".orig.tar." in line and line.startswith("'"):
                uri, filename, _, checksum = line.replace("'", "").split()
                return self._download(uri, filename, checksum)
        raise Missing(f"apt's index of {SOURCE_RELEASE} names no source of {name}")

    def unpack(self, into: Path, *names: str) -> Path:
        """Unpacks packages of this machine's release, without dependencies, to `into`, if that is absent."""
        if into.exists():
            return into
        self._update()
        unfinished = into.with_name(into.name + ".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        # Not `install --print-uris`: that names no checksums that are of use.
        for line in self._run("apt-get", "download", "--print-uris", *names).splitlines():
            uri, filename, _, checksum = line.replace("'", "").split()
            self._run("dpkg-deb", "-x", str(self._download(uri, filename, checksum)), str(unfinished))
        return unfinished.rename(into)

    def unpack_closure(self, into: Path, *names: str) -> Path:
        """Unpack packages with all that they depend on, as for a machine on which nothing is installed."""
        if into.exists():
            return into
        self._update()
        nothing = self.folder / "no-status"
        nothing.touch()
        planned = self._run(
            "apt-get", "install", "--simulate", "--no-install-recommends",
            "-o", f"Dir::State::status={nothing}", *names,
        )  # fmt: skip
        needed = [line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")]
        return self.unpack(into, *needed)

    def depends(self, name: str, prefix: str) -> str:
        """The first package beginning with `prefix` that package `name` depends on."""
        self._update()
        for line in self._run("apt-cache", "depends", name).splitlines():
            kind, _, other = line.strip().partition(": ")
            if kind == "Depends" and other.startswith(prefix):
                return other
        raise Missing(f"package {name} depends on no {prefix}*")

    def _download(self, uri: str, filename: str, checksum: str) -> Path:
        path = self.folder / "files" / filename
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            unfinished = path.with_name(filename + ".part")
            self._run("/usr/lib/apt/apt-helper", "download-file", uri, str(unfinished), checksum)
            unfinished.rename(path)
        return path

    def _update(self) -> None:
        """Makes the configuration and fetches the lists, once."""
        if self._options:
            return
        (self.folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (self.folder / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
        sources = self.folder / "sources.list"
        wanted = self._sources()
        options = {
            "Dir::State": self.folder,
            "Dir::State::status": "/var/lib/dpkg/status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": sources,
            "Dir::Etc::sourceparts": "/dev/null",
            "APT::Sandbox::User": "root",
        }
        self._options = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        if not sources.exists() or sources.read_text() != wanted:
            sources.write_text(wanted)
            try:
                self._run("apt-get", "update")
            except Missing:
                sources.unlink()
                raise

    def _sources(self) -> str:
        """Lines for the archives of this machine's release, and for the sources of SOURCE_RELEASE."""
        release = _codename()
        listed = self._run(
            "apt-get",
            "indextargets",
            "--format",
            "$(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Identifier: Packages",
        )
        ours = [line.split() for line in listed.splitlines() if line.split()[1].startswith(release)]
        signed = f"[signed-by={KEYRING}]"
        lines = [f"deb {signed} {uri} {suite} {part}" for uri, suite, part in ours if part == "main"]
        bases = [uri for uri, suite, part in ours if suite == release and part == "main"]
        if not bases:
            raise Missing(f"this machine's apt knows no archive of Debian {release}")
        return "\n".join([*lines, f"deb-src {signed} {bases[0]} {SOURCE_RELEASE} main", ""])

    def _run(self, program: str, *arguments: str) -> str:
        try:
            options = self._options if "apt" in program else []
            done = subprocess.run([program, *options, *arguments], capture_output=True, text=True, check=True)
        except FileNotFoundError:
            raise Missing(
                f"{program} is not on this system: the emulated machine is built on Debian"
            ) from None
        except subprocess.CalledProcessError as failed:
            raise Missing(f"{program} {' '.join(arguments)}: {failed.stderr.strip()}") from None
        return done.stdout


def _codename() -> str:
    for line in Path("/etc/os-release").read_text().splitlines():
        key, _, value = line.partition("=")
        if key == "VERSION_CODENAME":
            return value.strip('"')
    raise Missing("/etc/os-release names no release")
