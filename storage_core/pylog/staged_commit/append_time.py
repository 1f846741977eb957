"""Staged batches of a topic with LogAppendTime: stamped with the time of the commit.

Timestamp type and largest timestamp lie inside the checksum, so this is a pass over all bytes. It
comes before the manifest, whose checksums are those of the stamped batches.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from pylog.files.staged_entries import StagedEntries
from pylog.native.checksum import crc32c
from pylog.record.batch_scan import find_batches
from pylog.record.batches_writer import set_append_times

if TYPE_CHECKING:
    from pylog.files.durable_io import DurableIO
    from pylog.files.staged_files import StagedFile
    from pylog.staged_commit.staged_batches import StagedBatches


def stamp_append_time(batches: StagedBatches, io: DurableIO, time_ms: int) -> StagedFile:
    """Stamp all batches of a staged file; return what is known of it then.

    Raises
    ------
    CorruptRecordError
        A batch is not the one that was staged.
    KafkaStorageError
        The disk failed; the file is of no use any more.
    """
    crcs = []
    with io.open(batches.path) as file:
        for window in batches.windows():
            headers, records = window.headers, window.records
            ends = headers.positions + headers.sizes_bytes
            set_append_times(records, headers.positions, ends, headers.codec_ids, time_ms)
            file.write_at(window.position, records)
            stamped = find_batches(np.frombuffer(records.toreadonly(), dtype=np.uint8))
            crcs.append(stamped.headers.crcs)
        file.sync()
    before = batches.entries
    entries = StagedEntries(
        before.sizes_bytes,
        before.record_counts,
        np.full(len(before), time_ms, dtype=np.int64),
        np.concatenate(crcs),
    )
    content = entries.to_bytes()
    staged = batches.staged._replace(
        first_crc=int(entries.crcs[0]),
        last_crc=int(entries.crcs[-1]),
        entries_crc=crc32c(content),
    )
    directory = os.path.dirname(batches.path)  # noqa: PTH120 - kept as text
    path = os.path.join(directory, staged.entries_name)  # noqa: PTH118 - kept as text
    io.write_file(path, content, sync=True)
    return staged
