"""What was lately fetched of remote files, for those who open one of them next."""

from __future__ import annotations

from typing import NamedTuple

_KEPT_BYTES = 1 << 23  # of all files


class Stretch(NamedTuple):
    """Bytes of a file that were fetched."""

    start: int
    data: bytes

    @property
    def end(self) -> int:
        """The byte of the file after them."""
        return self.start + len(self.data)


class KeptBytes:
    """Stretches by file and entity tag, of all files of the process.

    Any number of threads: stretches never change, so that a race loses one at the worst.
    """

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], tuple[Stretch, ...]] = {}

    def get(self, file: tuple[str, str]) -> tuple[Stretch, ...]:
        """Return what is kept of a file."""
        return self._files.get(file, ())

    def put(self, file: tuple[str, str], stretches: tuple[Stretch, ...]) -> None:
        """Keep ``stretches`` of a file, and forget those of others that are too much."""
        self._files.pop(file, None)
        files = [*self._files.items(), (file, stretches)]
        size_bytes = 0
        first = len(files)
        while first and size_bytes <= _KEPT_BYTES:
            first -= 1
            size_bytes += sum(len(stretch.data) for stretch in files[first][1])
        self._files = dict(files[first + (size_bytes > _KEPT_BYTES) :])
