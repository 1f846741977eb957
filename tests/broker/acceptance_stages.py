"""What is seen of a broker, and of ``pylog``, in one stage of an acceptance."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.log.log_segment import FetchIsolation
from pylog.record.record_batch import RecordBatch
from tests.broker.server_log import log_lines_of_trouble
from tests.support.partition_account import PartitionAccount
from tests.support.reading import stored

if TYPE_CHECKING:
    from pylog.log.log_loader import LogLoading
    from pylog.log.unified_log import UnifiedLog
    from tests.support.batches import Stored
    from tests.support.partition_account import ProducerState

Accounts = dict[str, PartitionAccount]

_READ_BYTES = 5_000
_SIZE_START, _SIZE_END = 8, 12


@dataclass
class BrokerStage:
    """What was seen of a broker from its start to its stop.

    Attributes
    ----------
    accounts
        What there was when consumers read.
    server_log, was_stopped_cleanly
        Of this start.
    consumed, consumed_from
        By isolation and topic: from the log start on, and from `middles` on.
    printed
        By isolation: what the Java consumer prints of all topics.
    offset_ranges
        Log start and high watermark.
    offsets_for_times
        What was asked, and what the broker answered.
    producers
        What the broker knows of them, before others write.
    files_before, files_after
        Digests of each topic's files, by their names.
    epochs_before, epochs_after
        Each topic's leader-epoch-checkpoint.
    """

    accounts: Accounts
    server_log: str = ""
    was_stopped_cleanly: bool = False
    consumed: dict[str, dict[str, list[Stored]]] = field(default_factory=dict)
    consumed_from: dict[str, dict[str, list[Stored]]] = field(default_factory=dict)
    printed: dict[str, list[bytes]] = field(default_factory=dict)
    middles: dict[str, int] = field(default_factory=dict)
    offset_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    offsets_for_times: list[tuple[dict[str, int], dict[str, int | None]]] = field(
        default_factory=list
    )
    producers: dict[str, list[ProducerState]] = field(default_factory=dict)
    files_before: dict[str, dict[str, str]] = field(default_factory=dict)
    files_after: dict[str, dict[str, str]] = field(default_factory=dict)
    epochs_before: dict[str, str] = field(default_factory=dict)
    epochs_after: dict[str, str] = field(default_factory=dict)

    @property
    def complaints(self) -> list[str]:
        """What the broker said that it does not say of a directory in which all is well."""
        lines = log_lines_of_trouble(self.server_log)
        if not re.search(r"Skipping recovery of \d+ logs from .* clean shutdown", self.server_log):
            lines.append("logs were recovered")
        if not self.was_stopped_cleanly:
            lines.append("the broker was not stopped cleanly")
        return lines

    def files_of_an_unchanged_log(self, topic: str) -> dict[str, str]:
        """Return what a start and a stop make of the files of a log with nothing to mend.

        Producer snapshots below the log start go, and those at which no segment begins, but for
        the last one. A log without records that has lost all of them that way gets one at its end.
        """
        account, before = self.accounts[topic], self.files_before[topic]
        snapshots = {name: int(name[:20]) for name in before if name.endswith(".snapshot")}
        segments = {int(name[:20]) for name in before if name.endswith(".log")}
        outdated = {
            name
            for name, offset in snapshots.items()
            if offset <= account.log_start_offset
            or (offset not in segments and offset != max(snapshots.values()))
        }
        expected = {name: each for name, each in before.items() if name not in outdated}
        if account.log_start_offset == account.log_end_offset > 0:
            assert not set(snapshots) - outdated
            name = f"{account.log_end_offset:020}.snapshot"
            if name not in before:  # one that was there counts as the last that was taken
                expected[name] = self.files_after[topic][name]
        return expected


@dataclass
class PylogStage:
    """What `pylog` found when it opened what a broker left, or a crash.

    Attributes
    ----------
    accounts
        What should have been there.
    loadings, offset_ranges, last_stable_offsets
        Of each log that was opened.
    read
        The records of each log, read through it.
    scanned
        By isolation and topic: the records, read beside it.
    """

    accounts: Accounts
    loadings: dict[str, LogLoading] = field(default_factory=dict)
    offset_ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    last_stable_offsets: dict[str, int] = field(default_factory=dict)
    read: dict[str, list[Stored]] = field(default_factory=dict)
    scanned: dict[str, dict[str, list[Stored]]] = field(default_factory=dict)


def read_all(log: UnifiedLog) -> list[Stored]:
    """Return every record of a log that is served, read piece by piece."""
    found: list[Stored] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _READ_BYTES, FetchIsolation.LOG_END).records
        position = 0
        while size := _size_of_whole_batch(data, position):
            batch = RecordBatch(data[position : position + size])
            position += size
            records = () if batch.header.is_control_batch else batch.records()
            found += [each for each in stored(records) if each.offset >= offset]
            offset = batch.header.last_offset + 1
    return found


def _size_of_whole_batch(data: bytes, position: int) -> int:
    """Return the size of the batch at ``position``, 0 if it is cut or there is none."""
    if len(data) - position < _SIZE_END:
        return 0
    size = _SIZE_END + int.from_bytes(data[position + _SIZE_START : position + _SIZE_END], "big")
    return size if position + size <= len(data) else 0
