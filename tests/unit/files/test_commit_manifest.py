"""The manifest of a commit: written and read back; and what is no manifest is an error."""

from __future__ import annotations

import copy
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from pylog.errors import CorruptCheckpointError
from pylog.files.commit_manifest import (
    AnnouncedFile,
    AnnouncedPartition,
    Manifest,
    NewTopic,
    read_manifest,
    write_manifest,
)
from pylog.files.durable_io import DurableIO
from pylog.files.file_names import MANIFEST
from pylog.files.staged_files import JobKey, StagedFile, staged_file_name
from pylog.model import TopicPartition

if TYPE_CHECKING:
    from pathlib import Path

KEY = JobKey("nightly", None)
PLACE = TopicPartition("orders", 0)


def a_manifest() -> Manifest:
    staged = StagedFile(staged_file_name(KEY, "0123abcd", 0), PLACE, 400, 4, 40, 1, 2**32 - 1, 9)
    return Manifest(
        "a" * 32,
        KEY,
        1_700_000_000_000,
        (NewTopic("new", uuid.UUID(int=2**100), 3, {"retention.ms": "-1"}),),
        (AnnouncedPartition(PLACE, 1200, 5, (AnnouncedFile(staged, becomes_segment=True),), 2),),
    )


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_manifest(str(tmp_path)) is None
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    assert read_manifest(str(tmp_path)) == a_manifest()


def test_the_bytes_on_disk_are_those_of_the_format(tmp_path: Path) -> None:
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    content = json.loads((tmp_path / ".pylog-manifest").read_text())
    assert content["version"] == 2
    assert content["id"] == "a" * 32
    [partition] = content["partitions"]
    [file] = partition.pop("files")
    assert partition == {
        "topic": "orders",
        "partition": 0,
        "base_offset": 1200,
        "leader_epoch": 5,
        "skipped_batches": 2,
    }
    assert file["name"].endswith("-0123abcd-0.batches")
    assert file["becomes_segment"] is True


def at(content: object, path: str) -> tuple[Any, Any]:
    *way, last = [int(each) if each.isdecimal() else each for each in path.split("/")]
    place: Any = content
    for each in way:
        place = place[each]
    return place, last


FILE = "partitions/0/files/0"
WRONG: dict[str, tuple[str, Any]] = {
    "another version": ("version", 3),
    "an id that is no id": ("id", "../../etc"),
    "a job without a name": ("job_id", ""),
    "a batch that is no number": ("batch_id", "7"),
    "a time below 0": ("time_ms", -1),
    "topics that are no list": ("new_topics", {}),
    "a topic with a path for a name": ("new_topics/0/topic", "../x"),
    "a topic id that is none": ("new_topics/0/topic_id", "x"),
    "too many partitions": ("new_topics/0/partitions", 10**9),
    "a property that is no text": ("new_topics/0/properties", {"retention.ms": 1}),
    "a partition below 0": ("partitions/0/partition", -1),
    "a partition of a topic that is none": ("partitions/0/topic", "a/b"),
    "an offset below 0": ("partitions/0/base_offset", -1),
    "an offset beyond all": ("partitions/0/base_offset", 2**63 - 1),
    "an offset that is no number": ("partitions/0/base_offset", True),
    "an epoch below 0": ("partitions/0/leader_epoch", -1),
    "more batches than there are": ("partitions/0/skipped_batches", 5),
    "no files": ("partitions/0/files", []),
    "a file elsewhere": (f"{FILE}/name", "../.pylog-staged-x.batches"),
    "another file of the directory": (f"{FILE}/name", "orders-0/00000000000000000000.log"),
    "a file without bytes": (f"{FILE}/size_bytes", 0),
    "a file larger than a segment": (f"{FILE}/size_bytes", 2**31),
    "a checksum that is none": (f"{FILE}/first_crc", 2**32),
    "a kind that is none": (f"{FILE}/becomes_segment", 1),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=list(WRONG))
def test_what_it_cannot_hold_is_an_error_that_names_the_file(
    tmp_path: Path, wrong: tuple[str, Any]
) -> None:
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    path = tmp_path / MANIFEST
    content = json.loads(path.read_text())
    place, field = at(content, wrong[0])
    place[field] = wrong[1]
    path.write_text(json.dumps(content))
    with pytest.raises(CorruptCheckpointError, match="manifest of a commit is malformed") as raised:
        read_manifest(str(tmp_path))
    assert raised.value.path == str(path)


@pytest.mark.parametrize("where", ["new_topics", "partitions", "partitions/0/files"])
def test_a_list_that_is_none_is_named(tmp_path: Path, where: str) -> None:
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    path = tmp_path / MANIFEST
    content = json.loads(path.read_text())
    place, field = at(content, where)
    place[field] = {"a": 1}
    path.write_text(json.dumps(content))
    with pytest.raises(CorruptCheckpointError, match=f"{field} is of type dict, expected a list"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("where", ["", "partitions/0", FILE, "new_topics/0"])
def test_a_field_that_is_missing_or_not_known_is_an_error(tmp_path: Path, where: str) -> None:
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    path = tmp_path / MANIFEST
    whole = json.loads(path.read_text())
    fields = at(whole, f"{where}/x".lstrip("/"))[0]
    for field in [*fields, "unknown"]:
        if field in ("fingerprint", "bookmark"):
            continue  # manifests that were written before there was one lack it
        content = copy.deepcopy(whole)
        place = at(content, f"{where}/x".lstrip("/"))[0]
        if field in place:
            del place[field]
        else:
            place[field] = 1
        path.write_text(json.dumps(content))
        with pytest.raises(CorruptCheckpointError):
            read_manifest(str(tmp_path))


@pytest.mark.parametrize("twice", ["partitions", "partitions/0/files"])
def test_nothing_is_announced_twice(tmp_path: Path, twice: str) -> None:
    write_manifest(DurableIO(), str(tmp_path), a_manifest())
    path = tmp_path / MANIFEST
    content = json.loads(path.read_text())
    place, field = at(content, twice)
    place[field] *= 2
    path.write_text(json.dumps(content))
    with pytest.raises(CorruptCheckpointError, match="announced twice"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"version": 1}'])
def test_text_that_is_no_manifest_is_an_error(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(CorruptCheckpointError):
        read_manifest(str(tmp_path))
