"""How much is requested of a store, and how often, next to what an answer needs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import pylog
from pylog.files import remote_storage
from pylog.files.remote_storage import KeptBytes
from pylog.files.storage import open_file
from pylog.log_file.segment_windows import DEFAULT_WINDOW_BYTES
from tests.support.large_topic import BATCH_RECORDS, LargeTopic, write_large_topic

if TYPE_CHECKING:
    from pylog.model import OffsetSpecs
    from tests.support.s3_proxy import Proxy, Traffic
    from tests.support.s3_server import Bucket

AT_MOST = 1.1
SEGMENTS = 3
SEGMENT_BYTES = 64 << 20
GROWING_WINDOWS = 5  # 256 KiB to 4 MiB
PREFIX = "large"


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory, bucket: Bucket) -> LargeTopic:
    log_directory = tmp_path_factory.mktemp("large")
    topic = write_large_topic(log_directory, segments=SEGMENTS, segment_bytes=SEGMENT_BYTES)
    bucket.upload(log_directory, PREFIX)
    return topic


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each test begin like a new process."""
    monkeypatch.setattr(remote_storage, "_KEPT", KeptBytes())


def read(
    proxy: Proxy, uri: str, start: OffsetSpecs = "earliest", end: OffsetSpecs = "latest"
) -> tuple[int, Traffic]:
    """Return how many records a scan gives, planned and read, and what it requested."""
    proxy.begin()
    count = sum(batch.num_rows for batch in pylog.scan(uri, start=start, end=end).to_batches())
    return count, proxy.traffic()


def check(name: str, traffic: Traffic, needed: int, most_requests: int) -> None:
    """Fail where too much was requested; the figures are in the test's output."""
    sys.stdout.write(f"{name}: {traffic}; {traffic.body_bytes / needed:.3f} of {needed} needed\n")
    assert traffic.body_bytes <= AT_MOST * needed
    assert len(traffic.requests) <= most_requests


def test_a_full_scan_requests_each_byte_once(
    proxy: Proxy, bucket: Bucket, topic: LargeTopic
) -> None:
    count, traffic = read(proxy, bucket.uri(PREFIX, endpoint=proxy.endpoint))
    assert count == topic.end_offset
    windows = SEGMENTS * (SEGMENT_BYTES // DEFAULT_WINDOW_BYTES + GROWING_WINDOWS)
    check("full scan", traffic, topic.log_bytes, windows + SEGMENTS + 15)
    assert traffic.body_bytes <= 1.001 * topic.log_bytes


def test_a_percent_of_the_offsets_requests_little_more_than_its_batches(
    proxy: Proxy, bucket: Bucket, topic: LargeTopic
) -> None:
    end = topic.end_offset
    start, stop = end // 2, end // 2 + end // 100
    uri = bucket.uri(PREFIX, endpoint=proxy.endpoint)
    count, traffic = read(proxy, uri, start=start, end=stop)
    assert count == stop - start
    indexes = 2  # that of the range's segment, and the last one's for the end of the log
    needed = topic.bytes_of(start, stop) + indexes * topic.side_bytes(".index") // SEGMENTS
    check("1 % of the offsets", traffic, needed, 30 + SEGMENTS)


def test_a_percent_of_the_time_requests_little_more_than_its_batches(
    proxy: Proxy, bucket: Bucket, topic: LargeTopic
) -> None:
    end = topic.end_offset
    start, stop = end // 2, end // 2 + end // 100
    uri = bucket.uri(PREFIX, endpoint=proxy.endpoint)
    count, traffic = read(
        proxy,
        uri,
        start=pylog.Timestamp(topic.timestamp_of(start)),
        end=pylog.Timestamp(topic.timestamp_of(stop)),
    )
    assert count == topic.bytes_of(start, stop) // topic.batch_bytes * BATCH_RECORDS - BATCH_RECORDS
    # Segment by segment from the first one on, and the last one for the end of the log.
    side_files = topic.side_bytes(".index") + 2 * topic.side_bytes(".timeindex") // SEGMENTS
    # Each `.log` that is opened takes two HEADs: one for its length, one for its entity tag after
    # the last read. The time index entry of the last segment that is passed over is looked at.
    check("1 % of the time", traffic, topic.bytes_of(start, stop) + side_files, 70 + 2 * SEGMENTS)


def test_a_listing_requests_headers_and_no_more(
    proxy: Proxy, bucket: Bucket, topic: LargeTopic
) -> None:
    proxy.begin()
    (view,) = pylog.open_directory(bucket.uri(PREFIX, endpoint=proxy.endpoint))
    assert view.log_end_offset == topic.end_offset
    traffic = proxy.traffic()
    needed = topic.side_bytes(".index") // SEGMENTS + 2 * topic.batch_bytes
    check("open_directory and log_end_offset", traffic, needed, 12)
    # Once to see what the directory is, and once for its segments.
    assert len(traffic.listings) <= 3


def test_what_was_fetched_of_a_file_serves_until_the_file_is_another_one(
    proxy: Proxy, bucket: Bucket
) -> None:
    uri = bucket.uri("kept/00000000000000000000.index", endpoint=proxy.endpoint)
    for content, gets in ((b"a" * 800, 1), (b"a" * 800, 1), (b"b" * 800, 2)):
        if gets == 2 or not proxy.traffic().count("GET"):
            bucket.write("kept/00000000000000000000.index", content)
        with open_file(uri) as file:
            assert file.read_at(100, 50) == content[100:150]
            assert file.read_at(750, 500) == content[750:]
        assert proxy.traffic().count("GET") == gets
