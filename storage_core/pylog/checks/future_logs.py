"""What becomes of ``-future`` directories, the copies of partitions that are moved between disks.

A broker loads them like live ones. Then it looks where the cluster's metadata assigns the
partition, by the id of a log directory (Kafka 3.7 and later):

* To that of the ``-future`` directory: it becomes the partition, however short it is, and the live
  one is deleted.
* Elsewhere: the move goes on. The ``-future`` directory is cut to where the live log ends, and
  takes its place. Where there is no live one, the broker makes an empty one first.

Source: LogManager.recoverAbandonedFutureLogs, LogManager.findAbandonedFutureLogs,
ReplicaManager.maybeAddLogDirFetchers, ReplicaAlterLogDirsThread (Kafka 3.9, 4.3, 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.checks.absent_partitions import unserved
from pylog.checks.replicas import find_fork
from pylog.errors import LogStorageError, SegmentVanishedError
from pylog.files.file_names import FUTURE_DIR_SUFFIX
from pylog.files.looks import MOST_LOOKS, lasting
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding, FindingKind, Severity
from pylog.locations import printable_location
from pylog.writing.node import nodes_now
from pylog.writing.node_disks import Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pylog.model import TopicPartition
    from pylog.reading.log_view import LogView
    from pylog.writing.node import Node
    from pylog.writing.node_disks import Assignment


def future_findings(
    views: Sequence[LogView], nodes: Mapping[str, Node]
) -> Iterator[tuple[str, Finding]]:
    """Yield what becomes of each ``-future`` directory, by log directory.

    While a broker moves partitions, directories and metadata change one after the other. So this
    looks again before it reports a problem.
    """
    found = {(each.path, each.kind): (place, each) for place, each in _findings(views, nodes)}
    moving = {each.topic_partition for each in views if each.directory.state == FUTURE_DIR_SUFFIX}

    def look() -> set[tuple[str, FindingKind]] | None:
        now = nodes_now(nodes)
        if now is None:
            return None
        still = [
            each.refreshed()
            for each in views
            if each.topic_partition in moving and not each.directory.was_deleted()
        ]
        return {(each.path, each.kind) for _, each in _findings(still, now)}

    wrong = {
        key: each
        for key, (_, each) in found.items()
        if each.severity is not Severity.INFO or each.effect is not None
    }
    kept = lasting(wrong, look, nodes)
    yield from (each for key, each in found.items() if key not in wrong or key in kept)


def _findings(views: Sequence[LogView], nodes: Mapping[str, Node]) -> Iterator[tuple[str, Finding]]:
    live_of: dict[tuple[Node, TopicPartition], list[LogView]] = {}
    for view in views:
        place = view.directory
        node = nodes[place.log_directory]
        if not place.state and not node.is_set_aside(view.topic_partition, place.path):
            live_of.setdefault((node, view.topic_partition), []).append(view)
    for view in views:
        if view.directory.state == FUTURE_DIR_SUFFIX:
            log_directory = view.directory.log_directory
            node = nodes[log_directory]
            live = live_of.get((node, view.topic_partition), [])
            found = _steady_finding(view, live, node)
            if found is None:
                continue
            yield log_directory, found
            is_made_anew = not live and not node.is_set_aside(
                view.topic_partition, view.directory.path
            )
            for each in unserved(node, view.topic_partition, log_directory) if is_made_anew else ():
                yield log_directory, each


def _steady_finding(view: LogView, live: list[LogView], node: Node) -> Finding | None:
    """Return what becomes of a copy; None of one that a broker has put in its place meanwhile."""
    for _ in range(MOST_LOOKS):
        try:
            return _finding(view, live, node)
        except LogStorageError as error:
            if view.directory.was_deleted():
                return None
            reason = getattr(error, "reason", str(error))
            if not isinstance(error, SegmentVanishedError):
                break
            view, live = view.refreshed(), [each.refreshed() for each in live]
    message = (
        f"partition {view.topic_partition} is being moved between disks; what becomes of it is not "
        f"known: {reason}"
    )
    found = kinds.FUTURE_DIRECTORY.found(view.directory.path, message)
    return found._replace(own_effect=Effect.UNKNOWN)


def _finding(view: LogView, live: list[LogView], node: Node) -> Finding:
    what = f"partition {view.topic_partition} is being moved between disks"
    path = view.directory.path
    if node.is_set_aside(view.topic_partition, path):
        found = kinds.FUTURE_DIRECTORY.found(
            path, f"{what}; a broker sets this copy aside as -stray"
        )
        return found._replace(own_effect=Effect.STRAY)
    assignment = node.assignment(view.topic_partition)
    beside = [each for each in live if each.directory.log_directory == view.directory.log_directory]
    is_here = node.is_placed_in(view.directory.log_directory, view.topic_partition)
    if beside and node.is_kraft:
        found = _beside_live(view, node, is_here=is_here)
    elif is_here:
        found = _promoted(view, live, what)
    elif assignment is None or (assignment.place is Place.NOT_KNOWN and not live):
        found = _unknown(view, live, what)
    else:
        found = _moved(view, live, what, assignment)
    if assignment is not None and not assignment.is_certain and found.effect is not None:
        return found._replace(own_effect=Effect.UNKNOWN)
    return found


def _beside_live(view: LogView, node: Node, *, is_here: bool) -> Finding:
    reason = f"partition {view.topic_partition} lies here under its own name, too"
    found = kinds.FUTURE_BESIDE_LIVE.found(view.directory.path, reason)
    if is_here or node.assignment(view.topic_partition) is None:
        return found
    reason = (
        f"{reason}; the cluster's metadata does not assign it to this log directory yet. A "
        "broker that starts tells them so, and its next start ends"
    )
    action = "it starts, and leaves this copy where it is; its next start ends"
    return found._replace(message=reason, own_effect=Effect.ENDS_LATER, own_action=action)


def _promoted(view: LogView, live: list[LogView], what: str) -> Finding:
    path = view.directory.path
    becomes = "the cluster's metadata assigns it to this log directory, so this copy becomes it"
    lost = _lost(view, live[0]) if live else None
    if lost is None:
        return kinds.FUTURE_DIRECTORY.found(path, f"{what}; {becomes}")
    other = printable_location(live[0].directory.path)
    message = (
        f"{becomes}, with offsets up to {view.log_end_offset}, and {other} with offsets up to "
        f"{live[0].log_end_offset} is deleted"
    )
    return _loss(kinds.FUTURE_REPLACES_LIVE, path, message, lost)


def _moved(view: LogView, live: list[LogView], what: str, assignment: Assignment) -> Finding:
    path, topic_partition = view.directory.path, view.topic_partition
    start, end = view.local_log_start_offset, view.log_end_offset
    rename = f"rename the directory to {topic_partition} before a broker starts"
    if live:
        lost = _lost(live[0], view)
        if lost is None:
            return kinds.FUTURE_DIRECTORY.found(path, what)
        other = printable_location(live[0].directory.path)
        message = (
            f"it has offsets up to {end}, and the live {other} up to {live[0].log_end_offset}: a "
            f"broker cuts it to that. Move {other} away, and {rename}"
        )
        return _loss(kinds.FUTURE_IS_CUT, path, message, lost)
    if end <= start:
        return kinds.FUTURE_DIRECTORY.found(path, f"{what}; it is empty")
    where = {
        Place.GIVEN: f"to {printable_location(assignment.path or '')}, where it is missing",
        Place.GONE: "to a log directory that the node does not have any more",
    }.get(assignment.place, "to no log directory")
    message = (
        f"this is the only copy of {topic_partition}, and the cluster's metadata assigns it "
        f"{where}: a broker makes an empty one, and cuts this one to nothing. First {rename}"
    )
    return _loss(kinds.FUTURE_IS_CUT, path, message, (start, end))


def _unknown(view: LogView, live: list[LogView], what: str) -> Finding:
    path = view.directory.path
    if live and _lost(view, live[0]) is None and _lost(live[0], view) is None:
        return kinds.FUTURE_DIRECTORY.found(path, what)
    message = (
        f"{what}; where the cluster's metadata assigns it is not known: there, it becomes the "
        "partition; elsewhere, a broker cuts it to the live log"
    )
    return kinds.FUTURE_DIRECTORY.found(path, message)._replace(own_effect=Effect.UNKNOWN)


def _loss(kind: FindingKind, path: str, message: str, lost: tuple[int, int]) -> Finding:
    return kind.found(path, message, next_offset=lost[0], end_offset=lost[1])


def extends(view: LogView, other: LogView) -> bool:
    """Whether a log begins with all that another one has, and has more."""
    return view.log_end_offset > other.log_end_offset and _lost(view, other) is None


def _lost(kept: LogView, dropped: LogView) -> tuple[int, int] | None:
    """Return the offsets ``[start, end)`` that only the dropped log has; None if there is none."""
    fork = find_fork(dropped, kept)
    start = kept.log_end_offset if fork is None else min(fork[1], kept.log_end_offset)
    end = dropped.log_end_offset
    return (start, end) if start < end else None
