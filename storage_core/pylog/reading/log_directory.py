"""`open_directory`: what is in a log directory, from names, side files and a few headers."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError, UnknownTopicOrPartitionError
from pylog.files.file_names import nearest_topic
from pylog.locations import in_store, printable_location
from pylog.model import INTERNAL_TOPICS, TopicPartition
from pylog.reading.discovery import (
    LogStartOffsets,
    PartitionDirectory,
    discover_all,
    discover_each,
)
from pylog.reading.log_view import LogView, view_of
from pylog.reading.notebook_display import directories_repr, short_repr, topics_html
from pylog.reading.pending_commit import PendingCommit
from pylog.reading.replicas import one_of_each
from pylog.text.words import named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence


_MOST_NAMED = 20
# For Kafka's brokers __remote_log_metadata is a topic like any other: the pattern of a consumer,
# and of Spark's kafka source, finds it. Of __cluster_metadata they tell no client.
_HIDDEN_FROM_PATTERNS = INTERNAL_TOPICS - {"__remote_log_metadata"}
_ASSIGN = "partitions are chosen by assign, as in assign={'orders': [0, 1]}"


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Which partitions are chosen, whether they are there yet or not."""

    topics: frozenset[str] | None = None
    assign: frozenset[tuple[str, int]] | None = None
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of(
        cls,
        *,
        topics: Iterable[str] | None,
        assign: Mapping[str, Iterable[int]] | None,
        pattern: str | None,
    ) -> TopicChoice:
        """Return the choice that arguments of `LogDirectory.select` make; for its errors, too."""
        ensure_one_way(topics, assign, pattern)
        if assign is not None:
            ensure_partitions_by_topic(assign)
            pairs = ((topic, each) for topic, partitions in assign.items() for each in partitions)
            return cls(assign=frozenset(pairs))
        if pattern is not None:
            return cls(pattern=compile_topic_pattern(pattern))
        return cls(topics=None if topics is None else frozenset(topics))

    def __contains__(self, directory: PartitionDirectory) -> bool:
        topic, partition = directory.topic_partition
        if self.topics is not None:
            return topic in self.topics
        if self.assign is not None:
            return (topic, partition) in self.assign
        if self.pattern is not None:
            return topic not in _HIDDEN_FROM_PATTERNS and self.pattern.search(topic) is not None
        return topic not in INTERNAL_TOPICS or directory.is_named


def ensure_one_way(*ways: object) -> None:
    """Raise ``ValueError`` unless at most one of topics, assign and pattern is given."""
    if sum(way is not None for way in ways) > 1:
        msg = "give only one of topics (subscribe), assign and pattern (subscribePattern)"
        raise ValueError(msg)


def ensure_known_topics(names: Iterable[object], known: Collection[str]) -> None:
    """Raise `UnknownTopicOrPartitionError`, which names the nearest, unless all are known."""
    for name in names:
        if not isinstance(name, str):
            msg = f"topics has {name!r}, expected names of topics; {_ASSIGN}"
            raise TypeError(msg)
        if name not in known:
            near = nearest_topic(name, known)
            hint = "." if near is None else f"; did you mean {near!r}?"
            msg = f"no topic {name!r} here{hint} Topics found: {topic_list(known)}"
            raise UnknownTopicOrPartitionError(msg)


def ensure_partitions_by_topic(assign: object) -> None:
    """Raise ``TypeError`` unless ``assign`` is a mapping."""
    if not isinstance(assign, Mapping):
        msg = f"assign is {assign!r}, expected partitions by topic; {_ASSIGN}"
        raise TypeError(msg)


def compile_topic_pattern(pattern: str) -> re.Pattern[str]:
    """Return a pattern that is found anywhere in a topic's name."""
    try:
        return re.compile(pattern)
    except re.error as error:
        msg = f"topic pattern {pattern!r} is not a regular expression: {error}"
        raise ValueError(msg) from error


def no_topic_matches(pattern: str, known: Iterable[str]) -> UnknownTopicOrPartitionError:
    """Return the error for a pattern that is found in no topic's name."""
    return UnknownTopicOrPartitionError(
        f"no topic here matches the pattern {pattern!r}; topics found: {topic_list(known)}"
    )


def topic_list(topics: Iterable[str]) -> str:
    """Return the names for a message, the first ones if there are many."""
    return named(sorted(topics), _MOST_NAMED) or "none"


def choose_partitions(
    directory: LogDirectory,
    topics: Iterable[str] = (),
    partitions: Sequence[int] = (),
    *,
    pattern: str | None = None,
) -> dict[str, list[int]]:
    """Return the partitions to read, by topic, as `pylog.scan` takes them for ``assign``.

    Parameters
    ----------
    directory
        What lies under the paths given.
    topics
        Names; none means all that are not internal.
    partitions
        Numbers; none means all.
    pattern
        Regular expression found anywhere in the name of a topic that is not internal, instead of
        names.

    Raises
    ------
    LogDirectoryError
        Nothing is left to be read without a name for it (see `LogDirectory.select`).
    UnknownTopicOrPartitionError
        A topic or partition that was named is not there, or no topic matches the pattern.
    ValueError
        Both names and a pattern were given, or the pattern is not a regular expression.

    Examples
    --------
    >>> directory = pylog.open_directory("kafka/intact")
    >>> pylog.jobs.choose_partitions(directory, pattern="^order")
    {'orders': [0, 1]}
    """
    names = list(topics)
    views = directory.select(topics=names or None, pattern=pattern)
    if not views:
        raise no_topic_matches(pattern or "", directory.topics)
    chosen: dict[str, list[int]] = {}
    for view in views:
        if not partitions or view.partition in partitions:
            chosen.setdefault(view.topic, []).append(view.partition)
    for partition in partitions:
        _ensure_there(partition, views, must_have=names)
    return chosen


def _ensure_there(partition: int, views: Sequence[LogView], *, must_have: Iterable[str]) -> None:
    """Refuse a partition that a named topic lacks or, if none was named, that all lack."""
    having = {view.topic for view in views if view.partition == partition}
    lacking = sorted(set(must_have) - having)
    if lacking:
        present = ", ".join(str(view.partition) for view in views if view.topic == lacking[0])
        reason = f"no partition {partition} of topic {lacking[0]!r} here; found {present}"
        raise UnknownTopicOrPartitionError(reason)
    if not having:
        present = ", ".join(str(view.topic_partition) for view in views)
        reason = f"no topic has a partition {partition} here; found {present}"
        raise UnknownTopicOrPartitionError(reason)


class LogDirectory:
    """The partitions under one or several paths. Read-only.

    A snapshot: which partitions there are is fixed when it is made, and what a partition holds when
    it is first asked for. Thousands that nobody asks for are not listed. One that a broker deletes
    before it is listed is left out of all that no topic was named for.

    Iterates over the `LogView` of every live partition, in topic and partition order;
    ``directory["orders", 0]`` is one of them if ``("orders", 0) in directory``. A topic is in it
    (``"orders" in directory``) if one of its partitions is; ``directory.topics["orders"]`` has
    them.

    Attributes
    ----------
    others
        Directories that are not live: being deleted, stray, or future replicas.
    given
        The paths that it was opened with.
    """

    def __init__(
        self,
        directories: Iterable[PartitionDirectory],
        *,
        include_stray: bool = False,
        views: Mapping[TopicPartition, LogView] | None = None,
        given: Iterable[str] | None = None,
    ) -> None:
        directories = list(directories)
        if given is None:
            given = (each.path if each.is_named else each.log_directory for each in directories)
        self.given = tuple(dict.fromkeys(given))
        self.others = [
            each for each in directories if not each.is_live(include_stray=include_stray)
        ]
        self._live = {
            each.topic_partition: each
            for each in directories
            if each.is_live(include_stray=include_stray)
        }
        self._starts: dict[str, LogStartOffsets] = {}
        self._pending: dict[str, PendingCommit] = {}
        self._views: dict[TopicPartition, LogView] = dict(views or {})

    def __iter__(self) -> Iterator[LogView]:
        return iter(self._still_there(self._live))

    def __len__(self) -> int:
        return len(self._live)

    def __getitem__(self, topic_partition: tuple[str, int]) -> LogView:
        wanted = TopicPartition(*_topic_and_partition(topic_partition))
        if wanted not in self._live:
            raise self._unknown_partition(*wanted)
        return self._listed([wanted])[0]

    def __contains__(self, item: object) -> bool:
        """Whether ``item`` is a topic, a topic and a partition's number, or a view."""
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
                # One that another thread has made meanwhile is everybody's.
                view = self._views.setdefault(each, view_of(self._live[each], self._view_in))
            views.append(view)
        return views

    def _view_in(self, directory: PartitionDirectory) -> LogView:
        above = directory.log_directory
        starts = self._starts.setdefault(above, LogStartOffsets(above))
        pending = self._pending.get(above)
        if pending is None:
            pending = self._pending.setdefault(above, PendingCommit(above))
        return LogView(directory, starts, pending=pending)

    def _still_there(self, wanted: Iterable[TopicPartition]) -> list[LogView]:
        """Return views of partitions; a broker may have deleted some since, which are left out."""
        views = self._listed(wanted)
        return [
            each for each in views if each.unreadable is None or not each.directory.was_deleted()
        ]

    @property
    def directories(self) -> list[PartitionDirectory]:
        """Every partition directory, live or not."""
        return [*self._live.values(), *self.others]

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
            Regular expression found anywhere in the name of a topic that Kafka does not call
            internal (``__remote_log_metadata`` is found; Spark: ``subscribePattern``).

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
        choice = TopicChoice.of(topics=None, assign=None, pattern=pattern)
        return self._still_there(self._chosen(choice))

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
            reason = (
                "no live partition here; directories in other states are read by their own path, "
                f"or with include_stray: {others}"
            )
            raise LogDirectoryError(reason)
        return self._still_there(ordinary)

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


def open_each(paths: Iterable[str | os.PathLike[str]]) -> list[LogDirectory]:
    """Return what lies under each path by itself, as `open_directory` does.

    A partition that a broker moves between its log directories meanwhile is in one of them.

    Parameters
    ----------
    paths
        Log directories, or topic-partition directories.

    Raises
    ------
    LogDirectoryError
        `open_directory` would raise it for one of the paths.

    Examples
    --------
    >>> [sorted(each.topics) for each in pylog.jobs.open_each(["kafka/damaged/orders-0"])]
    [['orders']]
    """
    given = list(paths)
    _ensure_paths(given)
    places = [os.fspath(each) for each in in_store(given, None, None)]
    return [
        LogDirectory(one_of_each(found), given=[place])
        for place, found in zip(places, discover_each(places), strict=True)
    ]


def opened(
    *given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | LogDirectory,
    takes_segment_files: bool = False,
) -> LogDirectory:
    """Return a log directory as it is, or what lies under paths, given as such or in a list."""
    if len(given) == 1 and isinstance(given[0], LogDirectory):
        return given[0]
    paths: list[str | os.PathLike[str]] = []
    for each in given:
        if isinstance(each, LogDirectory):
            msg = "give one LogDirectory, or paths"
            raise TypeError(msg)
        if isinstance(each, Iterable) and not isinstance(each, str | os.PathLike):
            paths += each
        else:  # `open_directory` refuses what is no path
            paths.append(each)
    return open_directory(*paths, takes_segment_files=takes_segment_files)


def _ensure_paths(given: Iterable[object]) -> None:
    for each in given:
        if not isinstance(each, str | os.PathLike):
            raise TypeError(_no_path(each))


def _no_path(given: object) -> str:
    """Return what to say of something else than a path."""
    if isinstance(given, LogView):
        topic, partition = given.topic_partition
        return (
            f"{topic}-{partition} is a log of a directory: give the directory, and "
            f"assign={{{topic!r}: [{partition}]}}"
        )
    return f"{given!r} is of type {type(given).__name__}, expected a path"


def open_directory(
    *paths: str | os.PathLike[str],
    include_stray: bool = False,
    takes_segment_files: bool = False,
    replica: str | int | os.PathLike[str] | None = None,
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
        Whether directories that are being deleted, stray, or future replicas count as live. One
        that is a path by itself does. Beside a live directory of the same partition they have
        names of their own: ``orders.<id>-stray``.
    takes_segment_files
        Whether a path may be a ``.log`` file in a topic-partition directory. A `scan` then reads
        the offsets of that segment; the views are those of the whole partition.
    replica
        Whose directory of a partition is read where several nodes' directories hold it: the id
        of a node, or its log directory. By default, and where that one has none, the replica with
        the highest leader epoch, of these the longest (`pylog.reading.replicas`); a warning says
        which.
    filesystem, storage_options
        How the store of the paths is reached, as for `pylog.location`.

    Raises
    ------
    LogDirectoryError
        A path cannot be read or holds no Kafka log (of several log directories of brokers, only
        if none holds one), a partition lies twice in directories of one
        node, or directories of two clusters have a topic of one name.

    Examples
    --------
    >>> directory = pylog.open_directory("kafka/intact")
    >>> directory["orders", 0].log_end_offset
    60
    """
    _ensure_paths(paths)
    places = in_store(paths, filesystem, storage_options)
    directories = one_of_each(
        discover_all(places, takes_segment_files=takes_segment_files),
        include_stray=include_stray,
        replica=replica,
    )
    given = None if takes_segment_files else [os.fspath(each) for each in places]
    return LogDirectory(directories, include_stray=include_stray, given=given)
