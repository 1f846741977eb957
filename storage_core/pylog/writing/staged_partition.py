"""The rows of one partition on their way into staged files: encoded, written as batches fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pylog.columnar.encode import OpenBatch
from pylog.errors import RecordTooLargeError
from pylog.files.staged_entries import StagedEntries
from pylog.files.staged_files import MAX_STAGED_BYTES, StagedFile
from pylog.native.checksum import crc32c
from pylog.record.batches_writer import set_base_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from pylog.columnar.encode import EncodedChunk, RecordEncoder
    from pylog.columnar.encode_input import Columns
    from pylog.config import LogConfig
    from pylog.model import TopicPartition
    from pylog.writing.stage_files import StageFiles


class StagedPartition:
    """Encodes rows of one partition and writes their batches. One thread.

    Parameters
    ----------
    topic_partition
        Which.
    config
        Of the topic.
    encoder
        Of the topic; partitions take turns.
    files
        Where the batches go.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        encoder: RecordEncoder,
        files: StageFiles,
    ) -> None:
        self._topic_partition = topic_partition
        self._config = config
        self._encoder = encoder
        self._files = files
        self._open = OpenBatch()
        self._first_open_row = 0  # what errors call the first row of the open batch
        self._names: list[str] = []
        self._entries: list[list[StagedEntries]] = []
        self._size_bytes = 0
        self._record_count = 0

    @property
    def waiting_bytes(self) -> int:
        """How many bytes of a batch wait for more records before they are written."""
        return self._open.size_bytes

    def add(
        self, columns: Columns, chosen: npt.NDArray[np.intp], rows: npt.NDArray[np.int64]
    ) -> None:
        """Take rows, and write the batches that they fill.

        Parameters
        ----------
        columns
            Of rows of any partition.
        chosen
            Which of them are of this one.
        rows
            What errors call each of those.

        Raises
        ------
        RecordTooLargeError
            A batch is above the topic's ``max.message.bytes``; the error names its first row.
        KafkaStorageError
            The disk failed.
        """
        self._write_chunks(self._encoder.encode_selected(columns, chosen, self._open), rows)
        opened = self._open.record_count
        if 0 < opened <= rows.size:
            self._first_open_row = int(rows[-opened])

    def write(self) -> None:
        """Write the batch that is open; errors as of `add`."""
        self._write_chunks(self._encoder.close_batch(self._open), np.empty(0, dtype=np.int64))
        self._open.give_back_memory()

    def _write_chunks(self, chunks: Iterable[EncodedChunk], rows: npt.NDArray[np.int64]) -> None:
        row = -self._open.record_count  # those that were added before come first
        for chunk in chunks:
            self._ensure_sizes(chunk, rows, row)
            row += int(chunk.record_counts.sum())
            self._write_chunk(chunk)

    def _ensure_sizes(self, chunk: EncodedChunk, rows: npt.NDArray[np.int64], first: int) -> None:
        """Raise for a batch that is too large; the first row of all is at place ``first``."""
        sizes = chunk.ends - chunk.positions
        most = min(self._config.max_message_bytes, self._config.segment_bytes)
        is_large = sizes > most
        if not is_large.any():
            return
        at = int(is_large.argmax())
        place = first + int(chunk.record_counts[:at].sum())
        row = self._first_open_row if place < 0 else rows[place]
        name = "max.message.bytes"
        if most != self._config.max_message_bytes:
            name = "segment.bytes"
        reason = (
            f"row {row} makes a batch of {sizes[at]} bytes for partition {self._topic_partition}, "
            f"{name} of the topic is {most}: raise it, compress, or leave the row out"
        )
        raise RecordTooLargeError(reason)

    def _write_chunk(self, chunk: EncodedChunk) -> None:
        """Write batches; a new file is begun where a segment would be rolled."""
        start, count = 0, len(chunk.positions)
        most_bytes = min(self._config.segment_bytes, MAX_STAGED_BYTES)
        while start < count:
            sizes = np.cumsum((chunk.ends - chunk.positions)[start:])
            records = np.cumsum(chunk.record_counts[start:])
            fits = (self._size_bytes + sizes <= most_bytes) & (
                self._record_count + records <= MAX_STAGED_BYTES
            )
            taken = count - start if fits.all() else int(fits.argmin())
            if not self._names or (taken == 0 and self._size_bytes):
                self._begin_file()
                continue
            stop = start + max(taken, 1)
            self._write_batches(chunk, start, stop)
            start = stop

    def _begin_file(self) -> None:
        self._names.append(self._files.begin())
        self._entries.append([])
        self._size_bytes = 0
        self._record_count = 0

    def _write_batches(self, chunk: EncodedChunk, start: int, stop: int) -> None:
        first, end = int(chunk.positions[start]), int(chunk.ends[stop - 1])
        data = chunk.data[first:end]
        counts = chunk.record_counts[start:stop]
        offsets = self._record_count + np.cumsum(counts) - counts
        set_base_offsets(data, chunk.positions[start:stop] - first, offsets)
        self._entries[-1].append(
            StagedEntries(
                chunk.ends[start:stop] - chunk.positions[start:stop],
                counts,
                chunk.max_timestamps[start:stop],
                chunk.crcs[start:stop],
            )
        )
        self._files.write(self._names[-1], self._size_bytes, data)
        self._size_bytes += end - first
        self._record_count += int(counts.sum())

    def finish(self) -> list[StagedFile]:
        """Write what is left and the entries; return the files, which are still to be synced."""
        self.write()
        return [
            self._finish_file(name, entries)
            for name, entries in zip(self._names, self._entries, strict=True)
        ]

    def _finish_file(self, name: str, parts: list[StagedEntries]) -> StagedFile:
        entries = StagedEntries(
            np.concatenate([each.sizes_bytes for each in parts]),
            np.concatenate([each.record_counts for each in parts]),
            np.concatenate([each.max_timestamps for each in parts]),
            np.concatenate([each.crcs for each in parts]),
        )
        content = entries.to_bytes()
        self._files.write_entries(name, content)
        return StagedFile(
            name,
            self._topic_partition,
            int(entries.sizes_bytes.sum()),
            len(entries),
            int(entries.record_counts.sum()),
            int(entries.crcs[0]),
            int(entries.crcs[-1]),
            crc32c(content),
        )
