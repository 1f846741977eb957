"""What the topics are configured to that Kafka makes for itself.

A broker makes each with these properties of its own, whatever its ``server.properties`` says. So
they hold where a log directory has come without its cluster: by the defaults for all topics, the
offsets of consumer groups would be removed after 7 days.

Source: the topic configurations of GroupCoordinatorService, TransactionCoordinator and
ShareCoordinatorService, and TopicBasedRemoteLogMetadataManagerConfig (Kafka 4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_COMPACTED = {"cleanup.policy": "compact"}
_KEPT_FOR_EVER = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}

INTERNAL_TOPIC_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "__consumer_offsets": _COMPACTED,
    "__transaction_state": _COMPACTED,
    "__share_group_state": _KEPT_FOR_EVER,
    "__remote_log_metadata": _KEPT_FOR_EVER,
}
"""Of ``cleanup.policy`` and the limits of retention alone."""
