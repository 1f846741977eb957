"""Each kind of finding: what it means, what a broker does about it, and what to do.

What a broker does is that of Kafka 4.3. It depends on how the last one ended: after a clean
shutdown (``.kafka_cleanshutdown`` is in the log directory) no batch is read. Otherwise every
segment from the one with the recovery point on is scanned, cut at the first batch that is not whole
or has a wrong checksum, and indexed again; where bytes are cut off, all later segments are deleted.

Source: LogManager, LogLoader, LogSegment.recover, ReplicaManager, MetaPropertiesEnsemble (Kafka
4.3).
"""

from __future__ import annotations

from pylog.findings.finding import Effect, FindingKind, Severity

_NOTHING = "nothing"
_NO_NEED = "nothing needs to be done"
_CUTS = (
    "after a clean shutdown it starts, and consumers fail when they get here; otherwise, from the "
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
_DELETE_INDEX = (
    "delete the segment's .index file while the broker is stopped; the broker then rebuilds all of "
    "its indexes"
)
_REPAIRED = "either --repair-to or the broker's own rebuild fixes it"


# Batches.
DAMAGED_BATCHES = FindingKind(
    "damaged_batches",
    "Bytes that are not an intact batch: a wrong checksum, an impossible length, offsets out "
    "of order, or records that cannot be decoded.",
    _CUTS,
    _OTHER_REPLICA,
    severities=(Severity.ERROR,),
    effect=Effect.CONSUMERS,
    lost_as="damaged",
)
REPEATED_BATCHES = FindingKind(
    "repeated_batches",
    "Intact batches whose offsets the batches before them have already.",
    "nothing, unless an entry of the offset index leads to them: then recovery cuts the "
    "segment off",
    "use --mode DROPMALFORMED to read each offset once; a copy with --repair-to leaves out "
    "what comes again",
    severities=(Severity.WARNING,),
)
MISNAMED_SEGMENT = FindingKind(
    "misnamed_segment",
    "The batches of a file have offsets that do not fit its name: the file has been renamed, "
    "or belongs to another partition.",
    _CUTS,
    "in a copy, rename the file and its indexes as the message says",
    severities=(Severity.ERROR,),
    effect=Effect.CONSUMERS,
    lost_as="in a file with a wrong name",
)
FILLED_EMPTY_BATCH = FindingKind(
    "filled_empty_batch",
    "A batch counts no records, but bytes follow its header.",
    "nothing: brokers and consumers ignore these bytes",
    "inspect the bytes with pylog dump; the producer of the batch is at fault",
    severities=(Severity.ERROR,),
)
OVERSIZED_SEGMENT = FindingKind(
    "oversized_segment",
    "A .log file of more than 2 GiB, which no broker can open.",
    _REFUSES,
    _OTHER_REPLICA,
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
OVERLAPPING_SEGMENTS = FindingKind(
    "overlapping_segments",
    "Two segments hold the same offsets, as where files of a backup were put over a live "
    "directory.",
    "it serves them: a consumer gets each offset once, from the file where its read arrives",
    "compare both files (pylog cat FILE.log); a copy with --repair-to keeps what a consumer "
    "from the start gets",
    severities=(Severity.WARNING,),
)
OFFSET_OVERFLOW = FindingKind(
    "offset_overflow",
    "A segment has offsets more than 2^31-1 above its base offset, as brokers before 2.0 could "
    "write.",
    "it splits the segment",
    _NO_NEED,
    severities=(Severity.WARNING,),
)
TORN_TAIL = FindingKind(
    "torn_tail",
    "The last batch of the log is incomplete, as after a crash.",
    "it cuts the bytes off",
    "where records are lost, read another replica; do not copy .kafka_cleanshutdown along with a "
    "log of a running broker",
    severities=(Severity.INFO, Severity.ERROR),
)
START_REFUSED = FindingKind(
    "start_refused",
    "A broker cannot open the log.",
    _REFUSES,
    "do not start a broker on it; write a copy of what is intact with --repair-to. If only the "
    "end of the last segment is damaged, remove .kafka_cleanshutdown from a copy: the next "
    "start then cuts it off",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
LOST_AT_START = FindingKind(
    "lost_at_start",
    "Batches that can be read now, or that only a file holds that a broker deletes, are gone "
    "once a broker has started on the log.",
    "see the message",
    "write a copy with --repair-to, and start the broker on that",
    severities=(Severity.ERROR,),
    effect=Effect.LOSES,
    lost_as="deleted at the start",
)
UNREADABLE_APPENDS = FindingKind(
    "unreadable_appends",
    "Bytes follow the last batch of a log that was shut down cleanly.",
    "it starts, and appends after these bytes; its appends cannot be read. If 12 or more of "
    "the bytes are zeros, consumers already fail at the end of the log",
    "remove .kafka_cleanshutdown from a copy, so that the next start cuts the bytes off; or "
    "write a copy with --repair-to",
    severities=(Severity.WARNING,),
)
ZERO_TAIL = FindingKind(
    "zero_tail",
    "Zero bytes follow the last batch: the file is preallocated, or has a hole.",
    "it cuts the bytes off",
    _NO_NEED,
    severities=(Severity.INFO,),
)
SEGMENT_REST = FindingKind(
    "segment_rest",
    "Bytes follow the last batch of a segment that is not the last one; no offset is missing.",
    "after a clean shutdown nothing, but if 12 or more of them are zeros, consumers fail there "
    "and its cleaner gives up on the partition; otherwise, from the recovery point on, it cuts "
    "them off and deletes all later segments, even intact ones",
    "write a copy with --repair-to before a broker starts after an unclean shutdown",
    severities=(Severity.WARNING,),
)
MIXED_WRAPPER = FindingKind(
    "mixed_wrapper",
    "A compressed message of format v1 holds messages of format v0, as the log cleaner of "
    "brokers before 0.10.2 left them (KAFKA-4298).",
    "nothing; its cleaner rewrites such a message",
    _NO_NEED,
    severities=(Severity.INFO,),
)
HEADER_TIMESTAMP = FindingKind(
    "header_timestamp",
    "The largest timestamp in a batch's header differs from that of its records.",
    "nothing; look-ups by time, and retention by time, use the header",
    "to read by time, filter on the records' timestamps",
    severities=(Severity.WARNING,),
)

# Offsets.
MISSING_SEGMENT = FindingKind(
    "missing_segment",
    "Offsets are missing before a segment, and nothing shows that compaction, retention or "
    "remote storage has removed them: a .log file is missing. It is a warning for the first "
    "segment of a log that was not shut down cleanly: retention may have removed them. It is a "
    "warning in a compacted log, too, where several producer snapshots are left without their "
    "segments, or the cleaner has not come so far: the offsets are cleaned or lost.",
    "nothing: consumers skip the offsets without an error",
    "look for the file on other disks and in backups, or read another replica; --repair-to "
    "takes its records from .deleted files if they are there",
    severities=(
        Severity.ERROR,
        Severity.WARNING,
    ),
    effect=Effect.GONE,
    lost_as="missing",
)
OFFSET_GAP = FindingKind(
    "offset_gap",
    "Offsets are missing inside a segment, and nothing shows that compaction has removed them: "
    "a truncation, or a repair, has left a gap.",
    "nothing: consumers skip the offsets without an error",
    "compare with another replica",
    severities=(Severity.WARNING,),
    lost_as="missing",
)
COMPACTED_OFFSETS = FindingKind(
    "compacted_offsets",
    "Compaction has removed records; their offsets are missing.",
    _NOTHING,
    _NO_NEED,
    severities=(Severity.INFO,),
)

# Files of a partition.
MISSING_LOG = FindingKind(
    "missing_log",
    "Index files have no .log file beside them. It is an error if no .log file is left at all.",
    "it deletes the index files; if no .log file is left, it starts with an empty log",
    "look for the .log files before a broker starts",
    severities=(Severity.WARNING, Severity.ERROR),
    effect=Effect.GONE,
    lost_as="the file is missing",
)
MISNAMED_LOG = FindingKind(
    "misnamed_log",
    "A file ends in .log, but its name is not 20 digits.",
    "it does not start if the part before the dot is not a number; otherwise it creates an "
    "empty segment with that base offset, which hides later records of the previous segment",
    "move the file out of the directory, or rename it correctly",
    severities=(Severity.ERROR,),
)
LEFTOVER_FILE = FindingKind(
    "leftover_file",
    "A file of an interrupted deletion or compaction (.deleted, .cleaned, .swap).",
    "it deletes .deleted and .cleaned files, and replaces the old segments by .swap files, "
    "whatever is in them",
    "if a .swap index differs from that of a segment that stays, move it away before a broker "
    "starts; otherwise nothing needs to be done",
    severities=(Severity.INFO, Severity.WARNING, Severity.ERROR),
)
UNREADABLE = FindingKind(
    "unreadable",
    "A directory, a .log file or a disk cannot be read, so it may have more damage.",
    "not known where only this process may not read it; otherwise it takes the log directory "
    "offline",
    "run pylog as a user who may read it, and check the links and the disk",
    severities=(Severity.ERROR,),
    effect=Effect.UNKNOWN,
)
FORBIDDEN = FindingKind(
    "forbidden",
    "The broker's user may not do with a file or directory what a broker does with it at its "
    "start, or within minutes of it.",
    _REFUSES,
    "give the files to the broker's user (chown -R); or name the user with --as-user, if a "
    "broker runs as another one than the owner of most files",
    severities=(Severity.ERROR, Severity.WARNING),
    effect=Effect.OFFLINE,
)
REMOTE_OFFSETS = FindingKind(
    "remote_offsets",
    "The log starts in remote storage, which pylog does not read.",
    _NOTHING,
    _NO_NEED,
    severities=(Severity.INFO,),
)

# Indexes.
MISSING_INDEX = FindingKind(
    "missing_index",
    "A segment has no offset index.",
    "it scans the segment and rebuilds its indexes, also after a clean shutdown: damage is "
    "cut off then",
    _REPAIRED,
    severities=(Severity.WARNING,),
)
DAMAGED_INDEX = FindingKind(
    "damaged_index",
    "An offset index cannot be read, or its entries do not ascend.",
    _REBUILDS,
    _REPAIRED,
    severities=(Severity.WARNING,),
)
WRONG_INDEX = FindingKind(
    "wrong_index",
    "Entries of an offset index point to no batch, or to the wrong one.",
    _REBUILDS + "; fetches that use these entries fail, or start at the wrong batch",
    "delete the file while the broker is stopped; the broker then rebuilds it",
    severities=(Severity.WARNING,),
)
UNREACHABLE_BATCHES = FindingKind(
    "unreachable_batches",
    "Intact batches follow damage, and the offset index has no entry for them: a broker looks "
    "for them from an entry before the damage on, and gets stuck there.",
    "it starts, and fetches from these offsets fail",
    _OTHER_REPLICA,
    severities=(Severity.WARNING,),
)
MISSING_TIME_INDEX = FindingKind(
    "missing_time_index",
    "A segment has no time index.",
    "it creates an empty one: look-ups by timestamp use the file's modification time",
    "delete the segment's .index file, too, while the broker is stopped; the broker then "
    "rebuilds both",
    severities=(Severity.WARNING,),
)
DAMAGED_TIME_INDEX = FindingKind(
    "damaged_time_index",
    "A time index cannot be read, or its entries do not ascend.",
    _REBUILDS,
    _REPAIRED,
    severities=(Severity.WARNING,),
)
WRONG_TIME_INDEX = FindingKind(
    "wrong_time_index",
    "Entries of a time index have offsets that the segment does not have, or timestamps above "
    "those of the batch.",
    _REBUILDS + "; look-ups by timestamp, and retention by time, give wrong results",
    _DELETE_INDEX,
    severities=(Severity.WARNING,),
)
EMPTY_TIME_INDEX = FindingKind(
    "empty_time_index",
    "A time index is empty, although its batches have timestamps.",
    "it uses the file's date as their age: retention may remove the segment too early or too "
    "late, and look-ups by time may miss its records",
    _DELETE_INDEX,
    severities=(Severity.INFO,),
)
NO_TIME_INDEXES = FindingKind(
    "no_time_indexes",
    "No segment has a time index, as with brokers before 0.10.1.",
    "it creates empty ones",
    _NO_NEED,
    severities=(Severity.INFO,),
)
DAMAGED_TRANSACTION_INDEX = FindingKind(
    "damaged_transaction_index",
    "A transaction index cannot be read, or its entries do not ascend.",
    "it rebuilds the index with the segment; otherwise consumers of committed records fail",
    _REPAIRED,
    severities=(Severity.WARNING,),
)
WRONG_TRANSACTION_INDEX = FindingKind(
    "wrong_transaction_index",
    "A transaction index and the markers in the log disagree about aborted transactions.",
    _REBUILDS + "; consumers of committed records get aborted records, or miss committed ones",
    _DELETE_INDEX,
    severities=(Severity.WARNING,),
)
WRONG_STABLE_OFFSET = FindingKind(
    "wrong_stable_offset",
    "The producer snapshots that a broker begins with and the log disagree about which "
    "transactions are open.",
    "it believes the snapshots: consumers of committed records wait at the first open "
    "transaction, or get records of one that is not decided",
    "delete the snapshots of the partition while the broker is stopped: it reads the whole log "
    "then",
    severities=(Severity.WARNING,),
)

# Producers and leaders.
DAMAGED_SNAPSHOT = FindingKind(
    "damaged_snapshot",
    "A producer snapshot cannot be read.",
    "it deletes the file, uses an older one, and reads the batches after that",
    _NO_NEED,
    severities=(Severity.WARNING,),
)
WRONG_SNAPSHOT = FindingKind(
    "wrong_snapshot",
    "A producer snapshot and the log disagree about the last batches of a producer.",
    "it trusts the snapshot: it may refuse a producer, or accept a duplicate",
    "delete the snapshots of the partition while the broker is stopped",
    severities=(Severity.WARNING,),
)
SNAPSHOT_ABOVE_LOG_END = FindingKind(
    "snapshot_above_log_end",
    "A producer snapshot is for an offset after the end of the log.",
    "it deletes the file",
    _NO_NEED,
    severities=(Severity.INFO,),
)
SEQUENCE_GAP = FindingKind(
    "sequence_gap",
    "A producer's sequence numbers have a gap within an epoch, although no offset is missing: "
    "batches that it sent are not in the log. As info, the broker may have forgotten the "
    "producer, as it does after a day without records.",
    _NOTHING,
    "compare with another replica: the log may have been truncated and continued",
    severities=(Severity.WARNING, Severity.INFO),
)
REPEATED_SEQUENCE = FindingKind(
    "repeated_sequence",
    "A producer's sequence numbers go back within an epoch. As info, the broker may have "
    "forgotten the producer.",
    "nothing: consumers get all these records",
    "inspect the batches with pylog dump: the same records may be in the log twice",
    severities=(Severity.WARNING, Severity.INFO),
)
LEADER_EPOCH_BACK = FindingKind(
    "leader_epoch_back",
    "The leader epoch of a batch is lower than that of the previous batch.",
    _NOTHING,
    "compare with another replica: two leaders may have written",
    severities=(Severity.WARNING,),
)
LEADER_EPOCH_DISAGREES = FindingKind(
    "leader_epoch_disagrees",
    "The leader epoch checkpoint and a batch disagree about the epoch of an offset.",
    "it trusts the checkpoint: a follower may be truncated to a wrong offset, and consumers "
    "that go on behind the start of a wrong epoch begin again there",
    "delete leader-epoch-checkpoint in a copy; a broker that scans the log writes it again",
    severities=(Severity.WARNING,),
)
LEADER_EPOCH_ABOVE_LOG_END = FindingKind(
    "leader_epoch_above_log_end",
    "The leader epoch checkpoint has epochs that start after the end of the log.",
    "it removes those lines",
    "records at the end of the log may be missing: compare with another replica",
    severities=(Severity.WARNING,),
)

# Checkpoints.
DAMAGED_METADATA = FindingKind(
    "damaged_metadata",
    "partition.metadata cannot be read, so the topic id is unknown.",
    _REFUSES,
    "write the file again, with the topic id of the other partitions; --repair-to writes it if "
    "the id is known",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
DAMAGED_CHECKPOINT = FindingKind(
    "damaged_checkpoint",
    "A checkpoint file cannot be read.",
    _REFUSES,
    "write a copy with --repair-to. Or delete the file in a copy: without recovery points, a "
    "broker scans everything; it finds high watermarks and cleaner offsets again; without log "
    "start offsets, deleted records come back; leader epochs are lost",
    severities=(Severity.ERROR, Severity.WARNING),
    effect=Effect.REFUSES,
)
HIGH_WATERMARK_ABOVE_LOG_END = FindingKind(
    "high_watermark_above_log_end",
    "The high watermark is above the end of the log. It is an error if another file bears out "
    "that the log reached so far, or the log was not shut down cleanly: this disk has lost "
    "records that consumers have seen.",
    "it lowers the high watermark to the end of the log, and gives the lost offsets to new records",
    "read another replica, if there is one",
    severities=(Severity.ERROR, Severity.WARNING),
    effect=Effect.GONE,
    lost_as="torn off, though replicated",
)
HIGH_WATERMARK_BELOW_LOG_END = FindingKind(
    "high_watermark_below_log_end",
    "Records are above the high watermark. When it was written, at most a few seconds before "
    "the end, they were not known to be in all in-sync replicas.",
    "consumers see them once all in-sync replicas have them; a follower cuts them off if its "
    "leader does not have them; compaction skips them",
    "nothing if the topic has one replica; otherwise keep this disk until you have compared "
    "the replicas",
    severities=(Severity.INFO,),
)
RECOVERY_POINT_ABOVE_LOG_END = FindingKind(
    "recovery_point_above_log_end",
    "The recovery point is above the end of the log. It is an error if another file bears out "
    "that the log reached so far, or the log was not shut down cleanly: records that were "
    "forced to disk are missing.",
    "it lowers the recovery point; after an unclean shutdown it scans only the last segment",
    "read another replica, if there is one",
    severities=(Severity.ERROR, Severity.WARNING),
    effect=Effect.GONE,
    lost_as="torn off, though flushed",
)
CLEANER_OFFSET_ABOVE_LOG_END = FindingKind(
    "cleaner_offset_above_log_end",
    "The cleaner offset is above the end of the log: compacted records are missing.",
    "it cleans from the log start offset",
    "read another replica, if there is one",
    severities=(Severity.WARNING,),
)
LOG_START_OFFSET_ABOVE_LOG_END = FindingKind(
    "log_start_offset_above_log_end",
    "The log start offset is above the end of the log: no record is served.",
    "it deletes all segments, and starts an empty log at the log start offset",
    "before a broker starts, copy the segments, or remove the line from "
    "log-start-offset-checkpoint",
    severities=(Severity.WARNING,),
)
LOG_START_OFFSET_ELSEWHERE = FindingKind(
    "log_start_offset_elsewhere",
    "The line of log-start-offset-checkpoint that says where a log starts is on another disk "
    "of the node, where the log lay before: records that were deleted come back.",
    "it looks for the line on the disk of the log alone, and serves these records again",
    "while the broker is stopped, move the line to the log-start-offset-checkpoint beside the "
    "log, and count its lines again",
    severities=(Severity.WARNING,),
)
CLEANER_OFFSET_BELOW_LOG_START = FindingKind(
    "cleaner_offset_below_log_start",
    "The offset up to which the log is compacted is below the log start offset.",
    "it raises it to the log start offset",
    _NO_NEED,
    severities=(Severity.INFO,),
)
CONTRADICTING_EPOCHS = FindingKind(
    "contradicting_epochs",
    "The leader epoch checkpoint has epochs that contradict each other.",
    "it drops earlier epochs that a later one contradicts",
    "compare with another replica: a follower may be truncated to a wrong offset",
    severities=(Severity.WARNING,),
)
EMPTY_PARTITION = FindingKind(
    "empty_partition",
    "A directory has the name of a partition, but contains no log. It is an error if "
    "checkpoints say that there was one.",
    "it starts with an empty log",
    "look for the files before a broker starts, or read another replica",
    severities=(
        Severity.WARNING,
        Severity.ERROR,
    ),
    effect=Effect.GONE,
    lost_as="the directory is empty",
)
ABSENT_PARTITION = FindingKind(
    "absent_partition",
    "Checkpoints or the cluster's metadata names partitions that have no directory here. It is "
    "an error if a partition with records belongs here: the metadata assigns it to this node "
    "or, where it is not known, the log directory was shut down cleanly; a warning if other "
    "nodes are known to have it. Otherwise the partition has been moved or deleted.",
    "it drops these lines at its next checkpoint. It creates an empty log for a partition that "
    "it is assigned, and gets the records from another replica, if there is one",
    "before a broker starts, look for the directory on other disks and in backups, also under "
    "a name that ends in -stray or -delete",
    severities=(Severity.ERROR, Severity.WARNING, Severity.INFO),
    effect=Effect.GONE,
    lost_as="the directory is missing",
)

# Log directories.
MISNAMED_DIRECTORY = FindingKind(
    "misnamed_directory",
    "A directory in the log directory is not named like a partition, for example lost+found.",
    _REFUSES,
    "move it out of the log directory, or give the broker a directory below the mount point",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
STRAY_PARTITION = FindingKind(
    "stray_partition",
    "According to the topic id in partition.metadata and the cluster's metadata, this "
    "partition does not belong to this node; or partition.metadata is missing.",
    "it renames the directory to -stray, and does not serve it; if the node is assigned the "
    "partition, it creates an empty one",
    "write partition.metadata with the topic's id, or find out where the partition belongs; "
    "--repair-to writes the file if the id is known",
    severities=(Severity.ERROR,),
    effect=Effect.STRAY,
)
MISSING_META_PROPERTIES = FindingKind(
    "missing_meta_properties",
    "A node's log directory has no meta.properties.",
    _REFUSES,
    "write the file again, with the ids of the node's other log directories",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
FUTURE_BESIDE_LIVE = FindingKind(
    "future_beside_live",
    "A partition is in a log directory twice, under its own name and as -future: a move "
    "between disks has failed.",
    _REFUSES,
    "compare the two, and move the -future directory away before a broker starts",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
UNSERVED_PARTITION = FindingKind(
    "unserved_partition",
    "The cluster's metadata assigns the partition to the id of a log directory that none of the "
    "node's has: directory.id in meta.properties is missing or has changed, or the partition "
    "comes from a disk that is gone. Or meta.properties cannot be read.",
    "it starts, and the partition has no leader. It tells the controller where the partition "
    "is, and leads it after its next start; not from a log directory that is offline",
    "write the message's id into meta.properties of this log directory as directory.id, if it "
    "was its own; or start the broker, stop it, and start it again",
    severities=(Severity.ERROR,),
    effect=Effect.UNSERVED,
)
FUTURE_REPLACES_LIVE = FindingKind(
    "future_replaces_live",
    "A -future directory to whose log directory the cluster's metadata assigns the partition "
    "has less than the live directory.",
    "it makes the -future directory the partition, and deletes the live one after a minute",
    "move the -future directory away before a broker starts, or rename it to -stray",
    severities=(Severity.ERROR,),
    effect=Effect.LOSES,
)
FUTURE_IS_CUT = FindingKind(
    "future_is_cut",
    "A -future directory has records that no live directory has, and the cluster's metadata does "
    "not assign the partition to its log directory.",
    "it continues the move: it cuts the -future directory to where the live one ends, to "
    "nothing if it has to make an empty one, and puts it in the place of that",
    "do what the message says, or write a copy with --repair-to, which takes the longer one",
    severities=(Severity.ERROR,),
    effect=Effect.LOSES,
)
WAITS_FOR_CONTROLLERS = FindingKind(
    "waits_for_controllers",
    "The node needs controllers that were not given.",
    "it waits for most of the controllers that vote, and ends if they do not come",
    "give the log directories of the other controllers, too, to have them judged together; "
    "pylog info shows who votes, and where most voters are gone, pylog first-aid helps",
    severities=(Severity.INFO,),
)
LOG_DIRECTORY_NOT_GIVEN = FindingKind(
    "log_directory_not_given",
    "The cluster's metadata assigns partitions of the node to log directories that were not given.",
    "it starts with all directories in log.dirs",
    "give all log directories of the node",
    severities=(Severity.INFO,),
)
MISPLACED_METADATA_LOG = FindingKind(
    "misplaced_metadata_log",
    "The log of the cluster's metadata is not in the first log directory of the node.",
    _REFUSES,
    "give the log directories in the order of log.dirs; or name the directory with the log in "
    "metadata.log.dir of the node's configuration",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
MISSING_METADATA_LOG = FindingKind(
    "missing_metadata_log",
    "The directory of the cluster's metadata has neither a log nor a snapshot, or is missing.",
    "a node that is the only controller starts without topics, and renames all partitions to "
    "-stray; other nodes get the metadata from the controllers",
    "copy __cluster_metadata-0 from another controller, or from a backup",
    severities=(Severity.ERROR,),
    effect=Effect.GONE,
)
METADATA_LOG_TWICE = FindingKind(
    "metadata_log_twice",
    "Two log directories of a node have a log of the cluster's metadata.",
    _REFUSES,
    "move the one away that is not in metadata.log.dir (by default, the first log directory)",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
UNUSABLE_METADATA = FindingKind(
    "unusable_metadata",
    "The cluster's metadata cannot be read from this log and its snapshots, or a file beside "
    "them is damaged; or they are of a version that this version of Kafka cannot use.",
    _REFUSES,
    "see the message; otherwise, copy __cluster_metadata-0 from another controller; on a "
    "broker, move the directory away: it gets the metadata from the controllers",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
UNUSABLE_TOPIC_CONFIG = FindingKind(
    "unusable_topic_config",
    "By the cluster's metadata, a topic has a configuration that this version of Kafka refuses.",
    _REFUSES,
    "change it with the version before this one, and kafka-configs.sh",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
UNUSABLE_BROKER_CONFIG = FindingKind(
    "unusable_broker_config",
    "The file of server properties that was given has a value that this version of Kafka refuses.",
    _REFUSES,
    "change it in the file",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
CUT_METADATA_SNAPSHOT = FindingKind(
    "cut_metadata_snapshot",
    "The newest snapshot of the cluster's metadata is cut off: it lacks its footer.",
    "it starts with the rest: partitions of missing topics become -stray",
    "copy __cluster_metadata-0 from another controller",
    severities=(Severity.ERROR,),
    effect=Effect.GONE,
)
DISCARDED_METADATA = FindingKind(
    "discarded_metadata",
    "The log of the cluster's metadata does not reach its newest snapshot.",
    "it deletes the log, and continues from the snapshot",
    _NO_NEED,
    severities=(Severity.WARNING,),
)
DELETED_DIRECTORY = FindingKind(
    "deleted_directory",
    "The directory of a partition whose topic is being deleted (-delete).",
    "it loads the log, and deletes the directory",
    "if you still need it, copy it elsewhere under the name of the partition",
    severities=(Severity.INFO,),
)
STRAY_DIRECTORY = FindingKind(
    "stray_directory",
    "The directory of a partition that does not belong to this broker (-stray).",
    "it loads the log, keeps the directory and does not serve it",
    "delete it once you are sure that you do not need it",
    severities=(Severity.INFO,),
)
FUTURE_DIRECTORY = FindingKind(
    "future_directory",
    "The copy of a partition that was being moved to this disk (-future).",
    "it continues the move; if the cluster's metadata assigns the partition to this log "
    "directory, this one becomes it",
    _NO_NEED,
    severities=(Severity.INFO,),
)
DUPLICATE_PARTITION = FindingKind(
    "duplicate_partition",
    "Two directories of one broker hold the same partition; t-0 and t-00 are the same, because "
    "a broker reads a number.",
    _REFUSES,
    "compare them, and move one of them out of its log directory",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
REPLICAS_DIFFER = FindingKind(
    "replicas_differ",
    "Two nodes' replicas have different records at one offset: two leaders have written, or "
    "one replica was changed by another program.",
    "the follower cuts its log where its leader epochs diverge from the leader's: its records "
    "from there on are lost",
    "read both before the cluster starts; --repair-to writes a copy of each directory",
    severities=(Severity.ERROR,),
    effect=Effect.LOSES,
)
REPLICA_BEHIND = FindingKind(
    "replica_behind",
    "Another node's replica of the partition is longer. It is a warning if the cluster's "
    "metadata has the shorter one as leader, or in sync, and its node was stopped in order; "
    "otherwise a follower lags.",
    "it fetches the missing records from the leader; if it is the leader, the other replica "
    "cuts off its additional records",
    "make the node with the longest replica the leader, or get the records as the message says "
    "before the cluster starts",
    severities=(Severity.WARNING, Severity.INFO),
)
SEVERAL_CLUSTERS = FindingKind(
    "several_clusters",
    "The log directories belong to different clusters.",
    _NOTHING,
    _NO_NEED,
    severities=(Severity.INFO,),
)
TOPIC_IDS_DISAGREE = FindingKind(
    "topic_ids_disagree",
    "The partitions of a topic have different topic ids: they belong to two topics of that name.",
    "it renames those without the controller's id to -stray",
    "find out which id the topic has, and copy the other partitions elsewhere",
    severities=(Severity.WARNING,),
)
DUPLICATE_TOPIC_ID = FindingKind(
    "duplicate_topic_id",
    "Two topics have the same topic id.",
    "it serves one of them, and renames the other to -stray",
    "a directory was copied under another topic's name: move it out of the log directory",
    severities=(Severity.WARNING,),
)
DAMAGED_META_PROPERTIES = FindingKind(
    "damaged_meta_properties",
    "meta.properties cannot be read, so the owner of the log directory is unknown; or it says "
    "what no node accepts, such as a cluster id with blanks at an end that those of the other "
    "log directories do not have.",
    _REFUSES,
    "write it again, as in the broker's other log directories",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
META_PROPERTIES_OF_ANOTHER = FindingKind(
    "meta_properties_of_another",
    "meta.properties names another node or cluster than the one that the cluster's metadata "
    "has the log directory of.",
    "it does not start, or the controllers refuse it",
    "write the right node.id and cluster.id; or give the broker its own log directory",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)
META_PROPERTIES_DISAGREE = FindingKind(
    "meta_properties_disagree",
    "Log directories with the same directory id: one is a copy of the other, or a link to it.",
    _REFUSES,
    "give the broker only one of them",
    severities=(Severity.ERROR,),
    effect=Effect.REFUSES,
)

# Consumer groups, and transactional ids.
GROUP_RESETS = FindingKind(
    "group_resets",
    "A consumer group has committed an offset that is not in the log of its partition, or "
    "whose partition is gone. It is a warning where records are missing that there were; "
    "otherwise retention has removed them, or the topic is deleted.",
    "nothing: the group's consumers begin where their auto.offset.reset says, or end with an error",
    "find the records in another replica, or a backup, before the group's consumers start; or "
    "set its position with kafka-consumer-groups --reset-offsets (pylog groups lists all)",
    severities=(Severity.WARNING, Severity.INFO),
)
GROUP_EXPIRES = FindingKind(
    "group_expires",
    "A committed offset is older than offsets.retention.minutes, 7 days unless "
    "--server-properties says otherwise; or its own time of expiry is past.",
    "it deletes the offset at its first look, ten minutes after its start, unless members of "
    "the group have come back or committed",
    "save them (pylog groups --csv); or raise offsets.retention.minutes before the start",
    severities=(Severity.INFO,),
)
REFUSED_GROUPS = FindingKind(
    "refused_groups",
    "A partition of __consumer_offsets has records of two kinds of one group.",
    "since 4.0, it does not load the partition: none of the groups in it is available",
    "save what is readable (pylog groups --csv), and see the message for the record",
    severities=(Severity.ERROR, Severity.WARNING),
    effect=Effect.CONSUMERS,
)
MISSING_GROUPS = FindingKind(
    "missing_groups",
    "Partitions of __consumer_offsets are not here; the groups in them are not known.",
    _NOTHING,
    "give the log directories of the other brokers, too",
    severities=(Severity.INFO,),
)
SHARED_PRODUCER_ID = FindingKind(
    "shared_producer_id",
    "Several transactional ids have one producer id, as coordinators never give out.",
    "it takes what one of them writes, commits or aborts for the others', too",
    "let one of them alone run; a copied partition of __transaction_state may be the reason",
    severities=(Severity.WARNING,),
)
FORGOTTEN_LEADER = FindingKind(
    "forgotten_leader",
    "Other controllers have a node as leader of an epoch of which it does not know itself.",
    "it ends if one of them asks it before they have chosen another leader",
    "start the others first, and this node once they have a leader",
    severities=(Severity.WARNING,),
)
HANGING_TRANSACTION = FindingKind(
    "hanging_transaction",
    "A transaction is open in the log, and its coordinator has none there that it would end.",
    "it lets consumers of committed records wait at the transaction's first record for ever",
    "abort it once the broker runs (kafka-transactions.sh find-hanging, then abort)",
    severities=(Severity.WARNING,),
)

# What pylog writes itself.
DAMAGED_MANIFEST = FindingKind(
    "damaged_manifest",
    "The manifest of a commit by pylog cannot be read, so the end of logs for readers is unknown.",
    "nothing: it serves the records appended so far",
    "see the message; pylog does not write to the log directory until this is fixed",
    severities=(Severity.ERROR,),
)
DAMAGED_LEDGER = FindingKind(
    "damaged_ledger",
    "The ledger of the jobs that pylog has written, or a file that it names, cannot be read.",
    "nothing: it ignores the files",
    "see the message; pylog refuses jobs of which it cannot tell whether they were written",
    severities=(Severity.ERROR,),
)
DAMAGED_TOPIC_CONFIGS = FindingKind(
    "damaged_topic_configs",
    "The topic properties that pylog has stored cannot be read.",
    "nothing: it ignores the file",
    "write pylog-topic-configs.json again, or delete it, so that topics have the defaults; "
    "until then, pylog does not write to the log directory",
    severities=(Severity.WARNING,),
)
PENDING_COMMIT = FindingKind(
    "pending_commit",
    "A commit by pylog is in progress, or was interrupted.",
    "nothing: it serves the records appended so far",
    "let the job finish, or open the log directory with pylog to complete the commit",
    severities=(Severity.INFO,),
)

BY_CODE = {each.code: each for each in tuple(globals().values()) if isinstance(each, FindingKind)}
"""All kinds, in the order of docs/doctor-codes.md."""
