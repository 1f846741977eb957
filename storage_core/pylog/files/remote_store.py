"""What pylog needs of a store: listings, and files that are read range by range."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from pylog.files.writable_file import BytesLike

_SIZE_BITS = 48  # stores take no file of 256 TiB


class ListedFile(NamedTuple):
    """One entry of a listed directory, by the last component of its key."""

    name: str
    size_bytes: int
    is_directory: bool
    file_id: int = 0


class RemoteVersion(NamedTuple):
    """What a store says of a file when it is opened.

    ``entity_tag`` differs between two contents of the file; "" where the store has no such thing.
    """

    size_bytes: int
    entity_tag: str
    file_id: int


class RangedFile(Protocol):
    """An open file of a store."""

    def read_at(self, length: int, position: int) -> BytesLike:
        """Return the bytes of a range in one request; fewer if the file is shorter."""
        ...

    def close(self) -> None:
        """Release it; a second call does nothing."""
        ...


class RemoteStore(Protocol):
    """A file system of a library, under the paths of that library.

    Its methods raise what the library does, `pylog.files.store_errors` says which; a directory or
    file that does not exist is a `FileNotFoundError`.
    """

    def entries(self, key: str) -> list[ListedFile]:
        """Return the entries of a directory, in any order."""
        ...

    def open(self, key: str) -> tuple[RangedFile, RemoteVersion]:
        """Return a file and which one it is."""
        ...

    def version_of(self, key: str) -> RemoteVersion:
        """Return which file has the name now; one request."""
        ...

    def exists(self, key: str) -> bool:
        """Whether there is a file or directory, or a bucket, of that name."""
        ...


def file_id(changed: datetime | None, size_bytes: int | None) -> int:
    """Return one number from what listing and opening both say of a file, 0 if that is too little.

    A listing may have milliseconds, which the headers of a file have not.
    """
    if changed is None or size_bytes is None:
        return 0
    return int(changed.timestamp()) << _SIZE_BITS | size_bytes
