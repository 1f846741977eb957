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
from typing import TYPE_CHECKING, NamedTuple

from pylog.locations import printable_location

if TYPE_CHECKING:
    from pylog.record.batch_scan import Window

FINDINGS = """\
Problems of a log, and what else is worth knowing; no row if there is nothing.

severity      string  ``error``: records are lost or cannot be read, or a broker does not start;
                      ``warning``: a side file that a broker would rebuild, delete or ignore;
                      ``info``: worth knowing, but not a problem
code          string  the kind of finding; docs/doctor-codes.md lists all
path          string  the file
position      int64   bytes from here on, where that has a meaning
end_position  int64   up to here, exclusive
next_offset   int64   offsets from here on, where that has a meaning
end_offset    int64   up to here, exclusive; null where no intact batch follows
from_time     timestamp of the record before these offsets, where it is known
to_time       timestamp of the record after them, likewise
message       string  the problem, with stored and expected values
broker_action string  what a broker does about it when it starts on the directory
advice        string  what to do

One walk reads everything: it verifies checksums, decodes records, and compares headers with
indexes. Memory holds one window, the indexes of two segments, and the content of snapshots. A file
that cannot be read at all (a FIFO, a broken link) counts as damaged.

Rows about log directories come first, and have neither topic nor partition: they are about files
beside the partitions, contradictions between partitions, and errors in directories that are not
live (-stray, -delete, -future). All but the latter cover all partitions, whichever are chosen, and
there are none if partition directories are given. Rows about consumer groups are among them if
``__consumer_offsets`` is chosen; offsets go for their age after 7 days there, Kafka's default.
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
        """The sort key: errors before warnings before infos."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        """Whether this is as bad as ``other``, or worse."""
        return self.rank <= other.rank


class Effect(StrEnum):
    """What a finding is for the verdict.

    Attributes
    ----------
    REFUSES
        A broker does not start.
    ENDS_LATER
        A broker starts, and its next start ends.
    OFFLINE
        A broker takes the log directory offline, and serves none of its partitions; it does not
        start if it has no other one, or the cluster's metadata are in it.
    OFFLINE_WHEN_READ
        A broker starts, and takes the log directory offline once somebody reads there.
    ENDS_WHEN_READ
        A broker starts, and ends once somebody reads there: it cannot do without the directory.
    LOSES
        A broker that starts removes records for good.
    STRAY
        A broker sets the partition aside, and serves none of it.
    UNSERVED
        A broker starts, and the partition has no leader, or waits for other nodes.
    GONE
        Records are gone already.
    BEHIND
        Another node's replica has records that this one lacks.
    RESETS
        A consumer group does not go on at its position.
    EXPIRES
        A committed offset goes for its age, soon after the start.
    CONSUMERS
        Consumers get something else than what was written, or an error.
    UNKNOWN
        What a broker does about it is not known.
    UNKNOWN_OFFLINE
        A broker takes the log directory offline, and what becomes of its partitions is not known.
    """

    REFUSES = "refuses"
    ENDS_LATER = "ends_later"
    OFFLINE = "offline"
    OFFLINE_WHEN_READ = "offline_when_read"
    ENDS_WHEN_READ = "ends_when_read"
    LOSES = "loses"
    STRAY = "stray"
    UNSERVED = "unserved"
    GONE = "gone"
    BEHIND = "behind"
    RESETS = "resets"
    EXPIRES = "expires"
    CONSUMERS = "consumers"
    UNKNOWN = "unknown"
    UNKNOWN_OFFLINE = "unknown_offline"


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
    from_time, to_time
        Milliseconds: the timestamps of the records around these offsets, where they are known.
    own_effect
        What it is for the verdict, where that is not what its code says.
    own_action
        What a broker does about this one, as its simulated start has shown; None where the code
        says it.
    groups
        The consumer groups that it is about.
    """

    severity: Severity
    code: str
    path: str
    message: str
    position: int | None = None
    end_position: int | None = None
    next_offset: int | None = None
    end_offset: int | None = None
    from_time: int | None = None
    to_time: int | None = None
    own_effect: Effect | None = None
    own_action: str | None = None
    groups: tuple[str, ...] = ()

    @property
    def broker_action(self) -> str:
        """What a broker does about it when it starts on the directory."""
        return self.own_action or FINDING_CODES[self.code].broker_action

    @property
    def effect(self) -> Effect | None:
        """What it is for the verdict; None where it does not change that."""
        if self.own_effect is not None:
            return self.own_effect
        return FINDING_CODES[self.code].effect if self.severity is Severity.ERROR else None

    @property
    def advice(self) -> str:
        """What an operator can do about it."""
        return FINDING_CODES[self.code].advice

    @property
    def refuses_start(self) -> bool:
        """Whether a broker does not start because of it, or takes the log directory offline."""
        return self.effect in (Effect.REFUSES, Effect.OFFLINE)

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
            self.from_time,
            self.to_time,
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


def about_batch(severity: Severity, code: str, message: str, window: Window, place: int) -> Finding:
    """Return a finding about one batch of a window, by its place there."""
    headers = window.headers
    position = window.position_of(place)
    return Finding(
        severity,
        code,
        window.path,
        message,
        position,
        position + int(headers.sizes_bytes[place]),
        int(headers.offsets[place]),
        int(headers.last_offsets[place]) + 1,
    )


class FindingCode(NamedTuple):
    """What is known of a kind of finding."""

    meaning: str  # what is wrong, or worth knowing
    broker_action: str  # what a broker does about it when it starts on the directory
    advice: str  # what an operator can do
    severities: tuple[Severity, ...]  # how bad it can be
    effect: Effect | None = None  # what an error of this kind is for the verdict
    lost_as: str = ""  # what happened to records that are lost by it, in two or three words


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
_DELETE_INDEX = (
    "delete the segment's .index file while the broker is stopped; the broker then rebuilds all of "
    "its indexes"
)
_REPAIRED = "a copy written with --repair-to has it right; so has a broker that rebuilds it"

FINDING_CODES = {
    # Batches.
    "damaged_batches": FindingCode(
        "Bytes that are not an intact batch: a wrong checksum, an impossible length, offsets out "
        "of order, or records that cannot be decoded.",
        _CUTS,
        _OTHER_REPLICA,
        severities=(Severity.ERROR,),
        effect=Effect.CONSUMERS,
        lost_as="damaged",
    ),
    "repeated_batches": FindingCode(
        "Intact batches whose offsets the batches before them have already.",
        "nothing, unless an entry of the offset index leads to them: then recovery cuts the "
        "segment off",
        "use --mode DROPMALFORMED to read each offset once; a copy with --repair-to leaves out "
        "what comes again",
        severities=(Severity.WARNING,),
    ),
    "misnamed_segment": FindingCode(
        "The batches of a file have offsets that do not fit its name: the file has been renamed, "
        "or belongs to another partition.",
        _CUTS,
        "in a copy, rename the file and its indexes as the message says",
        severities=(Severity.ERROR,),
        effect=Effect.CONSUMERS,
        lost_as="in a file with a wrong name",
    ),
    "filled_empty_batch": FindingCode(
        "A batch counts no records, but bytes follow its header.",
        "nothing: brokers and consumers ignore these bytes",
        "inspect the bytes with pylog dump; the producer of the batch is at fault",
        severities=(Severity.ERROR,),
    ),
    "oversized_segment": FindingCode(
        "A .log file of more than 2 GiB, which no broker can open.",
        _REFUSES,
        _OTHER_REPLICA,
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "overlapping_segments": FindingCode(
        "Two segments hold the same offsets, as where files of a backup were put over a live "
        "directory.",
        "it serves them: a consumer gets each offset once, from the file where its read arrives",
        "compare both files (pylog cat FILE.log); a copy with --repair-to keeps what a consumer "
        "from the start gets",
        severities=(Severity.WARNING,),
    ),
    "offset_overflow": FindingCode(
        "A segment has offsets more than 2^31-1 above its base offset, as brokers before 2.0 could "
        "write.",
        "it splits the segment",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "torn_tail": FindingCode(
        "The last batch of the log is incomplete, as after a crash.",
        "it cuts the bytes off",
        "do not copy .kafka_cleanshutdown along with a log that was taken from a running broker",
        severities=(Severity.INFO, Severity.ERROR),
    ),
    "start_refused": FindingCode(
        "A broker cannot open the log.",
        _REFUSES,
        "do not start a broker on it; write a copy of what is intact with --repair-to. If only the "
        "end of the last segment is damaged, remove .kafka_cleanshutdown from a copy: the next "
        "start then cuts it off",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "lost_at_start": FindingCode(
        "Batches that can be read now, or that only a file holds that a broker deletes, are gone "
        "once a broker has started on the log.",
        "see the message",
        "write a copy with --repair-to, and start the broker on that",
        severities=(Severity.ERROR,),
        effect=Effect.LOSES,
        lost_as="deleted at the start",
    ),
    "unreadable_appends": FindingCode(
        "Bytes follow the last batch of a log that was shut down cleanly.",
        "it starts, and appends after these bytes; its appends cannot be read. If 12 or more of "
        "the bytes are zeros, consumers already fail at the end of the log",
        "remove .kafka_cleanshutdown from a copy, so that the next start cuts the bytes off; or "
        "write a copy with --repair-to",
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
        "after a clean shutdown nothing, but if 12 or more of them are zeros, consumers fail there "
        "and its cleaner gives up on the partition; otherwise, from the recovery point on, it cuts "
        "them off and deletes all later segments, even intact ones",
        "write a copy with --repair-to before a broker starts after an unclean shutdown",
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
        "The largest timestamp in a batch's header differs from that of its records.",
        "nothing; look-ups by time, and retention by time, use the header",
        "to read by time, filter on the records' timestamps",
        severities=(Severity.WARNING,),
    ),
    # Offsets.
    "missing_segment": FindingCode(
        "Offsets are missing before a segment, and nothing shows that compaction, retention or "
        "remote storage has removed them: a .log file is missing. It is a warning for the first "
        "segment of a log that was not shut down cleanly: retention may have removed them.",
        "nothing: consumers skip the offsets without an error",
        "look for the file on other disks and in backups, or read another replica; --repair-to "
        "takes its records from .deleted files if they are there",
        severities=(
            Severity.ERROR,
            Severity.WARNING,
        ),
        effect=Effect.GONE,
        lost_as="missing",
    ),
    "offset_gap": FindingCode(
        "Offsets are missing inside a segment, and nothing shows that compaction has removed them: "
        "a truncation, or a repair, has left a gap.",
        "nothing: consumers skip the offsets without an error",
        "compare with another replica",
        severities=(Severity.WARNING,),
        lost_as="missing",
    ),
    "compacted_offsets": FindingCode(
        "Compaction has removed records; their offsets are missing.",
        _NOTHING,
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    # Files of a partition.
    "missing_log": FindingCode(
        "Index files have no .log file beside them. It is an error if no .log file is left at all.",
        "it deletes the index files; if no .log file is left, it starts with an empty log",
        "look for the .log files before a broker starts",
        severities=(Severity.WARNING, Severity.ERROR),
        effect=Effect.GONE,
        lost_as="the file is missing",
    ),
    "misnamed_log": FindingCode(
        "A file ends in .log, but its name is not 20 digits.",
        "it does not start if the part before the dot is not a number; otherwise it creates an "
        "empty segment with that base offset, which hides later records of the previous segment",
        "move the file out of the directory, or rename it correctly",
        severities=(Severity.ERROR,),
    ),
    "leftover_file": FindingCode(
        "A file of an interrupted deletion or compaction (.deleted, .cleaned, .swap).",
        "it deletes .deleted and .cleaned files, and replaces the old segments by .swap files, "
        "whatever is in them",
        "if a .swap index differs from that of a segment that stays, move it away before a broker "
        "starts; otherwise nothing needs to be done",
        severities=(Severity.INFO, Severity.WARNING, Severity.ERROR),
    ),
    "unreadable": FindingCode(
        "A directory, a .log file or a disk cannot be read, so it may have more damage.",
        "not known where only this process may not read it; otherwise it takes the log directory "
        "offline",
        "run pylog as a user who may read it, and check the links and the disk",
        severities=(Severity.ERROR,),
        effect=Effect.UNKNOWN,
    ),
    "forbidden": FindingCode(
        "The broker's user may not do with a file or directory what a broker does with it at its "
        "start, or within minutes of it.",
        _REFUSES,
        "give the files to the broker's user (chown -R); or name the user with --as-user, if a "
        "broker runs as another one than the owner of most files",
        severities=(Severity.ERROR, Severity.WARNING),
        effect=Effect.OFFLINE,
    ),
    "remote_offsets": FindingCode(
        "The log starts in remote storage, which pylog does not read.",
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
        "An offset index cannot be read, or its entries do not ascend.",
        _REBUILDS,
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_index": FindingCode(
        "Entries of an offset index point to no batch, or to the wrong one.",
        _REBUILDS + "; fetches that use these entries fail, or start at the wrong batch",
        "delete the file while the broker is stopped; the broker then rebuilds it",
        severities=(Severity.WARNING,),
    ),
    "unreachable_batches": FindingCode(
        "Intact batches follow damage, and the offset index has no entry for them: a broker looks "
        "for them from an entry before the damage on, and gets stuck there.",
        "it starts, and fetches from these offsets fail",
        _OTHER_REPLICA,
        severities=(Severity.WARNING,),
    ),
    "missing_time_index": FindingCode(
        "A segment has no time index.",
        "it creates an empty one: look-ups by timestamp use the file's modification time",
        "delete the segment's .index file, too, while the broker is stopped; the broker then "
        "rebuilds both",
        severities=(Severity.WARNING,),
    ),
    "damaged_time_index": FindingCode(
        "A time index cannot be read, or its entries do not ascend.",
        _REBUILDS,
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_time_index": FindingCode(
        "Entries of a time index have offsets that the segment does not have, or timestamps above "
        "those of the batch.",
        _REBUILDS + "; look-ups by timestamp, and retention by time, give wrong results",
        _DELETE_INDEX,
        severities=(Severity.WARNING,),
    ),
    "empty_time_index": FindingCode(
        "A time index is empty, although its batches have timestamps.",
        "it uses the file's date as their age: retention may remove the segment too early or too "
        "late, and look-ups by time may miss its records",
        _DELETE_INDEX,
        severities=(Severity.INFO,),
    ),
    "no_time_indexes": FindingCode(
        "No segment has a time index, as with brokers before 0.10.1.",
        "it creates empty ones",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "damaged_transaction_index": FindingCode(
        "A transaction index cannot be read, or its entries do not ascend.",
        "it rebuilds the index with the segment; otherwise consumers of committed records fail",
        _REPAIRED,
        severities=(Severity.WARNING,),
    ),
    "wrong_transaction_index": FindingCode(
        "A transaction index and the markers in the log disagree about aborted transactions.",
        _REBUILDS + "; consumers of committed records get aborted records, or miss committed ones",
        _DELETE_INDEX,
        severities=(Severity.WARNING,),
    ),
    "wrong_stable_offset": FindingCode(
        "The producer snapshots that a broker begins with and the log disagree about which "
        "transactions are open.",
        "it believes the snapshots: consumers of committed records wait at the first open "
        "transaction, or get records of one that is not decided",
        "delete the snapshots of the partition while the broker is stopped: it reads the whole log "
        "then",
        severities=(Severity.WARNING,),
    ),
    # Producers and leaders.
    "damaged_snapshot": FindingCode(
        "A producer snapshot cannot be read.",
        "it deletes the file, uses an older one, and reads the batches after that",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "wrong_snapshot": FindingCode(
        "A producer snapshot and the log disagree about the last batches of a producer.",
        "it trusts the snapshot: it may refuse a producer, or accept a duplicate",
        "delete the snapshots of the partition while the broker is stopped",
        severities=(Severity.WARNING,),
    ),
    "snapshot_above_log_end": FindingCode(
        "A producer snapshot is for an offset after the end of the log.",
        "it deletes the file",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "sequence_gap": FindingCode(
        "A producer's sequence numbers have a gap within an epoch, although no offset is missing: "
        "batches that it sent are not in the log. As info, the broker may have forgotten the "
        "producer, as it does after a day without records.",
        _NOTHING,
        "compare with another replica: the log may have been truncated and continued",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "repeated_sequence": FindingCode(
        "A producer's sequence numbers go back within an epoch. As info, the broker may have "
        "forgotten the producer.",
        "nothing: consumers get all these records",
        "inspect the batches with pylog dump: the same records may be in the log twice",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "leader_epoch_back": FindingCode(
        "The leader epoch of a batch is lower than that of the previous batch.",
        _NOTHING,
        "compare with another replica: two leaders may have written",
        severities=(Severity.WARNING,),
    ),
    "leader_epoch_disagrees": FindingCode(
        "The leader epoch checkpoint and a batch disagree about the epoch of an offset.",
        "it trusts the checkpoint: a follower may be truncated to a wrong offset, and consumers "
        "that go on behind the start of a wrong epoch begin again there",
        "delete leader-epoch-checkpoint in a copy; a broker that scans the log writes it again",
        severities=(Severity.WARNING,),
    ),
    "leader_epoch_above_log_end": FindingCode(
        "The leader epoch checkpoint has epochs that start after the end of the log.",
        "it removes those lines",
        "records at the end of the log may be missing: compare with another replica",
        severities=(Severity.WARNING,),
    ),
    # Checkpoints.
    "damaged_metadata": FindingCode(
        "partition.metadata cannot be read, so the topic id is unknown.",
        _REFUSES,
        "write the file again, with the topic id of the other partitions; --repair-to writes it if "
        "the id is known",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "damaged_checkpoint": FindingCode(
        "A checkpoint file cannot be read.",
        _REFUSES,
        "write a copy with --repair-to. Or delete the file in a copy: without recovery points, a "
        "broker scans everything; it finds high watermarks and cleaner offsets again; without log "
        "start offsets, deleted records come back; leader epochs are lost",
        severities=(Severity.ERROR, Severity.WARNING),
        effect=Effect.REFUSES,
    ),
    "high_watermark_above_log_end": FindingCode(
        "The high watermark is above the end of the log. It is an error if another file bears out "
        "that the log reached so far, or the log was not shut down cleanly: this disk has lost "
        "records that consumers have seen.",
        "it lowers the high watermark to the end of the log, and gives the lost offsets to new "
        "records",
        "read another replica, if there is one",
        severities=(Severity.ERROR, Severity.WARNING),
        effect=Effect.GONE,
        lost_as="torn off, though replicated",
    ),
    "high_watermark_below_log_end": FindingCode(
        "Records are above the high watermark. When it was written, at most a few seconds before "
        "the end, they were not known to be in all in-sync replicas.",
        "consumers see them once all in-sync replicas have them; a follower cuts them off if its "
        "leader does not have them; compaction skips them",
        "nothing if the topic has one replica; otherwise keep this disk until you have compared "
        "the replicas",
        severities=(Severity.INFO,),
    ),
    "recovery_point_above_log_end": FindingCode(
        "The recovery point is above the end of the log. It is an error if another file bears out "
        "that the log reached so far, or the log was not shut down cleanly: records that were "
        "forced to disk are missing.",
        "it lowers the recovery point; after an unclean shutdown it scans only the last segment",
        "read another replica, if there is one",
        severities=(Severity.ERROR, Severity.WARNING),
        effect=Effect.GONE,
        lost_as="torn off, though flushed",
    ),
    "cleaner_offset_above_log_end": FindingCode(
        "The cleaner offset is above the end of the log: compacted records are missing.",
        "it cleans from the log start offset",
        "read another replica, if there is one",
        severities=(Severity.WARNING,),
    ),
    "log_start_offset_above_log_end": FindingCode(
        "The log start offset is above the end of the log: no record is served.",
        "it deletes all segments, and starts an empty log at the log start offset",
        "before a broker starts, copy the segments, or remove the line from "
        "log-start-offset-checkpoint",
        severities=(Severity.WARNING,),
    ),
    "log_start_offset_elsewhere": FindingCode(
        "The line of log-start-offset-checkpoint that says where a log starts is on another disk "
        "of the node, where the log lay before: records that were deleted come back.",
        "it looks for the line on the disk of the log alone, and serves these records again",
        "while the broker is stopped, move the line to the log-start-offset-checkpoint beside the "
        "log, and count its lines again",
        severities=(Severity.WARNING,),
    ),
    "cleaner_offset_below_log_start": FindingCode(
        "The offset up to which the log is compacted is below the log start offset.",
        "it raises it to the log start offset",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "contradicting_epochs": FindingCode(
        "The leader epoch checkpoint has epochs that contradict each other.",
        "it drops earlier epochs that a later one contradicts",
        "compare with another replica: a follower may be truncated to a wrong offset",
        severities=(Severity.WARNING,),
    ),
    "empty_partition": FindingCode(
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
    ),
    "absent_partition": FindingCode(
        "Checkpoints or the cluster's metadata name partitions that have no directory here. It is "
        "an error if a partition with records belongs here: the metadata assign it to this node "
        "or, where they are not known, the log directory was shut down cleanly; a warning if other "
        "nodes are known to have it. Otherwise the partition has been moved or deleted.",
        "it drops these lines at its next checkpoint. It creates an empty log for a partition that "
        "it is assigned, and gets the records from another replica, if there is one",
        "before a broker starts, look for the directory on other disks and in backups, also under "
        "a name that ends in -stray or -delete",
        severities=(Severity.ERROR, Severity.WARNING, Severity.INFO),
        effect=Effect.GONE,
        lost_as="the directory is missing",
    ),
    # Log directories.
    "misnamed_directory": FindingCode(
        "A directory in the log directory is not named like a partition, for example lost+found.",
        _REFUSES,
        "move it out of the log directory, or give the broker a directory below the mount point",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "stray_partition": FindingCode(
        "According to the topic id in partition.metadata and the cluster's metadata, this "
        "partition does not belong to this node; or partition.metadata is missing.",
        "it renames the directory to -stray, and does not serve it; if the node is assigned the "
        "partition, it creates an empty one",
        "write partition.metadata with the topic's id, or find out where the partition belongs; "
        "--repair-to writes the file if the id is known",
        severities=(Severity.ERROR,),
        effect=Effect.STRAY,
    ),
    "missing_meta_properties": FindingCode(
        "A node's log directory has no meta.properties.",
        _REFUSES,
        "write the file again, with the ids of the node's other log directories",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "future_beside_live": FindingCode(
        "A partition is in a log directory twice, under its own name and as -future: a move "
        "between disks has failed.",
        _REFUSES,
        "compare the two, and move the -future directory away before a broker starts",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "unserved_partition": FindingCode(
        "The cluster's metadata assign the partition to the id of a log directory that none of the "
        "node's has: directory.id in meta.properties is missing or has changed, or the partition "
        "comes from a disk that is gone. Or meta.properties cannot be read.",
        "it starts, and the partition has no leader. It tells the controller where the partition "
        "is, and leads it after its next start; not from a log directory that is offline",
        "write the message's id into meta.properties of this log directory as directory.id, if it "
        "was its own; or start the broker, stop it, and start it again",
        severities=(Severity.ERROR,),
        effect=Effect.UNSERVED,
    ),
    "future_replaces_live": FindingCode(
        "A -future directory to whose log directory the cluster's metadata assign the partition "
        "has less than the live directory.",
        "it makes the -future directory the partition, and deletes the live one after a minute",
        "move the -future directory away before a broker starts, or rename it to -stray",
        severities=(Severity.ERROR,),
        effect=Effect.LOSES,
    ),
    "future_is_cut": FindingCode(
        "A -future directory has records that no live directory has, and the cluster's metadata do "
        "not assign the partition to its log directory.",
        "it continues the move: it cuts the -future directory to where the live one ends, to "
        "nothing if it has to make an empty one, and puts it in the place of that",
        "do what the message says, or write a copy with --repair-to, which takes the longer one",
        severities=(Severity.ERROR,),
        effect=Effect.LOSES,
    ),
    "waits_for_controllers": FindingCode(
        "The node needs controllers that were not given.",
        "it waits for most of the controllers that vote, and ends if they do not come",
        "give the log directories of the other controllers, too, to have them judged together; "
        "pylog info shows who votes, and where most voters are gone, pylog first-aid helps",
        severities=(Severity.INFO,),
    ),
    "log_directory_not_given": FindingCode(
        "The cluster's metadata assign partitions of the node to log directories that were not "
        "given.",
        "it starts with all directories in log.dirs",
        "give all log directories of the node",
        severities=(Severity.INFO,),
    ),
    "misplaced_metadata_log": FindingCode(
        "The log of the cluster's metadata is not in the first log directory of the node.",
        _REFUSES,
        "give the log directories in the order of log.dirs; or name the directory with the log in "
        "metadata.log.dir of the node's configuration",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "missing_metadata_log": FindingCode(
        "The directory of the cluster's metadata has neither a log nor a snapshot, or is missing.",
        "a node that is the only controller starts without topics, and renames all partitions to "
        "-stray; other nodes get the metadata from the controllers",
        "copy __cluster_metadata-0 from another controller, or from a backup",
        severities=(Severity.ERROR,),
        effect=Effect.GONE,
    ),
    "metadata_log_twice": FindingCode(
        "Two log directories of a node have a log of the cluster's metadata.",
        _REFUSES,
        "move the one away that is not in metadata.log.dir (by default, the first log directory)",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "unusable_metadata": FindingCode(
        "The cluster's metadata cannot be read from this log and its snapshots, or a file beside "
        "them is damaged; or they are of a version that this version of Kafka cannot use.",
        _REFUSES,
        "see the message; otherwise, copy __cluster_metadata-0 from another controller; on a "
        "broker, move the directory away: it gets the metadata from the controllers",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "cut_metadata_snapshot": FindingCode(
        "The newest snapshot of the cluster's metadata is cut off: it lacks its footer.",
        "it starts with the rest: partitions of missing topics become -stray",
        "copy __cluster_metadata-0 from another controller",
        severities=(Severity.ERROR,),
        effect=Effect.GONE,
    ),
    "discarded_metadata": FindingCode(
        "The log of the cluster's metadata does not reach its newest snapshot.",
        "it deletes the log, and continues from the snapshot",
        _NO_NEED,
        severities=(Severity.WARNING,),
    ),
    "deleted_directory": FindingCode(
        "The directory of a partition whose topic is being deleted (-delete).",
        "it loads the log, and deletes the directory",
        "if you still need it, copy it elsewhere under the name of the partition",
        severities=(Severity.INFO,),
    ),
    "stray_directory": FindingCode(
        "The directory of a partition that does not belong to this broker (-stray).",
        "it loads the log, keeps the directory and does not serve it",
        "delete it once you are sure that you do not need it",
        severities=(Severity.INFO,),
    ),
    "future_directory": FindingCode(
        "The copy of a partition that was being moved to this disk (-future).",
        "it continues the move; if the cluster's metadata assign the partition to this log "
        "directory, this one becomes it",
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "duplicate_partition": FindingCode(
        "Two directories of one broker hold the same partition; t-0 and t-00 are the same, because "
        "a broker reads a number.",
        _REFUSES,
        "compare them, and move one of them out of its log directory",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "replicas_differ": FindingCode(
        "Two nodes' replicas have different records at one offset: two leaders have written, or "
        "one replica was changed by another program.",
        "the follower cuts its log where its leader epochs diverge from the leader's: its records "
        "from there on are lost",
        "read both before the cluster starts; --repair-to writes a copy of each directory",
        severities=(Severity.ERROR,),
        effect=Effect.LOSES,
    ),
    "replica_behind": FindingCode(
        "Another node's replica of the partition is longer. It is a warning if the cluster's "
        "metadata have the shorter one as leader, or in sync, and its node was stopped in order; "
        "otherwise a follower lags.",
        "it fetches the missing records from the leader; if it is the leader, the other replica "
        "cuts off its additional records",
        "make the node with the longest replica the leader, or get the records as the message says "
        "before the cluster starts",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "several_clusters": FindingCode(
        "The log directories belong to different clusters.",
        _NOTHING,
        _NO_NEED,
        severities=(Severity.INFO,),
    ),
    "topic_ids_disagree": FindingCode(
        "The partitions of a topic have different topic ids: they belong to two topics of that "
        "name.",
        "it renames those without the controller's id to -stray",
        "find out which id the topic has, and copy the other partitions elsewhere",
        severities=(Severity.WARNING,),
    ),
    "duplicate_topic_id": FindingCode(
        "Two topics have the same topic id.",
        "it serves one of them, and renames the other to -stray",
        "a directory was copied under another topic's name: move it out of the log directory",
        severities=(Severity.WARNING,),
    ),
    "damaged_meta_properties": FindingCode(
        "meta.properties cannot be read, so the owner of the log directory is unknown; or it says "
        "what no node accepts, such as a cluster id with blanks at an end that those of the other "
        "log directories do not have.",
        _REFUSES,
        "write it again, as in the broker's other log directories",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "meta_properties_of_another": FindingCode(
        "meta.properties names another node or cluster than the one that the cluster's metadata "
        "have the log directory of.",
        "it does not start, or the controllers refuse it",
        "write the right node.id and cluster.id; or give the broker its own log directory",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    "meta_properties_disagree": FindingCode(
        "Log directories with the same directory id: one is a copy of the other, or a link to it.",
        _REFUSES,
        "give the broker only one of them",
        severities=(Severity.ERROR,),
        effect=Effect.REFUSES,
    ),
    # Consumer groups, and transactional ids.
    "group_resets": FindingCode(
        "A consumer group has committed an offset that is not in the log of its partition, or "
        "whose partition is gone. It is a warning where records are missing that there were; "
        "otherwise retention has removed them, or the topic is deleted.",
        "nothing: the group's consumers begin where their auto.offset.reset says, or end with an "
        "error",
        "find the records in another replica, or a backup, before the group's consumers start; or "
        "set its position with kafka-consumer-groups --reset-offsets (pylog groups lists all)",
        severities=(Severity.WARNING, Severity.INFO),
    ),
    "group_expires": FindingCode(
        "A committed offset is older than offsets.retention.minutes, 7 days unless "
        "--server-properties says otherwise; or its own time of expiry is past.",
        "it deletes the offset at its first look, ten minutes after its start, unless members of "
        "the group have come back or committed",
        "save them (pylog groups --csv); or raise offsets.retention.minutes before the start",
        severities=(Severity.INFO,),
    ),
    "refused_groups": FindingCode(
        "A partition of __consumer_offsets has records of two kinds of one group.",
        "since 4.0, it does not load the partition: none of the groups in it is available",
        "save what is readable (pylog groups --csv), and see the message for the record",
        severities=(Severity.ERROR, Severity.WARNING),
        effect=Effect.CONSUMERS,
    ),
    "missing_groups": FindingCode(
        "Partitions of __consumer_offsets are not here; the groups in them are not known.",
        _NOTHING,
        "give the log directories of the other brokers, too",
        severities=(Severity.INFO,),
    ),
    "shared_producer_id": FindingCode(
        "Several transactional ids have one producer id, as coordinators never give out.",
        "it takes what one of them writes, commits or aborts for the others', too",
        "let one of them alone run; a copied partition of __transaction_state may be the reason",
        severities=(Severity.WARNING,),
    ),
    "forgotten_leader": FindingCode(
        "Other controllers have a node as leader of an epoch of which it does not know itself.",
        "it ends if one of them asks it before they have chosen another leader",
        "start the others first, and this node once they have a leader",
        severities=(Severity.WARNING,),
    ),
    "hanging_transaction": FindingCode(
        "A transaction is open in the log, and its coordinator has none there that it would end.",
        "it lets consumers of committed records wait at the transaction's first record for ever",
        "abort it once the broker runs (kafka-transactions.sh find-hanging, then abort)",
        severities=(Severity.WARNING,),
    ),
    # What pylog writes itself.
    "damaged_manifest": FindingCode(
        "The manifest of a commit by pylog cannot be read, so the end of logs for readers is "
        "unknown.",
        "nothing: it serves the records appended so far",
        "see the message; pylog does not write to the log directory until this is fixed",
        severities=(Severity.ERROR,),
    ),
    "damaged_ledger": FindingCode(
        "The ledger of the jobs that pylog has written, or a file that it names, cannot be read.",
        "nothing: it ignores the files",
        "see the message; pylog refuses jobs of which it cannot tell whether they were written",
        severities=(Severity.ERROR,),
    ),
    "damaged_topic_configs": FindingCode(
        "The topic properties that pylog has stored cannot be read.",
        "nothing: it ignores the file",
        "write pylog-topic-configs.json again, or delete it, so that topics have the defaults; "
        "until then, pylog does not write to the log directory",
        severities=(Severity.WARNING,),
    ),
    "pending_commit": FindingCode(
        "A commit by pylog is in progress, or was interrupted.",
        "nothing: it serves the records appended so far",
        "let the job finish, or open the log directory with pylog to complete the commit",
        severities=(Severity.INFO,),
    ),
}
"""By code."""
