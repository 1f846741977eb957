"""In what a start was not as doctor has foretold it, or reading its disks gives no one answer.

Compared are the start, strays, leaders, offsets, and what consumers of both isolation levels get at
once and when the timers have run; then what a scan of the disks that the broker has left gives, and
what consumers get of ``pylog serve`` on them. What is said not to be known is not compared with
what the broker did; readers are compared all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pylog
from pylog.errors import LogStorageError
from pylog.files.file_names import FUTURE_DIR_SUFFIX
from tests.broker.consumption import ENDED, ISOLATIONS, STUCK, Consumed, at_each_level
from tests.broker.start_states import PARTITIONS
from tests.support.faults.nodes import TOPIC
from tests.support.metadata_log import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pylog.model import IsolationName
    from pylog.results import AffectedOffsets, DoctorReport, Verdict
    from tests.broker.consumption import Partition
    from tests.broker.start_states import Node, Started

Rows = dict[int, str]
_OTHER_NODE = "doesn't match previous node id"


def unserved(report: DoctorReport) -> set[int]:
    """Return the partitions that are said to have no leader."""
    return _names(report.verdict.unserved)


def complaints(
    node: Node, report: DoctorReport, started: Started, disks: Sequence[Path | None]
) -> list[str]:
    """Return in what it was not as it was foretold; none if it was."""
    verdict = report.verdict
    if started.is_up and verdict.would_start is False:
        return [f"it starts, and was said not to: {verdict.reasons}"]
    if not started.is_up:
        is_said = verdict.would_start is not True or (started.has_ended and _when_read(verdict))
        # Its disks look like those of two clusters; or what it is configured to is not on them.
        is_said = is_said or len(report.of_clusters) > 1
        has_metadata = all(each.name != METADATA for each in verdict.lost_already)
        is_said = is_said or (_OTHER_NODE in started.log and not has_metadata)
        return [] if is_said else [f"it does not start: {verdict.reasons}"]
    paths = [each for each in disks if each is not None and not each.is_symlink()]
    known = set(range(PARTITIONS)) - _not_known(report, paths) - node.on_absent_nodes(disks)
    found = list(_about_strays(verdict, started, known))
    for at in sorted(known):
        found += _about_partition(node, report, started, at)
    first, later = started.looks
    found += [
        f"{TOPIC}-{at} {isolation}: other rows after ten minutes"
        for isolation in ISOLATIONS
        for (_, at), consumed in first[isolation].items()
        if at not in unserved(report) | _when_read(verdict)
        and consumed.trouble is None
        and later[isolation][TOPIC, at].values != consumed.values
        # Unless the broker has ended meanwhile, since somebody has read somewhere else.
        and all(each.from_offset is not None for each in Costs.of(verdict, at).of_consumers)
    ]
    found += _about_readers(node, verdict, started, paths)
    return found


def _not_known(report: DoctorReport, disks: Sequence[Path]) -> set[int]:
    """Return the partitions of which it is said that something is not known.

    What is said of a log directory, or of a file in it, is about all that lies in it; what is said
    of the metadata, or of their log directory, is about all partitions.
    """
    found = _names(report.verdict.not_known)
    for each in report.verdict.not_known:
        if each.topic == TOPIC and each.partition is not None:
            continue
        inside = {
            partition.topic_partition.partition
            for partition in report.partitions
            for disk in disks[1:]
            if each.topic is None
            if f"{each.path}/".startswith(f"{disk}/") and partition.path.startswith(f"{disk}/")
        }
        found |= inside or set(range(PARTITIONS))
    return found


def _names(affected: Iterable[AffectedOffsets]) -> set[int]:
    return {
        each.partition for each in affected if each.topic == TOPIC and each.partition is not None
    }


def _when_read(verdict: Verdict) -> set[int]:
    """Return partitions that go, it is said, when somebody reads something in their disk."""
    return _names(each for each in verdict.consumers if each.from_offset is None)


def _about_strays(verdict: Verdict, started: Started, known: set[int]) -> Iterator[str]:
    aside, said = started.aside & known, _names(verdict.stray_partitions) & known
    if aside - said:
        yield f"set aside and not said: {sorted(aside - said)}"
    if said - aside:
        yield f"said to be set aside: {sorted(said - aside)}"


def _about_partition(node: Node, report: DoctorReport, started: Started, at: int) -> Iterator[str]:
    verdict = report.verdict
    is_unserved = at in _names(verdict.unserved)
    leaders = [each[at] for each in started.leaders]
    leaders = leaders[:1] if at in _when_read(verdict) else leaders
    is_wrong = leaders[-1] >= 0 if is_unserved else min(leaders) < 0
    strays = [each for each in verdict.stray_partitions if FUTURE_DIR_SUFFIX not in each.path]
    # Whether one that is set aside is made anew is not said; without the metadata no topic is.
    is_aside = at in _names(strays)
    is_unknown = any(each.name == METADATA for each in verdict.lost_already)
    is_unknown = is_unknown or (bool(strays) and max(started.leaders[-1].values()) < 0)
    if is_wrong and not (
        is_aside or is_unknown or (leaders[-1] >= 0 and started.was_assigned_in_time)
    ):
        yield f"{TOPIC}-{at}: leaders {leaders}, said to be unserved: {is_unserved}"
    # One that is said not to be served may be for a moment, until its disk goes offline.
    if at not in started.offsets or is_aside or is_unserved:
        return
    torn = min(
        (
            each.next_offset
            for partition in report.partitions
            if partition.topic_partition == (TOPIC, at)
            for each in partition.findings
            if each.code == "torn_tail" and each.next_offset is not None
        ),
        default=None,
    )
    for isolation in ISOLATIONS:
        consumed = started.looks[0][isolation][TOPIC, at]
        truth = node.truth[(TOPIC, at), isolation]
        yield from _about_rows(truth, torn, consumed, Costs.of(verdict, at), at, isolation)
    starts = [
        each.start
        for each in report.partitions
        if each.topic_partition == (TOPIC, at) and each.path.endswith(f"/{TOPIC}-{at}")
    ]
    said = [(each.log_start_offset, each.log_end_offset) for each in starts if each is not None]
    # One that takes the place of the live one has no simulated start; its rows are compared.
    is_moved = any(
        f"/{TOPIC}-{at}." in each.path and FUTURE_DIR_SUFFIX in each.path
        for directory in report.directories
        for each in directory.findings
    )
    is_lost = at in _names(verdict.loses_records) or is_moved
    if said and started.offsets[at] not in said and not is_lost:
        yield f"{TOPIC}-{at}: offsets {started.offsets[at]}, said {said}"


def _about_rows(
    truth: Rows, torn: int | None, consumed: Consumed, costs: Costs, at: int, isolation: str
) -> Iterator[str]:
    what = f"{TOPIC}-{at} {isolation}"
    lacking = {offset for offset, value in truth.items() if consumed.values.get(offset) != value}
    unsaid = [each for each in lacking if not costs.explain(each, consumed.trouble)]
    if torn is not None:  # its records were never whole on the disk, and it is said
        unsaid = [each for each in unsaid if each < torn]
    if unsaid:
        yield f"{what}: {len(unsaid)} records from {min(unsaid)} on are not served; said: {costs}"
    wrong = consumed.values.keys() - truth.keys()
    if wrong and not costs.of_consumers:
        yield f"{what}: {len(wrong)} from {min(wrong)} on should not be served; said: {costs}"
    # Where all that comes is lost, the consumer stands before it, and gets no error.
    is_at_end = not lacking or (consumed.trouble == STUCK and not unsaid)
    stands_before_gap = is_at_end and bool(costs.lost)
    if consumed.trouble is not None and not (costs.of_consumers or stands_before_gap):
        yield f"{what}: {consumed.trouble}, and it is not said; said: {costs}"
    if isolation == "read_uncommitted":
        for each in costs.lost:
            meant = [offset for offset in truth if _has(each, offset)]
            if meant and lacking.isdisjoint(meant):
                yield f"{what}: all records are served; said: {each}"


class Costs(NamedTuple):
    """What was announced of a partition."""

    lost: list[AffectedOffsets]  # by the start, or already
    of_consumers: list[AffectedOffsets]

    @classmethod
    def of(cls, verdict: Verdict, at: int) -> Costs:
        """Return it of the partition with a number."""
        lost = [*verdict.loses_records, *verdict.lost_already]
        return cls(
            [each for each in lost if (each.topic, each.partition) == (TOPIC, at)],
            [each for each in verdict.consumers if (each.topic, each.partition) == (TOPIC, at)],
        )

    def explain(self, offset: int, trouble: str | None) -> bool:
        """Whether a record is announced to be missing; a consumer that stops gets none after it."""
        stops = trouble is not None and any(
            (each.from_offset or 0) <= offset or trouble == ENDED for each in self.of_consumers
        )
        return stops or any(_has(each, offset) for each in (*self.lost, *self.of_consumers))

    def __str__(self) -> str:
        return "; ".join(f"{each.text}: {each.reason}" for each in (*self.lost, *self.of_consumers))


def _has(affected: AffectedOffsets, offset: int) -> bool:
    start = affected.from_offset or 0
    return offset >= start and (affected.to_offset is None or offset < affected.to_offset)


def _about_readers(
    node: Node, verdict: Verdict, started: Started, disks: Sequence[Path]
) -> Iterator[str]:
    """Yield in what a scan of the disks that the broker has left is not what consumers got.

    Where they were announced to get something wrong, it gives an error, or what was written. What
    consumers get of ``pylog serve``, which asks no index file, is what a scan without these gives,
    and an error where that fails; or it is what they get of the broker.
    """
    begins = {(TOPIC, at): first for at, (first, _) in started.offsets.items()}
    try:
        with pylog.serve(*disks, topics=[TOPIC]) as server:
            served = at_each_level(server.address, begins)
    except LogStorageError as refusal:
        if not verdict.not_known:  # else a broker may have made a partition anew on another disk
            yield f"the disks cannot be served: {refusal}"
        return
    uncompared = _names(verdict.unserved) | _when_read(verdict)
    for isolation in ISOLATIONS:
        for place in begins:
            rows, error = _scanned(disks, place, isolation, use_indexes=True)  # type: ignore[arg-type]
            proved = _scanned(disks, place, isolation, use_indexes=False)  # type: ignore[arg-type]
            consumed = started.looks[1][isolation][place]
            costs = Costs.of(verdict, place[1])
            truth = node.truth[place, isolation]
            found: list[str] = []
            if place[1] not in uncompared:
                found += Answers(rows, error, consumed, truth, costs).of_scan()
            found += Answers(*proved, consumed, truth, costs).of_server(served[isolation][place])
            yield from (f"{TOPIC}-{place[1]} {isolation}: {each}" for each in found)


class Answers(NamedTuple):
    """What is read of a partition that a broker has left."""

    rows: Rows  # of a scan, up to the first damage
    error: LogStorageError | None  # which that is
    consumed: Consumed
    truth: Rows
    costs: Costs

    def of_scan(self) -> Iterator[str]:
        """Yield in what a scan and consumers of the broker differ without a word."""
        is_wrong = bool(self.costs.of_consumers)
        if self.error is not None:
            if not (is_wrong or self.costs.lost) and self.consumed.trouble is None:
                yield f"consumers get all, and a scan fails: {self.error}"
        elif self.rows != self.consumed.values:
            differ = sorted(self.rows.items() ^ self.consumed.values.items())
            if not is_wrong and self.consumed.trouble is None:
                yield f"a scan differs from consumers, first {differ[:1]}"
            elif not self.rows.items() <= self.truth.items():
                yield f"a scan gives what was not written: {differ[:1]}"

    def of_server(self, served: Consumed) -> Iterator[str]:
        """Yield in what consumers of ``pylog serve`` get another answer than a scan gives.

        A log may end above its last record: consumers wait there. Where consumers are announced to
        get something wrong, by a look-up or a transaction index, they may get that, or all that
        was written, or more than the broker gives and less than the scan: each fetch is looked up,
        and the server believes no index.
        """
        if (served.values, served.trouble) == (self.consumed.values, self.consumed.trouble):
            return
        if self.error is None and (served.values, served.trouble) == (self.rows, STUCK):
            return  # it waits at the log's end, which is above its last record
        is_wrong = bool(self.costs.of_consumers)
        if is_wrong and served.trouble is None and served.values == self.truth:
            return
        rows, got = self.rows.items(), served.values.items()
        if is_wrong and served.trouble is None and self.consumed.values.items() <= got <= rows:
            return
        if is_wrong and self.error is None and rows <= got <= self.consumed.values.items():
            return  # a batch that goes on above the log's end comes whole
        if (self.error is None) != (served.trouble is None):
            one, other = served.trouble or "to the end", self.error or "to the end"
            yield f"served {one}, a scan: {other}"
        # Up to damage one of them may come further: a scan reads ahead for what was aborted.
        if rows != got and (self.error is None or not (rows <= got or got <= rows)):
            yield f"served or scanned alone: {sorted(rows ^ got)[0]}; {self.error}"


def _scanned(
    disks: Sequence[Path], place: Partition, isolation: IsolationName, *, use_indexes: bool
) -> tuple[Rows, LogStorageError | None]:
    """Return the rows up to the first damage, and that."""
    rows: Rows = {}
    try:
        found = pylog.scan(
            disks,
            assign={place[0]: [place[1]]},
            isolation=isolation,
            columns=["offset", "value"],
            use_indexes=use_indexes,
        )
        for batch in found.to_batches():
            values = (each.decode(errors="replace") for each in batch.column("value").to_pylist())
            rows |= zip(batch.column("offset").to_pylist(), values, strict=True)
    except LogStorageError as error:
        return rows, error
    return rows, None
