"""Findings about ``quorum-state`` files that contradict each other: who leads the controllers.

A node that the others take for the leader of an epoch that it does not know of itself, since its
disk is new, say, ends as soon as one of them asks it. Whether they do, or have chosen another
leader before, depends on who is faster.

Source: KafkaRaftClient.maybeTransition, QuorumState.initialize (Kafka 4.4).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from pylog.errors import LogStorageError
from pylog.files.quorum_state import QUORUM_STATE, QuorumState, read_quorum_state
from pylog.findings import kinds
from pylog.findings.finding import Effect, Finding
from pylog.locations import join, printable_location
from pylog.reading.internal_logs import CLUSTER_METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pylog.writing.node import Node

_NONE = QuorumState(-1, -1, None)


def forgotten_leaders(nodes: Mapping[str, Node]) -> Iterator[tuple[str, Finding]]:
    """Yield nodes that others have as their leader, and that do not know it; by log directory."""
    states = {node: _state_of(node) for node in nodes.values() if node.is_kraft}
    for node, (_, own) in states.items():
        for other in node.cluster:
            path, known = states.get(other, ("", _NONE))
            if other is node or known.leader_id < 0 or known.leader_id != node.node_id:
                continue
            if (own.leader_epoch, own.leader_id) < (known.leader_epoch, known.leader_id):
                message = (
                    f"{printable_location(path)} has node {node.node_id} as leader of epoch "
                    f"{known.leader_epoch}, of which the node itself does not know"
                )
                finding = kinds.FORGOTTEN_LEADER.found(node.disks.first, message)
                yield node.disks.first, finding._replace(own_effect=Effect.UNKNOWN)
                break


def _state_of(node: Node) -> tuple[str, QuorumState]:
    for each in node.disks.metadata_logs:
        path = join(join(each, str(CLUSTER_METADATA)), QUORUM_STATE)
        with suppress(LogStorageError):  # it is a finding
            return path, read_quorum_state(path) or _NONE
    return "", _NONE
