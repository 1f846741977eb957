"""Transactions that are open at the end of a merged log, and their markers on branches.

After an unclean election the new leader may lack a marker that another replica has: readers of
committed records then wait at the transaction's first record for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.admin.transactions import transactions
from pylog.log_file.batch_walk import walk_headers
from pylog.model import ControlRecordType
from pylog.record.batch_header import MAGIC_VALUE_V2
from pylog.record.control_record import parse_control_record_type
from pylog.record.record_batch import RecordBatch
from pylog.recovery.merge_summary import MergeTransaction

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pylog.comparison.batch_join import BatchStretch
    from pylog.comparison.lineage import LogLineage
    from pylog.comparison.replica_log import ReplicaLog
    from pylog.model import TopicPartition


def cut_transactions(
    log_directory: str,
    topic_partition: TopicPartition,
    replicas: Sequence[ReplicaLog],
    lineage: LogLineage,
) -> list[MergeTransaction]:
    """Return the transactions that are open in a partition of the result."""
    topic, partition = topic_partition
    listed = transactions(log_directory, topics=[topic], partitions=[partition]).transactions
    still_open = [each for each in listed if each.state == "open"]
    if not still_open:
        return []
    markers: dict[int, tuple[str, int, str]] = {}
    wanted = {each.producer_id for each in still_open}
    for stretch in [*lineage.branches, *lineage.unproven]:
        for producer_id, marker in _markers(replicas, stretch, wanted):
            markers.setdefault(producer_id, marker)
    return [
        MergeTransaction(
            each.producer_id,
            each.producer_epoch,
            each.first_offset,
            *markers.get(each.producer_id, (None, None, None)),
        )
        for each in still_open
    ]


def _markers(
    replicas: Sequence[ReplicaLog], stretch: BatchStretch, wanted: Collection[int]
) -> Iterator[tuple[int, tuple[str, int, str]]]:
    at, place = next(iter(stretch.places.items()))
    end = place.position + stretch.size_bytes
    with replicas[at].segments[place.file].open_log() as source:
        for batch in walk_headers(source, place.position, end):
            header = batch.header
            if header.magic < MAGIC_VALUE_V2 or not header.is_control_batch:
                continue
            if header.producer_id in wanted:
                data = memoryview(source.read_at(batch.position, header.size_bytes))
                for record in RecordBatch(data).records():
                    kind = parse_control_record_type(record.key)
                    if kind in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
                        marker = kind.name, record.offset, replicas[at].path
                        yield header.producer_id, marker
