"""A finding, and for each kind what it means, what a broker does about it, and what to do.

What a broker does is that of Kafka 4.3. It depends on how the last one ended: after a clean
shutdown (``.kafka_cleanshutdown`` is in the log directory) no batch is read. Otherwise every
segment from the one with the recovery point on is scanned, cut at the first batch that is not whole
or has a wrong checksum, and indexed again; where bytes are cut off, all later segments are deleted.

Source: LogManager, LogLoader, LogSegment.recover, ReplicaManager, MetaPropertiesEnsemble (Kafka
4.3).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pylog.locations import printable_location

FINDINGS = """\
What is wrong with a log, and what is worth knowing; no row if nothing is.

severity      string  ``error``: records are lost or cannot be read, or a broker does not start;
                      ``warning``: a side file that a broker would rebuild, delete or ignore;
                      ``info``: worth knowing, and nothing is wrong
code          string  what it is, in one word; docs/doctor-codes.md lists all
path          string  the file
position      int64   bytes from here on, where that has a meaning
end_position  int64   up to here, exclusive
next_offset   int64   offsets from here on, where that has a meaning
end_offset    int64   up to here, exclusive; null where nothing sound follows
message       string  what is wrong, with stored and expected values
broker_action string  what a broker does about it when it starts on the directory
advice        string  what to do

All is read, in one walk: checksums are verified and records decoded, headers held against indexes.
Memory is that of one window, of the indexes of two segments, and of what snapshots say. A file that
cannot be read at all (a FIFO, a link that leads nowhere) is a damaged one.

Rows about log directories come first, and have neither topic nor partition: what lies beside the
partitions, and what these contradict each other in. They are of all partitions, whichever are
chosen, and there are none where partition directories are given.
"""
"""The text of table ``findings``, see `pylog.columnar.rows`; the order is that of `Finding.row`."""


class Severity(StrEnum):
    """How bad a finding is, the worst first.

    Attributes
    ----------
    ERROR
        Records are lost or cannot be read, or a broker does not start on the directory.
    WARNING
        Side files and batches do not agree, or bytes stand where none should. All records that the
        log still holds can be read.
    INFO
        Worth knowing, and nothing is wrong: what a crash, compaction, an older broker or remote
        storage leaves.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        """Whether this is as bad as ``other``, or worse."""
        return self.rank <= other.rank


class Finding(NamedTuple):
    """One row of table ``findings``, without topic and partition.

    Attributes
    ----------
    severity, code
        How bad, and what it is in one word: a key of `FINDING_CODES`.
    path
        The file, or the directory.
    message
        A line that suffices by itself next to the path.
    position, end_position
        Bytes ``[position, end_position)`` of the file; None where that has no meaning.
    next_offset, end_offset
        Offsets ``[next_offset, end_offset)`` that this is about; None likewise.
    """

    severity: Severity
    code: str
    path: str
    message: str
    position: int | None = None
    end_position: int | None = None
    next_offset: int | None = None
    end_offset: int | None = None

    @property
    def broker_action(self) -> str:
        """What a broker does about it when it starts on the directory."""
        return FINDING_CODES[self.code].broker_action

    @property
    def advice(self) -> str:
        """What an operator can do about it."""
        return FINDING_CODES[self.code].advice

    @property
    def refuses_start(self) -> bool:
        """Whether a broker does not start because of it, or takes the log directory offline."""
        return self.broker_action == _REFUSES

    def row(self) -> tuple[object, ...]:
        """Return the values in the order of the table's columns."""
        return (
            str(self.severity),
            self.code,
            printable_location(self.path),
            self.position,
            self.end_position,
            self.next_offset,
            self.end_offset,
            self.message,
            self.broker_action,
            self.advice,
        )


def warning(code: str, path: str, message: str) -> Finding:
    """Return a warning about a whole file."""
    return Finding(Severity.WARNING, code, path, message)


def missing_index(kind: str, path: str) -> Finding:
    """Return the warning that an index file of a segment is missing; ``kind`` as in its code."""
    return warning(f"missing_{kind}", path, "the file is missing")


def info(code: str, path: str, message: str) -> Finding:
    """Return what is worth knowing of a whole file."""
    return Finding(Severity.INFO, code, path, message)


class FindingCode(NamedTuple):
    """What is known of a kind of finding."""

    meaning: str  # what is wrong, or worth knowing
    broker_action: str  # what a broker does about it when it starts on the directory
    advice: str  # what an operator can do
    severities: tuple[Severity, ...]  # how bad it can be


_NOTHING = "nothing"
_NO_NEED = "nothing needs to be done"
_CUTS = (
    "after a clean shutdown nothing, and readers fail when they get here; otherwise, from the "
    "recovery point on, it cuts the segment off here and deletes all later segments"
)
_REBUILDS = (
    "after a clean shutdown it uses the file as it is; otherwise it rebuilds those of the segments "
    "that it scans, from the recovery point on"
)
_REFUSES = "it does not start, or takes this log directory offline"
_OTHER_REPLICA = (
    "read another replica; or write a copy of what is intact with --repair-to before a broker "
    "starts"
)
_REPAIRED = "a copy written with --repair-to has it right; so has a broker that rebuilds it"

FINDING_CODES = {
    # Batches.
    "damaged_batches": FindingCode(
        "Bytes that are no intact batches: a wrong checksum, an impossible length, offsets out of "
        "order, records that cannot be decoded.",
        _CUTS,
        _OTHER_REPLICA,
        severities=(Severity.ERROR,),
    ),
    "misnamed_segment": FindingCode(
        "The batches of a file have offsets that its name leaves no room for: the file has been "
        "renamed, or belongs to another partition.",
        _CUTS,
        "give the file, and those of its indexes, the name that the message says, in a copy",
        severities=(Severity.ERROR,),
    ),
    "filled_empty_batch": FindingCode(
        "A batch counts no records, but bytes follow its header.",
        "nothing: neither a broker nor a consumer looks at the bytes",
        "look at the bytes with pylog dump; the producer of the batch is at fault",
        severities=(Severity.ERROR,),
    ),
    "oversized_segment": FindingCode(
        "A .log file of more than 2 GiB, which no broker can open.",
        _REFUSES,
        _OTHER_REPLICA,
        severities=(Severity.ERROR,),
    ),
    "offset_overflow": FindingCode(
        "A segment has offsets more than 2^31-1 above its base offset, as brokers before 2.0 could "
        "write.",
        "it splits the segment",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "torn_tail": FindingCode(
        "The last batch of the log was not written whole, as a crash leaves it.",
        "it cuts the bytes off",
        "do not copy .kafka_cleanshutdown along with a log that was taken from a running broker",
        severities=(Severity.INFO,),
    ),
    "start_refused": FindingCode(
        "A broker cannot open the log.",
        _REFUSES,
        "do not start a broker on it; write a copy of what is intact with --repair-to. Where only "
        "the end of the last segment is wrong, remove .kafka_cleanshutdown from a copy: a start "
        "cuts it off then",
        severities=(Severity.ERROR,),
    ),
    "lost_at_start": FindingCode(
        "Batches that can be read now are gone once a broker has started on the log.",
        "see the message",
        "write a copy with --repair-to, and start the broker on that",
        severities=(Severity.ERROR,),
    ),
    "unreadable_appends": FindingCode(
        "Bytes follow the last batch of a log that was shut down cleanly.",
        "it starts, and appends after these bytes; what it appends cannot be read. Where 12 or "
        "more of them are zeros, a consumer fails at the end of the log even before",
        "remove .kafka_cleanshutdown from a copy, so that a start cuts the bytes off; or write one "
        "with --repair-to",
        severities=(Severity.WARNING,),
    ),
    "zero_tail": FindingCode(
        "Zero bytes follow the last batch: the file is preallocated, or has a hole.",
        "it cuts the bytes off",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "segment_rest": FindingCode(
        "Bytes follow the last batch of a segment that is not the last one; no offset is missing.",
        "after a clean shutdown nothing, but where 12 or more of them are zeros a consumer fails "
        "there, and its cleaner gives the partition up; otherwise, from the recovery point on, it "
        "cuts them off and deletes all later segments, intact as they are",
        "make a copy with --repair-to before a broker starts without a clean stop",
        severities=(Severity.WARNING,),
    ),
    "mixed_wrapper": FindingCode(
        "A compressed message of format v1 holds messages of format v0, as the log cleaner of "
        "brokers before 0.10.2 left them (KAFKA-4298).",
        "nothing; its cleaner rewrites such a message",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "header_timestamp": FindingCode(
        "The largest timestamp in a batch's header is not that of its records.",
        "nothing; look-ups by time, and retention by time, go by the header",
        "read it with a filter on the records' timestamps, which decides by the records",
        severities=(Severity.WARNING,),
    ),
    # Offsets.
    "missing_segment": FindingCode(
        "Offsets are missing before a segment, and nothing shows that compaction, retention or "
        "remote storage has taken them: a .log file is gone. A warning for the first segment "
        "of a log that was not shut down cleanly: retention may have been there.",
        "nothing: consumers pass over the offsets without an error",
        "look for the file on other disks and in backups, or read another replica; --repair-to "
        "takes what .deleted files hold of it",
        severities=(
            Severity.ERROR,
            Severity.WARNING,
        ),
    ),
    "offset_gap": FindingCode(
        "Offsets are missing inside a segment, and nothing shows that compaction has removed them: "
        "a truncation, or a repair, has left a gap.",
        "nothing: consumers pass over the offsets without an error",
        "compare with another replica",
        severities=(Severity.WARNING,),
    ),
    "compacted_offsets": FindingCode(
        "Compaction has removed records; their offsets are missing.",
        _NOTHING,
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    # Files of a partition.
    "missing_log": FindingCode(
        "Index files have no .log file beside them. An error if no .log file is left at all.",
        "it deletes the index files; where no .log is left, it starts with an empty log",
        "look for the .log files before a broker starts",
        severities=(Severity.ERROR,),
    ),
    "misnamed_log": FindingCode(
        "A file ends in .log, but its name is not 20 digits.",
        "it does not start if what stands before the dot is no number; else it makes an empty "
        "segment with that base offset, which hides later records of the segment before",
        "take the file out of the directory, or give it its right name",
        severities=(Severity.ERROR,),
    ),
    "leftover_file": FindingCode(
        "A file of a deletion or a compaction that was interrupted (.deleted, .cleaned, .swap).",
        "it deletes .deleted and .cleaned files, and puts .swap files in the place of the segments "
        "that they replace",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "unreadable": FindingCode(
        "A directory, a .log file or a disk cannot be read: what else is wrong is not known.",
        "it takes the log directory offline",
        "look at the permissions (whoever runs this may be allowed less than the broker is), the "
        "links, and the disk",
        severities=(Severity.ERROR,),
    ),
    "remote_offsets": FindingCode(
        "The log begins in remote storage, which pylog does not read.",
        _NOTHING,
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    # Indexes.
    "missing_index": FindingCode(
        "A segment has no offset index.",
        "it scans the segment and rebuilds its indexes, also after a clean shutdown: damage is "
        "cut off then",
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "damaged_index": FindingCode(
        "An offset index cannot be read, or its entries do not go up.",
        _REBUILDS,
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_index": FindingCode(
        "Entries of an offset index lead to no batch, or to another one than they say.",
        _REBUILDS + "; fetches that are led astray fail, or begin at the wrong batch",
        "delete the file while the broker is stopped: it is rebuilt then",
        severities=(Severity.WARNING,),
    ),
    "missing_time_index": FindingCode(
        "A segment has no time index.",
        "it makes an empty one: look-ups by timestamp take the file's modification time",
        "delete the segment's .index file, too, while the broker is stopped: both are rebuilt then",
        severities=(Severity.WARNING,),
    ),
    "damaged_time_index": FindingCode(
        "A time index cannot be read, or its entries do not go up.",
        _REBUILDS,
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_time_index": FindingCode(
        "Entries of a time index have offsets that the segment does not have, or timestamps above "
        "those of the batch.",
        _REBUILDS + "; look-ups by timestamp, and retention by time, go wrong",
        "delete the segment's .index file while the broker is stopped: all are rebuilt then",
        severities=(Severity.WARNING,),
    ),
    "empty_time_index": FindingCode(
        "A time index is empty, and its batches have timestamps.",
        "it takes the date of the file for their age: retention may remove the segment too early "
        "or too late, and look-ups by time may miss its records",
        "delete the segment's .index file while the broker is stopped: all are rebuilt then",
        severities=(Severity.INFO,),
    ),
    "no_time_indexes": FindingCode(
        "No segment has a time index, as of brokers before 0.10.1.",
        "it makes empty ones",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "damaged_transaction_index": FindingCode(
        "A transaction index cannot be read, or its entries do not go up.",
        "it rebuilds the index with the segment; otherwise consumers of committed records fail",
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_transaction_index": FindingCode(
        "A transaction index and the markers in the log disagree about what was aborted.",
        _REBUILDS + "; consumers of committed records are given aborted records, or miss "
        "committed ones",
        "delete the segment's .index file while the broker is stopped: all are rebuilt then",
        severities=(Severity.WARNING,),
    ),
    # Producers and leaders.
    "damaged_snapshot": FindingCode(
        "A producer snapshot cannot be read.",
        "it deletes the file, takes an older one, and reads the batches after that",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "wrong_snapshot": FindingCode(
        "A producer snapshot and the batches in the log disagree about what a producer wrote last.",
        "it believes the snapshot: a producer may be refused, or a duplicate accepted",
        "delete the snapshots of the partition while the broker is stopped",
        severities=(Severity.WARNING,),
    ),
    "snapshot_above_log_end": FindingCode(
        "A producer snapshot is of an offset after the end of the log.",
        "it deletes the file",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "sequence_gap": FindingCode(
        "The sequence numbers of a producer skip some in an epoch, although no offsets are "
        "missing: batches that it sent are not in the log. As info, it may be that the broker had "
        "forgotten the producer, as it does after a day without a record of it.",
        _NOTHING,
        "compare with another replica: the log may have been truncated and written on",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "repeated_sequence": FindingCode(
        "The sequence numbers of a producer go back in an epoch. As info, it may be that the "
        "broker had forgotten the producer.",
        "nothing: consumers are given what is there",
        "look at the batches with pylog dump: the same records may be in the log twice",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "leader_epoch_back": FindingCode(
        "The leader epoch of a batch is below that of the batch before it.",
        _NOTHING,
        "compare with another replica: two leaders may have written",
        severities=(Severity.WARNING,),
    ),
    "leader_epoch_disagrees": FindingCode(
        "The leader epoch checkpoint says another epoch of an offset than the batch there.",
        "it believes the checkpoint: a follower may be truncated to a wrong offset",
        "delete leader-epoch-checkpoint in a copy: a broker that scans the log writes it again",
        severities=(Severity.WARNING,),
    ),
    "leader_epoch_above_log_end": FindingCode(
        "The leader epoch checkpoint has epochs that begin after the end of the log.",
        "it removes those lines",
        "records at the end of the log may be missing: compare with another replica",
        severities=(Severity.WARNING,),
    ),
    # Checkpoints.
    "damaged_metadata": FindingCode(
        "partition.metadata cannot be read: the topic id is not known.",
        _REFUSES,
        "write the file again, with the topic id of the other partitions; a copy written with "
        "--repair-to has it where the id is known",
        severities=(Severity.ERROR,),
    ),
    "damaged_checkpoint": FindingCode(
        "A checkpoint file cannot be read.",
        _REFUSES,
        "write a copy with --repair-to. Or delete the file in a copy: without recovery points all "
        "is scanned, without high watermarks and cleaner offsets they are found again; without "
        "log start offsets, deleted records come back, and without leader epochs they are lost",
        severities=(Severity.ERROR,),
    ),
    "high_watermark_above_log_end": FindingCode(
        "The high watermark was above the end of the log: records that consumers have seen are "
        "gone from this disk.",
        "it lowers the high watermark to the end of the log",
        "read another replica, if there is one",
        severities=(Severity.WARNING,),
    ),
    "high_watermark_below_log_end": FindingCode(
        "Records are above the high watermark: when it was written, a few seconds before the end "
        "at the most, they were not known to be in all replicas that are in sync.",
        "consumers see them once all replicas that are in sync have them; a follower cuts them "
        "off where its leader does not have them; compaction takes none of them",
        "nothing where the topic has one replica; else keep this disk until they are compared",
        severities=(Severity.INFO,),
    ),
    "recovery_point_above_log_end": FindingCode(
        "Records that were forced to disk are gone from it.",
        "it lowers the recovery point; after an unclean stop it scans the last segment alone",
        "read another replica, if there is one",
        severities=(Severity.WARNING,),
    ),
    "cleaner_offset_above_log_end": FindingCode(
        "Compaction had come further than the log reaches.",
        "it cleans from the log start offset on",
        "read another replica, if there is one",
        severities=(Severity.WARNING,),
    ),
    "log_start_offset_above_log_end": FindingCode(
        "The log start offset is above the end of the log: no record is served.",
        "it deletes all segments, and begins an empty log at the log start offset",
        "copy the segments, or remove the line from log-start-offset-checkpoint, before a broker "
        "starts",
        severities=(Severity.WARNING,),
    ),
    "cleaner_offset_below_log_start": FindingCode(
        "The offset up to which the log is compacted lies below the log start offset.",
        "it raises it to the log start offset",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "contradicting_epochs": FindingCode(
        "The leader epoch checkpoint has epochs that contradict each other.",
        "it leaves out the earlier ones that a later one contradicts",
        "compare with another replica: a follower may be truncated to a wrong offset",
        severities=(Severity.WARNING,),
    ),
    "empty_partition": FindingCode(
        "A directory has the name of a partition, and nothing of a log is in it. An error if "
        "checkpoints say that there was something.",
        "it starts with an empty log",
        "look for the files before a broker starts, or read another replica",
        severities=(
            Severity.WARNING,
            Severity.ERROR,
        ),
    ),
    "absent_partition": FindingCode(
        "Checkpoints name partitions that have no directory here: they have been moved or deleted, "
        "or their directories are lost.",
        "it forgets the lines at the next checkpoint, and fetches what it is to have from a leader",
        "if the partition is to be here, look for its directory",
        severities=(Severity.INFO,),
    ),
    # Log directories.
    "misnamed_directory": FindingCode(
        "A directory in the log directory is not named like a partition (lost+found, say).",
        _REFUSES,
        "take it out of the log directory; or give the broker a directory below the mount point",
        severities=(Severity.ERROR,),
    ),
    "stray_partition": FindingCode(
        "The directory is none of the partitions that this node has, by the topic id in "
        "partition.metadata and by the cluster's metadata.",
        "it renames the directory to -stray, and does not serve it; where the node is assigned "
        "the partition, it makes an empty one",
        "write partition.metadata with the topic's id, or find out where the partition belongs; "
        "--repair-to writes the file where the id is known",
        severities=(Severity.ERROR,),
    ),
    "missing_meta_properties": FindingCode(
        "A node's log directory without meta.properties.",
        _REFUSES,
        "write the file again, with the ids that other log directories of the node have",
        severities=(Severity.ERROR,),
    ),
    "future_beside_live": FindingCode(
        "A partition lies in a log directory twice, under its own name and as -future: a move "
        "between disks has failed.",
        _REFUSES,
        "compare the two, and take the -future directory out before a broker starts",
        severities=(Severity.ERROR,),
    ),
    "missing_metadata_log": FindingCode(
        "The directory of the cluster's metadata has neither a log nor a snapshot.",
        "a node that is the only controller starts without any topic, and sets all partitions "
        "aside (-stray); another one gets the metadata from the controllers",
        "copy __cluster_metadata-0 from another controller, or from a backup",
        severities=(Severity.ERROR,),
    ),
    "metadata_log_twice": FindingCode(
        "Two log directories of a node have a log of the cluster's metadata.",
        _REFUSES,
        "take the one out that is not in metadata.log.dir, the first log directory if that is "
        "not set",
        severities=(Severity.ERROR,),
    ),
    "unusable_metadata": FindingCode(
        "The cluster's metadata cannot be read from this log and its snapshots.",
        _REFUSES,
        "copy __cluster_metadata-0 from another controller; a broker that has lost it gets it from "
        "the controllers, if the directory is taken out",
        severities=(Severity.ERROR,),
    ),
    "cut_metadata_snapshot": FindingCode(
        "The newest snapshot of the cluster's metadata is cut: it lacks its footer.",
        "it starts with what is left: partitions of topics that are missing become -stray",
        "copy __cluster_metadata-0 from another controller",
        severities=(Severity.ERROR,),
    ),
    "discarded_metadata": FindingCode(
        "The log of the cluster's metadata does not reach its newest snapshot.",
        "it deletes the log, and goes on from the snapshot",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "deleted_directory": FindingCode(
        "The directory of a partition whose topic is being deleted (-delete).",
        "it deletes the directory",
        "copy it elsewhere, under the name of the partition, if it is still needed",
        severities=(Severity.INFO,),
    ),
    "stray_directory": FindingCode(
        "The directory of a partition that the broker is not to have (-stray).",
        "it keeps the directory and does not serve it",
        "delete it once it is sure that it is not needed",
        severities=(Severity.INFO,),
    ),
    "future_directory": FindingCode(
        "The copy of a partition that was on its way to this disk (-future).",
        "it goes on with the move",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "duplicate_partition": FindingCode(
        "Two directories of one broker hold the same partition; t-0 and t-00 do, since a broker "
        "reads a number.",
        _REFUSES,
        "compare them, and take one of them out of its log directory",
        severities=(Severity.ERROR,),
    ),
    "replicas_differ": FindingCode(
        "Two nodes' replicas have different records at one offset: two leaders have written, or "
        "one replica was changed by another program.",
        "the follower cuts its log where its leader epochs leave the leader's: what it has from "
        "there on is lost",
        "read both before the cluster starts; --repair-to makes a copy of each directory",
        severities=(Severity.ERROR,),
    ),
    "replica_behind": FindingCode(
        "Another node's replica of the partition is longer.",
        "it takes what it lacks from the leader; if it is the leader, the other one cuts off what "
        "it has more",
        "let the node with the longest replica lead, or read that one",
        severities=(Severity.INFO,),
    ),
    "several_clusters": FindingCode(
        "The log directories are of different clusters.",
        _NOTHING,
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "topic_ids_disagree": FindingCode(
        "The partitions of a topic have different topic ids: they are of two topics of that name.",
        "it moves those aside that do not have the id that the controller knows (-stray)",
        "find out which id the topic has, and copy the other partitions elsewhere",
        severities=(Severity.WARNING,),
    ),
    "duplicate_topic_id": FindingCode(
        "Two topics have the same topic id.",
        "it serves one of them, and moves the other aside (-stray)",
        "a directory was copied under another topic's name: take it out of the log directory",
        severities=(Severity.WARNING,),
    ),
    "damaged_meta_properties": FindingCode(
        "meta.properties cannot be read: whose log directory this is, is not known.",
        _REFUSES,
        "write it again, as in the broker's other log directories",
        severities=(Severity.ERROR,),
    ),
    "meta_properties_disagree": FindingCode(
        "Log directories with the same directory id: one is a copy of the other.",
        _REFUSES,
        "give the broker one of them",
        severities=(Severity.ERROR,),
    ),
    # What pylog writes itself.
    "damaged_manifest": FindingCode(
        "The manifest of a commit by pylog cannot be read: where logs end for readers is not "
        "known.",
        "nothing: it serves what was appended so far",
        "see the message; pylog does not open the log directory to write until it is mended",
        severities=(Severity.ERROR,),
    ),
    "damaged_topic_configs": FindingCode(
        "The topics' properties that pylog keeps cannot be read.",
        "nothing: it does not look at the file",
        "write pylog-topic-configs.json again, or delete it: topics have the defaults then; until "
        "that, pylog does not open the log directory to write",
        severities=(Severity.WARNING,),
    ),
    "pending_commit": FindingCode(
        "A commit by pylog is under way, or was interrupted.",
        "nothing: it serves what was appended so far",
        "let the job finish, or open the log directory with pylog to complete the commit",
        severities=(Severity.INFO,),
    ),
}
"""By code."""
