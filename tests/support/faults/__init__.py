"""The one table of faults: a file, what is done to it, and what is to be expected.

`FAULTS` are of partitions, each with the finding that tells it. What else can happen between a stop
and a start of a broker is in the modules beside it, by names: to a partition or a log directory
(`partitions`), to text files (`texts`), to the disks of one node or three (`nodes`), to owners and
modes (`permissions`), to what consumers read (`consumers`). What is to be expected of those is what
brokers did, which tests/broker asks them. What may lie where a file should be is in `odd_files`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.support.faults import logs
from tests.support.faults import side_files as sides

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from tests.support.faults.logs import SoundPartition
    from tests.support.faults.side_files import Damage


class Expected(NamedTuple):
    """What a finding is to tell: its code, its file, and a byte that its range has, if any."""

    code: str
    path: Path
    position: int | None


class Fault(NamedTuple):
    """A row of the table; ``code`` is that of the finding."""

    file: str
    damage: Damage
    code: str

    def __str__(self) -> str:
        return self.damage.__name__

    def put_into(self, partition: SoundPartition, random: Random) -> Expected | None:
        """Damage a partition; None if it has nothing that this could be done to."""
        place = self.damage(partition, random)
        return None if place is None else Expected(self.code, *place)


LOG_FAULTS = (
    Fault(".log", logs.flipped_bit, "damaged_batches"),
    Fault(".log", logs.zeroed_block, "damaged_batches"),
    Fault(".log", logs.impossible_size, "damaged_batches"),
    Fault(".log", logs.offset_back, "damaged_batches"),
    Fault(".log", logs.unknown_magic, "damaged_batches"),
    Fault(".log", logs.too_many_records_counted, "damaged_batches"),
    Fault(".log", logs.no_records_counted, "filled_empty_batch"),
    Fault(".log", logs.skipped_sequence, "sequence_gap"),
    Fault(".log", logs.torn_segment, "damaged_batches"),
    Fault(".log", logs.torn_tail, "torn_tail"),
    Fault(".log", logs.torn_tail_of_a_clean_stop, "unreadable_appends"),
    Fault(".log", logs.zero_tail, "zero_tail"),
    Fault(".log", logs.zeros_of_a_clean_stop, "start_refused"),
    Fault(".log", logs.garbage_tail, "damaged_batches"),
    Fault(".log", logs.rest_of_a_segment, "segment_rest"),
    Fault(".log", logs.missing_segment, "missing_segment"),
    Fault(".log", logs.lost_log, "missing_log"),
    Fault(".log", logs.removed_batch, "offset_gap"),
    Fault(".log", logs.renamed_segment, "misnamed_segment"),
)
_CHECKPOINTS = {
    "replication-offset-checkpoint": "high_watermark_above_log_end",
    "recovery-point-offset-checkpoint": "recovery_point_above_log_end",
    "cleaner-offset-checkpoint": "cleaner_offset_above_log_end",
    "log-start-offset-checkpoint": "log_start_offset_above_log_end",
}
SIDE_FILE_FAULTS = (
    Fault(".index", sides.missing_index, "missing_index"),
    Fault(".index", sides.index_into_a_batch, "wrong_index"),
    Fault(".index", sides.index_out_of_order, "damaged_index"),
    Fault(".index", sides.index_of_torn_length, "damaged_index"),
    Fault(".timeindex", sides.missing_time_index, "missing_time_index"),
    Fault(".timeindex", sides.late_time_entry, "wrong_time_index"),
    Fault(".txnindex", sides.lost_transaction_entries, "wrong_transaction_index"),
    Fault(".txnindex", sides.stable_offset_far_ahead, "wrong_transaction_index"),
    Fault(".txnindex", sides.invented_transaction, "wrong_transaction_index"),
    Fault(".txnindex", sides.unknown_transaction_version, "damaged_transaction_index"),
    Fault(".snapshot", sides.flipped_snapshot, "damaged_snapshot"),
    Fault(".snapshot", sides.snapshot_of_another_producer, "wrong_snapshot"),
    Fault(".snapshot", sides.snapshot_far_ahead, "snapshot_above_log_end"),
    Fault("leader-epoch-checkpoint", sides.another_leader_epoch, "leader_epoch_disagrees"),
    Fault("leader-epoch-checkpoint", sides.leader_epoch_back, "leader_epoch_back"),
    Fault("leader-epoch-checkpoint", sides.leader_epoch_far_ahead, "leader_epoch_above_log_end"),
    *(
        Fault(name, sides.nonsense_in(name, in_log_directory=is_above), code)
        for name, code, is_above in (
            ("leader-epoch-checkpoint", "damaged_checkpoint", False),
            ("partition.metadata", "damaged_metadata", False),
            ("meta.properties", "damaged_meta_properties", True),
            *((name, "damaged_checkpoint", True) for name in _CHECKPOINTS),
        )
    ),
    *(Fault(name, sides.checkpoint_above_end(name), code) for name, code in _CHECKPOINTS.items()),
    *(
        Fault(state, sides.leftover_file(state), "leftover_file")
        for state in (".deleted", ".cleaned", ".swap")
    ),
    Fault("another .log", sides.misnamed_log, "misnamed_log"),
    Fault("a directory", sides.misnamed_directory, "misnamed_directory"),
    *(
        Fault(f"a -{state} directory", sides.directory_of_state(state), code)
        for state, code in (
            ("delete", "deleted_directory"),
            ("stray", "stray_directory"),
            ("future", "future_directory"),
        )
    ),
    Fault("partition.metadata", sides.topic_id_of_two_topics, "duplicate_topic_id"),
    Fault("partition.metadata", sides.two_ids_of_a_topic, "topic_ids_disagree"),
    Fault("recovery-point-offset-checkpoint", sides.absent_partition, "absent_partition"),
)
FAULTS: tuple[Fault, ...] = (*LOG_FAULTS, *SIDE_FILE_FAULTS)
