"""What a broker does about a finding, as its simulated start has shown.

The table of codes says what brokers do in general. Here it is told from what has become of the very
file: whether it is still there, how long it is, and whether its segment was scanned, and its
indexes built again. What is built again costs consumers nothing, what is cut off is gone for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files import disk
from pylog.files.file_names import LOG_FILE_SUFFIX, SWAP_FILE_SUFFIX, file_name_prefix
from pylog.findings import kinds
from pylog.findings.finding import Effect, Severity
from pylog.locations import name_of
from pylog.text.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.checks.broker_start import BrokerStart
    from pylog.findings.finding import Finding
    from pylog.reading.log_view import LogView

_FETCHES = "fetches that use it fail, or begin at later records"
_LOOK_UPS = "look-ups by time answer later offsets, or none; retention by time may be wrong, too"
_COMMITTED = "consumers of committed records get aborted records, or miss committed ones"
_ANSWERS = {
    kinds.MISSING_INDEX: _FETCHES,
    kinds.DAMAGED_INDEX: _FETCHES,
    kinds.WRONG_INDEX: _FETCHES,
    kinds.MISSING_TIME_INDEX: _LOOK_UPS,
    kinds.DAMAGED_TIME_INDEX: _LOOK_UPS,
    kinds.WRONG_TIME_INDEX: _LOOK_UPS,
    kinds.EMPTY_TIME_INDEX: _LOOK_UPS,
    kinds.DAMAGED_TRANSACTION_INDEX: _COMMITTED,
    kinds.WRONG_TRANSACTION_INDEX: _COMMITTED,
}
"""What comes of an index that is used as it is."""
_ERROR_HERE = (
    "consumers get an error when they come here, and clients that are built on librdkafka may end"
)
_BYTES = {
    kinds.DAMAGED_BATCHES: _ERROR_HERE,
    kinds.REPEATED_BATCHES: (
        "Java's consumer gets each offset once, clients that are built on librdkafka get these "
        "again"
    ),
    kinds.MISNAMED_SEGMENT: _ERROR_HERE,
    kinds.UNREACHABLE_BATCHES: "fetches from these offsets fail",
    kinds.SEGMENT_REST: "consumers pass over them",
    kinds.UNREADABLE_APPENDS: (
        "it appends after them, and these records cannot be read; if 12 or more of them are zeros, "
        "consumers already get an error at the end of the log"
    ),
    kinds.TORN_TAIL: "consumers ignore them",
    kinds.ZERO_TAIL: "consumers ignore them",
}
"""What comes of bytes that stay as they are."""
_SNAPSHOTS = (kinds.DAMAGED_SNAPSHOT, kinds.WRONG_SNAPSHOT, kinds.SNAPSHOT_ABOVE_LOG_END)


def with_actions(
    findings: Iterable[Finding], view: LogView, start: BrokerStart | None
) -> list[Finding]:
    """Return findings about a partition with what its start does about each."""
    if start is None:
        return list(findings)
    if start.refusal is not None:
        told = list(map(_where_refused, findings))
    else:
        told = [_with_action(each, view, start) for each in findings]
    # Where the damage before them is cut off, these go with it.
    return [
        each
        for each in told
        if each.kind != kinds.UNREACHABLE_BATCHES or each.own_effect is not None
    ]


def _where_refused(finding: Finding) -> Finding:
    """Return a finding about a log that no broker starts on, and so no consumer reads."""
    if finding.kind not in _ANSWERS and finding.kind not in _BYTES:
        return finding
    is_consumers = finding.effect is Effect.CONSUMERS
    effect = Effect.GONE if is_consumers and finding.severity is Severity.ERROR else None
    return finding._replace(own_effect=effect, own_action="nothing: it does not start")


def _with_action(finding: Finding, view: LogView, start: BrokerStart) -> Finding:
    name = name_of(finding.path).removesuffix(SWAP_FILE_SUFFIX)
    if finding.kind in _ANSWERS:
        return _about_index(finding, name, view, start)
    if finding.kind in _BYTES:
        return _about_bytes(finding, name, view, start)
    if finding.kind == kinds.HEADER_TIMESTAMP and name in start.recovered:
        # The new time index has the header's: where it is late, it hides later segments.
        end = finding.end_offset if finding.own_effect is Effect.CONSUMERS else None
        action = f"it puts the header's timestamp into a new time index: {_LOOK_UPS}"
        return finding._replace(end_offset=end, own_effect=Effect.CONSUMERS, own_action=action)
    if finding.kind in _SNAPSHOTS and name not in start.files:
        return finding._replace(own_action="it deletes the file, and does not use it")
    begins_empty = start.log_start_offset == start.log_end_offset
    if finding.kind == kinds.LOG_START_OFFSET_ABOVE_LOG_END and begins_empty:
        where = f"at offset {start.log_start_offset}"
        return finding._replace(own_action=f"it deletes all segments, and begins anew {where}")
    if finding.kind == kinds.MISSING_LOG:
        action = "it deletes the index files"
        if not view.segments:
            action += f", and begins with an empty log at offset {start.log_start_offset}"
        return finding._replace(own_action=action)
    return finding


def _about_index(finding: Finding, name: str, view: LogView, start: BrokerStart) -> Finding:
    log = name.partition(".")[0] + LOG_FILE_SUFFIX
    if log not in start.files:
        return finding._replace(own_effect=None, own_action="it deletes the segment")
    if not start.files[log] and _sizes(view).get(log):
        action = "it empties the segment, and its indexes"
        return finding._replace(own_effect=None, own_action=action)
    if log in start.recovered:
        action = "it scans the segment, and builds its indexes again"
        return finding._replace(own_effect=None, own_action=action)
    if disk.is_dir(finding.path):
        when = "looks a time up" if finding.kind == kinds.DAMAGED_TIME_INDEX else "reads"
        action = f"it takes the log directory offline when somebody {when} here"
        return finding._replace(own_effect=Effect.OFFLINE_WHEN_READ, own_action=action)
    action = "it does not build the file again"
    if finding.kind == kinds.MISSING_TIME_INDEX:
        action = "it makes an empty file"
    if finding.own_effect is Effect.CONSUMERS:
        action += f": {_ANSWERS[finding.kind]}"
    return finding._replace(own_action=action)


def _about_bytes(finding: Finding, name: str, view: LogView, start: BrokerStart) -> Finding:
    sizes = _sizes(view)
    kept = start.files.get(name)
    if name not in sizes or (kept is None and start.cut_path is None):
        return finding  # nothing is known of it
    is_consumers = finding.effect is Effect.CONSUMERS
    if kept is not None and kept >= sizes[name]:
        comes_of_it = _BYTES[finding.kind]
        if finding.kind == kinds.SEGMENT_REST and is_consumers:
            comes_of_it = "consumers get an error here, and its cleaner gives up on the partition"
        return finding._replace(own_action=f"it leaves these bytes: {comes_of_it}")
    action = "it deletes the file"
    if kept is not None:
        action = f"it cuts the file off at byte {kept}"
        if start.deleted_segments and name_of(start.cut_path or "") == name:
            after = counted(start.deleted_segments, "segment")
            action += f", and deletes the {after} after it"
    gone = Effect.GONE if is_consumers and finding.own_effect is None else None
    return finding._replace(own_effect=gone, own_action=action)


def _sizes(view: LogView) -> dict[str, int]:
    return {
        file_name_prefix(each.base_offset) + LOG_FILE_SUFFIX: each.size_bytes
        for each in view.segments
    }
