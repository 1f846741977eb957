"""Findings about consumer groups and transactional ids, of each cluster whose own topics are read.

What becomes of groups stands in `pylog.checks.consumers`; here it is put into findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pylog.checks.absent_partitions import loaded
from pylog.checks.consumers import (
    CommitAtRisk,
    GroupOutlook,
    LogRange,
    Placement,
    Position,
    group_outlook,
)
from pylog.config.server_properties import ServerProperties
from pylog.errors import LogDirectoryError
from pylog.files.looks import lasting
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, FindingKind, Severity
from pylog.internal_topics.group_state import group_states
from pylog.internal_topics.versions import KafkaVersion
from pylog.locations import join
from pylog.model import TopicPartition
from pylog.reading.group_records import CONSUMER_OFFSETS_TOPIC, last_group_records, stored_groups
from pylog.reading.log_directory import LogDirectory
from pylog.reading.replicas import one_of_each
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC, transactional_ids
from pylog.writing.node_disks import names_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from pylog.reading.group_records import LastRecords, StoredGroups
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


class GroupPosition(NamedTuple):
    """A group, and the offset that it has committed for a partition; -1 where its own records are.

    Nobody has read past what is of them there.
    """

    offset: int
    group_id: str


class GroupsOfCluster(NamedTuple):
    """Committed positions of a cluster's groups, and the findings about these groups."""

    log_directory: str  # one in which they are
    positions: dict[TopicPartition, list[GroupPosition]]
    findings: list[tuple[str, Finding]]  # with the log directory that each is about


def groups_of_clusters(  # noqa: PLR0913, PLR0917 - what an examination knows
    chosen: Iterable[LogView],
    views: Iterable[LogView],
    nodes: Mapping[str, Node],
    range_of: Callable[[LogView], LogRange | None],
    now_ms: int,
    settings: ServerProperties | None,
    stopped: Set[str],
) -> Iterator[GroupsOfCluster]:
    """Yield what is found of the groups in the views that are chosen, by cluster.

    ``views`` are all that there are, ``range_of`` tells where the log of one starts and ends once a
    broker has started; ``stopped`` are the log directories that no broker worked on. Nothing is
    read unless topics of coordinators are chosen.
    """
    settings = settings or ServerProperties()
    by_cluster: dict[int, list[LogView]] = {}
    for view in chosen:
        if view.topic in (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
            cluster = nodes[view.directory.log_directory].cluster
            by_cluster.setdefault(id(cluster), []).append(view)
    for of_coordinators in by_cluster.values():
        cluster = nodes[of_coordinators[0].directory.log_directory].cluster
        there = [each for each in views if nodes[each.directory.log_directory] in cluster]
        yield _Cluster(of_coordinators, there, cluster, range_of).look(now_ms, settings, stopped)


class _Cluster:
    def __init__(
        self,
        of_coordinators: Sequence[LogView],
        views: Sequence[LogView],
        nodes: Sequence[Node],
        range_of: Callable[[LogView], LogRange | None],
    ) -> None:
        self._of_coordinators = chosen_replicas(of_coordinators)
        self._place = self._of_coordinators[0].directory.log_directory
        self._views: dict[TopicPartition, list[LogView]] = {}
        for each in views:
            self._views.setdefault(each.topic_partition, []).append(each)
        directory = LogDirectory(
            [each.directory for each in views],
            views={each.topic_partition: each for each in views},
        )
        self._node = nodes[0]
        self._image = self._node.newest_image
        of_nodes = {path: node for node in nodes for path in node.disks.metas}
        self._placement = Placement(directory, self._image, of_nodes)
        self._range_of_view = range_of
        self._ranges: dict[TopicPartition, LogRange | None] = {}

    def look(self, now_ms: int, settings: ServerProperties, stopped: Set[str]) -> GroupsOfCluster:
        """Read the coordinators' topics, and return what is found."""
        found, stored, outlook = self._read(now_ms, settings)
        disks = {path for node in self._node.cluster for path in node.disks.metas}
        if not disks <= stopped:
            resetting = self._lasting(outlook.resetting, disks, now_ms, settings)
            outlook = outlook._replace(resetting=resetting)
        findings = list(self._findings(outlook)) if found else []
        shared = transactional_ids(
            self._of(TRANSACTION_STATE_TOPIC),
            self._image,
            settings.transaction_topic_partitions,
            [],  # damage is found by itself
        ).shared
        for each in shared:
            path = join(self._place, TRANSACTION_STATE_TOPIC)
            findings.append((self._place, kinds.SHARED_PRODUCER_ID.found(path, str(each))))
        return GroupsOfCluster(self._place, _positions(found, stored), findings)

    def _read(
        self, now_ms: int, settings: ServerProperties
    ) -> tuple[dict[int, LastRecords], StoredGroups, GroupOutlook]:
        found = {
            view.partition: last_group_records(view) for view in self._of(CONSUMER_OFFSETS_TOPIC)
        }
        stored = stored_groups(found, self._image, settings.offsets_topic_partitions)
        outlook = group_outlook(
            *(found, stored, self._placement, self._range_of),
            *(now_ms, settings.offsets_retention_ms),
        )
        return found, stored, outlook

    def _lasting(
        self,
        resetting: Mapping[Position, CommitAtRisk],
        disks: Iterable[str],
        now_ms: int,
        settings: ServerProperties,
    ) -> dict[Position, CommitAtRisk]:
        """Return the positions that stay outside of their logs when they are looked at again.

        A broker may append to a log, make it or delete it, and its group read on, after the log
        was looked at, or while it was: then a start would cut off what was half written.
        """
        wrong = _wrong(resetting)

        def look() -> dict[Position, CommitAtRisk] | None:
            again = self._refreshed({TopicPartition(topic, number) for _, topic, number in wrong})
            if self._node.knows_metadata and not again._node.knows_metadata:
                return None
            here = loaded(name for path in disks for name in names_in(path))
            made = here - self._views.keys()
            _, _, outlook = again._read(now_ms, settings)
            return {
                place: each
                for place, each in _wrong(outlook.resetting).items()
                if TopicPartition(each.topic, each.partition) not in made
            }

        kept = lasting(wrong, look, disks)
        return {
            place: each for place, each in resetting.items() if place not in wrong or place in kept
        }

    def _refreshed(self, partitions: Iterable[TopicPartition]) -> _Cluster:
        """Return the cluster as it is now, with the logs of some partitions alone."""
        views = [each.refreshed() for where in partitions for each in self._views.get(where, ())]
        of_coordinators = [each.refreshed() for each in self._of_coordinators]
        nodes = self._node.refreshed().cluster
        return _Cluster(of_coordinators, views, nodes, self._range_of_view)

    def _of(self, topic: str) -> list[LogView]:
        return [each for each in self._of_coordinators if each.topic == topic]

    def _range_of(self, where: TopicPartition) -> LogRange | None:
        """Return what the replicas have of a partition, whichever leads."""
        if where not in self._ranges:
            ranges = [self._range_of_view(each) for each in self._views.get(where, ())]
            known = [each for each in ranges if each is not None]
            self._ranges[where] = (
                LogRange(min(each.start for each in known), max(each.end for each in known))
                if known
                else None
            )
        return self._ranges[where]

    def _findings(self, outlook: GroupOutlook) -> Iterator[tuple[str, Finding]]:
        for risk in outlook.resetting.values():
            yield self._about(kinds.GROUP_RESETS, risk, Effect.RESETS)
        for risk in outlook.expiring.values():
            yield self._about(
                kinds.GROUP_EXPIRES, risk, Effect.EXPIRES if risk.is_certain else None
            )
        paths = {each.partition: each.directory for each in self._of(CONSUMER_OFFSETS_TOPIC)}
        for refused in outlook.refused:
            directory = paths[refused.partition]
            finding = kinds.REFUSED_GROUPS.found(
                directory.path, str(refused), severity=Severity.ERROR
            )
            if self._node.kafka_version < KafkaVersion.V4_0:  # which knows classic groups alone
                finding = finding._replace(severity=Severity.WARNING)
            yield directory.log_directory, finding
        if outlook.missing is not None:
            yield self._place, kinds.MISSING_GROUPS.found(self._place, str(outlook.missing))

    def _about(
        self, kind: FindingKind, risk: CommitAtRisk, effect: Effect | None
    ) -> tuple[str, Finding]:
        where = TopicPartition(risk.topic, risk.partition)
        views = self._views.get(where)
        log_directory = views[0].directory.log_directory if views else self._place
        path = views[0].directory.path if views else join(log_directory, str(where))
        message = f"group {risk.group_id} is at {risk.offset}: {risk.reason}"
        finding = kind.found(path, message, severity=risk.severity)
        return log_directory, finding._replace(
            next_offset=risk.offset,
            end_offset=risk.offset,
            own_effect=effect,
            groups=(risk.group_id,),
        )


def _wrong(resetting: Mapping[Position, CommitAtRisk]) -> dict[Position, CommitAtRisk]:
    """Return those of which records are missing that there were."""
    return {place: each for place, each in resetting.items() if each.severity is not Severity.INFO}


def chosen_replicas(views: Sequence[LogView]) -> list[LogView]:
    """Return one replica of each partition, that which readers take."""
    by_path = {each.directory.path: each for each in views}
    try:
        chosen = one_of_each([each.directory for each in views], tells=False)
    except LogDirectoryError:  # a partition lies twice, which is a finding: one of both
        chosen = list({each.topic_partition: each.directory for each in views}.values())
    return [by_path[each.path] for each in chosen]


def _positions(
    found: Mapping[int, LastRecords], stored: StoredGroups
) -> dict[TopicPartition, list[GroupPosition]]:
    """Return who has positions in partitions, and who is in those of ``__consumer_offsets``."""
    positions = {
        TopicPartition(CONSUMER_OFFSETS_TOPIC, number): [
            GroupPosition(-1, each) for each in group_states(records.records)
        ]
        for number, records in found.items()
    }
    for group_id, state in sorted(stored.states.items()):
        for place, each in state.offsets.items():
            if each.offset >= 0:
                known = positions.setdefault(TopicPartition(*place), [])
                known.append(GroupPosition(each.offset, group_id))
    return positions
