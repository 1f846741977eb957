from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pylog.errors import CorruptCheckpointError, SegmentVanishedError
from pylog.files.meta_properties import (
    MetaProperties,
    read_meta_properties,
)
from pylog.files.partition_metadata import parse_uuid

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
