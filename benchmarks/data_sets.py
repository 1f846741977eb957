"""The data under ``build/bench``: topic-partition directories, made once, kept, checked by sums.

``s100-<codec>`` and ``s1000-<codec>`` hold the same records in each codec, one partition:
100-byte values (2 M records) and 1000-byte values (400 k), 8-byte keys, CreateTime. Uncompressed
batches have 16 KB of records, which is a producer's default ``batch.size``; compressed ones 64
KB before compression, since a producer fills its batch by the compressed size and so packs more.
The others repeat batches of those: ``-seg64m`` and ``-seg1g`` (memory, header-only count),
``-p4`` (four partitions, Spark), ``-tiny`` (start-up).

A set is complete when its ``<set>.json`` beside it is there; that file is written last.
"""

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.batches import (
    CODECS,
    HEADER,
    BatchSpan,
    Payload,
    encode_batch,
    moved,
    payloads,
    spans,
)
from benchmarks.events import KEY_BYTES, Event, events
from benchmarks.framing import COMPRESSORS
from benchmarks.measuring import Tally
from benchmarks.segment_writer import SegmentWriter

CURRENT_MAGIC = 2  # the format of all sets but the legacy ones
MADE_AS = 2  # raise it when what is written changes; older sets are then made anew
RECORDS = {100: 2_000_000, 1000: 400_000}
SPARK_RECORDS = {100: 1_250_000, 1000: 150_000}  # a partition
SPARK_PARTITIONS = 4
TINY_RECORDS = 5_000
SEGMENT_BYTES = {"seg64m": 64 << 20, "seg1g": 1 << 30}
PAYLOAD_BYTES = {codec: (16 << 10) if codec == "none" else (64 << 10) for codec in CODECS}
QUICK_DIVISOR = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One log directory and what is in it; ``timestamps_ms`` is 0 in sets that repeat batches."""

    name: str
    value_bytes: int
    codec: str
    partitions: int
    records: int
    offsets: int
    timestamps_ms: int
    batches: int
    log_bytes: int
    records_bytes: int  # the records sections before compression; 0 for wrappers
    magic: int = CURRENT_MAGIC
    made_as: int = MADE_AS

    @property
    def tally(self) -> Tally:
        """The sums that a reader of the whole set must come to."""
        return Tally(
            self.records,
            self.records * KEY_BYTES,
            self.records * self.value_bytes,
            self.offsets,
            self.timestamps_ms,
        )


class _TimestampSum:
    """Passes events through and sums their timestamps."""

    def __init__(self) -> None:
        self.total = 0

    def of(self, stream: Iterator[Event]) -> Iterator[Event]:
        for event in stream:
            self.total += event.timestamp_ms
            yield event


def _span(payload: Payload, base_offset: int, codec: str) -> BatchSpan:
    last_offset = base_offset + payload.records - 1
    return BatchSpan(
        0, 0, base_offset, last_offset, codec, payload.records, payload.max_timestamp_ms
    )


class Bench:
    """The data sets of one size under one directory; one process at a time."""

    def __init__(self, root: Path, *, quick: bool, large: bool = False) -> None:
        self.quick = quick
        self.large = large
        self.root = root / "quick" if quick else root
        self._divisor = QUICK_DIVISOR if quick else 1

    def directory(self, name: str) -> Path:
        """Return the log directory of set `name`: what a reader is pointed at."""
        return self.root / name

    def logs(self, name: str) -> list[Path]:
        """Return the ``.log`` files of set `name`, by partition."""
        return sorted(self.directory(name).glob("*/*.log"))

    def prepare(self, value_sizes: Sequence[int] = (100, 1000)) -> None:
        """Make every base set of these value sizes that is missing."""
        for value_bytes in value_sizes:
            missing = [c for c in CODECS if self.load(f"s{value_bytes}-{c}") is None]
            for payload_bytes, group in itertools.groupby(missing, PAYLOAD_BYTES.__getitem__):
                self._make(value_bytes, payload_bytes, list(group))

    def base(self, value_bytes: int, codec: str) -> DataSet:
        """Return the set of this value size and codec, made if it is missing."""
        name = f"s{value_bytes}-{codec}"
        if (found := self.load(name)) is None:
            self._make(value_bytes, PAYLOAD_BYTES[codec], [codec])
            found = self.load(name)
        if found is None:
            raise RuntimeError(f"{name} was made and is not there")
        return found

    def segment(self, suffix: str) -> DataSet:
        """Return ``s1000-none-<suffix>``: one segment of just under that many bytes."""
        size = SEGMENT_BYTES[suffix] // self._divisor
        source = self.base(1000, "none")
        return self._repeat(source, suffix, partitions=1, below_bytes=size)

    def spark(self, value_bytes: int) -> DataSet:
        """Return ``s<value_bytes>-none-p4``, four partitions for the Spark scan."""
        records = SPARK_RECORDS[value_bytes] // self._divisor
        source = self.base(value_bytes, "none")
        return self._repeat(source, "p4", partitions=SPARK_PARTITIONS, records=records)

    def tiny(self) -> DataSet:
        """Return ``s100-none-tiny``: so small that start-up is all there is."""
        return self._repeat(self.base(100, "none"), "tiny", partitions=1, records=TINY_RECORDS)

    def _manifest(self, name: str) -> Path:
        return self.root / f"{name}.json"

    def load(self, name: str) -> DataSet | None:
        """Return the set `name` if it is there, complete and made as now."""
        try:
            found = DataSet(**json.loads(self._manifest(name).read_text()))
        except (FileNotFoundError, TypeError, ValueError):
            return None
        return found if found.made_as == MADE_AS and self.directory(name).is_dir() else None

    def clear(self, name: str) -> Path:
        """Remove what there is of set `name`; return its directory."""
        self._manifest(name).unlink(missing_ok=True)
        shutil.rmtree(self.directory(name), ignore_errors=True)
        shutil.rmtree(self.root / f"{name}.parquet", ignore_errors=True)  # spark_scan's copy
        return self.directory(name)

    def save(self, data_set: DataSet) -> None:
        """Note that a set is complete."""
        self._manifest(data_set.name).write_text(json.dumps(asdict(data_set), indent=1) + "\n")

    def _make(self, value_bytes: int, payload_bytes: int, codecs: list[str]) -> None:
        """Write the sets of `codecs` in one pass over the events."""
        names = {codec: f"s{value_bytes}-{codec}" for codec in codecs}
        writers = {c: SegmentWriter(self.clear(n) / f"{n}-0") for c, n in names.items()}
        timestamps = _TimestampSum()
        count = RECORDS[value_bytes] // self._divisor
        base_offset = records_bytes = 0
        with contextlib.ExitStack() as stack:
            for writer in writers.values():
                stack.enter_context(writer)
            for payload in payloads(timestamps.of(events(value_bytes, count)), payload_bytes):
                for codec, writer in writers.items():
                    section = COMPRESSORS[codec](payload.section)
                    batch = encode_batch(payload, base_offset, codec, section)
                    writer.append(batch, _span(payload, base_offset, codec))
                base_offset += payload.records
                records_bytes += len(payload.section)
        for codec, writer in writers.items():
            made = DataSet(
                name=names[codec],
                value_bytes=value_bytes,
                codec=codec,
                partitions=1,
                records=count,
                offsets=count * (count - 1) // 2,
                timestamps_ms=timestamps.total,
                batches=writer.batches,
                log_bytes=writer.size_bytes,
                records_bytes=records_bytes,
            )
            self.save(made)

    def _repeat(
        self,
        source: DataSet,
        suffix: str,
        *,
        partitions: int,
        records: int = 1 << 62,
        below_bytes: int = 1 << 62,
    ) -> DataSet:
        """Return a set of `source`'s batches, over and over, to either limit a partition."""
        name = f"{source.name}-{suffix}"
        if (found := self.load(name)) is not None:
            return found
        target = self.clear(name)
        data = self.logs(source.name)[0].read_bytes()
        batches = list(spans(data))
        size = count = batch_count = offsets = 0
        for partition in range(partitions):
            first = partition * len(batches) // partitions
            turned = itertools.cycle(batches[first:] + batches[:first])
            with SegmentWriter(target / f"{name}-{partition}") as writer:
                for span in turned:
                    length = span.end - span.start
                    if writer.end_offset >= records or writer.size_bytes + length > below_bytes:
                        break
                    base_offset = writer.end_offset
                    batch = moved(data[span.start : span.end], base_offset)
                    writer.append(
                        batch,
                        span._replace(
                            base_offset=base_offset, last_offset=base_offset + span.records - 1
                        ),
                    )
            size += writer.size_bytes
            count += writer.end_offset
            batch_count += writer.batches
            offsets += writer.end_offset * (writer.end_offset - 1) // 2
        made = DataSet(
            name=name,
            value_bytes=source.value_bytes,
            codec=source.codec,
            partitions=partitions,
            records=count,
            offsets=offsets,
            timestamps_ms=0,
            batches=batch_count,
            log_bytes=size,
            records_bytes=size - batch_count * HEADER.size,
        )
        self.save(made)
        return made
