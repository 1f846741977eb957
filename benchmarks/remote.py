"""What is requested of an S3 server on loopback, next to what an answer needs.

Needed are the batches of the answer, whole, and the index files that lead to them.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import pylog
from benchmarks.data_sets import Bench
from benchmarks.measuring import ensure_equal
from pylog.model import OffsetSpecs
from tests.support.large_topic import BATCH_RECORDS, LargeTopic, write_large_topic
from tests.support.s3_proxy import Proxy
from tests.support.s3_server import ACCESS_KEY_ID, SECRET_ACCESS_KEY, Bucket, S3Server

SEGMENTS = 3
SEGMENT_BYTES = 64 << 20
_PREFIX = "logs"


@dataclass(frozen=True, slots=True)
class RemoteFigure:
    """One read: bytes of files requested and needed, and how many requests there were."""

    name: str
    needed_bytes: int
    requested_bytes: int
    gets: int
    heads: int
    lists: int

    @property
    def times(self) -> float:
        """Bytes requested over bytes needed."""
        return self.requested_bytes / self.needed_bytes


@dataclass(frozen=True, slots=True)
class _Read:
    name: str
    start: OffsetSpecs
    end: OffsetSpecs
    records: int
    needed_bytes: int


def _reads(topic: LargeTopic) -> list[_Read]:
    end = topic.end_offset
    start = end // 2 // BATCH_RECORDS * BATCH_RECORDS
    stop = start + end // 100 // BATCH_RECORDS * BATCH_RECORDS
    part = topic.bytes_of(start, stop)
    index, time_index = (topic.side_bytes(each) // SEGMENTS for each in (".index", ".timeindex"))
    first, last = (pylog.Timestamp(topic.timestamp_of(each)) for each in (start, stop))
    return [
        _Read("full scan", "earliest", "latest", end, topic.log_bytes),
        # The range's segment, and the last one, where the log ends.
        _Read("1 % of the offsets", start, stop, stop - start, part + 2 * index),
        # Also the segment before, whose last time has to be known.
        _Read("1 % of the time", first, last, stop - start, part + 3 * index + 2 * time_index),
    ]


def _figure(bucket: Bucket, server: S3Server, read: _Read) -> RemoteFigure:
    # A port of its own for each: nothing that the process has kept of a file is of this one.
    with Proxy(server.endpoint) as proxy:
        secret = SECRET_ACCESS_KEY.replace("/", "%2F").replace("+", "%2B")
        uri = bucket.uri(_PREFIX, endpoint=proxy.endpoint, user_info=f"{ACCESS_KEY_ID}:{secret}")
        batches = pylog.scan(uri, start=read.start, end=read.end).to_batches()
        ensure_equal(read.name, sum(batch.num_rows for batch in batches), read.records)
        traffic = proxy.traffic()
    return RemoteFigure(
        read.name,
        read.needed_bytes,
        traffic.body_bytes,
        traffic.count("GET"),
        traffic.count("HEAD"),
        len(traffic.listings),
    )


def measure_remote(bench: Bench, say: Callable[[str], None]) -> list[RemoteFigure]:
    """Return what three reads of a topic in a bucket requested; the topic is removed again."""
    say("remote")
    directory = bench.root / "remote"
    shutil.rmtree(directory, ignore_errors=True)
    try:
        topic = write_large_topic(directory, segments=SEGMENTS, segment_bytes=SEGMENT_BYTES)
        with S3Server() as server:
            bucket = Bucket(server, "kafka")
            bucket.upload(directory, _PREFIX)
            return [_figure(bucket, server, read) for read in _reads(topic)]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
