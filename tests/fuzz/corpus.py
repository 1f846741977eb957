"""The inputs that are kept, in ``corpus/<target>.tar.xz``, and the inputs of crashes.

A corpus is what libFuzzer leaves of all inputs found: the smallest ones that together cover what
all of them cover. An input of a crash is a file of its own, in ``corpus/<target>-crashes``, named
after what was wrong.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CORPUS = Path(__file__).parent / "corpus"


def archive_of(target: str) -> Path:
    """Return the archive of a target's corpus, which need not be there."""
    return CORPUS / f"{target}.tar.xz"


def kept_inputs(target: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every kept input, those of crashes first."""
    for path in sorted((CORPUS / f"{target}-crashes").glob("*")):
        yield path.name, path.read_bytes()
    if archive_of(target).is_file():
        with tarfile.open(archive_of(target), "r:xz") as archive:
            for member in archive:
                stream = archive.extractfile(member)
                if stream is not None:
                    yield member.name, stream.read()


def write_inputs(directory: Path, inputs: Iterable[bytes]) -> None:
    """Write the inputs as files that are named as libFuzzer names them."""
    directory.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (directory / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def pack(target: str, directory: Path) -> int:
    """Make the files of ``directory`` the target's corpus; return the archive's size in bytes."""
    with tarfile.open(archive_of(target), "w:xz", preset=9) as archive:
        # Inputs that are alike compress better side by side.
        for path in sorted(directory.iterdir(), key=lambda path: path.read_bytes()):
            data = path.read_bytes()
            member = tarfile.TarInfo(path.name[:12])
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return archive_of(target).stat().st_size
