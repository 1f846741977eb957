"""A file of an object store or cluster file system, read by ranged requests.

Every read is a ranged request of its own over the network, so there are to be few and large ones.
Windows of a ``.log`` file are read as they are asked for, and no byte twice. Look-ups ask for a
header here and a batch there, each a little after the one before: a request fetches some
kilobytes more than was asked for, and what was fetched is kept. Indexes and other side files are
fetched whole. What was kept serves those who open the file next, while its entity tag is the same.

A file of a store may be replaced at any moment, and each request is answered by whatever has the
name then; no request can be bound to the answer of an earlier one (``pyarrow.fs`` sends no
``If-Match`` and does not show the headers of a ranged read). So the store is asked for the entity
tag when a file is opened and once more after the last read of it. A listing names no entity tags;
there, the time of the last change (in seconds) and the length tell one file from the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, SegmentVanishedError
from pylog.files.byte_source import ByteSource
from pylog.files.file_names import LOG_FILE_SUFFIX
from pylog.files.kept_bytes import KeptBytes, Stretch
from pylog.files.remote_storage import open_remote, remote_version
from pylog.files.store_errors import STORE_FAILURES, cause_of, is_after_the_end, is_missing
from pylog.locations import RemoteLocation, name_of

if TYPE_CHECKING:
    from pylog.files.remote_store import RangedFile

READ_AHEAD_BYTES = 1 << 13
"""The least that a look-up in a ``.log`` file requests: half a batch of the usual 16 KB."""

SIDE_FILE_BYTES = 1 << 20
"""Up to this size, other files are fetched whole; a preallocated index is larger."""

_STRETCH_BYTES = 1 << 18
_STRETCHES = 4
_KEPT = KeptBytes()


class RemoteFile(ByteSource):
    """`ByteSource` of a remote file; keeps at most 1 MiB of what was fetched. One thread.

    Raises
    ------
    SegmentVanishedError
        The file does not exist (any more).
    LogDirectoryError
        It cannot be opened; the text says why.
    """

    __slots__ = (
        "_file",
        "_identity",
        "_is_fetched_whole",
        "_is_log",
        "_is_unchecked",
        "_stretches",
        "_version",
        "path",
    )

    def __init__(self, location: str) -> None:
        self.path = RemoteLocation(location)
        self._file: RangedFile | None
        self._file, self._version = open_remote(location)
        size, tag = self._version.size_bytes, self._version.entity_tag
        self._is_log = name_of(location).endswith(LOG_FILE_SUFFIX)
        self._is_fetched_whole = not self._is_log and size <= SIDE_FILE_BYTES
        self._identity = (location, tag) if tag else None
        # The least recently used first.
        self._stretches = _KEPT.get(self._identity) if self._identity else ()
        self._is_unchecked = False  # whether there was a request since the entity tag was asked for

    def size(self) -> int:
        """Return the file's length in bytes, as it was when it was opened."""
        return self._version.size_bytes

    def file_id(self) -> int:
        """Return what a listing has for the file, 0 where the store does not tell."""
        return self._version.file_id

    def has_been_replaced(self) -> bool:
        """Whether what was read may be of another file that has the name by now.

        Costs a request if there was one since the file was opened or since the last call. Of
        ``.log`` files only: a side file comes in one answer, and a large index is a hint.

        Raises
        ------
        SegmentVanishedError
            The file is gone.
        LogDirectoryError
            The store does not answer.
        """
        if not self._is_unchecked or self._identity is None:
            return False
        version = remote_version(self.path)
        if (version.size_bytes, version.entity_tag) != (self.size(), self._version.entity_tag):
            return True
        self._is_unchecked = False
        _KEPT.put(self._identity, self._stretches)
        return False

    def read_at(self, position: int, length: int) -> bytes:
        """Return the bytes ``[position, position + length)``, fewer where the file ends before."""
        self._opened()
        end = min(position + length, self._version.size_bytes)
        if end <= position:
            return b""
        held = self._held(position)
        if end > held.end:
            start, wanted = held.end, max(end - held.end, READ_AHEAD_BYTES)
            if self._is_fetched_whole:
                held, start, wanted = Stretch(0, b""), 0, self._version.size_bytes
            more = self._request(start, min(wanted, self._version.size_bytes - start))
            held = Stretch(held.start, held.data + more)
        self._keep(held)
        return held.data[position - held.start : end - held.start]

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; return how many bytes there were."""
        self._opened()
        buffer = buffer.cast("B")  # those of Arrow count their bytes as signed
        count = max(0, min(len(buffer), self._version.size_bytes - position))
        held = self._held(position)
        at = position - held.start
        filled = min(count, len(held.data) - at)
        buffer[:filled] = held.data[at : at + filled]
        if filled < count:
            data = self._request(position + filled, count - filled)
            buffer[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _held(self, position: int) -> Stretch:
        """Return the stretch that reaches ``position``, an empty one there if none does."""
        for stretch in reversed(self._stretches):
            if stretch.start <= position <= stretch.end:
                return stretch
        return Stretch(position, b"")

    def _keep(self, stretch: Stretch) -> None:
        others = [each for each in self._stretches if each.start != stretch.start]
        if self._is_fetched_whole or len(stretch.data) <= _STRETCH_BYTES:
            others.append(stretch)
        self._stretches = tuple(others[-_STRETCHES:])
        if self._identity and not self._is_unchecked:
            _KEPT.put(self._identity, self._stretches)

    def next_data(self, position: int) -> int | None:
        """Return ``position``: an object store knows nothing of holes."""
        return position if position < self._version.size_bytes else None

    def _opened(self) -> RangedFile:
        if self._file is None:
            msg = f"read of a closed file: {self.path}"
            raise ValueError(msg)
        return self._file

    def _request(self, position: int, length: int) -> memoryview:
        """Return what the store gives of a range; less, or nothing, if the file is shorter now."""
        file = self._opened()
        self._is_unchecked = self._is_log
        try:
            return memoryview(file.read_at(length, position))
        except STORE_FAILURES as error:
            if is_after_the_end(error):
                return memoryview(b"")
            if is_missing(error):
                reason = "file is gone (deleted since it was opened)"
                raise SegmentVanishedError(reason, self.path, position) from None
            reason = f"cannot read {length} bytes: {cause_of(error)}"
            raise LogDirectoryError(reason, self.path, position) from None

    def close(self) -> None:
        """Release the file; a second call does nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
