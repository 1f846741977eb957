"""Topics that `pylog` writes for a broker to take over: what is in them, and how it gets there.

Each is one partition. Small segments make rolls, indexes and snapshots of what a larger log has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pylog.model import CompressionType
from tests.support.partition_account import Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.partition_writer import PartitionWriter

OLD_TIMESTAMP = 1_700_000_000_000
SMALL_SEGMENTS = {"segment.bytes": "6000", "index.interval.bytes": "300"}

# Far above what a broker gives out: to a broker's own producer it would be an old acquaintance.
_FIRST_PRODUCER_ID = 7_000_000


@dataclass(frozen=True)
class WrittenTopic:
    """A topic and the function that writes it.

    Attributes
    ----------
    name
        Of the topic.
    write
        What is written.
    config
        Properties by the names that Kafka 3.9 has for them; retention is off in all topics.
    is_crashed
        Whether the writer dies with its work, and a torn batch is left at the end.
    """

    name: str
    write: Callable[[PartitionWriter], None]
    config: Mapping[str, str] = field(default_factory=dict)
    is_crashed: bool = False

    @property
    def is_append_time(self) -> bool:
        """Whether records get the time of the append."""
        return self.config.get("message.timestamp.type") == "LogAppendTime"

    def __str__(self) -> str:
        return self.name


def write_plain(writer: PartitionWriter) -> None:
    """Write batches of many sizes, of long ago."""
    for count in (1, 2, 50, 7, 120):
        end = writer.account.log_end_offset
        writer.append(writer.records(count, first_timestamp=OLD_TIMESTAMP + 10 * end, size=200))


def write_nothing(writer: PartitionWriter) -> None:
    """Leave the log as it is made."""


def write_compressed(compression: CompressionType) -> Callable[[PartitionWriter], None]:
    """Return what writes batches of a codec, of one record and of many."""

    def write(writer: PartitionWriter) -> None:
        for count in (1, 90, 3, 400):
            writer.append(writer.records(count, size=100), compression=compression)

    return write


def write_all_codecs(writer: PartitionWriter) -> None:
    """Write a batch of every codec, to a topic that has one of its own."""
    for compression in sorted(CompressionType):
        writer.append(writer.records(40), compression=compression)


def write_over_time(writer: PartitionWriter) -> None:
    """Write batches of some codecs while time goes by."""
    for compression in (CompressionType.NONE, CompressionType.LZ4, CompressionType.GZIP):
        for count in (3, 40, 1):
            writer.clock.sleep(250)
            # The producer's clock is slow: what it says does not count.
            writer.append(writer.records(count, first_timestamp=77), compression=compression)


def write_segments(writer: PartitionWriter) -> None:
    """Write many segments, time going up and down."""
    now = writer.clock.milliseconds()
    for number in range(120):
        jump = (number * 7919) % 5000
        writer.append(writer.records(10, first_timestamp=now - 500_000 + number * 1000 + jump))


def write_and_delete(writer: PartitionWriter) -> None:
    """Write many segments, and move the log start into the middle of a later one's batch."""
    write_segments(writer)
    writer.delete_records(777)


def write_and_delete_all(writer: PartitionWriter) -> None:
    """Move the log start to the end."""
    write_plain(writer)
    writer.delete_records(writer.account.log_end_offset)


def write_and_cut(writer: PartitionWriter) -> None:
    """Write many segments, cut within one, and go on."""
    write_segments(writer)
    writer.truncate_to(534, batch_start=530)
    for _ in range(30):
        writer.append(writer.records(9))


def write_with_gaps(writer: PartitionWriter) -> None:
    """Leave out offsets within batches and between them, as in what is compacted."""
    for number in range(60):
        writer.account.log_end_offset += number % 5
        writer.append_at(writer.records(12)[:: 1 + number % 3])


def write_idempotent(writer: PartitionWriter) -> None:
    """Let three producers take turns; one has got a new epoch meanwhile."""
    first, second, third = _producers(3)
    for number in range(40):
        writer.append(writer.records(5), producer=first)
        writer.append(writer.records(1 + number % 4), producer=second)
        if number % 10 == 0:
            writer.append(writer.records(30), producer=third, compression=CompressionType.ZSTD)
        if number == 20:
            second.epoch, second.next_sequence = second.epoch + 1, 0
    writer.append(writer.records(5))


def write_transactions(writer: PartitionWriter) -> None:
    """Interleave transactions that are committed and aborted, over several segments."""
    first, second, third = _producers(3)
    for number in range(30):
        writer.clock.sleep(10)
        writer.append(writer.records(6), producer=first, is_transactional=True)
        writer.append(writer.records(3))
        writer.append(writer.records(4), producer=second, is_transactional=True)
        if number % 3 == 1:
            writer.end_transaction(first, is_commit=number % 2 == 0)
        if number % 7 == 3:
            writer.end_transaction(second, is_commit=False)
        if number % 10 == 5:
            writer.append(writer.records(20), producer=third, is_transactional=True)
            writer.end_transaction(third, is_commit=number % 20 == 5)
    for producer in (first, second):
        if producer.open_offsets:
            writer.end_transaction(producer, is_commit=producer is first)


def write_open_transaction(writer: PartitionWriter) -> None:
    """Leave a transaction open, and decide later ones after its first record."""
    write_transactions(writer)
    left, aborting, committing = _producers(6)[3:]
    writer.append(writer.records(5), producer=left, is_transactional=True)
    for producer in (aborting, committing):
        writer.append(writer.records(60), producer=producer, is_transactional=True)
        writer.append(writer.records(5), producer=left, is_transactional=True)
        writer.end_transaction(producer, is_commit=producer is committing)
        writer.append(writer.records(30))


def _producers(count: int) -> list[Producer]:
    return [Producer(_FIRST_PRODUCER_ID + each, epoch=each) for each in range(count)]


WRITTEN_TOPICS = [
    WrittenTopic("plain", write_plain),
    WrittenTopic("empty", write_nothing),
    WrittenTopic("gzip", write_compressed(CompressionType.GZIP)),
    WrittenTopic("snappy", write_compressed(CompressionType.SNAPPY)),
    WrittenTopic("lz4", write_compressed(CompressionType.LZ4)),
    WrittenTopic("zstd", write_compressed(CompressionType.ZSTD)),
    WrittenTopic("recompressed", write_all_codecs, {"compression.type": "lz4"}),
    WrittenTopic("append-time", write_over_time, {"message.timestamp.type": "LogAppendTime"}),
    WrittenTopic("segments", write_segments, SMALL_SEGMENTS),
    WrittenTopic("log-start", write_and_delete, SMALL_SEGMENTS),
    WrittenTopic("log-start-at-end", write_and_delete_all),
    WrittenTopic("cut", write_and_cut, {**SMALL_SEGMENTS, "file.delete.delay.ms": "0"}),
    WrittenTopic("gaps", write_with_gaps, SMALL_SEGMENTS),
    WrittenTopic("idempotent", write_idempotent, SMALL_SEGMENTS),
    WrittenTopic("transactions", write_transactions, SMALL_SEGMENTS),
    WrittenTopic("open-transaction", write_open_transaction, SMALL_SEGMENTS),
    WrittenTopic("crashed", write_plain, is_crashed=True),
    WrittenTopic("crashed-segments", write_segments, SMALL_SEGMENTS, is_crashed=True),
    WrittenTopic("crashed-transactions", write_open_transaction, SMALL_SEGMENTS, is_crashed=True),
]
