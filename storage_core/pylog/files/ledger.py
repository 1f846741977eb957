"""``.pylog-ledger``: which jobs have been written, so that none is written twice.

UTF-8, one JSON object, replaced as a whole::

    {
      "version": 2,
      "archives": [{"name": ".pylog-ledger-5f0c…", "job_count": 64000, "checksum": 3405691582}],
      "jobs": [{"job_id": "nightly", "batch_id": null, "fingerprint": null, "commit_id": "5f0c…",
                "time_ms": 1795374000000, "record_count": 1000, "bookmark": "…"}]
    }

The newest entry is the last one. Nothing is forgotten:

* of a job with batches the newest batch is kept: Spark never repeats any but that, and batches are
  numbered upwards, so that one below it has been written, too;
* once there are more than `MOST_RECENT` entries, all but the newest `KEPT_RECENT` of them move to
  archives (`pylog.files.job_archive`). Of the newest batch with a bookmark the entry stays here.

A commit enters its job as follows. Nobody else may change the log directory meanwhile:

==== ================================================ =============================================
step what is done                                     a crash after it leaves
==== ================================================ =============================================
1    long bookmarks that a ledger of version 1 had    files that nobody names
     are written to files of their own, and synced
2    old entries are written to a new archive, with   the same
     those of archives that it replaces, and synced
3    the ledger is replaced, and synced               files that nobody names any more
4    archives and bookmarks that the ledger does not  some of them
     name are removed
==== ================================================ =============================================

What a crash leaves, step 4 of any later commit removes. Readers take no lock: one that finds a
file gone looks at the ledger again.

Version 1 had neither archives nor files of bookmarks. The next commit replaces it by version 2,
which an older pylog refuses.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pylog.errors import CorruptCheckpointError, LogDirectoryError, SegmentVanishedError
from pylog.files.bookmark_file import (
    Bookmark,
    as_bookmark,
    bookmark_to_json,
    read_bookmark,
    store_bookmark,
)
from pylog.files.checkpoint_file import MAX_TEXT_FILE_BYTES, read_text_file
from pylog.files.file_names import BOOKMARK_PREFIX, LEDGER
from pylog.files.job_archive import (
    WHAT_IS_AT_STAKE,
    JobArchive,
    WrittenJob,
    archive_jobs,
    archive_key,
    find_archived,
    fingerprint_digest,
    read_archive,
)
from pylog.files.looks import Looks
from pylog.files.staged_files import (
    JobKey,
    as_integer,
    as_job_key,
    as_list,
    as_object,
    as_text,
)
from pylog.files.storage import list_directory, open_file
from pylog.locations import join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pylog.files.durable_io import DurableIO

VERSION = 2
MOST_RECENT = 1_100
KEPT_RECENT = 100
MAX_FINGERPRINT_LENGTH = 4_000
_MOST_ENTRY_BYTES = 64 << 10
"""Of one entry; each of its texts has a limit."""
_OPTIONAL = ("fingerprint", "bookmark")
_ENTRY_FIELDS = ("job_id", "batch_id", "commit_id", "time_ms", "record_count", *_OPTIONAL)
_OWN_NAME = re.compile(rf"(?:{re.escape(LEDGER)}-|{re.escape(BOOKMARK_PREFIX)})[0-9a-f]{{32}}")

AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A job, or a micro-batch, that was written."""

    key: JobKey
    commit_id: str  # that of its manifest
    time_ms: int  # when the manifest was written
    record_count: int  # how many records were appended
    fingerprint: str | None = None
    bookmark: Bookmark | None = None  # how far the source has been read

    @property
    def archive_key(self) -> bytes:
        """What names the job, or the query, in archives."""
        return _archive_key(self.key)

    def archived(self) -> WrittenJob:
        """Return the fields of the job that the archive keeps for good."""
        return WrittenJob(
            self.archive_key,
            self.key.batch_id,
            fingerprint_digest(self.fingerprint),
            self.time_ms,
            self.record_count,
        )


class Ledger:
    """The content of a ledger; not changed after it is made."""

    __slots__ = ("_by_key", "archives", "entries", "log_directory", "size_bytes")

    def __init__(
        self,
        log_directory: str,
        entries: Iterable[LedgerEntry] = (),
        archives: Iterable[JobArchive] = (),
        size_bytes: int = 0,
    ) -> None:
        self.log_directory = log_directory
        self.archives = tuple(archives)
        self.size_bytes = size_bytes
        self._by_key: dict[bytes, LedgerEntry] = {}
        for each in entries:
            before = self._by_key.pop(each.archive_key, each)
            is_older = (each.key.batch_id or 0) < (before.key.batch_id or 0)
            self._by_key[each.archive_key] = before if is_older else each
        self.entries = tuple(self._by_key.values())

    def find(self, key: JobKey) -> WrittenJob | None:
        """Return what is known of a job; of one with batches the newest, if it is not below it."""
        name = _archive_key(key)
        entry = self._by_key.get(name)
        found = (
            find_archived(self.log_directory, self.archives, name)
            if entry is None
            else entry.archived()
        )
        is_older = found is not None and (found.batch_id or 0) < (key.batch_id or 0)
        return None if is_older else found

    def __contains__(self, key: JobKey) -> bool:
        """Return whether the ledger has a job: its records are committed."""
        return self.find(key) is not None

    def has_job(self, key: JobKey, fingerprint: str | None) -> bool:
        """Whether a job has been written; `ValueError` if what was written is something else."""
        found = self.find(key)
        if found is None or fingerprint is None or not found.has_fingerprint:
            return found is not None
        if found.fingerprint != fingerprint_digest(fingerprint):
            msg = (
                f"job {key.job_id!r} has been committed before, with {found.record_count} "
                "records from another source or to another topic, so nothing is written; give "
                "what has another source or topic another job id"
            )
            raise ValueError(msg)
        return True

    def newest(self, job_id: str, fingerprint: str | None = None) -> LedgerEntry | None:
        """Return the newest entry of a job that has batches; None if it has none.

        Of an archived one the fingerprint is ``fingerprint``, or a digest if it was another one.
        """
        name = archive_key(job_id, has_batches=True)
        entry = self._by_key.get(name)
        found = None if entry else find_archived(self.log_directory, self.archives, name)
        if found is None or found.batch_id is None:
            return entry
        was = found.fingerprint.hex() if found.has_fingerprint else None
        is_same = found.fingerprint == fingerprint_digest(fingerprint)
        return LedgerEntry(
            JobKey(job_id, found.batch_id),
            "",
            found.time_ms,
            found.record_count,
            fingerprint if is_same else was,
        )

    def ensure_room(self) -> None:
        """Raise `ValueError` if the ledger could have more bytes than `read_ledger` takes."""
        if self.size_bytes + _MOST_ENTRY_BYTES > MAX_TEXT_FILE_BYTES:
            msg = (
                f"the ledger of written jobs has {self.size_bytes} bytes, and takes at most "
                f"{MAX_TEXT_FILE_BYTES}: it keeps each job with a bookmark for good; write jobs "
                "with new ids to another log directory"
            )
            raise ValueError(msg)

    @property
    def file_names(self) -> set[str]:
        """The names of all files that belong to it."""
        bookmarks = (each.bookmark for each in self.entries)
        return {
            *(each.name for each in self.archives),
            *(each.name for each in bookmarks if each is not None and not isinstance(each, str)),
        }


def _archive_key(key: JobKey) -> bytes:
    return archive_key(key.job_id, has_batches=key.batch_id is not None)


def ledger_path(log_directory: str) -> str:
    """Return where the ledger of a log directory lies."""
    return join(log_directory, LEDGER)


def ask_ledger(log_directory: str, question: Callable[[Ledger], AnswerT]) -> AnswerT:
    """Return what ``question`` returns for the ledger, whose files a commit may replace meanwhile.

    Raises
    ------
    CorruptCheckpointError
        The ledger, or a file that it names, is damaged; or such a file is gone.
    """
    looks = Looks()
    while True:
        try:
            return question(read_ledger(log_directory))
        except SegmentVanishedError as error:
            name = os.path.basename(str(error.path))  # noqa: PTH119 - kept as text
            if name in read_ledger(log_directory).file_names:
                reason = f"file is gone that {LEDGER} names; {_way_out(name)}"
                raise CorruptCheckpointError(reason, error.path) from error
        reason = "commits come and go faster than the ledger can be looked at"
        looks.again(LogDirectoryError(reason, ledger_path(log_directory)))


def ensure_intact(log_directory: str) -> None:
    """Read the ledger and all files that it names; raise what `ask_ledger` does."""

    def read(ledger: Ledger) -> None:
        for archive in ledger.archives:
            read_archive(log_directory, archive)
        for entry in ledger.entries:
            read_bookmark(log_directory, entry.bookmark)

    ask_ledger(log_directory, read)


def copy_ledger(io: DurableIO, source: str, target: str) -> None:
    """Copy a ledger, if there is one, to a log directory that has none.

    A file that is gone stays named, so that no job counts as not written.
    """
    ledger = read_ledger(source)
    if not ledger.entries and not ledger.archives:
        return
    for name in ledger.file_names:
        with suppress(SegmentVanishedError), open_file(join(source, name)) as file:
            io.write_file(join(target, name), file.read_at(0, file.size()), sync=True)
    io.sync_directory(target)
    io.write_atomically(ledger_path(target), _to_text(ledger).encode())


def _way_out(name: str) -> str:
    if name.startswith(BOOKMARK_PREFIX):
        return "restore it, or let the job that it is the bookmark of start over"
    return WHAT_IS_AT_STAKE


def enter_in_ledger(io: DurableIO, log_directory: str, entry: LedgerEntry) -> None:
    """Enter a job, and return when that is on the disk."""
    before = read_ledger(log_directory)
    ledger = Ledger(log_directory, (*before.entries, entry), before.archives)
    entries = [
        replace(each, bookmark=store_bookmark(io, log_directory, each.bookmark))
        for each in ledger.entries
    ]
    ledger = Ledger(log_directory, entries, before.archives)
    recent = [each for each in ledger.entries if each.bookmark is None]
    if len(recent) > MOST_RECENT:
        old = [each.archived() for each in recent[:-KEPT_RECENT]]
        names = {each.key for each in old}
        archives = archive_jobs(io, log_directory, ledger.archives, old)
        kept = [each for each in ledger.entries if each.archive_key not in names]
        ledger = Ledger(log_directory, kept, archives)
    io.write_atomically(ledger_path(log_directory), _to_text(ledger).encode())
    _remove_others(io, ledger)


def _to_text(ledger: Ledger) -> str:
    archives = json.dumps([each._asdict() for each in ledger.archives])
    jobs = ",\n".join(json.dumps(_entry_to_json(each)) for each in ledger.entries)
    return f'{{"version": {VERSION}, "archives": {archives}, "jobs": [\n{jobs}\n]}}\n'


def _remove_others(io: DurableIO, ledger: Ledger) -> None:
    """Remove archives and bookmarks that the ledger does not name."""
    names = ledger.file_names
    for each in list_directory(ledger.log_directory):
        if _OWN_NAME.fullmatch(each.name) and each.name not in names:
            io.remove(each.path, missing_ok=True)


def read_ledger(log_directory: str) -> Ledger:
    """Return the ledger of a log directory, an empty one if there is none."""
    path = ledger_path(log_directory)
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return Ledger(log_directory)
    try:
        content = json.loads(text)
        version = content.get("version") if isinstance(content, dict) else None
        as_integer(version, "version", 1, VERSION)
        names = ("archives",) if version != 1 else ()
        fields = as_object(content, ("version", *names, "jobs"), "ledger")
        return Ledger(
            log_directory,
            map(_parse_entry, as_list(fields["jobs"], "jobs")),
            map(JobArchive.from_json, as_list(fields.get("archives", []), "archives")),
            len(text),
        )
    except (ValueError, RecursionError) as error:
        reason = (
            f"ledger of written jobs is malformed: {error}; restore the file: without it a job "
            "that runs again would be written twice"
        )
        raise CorruptCheckpointError(reason, path) from error


def _entry_to_json(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "job_id": entry.key.job_id,
        "batch_id": entry.key.batch_id,
        "fingerprint": entry.fingerprint,
        "commit_id": entry.commit_id,
        "time_ms": entry.time_ms,
        "record_count": entry.record_count,
        **bookmark_to_json(entry.bookmark),
    }


def _parse_entry(content: object) -> LedgerEntry:
    fields = as_object(content, _ENTRY_FIELDS, "ledger entry", optional=_OPTIONAL)
    fingerprint = fields["fingerprint"]
    return LedgerEntry(
        as_job_key(fields["job_id"], fields["batch_id"]),
        as_text(fields["commit_id"], "commit_id"),
        as_integer(fields["time_ms"], "time_ms", 0),
        as_integer(fields["record_count"], "record_count", 0),
        None if fingerprint is None else as_text(fingerprint, "fingerprint"),
        as_bookmark(fields["bookmark"]),
    )
