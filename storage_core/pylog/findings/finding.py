"""A finding of the doctor, and what is known of a kind of them."""

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
    """The severity of a finding, the worst first.

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
    """The effect that a finding has on a broker's start and on consumers.

    Attributes
    ----------
    REFUSES
        A broker does not start.
    ENDS_LATER
        A broker starts, and its next start ends.
    OFFLINE
        A broker takes the log directory offline, and serves none of its partitions; it does not
        start if it has no other one, or the cluster's metadata is in it.
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
    severity
        How bad it is.
    kind
        What it is, see `pylog.findings.kinds`.
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
        What it is for the verdict, where that is not what its kind says.
    own_action
        What a broker does about this one, as its simulated start has shown; None where the kind
        says it.
    groups
        The consumer groups that it is about.
    """

    severity: Severity
    kind: FindingKind
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
    def code(self) -> str:
        """What it is in one word; docs/doctor-codes.md lists all."""
        return self.kind.code

    @property
    def broker_action(self) -> str:
        """What a broker does about it when it starts on the directory."""
        return self.own_action or self.kind.broker_action

    @property
    def effect(self) -> Effect | None:
        """What it is for the verdict; None where it does not change that."""
        if self.own_effect is not None:
            return self.own_effect
        return self.kind.effect if self.severity is Severity.ERROR else None

    @property
    def advice(self) -> str:
        """Advice for the operator."""
        return self.kind.advice

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


class FindingKind(NamedTuple):
    """What is known of all findings of a kind, and what makes one."""

    code: str  # in one word
    meaning: str  # what is wrong, or worth knowing
    broker_action: str  # what a broker does about it when it starts on the directory
    advice: str  # what an operator can do
    severities: tuple[Severity, ...]  # how bad it can be
    effect: Effect | None = None  # what an error of this kind is for the verdict
    lost_as: str = ""  # what happened to records that are lost by it, in two or three words

    def found(  # noqa: PLR0913 - what a finding is made of
        self,
        path: str,
        message: str,
        position: int | None = None,
        end_position: int | None = None,
        next_offset: int | None = None,
        end_offset: int | None = None,
        *,
        severity: Severity | None = None,
        own_effect: Effect | None = None,
        own_action: str | None = None,
    ) -> Finding:
        """Return a finding; how bad it is has to be said where the kind leaves that open."""
        severities = self.severities if severity is None else (severity,)
        if len(severities) != 1 or severities[0] not in self.severities:
            known = " or ".join(self.severities)
            raise ValueError(f"{self.code} is of severity {severity}, expected {known}")
        return Finding(
            *(severities[0], self, path, message),
            *(position, end_position, next_offset, end_offset),
            own_effect=own_effect,
            own_action=own_action,
        )

    def in_batch(self, message: str, window: Window, place: int) -> Finding:
        """Return a finding about one batch of a window, by its place there."""
        headers = window.headers
        position = window.position_of(place)
        return self.found(
            *(window.path, message),
            *(position, position + int(headers.sizes_bytes[place])),
            *(int(headers.offsets[place]), int(headers.last_offsets[place]) + 1),
        )
