"""``.snapshot`` files: the producers that a broker knew of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pylog.files.producer_snapshot import NO_OFFSET, ProducerStateEntry, read_producer_snapshot
from pylog.inspect.dump.json_line import json_line
from pylog.internal_topics.versions import KafkaVersion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pylog.inspect.dump.dump_file import DumpFile
    from pylog.inspect.dump.dump_options import DumpOptions
    from pylog.inspect.dump.file_report import FileReport

_MOST_SEQUENCE = 0x7FFFFFFF


class SnapshotDump:
    """The lines of one producer snapshot. A part of a dump, see `pylog.inspect.dump.dump_part`."""

    size_bytes = 0

    def __init__(self, file: DumpFile, options: DumpOptions) -> None:
        self._file = file
        self._options = options

    def __iter__(self) -> Iterator[memoryview]:
        """Yield the lines.

        Raises
        ------
        CorruptSnapshotError
            The version, the length or the checksum is wrong.
        LogStorageError
            The file cannot be read.
        """
        to_line = self._json_line if self._options.is_json else self._line
        entries = read_producer_snapshot(self._file.location)
        yield memoryview("".join(map(to_line, entries)).encode("utf-8", "surrogateescape"))

    def report_to(self, report: FileReport) -> None:
        """Nothing else was found."""

    def _line(self, entry: ProducerStateEntry) -> str:
        """Return the text of a producer; its last batch is there if it has one."""
        first_offset = entry.current_txn_first_offset
        start = "OptionalLong.empty" if first_offset < 0 else f"OptionalLong[{first_offset}]"
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.producer_epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {start} "
            f"lastTimestamp: {entry.timestamp}"
        )
        if entry.last_offset > NO_OFFSET:
            line += (
                f" firstSequence: {_first_sequence(entry)} lastSequence: {entry.last_sequence} "
                f"lastOffset: {entry.last_offset} offsetDelta: {entry.offset_delta} "
                f"timestamp: {entry.timestamp}"
            )
        elif self._options.kafka_version < KafkaVersion.V4_3:
            line += " "
        return f"{line}\n"

    def _json_line(self, entry: ProducerStateEntry) -> str:
        first_offset = entry.current_txn_first_offset
        fields: dict[str, object] = {
            "type": "producer",
            "path": self._file.path,
            "producerId": entry.producer_id,
            "producerEpoch": entry.producer_epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": None if first_offset < 0 else first_offset,
            "lastTimestamp": entry.timestamp,
        }
        if entry.last_offset > NO_OFFSET:
            fields |= {
                "firstSequence": _first_sequence(entry),
                "lastSequence": entry.last_sequence,
                "lastOffset": entry.last_offset,
                "offsetDelta": entry.offset_delta,
                "timestamp": entry.timestamp,
            }
        return json_line(fields)


def _first_sequence(entry: ProducerStateEntry) -> int:
    """Sequences wrap from 0 back to 2^31-1."""
    return (entry.last_sequence - entry.offset_delta) & _MOST_SEQUENCE
