"""`adopt`: a stopped node of a cluster is given the partitions that old disks have.

Without it a broker renames such directories to ``-stray``, since its metadata does not know them.
The records that make them known are appended to the log of the metadata; where a node was formatted
and has never run, a snapshot has them, together with what the formatting has laid down. Each
partition is copied as a repaired copy is (`pylog.checks.repair`).

Source: LogManager.isStrayReplica (Kafka 4.4); KIP-630.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.files.owned_directories import ensure_writable_log_directory, local_location
from pylog.recovery.adopted_topics import OldDisks
from pylog.recovery.adoption_plan import AdoptionPlan
from pylog.recovery.adoption_steps import Adoption, begun_in
from pylog.recovery.adoption_target import AdoptionTarget
from pylog.recovery.cluster_places import ClusterPlaces, is_of_a_cluster
from pylog.writing.new_log_directory import ensure_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pylog.recovery.adoption_summary import AdoptionSummary


def adopt(  # noqa: PLR0913 - keyword-only options, one for each thing a user may say
    *paths: str | os.PathLike[str],
    into: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    topics: Iterable[str] | None = None,
    rename: Mapping[str, str] | None = None,
    brokers: Iterable[int] | None = None,
    with_access: bool = True,
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> AdoptionSummary:
    """Give a stopped node of a cluster the topics that the log directories of other nodes have.

    Parameters
    ----------
    *paths
        Log directories of the old nodes, or backups of them. They are not changed.
    into
        All log directories of the stopped node, or nodes, of the cluster that is to serve the
        topics. Most of its controllers have to be among them.
    topics
        Only these; None for all that the cluster does not have yet. Of Kafka's own topics those
        that it has are left out then.
    rename
        New names, by the old one; such a topic gets a new id.
    brokers
        Ids of the nodes that get partitions; None for those that have registered as brokers, or all
        where none has. For nodes that have never run, and of which some are controllers alone.
    with_access
        Whether ACLs, SCRAM users, quotas and the defaults of all brokers come along, where the old
        metadata is on the disks. What the cluster has already stays.
    threads
        As of `doctor`.
    dry_run
        Whether nothing is written.
    progress
        As of `doctor`, for each old log directory in turn.

    Returns
    -------
    AdoptionSummary
        What was done, or would be.

    Raises
    ------
    LogDirectoryError
        Refused: the cluster has such a topic or such an id, it is not known what its metadata says,
        a log directory is missing, or an earlier call was interrupted. Nothing has changed.
    LogLockedError
        A broker runs on one of the log directories.
    KafkaStorageError
        A copy could not be written; ``into`` is as before.
    ValueError
        The arguments contradict each other.

    Examples
    --------
    >>> names = {"orders": "old-orders"}
    >>> found = pylog.adopt("kafka/intact", into="kafka/damaged", topics=["orders"], rename=names,
    ...                     dry_run=True)
    >>> [(each.topic, each.partition, each.leader_epoch) for each in found.partitions]
    [('old-orders', 0, 1), ('old-orders', 1, 1)]
    """
    if not paths:
        msg = "give at least one log directory"
        raise ValueError(msg)
    target = AdoptionTarget([into] if isinstance(into, str | os.PathLike) else list(into), brokers)
    for path in paths:
        for each in target.log_directories:
            ensure_apart(each, os.fspath(path))
            ensure_apart(os.fspath(path), each)
    source = OldDisks(paths, topics)
    plan = AdoptionPlan(source, target, dict(rename or {}), topics, with_access=with_access)
    if dry_run:
        plan.foresee(threads)
    else:
        plan.write(threads, progress)
    return plan.summary(is_written=not dry_run)


def end_adoption(into: Sequence[str | os.PathLike[str]], *, undo: bool = False) -> bool:
    """End an adoption that was interrupted, or take it back.

    Parameters
    ----------
    into
        One or more of those that `adopt` was given; the others are known from there.
    undo
        Whether it is taken back, whatever was done of it.

    Returns
    -------
    bool
        Whether the topics are adopted now. Without ``undo`` False means that the interrupted call
        had not copied all yet, or was being taken back: it was taken back.

    Raises
    ------
    LogDirectoryError
        None was interrupted here; or it cannot be taken back, since a controller knows the topics
        or a log directory is done already.
    LogLockedError
        A broker runs on one of the log directories.

    Examples
    --------
    >>> pylog.jobs.end_adoption(["kafka/intact"])
    Traceback (most recent call last):
        ...
    pylog.errors.LogDirectoryError: kafka/intact: no call was interrupted here
    """
    places = [local_location(each) for each in into]
    begun = begun_in(places)
    if not begun:
        for each in places:
            ensure_writable_log_directory(each, must_exist=True)
        reason = "no call was interrupted here"
        raise LogDirectoryError(reason, places[0])
    if is_of_a_cluster(begun[0]):
        with ClusterPlaces(begun) as cluster:
            if undo:
                cluster.undo()
                return False
            return cluster.finish()
    with Adoption(begun) as adoption:
        if undo:
            adoption.undo()
            return False
        return adoption.finish()
