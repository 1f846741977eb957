"""Puts the findings about log directories together: for `doctor`, and for table ``findings``.

Each path is looked at by itself, so that replicas of several brokers may be given at once.
"""

from __future__ import annotations

import os
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING

from pylog.checks.broker_properties import refused_properties
from pylog.checks.broker_start import broker_start
from pylog.checks.consumers import UNKNOWN_RANGE, LogRange
from pylog.checks.group_findings import groups_of_clusters
from pylog.checks.hanging_transactions import HangingTransactions
from pylog.checks.log_directory import (
    check_log_directories,
    check_log_directory,
    findings_between,
    held_partitions,
    node_findings,
)
from pylog.checks.not_live import not_live_directories
from pylog.checks.partition import check_partition
from pylog.checks.partition_check import PartitionCheck
from pylog.checks.permissions import BrokerUsers
from pylog.checks.replicas import replica_findings
from pylog.errors import LogDirectoryError, LogStorageError
from pylog.files.directory_lock import LOCK_FILE
from pylog.files.file_user import SEARCH, WRITE, DeniedError
from pylog.files.looks import Patience
from pylog.findings import kinds
from pylog.findings.finding import Effect, Severity
from pylog.internal_topics.versions import LATEST_KAFKA_VERSION, KafkaVersion
from pylog.locations import name_of, parent_of, parse_location
from pylog.reading.damage import DamageReport
from pylog.reading.discovery import (
    beside_one_another,
    directory_identity,
    discover_partitions,
)
from pylog.reading.log_directory import LogDirectory
from pylog.reading.log_view import read_steadily
from pylog.reading.transactional_ids import TRANSACTION_STATE_TOPIC
from pylog.record.byte_buffer import DEFAULT_MAX_DECOMPRESSED_BYTES
from pylog.scheduling.clock import SystemClock
from pylog.writing.node import nodes_of
from pylog.writing.node_disks import is_new_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pylog.checks.broker_start import BrokerStart
    from pylog.checks.group_findings import GroupPosition
    from pylog.checks.log_directory import LogDirectoryCheck
    from pylog.checks.not_live import NotLiveDirectory
    from pylog.config.server_properties import ServerProperties
    from pylog.files.file_user import FileUser
    from pylog.findings.finding import Finding
    from pylog.model import TopicPartition
    from pylog.reading.discovery import PartitionDirectory
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node


class Examination:
    """What lies under some paths, and what is found in it.

    Parameters
    ----------
    paths
        Log directories, or directories of partitions.
    kafka_version
        Version of the broker that will use them.
    as_user
        Whom it runs as; None for the owner of most of what lies in a log directory.

    Attributes
    ----------
    views
        Live partitions, by log directory, topic and partition.
    views_of
        The same by partition: more than one where it has replicas.
    not_live
        What is looked at of the other directories.
    checks
        The log directories, with what is wrong with the files right in them.
    """

    def __init__(
        self,
        paths: Iterable[str | os.PathLike[str]],
        kafka_version: KafkaVersion = LATEST_KAFKA_VERSION,
        as_user: FileUser | None = None,
    ) -> None:
        began_ms = SystemClock().milliseconds()
        self._kafka_version = kafka_version
        views: dict[str | tuple[int, int], LogView] = {}
        others: dict[str | tuple[int, int], PartitionDirectory] = {}
        checks: dict[str | tuple[int, int], LogDirectoryCheck] = {}
        directories, log_directories = _directories(list(paths))
        for directory in directories:
            for view in directory:
                views.setdefault(directory_identity(view.directory.path), view)
            for each in directory.others:
                others.setdefault(directory_identity(each.path), each)
        self._nodes = nodes_of(
            [*log_directories, *(view.directory.log_directory for view in views.values())],
            kafka_version,
        )
        self._users = BrokerUsers(as_user)
        held = held_partitions((view.directory for view in views.values()), self._nodes)
        loaded = held | held_partitions(others.values(), self._nodes)
        for directory in directories:
            for check in check_log_directories(directory, self._nodes, loaded, self._users):
                checks.setdefault(directory_identity(check.path), check)
        for empty in log_directories:  # new, or all that it had has just been moved away
            if directory_identity(empty) not in checks:
                check = check_log_directory(empty, self._nodes[empty], [], loaded)
                checks[directory_identity(empty)] = check
        self.views = sorted(
            views.values(), key=lambda view: (view.directory.log_directory, view.topic_partition)
        )
        self.not_live = not_live_directories(
            (each for identity, each in others.items() if identity not in views),
            self._nodes,
            held,
            self._users,
        )
        self.checks = list(checks.values())
        self._metas = {each.path: each.meta for each in self.checks}
        self._passed_over = {each.path for each in self.checks if each.is_passed_over}
        self._unloaded = self._passed_over | {
            each.path for each in self.checks if not (each.is_loaded or self._is_needed(each.path))
        }
        self._unlocked = {each.path for each in self.checks if _is_not_locked(each)}
        self._lock = Lock()
        self._patience = Patience()
        self._around: dict[str, list[Finding]] | None = None
        self._of_replicas: dict[TopicPartition, dict[str, list[Finding]]] = {}
        self._starts: dict[LogView, BrokerStart | None] = {}
        self._at_home: dict[Node, bool] = {}
        self._of_groups: dict[str, list[Finding]] = {}
        self._hanging = {
            id(cluster): HangingTransactions(of_coordinators, cluster[0].newest_image, began_ms)
            for cluster, of_coordinators in self._coordinators()
        }
        self.positions: dict[str, Mapping[TopicPartition, Sequence[GroupPosition]]] = {}
        self.views_of: dict[TopicPartition, list[LogView]] = {}
        for view in self.views:
            self.views_of.setdefault(view.topic_partition, []).append(view)

    def check(
        self,
        view: LogView,
        *,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        on_bytes: Callable[[int], None] | None = None,
    ) -> PartitionCheck:
        """Read all of a partition; its findings begin with what its node and its replicas say."""
        check = check_partition(
            view,
            node=self._nodes[view.directory.log_directory],
            user=self._users.of(view.directory.log_directory),
            max_decompressed_bytes=max_decompressed_bytes,
            on_bytes=on_bytes,
            patience=self._patience,
        )
        # What is wrong with a checkpoint is said of its directory, where that is looked at.
        own = [
            each
            for each in check.findings
            if each.kind != kinds.DAMAGED_CHECKPOINT or parent_of(each.path) not in self._metas
        ]
        place = check.view.directory  # a broker may have moved it
        around = [
            *self._findings_around().get(place.path, ()),
            *self._findings_of_replicas(view.topic_partition).get(place.path, ()),
        ]
        own = [self._settled(each, place.log_directory) for each in own]
        if place.log_directory in self._unloaded:
            own, around = list(map(_not_loaded, own)), list(map(_not_loaded, around))
            check = check._replace(start=None)
        elif any(each.effect is Effect.OFFLINE for each in own):  # before it can be set aside
            around = [_not_loaded(each) if each.effect is Effect.STRAY else each for each in around]
        elif self._ends_setting_aside(place.log_directory):
            around = [_not_set_aside(each) for each in around]
        self._starts[view] = check.start
        hanging = self._hanging.get(id(self._nodes[place.log_directory].cluster))
        if hanging is not None:
            own += hanging.findings(view, check.start)
        return check._replace(findings=[*around, *own])

    def _ends_setting_aside(self, log_directory: str) -> bool:
        """Whether a node ends when it sets a partition aside.

        One that cannot be renamed takes its log directory offline. In one that is offline by then,
        since it could not be locked, or another one could not be renamed, the process ends.

        Source: LocalLog.maybeHandleIOException, LogManager.loadLogs (Kafka 3.9, 4.4).
        """
        user = self._users.of(log_directory)
        if user is None:
            return False
        if log_directory in self._unlocked:
            return True
        try:
            user.ensure_may(log_directory, WRITE | SEARCH)
        except DeniedError:
            around = self._findings_around().values()
            strays = {
                each.path
                for findings in (*around, *(each.findings for each in self.checks))
                for each in findings
                if each.effect is Effect.STRAY and parent_of(each.path) == log_directory
            }
            return len(strays) > 1
        return False

    def _coordinators(self) -> Iterator[tuple[Sequence[Node], Sequence[LogView]]]:
        """Yield clusters whose transactional ids are here, and the logs that have them."""
        found: dict[int, list[LogView]] = {}
        for view in self.views:
            if view.topic == TRANSACTION_STATE_TOPIC:
                cluster = self._nodes[view.directory.log_directory].cluster
                found.setdefault(id(cluster), []).append(view)
        for views in found.values():
            yield self._nodes[views[0].directory.log_directory].cluster, views

    def _settled(self, finding: Finding, log_directory: str) -> Finding:
        """Return what takes a log directory offline as what ends a node that cannot do without."""
        is_unserved = finding.effect is Effect.UNSERVED and log_directory in self._unloaded
        if is_unserved and not self._is_at_home(self._nodes[log_directory]):
            return finding._replace(own_effect=Effect.UNKNOWN_OFFLINE)
        if finding.effect not in (Effect.OFFLINE, Effect.OFFLINE_WHEN_READ):
            return finding
        is_now = finding.effect is Effect.OFFLINE
        if not self._is_needed(log_directory):
            if not is_now:
                return finding
            if not self._is_at_home(self._nodes[log_directory]):
                return finding._replace(own_effect=Effect.UNKNOWN_OFFLINE)
            action = "it takes this log directory offline, and serves none of its partitions"
            return finding._replace(own_action=action)
        if is_now:
            return finding._replace(own_effect=Effect.REFUSES)
        action = f"{finding.broker_action}, and ends, since it cannot do without that"
        return finding._replace(own_effect=Effect.ENDS_WHEN_READ, own_action=action)

    def _is_needed(self, log_directory: str) -> bool:
        """Whether a node does not start without a log directory."""
        disks = self._nodes[log_directory].disks
        is_passed_over = log_directory in self._passed_over
        return len(disks.metas) == 1 or (
            log_directory in disks.metadata_logs and not is_passed_over
        )

    def _is_at_home(self, node: Node) -> bool:
        if node not in self._at_home:
            self._at_home[node] = self._are_at_home(node)
        return self._at_home[node]

    def _are_at_home(self, node: Node) -> bool:
        """Whether every partition lies in the log directory that the metadata assigns it to.

        If one does not, a broker makes it anew where its log directory goes offline, or it has no
        leader where it is assigned to that one.
        """
        for view in self.views:
            place = view.directory.log_directory
            if self._nodes[place] is node:
                assigned = node.assignment(view.topic_partition)
                if assigned is not None and assigned.path not in (None, place):
                    return False
        return True

    def _findings_around(self) -> dict[str, list[Finding]]:
        """Return what is found of partitions, and of log directories, by what is around them."""
        with self._lock:
            if self._around is None:
                self._around = {}
                promoted = [each.view for each in self.not_live if not each.has_live]
                for view, finding in node_findings([*self.views, *promoted], self._nodes):
                    self._around.setdefault(view.directory.path, []).append(finding)
                not_live = [each.view for each in self.not_live]
                for path, finding in findings_between(
                    self.checks, self.views, not_live, self._nodes
                ):
                    self._around.setdefault(path, []).append(finding)
            return self._around

    def _findings_of_replicas(self, topic_partition: TopicPartition) -> dict[str, list[Finding]]:
        """Return in what the replicas of a partition differ, by their directories."""
        views = self.views_of[topic_partition]
        if len(views) < 2:
            return {}
        with self._lock:
            found = self._of_replicas.get(topic_partition)
            if found is None:
                found = self._of_replicas[topic_partition] = {}
                replicas = filter(None, map(_end_of, views))
                for check, finding in replica_findings(replicas, self._metas, self._nodes):
                    found.setdefault(check.view.directory.path, []).append(finding)
            return found

    def look_at_groups(
        self, chosen: Iterable[LogView], settings: ServerProperties | None = None
    ) -> None:
        """Read what the coordinators' topics among the chosen views say, for `findings_of`.

        It is cheap once the partitions have been checked in which groups have positions.
        """
        now_ms = SystemClock().milliseconds()
        stopped = {each.path for each in self.checks if each.is_clean}
        for each in groups_of_clusters(
            *(chosen, self.views, self._nodes, self._range_once_started),
            *(now_ms, settings, stopped),
        ):
            self.positions[each.log_directory] = each.positions
            for log_directory, finding in each.findings:
                self._of_groups.setdefault(log_directory, []).append(finding)

    def look_at_properties(self, settings: ServerProperties | None) -> None:
        """Look in a broker's file for what keeps it from starting, for `findings_of`."""
        if settings is None or settings.path is None or not self.checks:
            return
        for reason in refused_properties(settings.path, self._kafka_version):
            finding = kinds.UNUSABLE_BROKER_CONFIG.found(settings.path, reason)
            self._of_groups.setdefault(self.checks[0].path, []).append(finding)

    def _range_once_started(self, view: LogView) -> LogRange | None:
        """Return what of a log a broker has that has started; None if it sets the log aside."""
        path, where = view.directory.path, view.topic_partition
        node = self._nodes[view.directory.log_directory]
        if node.is_set_aside(where, path):
            return None
        try:
            if view not in self._starts:
                user = self._users.of(view.directory.log_directory)
                config = node.log_config(view.topic)
                self._starts[view] = broker_start(view, 0, user=user, config=config)
            start = self._starts[view]
            if start is None:  # in a store, or this process may not read it all
                return LogRange(view.log_start_offset, view.log_end_offset)
        except LogStorageError:
            return UNKNOWN_RANGE
        if start.refusal is not None:
            return UNKNOWN_RANGE
        return LogRange(start.log_start_offset, self._end_now(view, start))

    @staticmethod
    def _end_now(view: LogView, start: BrokerStart) -> int:
        """Return where a log ends: a broker may have appended to it since it was checked."""
        if not start.leaves_log:
            return start.log_end_offset
        try:
            end_now: int = read_steadily(view.refreshed(), attrgetter("log_end_offset"))
        except LogStorageError:
            return start.log_end_offset
        return max(start.log_end_offset, end_now)

    def findings_of(
        self,
        check: LogDirectoryCheck,
        not_live: Iterable[tuple[NotLiveDirectory, Iterable[Finding]]],
    ) -> list[Finding]:
        """Return the findings about a log directory, with those of directories that are not live.

        They are what it lies in, and what it and its partitions contradict others in.
        """
        found = list(check.findings)
        for each, findings in not_live:
            place = each.view.directory
            if place.log_directory == check.path:
                around = self._findings_around().get(place.path, ())
                inside = [one for one in around if one.severity is Severity.ERROR]
                inside += findings
                found += map(_not_loaded, inside) if check.path in self._unloaded else inside
        found += self._findings_around().get(check.path, ())
        found += self._of_groups.get(check.path, ())
        if self._ends_setting_aside(check.path):
            found = list(map(_not_set_aside, found))
        return [self._settled(each, check.path) for each in found]


def _is_not_locked(check: LogDirectoryCheck) -> bool:
    return any(
        each.kind == kinds.FORBIDDEN and name_of(each.path) == LOCK_FILE for each in check.findings
    )


def _not_set_aside(finding: Finding) -> Finding:
    """Return a finding about a partition that a node cannot set aside."""
    if finding.effect is not Effect.STRAY:
        return finding
    action = "it cannot rename it in a log directory that it has taken offline, and ends"
    return finding._replace(own_effect=Effect.REFUSES, own_action=action)


def _not_loaded(finding: Finding) -> Finding:
    """Return a finding in a log directory without which a node starts: it is not served."""
    if finding.effect in (None, Effect.GONE, Effect.BEHIND):
        return finding
    action = "nothing: it starts without this log directory"
    return finding._replace(own_effect=Effect.UNSERVED, own_action=action)


def _end_of(view: LogView) -> PartitionCheck | None:
    """Return a partition with where it ends; None if that cannot be read, which is a finding."""
    try:
        end_offset = view.refreshed().with_damage(DamageReport(is_logged=False)).log_end_offset
    except LogStorageError:
        return None
    return PartitionCheck(view, [], [], end_offset=end_offset)


def _directories(
    paths: Sequence[str | os.PathLike[str]],
) -> tuple[list[LogDirectory], list[str]]:
    """Return what lies under paths, and all log directories in order."""
    listed: list[tuple[str, list[PartitionDirectory]]] = []
    log_directories: list[str] = []
    for path in paths:
        try:
            found = discover_partitions(path)
        except LogDirectoryError:
            new = parse_location(os.fspath(path))
            if not is_new_disk(new, is_alone=len(paths) == 1):
                raise
            log_directories.append(new)
            listed.append((new, []))  # a partition may be moved to it
        else:
            listed.append((os.fspath(path), found))
            log_directories += dict.fromkeys(
                each.log_directory for each in found if not each.is_named
            )
    settled = list(filter(None, beside_one_another(listed, of_node=True)))
    # What is not live is looked at only if the paths name nothing else.
    include_stray = all(each.state for found in settled for each in found if not each.is_named)
    directories = [
        each for found in settled for each in _each_once(found, include_stray=include_stray)
    ]
    return directories, log_directories


def _each_once(found: Sequence[PartitionDirectory], *, include_stray: bool) -> list[LogDirectory]:
    """Return what lies under a path; more than one if a partition lies there twice (t-0, t-00)."""
    others = [each for each in found if not each.is_live(include_stray=include_stray)]
    each_once: list[dict[TopicPartition, PartitionDirectory]] = [{}]
    for each in found:
        if each not in others:
            have_room = (one for one in each_once if each.topic_partition not in one)
            place = next(have_room, None)
            if place is None:
                place = {}
                each_once.append(place)
            place[each.topic_partition] = each
    first, *more = (list(one.values()) for one in each_once)
    return [
        LogDirectory([*first, *others], include_stray=include_stray),
        *(LogDirectory(each, include_stray=include_stray) for each in more),
    ]
