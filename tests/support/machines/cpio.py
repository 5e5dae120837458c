"""Archives from which a kernel makes its first file system; making them needs no root."""

from __future__ import annotations

from pathlib import Path


class Archive:
    """A cpio archive (newc), which the kernel unpacks to its first file system."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._names: set[str] = set()

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """A file, with the folders above it."""
        self._add(name, data, 0o100000 | mode)

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add(name, target.encode(), 0o120777)

    def device(self, name: str, major: int, minor: int) -> None:
        """A character device."""
        self._add(name, b"", 0o020600, (major, minor))

    def folder(self, name: str) -> None:
        """An empty folder, with those above it."""
        for above in [*reversed(Path(name).parents), Path(name)]:
            if str(above) != "." and str(above) not in self._names:
                self._entry(str(above), b"", 0o040755)

    def bytes(self) -> bytes:
        """The whole archive."""
        self._entry("TRAILER!!!", b"", 0)
        return b"".join(self._parts)

    def _add(self, name: str, data: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> None:
        if name in self._names:
            return
        self.folder(str(Path(name).parent))
        self._entry(name, data, mode, device)

    def _entry(self, name: str, data: bytes, mode: int, device: tuple[int, int] = (0, 0)) -> None:
        self._names.add(name)
        words = (len(self._parts), mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
        head = "070701" + "".join(f"{word:08x}" for word in words) + name + "\0"
        self._parts.append(head.encode().ljust(len(head) + -len(head) % 4, b"\0"))
        self._parts.append(data.ljust(len(data) + -len(data) % 4, b"\0"))
