"""Code that the user gives: ELF and PE files, dumps of memory, and bytes; of all processes, or of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ptkit import _core
from ptkit.errors import ConfigError, FormatError, OpenError
from ptkit.support.arguments import LAST_ADDRESS, integer
from ptkit.support.inputs import open_regular, read_regular
from ptkit.trace.opening.bundle import checked_path, is_buffer, is_path

if TYPE_CHECKING:
    from typing import TypeAlias

    from typing_extensions import Buffer

    PathLike: TypeAlias = str | os.PathLike[str]
    #: A path, (path, load address), (bytes, address), or {address: bytes}. A third member of a tuple is the
    #: CR3 of the process that has the image, a fourth one the layout of a PE file.
    ImageItem: TypeAlias = (
        PathLike
        | tuple[PathLike | Buffer, int | None]
        | tuple[PathLike | Buffer, int | None, int | None]
        | tuple[PathLike | Buffer, int | None, int | None, str | None]
        | Mapping[int, Buffer]
    )

__all__ = ["LAYOUTS", "CodeFile", "add_images"]

#: Layouts of PE files: as on disk, and as in memory (dumps).
LAYOUTS = ("file", "memory")

_ELF_MAGIC = b"\x7fELF"
_PE_MAGIC = b"MZ"
_PE_POINTER_AT = 0x3C  # where the DOS header says where that is:
_PE_SIGNATURE = b"PE\0\0"
_IMAGES = "paths, (path, address), (bytes, address), {address: bytes}"
_FORMS = "(path,), (path, address), (path, address, cr3) or (path, address, cr3, layout)"


@dataclass(frozen=True)
class CodeFile:
    """A file with code as it lay in memory, whatever its bytes look like: ``--code``."""

    path: str


def add_images(bundle: _core.Bundle, images: Sequence[ImageItem] | Mapping[int, Buffer] | None) -> None:
    """Add code: ELF and PE files, files of raw bytes at an address, bytes at an address.

    Raises
    ------
    OpenError, FormatError, ConfigError
        If a file cannot be read, is no x86 ELF or PE file, an address is missing or out of range, or two
        images overlap in one address space.
    """
    if images is None:
        return
    if isinstance(images, (Mapping, str, os.PathLike)) or is_buffer(images):
        images = [cast(Any, images)]
    if not isinstance(images, Iterable):
        raise ConfigError(f"images={images!r} must be a list of {_IMAGES}")
    given = _GivenImages(bundle)
    architecture = _other_architecture(bundle)
    for item in _items(images):
        if architecture:
            raise ConfigError(
                f"images: the recording is of {architecture}, and code is decoded as that of x86"
            )
        given.add(item)
    given.finish()


@dataclass(frozen=True)
class _Item:
    image: Any  # a path, a CodeFile, or bytes
    address: int | None = None
    cr3: int | None = None
    layout: str | None = None

    @property
    def name(self) -> str:
        if isinstance(self.image, CodeFile):
            return self.image.path
        return os.fspath(self.image) if is_path(self.image) else f"the bytes at {self.address:#x}"

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for items that are the same, given twice."""
        image = self.image if isinstance(self.image, CodeFile) or is_path(self.image) else id(self.image)
        return image, self.address, self.cr3, self.layout


def _items(images: Iterable[Any]) -> Iterator[_Item]:
    for item in images:
        if isinstance(item, Mapping):
            for address, data in item.items():
                yield _Item(_checked_code(data), _checked_address(address))
        elif isinstance(item, tuple):
            if not 1 <= len(item) <= 4:
                raise ConfigError(f"images: {item!r} is none of {_FORMS}")
            image, address, cr3, layout = [*item, None, None, None][:4]
            yield _Item(
                image,
                None if address is None else _checked_address(address),
                None if cr3 is None else integer("images: CR3", cr3, 0, LAST_ADDRESS),
                layout,
            )
        else:
            yield _Item(item)


class _GivenImages:
    """Adds items to a bundle, and compares where they lie."""

    def __init__(self, bundle: _core.Bundle) -> None:
        self._bundle = bundle
        self._recorded = bundle.code_count
        self._owners: list[_Item] = []  # of the regions that were added
        self._known: set[tuple[Any, ...]] = set()
        self._files_of_code: list[int] = []

    def add(self, item: _Item) -> None:
        if item.key in self._known:
            return
        self._known.add(item.key)
        if item.layout is not None and item.layout not in LAYOUTS:
            raise ConfigError(f"images: layout={item.layout!r} is none of {', '.join(LAYOUTS)}")
        if item.cr3 is not None:
            self._check_spaces(item)
        if isinstance(item.image, CodeFile) or not is_path(item.image):
            self._add_code(item)
        else:
            self._add_file(item)
        self._owners += [item] * (self._bundle.code_count - self._recorded - len(self._owners))

    def finish(self) -> None:
        regions = self._bundle.code[self._recorded :]
        spans = sorted(
            (space, address, address + size - 1, number)
            for number, (address, size, _, space, _) in enumerate(regions)
            if size
        )
        reach: tuple[int, int, int] | None = None  # space, last address, and item of what reaches farthest
        for space, first, last, number in spans:
            if reach is not None and reach[0] == space and first <= reach[1]:
                if self._owners[number].key != self._owners[reach[2]].key:
                    self._refuse(self._owners[reach[2]], self._owners[number], first, min(last, reach[1]))
                if last <= reach[1]:
                    continue
            reach = space, last, number
        self._bundle.order_below_page_dumps(self._recorded, self._files_of_code)

    def _refuse(self, one: _Item, other: _Item, first: int, last: int) -> None:
        where, remedy = (
            (
                f" in the address space of CR3 {other.cr3:#x}",
                "give one of them, or another address, or the CR3 of another process",
            )
            if other.cr3 is not None
            else (
                "",
                "give one of them, or another address; or, if they are of two processes, the CR3 of each: "
                "--image PATH@ADDRESS,cr3=VALUE (--code, too), images=[(path, address, cr3)]",
            )
        )
        raise ConfigError(
            f"images: {one.name} and {other.name} overlap{where} at {first:#x}-{last:#x}: {remedy}"
        )

    def _check_spaces(self, item: _Item) -> None:
        """Refuse a CR3 where processes are known, and their CR3 are not: it would name another process."""
        spaces = self._bundle.spaces[1:]
        if spaces and all(cr3 is None for _, cr3 in spaces):
            raise ConfigError(
                f"images: {item.name}: the recording names its processes by PID, and the CR3 of none; "
                f"give the image without CR3 {item.cr3:#x}: what the recording maps in a process comes first"
            )

    def _add_code(self, item: _Item) -> None:
        data: Any = item.image
        name = ""
        if isinstance(data, CodeFile):
            name = data.path
            try:
                data = read_regular(name)
            except OpenError as error:
                raise OpenError(f"--code {error}") from None
        elif not is_buffer(data):
            raise ConfigError(f"images: {data!r} is not one of {_IMAGES}")
        if item.address is None:
            raise ConfigError("images: bytes need an address: {address: bytes} or (bytes, address)")
        if item.layout is not None:
            raise ConfigError(f"images: {item.name}: only files have a layout; bytes lie as they are")
        file = self._bundle.add_code(item.address, data, cr3=item.cr3, name=os.fsencode(name))
        if file >= 0:
            self._files_of_code.append(file)

    def _add_file(self, item: _Item) -> None:
        path = checked_path(item.image, "image")
        if Path(path).is_dir():
            raise FormatError(f"{path}: is a folder; give the ELF or PE file")
        with open_regular(path) as file:
            magic = file.read(len(_ELF_MAGIC))
            is_pe = magic.startswith(_PE_MAGIC) and _has_pe_header(file)
        if item.layout is not None and not is_pe:
            raise FormatError(f"{path}: is no PE file, and only these have a layout; leave it out")
        if magic == _ELF_MAGIC or is_pe:
            in_memory = None if item.layout is None else item.layout == "memory"
            self._bundle.add_image(
                os.fsencode(path), load_address=item.address, cr3=item.cr3, in_memory=in_memory
            )
        elif item.address is not None:
            self._bundle.add_code(item.address, read_regular(path), cr3=item.cr3)
        else:
            raise FormatError(
                f"{path}: is neither an ELF nor a PE file (starts with {magic.hex(' ') or 'nothing'}); "
                "for raw code give its address: (path, address)"
            )


def _other_architecture(bundle: _core.Bundle) -> str | None:
    """Architecture of a recording, if that is not x86."""
    recording = json.loads(bundle.metadata or "{}")
    return recording.get("architecture") if isinstance(recording, dict) else None


def _checked_address(address: Any) -> int:
    return integer("images: address", address, 0, LAST_ADDRESS)


def _checked_code(data: Any) -> Any:
    if not is_buffer(data):
        raise ConfigError(f"images: code must be bytes, not {type(data).__name__} ({data!r})")
    return data


def _has_pe_header(file: BinaryIO) -> bool:
    """Whether bytes are a PE file, not code that begins as one by chance."""
    file.seek(_PE_POINTER_AT)
    file.seek(int.from_bytes(file.read(4), "little"))
    return file.read(len(_PE_SIGNATURE)) == _PE_SIGNATURE
