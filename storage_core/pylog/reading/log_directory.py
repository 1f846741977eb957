"""`open_directory`: what is in a log directory, from names, side files and a few headers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.locations import in_store, printable_location
from pylog.model import TopicPartition
from pylog.reading.discovery import PartitionDirectory, discover_all
from pylog.reading.log_start_offsets import LogStartOffsets
from pylog.reading.log_view import LogView
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.short_repr import directories_repr, short_repr
from pylog.reading.shown_logs import topics_html
from pylog.reading.topic_choice import (
    TopicChoice,
    ensure_known_topics,
    ensure_one_way,
    ensure_partitions_by_topic,
    topic_list,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping


class LogDirectory:
    """The partitions under one or several paths. Read-only.

    A snapshot: which partitions there are is fixed when it is made, and what a partition holds when
    it is first asked for. Thousands that nobody asks for are not listed.

    Iterates over the `LogView` of every live partition, in topic and partition order;
    ``directory["orders", 0]`` is one of them if ``("orders", 0) in directory``. A topic is in it
    (``"orders" in directory``) if one of its partitions is; ``directory.topics["orders"]`` has
    them.

    Attributes
    ----------
    others
        Directories that are not live: being deleted, stray, or future replicas.
    """

    def __init__(
        self,
        directories: Iterable[PartitionDirectory],
        *,
        include_stray: bool = False,
        views: Mapping[TopicPartition, LogView] | None = None,
    ) -> None:
        directories = list(directories)
        self.others = [each for each in directories if each.state and not include_stray]
        self._live = {
            each.topic_partition: each for each in directories if include_stray or not each.state
        }
        self._starts: dict[str, LogStartOffsets] = {}
        self._pending: dict[str, PendingCommit] = {}
        self._views: dict[TopicPartition, LogView] = dict(views or {})

    def __iter__(self) -> Iterator[LogView]:
        return iter(self._listed(self._live))

    def __len__(self) -> int:
        return len(self._live)

    def __getitem__(self, topic_partition: tuple[str, int]) -> LogView:
        """Return the view of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
            It is not there.
        TypeError
            What was given is not a topic and the number of a partition.
        """
        wanted = TopicPartition(*_topic_and_partition(topic_partition))
        if wanted not in self._live:
            raise self._unknown_partition(*wanted)
        return self._listed([wanted])[0]

    def __contains__(self, item: object) -> bool:
        """Whether ``item`` is a topic, or a topic and the number of a partition, or a view of it.

        Only what is live counts.
        """
        if isinstance(item, LogView):
            return self._views.get(item.topic_partition) is item
        if isinstance(item, str):
            return item in self._topic_names()
        return isinstance(item, tuple) and item in self._live

    def __repr__(self) -> str:
        text = f"LogDirectory({directories_repr(self._live.values())}"
        if self.others:
            text += (
                f", others={short_repr([printable_location(each.path) for each in self.others])}"
            )
        return f"{text})"

    def _repr_html_(self) -> str:
        """Return the table of topics that a notebook shows."""
        return topics_html(self._live.values(), self.others, self._view_of)

    def _view_of(self, directory: PartitionDirectory) -> LogView:
        return self._listed([directory.topic_partition])[0]

    @property
    def topic_partitions(self) -> list[TopicPartition]:
        """Every live partition."""
        return list(self._live)

    def _listed(self, wanted: Iterable[TopicPartition]) -> list[LogView]:
        """Return the views of partitions; a view is made, and the partition listed, once."""
        views = []
        for each in wanted:
            view = self._views.get(each)
            if view is None:
                directory = self._live[each]
                above = directory.log_directory
                starts = self._starts.setdefault(above, LogStartOffsets(above))
                pending = self._pending.get(above)
                if pending is None:
                    pending = self._pending.setdefault(above, PendingCommit(above))
                # One that another thread has made meanwhile is everybody's.
                view = self._views.setdefault(each, LogView(directory, starts, pending=pending))
            views.append(view)
        return views

    @property
    def topics(self) -> dict[str, list[LogView]]:
        """The live partitions by topic."""
        by_topic: dict[str, list[LogView]] = {}
        for view in self:
            by_topic.setdefault(view.topic, []).append(view)
        return by_topic

    def select(
        self,
        *,
        topics: Iterable[str] | None = None,
        assign: Mapping[str, Iterable[int]] | None = None,
        pattern: str | None = None,
    ) -> list[LogView]:
        """Return the partitions that one of the three arguments chooses.

        By default these are the partitions of all topics but internal ones, and a partition of an
        internal topic if its directory was given as the path.

        Parameters
        ----------
        topics
            Topic names (Spark: ``subscribe``).
        assign
            Partitions by topic.
        pattern
            Regular expression found anywhere in the name of a topic that is not internal.

        Raises
        ------
        UnknownTopicOrPartitionError
            A topic or partition does not exist; the error names the nearest.
        LogDirectoryError
            By default nothing would be read.
        ValueError
            More than one of the arguments was given, or a pattern is not a regular expression.
        TypeError
            ``topics`` holds something other than names, or ``assign`` is not a mapping.
        """
        ensure_one_way(topics, assign, pattern)
        if topics is not None:
            return self._subscribed(topics)
        if assign is not None:
            ensure_partitions_by_topic(assign)
            return [
                self[topic, partition]
                for topic, partitions in sorted(assign.items())
                for partition in sorted(set(partitions))
            ]
        if pattern is None:
            return self._ordinary()
        return self._listed(self._chosen(TopicChoice.of(topics=None, assign=None, pattern=pattern)))

    def _chosen(self, choice: TopicChoice) -> list[TopicPartition]:
        return [each for each, directory in self._live.items() if directory in choice]

    def _ordinary(self) -> list[LogView]:
        ordinary = self._chosen(TopicChoice())
        if not ordinary and self._live:
            listed = topic_list(self._topic_names())
            reason = f"only internal topics here, ask for them by name: {listed}"
            raise LogDirectoryError(reason)
        if not ordinary:
            others = ", ".join(f"{each.path} ({each.state})" for each in self.others)
            reason = f"no live partition here; directories in other states are not read: {others}"
            raise LogDirectoryError(reason)
        return self._listed(ordinary)

    def _subscribed(self, topics: Iterable[str]) -> list[LogView]:
        by_topic: dict[str, list[TopicPartition]] = {}
        for each in self._live:
            by_topic.setdefault(each.topic, []).append(each)
        names = sorted(set(topics), key=str)  # what is not a name is refused below
        ensure_known_topics(names, by_topic)
        return self._listed(each for name in names for each in by_topic[name])

    def _topic_names(self) -> set[str]:
        return {each.topic for each in self._live}

    def _unknown_partition(self, topic: str, partition: int) -> UnknownTopicOrPartitionError:
        of_topic = [str(each.partition) for each in self._live if each.topic == topic]
        if of_topic:
            return UnknownTopicOrPartitionError(
                f"no partition {partition} of topic {topic!r} here; found {', '.join(of_topic)}"
            )
        return UnknownTopicOrPartitionError(
            f"no topic {topic!r} here; topics found: {topic_list(self._topic_names())}"
        )


def _topic_and_partition(given: object) -> tuple[str, int]:
    """Return what was given in brackets; `TypeError` if it does not name a partition."""
    match given:
        case (str(topic), partition) if hasattr(partition, "__index__"):
            return topic, operator.index(partition)
        case (str(topic), partition):
            msg = (
                f"partition {partition!r} is of type {type(partition).__name__}, expected an "
                f"integer, as in directory[{topic!r}, 0]"
            )
        case str(topic):
            msg = (
                f"directory[{topic!r}] names no partition; use directory[{topic!r}, 0] for one, "
                f"and directory.topics[{topic!r}] for the list of all"
            )
        case _:
            msg = f"{given!r} is not a topic and a partition, as in directory['orders', 0]"
    raise TypeError(msg)


def open_directory(
    *paths: str | os.PathLike[str],
    include_stray: bool = False,
    takes_segment_files: bool = False,
    filesystem: object | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> LogDirectory:
    """Return what lies under the given log directories or topic-partition directories.

    It reads names, side files and, when the end of a log is asked for, a few batch headers.

    Parameters
    ----------
    *paths
        Log directories, topic-partition directories, or several of them.
    include_stray
        Whether directories that are being deleted, stray, or future replicas count as live.
    takes_segment_files
        Whether a path may be a ``.log`` file in a topic-partition directory. A `scan` then reads
        the offsets of that segment; the views are those of the whole partition.
    filesystem, storage_options
        How the store of the paths is reached, as for `pylog.location`.

    Raises
    ------
    LogDirectoryError
        A path cannot be read or holds no Kafka log, or a partition lies there twice.
    """
    places = in_store(paths, filesystem, storage_options)
    directories = discover_all(
        places, include_stray=include_stray, takes_segment_files=takes_segment_files
    )
    return LogDirectory(directories, include_stray=include_stray)
