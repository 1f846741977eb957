from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.durable_io import DurableIO
from pylog.files.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from pylog.files.partition_metadata import parse_uuid
from tests.support.recording_io import RecordingIO

if TYPE_CHECKING:
    from pathlib import Path

KRAFT_TEXT = """#
#Sat Nov 21 00:12:06 UTC 2026
node.id=1
directory.id=Igo74ZAZCxWJ1lxdTzs-vQ
version=1
cluster.id=qM6VaBEQIIV4rb6KS_2csw
"""
ZOOKEEPER_TEXT = """#
#Sat Nov 21 00:24:04 UTC 2026
broker.id=7
version=0
cluster.id=A8Y4xi7rRgiNAOrSvQxONw
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "meta.properties"
    path.write_bytes(text.encode("iso-8859-1"))
    return path


def test_kraft_file_of_a_real_broker_is_read(tmp_path: Path) -> None:
    assert read_meta_properties(write(tmp_path, KRAFT_TEXT)) == MetaProperties(
        version=1,
        node_id=1,
        cluster_id="qM6VaBEQIIV4rb6KS_2csw",
        directory_id=parse_uuid("Igo74ZAZCxWJ1lxdTzs-vQ"),
    )


def test_zookeeper_file_gives_its_broker_id_as_node_id(tmp_path: Path) -> None:
    expected = MetaProperties(0, 7, "A8Y4xi7rRgiNAOrSvQxONw", None)
    assert read_meta_properties(write(tmp_path, ZOOKEEPER_TEXT)) == expected


@pytest.mark.parametrize("text", ["", "#\n", "unknown=1\n"])
def test_missing_version_is_zero_and_requires_nothing(tmp_path: Path, text: str) -> None:
    assert read_meta_properties(write(tmp_path, text)) == MetaProperties(0, None, None, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version=3\n", "version 3 is unknown, expected 0, 1 or 2"),
        ("version=one\n", "'one' is not an integer"),
        ("version=1\ncluster.id=c\n", "version 1 requires node.id, which is missing"),
        ("version=1\nnode.id=1\n", "version 1 requires cluster.id, which is missing"),
        ("version=1\nnode.id=x\ncluster.id=c", "'x' is not an integer"),
        ("directory.id=zzz\n", "'zzz' is not a UUID of 22 base64url characters"),
        ("cluster.id=\\u12\n", "without four hexadecimal digits"),
    ],
)
def test_malformed_file_is_corrupt(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(CorruptCheckpointError, match=reason) as caught:
        read_meta_properties(path)
    assert caught.value.path == path


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SegmentVanishedError):
        read_meta_properties(tmp_path / "meta.properties")


KRAFT = MetaProperties(1, 1, "qM6VaBEQIIV4rb6KS_2csw", parse_uuid("Igo74ZAZCxWJ1lxdTzs-vQ"))
ZOOKEEPER = MetaProperties(0, 7, "A8Y4xi7rRgiNAOrSvQxONw", None)


@pytest.mark.parametrize(
    ("properties", "written_at", "text"),
    [
        (KRAFT, datetime(2026, 11, 21, 0, 12, 6, tzinfo=UTC), KRAFT_TEXT),
        (ZOOKEEPER, datetime(2026, 11, 21, 0, 24, 4, tzinfo=UTC), ZOOKEEPER_TEXT),
        (KRAFT, None, KRAFT_TEXT.split("2026\n")[1]),
        (MetaProperties(0, None, None, None), None, "version=0\n"),
        (
            MetaProperties(0, 7, None, None),
            datetime(2024, 2, 5, 23, 4, 9, tzinfo=timezone(timedelta(hours=1), "CET")),
            "#\n#Mon Feb 05 23:04:09 CET 2024\nbroker.id=7\nversion=0\n",
        ),
    ],
)
def test_file_is_written_as_a_broker_does(
    tmp_path: Path, properties: MetaProperties, written_at: datetime | None, text: str
) -> None:
    path = write(tmp_path, "what was there before, and longer than what comes" * 4)
    write_meta_properties(DurableIO(), path, properties, written_at=written_at)
    assert path.read_text() == text


def test_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    io = RecordingIO(tmp_path)
    write_meta_properties(io, tmp_path / "m", KRAFT)
    assert io.summary[2:] == ["sync m.tmp", "replace m.tmp m", "sync-directory ."]


@pytest.mark.parametrize(
    ("cluster_id", "text"),
    [
        (" a b ", r"\ a b "),
        ("a=b:c#d!e\\f", r"a\=b\:c\#d\!e\\f"),
        ("\t\n\r\f", r"\t\n\r\f"),
        ("é\x7f\u20ac\U0001f600", r"\u00e9\u007f\u20ac\ud83d\ude00"),
        ("", ""),
    ],
)
def test_value_is_escaped_and_read_back(tmp_path: Path, cluster_id: str, text: str) -> None:
    path = tmp_path / "m"
    properties = MetaProperties(0, None, cluster_id, None)
    write_meta_properties(DurableIO(), path, properties)
    assert path.read_text() == f"version=0\ncluster.id={text}\n"
    assert read_meta_properties(path) == properties


@pytest.mark.parametrize(
    ("properties", "written_at", "reason"),
    [
        (MetaProperties(3, 1, "c", None), None, "version 3 is unknown, expected 0, 1 or 2"),
        (MetaProperties(1, None, "c", None), None, "version 1 requires node.id"),
        (MetaProperties(1, 1, None, None), None, "version 1 requires cluster.id"),
        (MetaProperties(1, 2**31, "c", None), None, "does not fit into int32"),
        (KRAFT, datetime(2024, 2, 5), "has no zone"),  # noqa: DTZ001 - the wrong argument
    ],
)
def test_content_that_could_not_be_read_back_is_refused(
    tmp_path: Path, properties: MetaProperties, written_at: datetime | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        write_meta_properties(DurableIO(), tmp_path / "m", properties, written_at=written_at)
    assert list(tmp_path.iterdir()) == []
