"""``.snapshot`` files: the producers that a broker knew of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.dump_log.lines import in_utf8, json_line
from pylog.files.producer_snapshot import NO_OFFSET, ProducerStateEntry, read_producer_snapshot
from pylog.internal_topics.versions import KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.dump_log.files import DumpFile
    from pylog.dump_log.options import DumpOptions


_MOST_SEQUENCE = 0x7FFFFFFF


def snapshot_lines(file: DumpFile, options: DumpOptions) -> Iterator[memoryview]:
    """Yield a line for each producer; its last batch is there if it has one."""
    text = ""
    for entry in read_producer_snapshot(file.location):
        start = None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset
        producer, batch = _fields(entry, start)
        if options.is_json:
            text += json_line({"type": "producer", "path": file.path, **producer, **batch})
            continue
        producer["currentTxnFirstOffset"] = (
            "OptionalLong.empty" if start is None else f"OptionalLong[{start}]"
        )
        text += " ".join(f"{name}: {value}" for name, value in (producer | batch).items())
        has_blank = not batch and options.kafka_version < KafkaVersion.V4_3
        text += " \n" if has_blank else "\n"
    yield in_utf8(text)


def _fields(
    entry: ProducerStateEntry, start: int | None
) -> tuple[dict[str, object], dict[str, object]]:
    """Return what is known of a producer, and of its last batch, by the tool's names."""
    producer: dict[str, object] = {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": start,
        "lastTimestamp": entry.timestamp,
    }
    if entry.last_offset <= NO_OFFSET:
        return producer, {}
    return producer, {
        # Sequences wrap from 0 back to 2^31-1.
        "firstSequence": (entry.last_sequence - entry.offset_delta) & _MOST_SEQUENCE,
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.timestamp,
    }
