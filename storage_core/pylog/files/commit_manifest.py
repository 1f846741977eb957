"""``.pylog-manifest``: what a commit is about to append, written before it changes any log.

UTF-8, one JSON object, replaced as a whole::

    {
      "version": 2,
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
the one that is there first. It counts until the ledger has its job.

In version 1 a bookmark was a text of any length (`pylog.files.bookmark_file`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.bookmark_file import Bookmark, as_bookmark, bookmark_to_json
from pylog.files.checkpoint_file import read_text_file
from pylog.files.file_names import MANIFEST
from pylog.files.partition_metadata import format_uuid, parse_uuid
from pylog.files.staged_files import (
    JobKey,
    StagedFile,
    as_integer,
    as_job_key,
    as_list,
    as_object,
    as_text,
    as_topic_partition,
)
from pylog.locations import join

if TYPE_CHECKING:
    import uuid

    from pylog.files.durable_io import DurableIO
    from pylog.model import TopicPartition

MANIFEST_VERSION = 2
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
_OPTIONAL = ("fingerprint", "bookmark")
"""Of files that were written before there were any, and of jobs without one."""
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
    bookmark: Bookmark | None = None

    @property
    def files(self) -> list[StagedFile]:
        """All staged files."""
        return [file.staged for each in self.partitions for file in each.files]


def manifest_path(log_directory: str) -> str:
    """Return where the manifest of a log directory lies."""
    return join(log_directory, MANIFEST)


def write_manifest(io: DurableIO, log_directory: str, manifest: Manifest) -> None:
    """Publish a manifest, and return when it is on the disk."""
    content = {
        "version": MANIFEST_VERSION,
        "id": manifest.commit_id,
        "job_id": manifest.key.job_id,
        "batch_id": manifest.key.batch_id,
        "fingerprint": manifest.fingerprint,
        **bookmark_to_json(manifest.bookmark),
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
    if isinstance(content, dict):
        as_integer(content.get("version"), "version", 1, MANIFEST_VERSION)
    fields = as_object(content, _FIELDS, "manifest", optional=_OPTIONAL)
    fingerprint = fields["fingerprint"]
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
        None if fingerprint is None else as_text(fingerprint, "fingerprint"),
        as_bookmark(fields["bookmark"]),
    )


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
