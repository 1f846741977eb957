"""Findings about what lies in a partition directory, and what does not: two files alone are read.

They are the checkpoints that show what lies in remote storage, see `pylog.reading.log_view`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, CorruptRecordError, SegmentVanishedError
from pylog.files.file_names import LOG_FILE_SUFFIX, MANIFEST
from pylog.inspect.findings.finding import Finding, warning
from pylog.inspect.findings.severity import Severity
from pylog.locations import join
from pylog.reading.log_view import find_remote_offsets, remote_offsets_note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.reading.log_view import LogView

MISSING_LOG = "missing_log"
MISNAMED_LOG = "misnamed_log"
DAMAGED_MANIFEST = "damaged_manifest"
PENDING_COMMIT = "pending_commit"
REMOTE_OFFSETS = "remote_offsets"

_LISTED = 3


def directory_findings(view: LogView) -> Iterator[Finding]:
    """Yield what the names in a partition directory show, and where its log begins elsewhere.

    Raises
    ------
    LogDirectoryError
        The directory could not be listed.
    """
    yield from _missing_logs(view)
    for name in view.listing.misnamed_logs:
        message = f"file ends in {LOG_FILE_SUFFIX}, but is not named like a segment: it is not read"
        yield warning(MISNAMED_LOG, join(view.directory.path, name), message)
    pending = list(_pending_commit(view))
    yield from pending
    if any(each.code == DAMAGED_MANIFEST for each in pending):
        return  # where the log ends for readers, nobody knows
    remote = find_remote_offsets(view)
    if remote is not None:
        yield Finding(
            Severity.INFO,
            REMOTE_OFFSETS,
            view.directory.path,
            remote_offsets_note(remote),
            next_offset=remote.start_offset,
            end_offset=remote.end_offset,
        )


def _pending_commit(view: LogView) -> Iterator[Finding]:
    """Say so if a commit to the log is under way, or was interrupted."""
    path = join(view.directory.log_directory, MANIFEST)
    try:
        end, manifest = view.pending_end_offset, view.pending.manifest()
    except (CorruptCheckpointError, CorruptRecordError, SegmentVanishedError) as error:
        yield Finding(Severity.ERROR, DAMAGED_MANIFEST, path, str(error))
        return
    if end is None or manifest is None:
        return
    message = (
        f"a commit of {manifest.key} is under way or was interrupted; none of it is read: the log "
        f"ends at offset {end}. Whatever opens the log directory to write next completes it"
    )
    yield Finding(
        Severity.INFO,
        PENDING_COMMIT,
        path,
        message,
        next_offset=end,
    )


def _missing_logs(view: LogView) -> Iterator[Finding]:
    """Yield a finding if there are index files without their ``.log``.

    A broker that crashes while it deletes a segment leaves such files, and deletes them when it
    starts. Where no ``.log`` is left at all, it starts with an empty log: that is a loss.
    """
    bases = view.listing.base_offsets_without_log
    if not bases:
        return
    more = len(bases) - _LISTED
    listed = ", ".join(map(str, bases[:_LISTED])) + (f" and {more} more" if more > 0 else "")
    message = f"index files have no .log file beside them, at base offsets {listed}"
    severity = Severity.WARNING
    if not view.segments:
        severity = Severity.ERROR
        message += "; no .log file is left, so every record is lost"
    yield Finding(severity, MISSING_LOG, view.directory.path, message, next_offset=bases[0])
