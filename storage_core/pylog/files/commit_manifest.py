"""``.pylog-manifest``: what a commit is about to append, written before it changes any log.

UTF-8, one JSON object, replaced as a whole::

    {
      "version": 1,
      "id": "5f0c…",                       drawn for this commit, 32 hex digits
      "job_id": "nightly", "batch_id": null,
      "fingerprint": null,                 of what the job was to write, see `WriteJob`
      "bookmark": "…",                     how far its source has been read; may be left out
      "time_ms": 1795374000000,            when it was written
      "new_topics": [{"topic": "orders", "topic_id": "7bGS…", "partitions": 3, "properties": {}}],
      "partitions": [
        {"topic": "orders", "partition": 0,
         "base_offset": 1200,              of the first batch that is to be appended
         "leader_epoch": 0,                written into the batches
         "skipped_batches": 0,             how many of the files' batches the log had before
         "files": [{"name": ".pylog-staged-…-0.batches", "becomes_segment": true, …}]}
      ]
    }

There is at most one in a log directory: whoever commits holds the directory's lock, and completes
the one that is there first. It counts until the ledger has its id.

``.pylog-ledger``: which jobs have been written, so that none is written twice.

UTF-8, one JSON object, replaced as a whole::

    {
      "version": 1,
      "jobs": [{"job_id": "nightly", "batch_id": null, "fingerprint": null, "commit_id": "5f0c…",
                "time_ms": 1795374000000, "record_count": 1000, "bookmark": "…"}]
    }

The newest entry is the last one. What is kept, counted from the newest entry on:

* of each streaming query the newest `KEPT_BATCHES` batches. Spark never repeats any but the newest,
  and batches are numbered upwards, so that one below the oldest that is kept has been written, too;
* jobs that write once, and queries, for `KEPT_MS` after their last commit, and the newest
  `KEPT_JOBS` of them for longer; never more than `MOST_JOBS`;
* of a job with bookmarks the newest batch, for good: without it the next run would start over.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.checkpoint_file import read_text_file
from pylog.files.file_names import LEDGER, MANIFEST
from pylog.files.partition_metadata import format_uuid, parse_uuid
from pylog.files.staged_files import (
    JobKey,
    StagedFile,
    as_integer,
    as_job_key,
    as_list,
    as_object,
    as_topic_partition,
)

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Mapping

    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

MANIFEST_VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}")
_FIELDS = (
    "version",
    "id",
    "job_id",
    "batch_id",
    "fingerprint",
    "bookmark",
    "time_ms",
    "new_topics",
    "partitions",
)
_OPTIONAL = {"fingerprint": None, "bookmark": None}
"""What files have that were written before there were any, and jobs without one."""
_TOPIC_FIELDS = ("topic", "topic_id", "partitions", "properties")
_PARTITION_FIELDS = (
    "topic",
    "partition",
    "base_offset",
    "leader_epoch",
    "skipped_batches",
    "files",
)
_MAX_PARTITIONS = 100_000

LEDGER_VERSION = 1
KEPT_BATCHES = 100
KEPT_JOBS = 1_000
MOST_JOBS = 10_000
KEPT_MS = 90 * 24 * 3_600_000
MAX_BOOKMARK_LENGTH = 4 << 20
MOST_BOOKMARK_CHARACTERS = 32 << 20
"""Of all bookmarks together: a ledger has to stay one that `read_ledger` takes."""
_ENTRY_FIELDS = (
    "job_id",
    "batch_id",
    "fingerprint",
    "bookmark",
    "commit_id",
    "time_ms",
    "record_count",
)


@dataclass(frozen=True, slots=True)
class AnnouncedFile:
    """A staged file of a manifest."""

    staged: StagedFile
    becomes_segment: bool  # whether it is renamed to a segment; otherwise its batches are appended


@dataclass(frozen=True, slots=True)
class AnnouncedPartition:
    """What a manifest announces for one partition."""

    topic_partition: TopicPartition
    base_offset: int  # of the first batch that is not skipped
    leader_epoch: int  # of all of its batches
    files: tuple[AnnouncedFile, ...]  # one after the other
    # How many of their first batches were in the log when this was written.
    skipped_batches: int = 0

    @property
    def record_count(self) -> int:
        """Records of all files."""
        return sum(each.staged.record_count for each in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(each.staged.size_bytes for each in self.files)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that the commit creates; its partitions are 0 to ``partitions`` - 1."""

    topic: str
    topic_id: uuid.UUID
    partitions: int
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One commit that is under way."""

    commit_id: str  # 32 hex digits
    key: JobKey
    time_ms: int  # when it was written; batches of LogAppendTime topics have this time
    # new_topics, partitions: What is to be made and appended.
    new_topics: tuple[NewTopic, ...]
    partitions: tuple[AnnouncedPartition, ...]
    fingerprint: str | None = None
    bookmark: str | None = None

    @property
    def files(self) -> list[StagedFile]:
        """All staged files."""
        return [file.staged for each in self.partitions for file in each.files]


def manifest_path(log_directory: str) -> str:
    """Return where the manifest of a log directory lies."""
    return os.path.join(log_directory, MANIFEST)  # noqa: PTH118 - kept as text


def write_manifest(io: DurableIO, log_directory: str, manifest: Manifest) -> None:
    """Publish a manifest, and return when it is on the disk."""
    content = {
        "version": MANIFEST_VERSION,
        "id": manifest.commit_id,
        "job_id": manifest.key.job_id,
        "batch_id": manifest.key.batch_id,
        "fingerprint": manifest.fingerprint,
        **_bookmark_to_json(manifest.bookmark),
        "time_ms": manifest.time_ms,
        "new_topics": [
            {
                "topic": each.topic,
                "topic_id": format_uuid(each.topic_id),
                "partitions": each.partitions,
                "properties": each.properties,
            }
            for each in manifest.new_topics
        ],
        "partitions": [_partition_to_json(each) for each in manifest.partitions],
    }
    data = (json.dumps(content, indent=1) + "\n").encode()
    io.write_atomically(manifest_path(log_directory), data)


def _bookmark_to_json(bookmark: str | None) -> dict[str, str]:
    """Return the key of a bookmark; none without one, so that older readers know every key."""
    return {} if bookmark is None else {"bookmark": bookmark}


def _partition_to_json(announced: AnnouncedPartition) -> dict[str, Any]:
    return {
        "topic": announced.topic_partition.topic,
        "partition": announced.topic_partition.partition,
        "base_offset": announced.base_offset,
        "leader_epoch": announced.leader_epoch,
        "skipped_batches": announced.skipped_batches,
        "files": [
            {**each.staged.to_json(), "becomes_segment": each.becomes_segment}
            for each in announced.files
        ],
    }


def read_manifest(log_directory: str) -> Manifest | None:
    """Return the manifest of a log directory, None if there is none."""
    path = manifest_path(log_directory)
    try:
        text = read_text_file(path)
    except SegmentVanishedError:
        return None
    try:
        return _parse(json.loads(text))
    except (ValueError, RecursionError) as error:
        reason = (
            f"manifest of a commit is malformed: {error}; the records that it announces may be in "
            "the logs in part: restore the file, or move it away to give the commit up"
        )
        raise CorruptCheckpointError(reason, path) from error


def _parse(content: object) -> Manifest:
    if isinstance(content, dict) and content.get("version") != MANIFEST_VERSION:
        msg = f"version is {content.get('version')!r}, expected {MANIFEST_VERSION}"
        raise ValueError(msg)
    fields = as_object(_completed(content), _FIELDS, "manifest")
    commit_id = fields["id"]
    if not isinstance(commit_id, str) or _ID.fullmatch(commit_id) is None:
        msg = f"id is {commit_id!r}, expected 32 hex digits"
        raise ValueError(msg)
    partitions = tuple(
        _parse_partition(each) for each in as_list(fields["partitions"], "partitions")
    )
    if len({each.topic_partition for each in partitions}) < len(partitions):
        msg = "a partition is announced twice"
        raise ValueError(msg)
    names = [file.staged.name for each in partitions for file in each.files]
    if len(set(names)) < len(names):
        msg = "a staged file is announced twice"
        raise ValueError(msg)
    return Manifest(
        commit_id,
        as_job_key(fields["job_id"], fields["batch_id"]),
        as_integer(fields["time_ms"], "time_ms", 0),
        tuple(_parse_topic(each) for each in as_list(fields["new_topics"], "new_topics")),
        partitions,
        _as_text(fields, "fingerprint"),
        _as_text(fields, "bookmark"),
    )


def _completed(content: object) -> object:
    return {**_OPTIONAL, **content} if isinstance(content, dict) else content


def _as_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields[name]
    if value is not None and not isinstance(value, str):
        msg = f"{name} is {value!r}, expected text or null"
        raise ValueError(msg)
    return value


def _parse_topic(content: object) -> NewTopic:
    fields = as_object(content, _TOPIC_FIELDS, "new topic")
    properties = fields["properties"]
    if not isinstance(properties, dict) or not all(
        isinstance(value, str) for value in properties.values()
    ):
        msg = f"properties of topic {fields['topic']!r} are not an object of texts"
        raise ValueError(msg)
    topic = as_topic_partition(fields["topic"], 0).topic
    count = as_integer(fields["partitions"], "partitions", 1, _MAX_PARTITIONS)
    return NewTopic(topic, parse_uuid(str(fields["topic_id"])), count, properties)


def _parse_partition(content: object) -> AnnouncedPartition:
    fields = as_object(content, _PARTITION_FIELDS, "partition")
    place = as_topic_partition(fields["topic"], fields["partition"])
    files = tuple(_parse_file(each, place) for each in as_list(fields["files"], "files"))
    if not files:
        msg = f"no file is announced for {place}"
        raise ValueError(msg)
    batches = sum(each.staged.batch_count for each in files)
    announced = AnnouncedPartition(
        place,
        as_integer(fields["base_offset"], "base_offset", 0),
        as_integer(fields["leader_epoch"], "leader_epoch", 0, 2**31 - 1),
        files,
        as_integer(fields["skipped_batches"], "skipped_batches", 0, batches),
    )
    as_integer(announced.base_offset + announced.record_count, "end offset", 1)
    return announced


def _parse_file(content: object, place: TopicPartition) -> AnnouncedFile:
    if not isinstance(content, dict) or not isinstance(content.get("becomes_segment"), bool):
        msg = f"staged file {content!r} does not say whether it becomes a segment"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    rest = {name: value for name, value in content.items() if name != "becomes_segment"}
    return AnnouncedFile(StagedFile.from_json(rest, place), content["becomes_segment"])


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A job, or a micro-batch, that was written."""

    key: JobKey
    commit_id: str  # that of its manifest
    time_ms: int  # when the manifest was written
    record_count: int  # how many records were appended
    fingerprint: str | None = None
    bookmark: str | None = None  # how far the source has been read


class Ledger:
    """The content of a ledger; not changed after it is made."""

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

    def has_job(self, key: JobKey, fingerprint: str | None) -> bool:
        """Whether a job has been written; `ValueError` if what was written is something else."""
        entry = self.find(key)
        was = None if entry is None else entry.fingerprint
        if entry is not None and None not in (fingerprint, was) and fingerprint != was:
            msg = (
                f"job {key.job_id!r} has been committed before, with {entry.record_count} "
                "records from another source or to another topic, so nothing is written; give "
                "what has another source or topic another job id"
            )
            raise ValueError(msg)
        return key in self

    def has_commit(self, commit_id: str) -> bool:
        """Whether the commit of a manifest is complete."""
        return commit_id in self._commit_ids

    def find(self, key: JobKey) -> LedgerEntry | None:
        """Return the entry of a job; None if it has none, or none any more."""
        return self._by_key.get(key)

    def newest(self, job_id: str) -> LedgerEntry | None:
        """Return the newest entry of a job that has batches; None if it has none."""
        return next(
            (
                each
                for each in reversed(self.entries)
                if each.key.job_id == job_id and each.key.batch_id is not None
            ),
            None,
        )

    def ensure_room_for(self, key: JobKey, bookmark: str | None) -> None:
        """Raise `ValueError` if the bookmarks would be too long together."""
        others = (each for each in self.entries if each.key.job_id != key.job_id)
        length = sum(len(each.bookmark or "") for each in others) + len(bookmark or "")
        if bookmark is not None and length > MOST_BOOKMARK_CHARACTERS:
            msg = (
                f"the bookmarks of all jobs would have {length} characters, and the ledger takes "
                f"{MOST_BOOKMARK_CHARACTERS}: give jobs a shorter lag"
            )
            raise ValueError(msg)

    def with_entry(self, entry: LedgerEntry) -> Ledger:
        """Return a ledger that has one more, trimmed as the module says."""
        entries = [*(each for each in self.entries if each.key != entry.key), entry]
        batches: dict[str, int] = {}
        jobs: dict[tuple[str, bool], None] = {}
        marked: set[str] = set()  # jobs whose newest bookmark is kept
        kept = []
        for each in reversed(entries):
            is_stream = each.key.batch_id is not None
            job = each.key.job_id, is_stream
            if is_stream and each.key.job_id in marked:
                continue
            if each.bookmark is not None:
                marked.add(each.key.job_id)
                kept.append(each)
                continue
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
    """Replace the ledger, and return when it is on the disk."""
    lines = ",\n".join(
        json.dumps(
            {
                "job_id": each.key.job_id,
                "batch_id": each.key.batch_id,
                "fingerprint": each.fingerprint,
                "commit_id": each.commit_id,
                "time_ms": each.time_ms,
                "record_count": each.record_count,
                **_bookmark_to_json(each.bookmark),
            }
        )
        for each in ledger.entries
    )
    text = f'{{"version": {LEDGER_VERSION}, "jobs": [\n{lines}\n]}}\n'
    io.write_atomically(ledger_path(log_directory), text.encode())


def read_ledger(log_directory: str) -> Ledger:
    """Return the ledger of a log directory, an empty one if there is none."""
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
    fields = as_object(_completed(content), _ENTRY_FIELDS, "ledger entry")
    commit_id = fields["commit_id"]
    if not isinstance(commit_id, str):
        msg = f"commit_id is {commit_id!r}, expected text"
        raise ValueError(msg)  # noqa: TRY004 - as every other wrong value
    return LedgerEntry(
        as_job_key(fields["job_id"], fields["batch_id"]),
        commit_id,
        as_integer(fields["time_ms"], "time_ms", 0),
        as_integer(fields["record_count"], "record_count", 0),
        _as_text(fields, "fingerprint"),
        _as_text(fields, "bookmark"),
    )
