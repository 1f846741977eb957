"""The rows of one partition on their way into staged files: collected, encoded, written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pylog.checksum import crc32c
from pylog.errors import RecordTooLargeError
from pylog.files.staged_entries import StagedEntries
from pylog.files.staged_files import MAX_STAGED_BYTES, StagedFile
from pylog.record.batch_scan import find_batches
from pylog.record.batches_writer import set_base_offsets

if TYPE_CHECKING:
    import numpy.typing as npt

    from pylog.columnar.encode import EncodedChunk, RecordEncoder
    from pylog.config import LogConfig
    from pylog.model import TopicPartition
    from pylog.record.batch_scan import BatchHeaders
    from pylog.writing.stage_files import StageFiles


class StagedPartition:
    """Collects rows of one partition and writes their batches. One thread.

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

    Attributes
    ----------
    waiting_bytes
        About how many bytes of rows have been collected and not been written.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: LogConfig,
        encoder: RecordEncoder,
        files: StageFiles,
    ) -> None:
        self.waiting_bytes = 0
        self._topic_partition = topic_partition
        self._config = config
        self._encoder = encoder
        self._files = files
        self._waiting: list[pa.RecordBatch] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._names: list[str] = []
        self._headers: list[list[BatchHeaders]] = []
        self._size_bytes = 0
        self._record_count = 0

    def add(self, batch: pa.RecordBatch, rows: npt.NDArray[np.int64]) -> None:
        """Take rows, and what errors call each of them.

        Columns may be of other types than those of the rows before.
        """
        if self._waiting and batch.schema != self._waiting[0].schema:
            self.write()
        self._waiting.append(batch)
        self._rows.append(rows)
        self.waiting_bytes += batch.nbytes

    def write(self) -> None:
        """Write the rows that have been collected.

        Raises
        ------
        RecordTooLargeError
            A batch is above the topic's ``max.message.bytes``; the error names its first row.
        KafkaStorageError
            The disk failed.
        """
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting).combine_chunks()
        rows = np.concatenate(self._rows)
        self._waiting, self._rows, self.waiting_bytes = [], [], 0
        row = 0
        for chunk in self._encoder.encode_chunks(table):
            self._ensure_sizes(chunk, rows[row:])
            row += int(chunk.record_counts.sum())
            self._write_chunk(chunk)

    def _ensure_sizes(self, chunk: EncodedChunk, rows: npt.NDArray[np.int64]) -> None:
        sizes = chunk.ends - chunk.positions
        most = min(self._config.max_message_bytes, self._config.segment_bytes)
        is_large = sizes > most
        if not is_large.any():
            return
        at = int(is_large.argmax())
        row = rows[int(chunk.record_counts[:at].sum())]
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
        self._headers.append([])
        self._size_bytes = 0
        self._record_count = 0

    def _write_batches(self, chunk: EncodedChunk, start: int, stop: int) -> None:
        first, end = int(chunk.positions[start]), int(chunk.ends[stop - 1])
        data = chunk.data[first:end]
        counts = chunk.record_counts[start:stop]
        offsets = self._record_count + np.cumsum(counts) - counts
        set_base_offsets(data, chunk.positions[start:stop] - first, offsets)
        self._headers[-1].append(
            find_batches(np.frombuffer(data.toreadonly(), dtype=np.uint8)).headers
        )
        self._files.write(self._names[-1], self._size_bytes, data)
        self._size_bytes += end - first
        self._record_count += int(counts.sum())

    def finish(self) -> list[StagedFile]:
        """Write what is left and the entries; return the files, which are still to be synced."""
        self.write()
        return [
            self._finish_file(name, headers)
            for name, headers in zip(self._names, self._headers, strict=True)
        ]

    def _finish_file(self, name: str, parts: list[BatchHeaders]) -> StagedFile:
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
