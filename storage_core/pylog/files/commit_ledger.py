"""``.pylog-ledger``: which jobs have been written, so that none is written twice.

UTF-8, one JSON object, replaced as a whole::

    {
      "version": 1,
      "jobs": [{"job_id": "nightly", "batch_id": null, "commit_id": "5f0c…",
                "time_ms": 1795374000000, "record_count": 1000}]
    }

The newest entry is the last one. What is kept, counted from the newest entry on:

* of each streaming query the newest `KEPT_BATCHES` batches. Spark never repeats any but the newest,
  and batches are numbered upwards, so that one below the oldest that is kept has been written, too;
* jobs that write once, and queries, for `KEPT_MS` after their last commit, and the newest
  `KEPT_JOBS` of them for longer; never more than `MOST_JOBS`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file
from pylog.files.file_names import LEDGER
from pylog.files.staged_files import JobKey, as_integer, as_job_key, as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pylog.files.durable_io import DurableIO

LEDGER_VERSION = 1

KEPT_BATCHES = 100
KEPT_JOBS = 1_000
MOST_JOBS = 10_000
KEPT_MS = 90 * 24 * 3_600_000

_ENTRY_FIELDS = ("job_id", "batch_id", "commit_id", "time_ms", "record_count")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A job, or a micro-batch, that was written.

    Attributes
    ----------
    key
        Its key.
    commit_id
        That of its manifest.
    time_ms
        When the manifest was written.
    record_count
        How many records were appended.
    """

    key: JobKey
    commit_id: str
    time_ms: int
    record_count: int


class Ledger:
    """The content of a ledger; not changed after it is made.

    Attributes
    ----------
    entries
        The newest one last.
    """

    __slots__ = ("_by_key", "_commit_ids", "_oldest_batches", "entries")

    def __init__(self, entries: Iterable[LedgerEntry] = ()) -> None:
        self.entries = tuple(entries)
        self._by_key = {each.key: each for each in self.entries}
        self._commit_ids = {each.commit_id for each in self.entries}
        self._oldest_batches: dict[str, int] = {}
        for job_id, batch_id in self._by_key:
            if batch_id is not None:
                oldest = self._oldest_batches.get(job_id, batch_id)
                self._oldest_batches[job_id] = min(oldest, batch_id)

    def __contains__(self, key: JobKey) -> bool:
        """Whether a job has been written."""
        if key in self._by_key:
            return True
        return key.batch_id is not None and key.batch_id < self._oldest_batches.get(key.job_id, 0)

    def has_commit(self, commit_id: str) -> bool:
        """Whether the commit of a manifest is complete."""
        return commit_id in self._commit_ids

    def find(self, key: JobKey) -> LedgerEntry | None:
        """Return the entry of a job; None if it has none, or none any more."""
        return self._by_key.get(key)

    def with_entry(self, entry: LedgerEntry) -> Ledger:
        """Return a ledger that has one more, trimmed as the module says."""
        entries = [*(each for each in self.entries if each.key != entry.key), entry]
        batches: dict[str, int] = {}
        jobs: dict[tuple[str, bool], None] = {}
        kept = []
        for each in reversed(entries):
            is_stream = each.key.batch_id is not None
            job = each.key.job_id, is_stream
            if job not in jobs:
                is_recent = each.time_ms >= entry.time_ms - KEPT_MS
                if len(jobs) >= (MOST_JOBS if is_recent else KEPT_JOBS):
                    continue
                jobs[job] = None
            if is_stream:
                batches[each.key.job_id] = batches.get(each.key.job_id, 0) + 1
                if batches[each.key.job_id] > KEPT_BATCHES:
                    continue
            kept.append(each)
        return Ledger(reversed(kept))


def ledger_path(log_directory: str) -> str:
    """Return where the ledger of a log directory lies."""
    return os.path.join(log_directory, LEDGER)  # noqa: PTH118 - kept as text


def write_ledger(io: DurableIO, log_directory: str, ledger: Ledger) -> None:
    """Replace the ledger, and return when it is on the disk.

    Raises
    ------
    KafkaStorageError
        It could not be written.
    """
    lines = ",\n".join(
        json.dumps(
            {
                "job_id": each.key.job_id,
                "batch_id": each.key.batch_id,
                "commit_id": each.commit_id,
                "time_ms": each.time_ms,
                "record_count": each.record_count,
            }
        )
        for each in ledger.entries
    )
    text = f'{{"version": {LEDGER_VERSION}, "jobs": [\n{lines}\n]}}\n'
    io.write_atomically(ledger_path(log_directory), text.encode())


def read_ledger(log_directory: str) -> Ledger:
    """Return the ledger of a log directory, an empty one if there is none.

    Raises
    ------
    CorruptCheckpointError
        It does not follow the format.
    LogDirectoryError
        It cannot be read.
    """
    path = ledger_path(log_directory)
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return Ledger()
    try:
        content = as_object(json.loads(text), ("version", "jobs"), "ledger")
        as_integer(content["version"], "version", LEDGER_VERSION, LEDGER_VERSION)
        return Ledger(_parse_entry(each) for each in as_list(content["jobs"], "jobs"))
    except (ValueError, RecursionError) as error:
        reason = (
            f"ledger of written jobs is malformed: {error}; restore the file: without it a job "
            "that runs again would be written twice"
        )
        raise CorruptCheckpointError(reason, path) from error


def _parse_entry(content: object) -> LedgerEntry:
    fields = as_object(content, _ENTRY_FIELDS, "ledger entry")
    commit_id = fields["commit_id"]
    if not isinstance(commit_id, str):
        msg = f"commit_id is {commit_id!r}, expected text"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    return LedgerEntry(
        as_job_key(fields["job_id"], fields["batch_id"]),
        commit_id,
        as_integer(fields["time_ms"], "time_ms", 0),
        as_integer(fields["record_count"], "record_count", 0),
    )
