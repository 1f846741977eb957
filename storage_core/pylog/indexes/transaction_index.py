"""Transaction index of a segment that we own: its aborted transactions.

Layout and meaning stand in `pylog.files.transaction_index`. The file is made with the first entry
and grows with each; most segments have none.

Source: TransactionIndex (KIP-98; Kafka 4.3). Differs from Kafka: the first use of a file that is
there checks all of it, also the order of its entries; a torn entry at its end is written over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import LogLoadingError
from pylog.files.owned_file import OwnedFile
from pylog.files.transaction_index import (
    ENTRY,
    TransactionIndexEntry,
    TransactionIndexSearchResult,
    collect_aborted_transactions,
    read_transaction_index,
)

if TYPE_CHECKING:
    import os

    from pylog.files.durable_io import DurableIO


class TransactionIndex(OwnedFile):
    """Aborted transactions whose markers lie in one segment, in memory and in a file.

    Last offsets increase strictly. The file is read at the first use and opened for writing at
    the first change. One writer at a time; any number of threads may read meanwhile and see the
    entries of some moment.
    """

    __slots__ = ("_entries", "base_offset")

    def __init__(self, path: str | os.PathLike[str], base_offset: int, io: DurableIO) -> None:
        super().__init__(path, io)
        self.base_offset = base_offset
        # None: not loaded. Replaced when entries are removed, so that a reader keeps those it began
        # with; only appending changes it in place.
        self._entries: list[TransactionIndexEntry] | None = None

    def entries(self) -> list[TransactionIndexEntry]:
        """Return all entries, in file order."""
        return list(self._loaded())

    def append(self, entry: TransactionIndexEntry) -> None:
        """Append an entry."""
        entries = self._loaded()
        if entries and entry.last_offset <= entries[-1].last_offset:
            reason = (
                f"aborted transaction with last offset {entry.last_offset} cannot follow one with "
                f"{entries[-1].last_offset}"
            )
            raise LogLoadingError(reason, self.path)
        self._open(create=True).write_at(len(entries) * ENTRY.size, ENTRY.pack(*entry))
        entries.append(entry)

    def collect_aborted_transactions(
        self, fetch_offset: int, upper_bound_offset: int
    ) -> TransactionIndexSearchResult:
        """Return the aborted transactions of ``fetch_offset <= offset < upper_bound_offset``."""
        return collect_aborted_transactions(self._loaded(), fetch_offset, upper_bound_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove the first entry whose last offset is at or above ``offset`` and all after it."""
        entries = self._loaded()
        kept = sum(entry.last_offset < offset for entry in entries)
        if kept < len(entries):
            self._open(create=True).truncate(kept * ENTRY.size)
            self._entries = entries[:kept]

    def reset(self) -> None:
        """Remove all entries, also of a damaged file; makes no file."""
        if self.exists_on_disk:
            self._open(create=True).truncate(0)
        self._entries = []

    def sanity_check(self) -> None:
        """Check the file as a whole."""
        self.release()
        self._loaded()

    def flush(self) -> None:
        """Force the file to disk, if it was changed."""
        if self._is_in_use:
            self._file.sync()

    def release(self) -> None:
        """Give descriptor and memory back; the next use reads it again."""
        with self._lock:
            self._entries = None
            super().release()

    def _loaded(self) -> list[TransactionIndexEntry]:
        entries = self._entries
        if entries is None:
            with self._lock:
                entries = self._entries
                if entries is None:  # or another thread was faster
                    entries = self._read()
                    self._entries = entries
        return entries

    def _read(self) -> list[TransactionIndexEntry]:
        if self._is_deleted:
            return []
        self._ensure_usable()
        if not self.exists_on_disk:
            return []
        return read_transaction_index(self.path, base_offset=self.base_offset)
