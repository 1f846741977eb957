"""What damage of the log of the cluster's metadata means: no consumer reads it, a node does.

A node cuts the log at the first batch with a wrong checksum, and where it then ends below the
newest snapshot, deletes it and continues from that. What that costs is found as strays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import LogDirectoryError
from pylog.findings.finding import Effect, Finding, Severity
from pylog.reading.internal_logs import metadata_snapshots

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.checks.broker_start import BrokerStart
    from pylog.reading.log_view import LogView

_OF_CONSUMERS = (Effect.CONSUMERS, Effect.GONE, Effect.LOSES)
_NOT_KNOWN = "what a node makes of records with wrong offsets after its newest snapshot varies"


def effects_on_node(
    view: LogView, findings: Iterable[Finding], start: BrokerStart | None
) -> list[Finding]:
    """Return findings about the batches of this log with what they are for a node."""
    try:
        snapshots = metadata_snapshots(view)
    except LogDirectoryError:
        return list(findings)
    newest = snapshots[-1].end_offset if snapshots else 0
    is_cut = start is not None and start.cut_path is not None
    is_without_log = bool(snapshots) and not view.segments
    found = []
    for each in findings:
        if each.effect not in _OF_CONSUMERS:
            found.append(each)
        elif is_cut:
            found.append(each._replace(own_effect=Effect.LOSES))
        elif is_without_log or (each.end_offset is not None and each.end_offset <= newest):
            found.append(each._replace(severity=Severity.WARNING, own_effect=None))
        else:
            found.append(each._replace(own_effect=Effect.UNKNOWN, own_action=_NOT_KNOWN))
    return found
