"""Where the partitions of a merge end that is as at one instant, found by tasks, a partition each.

A task reads one partition, and returns what its end cuts. That transactions are whole across
partitions is for one process, which may ask for some of them again, with a higher end.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from pylog.errors import DivergedReplicasError, UnknownTopicOrPartitionError
from pylog.model import INTERNAL_TOPICS, Timestamp, TopicPartition
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.record.batch_writer import MAX_INT64
from pylog.recovery.merge_endings import bring_back_groups
from pylog.recovery.merge_plan import find_log
from pylog.recovery.merge_sources import find_sources, metadata_beside
from pylog.recovery.merge_until import (
    CutLog,
    SeenTransactions,
    cuts_of,
    decided_by,
    whole_transactions,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.recovery.merge_plan import FoundLog
    from pylog.recovery.merge_summary import MovedGroup
    from pylog.recovery.merge_until import LogCut

    Task = Callable[[TopicPartition, int], Any]
    RunTasks = Callable[[Sequence[TopicPartition], Task], Sequence[Any]]


class _Look(NamedTuple):
    """What a task has found of a partition."""

    wanted_offset: int
    transactions: SeenTransactions
    left_out: tuple[int, int]
    undecided: list[str]
    is_whole: bool


class MergeCuts(NamedTuple):
    """Finds where the partitions of a merge end; small, and picklable.

    Attributes
    ----------
    paths, until, metadata
        As for `merge`.
    preferred
        Which of the paths is preferred, by its place among them.

    Examples
    --------
    >>> def run(places, task):
    ...     return [task(place, 0) for place in places]
    >>> place = pylog.TopicPartition("orders", 1)
    >>> found = pylog.jobs.MergeCuts(("kafka/intact",), 40).find([place], run)
    >>> found[place].end_offset
    40
    """

    paths: tuple[str, ...]
    until: int | Timestamp
    metadata: str | None = None
    preferred: int | None = None

    def find(
        self, partitions: Iterable[TopicPartition], run: RunTasks
    ) -> dict[TopicPartition, LogCut]:
        """Return where partitions end; those of the coordinators' topic are left out.

        Parameters
        ----------
        partitions
            The partitions of the result.
        run
            Calls a task for each of some partitions, anywhere; returns what they return, in order.
            A task gets a partition, and a number that does not matter.

        Raises
        ------
        DivergedReplicasError
            Nothing tells which of several histories is the log's.
        """
        places = [each for each in partitions if each.topic != TRANSACTION_STATE_TOPIC]
        decided = self._decided(run)
        looks: dict[TopicPartition, _Look] = {}

        def look(
            ends: Mapping[TopicPartition, int | None],
        ) -> dict[TopicPartition, SeenTransactions]:
            found = run(list(ends), lambda place, _: self._look(place, ends[place]))
            looks.update(zip(ends, found, strict=True))
            return {place: looks[place].transactions for place in ends}

        found = look(dict.fromkeys(places))
        undecided = [text for each in looks.values() for text in each.undecided]
        if undecided:
            raise DivergedReplicasError(undecided)
        wanted = {place: each.wanted_offset for place, each in looks.items()}
        ended = whole_transactions(wanted, found, look, decided)
        left_out = {place: each.left_out for place, each in looks.items()}
        whole = {place for place, each in looks.items() if each.is_whole}
        return cuts_of(wanted, ended, left_out, whole)

    @staticmethod
    def bring_back_groups(
        place: str | os.PathLike[str], ends: Mapping[TopicPartition, int]
    ) -> list[MovedGroup]:
        """Commit the end of a log for groups whose positions are behind it, in a log directory."""
        return bring_back_groups(os.fspath(place), ends)

    def _decided(self, run: RunTasks) -> dict[int, bool]:
        until = self.until
        if not isinstance(until, Timestamp):
            return {}
        try:
            places = list(find_sources(self.paths, [TRANSACTION_STATE_TOPIC], None).replicas)
        except UnknownTopicOrPartitionError:
            return {}
        found = run(places, lambda place, _: decided_by(until, [_cut_log(self._found(place))]))
        return {producer: how for each in found for producer, how in each.items()}

    def _found(self, place: TopicPartition) -> FoundLog:
        metadata = metadata_beside(self.paths, self.metadata)
        sources = find_sources(self.paths, [place.topic], [place.partition], metadata)
        (replicas,) = sources.replicas.values()
        numbers = [sources.paths[each.directory.path] for each in replicas]
        preferred = next((at for at, one in enumerate(numbers) if one == self.preferred), None)
        return find_log(place, replicas, metadata, preferred)

    def _look(self, place: TopicPartition, end_offset: int | None) -> _Look:
        """Look at one partition, in a task: at what its end cuts, which is looked for if None."""
        found = self._found(place)
        log = _cut_log(found)
        undecided = [f"{place}: {text}" for text in found.lineage.undecided]
        is_internal = isinstance(self.until, int) and place.topic in INTERNAL_TOPICS
        until = MAX_INT64 if is_internal else self.until
        end = log.offset_at(until) if end_offset is None else end_offset
        left_out = log.left_out(end, until)
        return _Look(end, log.transactions(end), left_out, undecided, log.is_before(until))


def _cut_log(found: FoundLog) -> CutLog:
    return CutLog(found.replicas, found.lineage.taken)
